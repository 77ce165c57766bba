// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Batched matrix products on a CUDA device by cuBLAS, on the default execution space's stream.
/// Row-major: the product is asked for transposed.
///
///     cublas_gemm(shape, 0.0f, a, b, c);
#include <Kokkos_Core.hpp>

#if defined(KOKKOS_ENABLE_CUDA)
#include <string>

#include <cublas_v2.h>

#include <tessera/base/error.hpp>
#include <tessera/kernel/detail/gemm_shape.hpp>

namespace tessera::detail {

inline void check_cublas(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(
        std::string(call) + " failed: " + cublasGetStatusString(status) +
        "; the device's memory may be full, or its driver older than the CUDA this was built with");
}

/// Returns this process's handle, made at the first call and destroyed in Kokkos::finalize.
inline cublasHandle_t cublas() {
  static const cublasHandle_t handle = [] {
    cublasHandle_t made = nullptr;
    check_cublas(cublasCreate(&made), "cublasCreate");
    Kokkos::push_finalize_hook([made] { cublasDestroy(made); });
    return made;
  }();
  check_cublas(cublasSetStream(handle, Kokkos::Cuda{}.cuda_stream()), "cublasSetStream");
  return handle;
}

template <class T, class Call>
void cublas_batches(const GemmShape& g, Call call, T beta, const T* a, const T* b, T* c) {
  const cublasHandle_t handle = cublas();
  const cublasOperation_t op_a = g.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t op_b = g.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const T one = 1;
  const int last = g.rank - 1;
  const Index inner = last >= 0 ? g.batch[last] : 1;
  for (Index i = 0; i < g.batches; i += inner)
    check_cublas(call(handle, op_b, op_a, g.n, g.m, g.k, &one, b + g.b_offset(i), g.ldb,
                      last >= 0 ? g.b_stride[last] : 0, a + g.a_offset(i), g.lda,
                      last >= 0 ? g.a_stride[last] : 0, &beta, c + g.c_offset(i), g.ldc,
                      last >= 0 ? g.c_stride[last] : 0, inner),
                 "cublasGemmStridedBatched");
}

inline void cublas_gemm(const GemmShape& g, float beta, const float* a, const float* b, float* c) {
  cublas_batches(g, cublasSgemmStridedBatched_64, beta, a, b, c);
}
inline void cublas_gemm(const GemmShape& g, double beta, const double* a, const double* b,
                        double* c) {
  cublas_batches(g, cublasDgemmStridedBatched_64, beta, a, b, c);
}

}  // namespace tessera::detail
#endif
