// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Making tensors: every process fills its own block, so nothing is communicated, and every mesh
/// makes the same tensor.
///
///     auto x = zeros<Tensor<data, _, model>>(mesh, 8, 512, 5120);
///     auto w = random_normal<Tensor<data, model>>(mesh, {5120, 20480}, 7, 0.0, 0.02);
///     auto i = from_function<Ints<data>>(mesh, {100}, Ramp{});   // Ramp{}(const GlobalIndex&)
///
/// Laws: to_host(from_function<T>(mesh, e, f))[i] == f(i) on every mesh.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include <Kokkos_Core.hpp>

#include <tessera/kernel/copy/copy.hpp>
#include <tessera/kernel/fence.hpp>
#include <tessera/kernel/fill.hpp>
#include <tessera/kernel/random.hpp>
#include <tessera/tensor/process_mesh.hpp>
#include <tessera/tensor/sharded_tensor.hpp>

namespace tessera {

/// The type of an element in a std::vector on the host: the element's own, but for bool a byte of 0
/// or 1, since a std::vector<bool> has no elements in memory.
template <Element T>
using HostElement = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

namespace detail {

/// Reads bytes as bools: any byte but 0 is true.
class Truths {
 public:
  explicit Truths(std::span<const std::uint8_t> bytes)
      : values_(std::make_unique<bool[]>(bytes.size())), size_(bytes.size()) {
    for (std::size_t i = 0; i < size_; ++i) values_[i] = bytes[i] != 0;
  }
  std::span<const bool> span() const { return {values_.get(), size_}; }

