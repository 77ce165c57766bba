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

}  // namespace tessera::detail
