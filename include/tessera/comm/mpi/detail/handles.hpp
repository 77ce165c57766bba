// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Communicators and shared memory that are freed together.
///
///     handles.add(key, comm);
///     handles.keep(comm, memory);
///     handles.free_comms();
///
/// Laws: all processes free communicators in the same order.
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tessera/comm/mpi/detail/node_memory.hpp>

namespace tessera::detail {

/// A communicator and, if there is any, the shared memory of its group alone; all its processes
/// sort it by the same key.
struct MpiComm {
  std::uint64_t key = 0;
  MPI_Comm comm = MPI_COMM_NULL;
  NodeMemory memory = {};
};

/// Communicators and shared memory of one transport, to be freed together.
struct MpiHandles {
  std::vector<MpiComm> comms;
  std::vector<NodeMemory> memories;  ///< of the node

  void add(std::uint64_t key, MPI_Comm comm) { comms.push_back({key, comm}); }
  /// Frees `memory` together with `comm` from now on.
  void keep(MPI_Comm comm, const NodeMemory& memory) {
    for (MpiComm& entry : comms)
      if (entry.comm == comm) entry.memory = memory;
  }

  void free_comms() {
    std::sort(comms.begin(), comms.end(),
              [](const MpiComm& a, const MpiComm& b) { return a.key < b.key; });
    for (MpiComm& entry : comms) check(MPI_Comm_free(&entry.comm), "MPI_Comm_free");
    comms.clear();
  }
};

/// Returns a duplicate of the user's communicator whose errors come back as codes. The user's own
/// handler, which may end the program, does not see an error of this call.
inline MPI_Comm copy_of(MPI_Comm user) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Errhandler users = MPI_ERRHANDLER_NULL;
  check(MPI_Comm_get_errhandler(user, &users), "MPI_Comm_get_errhandler");
  check(MPI_Comm_set_errhandler(user, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  const int code = MPI_Comm_dup(user, &comm);
  if (users != MPI_ERRHANDLER_NULL) {  // SMPI's default
    check(MPI_Comm_set_errhandler(user, users), "MPI_Comm_set_errhandler");
    check(MPI_Errhandler_free(&users), "MPI_Errhandler_free");
  }
  check(code, "MPI_Comm_dup");
  check(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return comm;
}

}  // namespace tessera::detail
