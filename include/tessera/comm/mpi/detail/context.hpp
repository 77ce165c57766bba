// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The state that all MPI transports over one user's communicator share: the node, the blackboard,
/// the watchdog, and what must be freed. Freeing communicators is collective, while destructors are
/// not: so destructors put handles down here, and the next collective moment (a duplicate, the end
/// of the environment) frees what every process has put down.
///
///     context->wait(&request, 1, Wait::nap);
///
/// Laws: nothing is freed before all processes have put it down; no destructor does anything
/// collective.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <tessera/comm/detail/closing.hpp>
#include <tessera/comm/detail/standstill.hpp>
#include <tessera/comm/detail/variables.hpp>
#include <tessera/comm/mpi/detail/error.hpp>
#include <tessera/comm/mpi/detail/handles.hpp>
#include <tessera/comm/mpi/detail/life.hpp>
#include <tessera/comm/mpi/detail/types.hpp>
#include <tessera/comm/transport.hpp>
#include <tessera/comm/watchdog.hpp>

namespace tessera::detail {

class MpiContext;
/// The context of the one environment, by which a job is ended.
inline MpiContext*& environment_context() {
  static MpiContext* context = nullptr;
  return context;
}

class MpiContext {
 public:
  /// Collective over: the processes of `user`.
  MpiContext(MPI_Comm user, double time_limit)
      : time_limit_(time_limit), watchdog_([this] { late(); }, [this] { look(); }) {
    require_mpi();
    require_whole_world();
    close_meshes_with_mpi();
    answer_errors_of_waits();
    comm_ = copy_of(user);
    check(MPI_Comm_rank(comm_, &process_), "MPI_Comm_rank");
    check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
    check(MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, process_, MPI_INFO_NULL, &node_),
          "MPI_Comm_split_type");
    check(MPI_Comm_set_errhandler(node_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_size(node_, &node_size_), "MPI_Comm_size");
    find_processes();
    if (processes_[static_cast<std::size_t>(process_)] == 0) warn_of_unknown_variables();

    ProcessorMask mask = usable_processors();
    check(MPI_Allreduce(MPI_IN_PLACE, mask.data(), static_cast<int>(mask.size()), MPI_UINT64_T,
                        MPI_BOR, node_),
          "MPI_Allreduce");
    int facts[2] = {core_count(mask), -node_size_};  // the worst node decides for all
    check(MPI_Allreduce(MPI_IN_PLACE, facts, 2, MPI_INT, MPI_MIN, comm_), "MPI_Allreduce");
    automatic_ =
        simulated_processes ? Wait::spin : choose_wait(Wait::automatic, -facts[1], facts[0]);
    threads_ = simulated_processes || facts[0] < -facts[1] ? 1 : facts[0] / -facts[1];
    open_blackboard();
    closing_ = Closing::all().enter([this] { close(); }, true);
    all_contexts().push_back(this);
  }
  MpiContext(const MpiContext&) = delete;
  MpiContext& operator=(const MpiContext&) = delete;
  ~MpiContext() {
    Closing::all().leave(closing_);  // MPI_Finalize frees the rest
    std::erase(all_contexts(), this);
  }
  /// Announces on all blackboards that this process will make no further call.
  static void end_calls() {
    for (MpiContext* context : all_contexts())
      if (context->board_ != nullptr) context->board_->end(context->process_);
  }

