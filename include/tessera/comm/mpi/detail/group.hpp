// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Calls made through MPI: the plain function when call.even, else the v-form; blocking when the
/// process spins, else the nonblocking form and a nap; point to point for permutes and exchanges.
/// Where shared memory is on and all members are on one node, a call may go through shared memory
/// instead (comm/shared/setting.hpp), which the first such call sets up.
///
///     MpiGroup(handles, context, comm, members, settings).run(call, send, receive);
///
/// Laws: when MPI makes a call, the functions, groups, counts and displacements are exactly the
/// call's, unless counts do not fit an int and MPI has no functions for larger ones: then exchanges
/// go point to point, and reductions member by member, in pieces that fit. How a process waits does
/// not change a result's bits. Therefore reductions are always nonblocking where MPI is not MPICH
/// (Open MPI's blocking ones add in another order), and an even reduce-scatter of a napping process
/// is MPI_Ireduce_scatter with equal counts (MPICH 4.0's MPI_Ireduce_scatter_block adds in another
/// order than the blocking call between 0.5 and 2 MB).
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/comm/mpi/detail/calls.hpp>
#include <tessera/comm/mpi/detail/context.hpp>
#include <tessera/comm/mpi/detail/pending.hpp>
#include <tessera/comm/mpi/detail/repeated.hpp>
#include <tessera/comm/mpi/detail/share_block.hpp>
#include <tessera/comm/mpi/detail/shared_team.hpp>

namespace tessera::detail {

class MpiGroup final : public Group {
 public:
  /// `handles` own the communicator; `members` are numbers of processes in the context; the wait in
  /// `settings` is not automatic.
  MpiGroup(std::shared_ptr<MpiHandles> handles, std::shared_ptr<MpiContext> context, MPI_Comm comm,
           const std::vector<int>& members, const TransportSettings& settings)
      : handles_(std::move(handles)),
        context_(std::move(context)),
        comm_(comm),
        members_(members),
        settings_(settings) {
    check(MPI_Comm_rank(comm_, &own_), "MPI_Comm_rank");
    check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
    shares_ = settings_.shared != Shared::off && size_ > 1 &&
              std::all_of(members_.begin(), members_.end(),
                          [&](int member) { return context_->place_on_node(member) >= 0; });
  }

  int own() const override { return own_; }
  int size() const override { return size_; }
  Index shared_bytes() const override { return shared_bytes_; }
  bool takes_device_memory() const override { return settings_.device_memory; }

  std::unique_ptr<PendingCall> start(const Call& call, const void* send, void* receive) override {
    const bool large = is_large(call, settings_.large_count);
    const bool pieces = large && (settings_.large_in_pieces || !TESSERA_MPI_LARGE_COUNTS);
    if (pieces && call.channel == 0) {
      run(call, send, receive);
      return nullptr;
    }
    context_->require_open();
    auto pending = std::make_unique<MpiPending>(handles_, context_, settings_);
    // The counts must live as long as the requests.
    const MpiContext::Watched watched(*context_, settings_.time_limit);
    pending_ = &pending->requests;
    const auto forget = [this](void*) { pending_ = nullptr; };
    const std::unique_ptr<MpiGroup, decltype(forget)> guard(this, forget);
    const auto* from = static_cast<const char*>(send);
    auto* to = static_cast<char*>(receive);
    if (!large) run_with<SmallCalls>(call, from, to, pending->small);
    if (pieces) run_in_pieces(call, from, to);
#if TESSERA_MPI_LARGE_COUNTS
    if (large && !pieces) run_with<LargeCalls>(call, from, to, pending->large);
#endif
    return pending;
  }

  std::unique_ptr<RepeatedCall> repeated(const Call& call, const void* send,
                                         void* receive) override {
    context_->require_open();
    const bool point_to_point =
        call.kind == Collective::exchange || call.kind == Collective::collective_permute;
    if (!point_to_point || is_large(call, settings_.large_count))
      return Group::repeated(call, send, receive);
    return std::make_unique<MpiRepeated>(handles_, context_, settings_, comm_, call, send, receive);
  }

  std::unique_ptr<SharedBlock> share(const void* block, Index bytes) override {
    context_->require_open();
    const MpiContext::Watched watched(*context_, settings_.time_limit);
    if (!shares_ || !make_team()) return nullptr;
    if (places_ == nullptr) places_ = std::make_shared<TurnPlaces>();
    return share_block(handles_, context_, settings_, comm_, *team_, places_, own_, size_, block,
                       bytes);
  }