 private:
  std::unique_ptr<bool[]> values_;
  std::size_t size_;
};

inline Extents offsets_of(const Box& box) {
  Extents offsets;
  for (int d = 0; d < box.rank(); ++d) offsets.push_back(box[d].lo);
  return offsets;
}

/// Copies between host memory and the memory of the kernels.
inline void copy_to_host(void* host, const void* data, Index bytes) {
  using Host = Kokkos::View<char*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  using Device = Kokkos::View<const char*, KernelMemory, Kokkos::MemoryUnmanaged>;
  const auto n = static_cast<std::size_t>(bytes);
  if (n == 0) return;
  Kokkos::deep_copy(lane().space(), Host(static_cast<char*>(host), n),
                    Device(static_cast<const char*>(data), n));
  fence();  // the host reads it
}
inline void copy_from_host(void* data, const void* host, Index bytes) {
  using Host = Kokkos::View<const char*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  using Device = Kokkos::View<char*, KernelMemory, Kokkos::MemoryUnmanaged>;
  const auto n = static_cast<std::size_t>(bytes);
  if (n == 0) return;
  Kokkos::deep_copy(lane().space(), Device(static_cast<char*>(data), n),
                    Host(static_cast<const char*>(host), n));
  fence();  // the host's memory is the caller's
}

/// Copies this process's box from the whole tensor (row-major, on the host) into its block.
inline void copy_block_in(const TensorCore& t, const void* whole_data) {
  const Box box = t.box();
  const Index unit = static_cast<Index>(size_of(t.type()));
  if (box.empty()) return;
  std::vector<char> packed(static_cast<std::size_t>(box.size() * unit));
  const Extents strides = row_major_strides(t.extents());
  const Extents extents = box.extents();
  const Index row = extents.empty() ? 1 : extents.back();
  Extents at(extents.size(), 0);
  for (Index done = 0; done < box.size(); done += row) {
    Index from = 0;
    for (int d = 0; d < extents.size(); ++d) from += (box[d].lo + at[d]) * strides[d];
    std::copy_n(static_cast<const char*>(whole_data) + from * unit, row * unit,
                packed.data() + done * unit);
    for (int d = extents.size() - 2; d >= 0; --d) {
      if (++at[d] < extents[d]) break;
      at[d] = 0;
    }
  }
  copy_from_host(t.data(), packed.data(), box.size() * unit);
}

template <class Tensor>
Tensor make_tensor(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
                   Where where) {
  static_assert(demand_made<Tensor>());
  return Tensor(TensorCore::make(
      mesh.core(), {dtype_of<typename Tensor::value_type>, extents, Tensor::sharding()}, where));
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
inline void require_dim_of_iota(int dim, int rank, Where where) {
  if (dim < 0 || dim >= rank)
    throw ShapeError("iota: dimension " + std::to_string(dim) + " of a tensor of " +
                         std::to_string(rank) +
                         " dimensions; dimensions count from 0; name one of them",
                     where);
}
template <class... N> Extents to_extents(N... n) { return Extents{static_cast<Index>(n)...}; }
}  // namespace detail

/// Returns a tensor of the given extents with every element `value`. Communication: none.
template <TypedTensor Tensor>
Tensor full(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
            typename Tensor::value_type value, Where where = Where::here()) {
  Tensor t = detail::make_tensor<Tensor>(mesh, extents, where);
  if (!mesh.dry()) detail::fill(t.data(), t.local_size(), value);
  return t;
}
template <TypedTensor Tensor>
Tensor zeros(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
             Where where = Where::here()) {
  return full<Tensor>(mesh, extents, typename Tensor::value_type{}, where);
}
template <TypedTensor Tensor, std::convertible_to<Index>... N>
Tensor zeros(const ProcessMesh<typename Tensor::mesh_type>& mesh, N... n) {
  static_assert(sizeof...(N) == Tensor::rank,
                "[tessera] zeros is given another number of extents than its tensor has "
                "dimensions; give one for each dimension of the tensor's spec");
  return full<Tensor>(mesh, detail::to_extents(n...), typename Tensor::value_type{}, Where{});
}

template <TypedTensor Tensor>
Tensor ones(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
            Where where = Where::here()) {
  return full<Tensor>(mesh, extents, typename Tensor::value_type(1), where);
}
template <TypedTensor Tensor, std::convertible_to<Index>... N>
Tensor ones(const ProcessMesh<typename Tensor::mesh_type>& mesh, N... n) {
  static_assert(sizeof...(N) == Tensor::rank,
                "[tessera] ones is given another number of extents than its tensor has dimensions; "
                "give one for each dimension of the tensor's spec");
  return full<Tensor>(mesh, detail::to_extents(n...), typename Tensor::value_type(1), Where{});
}
/// Returns a tensor whose elements are unspecified: for a caller that writes them all.
/// Communication: none.
template <TypedTensor Tensor>
Tensor empty(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
             Where where = Where::here()) {
  return detail::make_tensor<Tensor>(mesh, extents, where);
}
template <TypedTensor Tensor, std::convertible_to<Index>... N>
Tensor empty(const ProcessMesh<typename Tensor::mesh_type>& mesh, N... n) {
  static_assert(sizeof...(N) == Tensor::rank,
                "[tessera] empty is given another number of extents than its tensor has "
                "dimensions; give one for each dimension of the tensor's spec");
  return detail::make_tensor<Tensor>(mesh, detail::to_extents(n...), Where{});
}

/// Returns the tensor whose element at global index i is f(i); f is const-callable with a
/// GlobalIndex. Communication: none.
template <TypedTensor Tensor, class F>
Tensor from_function(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
                     const F& f, Where where = Where::here()) {
  Tensor t = detail::make_tensor<Tensor>(mesh, extents, where);
  if (!mesh.dry() && t.local_size() > 0)
    detail::fill_index(f, t.data(), t.box().extents(), detail::offsets_of(t.box()), extents);
  return t;
}

/// Returns the tensor whose elements are their own indices along dimension `dim`: 0, 1, 2, ...
/// Communication: none.
template <TypedTensor Tensor>
Tensor iota(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
            int dim = 0, Where where = Where::here()) {
  static_assert(NumberElement<typename Tensor::value_type>,
                "[tessera] truth values do not count; make indices of int32 or int64");
  detail::require_dim_of_iota(dim, Tensor::rank, where);
  return from_function<Tensor>(mesh, extents, detail::IndexAlong<typename Tensor::value_type>{dim},
                               where);
}

/// Returns random numbers that depend only on the seed and the global index: uniform in [lo, hi)
/// (integers: [lo, hi]), or normal. Communication: none.
template <TypedTensor Tensor>
Tensor random_uniform(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
                      std::uint64_t seed, double lo = 0, double hi = 1,
                      Where where = Where::here()) {
  Tensor t = detail::make_tensor<Tensor>(mesh, extents, where);
  if (!mesh.dry() && t.local_size() > 0)
    detail::random_uniform(t.data(), t.box().extents(), detail::offsets_of(t.box()), extents, seed,
                           lo, hi);
  return t;
}
template <TypedTensor Tensor>
Tensor random_normal(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
                     std::uint64_t seed, double mean = 0, double deviation = 1,
                     Where where = Where::here()) {
  static_assert(NumberElement<typename Tensor::value_type>,
                "[tessera] truth values have no normal distribution; use random_uniform");
  Tensor t = detail::make_tensor<Tensor>(mesh, extents, where);
  if (!mesh.dry() && t.local_size() > 0)
    detail::random_normal(t.data(), t.box().extents(), detail::offsets_of(t.box()), extents, seed,
                          mean, deviation);
  return t;
}

/// Returns a tensor from all its elements, row-major, which every process has on its host; each
/// keeps its block. Communication: none. Throws ShapeError when the data has another size than the
/// extents.
template <TypedTensor Tensor>
Tensor from_host(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
                 std::span<const typename Tensor::value_type> values, Where where = Where::here()) {
  if (static_cast<Index>(values.size()) != volume(extents))
    throw ShapeError("from_host: a tensor of " + to_string(extents) + " has " +
                         std::to_string(volume(extents)) + " elements and " +
                         std::to_string(values.size()) +
                         " are given; give all elements of the whole tensor, row-major",
                     where);
  Tensor t = detail::make_tensor<Tensor>(mesh, extents, where);
  if (!mesh.dry()) detail::copy_block_in(t.core(), values.data());
  return t;
}

/// The same for bool from bytes, as in a HostTensor: any byte but 0 is true.
template <TypedTensor Tensor>
  requires std::is_same_v<typename Tensor::value_type, bool> Tensor
  from_host(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
            std::span<const std::uint8_t> bytes, Where where = Where::here()) {
    const detail::Truths truths(bytes);
    return from_host<Tensor>(mesh, extents, truths.span(), where);
  }

/// Returns a tensor whose block on this process is the memory of `view`, not a copy; all processes
/// make the same call. The view is contiguous, LayoutRight, in the memory of the default execution
/// space, and has the block's extents; the tensor keeps it alive. Communication: none. Throws
/// ShapeError when the extents are not those of this process's block.
template <TypedTensor Tensor, class View>
Tensor adopt(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
             const View& view, Where where = Where::here()) {
  static_assert(Kokkos::is_view_v<View>,
                "[tessera] adopt is given something else than a Kokkos::View; give a View of the "
                "process's block");
  static_assert(std::is_same_v<typename View::non_const_value_type, typename Tensor::value_type> &&
                    !std::is_const_v<typename View::value_type>,
                "[tessera] the View holds another element type than the tensor (or const "
                "elements); use a View of the tensor's own type");
  static_assert(
      static_cast<int>(View::rank()) == Tensor::rank,
      "[tessera] the View has another number of dimensions than the tensor; give one of as many");
  static_assert(
      std::is_same_v<typename View::array_layout, Kokkos::LayoutRight> || View::rank() <= 1,
      "[tessera] blocks are LayoutRight; deep_copy the View into one of LayoutRight first");
  static_assert(Kokkos::SpaceAccessibility<KernelSpace, typename View::memory_space>::accessible,
                "[tessera] kernels cannot reach the View's memory; make it in the default "
                "execution space's memory");
  static_assert(!Tensor::unfinished,
                "[tessera] the spec of an adopted tensor is Unreduced; a tensor is adopted "
                "finished; drop Unreduced from its spec");
  const TensorDesc desc{dtype_of<typename Tensor::value_type>, extents, Tensor::sharding()};
  auto owner = std::make_shared<View>(view);
  const TensorCore core = TensorCore::adopt(mesh.core(), desc, owner->data(), owner, where);
  const Extents block = core.box().extents();
  Extents given;
  for (int d = 0; d < Tensor::rank; ++d)
    given.push_back(static_cast<Index>(view.extent(static_cast<std::size_t>(d))));
  if (!(given == block) || !view.span_is_contiguous())
    throw ShapeError("adopt: process " + std::to_string(mesh.process()) + " owns a block of " +
                         to_string(block) + " of the tensor " + to_string(desc.extents) + " " +
                         to_string(desc.sharding, mesh.core()->names()) +
                         " and is given a View of " + to_string(given) +
                         (view.span_is_contiguous() ? "" : ", which is not contiguous") +
                         "; give a contiguous View of exactly the block",
                     where);
  return Tensor(core);
}

/// Returns this process's block as an unmanaged View of the tensor's memory.
template <TypedTensor Tensor> auto block_view(Tensor& t) {
  using T = typename Tensor::value_type;
  return Kokkos::View<T*, Kokkos::LayoutRight, KernelMemory, Kokkos::MemoryUnmanaged>(
      t.data(), static_cast<std::size_t>(t.local_size()));
}

}  // namespace tessera