  MPI_Comm comm() const { return comm_; }
  MPI_Comm node() const { return node_; }
  int process() const { return process_; }
  int size() const { return size_; }
  int node_size() const { return node_size_; }
  /// Returns the MPI ranks of these processes in MPI_COMM_WORLD.
  const std::vector<int>& processes() const { return processes_; }
  /// Returns for each process the lowest process on its node.
  const std::vector<int>& nodes() const { return nodes_; }
  /// Returns the context that transports among `members` (numbers of processes here) share, made at
  /// the first request from a communicator that make() returns and that is freed again. It is
  /// closed with all others. Collective over: the members.
  template <class Make>
  const std::shared_ptr<MpiContext>& among(const std::vector<int>& members, const Make& make) {
    std::shared_ptr<MpiContext>& context = among_[members];
    if (context == nullptr) {
      MPI_Comm comm = make();
      context = std::make_shared<MpiContext>(comm, time_limit_);
      check(MPI_Comm_free(&comm), "MPI_Comm_free");
    }
    return context;
  }
  /// Returns the MPI rank of process `of` in node(), or -1 when it is on another node.
  int place_on_node(int of) const { return places_on_node_[static_cast<std::size_t>(of)]; }
  bool closed() const { return closed_; }
  Wait automatic_wait() const { return automatic_; }
  bool core_for_each_process() const { return automatic_ == Wait::spin; }
  /// Returns the number of cores for each process, at least 1.
  int threads_per_process() const { return threads_; }
  Blackboard* blackboard() { return board_.get(); }
  Watchdog& watchdog() { return watchdog_; }
  MpiOps& ops() { return ops_; }

  void require_open() const {
    if (mpi_ended()) require_mpi();
    if (closed_)
      throw UsageError(
          "the MPI transport is closed, since the environment has ended; keep tessera::Environment "
          "alive while meshes are used");
  }

  /// Returns whether all requests are done. It tests one at a time: errors of MPI_Testall and
  /// MPI_Waitall belong to no communicator, so that MPI would end the program.
  static bool done(MPI_Request* requests, int count, const char* function) {
    const Waiting waiting;
    for (int i = 0; i < count; ++i) {
      int done = 1;
      if (requests[i] != MPI_REQUEST_NULL)
        check(MPI_Test(&requests[i], &done, MPI_STATUS_IGNORE), function);
      if (done == 0) return false;
    }
    return true;
  }

  /// The most communicators that a process may hold at once.
#if defined(MPICH_VERSION)
  static constexpr int most_communicators = 1900;  // of 2048
#else
  static constexpr int most_communicators = INT_MAX;
#endif

  /// Returns the communicator that make() makes; throws CommunicationError before MPI runs out of
  /// them: then MPICH would wait forever, or end the program.
  template <class Make> MPI_Comm make_communicator(const Make& make) {
    if (communicators_ >= most_communicators)
      throw CommunicationError(
          std::to_string(Closing::all().meshes()) + " meshes are alive and hold " +
          std::to_string(communicators_) +
          " communicators, and MPI has hardly more; a mesh needs two, and one for each set of axes "
          "it communicates over: let go of meshes that are no longer used, and make one mesh once, "
          "not in a loop");
    const MPI_Comm comm = make();
    ++communicators_;
    return comm;
  }

  /// Waits for requests by the given policy. A call must be in progress (Watched).
  void wait(MPI_Request* requests, int count, Wait policy, const char* function) {
    if (policy == Wait::spin) {
      const Waiting waiting;
      for (int i = 0; i < count; ++i) check(MPI_Wait(&requests[i], MPI_STATUS_IGNORE), function);
      return;
    }
    Nap nap;
    while (!done(requests, count, function)) {
      nap();
      if (nap.asleep() && watchdog_.overdue()) late();
    }
  }

  /// Waits by the given policy until another process of the node makes come() true. A call
  /// must be in progress (Watched). MPI gets a turn now and then: it may have to forward data for
  /// which other nodes wait.
  template <class Come> void wait_until(Come come, Wait policy) {
    Nap nap;
    for (int polls = 1; !come(); ++polls) {
      if (policy == Wait::spin) {
        relax();
        if (polls % 1024 == 0) progress();
        // Rarely: on a busy machine a yield may cost a whole time slice.
        if (polls % 65536 == 0) std::this_thread::yield();
      } else {
        nap();
        if (!nap.asleep()) continue;
        progress();
        if (watchdog_.overdue()) late();
      }
    }
  }

