// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The group of one process: a call is a copy. It needs no communicator, and avoids MPICH 4.0's
/// MPI_Iallgatherv, which ignores the displacement when there is one process.
///
///     SoloGroup().run(call, send, receive);
///
/// Laws: like every group with one member.
#include <cstddef>
#include <vector>

#include <tessera/comm/detail/local_collective.hpp>
#include <tessera/comm/transport.hpp>

namespace tessera::detail {

class SoloGroup final : public Group {
 public:
  int own() const override { return 0; }
  int size() const override { return 1; }
  void run(const Call& call, const void* send, void* receive) override {
    party_[0] = {&call, static_cast<const std::byte*>(send), static_cast<std::byte*>(receive)};
    if (call.kind != Collective::all_reduce)
      fill(party_, 0);
    else if (!call.in_place)
      deliver(party_[0],
              party_[0].send + call.send.front().offset * static_cast<Index>(size_of(call.type)));
  }

 private:
  std::vector<Party> party_ = std::vector<Party>(1);
};

}  // namespace tessera::detail
