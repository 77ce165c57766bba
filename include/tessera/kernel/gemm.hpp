// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Batches of matrix products, the local part of every einsum. float and double go to BLAS (large
/// float products to oneDNN, with TESSERA_HAVE_DNNL), on CUDA to cuBLAS; integers and unusual
/// strides to a kernel of our own.
///
///     const Gemm g{.m = 2, .n = 3, .k = 4, .lda = 4, .ldb = 3, .ldc = 3};
///     gemm(DType::f32, g, a, b, c);                  // C = A B
///     gemm(DType::f32, g, a, b, c, 1.0);             // C += A B
///
/// Laws: k == 0 gives zeros (or leaves C, with beta 1); with beta 0, what C held does not matter,
/// NaN or not; integers are exact modulo 2^32 or 2^64.
#include <tessera/base/dtype.hpp>
#include <tessera/base/error.hpp>
#include <tessera/kernel/detail/blas.hpp>
#include <tessera/kernel/detail/cublas.hpp>
#include <tessera/kernel/detail/gemm_shape.hpp>
#include <tessera/kernel/detail/gemm_tiles.hpp>

namespace tessera {
namespace detail {

/// Which library multiplies floats. Measured on one core of an AMD EPYC 9004 (AVX-512; OpenBLAS
/// 0.3.21 with its Cooperlake kernels, oneDNN 2.6.3), in GFLOP/s:
///
///     m, n, k           OpenBLAS   oneDNN          m, n, k           OpenBLAS   oneDNN
///     8, 8, 8                 27        4          1024, 1024, 1024       102      109
///     32, 32, 32             108       78          4, 512, 512             40      106
///     64, 64, 64             115       98          2048, 512, 16           81       99
///     128, 128, 128          100      114          64, 2048, 64            79       97
///
/// and where OpenBLAS does not know the CPU ("Prescott"), oneDNN is up to five times faster. So the
/// size alone decides, and the same product takes the same path on every process.
inline constexpr Index dnnl_from = Index{1} << 18;

inline bool use_dnnl(float, Index work) {
#if defined(TESSERA_HAVE_DNNL)
  return work >= dnnl_from;
#else
  return work < 0;
#endif
}
inline bool use_dnnl(double, Index) { return false; }

#if defined(TESSERA_HAVE_DNNL)
inline void dnnl_gemm(const GemmShape& g, Index m, float beta, const float* a, const float* b,
                      float* c) {
  const int status = tessera_dnnl_sgemm(g.transpose_a ? 'T' : 'N', g.transpose_b ? 'T' : 'N', m,
                                        g.n, g.k, 1.0f, a, g.lda, b, g.ldb, beta, c, g.ldc);
  if (status != 0)
    throw MemoryError("dnnl_sgemm failed; it does so when it cannot have its workspace");
}
#else
inline void dnnl_gemm(const GemmShape&, Index, float, const float*, const float*, float*) {}
#endif
inline void dnnl_gemm(const GemmShape&, Index, double, const double*, const double*, double*) {}

/// Host: an index is one product of the batch.
template <class T> struct GemmBatch {
  GemmShape g;
  bool dnnl;
  T beta;
  const T* a;
  const T* b;
  T* c;
  void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      const T* x = a + g.a_offset(i);
      const T* y = b + g.b_offset(i);
      T* z = c + g.c_offset(i);
      if (dnnl)
        dnnl_gemm(g, g.m, beta, x, y, z);
      else
        split_gemm(g.transpose_a, g.transpose_b, g.m, g.n, g.k, x, g.lda, y, g.ldb, beta, z, g.ldc);
    }
  }
};

template <class T> void gemm_host(const GemmShape& g, T beta, const T* a, const T* b, T* c) {
  const Index work = saturating_mul(g.m, saturating_mul(g.n, g.k));
  const bool dnnl = use_dnnl(T{}, work);
  const GemmBatch<T> kernel{g, dnnl, beta, a, b, c};
  // oneDNN may be called by many threads at once; BLAS threads by itself, or must not be.
  if (dnnl && g.batches >= host_threads() && saturating_mul(work, g.batches) >= 1000000)
    launch("tessera::gemm", g.batches, 1, kernel);
  else
    kernel.run(0, g.batches);
}

template <class T> void gemm_floats(const GemmShape& g, T beta, const T* a, const T* b, T* c) {
  const bool narrow = max_of(g.lda, max_of(g.ldb, g.ldc)) <= blas_limit;
  if (g.k == 0 || !g.fits_blas() || (kernels_on_host && !narrow))
    return gemm_tiles<T>(g, beta != 0, a, b, c);
  if constexpr (kernels_on_host) return gemm_host(g, beta, a, b, c);
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (std::is_same_v<Kokkos::DefaultExecutionSpace, Kokkos::Cuda>)
    return cublas_gemm(g, beta, a, b, c);
#endif
  if constexpr (!kernels_on_host) gemm_tiles<T>(g, beta != 0, a, b, c);
}
}  // namespace detail

/// Computes C = A B + beta C for every product of the batch, in row-major order; beta is 0 or 1.
/// Products must not overlap in C. Communication: none.
inline void gemm(DType type, const Gemm& work, const void* a, const void* b, void* c,
                 double beta = 0) {
  const detail::GemmShape g = detail::gemm_shape(work);
  if (g.m <= 0 || g.n <= 0 || g.batches <= 0) return;
  switch (type) {
    case DType::f32:
      return detail::gemm_floats(g, static_cast<float>(beta), static_cast<const float*>(a),
                                 static_cast<const float*>(b), static_cast<float*>(c));
    case DType::f64:
      return detail::gemm_floats(g, beta, static_cast<const double*>(a),
                                 static_cast<const double*>(b), static_cast<double*>(c));
    case DType::i32:
      return detail::gemm_tiles<std::uint32_t>(g, beta != 0, a, b, c);
    case DType::i64:
      return detail::gemm_tiles<std::uint64_t>(g, beta != 0, a, b, c);
    default:
      throw UsageError("no kernel multiplies elements of " + std::string(name_of(type)));
  }
}

}  // namespace tessera
