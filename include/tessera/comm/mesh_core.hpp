// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A mesh at run time: processes arranged in a grid, with everything that they need to work
/// together: groups, arena, ledger, checks. It knows axes by number; the rooms above have typed
/// meshes and tensors.
///
///     auto mesh = make_mesh_core(env.world(), MeshShape{2, 4}, {"data", "model"});
///     mesh->collective(call, send, receive, "einsum", Where::here());
///
/// Laws: each call is in the ledger once; a mesh that failed refuses every further use; closing is
/// local and waits for nobody.
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <Kokkos_Core.hpp>

#include <tessera/base/compiled.hpp>
#include <tessera/base/error.hpp>
#include <tessera/comm/arena.hpp>
#include <tessera/comm/detail/agreement.hpp>
#include <tessera/comm/detail/attachments.hpp>
#include <tessera/comm/detail/closing.hpp>
#include <tessera/comm/detail/heavy_check.hpp>
#include <tessera/comm/detail/making.hpp>
#include <tessera/comm/detail/mesh_groups.hpp>
#include <tessera/comm/detail/mesh_history.hpp>
#include <tessera/comm/detail/mix.hpp>
#include <tessera/comm/device_memory.hpp>
#include <tessera/comm/ledger.hpp>
#include <tessera/comm/mesh_agreement.hpp>
#include <tessera/comm/transport.hpp>
#include <tessera/kernel/tool_region.hpp>

namespace tessera {

/// Made by make_mesh_core. Used by one thread: the process's own.
class MeshCore : public detail::MeshAgreement {
 public:
  MeshCore(std::shared_ptr<Transport> transport, MeshShape shape, const AxisNames& names,
           const MeshOptions& options, Where where);
  MeshCore(const MeshCore&) = delete;
  MeshCore& operator=(const MeshCore&) = delete;
  ~MeshCore() { close(); }

  detail::Arena& arena() { return *arena_; }
  Ledger& ledger() { return ledger_; }
  const Ledger& ledger() const { return ledger_; }
  /// Returns the mesh's own duplicate of the transport it was made from. Throws UsageError after
  /// close().
  Transport& transport() {
    require_usable({});
    return *transport_;
  }

  /// Returns this process's group over some axes, or over one of them in part, made at the first
  /// request. Collective over: its members, at the first request.
  detail::Group& group(const AxisGroup& axes, Where where = {}) {
    return *entry(axes, where).group;
  }

  /// Makes one call of the operator `label`, and records it. `send` and `receive` hold elements of
  /// call.type. Communication: the call. Collective over: the group. Throws CommunicationError, and
  /// MismatchError on loopback and at level heavy; either poisons the mesh.
  void collective(const Call& call, const void* send, void* receive, std::string_view label,
                  Where where);

  /// Starts the same call, and returns an object to wait for it, or nullptr when it is done
  /// already.
  std::unique_ptr<detail::PendingCall> start(const Call& call, const void* send, void* receive,
                                             std::string_view label, Where where);
  /// Waits for a call that start() returned. Throws CommunicationError.
  void finish(detail::PendingCall& pending, const Call& call, std::string_view label, Where where);

  /// Returns an object that makes the same call repeatedly between the same buffers; the call must
  /// live as long. Collective over: the group, when it is its first call.
  std::unique_ptr<detail::RepeatedCall> repeated(const Call& call, const void* send, void* receive,
                                                 Where where) {
    return group(call.group, where).repeated(call, send, receive);
  }
  /// Starts such a call; finish() waits for it.
  void start(detail::RepeatedCall& repeated, const Call& call, std::string_view label, Where where);
  /// Returns `block` for the members of a group to read where it lies, or nullptr on all members
  /// (comm/shared/block.hpp). Communication: small, in no ledger. Collective over: the group.
  std::unique_ptr<detail::SharedBlock> share(const AxisGroup& axes, const void* block, Index bytes,
                                             Where where);
  /// Begins a call as a turn of a shared block, for which `packed` holds the packed elements;
  /// finish() ends it: it calls read() once everything needed may be read.
  void start(detail::SharedBlock& block, const void* packed, Index bytes, const Call& call,
             std::string_view label, Where where);
  template <class Read>
  void finish(detail::SharedBlock& block, const Call& call, std::string_view label, Where where,
              const Read& read) {
    const detail::Publish publish =
        in_call(label, where, name_of(call.kind), entry(call.group, where).over);
    guarded(label, where, [&] {
      block.wait_offered(call.receive);
      read();
      block.finish_reading();
    });
  }
  /// Returns when the others have read what `call` sends in a turn.
  void wait_read(detail::SharedBlock& block, const Call& call, std::uint64_t turn,
                 std::string_view label, Where where) {
    guarded(label, where, [&] { block.wait_read(call.send, turn); });
  }