  void run(const Call& call, const void* send, void* receive) override {
    context_->require_open();
    const MpiContext::Watched watched(*context_, settings_.time_limit);
    if (shares_ && wants_windows(call) && run_in_windows(call, send, receive)) return;
    const auto* from = static_cast<const char*>(send);
    auto* to = static_cast<char*>(receive);
    if (!is_large(call, settings_.large_count)) return run_with<SmallCalls>(call, from, to, small_);
#if TESSERA_MPI_LARGE_COUNTS
    if (!settings_.large_in_pieces) return run_with<LargeCalls>(call, from, to, large_);
#endif
    run_in_pieces(call, from, to);
  }

 private:
  /// Returns the same on all members, which make their calls in the same order.
  bool wants_windows(const Call& call) {
    if (window_weight(call) >= settings_.shared_least) return true;
    return size_ == 2 && ++small_calls_ > settings_.shared_small_after;
  }
  /// Makes the shared team at the first call; returns whether there is one, the same on all
  /// members.
  bool make_team() {
    if (team_ == nullptr) {
      team_ = make_shared_team(*context_, *handles_, comm_, members_, settings_);
      shares_ = team_ != nullptr;  // asked once
    }
    return shares_;
  }
  /// Makes the call, or returns false on all members. Collective over: the group.
  bool run_in_windows(const Call& call, const void* send, void* receive) {
    if (!make_team()) return false;
    const auto wait = [&](auto come) { context_->wait_until(come, settings_.wait); };
    const bool reduces = call.reduction != Reduction::none;
    if (reduces || !team_->take(call, send, receive, wait)) {
      const bool in_steps = reduces || call.kind == Collective::all_gather ||
                            (call.kind == Collective::all_to_all && call.even);
      if (!in_steps) return false;
      team_->run(call, send, receive, wait);
    }
    shared_bytes_ += payload_bytes(call);
    return true;
  }

#if defined(MPICH_VERSION)
  static constexpr bool blocking_reductions = true;
#else
  static constexpr bool blocking_reductions = simulated_processes;
#endif

