// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Batched matrix products on a CUDA device by cuBLAS, on this thread's lane. For
/// row-major operands, cuBLAS computes the transposed product.
///
///     cublas_gemm(shape, 0.0f, a, b, c);
#include <Kokkos_Core.hpp>

#if defined(KOKKOS_ENABLE_CUDA)
#include <string>
#include <type_traits>

#include <cublas_v2.h>

#include <tessera/base/dtype.hpp>
#include <tessera/base/error.hpp>
#include <tessera/kernel/detail/gemm_shape.hpp>
#include <tessera/kernel/lane.hpp>

namespace tessera::detail {

inline void check_cublas(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Error(
        std::string(call) + " failed: " + cublasGetStatusString(status) +
        "; the device's memory may be full, or its driver older than the CUDA this was built with");
}

/// A lane's handle, which launches on its stream.
struct Cublas {
  cublasHandle_t handle = nullptr;
  explicit Cublas(const Lane& lane) {
    check_cublas(cublasCreate(&handle), "cublasCreate");
    check_cublas(cublasSetStream(handle, lane.space().cuda_stream()), "cublasSetStream");
  }
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;
  ~Cublas() { cublasDestroy(handle); }
};

inline float one_of(float) { return 1; }
inline double one_of(double) { return 1; }
inline cuComplex one_of(cuComplex) { return {1, 0}; }
inline cuDoubleComplex one_of(cuDoubleComplex) { return {1, 0}; }

template <class T, class Call, class E, class R>
void cublas_batches(const GemmShape& g, Call call, T beta, const E* a, const E* b, R* c) {
  const cublasHandle_t handle = lane().own<Cublas>().handle;
  const cublasOperation_t op_a = g.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t op_b = g.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const T one = one_of(beta);
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
inline void cublas_gemm(const GemmShape& g, complex<float> beta, const complex<float>* a,
                        const complex<float>* b, complex<float>* c) {
  const auto z = [](const auto* p) { return reinterpret_cast<const cuComplex*>(p); };
  cublas_batches(g, cublasCgemmStridedBatched_64, *z(&beta), z(a), z(b),
                 reinterpret_cast<cuComplex*>(c));
}
inline void cublas_gemm(const GemmShape& g, complex<double> beta, const complex<double>* a,
                        const complex<double>* b, complex<double>* c) {
  const auto z = [](const auto* p) { return reinterpret_cast<const cuDoubleComplex*>(p); };
  cublas_batches(g, cublasZgemmStridedBatched_64, *z(&beta), z(a), z(b),
                 reinterpret_cast<cuDoubleComplex*>(c));
}
/// Half types, to the same or to float: summed in float.
template <class Format, class R>
void cublas_gemm(const GemmShape& g, float beta, const ShortFloat<Format>* a,
                 const ShortFloat<Format>* b, R* c) {
  constexpr cudaDataType type = std::is_same_v<ShortFloat<Format>, half> ? CUDA_R_16F : CUDA_R_16BF;
  constexpr cudaDataType result = std::is_same_v<R, float> ? CUDA_R_32F : type;
  const auto call = [&](cublasHandle_t handle, cublasOperation_t op_b, cublasOperation_t op_a,
                        std::int64_t n, std::int64_t m, std::int64_t k, const float* one,
                        const auto* right, std::int64_t ldb, long long step_b, const auto* left,
                        std::int64_t lda, long long step_a, const float* scale, auto* out,
                        std::int64_t ldc, long long step_c, std::int64_t batches) {
    return cublasGemmStridedBatchedEx_64(handle, op_b, op_a, n, m, k, one, right, type, ldb, step_b,
                                         left, type, lda, step_a, scale, out, result, ldc, step_c,
                                         batches, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  };
  cublas_batches(g, call, beta, a, b, c);
}

}  // namespace tessera::detail
#endif
