// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// MPI's collectives in two sizes under the same names: functions whose counts are int, and the
/// large-count functions of MPI 4, where the library has them (comm/mpi/detail/group.hpp can do
/// without).
///
///     template <class Calls> ...   Calls::all_gather(send, n, type, receive, n, type, comm)
///
/// Laws: both do the same; they differ only in the largest count.
#include <mpi.h>

#include <tessera/mesh/call.hpp>

// A test sets it to 0, to act like an MPI before 4.0.
#if !defined(TESSERA_MPI_LARGE_COUNTS)
#define TESSERA_MPI_LARGE_COUNTS (MPI_VERSION >= 4)
#endif

namespace tessera::detail {

struct SmallCalls {
  using Count = int;
  using Shift = int;
  static constexpr auto all_gather = MPI_Allgather;
  static constexpr auto all_gather_v = MPI_Allgatherv;
  static constexpr auto reduce_scatter_block = MPI_Reduce_scatter_block;
  static constexpr auto reduce_scatter = MPI_Reduce_scatter;
  static constexpr auto all_to_all = MPI_Alltoall;
  static constexpr auto all_to_all_v = MPI_Alltoallv;
  static constexpr auto all_reduce = MPI_Allreduce;
  static constexpr auto broadcast = MPI_Bcast;
  static constexpr auto start_all_gather = MPI_Iallgather;
  static constexpr auto start_all_gather_v = MPI_Iallgatherv;
  static constexpr auto start_reduce_scatter_block = MPI_Ireduce_scatter_block;
  static constexpr auto start_reduce_scatter = MPI_Ireduce_scatter;
  static constexpr auto start_all_to_all = MPI_Ialltoall;
  static constexpr auto start_all_to_all_v = MPI_Ialltoallv;
  static constexpr auto start_all_reduce = MPI_Iallreduce;
  static constexpr auto start_broadcast = MPI_Ibcast;
  static constexpr auto start_send = MPI_Isend;
  static constexpr auto start_receive = MPI_Irecv;
};

#if TESSERA_MPI_LARGE_COUNTS
struct LargeCalls {
  using Count = MPI_Count;
  using Shift = MPI_Aint;
  static constexpr auto all_gather = MPI_Allgather_c;
  static constexpr auto all_gather_v = MPI_Allgatherv_c;
  static constexpr auto reduce_scatter_block = MPI_Reduce_scatter_block_c;
  static constexpr auto reduce_scatter = MPI_Reduce_scatter_c;
  static constexpr auto all_to_all = MPI_Alltoall_c;
  static constexpr auto all_to_all_v = MPI_Alltoallv_c;
  static constexpr auto all_reduce = MPI_Allreduce_c;
  static constexpr auto broadcast = MPI_Bcast_c;
  static constexpr auto start_all_gather = MPI_Iallgather_c;
  static constexpr auto start_all_gather_v = MPI_Iallgatherv_c;
  static constexpr auto start_reduce_scatter_block = MPI_Ireduce_scatter_block_c;
  static constexpr auto start_reduce_scatter = MPI_Ireduce_scatter_c;
  static constexpr auto start_all_to_all = MPI_Ialltoall_c;
  static constexpr auto start_all_to_all_v = MPI_Ialltoallv_c;
  static constexpr auto start_all_reduce = MPI_Iallreduce_c;
  static constexpr auto start_broadcast = MPI_Ibcast_c;
  static constexpr auto start_send = MPI_Isend_c;
  static constexpr auto start_receive = MPI_Irecv_c;
};
#endif

/// Who sends a broadcast, and where its data lie or are to lie.
struct Broadcast {
  int root = -1;  ///< -1: there is nothing to send
  char* data = nullptr;
};
/// MPI only reads what the sender has.
inline Broadcast broadcast_of(const Call& call, int own, const char* send, char* receive) {
  const Index size = static_cast<Index>(size_of(call.type));
  if (!call.send.empty()) return {own, const_cast<char*>(send) + call.send.front().offset * size};
  if (call.receive.empty()) return {};
  return {call.receive.front().peer, receive + call.receive.front().offset * size};
}

}  // namespace tessera::detail