  template <class Calls>
  void run_with(const Call& call, const char* send, char* receive, MpiRows<Calls>& rows) {
    using Count = typename Calls::Count;
    const bool spin = settings_.wait == Wait::spin && pending_ == nullptr;
    const MPI_Datatype type = mpi_type(call.type);
    const MPI_Op op =
        context_->ops().get(call.type, call.reduction, !std::is_same_v<Calls, SmallCalls>);
    const Index size = static_cast<Index>(size_of(call.type));
    const auto count_of = [](const std::vector<Piece>& pieces) {
      return pieces.empty() ? Count{0} : static_cast<Count>(pieces.front().count);
    };
    const auto start_of = [&](const std::vector<Piece>& pieces) {
      return pieces.empty() ? 0 : pieces.front().offset * size;
    };
    const Count sends = count_of(call.send);
    const Count receives = count_of(call.receive);
    const char* from = send == nullptr ? nullptr : send + start_of(call.send);
    char* to = receive == nullptr ? nullptr : receive + start_of(call.receive);
    MPI_Request request = MPI_REQUEST_NULL;

    switch (call.kind) {
      case Collective::all_gather:
        if (call.even) {
          if (spin)
            return check(Calls::all_gather(from, sends, type, to, receives, type, comm_),
                         "MPI_Allgather");
          check(Calls::start_all_gather(from, sends, type, to, receives, type, comm_, &request),
                "MPI_Iallgather");
          return wait(request, "MPI_Iallgather");
        }
        fill_rows(call.receive, size_, rows.receive_counts, rows.receive_shifts);
        if (spin)
          return check(Calls::all_gather_v(from, sends, type, receive, rows.receive_counts.data(),
                                           rows.receive_shifts.data(), type, comm_),
                       "MPI_Allgatherv");
        check(Calls::start_all_gather_v(from, sends, type, receive, rows.receive_counts.data(),
                                        rows.receive_shifts.data(), type, comm_, &request),
              "MPI_Iallgatherv");
        return wait(request, "MPI_Iallgatherv");

      case Collective::reduce_scatter:
        if (call.even && spin && blocking_reductions)
          return check(Calls::reduce_scatter_block(from, to, receives, type, op, comm_),
                       "MPI_Reduce_scatter_block");
        fill_rows(call.send, size_, rows.send_counts, rows.send_shifts);
        if (spin && blocking_reductions)
          return check(Calls::reduce_scatter(from, to, rows.send_counts.data(), type, op, comm_),
                       "MPI_Reduce_scatter");
        check(Calls::start_reduce_scatter(from, to, rows.send_counts.data(), type, op, comm_,
                                          &request),
              "MPI_Ireduce_scatter");
        return wait(request, "MPI_Ireduce_scatter");

      case Collective::all_to_all:
        if (call.even) {
          if (spin)
            return check(Calls::all_to_all(from, sends, type, to, receives, type, comm_),
                         "MPI_Alltoall");
          check(Calls::start_all_to_all(from, sends, type, to, receives, type, comm_, &request),
                "MPI_Ialltoall");
          return wait(request, "MPI_Ialltoall");
        }
        fill_rows(call.send, size_, rows.send_counts, rows.send_shifts);
        fill_rows(call.receive, size_, rows.receive_counts, rows.receive_shifts);
        if (spin)
          return check(Calls::all_to_all_v(send, rows.send_counts.data(), rows.send_shifts.data(),
                                           type, receive, rows.receive_counts.data(),
                                           rows.receive_shifts.data(), type, comm_),
                       "MPI_Alltoallv");
        check(Calls::start_all_to_all_v(send, rows.send_counts.data(), rows.send_shifts.data(),
                                        type, receive, rows.receive_counts.data(),
                                        rows.receive_shifts.data(), type, comm_, &request),
              "MPI_Ialltoallv");
        return wait(request, "MPI_Ialltoallv");

      case Collective::all_reduce: {
        const void* input = call.in_place ? MPI_IN_PLACE : static_cast<const void*>(from);
        if (spin && blocking_reductions)
          return check(Calls::all_reduce(input, to, receives, type, op, comm_), "MPI_Allreduce");
        check(Calls::start_all_reduce(input, to, receives, type, op, comm_, &request),
              "MPI_Iallreduce");
        return wait(request, "MPI_Iallreduce");
      }

      case Collective::broadcast: {
        const auto [root, data] = broadcast_of(call, own_, send, receive);
        if (root < 0) return;
        const Count count = root == own_ ? sends : receives;
        if (spin) return check(Calls::broadcast(data, count, type, root, comm_), "MPI_Bcast");
        check(Calls::start_broadcast(data, count, type, root, comm_, &request), "MPI_Ibcast");
        return wait(request, "MPI_Ibcast");
      }

      case Collective::collective_permute:
      case Collective::exchange:
        return point_to_point<Calls>(call, send, receive, type, size);
    }
  }

  /// All receives are posted first; messages between two processes keep their order, so that calls
  /// of all members need one tag, and each channel one of its own.
  template <class Calls>
  void point_to_point(const Call& call, const char* send, char* receive, MPI_Datatype type,
                      Index size) {
    using Count = typename Calls::Count;
    const int tag = 1 + call.channel;
    begin_requests([&] {
      for (const Piece& piece : call.receive)
        if (piece.count > 0)
          check(Calls::start_receive(receive + piece.offset * size, static_cast<Count>(piece.count),
                                     type, piece.peer, tag, comm_, &one_more()),
                "MPI_Irecv");
      for (const Piece& piece : call.send)
        if (piece.count > 0)
          check(Calls::start_send(send + piece.offset * size, static_cast<Count>(piece.count), type,
                                  piece.peer, tag, comm_, &one_more()),
                "MPI_Isend");
    });
    wait_for_requests();
  }

