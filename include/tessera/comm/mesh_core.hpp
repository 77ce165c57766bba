// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A mesh at run time: processes arranged in a grid, with all that they need to work together:
/// groups, arena, ledger, checks. It knows axes by number; typed meshes and tensors are upper
/// rooms' matter.
///
///     auto mesh = make_mesh_core(env.world(), MeshShape{2, 4}, {"data", "model"});
///     mesh->collective(call, send, receive, "einsum", Where::here());
///
/// Laws: each call is in the ledger once; a mesh that failed refuses every further use; closing is
/// local and waits for nobody.
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <tessera/base/error.hpp>
#include <tessera/comm/arena.hpp>
#include <tessera/comm/detail/agreement.hpp>
#include <tessera/comm/detail/attachments.hpp>
#include <tessera/comm/detail/closing.hpp>
#include <tessera/comm/detail/heavy_check.hpp>
#include <tessera/comm/detail/making.hpp>
#include <tessera/comm/detail/mesh_history.hpp>
#include <tessera/comm/detail/mix.hpp>
#include <tessera/comm/device_memory.hpp>
#include <tessera/comm/ledger.hpp>
#include <tessera/comm/mesh_options.hpp>
#include <tessera/comm/transport.hpp>
#include <tessera/kernel/detail/tool_region.hpp>
#include <tessera/mesh/levels.hpp>
#include <tessera/mesh/mesh_shape.hpp>
#include <tessera/version.hpp>

namespace tessera {

/// Made by make_mesh_core. Used by one thread: the process's own.
class MeshCore {
 public:
  MeshCore(std::shared_ptr<Transport> transport, MeshShape shape, const AxisNames& names,
           const MeshOptions& options, Where where);
  MeshCore(const MeshCore&) = delete;
  MeshCore& operator=(const MeshCore&) = delete;
  ~MeshCore() { close(); }

  const MeshShape& shape() const { return shape_; }
  const AxisNames& names() const { return names_; }
  /// Returns this process's number in the mesh, row-major.
  int process() const { return process_; }
  const Coordinates& coordinates() const { return coordinates_; }
  /// Returns the numbers in the whole job of the processes of the mesh, in the mesh's order.
  const std::vector<int>& processes() const { return processes_; }
  const MeshOptions& options() const { return options_; }
  const Machine& machine() const { return options_.machine; }
  Index workspace_limit() const { return options_.workspace_limit; }
  bool strict() const { return options_.strict; }
  Check check() const { return options_.check; }
  bool dry() const { return dry_; }
  Arena& arena() { return *arena_; }
  Ledger& ledger() { return ledger_; }
  const Ledger& ledger() const { return ledger_; }
  /// Returns the mesh's own duplicate of the transport it was made from. Throws UsageError after
  /// close().
  Transport& transport() {
    require_usable({});
    return *transport_;
  }
  bool usable() const { return reason_.empty(); }

  /// Returns "data=2 x model=4".
  std::string to_string() const;
  /// Returns the names of the axes in `group`, e.g. "data,model".
  std::string axes_text(AxisSet group) const;
  /// The same, and which part of an axis: "data,model in runs of 4", "model in steps of 4".
  std::string group_text(const AxisGroup& group) const;
  /// Returns "process 5: data=1, model=1".
  std::string process_text() const;

  /// Returns the group of this process over some axes, or one of them in part, made when first
  /// asked for. Collective over: its members, at the first time.
  Group& group(const AxisGroup& axes, Where where = {}) { return *entry(axes, where).group; }

  /// Makes one call of the operator `label`: writes it down, runs it. `send` and `receive` hold
  /// elements of call.type. Communication: the call. Collective over: the group. Throws
  /// CommunicationError, and MismatchError on loopback and at level heavy; either poisons the mesh.
  void collective(const Call& call, const void* send, void* receive, std::string_view label,
                  Where where);

  /// Starts the same call, and returns what waits for it, or nullptr when it was done at once.
  std::unique_ptr<PendingCall> start(const Call& call, const void* send, void* receive,
                                     std::string_view label, Where where);
  /// Waits for a call that start() returned. Throws CommunicationError.
  void finish(PendingCall& pending, const Call& call, std::string_view label, Where where);