  /// Registers the handles of a new transport: the same number on all processes. Collective over:
  /// all processes.
  std::uint64_t open(double time_limit) {
    require_open();
    if (size_ == 1) return 0;  // holds nothing
    // With thousands alive, asking about all of them each time would cost their number's square.
    if (outstanding_.size() <= 1000 || opened_ - collected_ >= outstanding_.size() / 32)
      collect(time_limit);
    outstanding_[++opened_];
    return opened_;
  }
  /// Puts down the handles of transport `id`, which are no longer used here. Local.
  void put_down(std::uint64_t id, MpiHandles handles) {
    if (closed_ || size_ == 1) return;
    outstanding_[id] = {true, std::move(handles)};
  }
  /// Frees what all processes have put down, or keeps its memory. Collective over: all processes.
  void collect(double time_limit) {
    require_open();
    collected_ = opened_;
    if (outstanding_.empty()) return;
    std::vector<int> down;
    for (const auto& entry : outstanding_) down.push_back(entry.second.first ? 1 : 0);
    const Watched watched(*this, time_limit);
    join_numbers(down.data(), static_cast<int>(down.size()), MPI_INT, comm_,
                 [&](MPI_Request& request) { wait(&request, 1, automatic_, "MPI_Iallreduce"); });
    std::size_t i = 0;
    for (auto entry = outstanding_.begin(); entry != outstanding_.end();)
      if (down[i++] != 0) {
        MpiHandles& handles = entry->second.second;
        communicators_ -= static_cast<int>(handles.comms.size());
        handles.free_comms();
        spare_.add(handles.memories);
        entry = outstanding_.erase(entry);
      } else {
        ++entry;
      }
  }

  /// Frees everything. Collective over: all processes; each must have put its transports down.
  void close() {
    if (closed_) return;
    if (mpi_is_up()) {
      collect(time_limit_);
      closed_ = true;
      watchdog_.stop();
      board_.reset();
      spare_.clear();
      ops_.free();
      check(MPI_Comm_free(&node_), "MPI_Comm_free");
      check(MPI_Comm_free(&comm_), "MPI_Comm_free");
    }
    closed_ = true;
  }

  /// Prints `message` unless another process of the node has printed its own, and ends the job.
  [[noreturn]] void abort(const std::string& message, int exit_code) {
    static thread_local bool aborting = false;
    if (std::exchange(aborting, true)) std::_Exit(exit_code);  // MPI_Abort itself calls exit
    const MpiContext* all = environment_context() != nullptr ? environment_context() : this;
    if (all->board_ == nullptr || all->board_->claim_report()) {
      std::fprintf(stderr, "%s\n", message.c_str());
      std::fflush(stderr);
      // MPICH's launcher drops output that it has not read when the job is aborted.
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    } else {
      std::this_thread::sleep_for(std::chrono::seconds(2));  // the process that prints ends the job
    }
    abort_world(exit_code);
  }

  /// Lets the watchdog watch while it lives; only one may live at a time.
  class Watched {
   public:
    Watched(MpiContext& context, double limit) : dog_(context.watchdog_) {
      if (!simulated_processes) dog_.enter(limit);
    }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;
    ~Watched() { dog_.leave(); }

   private:
    Watchdog& dog_;
  };

  /// Returns `bytes` of shared memory for each process of the node, or nothing on all of them;
  /// `handles` owns it from now on. Collective over: all processes.
  SharedMemory take_memory(Index bytes, MpiHandles& handles) {
    NodeMemory taken = spare_.take(bytes);
    if (taken.all == nullptr) taken = share(bytes, true);
    if (taken.all == nullptr) return {};
    handles.memories.push_back(taken);
    return taken.memory();
  }

