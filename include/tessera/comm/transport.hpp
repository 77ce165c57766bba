// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What carries calls between processes: one small interface, two implementations
/// (comm/mpi/transport.hpp, comm/loopback/loopback.hpp), and two for a process without others
/// (comm/dry.hpp, comm/fake.hpp). mesh/call.hpp says what a call means.
///
///     auto group = transport->group({0, 2}, key);      // on processes 0 and 2
///     group->run(call, send, receive);                 // returns when done
///
/// Laws: between processes a transport computes what the call says and nothing else; integers, and
/// all exchanges of data, give the same results on both.
#include <climits>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/base/math.hpp>
#include <tessera/comm/blackboard.hpp>
#include <tessera/comm/shared/block.hpp>
#include <tessera/comm/shared/setting.hpp>
#include <tessera/comm/wait.hpp>
#include <tessera/mesh/call.hpp>

namespace tessera {
namespace detail {

/// A call that was started and may be in progress. Its buffers must not change until it is done.
class PendingCall {
 public:
  PendingCall() = default;
  PendingCall(const PendingCall&) = delete;
  PendingCall& operator=(const PendingCall&) = delete;
  virtual ~PendingCall() = default;
  /// Returns whether the call is done, and lets it progress.
  virtual bool done() = 0;
  /// Returns when the call is done. Throws CommunicationError.
  virtual void wait() = 0;
};

/// A call between buffers that stay in place, made repeatedly, but not while its last start is in
/// progress.
class RepeatedCall : public PendingCall {
 public:
  /// Collective over: the group, as Group::start.
  virtual void start() = 0;
};

/// A set of processes that make calls together. Members are numbered as they were listed.
class Group {
 public:
  Group() = default;
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  virtual ~Group() = default;

  /// Returns this process's number among the members.
  virtual int own() const = 0;
  virtual int size() const = 0;

  /// Makes one call and returns when its buffers may be used again. `send` and `receive` hold
  /// elements of call.type; they do not overlap. With call.in_place `send` is not read. Collective
  /// over: all members of the group, also those that neither send nor receive anything. Throws
  /// CommunicationError; on loopback also MismatchError when members' calls do not fit together.
  virtual void run(const Call& call, const void* send, void* receive) = 0;

  /// Starts a call and returns an object to wait for it, or nullptr when it is done already.
  /// Collective over: all members, which start and run their calls in the same order; they may wait
  /// in any order.
  virtual std::unique_ptr<PendingCall> start(const Call& call, const void* send, void* receive) {
    run(call, send, receive);
    return nullptr;
  }

  /// Returns an object that makes such a call repeatedly; the call must live as long.
  /// Communication: none. The requests of an exchange are made once.
  inline virtual std::unique_ptr<RepeatedCall> repeated(const Call& call, const void* send,
                                                        void* receive);

  /// Returns the blocks of all members, this process's being `block`, for all to read in place;
  /// nullptr on all members where shared memory is off, the members are not on one node, or a block
  /// does not lie in the arena's shared memory. Communication: small, in no ledger. Collective
  /// over: the members. The blocks must live as long as any of these objects is used.
  virtual std::unique_ptr<SharedBlock> share(const void* block, Index bytes) {
    static_cast<void>(block);
    static_cast<void>(bytes);
    return nullptr;
  }

  /// Returns whether calls may be given device memory; else comm/staged_call.hpp copies it.
  virtual bool takes_device_memory() const { return false; }

  /// Returns the payload so far of calls that went through shared memory (comm/shared/setting.hpp).
  virtual Index shared_bytes() const { return 0; }
};

/// Starts the call anew each time.
class StartedAnew final : public RepeatedCall {
 public:
  StartedAnew(Group& group, const Call& call, const void* send, void* receive)
      : group_(group), call_(call), send_(send), receive_(receive) {}
  void start() override { pending_ = group_.start(call_, send_, receive_); }
  bool done() override { return pending_ == nullptr || pending_->done(); }
  void wait() override {
    if (pending_ != nullptr) pending_->wait();
    pending_.reset();
  }