  /// Returns what makes the same call time after time between the same buffers; the call lives as
  /// long. Collective over: the group, when it is its first call.
  std::unique_ptr<RepeatedCall> repeated(const Call& call, const void* send, void* receive,
                                         Where where) {
    return group(call.group, where).repeated(call, send, receive);
  }
  /// Starts such a call; finish() waits for it.
  void start(RepeatedCall& repeated, const Call& call, std::string_view label, Where where) {
    make_call(call, label, where, [&](Group&) { repeated.start(); });
  }
  /// Returns `block` for the members of a group to read where it lies, or nullptr on all alike
  /// (comm/shared_block.hpp). Communication: small, in no ledger. Collective over: the group.
  std::unique_ptr<SharedBlock> share(const AxisGroup& axes, const void* block, Index bytes,
                                     Where where);
  /// Begins a call as a turn of a shared block, for which `packed` has been packed; finish() ends
  /// it: calls read() once all that it needs may be read.
  void start(SharedBlock& block, const void* packed, Index bytes, const Call& call,
             std::string_view label, Where where) {
    make_call(call, label, where, [&](Group&) { block.offer(packed, bytes); });
    ledger_.add_window_bytes(payload_bytes(call));
  }
  template <class Read>
  void finish(SharedBlock& block, const Call& call, std::string_view label, Where where,
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
  void wait_read(SharedBlock& block, const Call& call, std::uint64_t turn, std::string_view label,
                 Where where) {
    guarded(label, where, [&] { block.wait_read(call.send, turn); });
  }

  /// Returns whether processes compare what they call, and tensors remember how they came about: at
  /// level `normal` and above, with several processes.
  bool remembers() const { return history_.on(); }
  /// Returns a number for one more such tensor of this process, and for one more that no operator
  /// has made, among those with this digest.
  std::uint64_t next_number() { return ++numbers_; }
  std::uint64_t next_born(std::uint64_t digest) { return ++born_[digest % born_.size()]; }

  /// Says which operator this process is about to run, all of it that communicates, and compares it
  /// with what the processes of this node have said: at level `normal`; above, agree() compares. It
  /// waits for nobody, except that every Trail::length-th operator of a mesh with several nodes is
  /// an all-reduce of two integers, in no ledger. `description()` returns its words; it is called
  /// seldom. Returns what stands for the operator's place among all. Collective over: all processes
  /// of the mesh. Throws MismatchError on a process that finds another call than its own, which
  /// ends the others' waits.
  template <class D>
  std::uint64_t begin_operator(const detail::OperatorMark& mark, const D& description,
                               Where where) {
    if (!history_.on()) return 0;
    const std::uint64_t text = detail::mix(
        mark.call ^ static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(where.file)),
        static_cast<std::uint64_t>(where.line));
    history_.write(mark, text, [&] { return detail::placed(description(), where); });
    if (options_.check < Check::communicating) compare_histories(where);
    return history_.place().ordinal;
  }

  /// Compares, at level `communicating` and above, what all processes are about to do: `digest`
  /// stands for it, `description` (a string, or a callable that returns one, called on disagreement
  /// alone) says it. Communication: one all-reduce of two integers, in no ledger. Collective over:
  /// all processes of the mesh. Throws MismatchError on every process when the digests differ,
  /// naming this process's call and the first that differs.
  template <class D> void agree(std::uint64_t digest, D&& description, Where where) {
    if (options_.check < Check::communicating) return;
    always_agree(digest, std::forward<D>(description), where);
  }

  /// The same at any level.
  template <class D> void always_agree(std::uint64_t digest, D&& description, Where where) {
    require_usable(where);
    if (dry_ || shape_.processes() == 1) return;
    const detail::Publish publish = in_call("", where, "comparison of operators", "the mesh");
    guarded({}, where, [&] {
      if (detail::all_equal(*control_, digest)) return;
      std::string text;
      if constexpr (std::convertible_to<D, std::string>)
        text = std::forward<D>(description);
      else
        text = description();
      detail::report_disagreement(*control_, digest, text, where);
    });
  }