 private:
  static void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  void progress() const {
    int found = 0;
    check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &found, MPI_STATUS_IGNORE), "MPI_Iprobe");
  }

  /// Shares memory of the node where all find room. Collective over: its processes.
  NodeMemory share(Index bytes, bool room) {
    if (simulated_processes) return {};
    return share_on_node(bytes, room, node_, [&](MPI_Request* request, const char* function) {
      wait(request, 1, automatic_, function);
    });
  }

  void find_processes() {
    processes_.resize(static_cast<std::size_t>(size_));
    std::vector<int> own(processes_.size());
    for (std::size_t i = 0; i < own.size(); ++i) own[i] = static_cast<int>(i);
    MPI_Group here = MPI_GROUP_NULL;
    MPI_Group world = MPI_GROUP_NULL;
    check(MPI_Comm_group(comm_, &here), "MPI_Comm_group");
    check(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
    check(MPI_Group_translate_ranks(here, size_, own.data(), world, processes_.data()),
          "MPI_Group_translate_ranks");
    MPI_Group_free(&here);
    MPI_Group_free(&world);
  }

  void open_blackboard() {
    int place_on_node = 0;
    check(MPI_Comm_rank(node_, &place_on_node), "MPI_Comm_rank");
    std::vector<int> ranks(static_cast<std::size_t>(node_size_));
    check(MPI_Allgather(&process_, 1, MPI_INT, ranks.data(), 1, MPI_INT, node_), "MPI_Allgather");
    places_on_node_.assign(static_cast<std::size_t>(size_), -1);
    for (int i = 0; i < node_size_; ++i)
      places_on_node_[static_cast<std::size_t>(ranks[static_cast<std::size_t>(i)])] = i;
    nodes_.resize(static_cast<std::size_t>(size_));
    const int least = *std::min_element(ranks.begin(), ranks.end());
    check(MPI_Allgather(&least, 1, MPI_INT, nodes_.data(), 1, MPI_INT, comm_), "MPI_Allgather");

    const Index bytes = static_cast<Index>(Blackboard::bytes_for(node_size_));
    if (place_on_node == 0) remove_left_files();
    board_memory_ = share(place_on_node == 0 ? bytes : 0, true);
    if (board_memory_.all == nullptr) return open_private_blackboard();
    board_ = std::make_unique<Blackboard>(board_memory_.part(0), places_on_node_);
  }

  /// Where the node has no shared memory left, a process sees only what it does itself.
  void open_private_blackboard() {
    private_board_.resize(Blackboard::bytes_for(1) / sizeof(Line) + 1);
    std::vector<int> slots(static_cast<std::size_t>(size_), -1);
    slots[static_cast<std::size_t>(process_)] = 0;
    board_ = std::make_unique<Blackboard>(private_board_.data(), slots);
  }

  static std::vector<MpiContext*>& all_contexts() {
    static std::vector<MpiContext*> all;
    return all;
  }
  void look() {
    if (const std::string text = standstill(*board_, process_); !text.empty())
      abort("[tessera] " + text, 1);
    tell_of_delay(*board_, process_, watchdog_.waited(), watchdog_.limit());
  }
  void late() { abort("[tessera] " + late_message(process_, watchdog_.limit(), *board_), 1); }

  MPI_Comm comm_ = MPI_COMM_NULL;
  MPI_Comm node_ = MPI_COMM_NULL;
  MpiOps ops_;
  int process_ = 0;
  int size_ = 1;
  int node_size_ = 1;
  std::vector<int> places_on_node_;
  std::vector<int> nodes_;
  std::vector<int> processes_;
  std::map<std::vector<int>, std::shared_ptr<MpiContext>> among_;
  Wait automatic_ = Wait::nap;
  int threads_ = 1;
  bool closed_ = false;
  std::unique_ptr<Blackboard> board_;
  struct alignas(64) Line {
    unsigned char bytes[64];
  };
  NodeMemory board_memory_;
  SpareMemory spare_;
  std::vector<Line> private_board_;  ///< replaces the board where there is no shared memory
  std::map<std::uint64_t, std::pair<bool, MpiHandles>> outstanding_;
  std::uint64_t opened_ = 0;
  std::uint64_t collected_ = 0;          ///< the value of opened_ at the last collect
  static inline int communicators_ = 0;  ///< in all contexts: MPI counts them together
  std::uint64_t closing_ = 0;
  double time_limit_;
  Watchdog watchdog_;
};

}  // namespace tessera::detail
