// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Makes the shared memory of a SharedTeam for the members of one communicator, or finds that there
/// is not enough.
///
///     auto team = make_shared_team(context, handles, comm, {0, 2}, settings);
///     if (team != nullptr) team->run(...);
///
/// Laws: all members get a team or none does; its memory is freed with its communicator.
#include <mpi.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <tessera/comm/mpi/detail/context.hpp>
#include <tessera/comm/shared/team.hpp>

namespace tessera::detail {

/// Touches [memory, memory + bytes), whole pages. Returns false when the node has no more memory,
/// which would otherwise be a SIGBUS at some later touch. Linux before 5.14 does not offer this
/// test.
inline bool populate(void* memory, Index bytes) {
#if defined(MADV_POPULATE_WRITE)
  constexpr int advice = MADV_POPULATE_WRITE;
#else
  constexpr int advice = 23;
#endif
  return madvise(memory, static_cast<std::size_t>(bytes), advice) == 0 || errno == EINVAL;
}

/// `members` are numbers of processes in the context, all on this node, in the order of `comm`.
/// Collective over: the members. Communication: small all-gathers and all-reduces.
inline std::unique_ptr<SharedTeam> make_shared_team(MpiContext& context, MpiHandles& handles,
                                                    MPI_Comm comm, const std::vector<int>& members,
                                                    const TransportSettings& settings) {
  constexpr Index page = NodeMemory::page;
  const auto size = static_cast<Index>(members.size());
  const Index half = round_up(max_of(settings.shared_stage / 2, 64 * size), page);
  const Index head = round_up(static_cast<Index>(flag_bytes), page);
  const Index bytes = head + 2 * half;
  const auto wait = [&](MPI_Request* request, const char* function) {
    context.wait(request, 1, settings.wait, function);
  };
  const bool room = shared_memory_has(bytes, context.node_size());
  const NodeMemory memory = share_on_node(bytes, room, comm, wait);
  if (memory.all == nullptr) return nullptr;
  handles.keep(comm, memory);
  int there = populate(memory.memory().base, bytes) ? 1 : 0;
  if (there != 0) {
    auto* const flags = memory.part(memory.own);
    new (flags) SharedFlags{};
    for (std::size_t i = 0; i < max_shared_blocks; ++i)
      new (flags + sizeof(SharedFlags) + i * sizeof(SharedTurns)) SharedTurns{};
  }
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallreduce(MPI_IN_PLACE, &there, 1, MPI_INT, MPI_MIN, comm, &request),
        "MPI_Iallreduce");
  wait(&request, "MPI_Iallreduce");
  if (there == 0) return nullptr;  // from here on all flags are zero

  std::vector<SharedMember> team;
  for (int i = 0; i < static_cast<int>(members.size()); ++i) {
    std::byte* part = memory.part(i);
    SharedMember member{std::launder(reinterpret_cast<SharedFlags*>(part)), part + head, nullptr};
    if (!handles.memories.empty())
      member.arena = handles.memories.front().part(
          context.place_on_node(members[static_cast<std::size_t>(i)]));
    team.push_back(member);
  }
  SharedMemory arena;
  if (!handles.memories.empty()) arena = handles.memories.front().memory();
  return std::make_unique<SharedTeam>(std::move(team), memory.own, half,
                                      static_cast<const std::byte*>(arena.base), arena.bytes);
}

}  // namespace tessera::detail
