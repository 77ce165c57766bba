// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// MPI's return codes as exceptions.
///
///     check(MPI_Barrier(comm), "MPI_Barrier");
///
/// Laws: MPI_SUCCESS passes; everything else is a CommunicationError with function, code, class and
/// text.
#include <mpi.h>

#include <string>

#include <tessera/base/error.hpp>

namespace tessera::detail {

[[noreturn]] inline void throw_mpi_error(int code, const char* function) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  int error_class = 0;
  MPI_Error_class(code, &error_class);
  MPI_Error_string(code, text, &length);
  throw CommunicationError(std::string(function) + " failed with code " + std::to_string(code) +
                           " of class " + std::to_string(error_class) + ": " +
                           std::string(text, static_cast<std::size_t>(length)));
}

inline void check(int code, const char* function) {
  if (code != MPI_SUCCESS) throw_mpi_error(code, function);
}

/// Returns whether MPI may be called: initialized and not yet finalized.
inline bool mpi_is_up() {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

/// Throws UsageError unless MPI may be called.
inline void require_mpi(Where where = {}) {
  if (mpi_is_up()) return;
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (initialized == 0)
    throw UsageError(
        "MPI is not initialized; make a tessera::Environment first, or call MPI_Init_thread",
        where);
  throw UsageError(
      "MPI has been finalized, and cannot be initialized again; finalize it after the last mesh "
      "and "
      "operator, or leave it to one tessera::Environment, which lives as long as the program needs "
      "it",
      where);
}

}  // namespace tessera::detail
