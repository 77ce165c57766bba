// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Dimensions inserted, removed, stacked and reversed, under NumPy's names. Dimensions are
/// counted from 0, negative ones from the end.
///
///     auto row = expand_dims<0>(x);                     // (1, 8, 6) of x (8, 6)
///     auto same = squeeze<0>(row);
///     auto both = stack<0>(x, same);                    // (2, 8, 6)
///     auto last = flip<-1>(x);
///
/// Laws: squeeze<D>(expand_dims<D>(x)) == x; slice i of a stack is its operand i.
#include <array>
#include <string>
#include <vector>

#include <tessera/op/create/create.hpp>
#include <tessera/op/into.hpp>
#include <tessera/op/shape/concatenate.hpp>
#include <tessera/op/shape/reshape.hpp>
#include <tessera/op/shape/roll.hpp>

namespace tessera {
namespace detail {

/// The dimensions with negative ones counted from the end; empty when they are not different
/// dimensions of `rank`.
constexpr Dimensions from_the_end(const Dimensions& dims, int rank) {
  Dimensions all;
  for (int d : dims) {
    const int at = d < 0 ? d + rank : d;
    if (at < 0 || at >= rank || all.contains(at)) return {};
    all.push_back(at);
  }
  return all;
}
/// The extents or the sharding's dimensions with `one` at `dims` of the result.
template <class Vector, class One>
constexpr Vector with_dims(const Vector& x, const Dimensions& dims, const One& one) {
  Vector all;
  for (int d = 0, from = 0; d < x.size() + dims.size(); ++d)
    all.push_back(dims.contains(d) ? one : x[from++]);
  return all;
}
template <class Vector> constexpr Vector without_dims(const Vector& x, const Dimensions& dims) {
  Vector rest;
  for (int d = 0; d < x.size(); ++d)
    if (!dims.contains(d)) rest.push_back(x[d]);
  return rest;
}
constexpr Sharding with_dims(Sharding s, const Dimensions& dims) {
  s.dims = with_dims(s.dims, dims, AxisList{});
  return s;
}
constexpr Sharding without_dims(Sharding s, const Dimensions& dims) {
  s.dims = without_dims(s.dims, dims);
  return s;
}

template <class A, int... D> struct ExpandedSpec {
  static constexpr int rank = A::rank + static_cast<int>(sizeof...(D));
  static_assert(rank <= max_dims,
                "[tessera] the result has more than 8 dimensions, which no tensor has; name fewer");
  static constexpr Dimensions dims = from_the_end(Dimensions{D...}, rank);
  static_assert(
      dims.size() == static_cast<int>(sizeof...(D)) && sizeof...(D) > 0,
      "[tessera] expand_dims or stack names a dimension twice, one that the result does not have, "
      "or none; dimensions count from 0, or from the end as -1; name at least one of the result's");
  static constexpr Sharding value = with_dims(TensorFacts<A>::sharding(), dims);
  using spec = spec_of<typename A::mesh_type, ExpandedSpec>;
};
template <class A, int... D> struct SqueezedSpec {
  static constexpr Dimensions dims = from_the_end(Dimensions{D...}, A::rank);
  static_assert(
      dims.size() == static_cast<int>(sizeof...(D)) && sizeof...(D) > 0,
      "[tessera] squeeze names a dimension twice, one that the tensor does not have, or none; "
      "dimensions count from 0, or from the end as -1; name at least one of the tensor's");
  static constexpr Sharding value = without_dims(TensorFacts<A>::sharding(), dims);
  using spec = spec_of<typename A::mesh_type, SqueezedSpec>;
};

inline Dimensions require_dims(const Dimensions& dims, int rank, CallSite site) {
  const Dimensions all = from_the_end(dims, rank);
  if (all.size() != dims.size())
    throw ShapeError(std::string(site.label) + ": the dimensions " + to_string(as_numbers(dims)) +
                         " are not different ones among " + std::to_string(rank) +
                         "; dimensions count from 0, or from the end as -1; name each at most once",
                     site.where);
  return all;
}
inline void require_ones(const Extents& extents, const Dimensions& dims, CallSite site) {
  for (int d : dims)
    if (extents[d] != 1)
      throw ShapeError(std::string(site.label) + ": dimension " + std::to_string(d) +
                           " has extent " + std::to_string(extents[d]) +
                           "; squeeze removes dimensions of extent 1; slice it first",
                       site.where);
}
/// Returns x as another description has it, of an open type where x is of one.
inline TensorCore seen_as(const TensorCore& x, const TensorDesc& desc,
                          std::shared_ptr<Storage> storage) {
  const TensorCore seen(x.mesh(), desc, std::move(storage));
  return x.open() ? seen.as_open() : seen;
}
/// Returns x's block without `dims`, of extent 1. Precondition: it has no halo.
inline TensorCore seen_without(const TensorCore& x, const Dimensions& dims) {
  return seen_as(x, {x.type(), without_dims(x.extents(), dims), without_dims(x.sharding(), dims)},
                 x.storage());
}
/// Returns x's block with dimensions `dims` of extent 1 inserted.
inline TensorCore seen_with(const TensorCore& x, const Dimensions& dims) {
  const TensorDesc desc{x.type(), with_dims(x.extents(), dims, Index{1}),
                        with_dims(x.sharding(), dims)};
  if (x.halo() == nullptr) return seen_as(x, desc, x.storage());
  const auto same = std::make_shared<Storage>(x.storage());
  same->set_halo(with_dims(*x.halo(), dims, HaloDim{}));
  same->set_history(x.storage()->history());
  return seen_as(x, desc, same);
}

}  // namespace detail

/// Returns x with dimensions of extent 1 inserted: they are dimensions `D` of the result, and not
/// split. Communication: none. Collective over the mesh. Throws nothing of its own.
template <int... D, TypedTensor A>
auto expand_dims(const A& x, const CallOptions& call = Where::here()) {
  using To = detail::ExpandedSpec<A, D...>;
  return reshape<typename To::spec>(x, detail::with_dims(x.extents(), To::dims, Index{1}), call);
}
/// Returns x without its dimensions `D`, whose extents are 1. Communication: none, but such a
/// dimension that is split is gathered. Collective over the mesh. Throws ShapeError when an extent
/// is not 1.
template <int... D, TypedTensor A>
auto squeeze(const A& x, const CallOptions& call = Where::here()) {
  const detail::CallSite site = call.sharded_site("squeeze");
  using To = detail::SqueezedSpec<A, D...>;
  detail::mesh_of(x.core(), site);
  detail::require_ones(x.extents(), To::dims, site);
  return reshape<typename To::spec>(x, detail::without_dims(x.extents(), To::dims), call);
}
/// Returns x with its dimensions `D` (all where none is named) reversed. Communication: as reverse.
/// Errors: as reverse.
template <int... D, TypedTensor A> auto flip(const A& x, const CallOptions& call = Where::here()) {
  return reverse<Deduced, NoContract, (D < 0 ? D + A::rank : D)...>(x, call);
}

/// Returns tensors of equal extents side by side along a new dimension D of the result, which is
/// not split, under the spec of the first that is split, or `Out`. Communication and errors: as
/// concatenate. Collective over the mesh.
template <int D, class Out = Deduced, class Bound = NoContract, TypedTensor... A>
  requires(sizeof...(A) >= 1 && sizeof...(A) <= max_operands)
auto stack(const A&... x) {
  using First = typename detail::FirstOf<A...>::type;
  constexpr int dim = detail::ExpandedSpec<First, D>::dims[0];
  using Typed = detail::Typed<detail::ConcatenateBy<dim, A...>, Out,
                              ShardedTensor<typename A::value_type, typename A::mesh_type,
                                            typename detail::ExpandedSpec<A, D>::spec>...>;
  const detail::CallSite site{"stack", {}, detail::bound<Typed, Bound>()};
  (detail::mesh_of(x.core(), site), ...);
  const std::array<TensorCore, sizeof...(A)> seen{detail::seen_with(x.core(), {dim})...};
  detail::OperandList operands;
  for (const TensorCore& one : seen) operands.push_back(&one);
  const ops::Concatenate operation{{dim}, Typed::value};
  return typename Typed::result(detail::run({operation, operands, site}));
}

/// These overloads take everything at run time; without `dims` squeeze removes all dimensions of
/// extent 1, and flip reverses all.
inline DynamicTensor expand_dims(const DynamicTensor& x, const FixedVector<int, max_dims>& dims,
                                 const CallOptions& call = Where::here()) {
  const detail::CallSite site = call.sharded_site("expand_dims");
  detail::mesh_of(x.core(), site);
  const int rank = x.core().rank() + dims.size();
  if (rank > max_dims)
    throw ShapeError("expand_dims: the result has " + std::to_string(rank) +
                         " dimensions; name fewer, since a tensor has at most " +
                         std::to_string(max_dims),
                     site.where);
  const Dimensions at = detail::require_dims(dims, rank, site);
  return reshape(x, detail::with_dims(x.extents(), at, Index{1}),
                 call.or_sharded(detail::with_dims(x.sharding(), at)));
}
inline DynamicTensor squeeze(const DynamicTensor& x, const FixedVector<int, max_dims>& dims,
                             const CallOptions& call = Where::here()) {
  const detail::CallSite site = call.sharded_site("squeeze");
  detail::mesh_of(x.core(), site);
  const Dimensions at = detail::require_dims(dims, x.core().rank(), site);
  detail::require_ones(x.extents(), at, site);
  return reshape(x, detail::without_dims(x.extents(), at),
                 call.or_sharded(detail::without_dims(x.sharding(), at)));
}
inline DynamicTensor squeeze(const DynamicTensor& x, const CallOptions& call = Where::here()) {
  FixedVector<int, max_dims> dims;
  for (int d = 0; d < x.extents().size(); ++d)
    if (x.extents()[d] == 1) dims.push_back(d);
  return squeeze(x, dims, call);
}
inline DynamicTensor flip(const DynamicTensor& x, const FixedVector<int, max_dims>& dims,
                          const CallOptions& call = Where::here()) {
  return reverse(x, detail::require_dims(dims, x.core().rank(), call.sharded_site("flip")), call);
}
inline DynamicTensor flip(const DynamicTensor& x, const CallOptions& call = Where::here()) {
  FixedVector<int, max_dims> dims;
  for (int d = 0; d < x.extents().size(); ++d) dims.push_back(d);
  return reverse(x, dims, call);
}
inline DynamicTensor stack(int dim, const std::vector<DynamicTensor>& x,
                           const CallOptions& call = Where::here()) {
  const detail::CallSite site = call.sharded_site("stack");
  std::vector<DynamicTensor> seen;
  int at = dim;
  for (const DynamicTensor& one : x) {
    detail::mesh_of(one.core(), site);
    const int rank = one.core().rank() + 1;
    if (rank > max_dims)
      throw ShapeError("stack: the tensors have " + std::to_string(max_dims) +
                           " dimensions, and a tensor has no more; reshape them first",
                       site.where);
    const Dimensions dims = detail::require_dims({dim}, rank, site);
    at = dims[0];
    seen.emplace_back(detail::seen_with(one.core(), dims));
  }
  return concatenate(at, seen, call);
}

}  // namespace tessera
