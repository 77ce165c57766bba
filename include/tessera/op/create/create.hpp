// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Making tensors: every process fills its own block, so nothing is communicated, and every mesh
/// makes the same tensor. tensor/adopt.hpp makes them of memory that is there.
///
///     auto x = zeros<Tensor<data, _, model>>(mesh, 8, 512, 5120);
///     auto w = random_normal<Tensor<data, model>>(mesh, {5120, 20480}, 7, 0.0, 0.02);
///     auto i = from_function<Ints<data>>(mesh, {100}, Ramp{});   // Ramp{}(const GlobalIndex&)
///
/// Laws: to_host(from_function<T>(mesh, e, f))[i] == f(i) on every mesh.
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/kernel/fill.hpp>
#include <tessera/kernel/random.hpp>
#include <tessera/op/call/scalar.hpp>
#include <tessera/plan/move/layout.hpp>
#include <tessera/plan/op/elements/create.hpp>
#include <tessera/run/copy_between.hpp>
#include <tessera/run/request.hpp>
#include <tessera/tensor/host_copy.hpp>
#include <tessera/tensor/process_mesh.hpp>
#include <tessera/tensor/sharded_tensor.hpp>

namespace tessera {
namespace detail {

/// Makes a tensor whose blocks `kernel` writes; nobody does where it makes none.
inline TensorCore create(const std::shared_ptr<MeshCore>& mesh, const TensorDesc& desc,
                         const MapKernel& kernel, CallSite site) {
  TensorCore::check_desc(*mesh, desc, site.where);
  return run({ops::Create{desc}, {}, site, {.kernel = kernel, .mesh = &mesh}});
}

/// The kernels that write a block: every element `value`; element i f(i); and the block's elements
/// of a whole tensor on the host, row-major. `value`, f and the tensor live as long.
template <class T> struct FillRunner {
  static void make(const void* value, const Box& block, const Extents&, void* out) {
    fill(static_cast<T*>(out), block.size(), *static_cast<const T*>(value));
  }
  static MapKernel kernel(const T& value) {
    return {
        .context = &value, .keep = &keep_function<T>, .make = &make, .numbers = numbers_of<T>()};
  }
};
template <class T, class F> struct IndexFunctionRunner {
  static void make(const void* f, const Box& block, const Extents& whole, void* out) {
    if (block.empty()) return;
    Extents offset;
    for (const Interval& side : block.side) offset.push_back(side.lo);
    fill_index(*static_cast<const F*>(f), static_cast<T*>(out), block.extents(), offset, whole);
  }
  static MapKernel kernel(const F& f) {
    return {.context = &f, .keep = &keep_function<F>, .make = &make, .numbers = numbers_of<F>()};
  }
};
struct HostElements {
  DType type;
  const void* values;

