// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The making, the calls and the end of a mesh.
///
///     mesh->collective(call, send, receive, "einsum", Where::here());
///
/// Laws: those of comm/mesh_core.hpp.
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <tessera/base/compiled.hpp>
#include <tessera/base/error.hpp>
#include <tessera/comm/detail/agreement.hpp>
#include <tessera/comm/detail/closing.hpp>
#include <tessera/comm/detail/heavy_check.hpp>
#include <tessera/comm/detail/making.hpp>
#include <tessera/comm/detail/mesh_groups.hpp>
#include <tessera/comm/detail/mesh_history.hpp>
#include <tessera/comm/detail/product_cache.hpp>
#include <tessera/comm/device_memory.hpp>
#include <tessera/comm/mesh_core.hpp>
#include <tessera/kernel/tool_region.hpp>

namespace tessera {

TESSERA_FUNCTION MeshCore::MeshCore(std::shared_ptr<Transport> transport, MeshShape shape,
                                    const AxisNames& names, const MeshOptions& options, Where where)
    : detail::MeshAgreement(transport->duplicate(detail::mesh_settings(*transport, options)), shape,
                            names, options) {
  detail::agree_on_mesh(*transport_, *control_, shape_, names_, options_, where);
  if (const DeviceAssignment assignment = detail::assignment_of(shape_, options_);
      !assignment.natural()) {
    if (const std::string fault = assignment.fault(transport_->size()); !fault.empty())
      throw MeshError(fault, where);
    transport_ = transport_->among(assignment.processes(), where)->duplicate();
    process_ = transport_->process();
    control_ = transport_->group(detail::all_members(transport_->size()), detail::control_purpose);
  }
  if (options_.find_nodes && options_.machine.processes_per_node == 0)
    options_.machine.processes_per_node =
        detail::found_node_size(*transport, *transport_, shape_, options_);
  coordinates_ = shape_.coordinates(process_);
  processes_ = transport_->processes();
  if (!dry_ && transport_->size() > 1 && options_.check >= Check::normal)
    history_.open(*transport_, *control_);
  if (!dry_)
    products_ = transport_->alone() ? detail::own_products(options_.products)
                                    : detail::agree_on_products(*control_, options_.products);
  arena_ = detail::open_arena(*transport_, options_);
  if (!dry_) detail::close_meshes_with_kokkos();
  closing_ = detail::Closing::all().enter([this] { close(); });
}

TESSERA_FUNCTION detail::GroupEntry& MeshCore::entry(AxisGroup axes, Where where) {
  require_usable(where);
  axes.axes = axes.axes & shape_.axes();
  std::unique_ptr<detail::GroupEntry>& found = groups_.find(axes);
  if (found == nullptr) {
    auto made = std::make_unique<detail::GroupEntry>(
        detail::GroupEntry{axes, nullptr, nullptr, group_text(axes)});
    const detail::Publish publish = in_call("", where, "the making of a group", made->over);
    made->group = detail::make_group(*transport_, shape_, coordinates_, axes, detail::data_purpose);
    found = std::move(made);
  }
  return *found;
}

template <class Make>
void MeshCore::make_call(const Call& call, std::string_view label, Where where, const Make& make) {
  // A call that a process makes by itself cannot wait for a group to be made.
  const bool one_sided = call.channel > 0;
  detail::GroupEntry own;
  if (one_sided) own = {call.group, control_, nullptr, group_text(call.group)};
  detail::GroupEntry& over = one_sided ? own : entry(call.group, where);
  detail::Group& members = *over.group;
  if (options_.check >= Check::light &&
      (call.own != members.own() || call.members != members.size()))
    throw UsageError("the plan of " + std::string(label) + " is process " +
                         std::to_string(call.own) + "'s of " + std::to_string(call.members) +
                         " over " + over.over + ", but this is process " +
                         std::to_string(members.own()) + " of " + std::to_string(members.size()) +
                         "; run the plan of this mesh and process",
                     where);
  if (!absent()) ledger_.add(call);
  if (dry_) return;
  const detail::Publish publish = in_call(label, where, name_of(call.kind), over.over);
  const detail::ToolRegion region(
      [&] { return "tessera::" + std::string(name_of(call.kind)) + " over " + over.over; });
  guarded(label, where, [&] {
    if (options_.check >= Check::heavy && !one_sided && !alone()) {
      if (over.control == nullptr)
        over.control = detail::make_group(*transport_, shape_, coordinates_, over.axes,
                                          detail::control_purpose);
      detail::check_together(*over.control, call, label, where);
    }
    const Index before = members.shared_bytes();
    make(members);
    ledger_.add_shared_bytes(members.shared_bytes() - before);
  });
}

TESSERA_FUNCTION void MeshCore::collective(const Call& call, const void* send, void* receive,
                                           std::string_view label, Where where,
                                           detail::OnHost host) {
  make_call(call, label, where,
            [&](detail::Group& members) { detail::run_call(members, call, send, receive, host); });
}

TESSERA_FUNCTION void MeshCore::start(detail::RepeatedCall& repeated, const Call& call,
                                      std::string_view label, Where where) {
  make_call(call, label, where, [&](detail::Group&) { repeated.start(); });
}

TESSERA_FUNCTION void MeshCore::start(detail::SharedBlock& block, const void* packed, Index bytes,
                                      const Call& call, std::string_view label, Where where) {
  make_call(call, label, where, [&](detail::Group&) { block.offer(packed, bytes); });
  ledger_.add_shared_bytes(detail::payload_bytes(call));
}

TESSERA_FUNCTION std::unique_ptr<detail::PendingCall> MeshCore::start(
    const Call& call, const void* send, void* receive, std::string_view label, Where where,
    detail::OnHost host) {
  std::unique_ptr<detail::PendingCall> pending;
  make_call(call, label, where, [&](detail::Group& members) {
    pending = detail::start_call(members, call, send, receive, host);
  });
  return pending;
}

TESSERA_FUNCTION std::unique_ptr<detail::SharedBlock> MeshCore::share(const AxisGroup& axes,
                                                                      const void* block,
                                                                      Index bytes, Where where) {
  if (dry_ || !kernels_on_host) return nullptr;
  detail::GroupEntry& over = entry(axes, where);
  const detail::Publish publish = in_call("", where, "the sharing of a block", over.over);
  std::unique_ptr<detail::SharedBlock> shared;
  guarded({}, where, [&] { shared = over.group->share(block, bytes); });
  return shared;
}

TESSERA_FUNCTION void MeshCore::finish(detail::PendingCall& pending, const Call& call,
                                       std::string_view label, Where where) {
  const detail::Publish publish = in_call(label, where, name_of(call.kind), group_text(call.group));
  guarded(label, where, [&] { pending.wait(); });
}

TESSERA_FUNCTION void MeshCore::close() noexcept {
  if (transport_ == nullptr) return;
  poison(detail::Closing::all().reason());
  detail::Closing::all().leave(closing_);
  attachments_.clear();
  watch_ends(false);
  kept_.clear();
  if (arena_ != nullptr) arena_->close();
  groups_.clear();
  control_.reset();
  history_ = {};  // the blackboard may go before this mesh
  transport_.reset();
}

TESSERA_FUNCTION std::shared_ptr<MeshCore> make_mesh_core(std::shared_ptr<Transport> transport,
                                                          const MeshShape& shape,
                                                          const AxisNames& names,
                                                          const MeshOptions& options, Where where) {
  if (transport == nullptr)
    throw MeshError(
        "a mesh is made from no transport; give env.world(), or one among the processes "
        "that are to be in the mesh, on those processes only",
        where);
  if (!transport->dry()) detail::require_kokkos(where);
  const detail::Publish publish = detail::begin_making(*transport, to_string(shape, names), where);
  return std::make_shared<MeshCore>(std::move(transport), shape, names, options, where);
}

}  // namespace tessera