 private:
  Group& group_;
  const Call& call_;
  const void* send_;
  void* receive_;
  std::unique_ptr<PendingCall> pending_;
};

inline std::unique_ptr<RepeatedCall> Group::repeated(const Call& call, const void* send,
                                                     void* receive) {
  return std::make_unique<detail::StartedAnew>(*this, call, send, receive);
}
}  // namespace detail

/// How a transport waits, and how long.
struct TransportSettings {
  Wait wait = Wait::automatic;
  double time_limit = 600;  ///< seconds that a call may take before the job is ended; 0: no limit
  Index large_count = INT_MAX;   ///< calls with counts or displacements above this use MPI's
                                 ///< large-count functions; the same on all processes
  bool large_in_pieces = false;  ///< or are cut into pieces of at most that many elements, as
                                 ///< always where MPI (before 4.0) has no such functions
  int processes_per_node = -1;   ///< consecutive processes of the job that share a node; 0: all;
                                 ///< negative: as MPI tells; the same on all processes
  Shared shared = Shared::automatic;
  Index shared_least = Index{64} << 10;  ///< bytes of a group's call (all its pieces) from which
                                         ///< shared memory is used; the same on all processes
  Index shared_small_after = 32;  ///< smaller calls that a group of two, whose sums have one order,
                                  ///< leaves to MPI before they too go through shared memory; the
                                  ///< same on all processes
  bool device_memory = false;  ///< MPI is given device memory as it is, reductions included, which
                               ///< not every MPI takes; else calls go by copies in host memory
  Index shared_stage = Index{1} << 20;  ///< bytes of staging memory of a process for each group
                                        ///< that uses shared memory; the same on all processes
};

namespace detail {
/// Returns the default settings, changed by TESSERA_WAIT, TESSERA_TIME_LIMIT, TESSERA_SHARED,
/// TESSERA_LARGE_COUNT (a number of elements), TESSERA_LARGE_CALLS (whole or pieces),
/// TESSERA_DEVICE_MEMORY (staged or direct) and TESSERA_PROCESSES_PER_NODE. Throws UsageError when
/// one of them has a wrong value.
inline TransportSettings settings_from_environment() {
  TransportSettings settings;
  settings.wait = wait_from_environment();
  settings.time_limit = detail::number_variable("TESSERA_TIME_LIMIT", settings.time_limit);
  settings.shared = shared_from_environment();
  const double most = detail::number_variable("TESSERA_LARGE_COUNT", INT_MAX);
  if (most < 1 || most > INT_MAX)
    throw UsageError("TESSERA_LARGE_COUNT is a number of elements from 1 to 2147483647");
  settings.large_count = static_cast<Index>(most);
  settings.large_in_pieces =
      detail::choice_variable("TESSERA_LARGE_CALLS", {"whole", "pieces"}) == 1;
  settings.device_memory =
      detail::choice_variable("TESSERA_DEVICE_MEMORY", {"staged", "direct"}) == 1;
  const double node = detail::number_variable("TESSERA_PROCESSES_PER_NODE", -1);
  if (node > INT_MAX || node != static_cast<double>(static_cast<int>(node)))
    throw UsageError(
        "TESSERA_PROCESSES_PER_NODE is a number of processes, or 0 where all share one node");
  settings.processes_per_node = static_cast<int>(node);
  return settings;
}

/// Memory that all processes of a node can address; `base` is this process's part.
struct SharedMemory {
  void* base = nullptr;
  Index bytes = 0;
};
}  // namespace detail

/// All processes that a mesh may use, including this one.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  virtual std::string name() const = 0;
  virtual int process() const = 0;
  virtual int size() const = 0;
  /// Returns whether nothing is sent and no tensor has memory.
  virtual bool dry() const { return false; }
  /// Returns whether it computes, and the other processes do not exist: what they would say of
  /// themselves is what this process says (comm/fake.hpp).
  virtual bool alone() const { return false; }
  /// Returns whether this process is none of its processes, and only plans what they do.
  virtual bool absent() const { return false; }
  virtual const TransportSettings& settings() const = 0;

  /// Returns the group of `members`, processes of this transport in the order of their numbers in
  /// the group; this process is one of them. `key` distinguishes groups with the same members.
  /// Collective over: only the members.
  virtual std::shared_ptr<detail::Group> group(const std::vector<int>& members,
                                               std::uint64_t key) = 0;

  /// Returns a transport between the same processes whose calls never meet this one's, and frees
  /// what all processes have released in the meantime. Collective over: all processes.
  virtual std::shared_ptr<Transport> duplicate(const TransportSettings& settings) = 0;
  std::shared_ptr<Transport> duplicate() { return duplicate(settings()); }

