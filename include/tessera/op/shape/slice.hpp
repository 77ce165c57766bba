// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Parts of tensors: every stride-th element from start up to limit.
///
///     auto a = slice(x, {0, 2}, {8, 6});               // rows 0 to 7, columns 2 to 5
///     auto b = slice<1>(x, {2}, {6}, {2});             // columns 2 and 4, all rows
///     auto c = slice<P<data, _>>(x, {4, 0}, {8, 6});
///     auto halves = slices<1>(x, {{0}, {3}}, {{3}, {6}});      // two tensors, by one exchange
///
/// Laws: equals the slice of the whole tensor, for every mesh and spec; slice(pad(x)) by what was
/// padded is x; a dimension that is not split is cut without communication.
#include <utility>
#include <vector>

#include <tessera/op/call/shape_result.hpp>

namespace tessera {
namespace detail {
/// How slice<D...> is made.
template <int... D> struct SliceBy {
  static constexpr ops::Slice make(const TensorDescs& x) {
    return {{{Slice{Along<D...>::marks(x[0].rank()), x[0].extents, {}}}}};
  }
};
/// Eight slices at a time.
template <class Part>
std::vector<TensorCore> slices(const TensorCore& x, std::size_t starts, std::size_t limits,
                               const Sharding& out, CallSite site, const Part& part) {
  mesh_of(x, site);
  if (starts != limits)
    throw UsageError(std::string(site.label) + ": there are " + std::to_string(starts) +
                         " starts and " + std::to_string(limits) +
                         " limits; give one of each for each slice",
                     site.where);
  std::vector<TensorCore> results;
  ops::Slice operation{{}, out};
  for (std::size_t k = 0; k < starts; ++k) {
    operation.parts.push_back(part(k));
    if (operation.parts.size() < max_operands && k + 1 < starts) continue;
    for (TensorCore& one : run_all(operation, {&x}, site)) results.push_back(std::move(one));
    operation.parts.clear();
  }
  return results;
}
}  // namespace detail

/// Returns elements start, start + stride, ... before limit of each dimension, under x's spec or
/// `Out`; unfinished where x is. `D`: the dimensions, counted from 0, for which start, limit and
/// stride have an entry each, all where none is named; the others stay whole. Communication: one
/// exchange over the axes that split the dimensions, of the elements with a new owner, if there are
/// any. Collective over the mesh. Throws ShapeError unless 0 <= start <= limit <= extent and stride
/// > 0.
template <class Out = Deduced, class Bound = NoContract, int... D, TypedTensor A>
auto slice(const A& x, const Extents& start, const Extents& limit, const Extents& stride = {},
           const CallOptions& call = Where::here()) {
  using Typed = detail::Typed<detail::SliceBy<D...>, Out, A>;
  const detail::CallSite site = detail::typed_site<Typed, Bound>("slice", call, x.core());
  const ops::Slice operation{{{detail::spread_slice<D...>(x, start, limit, stride, site)}},
                             Typed::value};
  return typename Typed::result(detail::run({operation, {&x.core()}, site}));
}
template <int First, int... D, TypedTensor A>
auto slice(const A& x, const Extents& start, const Extents& limit, const Extents& stride = {},
           const CallOptions& call = Where::here()) {
  return slice<Deduced, NoContract, First, D...>(x, start, limit, stride, call);
}

/// Returns several slices of x, of one stride, which may overlap; the gradient of a concatenation
/// needs them. Communication: that of slice for all together: one exchange, and one message from a
/// process to another, for eight at a time. Otherwise as slice. Errors: as slice.
template <class Out = Deduced, class Bound = NoContract, int... D, TypedTensor A>
auto slices(const A& x, const std::vector<Extents>& starts, const std::vector<Extents>& limits,
            const Extents& stride = {}, const CallOptions& call = Where::here()) {
  using Typed = detail::Typed<detail::SliceBy<D...>, Out, A>;
  const detail::CallSite site = detail::fresh_typed_site<Typed, Bound>("slices", call, x.core());
  std::vector<typename Typed::result> results;
  for (TensorCore& core : detail::slices(
           x.core(), starts.size(), limits.size(), Typed::value, site, [&](std::size_t k) {
             return detail::spread_slice<D...>(x, starts[k], limits[k], stride, site);
           }))
    results.emplace_back(std::move(core));
  return results;
}
template <int First, int... D, TypedTensor A>
auto slices(const A& x, const std::vector<Extents>& starts, const std::vector<Extents>& limits,
            const Extents& stride = {}, const CallOptions& call = Where::here()) {
  return slices<Deduced, NoContract, First, D...>(x, starts, limits, stride, call);
}

/// These overloads take everything at run time; without a sharding the result is sharded as x is.
inline DynamicTensor slice(const DynamicTensor& x, const Extents& start, const Extents& limit,
                           const Extents& stride = {}, const CallOptions& call = Where::here()) {
  return detail::run_dynamic("slice", call, ops::Slice{{{Slice{start, limit, stride}}}},
                             {&x.core()});
}
inline std::vector<DynamicTensor> slices(const DynamicTensor& x, const std::vector<Extents>& starts,
                                         const std::vector<Extents>& limits,
                                         const Extents& stride = {},
                                         const CallOptions& call = Where::here()) {
  std::vector<DynamicTensor> results;
  for (TensorCore& core : detail::slices(x.core(), starts.size(), limits.size(), call.out_or(x),
                                         call.fresh_sharded_site("slices"), [&](std::size_t k) {
                                           return Slice{starts[k], limits[k], stride};
                                         }))
    results.emplace_back(std::move(core));
  return results;
}

}  // namespace tessera
