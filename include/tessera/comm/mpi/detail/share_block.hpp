// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Makes a block of the arena readable for the members of a group, who all are on one node.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <tessera/comm/mpi/detail/context.hpp>
#include <tessera/comm/mpi/detail/repeated.hpp>
#include <tessera/comm/mpi/detail/shared_team.hpp>

namespace tessera::detail {

/// Returns the blocks of all members, or nullptr on all when one of them cannot be read by the
/// others. Collective over: the group, by one all-gather.
inline std::unique_ptr<SharedBlock> share_block(const std::shared_ptr<MpiHandles>& handles,
                                                const std::shared_ptr<MpiContext>& context,
                                                const TransportSettings& settings, MPI_Comm comm,
                                                SharedTeam& team,
                                                const std::shared_ptr<TurnPlaces>& places,
                                                int own_place, int size, const void* block,
                                                Index bytes) {
  std::size_t place = 0;
  while (place < places->size() && (*places)[place]) ++place;
  // Where the block lies, where its turns lie, and where the turns begin.
  std::int64_t own[4] = {team.offset_in_arena(block, bytes), -1, 0, 0};
  SharedTurns* turns = team.member(own_place).turns() + place;
  if (place < places->size()) {
    own[1] = static_cast<std::int64_t>(place);
    own[2] = static_cast<std::int64_t>(turns->offered.load(std::memory_order_relaxed));
    own[3] = static_cast<std::int64_t>(turns->read.load(std::memory_order_relaxed));
  }
  std::vector<std::int64_t> all(4 * static_cast<std::size_t>(size));
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(own, 4, MPI_INT64_T, all.data(), 4, MPI_INT64_T, comm, &request),
        "MPI_Iallgather");
  context->wait(&request, 1, settings.wait, "MPI_Iallgather");
  std::vector<SharedBlock::Member> members;
  for (int member = 0; member < size; ++member) {
    const std::int64_t* facts = all.data() + 4 * member;
    if (facts[0] < 0 || facts[1] < 0) return nullptr;
    members.push_back({team.member(member).arena + facts[0], team.member(member).turns() + facts[1],
                       static_cast<std::uint64_t>(facts[2]), static_cast<std::uint64_t>(facts[3]),
                       reinterpret_cast<std::uintptr_t>(team.member(member).arena)});
  }
  (*places)[place] = true;
  return std::make_unique<MpiSharedBlock>(
      handles, context, settings, own_place, *turns, std::move(members),
      static_cast<std::uintptr_t>(team.arena_bytes()), places, place);
}

}  // namespace tessera::detail
