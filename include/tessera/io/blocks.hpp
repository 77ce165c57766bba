// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Blocks on the host: each process gives its own block, or takes it. io/irregular.hpp is for data
/// that the application has divided in another way.
///
///     auto x = from_blocks<Tensor<data, model>>(mesh, {1000, 600}, mine);   // mine: this block
///     HostBlock<float> block = to_block(x);        // block.values, of block.box, row-major
///
/// Laws: to_block(from_blocks(v)).values == v; the blocks of all processes make up to_host(x).
#include <span>
#include <vector>

#include <tessera/op/to_host.hpp>

namespace tessera {

/// One process's block in host memory, row-major, and where it lies in the tensor.
template <class T> struct HostBlock {
  Box box;
  std::vector<HostElement<T>> values;
  bool operator==(const HostBlock&) const = default;
};

namespace detail {
template <class T>
TensorCore from_blocks(const std::shared_ptr<MeshCore>& mesh, const TensorDesc& desc,
                       std::span<const T> values, Where where) {
  require_made_finished(*mesh, desc.sharding, "from_blocks: ", where);
  const TensorCore t = TensorCore::make(mesh, desc, where);
  if (mesh->dry()) return t;
  if (static_cast<Index>(values.size()) != t.local_size())
    throw ShapeError("from_blocks: process " + std::to_string(mesh->process()) +
                         " owns a block of " + to_string(t.box().extents()) + ", " +
                         std::to_string(t.local_size()) + " elements, of the tensor " +
                         to_string(desc, mesh->names()) + " and is given " +
                         std::to_string(values.size()) + "; give exactly the block, row-major",
                     where);
  copy_from_host(t.data(), values.data(), static_cast<Index>(values.size_bytes()));
  return t;
}
template <class T> HostBlock<T> to_block(const TensorCore& x, CallSite site) {
  require_data(x, site);
  HostBlock<T> host{x.box(), {}};
  host.values.resize(static_cast<std::size_t>(x.local_size()));
  copy_to_host(host.values.data(), x.read(), static_cast<Index>(host.values.size() * sizeof(T)));
  return host;
}
}  // namespace detail

/// Returns a tensor from its blocks: each process gives its own block, row-major; processes whose
/// blocks are equal give equal values. Communication: none. Throws ShapeError when the data has
/// another size than the block that this process owns.
template <TypedTensor Tensor>
Tensor from_blocks(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
                   std::span<const typename Tensor::value_type> values,
                   Where where = Where::here()) {
  using T = typename Tensor::value_type;
  static_assert(detail::demand_made<Tensor>());
  return Tensor(detail::from_blocks<T>(
      mesh.core(), {dtype_of<T>, extents, detail::made_sharding<Tensor>()}, values, where));
}
template <Element T>
DynamicTensor from_blocks(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                          std::span<const T> values, Where where = Where::here()) {
  detail::use_element<T>();
  return DynamicTensor(
      detail::from_blocks<T>(mesh.core(), {dtype_of<T>, extents, sharding}, values, where));
}
/// These overloads make a tensor of bool from bytes, as in a HostBlock: any byte but 0 is true.
template <TypedTensor Tensor>
  requires std::is_same_v<typename Tensor::value_type, bool> Tensor
  from_blocks(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
              std::span<const std::uint8_t> bytes, Where where = Where::here()) {
    const detail::Truths truths(bytes);
    return from_blocks<Tensor>(mesh, extents, truths.span(), where);
  }
template <std::same_as<bool> T>
DynamicTensor from_blocks(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                          std::span<const std::uint8_t> bytes, Where where = Where::here()) {
  const detail::Truths truths(bytes);
  return from_blocks<bool>(mesh, extents, sharding, truths.span(), where);
}

/// Returns this process's block; for an unfinished tensor, its part of the values. Communication:
/// none. Throws UsageError for a dry tensor.
template <TypedTensor A>
HostBlock<typename A::value_type> to_block(const A& x, Where where = Where::here()) {
  return detail::to_block<typename A::value_type>(x.core(), {"to_block", where});
}
template <Element T> HostBlock<T> to_block(const DynamicTensor& x, Where where = Where::here()) {
  detail::require_type<T>(x, {"to_block", where});
  return detail::to_block<T>(x.core(), {"to_block", where});
}

}  // namespace tessera