  static void make(const void* elements, const Box& block, const Extents& extents, void* out) {
    const auto& from = *static_cast<const HostElements*>(elements);
    const StridedCopy part =
        copy_between(box_at(block, tessera::whole(extents)), box_at(block, block));
    if (!block.empty())
      copy_between(from.type, {const_cast<void*>(from.values), true}, {out, false}, &part, 1);
  }
  MapKernel kernel() const { return {.context = this, .make = &make}; }
};
inline void require_all_elements(const Extents& extents, std::size_t given, Where where) {
  if (static_cast<Index>(given) != volume(extents))
    throw ShapeError("from_host: a tensor of " + to_string(extents) + " has " +
                         std::to_string(volume(extents)) + " elements and " +
                         std::to_string(given) +
                         " are given; give all elements of the whole tensor, row-major",
                     where);
}

template <class Tensor>
Tensor create(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
              const MapKernel& kernel, CallSite site) {
  static_assert(demand_made<Tensor>());
  if constexpr (Tensor::open) require_chosen(*mesh.core(), site);
  return Tensor(create(mesh.core(),
                       {dtype_of<typename Tensor::value_type>, extents,
                        whole_where_open(TensorFacts<Tensor>::sharding())},
                       kernel, site));
}
/// An element's index along one dimension.
template <class T> struct IndexAlong {
  int dim;
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    if constexpr (ComplexElement<T>)
      return T(static_cast<typename T::value_type>(i[dim]));
    else
      return static_cast<T>(i[dim]);
  }
};
template <class T> void require_indices(const Extents& extents, int dim, Where where) {
  if (dim < 0 || dim >= extents.size())
    throw ShapeError("iota: dimension " + std::to_string(dim) + " of a tensor of " +
                         std::to_string(extents.size()) +
                         " dimensions; dimensions count from 0; name one of them",
                     where);
  if constexpr (IntegerElement<T>)
    if (const Index last = extents[dim] - 1; volume(extents) > 0 && !holds<T>(last))
      throw_no_element(last, dtype_of<T>, {"iota", where});
}
/// Requires that integers lie between the bounds of a uniform distribution, and that their type
/// holds them.
template <class T> void require_bounds(double lo, double hi, CallSite site) {
  if constexpr (IntegerElement<T>) {
    const bool held = std::ceil(lo) >= static_cast<double>(std::numeric_limits<T>::lowest()) &&
                      std::floor(hi) < beyond<T>;
    if (!held || std::ceil(lo) > std::floor(hi))
      throw UsageError(std::string(site.label) + ": there is no distribution of " +
                           std::string(name_of(dtype_of<T>)) + " from " + std::to_string(lo) +
                           " to " + std::to_string(hi) +
                           "; nothing is converted in silence; give bounds that the type holds, "
                           "the lower one first",
                       site.where);
  }
}
template <class Tensor>
Tensor filled(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
              const typename Tensor::value_type& value, CallSite site) {
  return create<Tensor>(mesh, extents, FillRunner<typename Tensor::value_type>::kernel(value),
                        site);
}
template <class Tensor, class F>
Tensor create_from(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
                   const F& f, CallSite site) {
  using T = typename Tensor::value_type;
  return create<Tensor>(mesh, extents, IndexFunctionRunner<T, F>::kernel(f), site);
}
template <class... N> Extents to_extents(N... n) { return Extents{static_cast<Index>(n)...}; }
}  // namespace detail

/// Returns a tensor of the given extents with every element `value`, of zeros 0. Communication:
/// none. Throws UsageError when the number is no element of the type.
template <TypedTensor Tensor>
Tensor full(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
            detail::GivenElement<typename Tensor::value_type> value, Where where = Where::here()) {
  const detail::CallSite site{"full", where};
  return detail::filled<Tensor>(mesh, extents, value.at(site), site);
}
template <TypedTensor Tensor>
Tensor zeros(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
             Where where = Where::here()) {
  return detail::filled<Tensor>(mesh, extents, typename Tensor::value_type{}, {"zeros", where});
}
template <TypedTensor Tensor, std::convertible_to<Index>... N>
Tensor zeros(const ProcessMesh<typename Tensor::mesh_type>& mesh, N... n) {
  static_assert(sizeof...(N) == Tensor::rank,
                "[tessera] zeros is given another number of extents than its tensor has "
                "dimensions; give one for each dimension of the tensor's spec");
  return zeros<Tensor>(mesh, detail::to_extents(n...), Where{});
}

