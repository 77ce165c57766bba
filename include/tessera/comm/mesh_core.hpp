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
#include <vector>

#include <Kokkos_Core.hpp>

#include <tessera/base/compiled.hpp>
#include <tessera/base/error.hpp>
#include <tessera/comm/arena.hpp>
#include <tessera/comm/detail/attachments.hpp>
#include <tessera/comm/detail/mesh_groups.hpp>
#include <tessera/comm/detail/mesh_history.hpp>
#include <tessera/comm/device_memory.hpp>
#include <tessera/comm/ledger.hpp>
#include <tessera/comm/mesh_agreement.hpp>
#include <tessera/comm/staged_call.hpp>
#include <tessera/comm/transport.hpp>
#include <tessera/kernel/product/product_table.hpp>
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
  /// Which library makes which products: the same on all processes.
  const detail::ProductTable& products() const { return products_; }
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
  /// call.type, in the kernels' memory but for those that `host` names. Communication: the call.
  /// Collective over: the group. Throws CommunicationError, and MismatchError on loopback and at
  /// level heavy; either poisons the mesh.
  void collective(const Call& call, const void* send, void* receive, std::string_view label,
                  Where where, detail::OnHost host = {});

  /// Starts the same call, and returns an object to wait for it, or nullptr when it is done
  /// already.
  std::unique_ptr<detail::PendingCall> start(const Call& call, const void* send, void* receive,
                                             std::string_view label, Where where,
                                             detail::OnHost host = {});
  /// Waits for a call that start() returned. Throws CommunicationError.
  void finish(detail::PendingCall& pending, const Call& call, std::string_view label, Where where);

  /// Returns an object that makes the same call repeatedly between the same buffers; the call must
  /// live as long. Collective over: the group, when it is its first call.
  std::unique_ptr<detail::RepeatedCall> repeated(const Call& call, const void* send, void* receive,
                                                 Where where, detail::OnHost host = {}) {
    return detail::repeat_call(group(call.group, where), call, send, receive, host);
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
  std::shared_ptr<const void> kept(std::uint64_t number) const { return kept_.at(number); }

  /// From watch_ends(true) on, ends() lists the addresses of the objects that have said by
  /// note_end() that they end; who reads the list empties it.
  void watch_ends(bool on) {
    watches_ends_ = on;
    ends_.clear();
  }
  void note_end(const void* object) {
    if (watches_ends_) ends_.push_back(reinterpret_cast<std::uintptr_t>(object));
  }
  std::vector<std::uintptr_t>& ends() { return ends_; }

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
  detail::ProductTable products_;
  detail::Attachments attachments_;
  std::uint64_t closing_ = 0;
  std::map<std::uint64_t, std::shared_ptr<const void>> kept_;
  std::uint64_t last_kept_ = 0;
  std::vector<std::uintptr_t> ends_;  ///< addresses
  bool watches_ends_ = false;
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

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/comm/detail/mesh_calls.hpp>
#endif
