// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One context for all transports over one communicator of the user's, stored as an MPI attribute
/// of that communicator: meshes may be made and dropped in a loop without using up MPI's
/// communicators.
///
///     std::shared_ptr<MpiContext> context = shared_context(comm, time_limit, where);
///
/// Laws: the same communicator gives the same context until the environment has ended; freeing the
/// communicator releases the context, which frees nothing that is still in use.
#include <memory>

#include <tessera/comm/mpi/detail/context.hpp>

namespace tessera::detail {

inline int drop_context(MPI_Comm, int, void* value, void*) {
  delete static_cast<std::shared_ptr<MpiContext>*>(value);
  return MPI_SUCCESS;
}

/// Collective over: the processes of `comm`. Throws MeshError for an intercommunicator.
inline std::shared_ptr<MpiContext> shared_context(MPI_Comm comm, double time_limit, Where where) {
  require_mpi(where);
  int between_two = 0;
  check(MPI_Comm_test_inter(comm, &between_two), "MPI_Comm_test_inter");
  if (between_two != 0)
    throw MeshError(
        "a transport is made from an intercommunicator; a mesh is over the processes of one group; "
        "merge it with MPI_Intercomm_merge first",
        where);
  static const int key = [] {
    int made = MPI_KEYVAL_INVALID;
    check(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &drop_context, &made, nullptr),
          "MPI_Comm_create_keyval");
    return made;
  }();
  void* value = nullptr;
  int found = 0;
  check(MPI_Comm_get_attr(comm, key, static_cast<void*>(&value), &found), "MPI_Comm_get_attr");
  if (found != 0)
    if (const auto& context = *static_cast<std::shared_ptr<MpiContext>*>(value); !context->closed())
      return context;
  auto context = std::make_shared<MpiContext>(comm, time_limit);
  check(MPI_Comm_set_attr(comm, key, new std::shared_ptr<MpiContext>(context)),
        "MPI_Comm_set_attr");
  return context;
}

}  // namespace tessera::detail