/// Returns a tensor of the given extents with every element 1. Communication: none. Throws nothing
/// of its own.
template <TypedTensor Tensor>
Tensor ones(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
            Where where = Where::here()) {
  return detail::filled<Tensor>(mesh, extents, typename Tensor::value_type(1), {"ones", where});
}
template <TypedTensor Tensor, std::convertible_to<Index>... N>
Tensor ones(const ProcessMesh<typename Tensor::mesh_type>& mesh, N... n) {
  static_assert(sizeof...(N) == Tensor::rank,
                "[tessera] ones is given another number of extents than its tensor has dimensions; "
                "give one for each dimension of the tensor's spec");
  return ones<Tensor>(mesh, detail::to_extents(n...), Where{});
}
/// Returns a tensor whose elements are unspecified: for a caller that writes them all.
/// Communication: none. Throws nothing of its own.
template <TypedTensor Tensor>
Tensor empty(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
             Where where = Where::here()) {
  return detail::create<Tensor>(mesh, extents, {}, {"empty", where});
}
template <TypedTensor Tensor, std::convertible_to<Index>... N>
Tensor empty(const ProcessMesh<typename Tensor::mesh_type>& mesh, N... n) {
  static_assert(sizeof...(N) == Tensor::rank,
                "[tessera] empty is given another number of extents than its tensor has "
                "dimensions; give one for each dimension of the tensor's spec");
  return empty<Tensor>(mesh, detail::to_extents(n...), Where{});
}

/// Returns the tensor of extents (n, m, ...) whose element at global index i is f(i); f is
/// const-callable with a GlobalIndex, and runs where kernels run. Communication: none. Collective
/// over the mesh. Throws nothing of its own; f must not throw.
template <TypedTensor Tensor, class F>
Tensor from_function(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
                     const F& f, Where where = Where::here()) {
  return detail::create_from<Tensor>(mesh, extents, f, {"from_function", where});
}

/// Returns the tensor whose elements are their own indices along dimension `dim`: 0, 1, 2, ...
/// Communication: none. Throws UsageError when the type of integers does not hold the last of them.
template <TypedTensor Tensor>
Tensor iota(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
            int dim = 0, Where where = Where::here()) {
  static_assert(NumberElement<typename Tensor::value_type>,
                "[tessera] truth values do not count; make indices of int32 or int64");
  detail::require_indices<typename Tensor::value_type>(extents, dim, where);
  return detail::create_from<Tensor>(
      mesh, extents, detail::IndexAlong<typename Tensor::value_type>{dim}, {"iota", where});
}

/// Returns random numbers that depend only on the seed and the global index: uniform in [lo, hi)
/// (integers: [lo, hi]), or normal. Communication: none. Throws UsageError when no integer of the
/// type lies between the bounds, or one that it cannot hold.
template <TypedTensor Tensor>
Tensor random_uniform(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
                      std::uint64_t seed, double lo = 0, double hi = 1,
                      Where where = Where::here()) {
  using T = typename Tensor::value_type;
  const detail::CallSite site{"random_uniform", where};
  detail::require_bounds<T>(lo, hi, site);
  return detail::create_from<Tensor>(mesh, extents, detail::Uniform<T>{seed, lo, hi}, site);
}
template <TypedTensor Tensor>
Tensor random_normal(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
                     std::uint64_t seed, double mean = 0, double deviation = 1,
                     Where where = Where::here()) {
  static_assert(NumberElement<typename Tensor::value_type>,
                "[tessera] truth values have no normal distribution; use random_uniform");
  return detail::create_from<Tensor>(
      mesh, extents, detail::Normal<typename Tensor::value_type>{seed, mean, deviation},
      {"random_normal", where});
}

/// Returns a tensor from all its elements, row-major, which every process has on its host; each
/// keeps its block. Communication: none. Throws ShapeError when the data has another size than the
/// extents.
template <TypedTensor Tensor>
Tensor from_host(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
                 std::span<const typename Tensor::value_type> values, Where where = Where::here()) {
  detail::require_all_elements(extents, values.size(), where);
  const detail::HostElements elements{dtype_of<typename Tensor::value_type>, values.data()};
  return detail::create<Tensor>(mesh, extents, elements.kernel(), {"from_host", where});
}

/// This overload makes a tensor of bool from bytes, as in a HostTensor: any byte but 0 is true.
template <TypedTensor Tensor>
  requires std::is_same_v<typename Tensor::value_type, bool> Tensor
  from_host(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
            std::span<const std::uint8_t> bytes, Where where = Where::here()) {
    const detail::Truths truths(bytes);
    return from_host<Tensor>(mesh, extents, truths.span(), where);
  }

}  // namespace tessera
