// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The transport between the processes of an MPI job. Only this header and comm/mpi/detail
/// know MPI.
///
///     auto transport = mpi_transport(MPI_COMM_WORLD);     // after MPI_Init_thread; or env.world()
///
/// Laws: calls of Tessera never meet the user's own: each transport has its own communicators. An
/// MPI error becomes a CommunicationError with function, code, class and text.
#include <mpi.h>

#include <memory>

#include <tessera/base/compiled.hpp>
#include <tessera/base/error.hpp>
#include <tessera/comm/transport.hpp>

namespace tessera {

/// Returns a transport between the processes of `comm`, over a duplicate of it: `comm` may be freed
/// afterwards. Meshes made from it have its settings unless their options differ. What transports
/// of one communicator share is made once, and kept as long as `comm`. Communication: a few small
/// collectives. Collective over: the processes of `comm`. Throws MeshError for MPI_COMM_NULL and
/// for an intercommunicator, CommunicationError, UsageError.
TESSERA_FUNCTION std::shared_ptr<Transport> mpi_transport(
    MPI_Comm comm, const TransportSettings& settings = detail::settings_from_environment(),
    Where where = Where::here());

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/comm/mpi/detail/transport.hpp>
#endif