  /// Returns the numbers of every process, in the order of their numbers in the mesh: small facts
  /// that all must know before they can decide alike. Each gives as many. Communication: one
  /// all-gather of them, in no ledger; none on a dry mesh, where this process's own stand for all.
  /// Collective over: all processes of the mesh. Throws CommunicationError.
  std::vector<std::int64_t> gather_facts(const std::vector<std::int64_t>& own, Where where) {
    require_usable(where);
    std::vector<std::int64_t> all;
    if (dry_ || shape_.processes() == 1) {
      for (int p = 0; p < shape_.processes(); ++p) all.insert(all.end(), own.begin(), own.end());
      return all;
    }
    begin_exchange("an exchange of facts", where);
    const detail::Publish publish = in_call("", where, "an exchange of facts", "the mesh");
    std::vector<std::int64_t> mine = own;
    mine.push_back(process_);  // the control group may count the processes otherwise
    guarded({}, where, [&] { all = detail::gather_integers(*control_, mine, mine.size()); });
    std::vector<std::int64_t> ordered(own.size() * static_cast<std::size_t>(shape_.processes()));
    for (auto from = all.begin(); from != all.end();
         from += static_cast<std::ptrdiff_t>(mine.size()))
      std::copy_n(from, own.size(),
                  ordered.begin() + from[static_cast<std::ptrdiff_t>(own.size())] *
                                        static_cast<std::ptrdiff_t>(own.size()));
    return ordered;
  }
  /// Returns the least of the numbers that the processes give. Communication: one all-reduce of an
  /// integer, in no ledger. Collective over: all processes of the mesh. Throws CommunicationError.
  std::int64_t least(std::int64_t own, Where where) {
    require_usable(where);
    if (dry_ || shape_.processes() == 1) return own;
    begin_exchange("an exchange of facts", where);
    const detail::Publish publish = in_call("", where, "an exchange of facts", "the mesh");
    guarded({}, where, [&] {
      control_->run(detail::control_all_reduce(*control_, Reduction::min, 1), &own, &own);
    });
    return own;
  }

  /// Returns when all processes have come. Collective over: all processes of the mesh. Throws
  /// CommunicationError.
  void barrier(Where where = Where::here()) {
    require_usable(where);
    begin_exchange("a barrier", where);
    const detail::Publish publish = in_call("", where, "a barrier", "");
    guarded("barrier", where, [&] { transport_->barrier(); });
  }

  /// Returns the one T that hangs on this mesh, made (by its default constructor) when first asked
  /// for. It ends with the mesh.
  template <class T> T& attachment() { return attachments_.template get<T>(); }
  /// Returns it if it has been asked for, else null.
  template <class T> const T* attached() const { return attachments_.template find<T>(); }

  /// Keeps `owner` alive until let_go() of the number that is returned, or the end of the mesh:
  /// adopted memory is a View's, which must not outlive Kokkos.
  std::uint64_t keep(std::shared_ptr<const void> owner) {
    kept_.emplace(++last_kept_, std::move(owner));
    return last_kept_;
  }
  void let_go(std::uint64_t number) { kept_.erase(number); }

  /// Lets go of attachments, memory and groups; blocks still out are void. Further use throws
  /// UsageError. Communication: none.
  void close() noexcept;
  /// Further use throws UsageError with this reason: something failed half-way. The first reason
  /// stays.
  void poison(std::string_view reason) {
    if (usable()) reason_ = reason.empty() ? "failed" : reason;
  }
  /// Throws UsageError unless the mesh may be used and Kokkos is not finalized.
  void require_usable(Where where) const {
    if (thread_ != std::this_thread::get_id())
      throw UsageError("the mesh " + to_string() +
                           " is used by another thread than the one that made it; a process has "
                           "one thread that calls operators, and MPI and the others wait for that "
                           "one alone: call them there, and leave threads to kernels",
                       where);
    if (!usable())
      throw UsageError("the mesh " + to_string() + " cannot be used: " + reason_, where);
    if (!dry_ && Kokkos::is_finalized())
      throw UsageError("the mesh " + to_string() +
                           " cannot be used: Kokkos has been finalized, and nothing can be "
                           "computed after that; finalize it after the last operator, or leave it "
                           "to tessera::Environment",
                       where);
  }

 private:
  /// While the result lives, the blackboard says that this process is in a call.
  detail::Publish in_call(std::string_view label, Where where, std::string_view kind,
                          std::string_view over) const {
    return {transport_ == nullptr ? nullptr : transport_->blackboard(),
            transport_ == nullptr ? 0 : transport_->seat(),
            {label, where, kind, over, history_.place()}};
  }
  /// Such a call of the whole mesh is compared like an operator.
  void begin_exchange(std::string_view kind, Where where) {
    begin_operator(
        {detail::mix(0, kind), 0, 0}, [&] { return std::string(kind); }, where);
  }
  void compare_histories(Where where) {
    if (history_.differs())
      guarded({}, where, [&] {
        throw MismatchError(history_.difference() + std::string(detail::same_calls_text), where);
      });
    if (!history_.spans_nodes() || history_.place().ordinal % detail::Trail::length != 0) return;
    const detail::Publish publish = in_call("", where, "comparison of operators", "the mesh");
    guarded({}, where, [&] { history_.compare_nodes(*control_); });
  }

