// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// MPI's return codes as exceptions, element types and reductions as MPI's handles.
///
///     check(MPI_Barrier(comm), "MPI_Barrier");
///
/// Laws: MPI_SUCCESS passes; everything else is a CommunicationError with function, code, class and
/// text.
#include <mpi.h>

#include <string>

#include <tessera/base/dtype.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/reduction.hpp>

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

inline MPI_Datatype mpi_type(DType type) {
  switch (type) {
    case DType::f64:
      return MPI_DOUBLE;
    case DType::f16:
    case DType::bf16:
      return MPI_UINT16_T;
    case DType::c64:
      return MPI_C_FLOAT_COMPLEX;
    case DType::c128:
      return MPI_C_DOUBLE_COMPLEX;
    case DType::i8:
      return MPI_INT8_T;
    case DType::i16:
      return MPI_INT16_T;
    case DType::u8:
      return MPI_UINT8_T;
    case DType::boolean:
      return MPI_C_BOOL;
    case DType::i32:
      return MPI_INT32_T;
    case DType::i64:
      return MPI_INT64_T;
    case DType::f32:
      break;
  }
  return MPI_FLOAT;
}

inline MPI_Op mpi_op(Reduction reduction) {
  return reduction == Reduction::max ? MPI_MAX : reduction == Reduction::min ? MPI_MIN : MPI_SUM;
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
