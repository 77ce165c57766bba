// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whole tensors on the host of one process: distributed from there, or collected there.
///
///     auto x = from_root<Tensor<data, model>>(mesh, {1000, 600}, 0, values);   // values on process 0
///     HostTensor<float> all = to_root(x);                                      // all on process 0
///     to_root_into(std::span<float>(memory), x);        // all there, in memory of the application
///
/// Laws: to_root(from_root(v)) == v on the root, for every spec; from_root ignores the values of
/// other processes; to_root sends no element twice.
#include <span>
#include <utility>

#include <tessera/comm/complaint.hpp>
#include <tessera/io/detail/memory_bound.hpp>
#include <tessera/op/to_host.hpp>

namespace tessera {
namespace detail {

inline TensorCore from_root(const std::shared_ptr<MeshCore>& mesh, const TensorDesc& desc, int root,
                            const void* values, Index count, CallSite site) {
  TensorCore::check_desc(*mesh, desc, site.where);
  const bool misfit = mesh->process() == root && !mesh->dry() && count != volume(desc.extents);
  fail_together<ShapeError>(
      *mesh,
      misfit ? std::string(site.label) + ": a tensor of " + to_string(desc.extents) + " has " +
                   std::to_string(volume(desc.extents)) + " elements and the root gives " +
                   std::to_string(count) + "; give all elements on the root, row-major"
             : std::string(),
      site.where);
  const TensorDesc given{desc.type, desc.extents, Sharding::replicated(desc.rank())};
  const TensorCore operand = TensorCore::born(
      {mesh, given,
       std::make_shared<Storage>(
           mesh, mesh->process() == root ? const_cast<void*>(values) : nullptr, nullptr)});
  const ops::FromMemory operation{ops::Memory::on_root(root, mesh->shape().processes()),
                                  desc.sharding};
  return run({operation, {&operand}, site});
}

/// Writes all of x to `values` on the root; there it has volume(x.extents()) elements.
inline void to_root(const TensorCore& x, int root, void* values, CallSite site) {
  const ops::ToMemory operation{ops::Memory::on_root(root, x.mesh()->shape().processes())};
  const TensorCore host{x.mesh(), x.desc(), std::make_shared<Storage>(x.mesh(), values, nullptr)};
  run({operation, {&x}, site, {.into = &host}});
  host.storage()->use().wait();  // the application reads it
}

template <Element T> HostTensor<T> to_root(const TensorCore& x, int root, CallSite site) {
  HostTensor<T> host{x.extents(), {}};
  if (x.mesh()->process() == root && !x.dry())
    host.values.resize(static_cast<std::size_t>(volume(x.extents())));
  to_root(x, root, host.values.data(), site);
  return host;
}
/// Writes to memory of `count` elements, which only the root's need be.
inline void to_root_into(void* values, Index count, const TensorCore& x, int root, CallSite site) {
  MeshCore& mesh = mesh_of(x, site);
  const bool misfit = mesh.process() == root && !mesh.dry() && count != volume(x.extents());
  fail_together<ShapeError>(
      mesh,
      misfit ? std::string(site.label) + ": a tensor of " + to_string(x.extents()) + " has " +
                   std::to_string(volume(x.extents())) + " elements and the root's memory " +
                   std::to_string(count) + "; give memory of exactly the tensor's elements"
             : std::string(),
      site.where);
  to_root(x, root, values, site);
}
}  // namespace detail

/// Returns a tensor from all its elements, row-major, which process `root` has on its host;
/// `values` of other processes is ignored, and no process holds more than its block, besides
/// staging of at most 64 MiB on the root (plan/move/relocation.hpp). Communication: one exchange,
/// or a broadcast where every process needs all, from the root. Collective over the mesh. Throws
/// ShapeError on every process when the root gives another number of elements; UsageError when
/// there is no process `root`. On a dry mesh no values are needed. It needs no contract, and keeps
/// the one it is given: from_root<Tensor, Only<exchanges<data>>>(...).
template <TypedTensor Tensor, class Bound = NoContract>
Tensor from_root(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents,
                 int root, std::span<const typename Tensor::value_type> values,
                 Where where = Where::here()) {
  static_assert(detail::demand_made<Tensor>());
  return Tensor(detail::from_root(
      mesh.core(),
      {dtype_of<typename Tensor::value_type>, extents, detail::made_sharding<Tensor>()}, root,
      values.data(), static_cast<Index>(values.size()),
      {"from_root", where, detail::free_bound<detail::Into<Tensor>, Bound>()}));
}
template <Element T>
DynamicTensor from_root(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                        int root, std::span<const T> values,
                        const CallOptions& call = Where::here()) {
  detail::use_element<T>();
  return DynamicTensor(detail::from_root(mesh.core(), {dtype_of<T>, extents, sharding}, root,
                                         values.data(), static_cast<Index>(values.size()),
                                         call.free_site("from_root")));
}
/// These overloads make a tensor of bool from bytes, as in a HostTensor: any byte but 0 is true.
template <TypedTensor Tensor, class Bound = NoContract>
  requires std::is_same_v<typename Tensor::value_type, bool> Tensor
  from_root(const ProcessMesh<typename Tensor::mesh_type>& mesh, const Extents& extents, int root,
            std::span<const std::uint8_t> bytes, Where where = Where::here()) {
    const detail::Truths truths(bytes);
    return from_root<Tensor, Bound>(mesh, extents, root, truths.span(), where);
  }
template <std::same_as<bool> T>
DynamicTensor from_root(const DynamicMesh& mesh, const Extents& extents, const Sharding& sharding,
                        int root, std::span<const std::uint8_t> bytes,
                        const CallOptions& call = Where::here()) {
  const detail::Truths truths(bytes);
  return from_root<bool>(mesh, extents, sharding, root, truths.span(), call);
}

/// Returns the whole tensor on process `root`, and no values elsewhere. Communication: each element
/// once, to the root; unfinished values are combined first. Collective over the mesh. Throws
/// UsageError when there is no process `root`. On a dry mesh there are no values anywhere. It needs
/// no contract, and keeps `Bound`.
template <class Bound = NoContract, TypedTensor A>
HostTensor<typename A::value_type> to_root(const A& x, int root = 0, Where where = Where::here()) {
  return detail::to_root<typename A::value_type>(
      x.core(), root, {"to_root", where, detail::free_bound<detail::OutOf<A>, Bound>()});
}
template <Element T>
HostTensor<T> to_root(const DynamicTensor& x, int root = 0,
                      const CallOptions& call = Where::here()) {
  const detail::CallSite site = call.free_fresh_site("to_root");
  detail::require_type<T>(x, site);
  return detail::to_root<T>(x.core(), root, site);
}

/// Writes the whole tensor, row-major, to `values` on process `root`; `values` of other processes
/// is ignored. Communication, collective over: as to_root. Throws ShapeError on every process when
/// the root's memory has another number of elements.
template <class Bound = NoContract, TypedTensor A>
void to_root_into(std::span<typename A::value_type> values, const A& x, int root = 0,
                  Where where = Where::here()) {
  detail::to_root_into(values.data(), static_cast<Index>(values.size()), x.core(), root,
                       {"to_root_into", where, detail::free_bound<detail::OutOf<A>, Bound>()});
}
template <Element T>
void to_root_into(std::span<T> values, const DynamicTensor& x, int root = 0,
                  const CallOptions& call = Where::here()) {
  const detail::CallSite site = call.free_fresh_site("to_root_into");
  detail::require_type<T>(x, site);
  detail::to_root_into(values.data(), static_cast<Index>(values.size()), x.core(), root, site);
}

}  // namespace tessera