  /// What all calls have in common; `make(group)` runs or starts it.
  template <class Make>
  void make_call(const Call& call, std::string_view label, Where where, const Make& make);
  /// Runs f; what it throws says where and on which process, and the mesh is not used any more.
  template <class F> void guarded(std::string_view label, Where where, F&& f) {
    try {
      f();
    } catch (CommunicationError& error) {
      error.complete(label, where, process_text());
      poison(std::string("a call on it failed: ") + error.what());
      throw;
    } catch (Error& error) {
      error.complete({}, where, process_text());
      poison(std::string("a call on it failed: ") + error.what());
      throw;
    } catch (const std::exception& error) {
      poison(std::string("a call on it failed: ") + error.what());
      throw;
    }
  }
  /// A group that has been made, with what belongs to it.
  struct GroupEntry {
    AxisGroup axes;
    std::shared_ptr<Group> group;
    std::shared_ptr<Group> control;  ///< of level heavy
    std::string over;
  };
  GroupEntry& entry(AxisGroup axes, Where where);
  std::string axis_text(int axis) const;
  std::shared_ptr<Group> make_group(const AxisGroup& axes, std::uint64_t purpose) const;
  std::unique_ptr<Arena> make_arena() const;

  MeshShape shape_;
  std::vector<std::string> name_storage_;
  AxisNames names_;
  MeshOptions options_;
  std::string reason_;
  std::shared_ptr<Transport> transport_;
  bool dry_;
  int process_;
  std::vector<int> processes_;
  Coordinates coordinates_;
  std::shared_ptr<Group> control_;
  std::array<std::unique_ptr<GroupEntry>, 1u << max_axes> groups_;
  std::vector<std::unique_ptr<GroupEntry>> divided_groups_;
  std::unique_ptr<Arena> arena_;
  Ledger ledger_;
  detail::Attachments attachments_;
  std::uint64_t closing_ = 0;
  std::map<std::uint64_t, std::shared_ptr<const void>> kept_;
  std::uint64_t last_kept_ = 0;
  detail::MeshHistory history_;
  std::array<std::uint64_t, 256> born_{};
  std::uint64_t numbers_ = 0;
  std::thread::id thread_ = std::this_thread::get_id();
};

namespace detail {
inline constexpr std::uint64_t control_purpose = 1;
inline constexpr std::uint64_t data_purpose = 2;

/// Returns which process stands where in a mesh of `shape`.
inline DeviceAssignment assignment_of(const MeshShape& shape, const MeshOptions& options) {
  const DeviceOrder& order = options.machine.order;
  if (!options.device_assignment.natural() || order.over(shape) == DeviceOrder{}.over(shape))
    return options.device_assignment;
  return along_axes(shape, order);
}

/// Returns how many processes share a node, as Machine counts them: in the order of `given`, when
/// machine.order says how the mesh lies on it; else in that of the mesh's own transport. 0 where
/// both orders are changed.
inline std::int64_t found_node_size(const Transport& given, const Transport& own,
                                    const MeshShape& shape, const MeshOptions& options) {
  if (options.machine.order.over(shape) == DeviceOrder{}.over(shape))
    return consecutive_node_size(nodes_of(own));
  return options.device_assignment.natural() ? consecutive_node_size(nodes_of(given)) : 0;
}

}  // namespace detail

inline std::string MeshCore::axis_text(int axis) const { return detail::axis_text(axis, names_); }

inline std::string MeshCore::to_string() const { return detail::mesh_text(shape_, names_); }

inline std::string MeshCore::axes_text(AxisSet group) const {
  std::string text;
  for (int a = 0; a < shape_.rank(); ++a) {
    if (!group.contains(a)) continue;
    if (!text.empty()) text += ',';
    text += axis_text(a);
  }
  return text;
}

inline std::string MeshCore::process_text() const {
  std::string text = "process ";
  text += std::to_string(process_);
  for (int a = 0; a < shape_.rank(); ++a) {
    text += a > 0 ? ", " : ": ";
    text += axis_text(a);
    text += '=';
    text += std::to_string(coordinates_[a]);
  }
  return text;
}

inline MeshCore::MeshCore(std::shared_ptr<Transport> transport, MeshShape shape,
                          const AxisNames& names, const MeshOptions& options, Where where)
    : shape_(shape),
      options_(options),
      transport_(transport->duplicate(detail::mesh_settings(*transport, options))),
      dry_(transport_->dry()),
      process_(transport_->rank()),
      control_(
          transport_->group(detail::all_members(transport_->size()), detail::control_purpose)) {
  for (const std::string_view name : names) name_storage_.emplace_back(name);
  for (const std::string& name : name_storage_) names_.push_back(name);

  std::uint64_t digest = detail::mix(static_cast<std::uint64_t>(options.check), to_string());
  for (const int part : {version.major, version.minor, version.patch})
    digest = detail::mix(digest, static_cast<std::uint64_t>(part));
  for (const std::int64_t value :
       {options.arena_bytes, options.workspace_limit, static_cast<std::int64_t>(options.strict),
        static_cast<std::int64_t>(options.machine.order.over(shape).bits()),
        static_cast<std::int64_t>(transport_->settings().windows),
        static_cast<std::int64_t>(options.find_nodes),
        static_cast<std::int64_t>(transport_->settings().processes_per_node),
        static_cast<std::int64_t>(transport_->settings().large_count),
        static_cast<std::int64_t>(transport_->settings().large_in_pieces)})
    digest = detail::mix(digest, static_cast<std::uint64_t>(value));
  for (const auto& [name, field] : detail::machine_fields)
    digest = detail::mix(digest, static_cast<std::uint64_t>(options.machine.*field));
  for (const int process : options.device_assignment.processes())
    digest = detail::mix(digest, static_cast<std::uint64_t>(process));
  if (!dry_ && transport_->size() > 1) {
    if (!detail::all_equal(*control_, digest))
      detail::report_disagreement(
          *control_, digest,
          "for a mesh " + to_string() + " (version " + std::to_string(version.major) + "." +
              std::to_string(version.minor) + "." + std::to_string(version.patch) + ", check " +
              std::string(name_of(options.check)) + ", windows " +
              std::string(name_of(transport_->settings().windows)) + ", arena " +
              std::to_string(options.arena_bytes) + ", workspace limit " +
              std::to_string(options.workspace_limit) + ", large count " +
              std::to_string(transport_->settings().large_count) +
              "; the machine model and the device assignment count too)",
          where);
  }
  if (shape_.processes() != transport_->size())
    throw MeshError("the mesh " + to_string() + " has " + std::to_string(shape_.processes()) +
                        " processes but the communicator has " +
                        std::to_string(transport_->size()) +
                        "; the sizes of the axes must multiply to the number of processes: start " +
                        std::to_string(shape_.processes()) + ", or choose other sizes",
                    where);
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
  arena_ = make_arena();
  if (!dry_) detail::close_meshes_with_kokkos();
  closing_ = detail::Closing::all().enter([this] { close(); });
}

inline std::unique_ptr<Arena> MeshCore::make_arena() const {
  if (dry_) return std::make_unique<Arena>(nullptr, nullptr, 0, options_.memory_limit);
  SharedMemory window;
  if (default_memory_is_host && options_.arena_bytes != 0) {
    const double variable = detail::number_variable("TESSERA_ARENA_BYTES", -1);
    window = transport_->reserve_shared(options_.arena_bytes > 0 ? options_.arena_bytes
                                                                 : static_cast<Index>(variable));
  }
  return std::make_unique<Arena>(default_memory(), window.base, window.bytes, options_.memory_limit,
                                 transport_->sharers());
}

inline std::string MeshCore::group_text(const AxisGroup& group) const {
  std::string text = axes_text(group.spanned());
  if (group.is_divided())
    text += (group.outer ? " in steps of " : " in runs of ") + std::to_string(group.inner);
  return text;
}

inline std::shared_ptr<Group> MeshCore::make_group(const AxisGroup& axes,
                                                   std::uint64_t purpose) const {
  std::vector<int> members;
  for (int k = 0; k < shape_.group_size(axes); ++k)
    members.push_back(shape_.process(shape_.member(axes, coordinates_, k)));
  return transport_->group(members, detail::mix(detail::mix(purpose, axes.key()),
                                                static_cast<std::uint64_t>(members.front())));
}

inline MeshCore::GroupEntry& MeshCore::entry(AxisGroup axes, Where where) {
  require_usable(where);
  axes.axes = axes.axes & shape_.axes();
  std::unique_ptr<GroupEntry>* found = nullptr;
  if (!axes.is_divided()) {
    found = &groups_[axes.axes.bits];
  } else {
    for (auto& known : divided_groups_)
      if (known != nullptr && known->axes == axes) found = &known;
    if (found == nullptr) found = &divided_groups_.emplace_back();
  }
  if (*found == nullptr) {
    auto made = std::make_unique<GroupEntry>(GroupEntry{axes, nullptr, nullptr, group_text(axes)});
    const detail::Publish publish = in_call("", where, "the making of a group", made->over);
    made->group = make_group(axes, detail::data_purpose);
    *found = std::move(made);
  }
  return **found;
}

template <class Make>
void MeshCore::make_call(const Call& call, std::string_view label, Where where, const Make& make) {
  GroupEntry& over = entry(call.group, where);
  Group& members = *over.group;
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
      if (over.control == nullptr) over.control = make_group(over.axes, detail::control_purpose);
      detail::check_together(*over.control, call, label, where);
    }
    const Index before = members.window_bytes();
    make(members);
    ledger_.add_window_bytes(members.window_bytes() - before);
  });
}