  /// Makes the call from counts of at most settings_.large_count.
  void run_in_pieces(const Call& call, const char* send, char* receive) {
    const MPI_Datatype type = mpi_type(call.type);
    const MPI_Op op = context_->ops().get(call.type, call.reduction, false);
    const Index size = static_cast<Index>(size_of(call.type));
    const Index most = settings_.large_count;
    /// Calls f(first, count) for the pieces of [0, total).
    const auto cut = [&](Index total, auto f) {
      for (Index first = 0; first < total; first += most)
        f(first, static_cast<int>(min_of(most, total - first)));
    };
    switch (call.kind) {
      case Collective::all_reduce: {
        const char* from = send == nullptr ? nullptr : send + call.send.front().offset * size;
        char* to = receive + call.receive.front().offset * size;
        return cut(call.send.front().count, [&](Index first, int count) {
          MPI_Request request = MPI_REQUEST_NULL;
          check(MPI_Iallreduce(call.in_place ? MPI_IN_PLACE : from + first * size,
                               to + first * size, count, type, op, comm_, &request),
                "MPI_Iallreduce");
          wait(request, "MPI_Iallreduce");
        });
      }
      case Collective::reduce_scatter:
        for (const Piece& piece : call.send)
          cut(piece.count, [&](Index first, int count) {
            char* to = piece.peer == own_ ? receive + (call.receive.front().offset + first) * size
                                          : nullptr;
            MPI_Request request = MPI_REQUEST_NULL;
            check(MPI_Ireduce(send + (piece.offset + first) * size, to, count, type, op, piece.peer,
                              comm_, &request),
                  "MPI_Ireduce");
            wait(request, "MPI_Ireduce");
          });
        return;
      case Collective::broadcast: {
        const auto [root, data] = broadcast_of(call, own_, send, receive);
        if (root < 0) return;
        return cut((root == own_ ? call.send : call.receive).front().count,
                   [&, from = data, sender = root](Index first, int count) {
                     MPI_Request request = MPI_REQUEST_NULL;
                     check(MPI_Ibcast(from + first * size, count, type, sender, comm_, &request),
                           "MPI_Ibcast");
                     wait(request, "MPI_Ibcast");
                   });
      }
      case Collective::all_gather:
      case Collective::all_to_all:
      case Collective::collective_permute:
      case Collective::exchange:
        break;
    }
    const int tag = 1 + call.channel;
    begin_requests([&] {
      for (const Piece& piece : call.receive)
        cut(piece.count, [&](Index first, int count) {
          check(MPI_Irecv(receive + (piece.offset + first) * size, count, type, piece.peer, tag,
                          comm_, &one_more()),
                "MPI_Irecv");
        });
      const auto send_to = [&](const Piece& piece, int peer) {
        cut(piece.count, [&](Index first, int count) {
          check(MPI_Isend(send + (piece.offset + first) * size, count, type, peer, tag, comm_,
                          &one_more()),
                "MPI_Isend");
        });
      };
      for (const Piece& piece : call.send) {
        if (call.kind != Collective::all_gather) send_to(piece, piece.peer);
        for (int peer = 0; call.kind == Collective::all_gather && peer < size_; ++peer)
          send_to(piece, peer);
      }
    });
    wait_for_requests();
  }

  /// Posts receives and sends. When one fails, the earlier ones are cancelled: nothing may arrive
  /// in memory that its owner releases. (What was sent may be lost.)
  template <class F> void begin_requests(F post) {
    requests_.clear();
    try {
      post();
    } catch (...) {
      for (MPI_Request& request : requests_)
        if (request != MPI_REQUEST_NULL && MPI_Cancel(&request) == MPI_SUCCESS)
          MPI_Wait(&request, MPI_STATUS_IGNORE);
      requests_.clear();
      throw;
    }
  }
  void wait_for_requests() {
    if (pending_ != nullptr)
      pending_->swap(requests_);
    else if (!requests_.empty())
      context_->wait(requests_.data(), static_cast<int>(requests_.size()), settings_.wait,
                     "MPI_Wait");
  }
  MPI_Request& one_more() { return requests_.emplace_back(MPI_REQUEST_NULL); }
  void wait(MPI_Request& request, const char* function) {
    if (pending_ != nullptr) return pending_->push_back(request);
    context_->wait(&request, 1, settings_.wait, function);
  }

  std::shared_ptr<MpiHandles> handles_;
  std::shared_ptr<MpiContext> context_;
  MPI_Comm comm_;
  std::vector<int> members_;
  TransportSettings settings_;
  int own_ = 0;
  int size_ = 1;
  bool shares_ = false;
  std::unique_ptr<SharedTeam> team_;
  std::shared_ptr<TurnPlaces> places_;  ///< for turns of shared blocks
  Index shared_bytes_ = 0;
  Index small_calls_ = 0;
  MpiRows<SmallCalls> small_;
#if TESSERA_MPI_LARGE_COUNTS
  MpiRows<LargeCalls> large_;
#endif
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Request>* pending_ = nullptr;  ///< requests go here instead of being awaited
};

}  // namespace tessera::detail
