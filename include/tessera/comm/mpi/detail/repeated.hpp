// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What a repeated exchange keeps under MPI from one start to the next: requests that are made
/// once, and places for the turns of shared blocks.
///
///     MpiRepeated exchange(handles, context, settings, comm, call, send, receive);
///     exchange.start();   exchange.wait();
///
/// Laws: each start sends a message for each piece of the call; requests are freed before their
/// communicator.
#include <mpi.h>

#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <tessera/comm/mpi/detail/context.hpp>
#include <tessera/comm/mpi/detail/shared_team.hpp>

namespace tessera::detail {

/// An exchange whose counts fit an int, by persistent requests (MPI 4.0, 3.9).
class MpiRepeated final : public RepeatedCall {
 public:
  MpiRepeated(std::shared_ptr<MpiHandles> handles, std::shared_ptr<MpiContext> context,
              const TransportSettings& settings, MPI_Comm comm, const Call& call, const void* send,
              void* receive)
      : handles_(std::move(handles)), context_(std::move(context)), settings_(settings) {
    constexpr int tag = 1;
    const MPI_Datatype type = mpi_type(call.type);
    const Index size = static_cast<Index>(size_of(call.type));
    for (const Piece& piece : call.receive)
      if (piece.count > 0)
        check(MPI_Recv_init(static_cast<char*>(receive) + piece.offset * size,
                            static_cast<int>(piece.count), type, piece.peer, tag, comm,
                            &requests_.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Recv_init");
    for (const Piece& piece : call.send)
      if (piece.count > 0)
        check(MPI_Send_init(static_cast<const char*>(send) + piece.offset * size,
                            static_cast<int>(piece.count), type, piece.peer, tag, comm,
                            &requests_.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Send_init");
  }
  MpiRepeated(const MpiRepeated&) = delete;
  MpiRepeated& operator=(const MpiRepeated&) = delete;
  ~MpiRepeated() override {
    if (context_->closed() || !mpi_is_up()) return;
    for (MPI_Request& request : requests_)
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  }

  void start() override {
    context_->require_open();
    if (!requests_.empty())
      check(MPI_Startall(static_cast<int>(requests_.size()), requests_.data()), "MPI_Startall");
  }
  bool done() override {
    return MpiContext::done(requests_.data(), static_cast<int>(requests_.size()), "MPI_Test");
  }
  void wait() override {
    const MpiContext::Watched watched(*context_, settings_.time_limit);
    context_->wait(requests_.data(), static_cast<int>(requests_.size()), settings_.wait,
                   "MPI_Wait");
  }

 private:
  std::shared_ptr<MpiHandles> handles_;
  std::shared_ptr<MpiContext> context_;
  TransportSettings settings_;
  std::vector<MPI_Request> requests_;
};

/// Which places for turns of a group are taken.
using TurnPlaces = std::array<bool, max_shared_blocks>;

class MpiSharedBlock final : public SharedBlock {
 public:
  MpiSharedBlock(std::shared_ptr<MpiHandles> handles, std::shared_ptr<MpiContext> context,
                 const TransportSettings& settings, int own_place, SharedTurns& own,
                 std::vector<Member> members, std::uintptr_t reach,
                 std::shared_ptr<TurnPlaces> places, std::size_t place)
      : SharedBlock(own_place, own, std::move(members), reach),
        handles_(std::move(handles)),
        context_(std::move(context)),
        settings_(settings),
        places_(std::move(places)),
        place_(place) {}
  ~MpiSharedBlock() override { (*places_)[place_] = false; }

 private:
  void wait_until(Come come, const void* what) override {
    context_->require_open();
    const MpiContext::Watched watched(*context_, settings_.time_limit);
    context_->wait_until([&] { return come(what); }, settings_.wait);
  }

  std::shared_ptr<MpiHandles> handles_;
  std::shared_ptr<MpiContext> context_;
  TransportSettings settings_;
  std::shared_ptr<TurnPlaces> places_;
  std::size_t place_;
};

}  // namespace tessera::detail