inline void MeshCore::collective(const Call& call, const void* send, void* receive,
                                 std::string_view label, Where where) {
  make_call(call, label, where, [&](Group& members) { members.run(call, send, receive); });
}

inline std::unique_ptr<PendingCall> MeshCore::start(const Call& call, const void* send,
                                                    void* receive, std::string_view label,
                                                    Where where) {
  std::unique_ptr<PendingCall> pending;
  make_call(call, label, where,
            [&](Group& members) { pending = members.start(call, send, receive); });
  return pending;
}

inline std::unique_ptr<SharedBlock> MeshCore::share(const AxisGroup& axes, const void* block,
                                                    Index bytes, Where where) {
  if (dry_ || !default_memory_is_host) return nullptr;
  GroupEntry& over = entry(axes, where);
  const detail::Publish publish = in_call("", where, "the sharing of a block", over.over);
  std::unique_ptr<SharedBlock> shared;
  guarded({}, where, [&] { shared = over.group->share(block, bytes); });
  return shared;
}

inline void MeshCore::finish(PendingCall& pending, const Call& call, std::string_view label,
                             Where where) {
  const detail::Publish publish = in_call(label, where, name_of(call.kind), group_text(call.group));
  guarded(label, where, [&] { pending.wait(); });
}

inline void MeshCore::close() noexcept {
  if (transport_ == nullptr) return;
  poison(detail::Closing::all().reason());
  detail::Closing::all().leave(closing_);
  attachments_.clear();
  kept_.clear();
  if (arena_ != nullptr) arena_->close();
  for (auto& group : groups_) group.reset();
  divided_groups_.clear();
  control_.reset();
  history_ = {};  // the blackboard may go before this mesh
  transport_.reset();
}

/// Returns a mesh of `shape` over all processes of `transport`, with everything of its own: no
/// other mesh's calls meet its calls. Communication: small all-reduces. Collective over: all
/// processes of the transport. Throws MismatchError when processes ask for different meshes,
/// MeshError (on all) when the sizes do not fit the processes, UsageError where Kokkos does not run
/// (but on a dry transport).
inline std::shared_ptr<MeshCore> make_mesh_core(std::shared_ptr<Transport> transport,
                                                const MeshShape& shape, const AxisNames& names,
                                                const MeshOptions& options = {},
                                                Where where = Where::here()) {
  if (transport == nullptr)
    throw MeshError(
        "a mesh is made from no transport; give env.world(), or one among the processes "
        "that are to be in the mesh, on those processes only",
        where);
  if (!transport->dry()) detail::require_kokkos(where);
  const detail::Publish publish =
      detail::begin_making(*transport, detail::mesh_text(shape, names), where);
  return std::make_shared<MeshCore>(std::move(transport), shape, names, options, where);
}

}  // namespace tessera