  /// Returns the one T attached to this mesh, made (by its default constructor) at the first
  /// request. It ends with the mesh.
  template <class T> T& attachment() { return attachments_.template get<T>(); }
  /// Returns it if it has been made, else null.
  template <class T> const T* attached() const { return attachments_.template find<T>(); }

  /// Keeps `owner` alive until let_go() of the returned number, or the end of the mesh: adopted
  /// memory belongs to a View, which must not outlive Kokkos.
  std::uint64_t keep(std::shared_ptr<const void> owner) {
    kept_.emplace(++last_kept_, std::move(owner));
    return last_kept_;
  }
  void let_go(std::uint64_t number) { kept_.erase(number); }

  /// Releases attachments, memory and groups; blocks still given out become invalid. Further use
  /// throws UsageError. Communication: none.
  void close() noexcept;

 private:
  /// The common part of all calls; `make(group)` runs or starts the call.
  template <class Make>
  void make_call(const Call& call, std::string_view label, Where where, const Make& make);
  detail::GroupEntry& entry(AxisGroup axes, Where where);

  detail::MeshGroups groups_;
  std::unique_ptr<detail::Arena> arena_;
  Ledger ledger_;
  detail::Attachments attachments_;
  std::uint64_t closing_ = 0;
  std::map<std::uint64_t, std::shared_ptr<const void>> kept_;
  std::uint64_t last_kept_ = 0;
};

/// Returns a mesh of `shape` over all processes of `transport`, with everything of its own: no
/// other mesh's calls meet its calls. Communication: small all-reduces. Collective over: all
/// processes of the transport. Throws MismatchError when processes ask for different meshes,
/// MeshError (on all) when the sizes do not fit the processes, UsageError where Kokkos does not run
/// (but on a dry transport).
TESSERA_FUNCTION std::shared_ptr<MeshCore> make_mesh_core(std::shared_ptr<Transport> transport,
                                                          const MeshShape& shape,
                                                          const AxisNames& names,
                                                          const MeshOptions& options = {},
                                                          Where where = Where::here());

#if TESSERA_BODIES

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
    process_ = transport_->rank();
    control_ = transport_->group(detail::all_members(transport_->size()), detail::control_purpose);
  }
  if (options_.find_nodes && options_.machine.processes_per_node == 0)
    options_.machine.processes_per_node =
        detail::found_node_size(*transport, *transport_, shape_, options_);
  coordinates_ = shape_.coordinates(process_);
  processes_ = transport_->processes();
  if (!dry_ && transport_->size() > 1 && options_.check >= Check::normal)
    history_.open(*transport_, *control_);
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
  detail::GroupEntry& over = entry(call.group, where);
  detail::Group& members = *over.group;
  if (options_.check >= Check::light &&
      (call.own != members.rank() || call.members != members.size()))
    throw UsageError("the plan of " + std::string(label) + " is process " +
                         std::to_string(call.own) + "'s of " + std::to_string(call.members) +
                         " over " + over.over + ", but this is process " +
                         std::to_string(members.rank()) + " of " + std::to_string(members.size()) +
                         "; run the plan of this mesh and process",
                     where);
  ledger_.add(call);
  if (dry_) return;
  const detail::Publish publish = in_call(label, where, name_of(call.kind), over.over);
  const detail::ToolRegion region(
      [&] { return "tessera::" + std::string(name_of(call.kind)) + " over " + over.over; });
  guarded(label, where, [&] {
    if (options_.check >= Check::heavy) {
      if (over.control == nullptr)
        over.control = detail::make_group(*transport_, shape_, coordinates_, over.axes,
                                          detail::control_purpose);
      detail::check_together(*over.control, call, label, where);
    }
    const Index before = members.window_bytes();
    make(members);
    ledger_.add_window_bytes(members.window_bytes() - before);
  });
}

TESSERA_FUNCTION void MeshCore::collective(const Call& call, const void* send, void* receive,
                                           std::string_view label, Where where) {
  make_call(call, label, where, [&](detail::Group& members) { members.run(call, send, receive); });
}

TESSERA_FUNCTION void MeshCore::start(detail::RepeatedCall& repeated, const Call& call,
                                      std::string_view label, Where where) {
  make_call(call, label, where, [&](detail::Group&) { repeated.start(); });
}

TESSERA_FUNCTION void MeshCore::start(detail::SharedBlock& block, const void* packed, Index bytes,
                                      const Call& call, std::string_view label, Where where) {
  make_call(call, label, where, [&](detail::Group&) { block.offer(packed, bytes); });
  ledger_.add_window_bytes(detail::payload_bytes(call));
}

TESSERA_FUNCTION std::unique_ptr<detail::PendingCall> MeshCore::start(
    const Call& call, const void* send, void* receive, std::string_view label, Where where) {
  std::unique_ptr<detail::PendingCall> pending;
  make_call(call, label, where,
            [&](detail::Group& members) { pending = members.start(call, send, receive); });
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

#endif

}  // namespace tessera
