// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Element types and reductions as MPI's handles. MPI knows neither half nor bfloat16: they travel
/// as 16-bit integers, and operations of Tessera's own combine them. So do such operations for
/// maxima and minima of all floats, since MPI_MAX and MPI_MIN may lose a NaN, and their result
/// depends on the order of processes; for products of complex numbers, since MPI's differ from the
/// local kernels' at infinities; and for maxima and minima of unsigned integers, which MPICH 4.0
/// compares as signed.
///
///     MpiOps ops;   MPI_Allreduce(..., mpi_type(DType::f16), ops.get(DType::f16, Reduction::sum, false), ...);
///
/// Laws: Tessera's operations are made at the first request, alike on all processes, and freed with
/// the object that holds them; making and freeing are local.
#include <mpi.h>

#include <array>
#include <cstddef>

#include <tessera/comm/mpi/detail/calls.hpp>
#include <tessera/comm/mpi/detail/error.hpp>
#include <tessera/kernel/join.hpp>

namespace tessera::detail {

inline MPI_Datatype mpi_type(DType type) {
  switch (type) {
    case DType::f16:
    case DType::bf16:
      return MPI_UINT16_T;
    case DType::f32:
      return MPI_FLOAT;
    case DType::f64:
      return MPI_DOUBLE;
    case DType::c64:
      return MPI_C_FLOAT_COMPLEX;
    case DType::c128:
      return MPI_C_DOUBLE_COMPLEX;
    case DType::i8:
      return MPI_INT8_T;
    case DType::i16:
      return MPI_INT16_T;
    case DType::i32:
      return MPI_INT32_T;
    case DType::i64:
      return MPI_INT64_T;
    case DType::u8:
      return MPI_UINT8_T;
    case DType::u16:
      return MPI_UINT16_T;
    case DType::u32:
      return MPI_UINT32_T;
    case DType::u64:
      return MPI_UINT64_T;
    case DType::boolean:
      return MPI_C_BOOL;
  }
  return MPI_DATATYPE_NULL;
}

/// MPI calls it to combine elements: `inout` becomes `in` op `inout`.
template <DType type, Reduction reduction, class Count>
void combine_elements(void* in, void* inout, Count* count, MPI_Datatype*) {
  const void* const sources[] = {in, inout};
  join(type, reduction, sources, 2, static_cast<Index>(*count), inout);
}

class MpiOps {
 public:
  MpiOps() { own_.fill(MPI_OP_NULL); }
  MpiOps(const MpiOps&) = delete;
  MpiOps& operator=(const MpiOps&) = delete;

  /// Returns the operation, for calls with int counts or, with `large`, with MPI_Count ones.
  MPI_Op get(DType type, Reduction reduction, bool large) {
    if (reduction == Reduction::none) return MPI_OP_NULL;
    if (type == DType::f16) return own<DType::f16>(reduction, large);
    if (type == DType::bf16) return own<DType::bf16>(reduction, large);
    if (reduction == Reduction::max || reduction == Reduction::min) {
      if (type == DType::f32) return own<DType::f32>(reduction, large);
      if (type == DType::f64) return own<DType::f64>(reduction, large);
      if (type == DType::u8) return own<DType::u8>(reduction, large);
      if (type == DType::u16) return own<DType::u16>(reduction, large);
      if (type == DType::u32) return own<DType::u32>(reduction, large);
      if (type == DType::u64) return own<DType::u64>(reduction, large);
    }
#if !defined(MPICH_VERSION)
    // Open MPI 4.1 sums integers of 8 and 16 bits so that they stop at the ends of their range.
    if (reduction == Reduction::sum) {
      if (type == DType::i8) return own<DType::i8>(reduction, large);
      if (type == DType::i16) return own<DType::i16>(reduction, large);
      if (type == DType::u8) return own<DType::u8>(reduction, large);
      if (type == DType::u16) return own<DType::u16>(reduction, large);
    }
#endif
    if (reduction == Reduction::product) {
      if (type == DType::c64) return own<DType::c64>(reduction, large);
      if (type == DType::c128) return own<DType::c128>(reduction, large);
    }
    switch (reduction) {
      case Reduction::none:
        return MPI_OP_NULL;
      case Reduction::sum:
        return MPI_SUM;
      case Reduction::product:
        return MPI_PROD;
      case Reduction::max:
        return MPI_MAX;
      case Reduction::min:
        return MPI_MIN;
      case Reduction::any:
        return MPI_LOR;
      case Reduction::all:
        return MPI_LAND;
    }
    return MPI_OP_NULL;
  }

  /// Must be called before MPI_Finalize.
  void free() {
    for (MPI_Op& op : own_)
      if (op != MPI_OP_NULL) check(MPI_Op_free(&op), "MPI_Op_free");
  }

 private:
  template <DType type> MPI_Op own(Reduction reduction, bool large) {
    kernels_of<JoinKernels>(type);                             // throws here rather than within MPI
    if constexpr (!is_unsigned(type) || size_of(type) <= 2) {  // MPI sums and multiplies the others
      if (reduction == Reduction::sum) return made<type, Reduction::sum>(large);
      if (reduction == Reduction::product) return made<type, Reduction::product>(large);
    }
    if (reduction == Reduction::max) return made<type, Reduction::max>(large);
    if (reduction == Reduction::min) return made<type, Reduction::min>(large);
    return MPI_OP_NULL;
  }
  template <DType type, Reduction reduction> MPI_Op made(bool large) {
    MPI_Op& op = own_[static_cast<std::size_t>((static_cast<int>(type) * 2 + large) * reductions +
                                               static_cast<int>(reduction))];
    if (op != MPI_OP_NULL) return op;
#if TESSERA_MPI_LARGE_COUNTS
    if (large) {
      check(MPI_Op_create_c(&combine_elements<type, reduction, MPI_Count>, 1, &op),
            "MPI_Op_create_c");
      return op;
    }
#endif
    check(MPI_Op_create(&combine_elements<type, reduction, int>, 1, &op), "MPI_Op_create");
    return op;
  }

  std::array<MPI_Op, static_cast<std::size_t>(dtypes * 2 * reductions)> own_;
};

}  // namespace tessera::detail