  /// Returns the transport between some of the processes, or all of them in another order:
  /// `members` are their numbers here in the order of their numbers there; this process is one of
  /// them. Collective over: only the members; the others need not know. Throws MeshError for a list
  /// that is empty, names a process twice or one that does not exist, or omits this one.
  std::shared_ptr<Transport> among(const std::vector<int>& members, Where where = Where::here()) {
    std::vector<bool> seen(static_cast<std::size_t>(size()), false);
    const auto reject = [&](const std::string& what) {
      throw MeshError("a transport among " + std::to_string(members.size()) + " of " +
                          std::to_string(size()) + " processes: " + what +
                          "; list each member once, and call it on the members alone",
                      where);
    };
    for (int member : members) {
      if (member < 0 || member >= size()) reject("there is no process " + std::to_string(member));
      if (seen[static_cast<std::size_t>(member)])
        reject("process " + std::to_string(member) + " is listed twice");
      seen[static_cast<std::size_t>(member)] = true;
    }
    if (members.empty() || !seen[static_cast<std::size_t>(process())])
      reject("process " + std::to_string(process()) + " is not listed");
    return subset(members);
  }

  /// Returns the transport between the first `count` processes. Collective over: these.
  std::shared_ptr<Transport> first(int count, Where where = Where::here()) {
    std::vector<int> members;
    for (int i = 0; i < count; ++i) members.push_back(i);
    return among(members, where);
  }

  /// Returns the numbers of these processes in the whole job (loopback: in the run), in this
  /// transport's order: they tell whether two meshes consist of the same processes.
  virtual std::vector<int> processes() const = 0;

  /// Returns `bytes` of shared memory for this process (a negative number: a modest size), or
  /// nothing where processes share no memory or it would not fit on some node. It lives as long as
  /// the transport and its groups. Collective over: all processes; all get the same number of
  /// bytes.
  virtual detail::SharedMemory reserve_shared(Index bytes) {
    static_cast<void>(bytes);
    return {};
  }

  /// Returns how many processes share this one's memory.
  virtual int sharers() const { return 1; }

  /// Returns for each process the lowest process on its node; nothing when all share one, or this
  /// transport cannot tell.
  virtual std::vector<int> nodes() const { return {}; }

  /// Returns the blackboard of this node's processes, or nullptr; and this process's number on it.
  virtual detail::Blackboard* blackboard() { return nullptr; }
  virtual int seat() const { return process(); }
  virtual int seat_of(int process) const { return process; }
  /// Returns the number on the blackboard for the making of meshes from this transport: no mesh has
  /// it, and it is the same on all its processes.
  virtual std::uint64_t makings_id() const { return 1; }
  /// Counts the makings.
  std::uint64_t next_making() { return ++makings_; }

  /// Returns when all processes have called it. Collective over: all processes.
  virtual void barrier() = 0;

  /// Ends the job: prints `message` once, and no process continues.
  [[noreturn]] virtual void abort(const std::string& message, int exit_code = 1) = 0;

 protected:
  /// The result of among(), which has checked the list.
  virtual std::shared_ptr<Transport> subset(const std::vector<int>& members) = 0;

 private:
  std::uint64_t makings_ = 0;
};

namespace detail {
/// Returns 0, 1, ..., count - 1.
inline std::vector<int> all_members(int count) {
  std::vector<int> members(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) members[static_cast<std::size_t>(i)] = i;
  return members;
}

/// Returns for each process of a transport the lowest process on its node, from the settings or
/// else from the transport.
inline std::vector<int> nodes_of(const Transport& transport) {
  const int size = transport.settings().processes_per_node;
  if (size < 0) return transport.nodes();
  if (size == 0) return {};
  std::vector<int> nodes = transport.processes();
  std::map<int, int> least;
  for (std::size_t p = 0; p < nodes.size(); ++p)
    nodes[p] = least.emplace(nodes[p] / size, static_cast<int>(p)).first->second;
  return nodes;
}

/// Returns an in-place all-reduce of `count` 64-bit integers over a whole group.
inline Call control_all_reduce(const Group& group, Reduction reduction, Index count) {
  Call call;
  call.kind = Collective::all_reduce;
  call.type = DType::i64;
  call.reduction = reduction;
  call.even = true;
  call.in_place = true;
  call.own = group.own();
  call.members = group.size();
  call.send = {{group.own(), 0, count}};
  call.receive = {{group.own(), 0, count}};
  return call;
}
}  // namespace detail
}  // namespace tessera
