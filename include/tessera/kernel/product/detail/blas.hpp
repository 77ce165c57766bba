// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One matrix product or one sum of products on the host by BLAS; with oneDNN, which is optional,
/// also products of float.
///
///     host_gemm(false, false, 2, 3, 4, a, 4, b, 3, 0.0, c, 3);
///
/// oneDNN's prototype is declared here under another name, since its header costs 0.7 s; a test
/// compares the two.
// OpenBLAS 0.3.21 has a global `bfloat16`, which `using namespace tessera` would make ambiguous.
#define bfloat16 openblas_bfloat16
#include <cblas.h>
#undef bfloat16

#include <mutex>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <tessera/base/complex.hpp>
#include <tessera/base/math.hpp>

#if defined(TESSERA_HAVE_DNNL)
extern "C" int tessera_dnnl_sgemm(char transa, char transb, std::int64_t m, std::int64_t n,
                                  std::int64_t k, float alpha, const float* a, std::int64_t lda,
                                  const float* b, std::int64_t ldb, float beta, float* c,
                                  std::int64_t ldc) __asm__("dnnl_sgemm");
struct TesseraDnnlVersion {
  int major, minor, patch;
};
extern "C" const TesseraDnnlVersion* tessera_dnnl_version() __asm__("dnnl_version");
extern "C" int tessera_dnnl_isa() __asm__("dnnl_get_effective_cpu_isa");
#endif

namespace tessera::detail {

#if defined(TESSERA_HAVE_DNNL)
inline constexpr bool dnnl_is_here = true;
#else
inline constexpr bool dnnl_is_here = false;
#endif

inline CBLAS_TRANSPOSE blas_transpose(bool transpose) {
  return transpose ? CblasTrans : CblasNoTrans;
}

inline void blas_gemm(bool ta, bool tb, int m, int n, int k, const float* a, int lda,
                      const float* b, int ldb, float beta, float* c, int ldc) {
  cblas_sgemm(CblasRowMajor, blas_transpose(ta), blas_transpose(tb), m, n, k, 1.0f, a, lda, b, ldb,
              beta, c, ldc);
}
inline void blas_gemm(bool ta, bool tb, int m, int n, int k, const double* a, int lda,
                      const double* b, int ldb, double beta, double* c, int ldc) {
  cblas_dgemm(CblasRowMajor, blas_transpose(ta), blas_transpose(tb), m, n, k, 1.0, a, lda, b, ldb,
              beta, c, ldc);
}

inline void blas_gemm(bool ta, bool tb, int m, int n, int k, const complex<float>* a, int lda,
                      const complex<float>* b, int ldb, complex<float> beta, complex<float>* c,
                      int ldc) {
  const complex<float> one{1};
  cblas_cgemm(CblasRowMajor, blas_transpose(ta), blas_transpose(tb), m, n, k, &one, a, lda, b, ldb,
              &beta, c, ldc);
}
inline void blas_gemm(bool ta, bool tb, int m, int n, int k, const complex<double>* a, int lda,
                      const complex<double>* b, int ldb, complex<double> beta, complex<double>* c,
                      int ldc) {
  const complex<double> one{1};
  cblas_zgemm(CblasRowMajor, blas_transpose(ta), blas_transpose(tb), m, n, k, &one, a, lda, b, ldb,
              &beta, c, ldc);
}

/// y = A x, or the transpose's, added to what y holds; A is rows x columns as it is stored.
inline void blas_gemv(bool transpose, int rows, int columns, const float* a, int lda,
                      const float* x, int x_step, float* y, int y_step) {
  cblas_sgemv(CblasRowMajor, blas_transpose(transpose), rows, columns, 1.0f, a, lda, x, x_step,
              1.0f, y, y_step);
}
inline void blas_gemv(bool transpose, int rows, int columns, const double* a, int lda,
                      const double* x, int x_step, double* y, int y_step) {
  cblas_dgemv(CblasRowMajor, blas_transpose(transpose), rows, columns, 1.0, a, lda, x, x_step, 1.0,
              y, y_step);
}

/// The sum of n products, for n up to some thousands: so few that BLAS uses neither threads nor its
/// buffers.
inline float blas_dot(int n, const float* a, const float* b) { return cblas_sdot(n, a, 1, b, 1); }
inline double blas_dot(int n, const double* a, const double* b) {
  return cblas_ddot(n, a, 1, b, 1);
}
inline complex<float> blas_dot(int n, const complex<float>* a, const complex<float>* b) {
  complex<float> sum;
  cblas_cdotu_sub(n, a, 1, b, 1, &sum);
  return sum;
}
inline complex<double> blas_dot(int n, const complex<double>* a, const complex<double>* b) {
  complex<double> sum;
  cblas_zdotu_sub(n, a, 1, b, 1, &sum);
  return sum;
}

/// Returns whether BLAS is known to use one thread only.
inline bool blas_is_serial() {
#if defined(OPENBLAS_SEQUENTIAL)
  return openblas_get_parallel() == OPENBLAS_SEQUENTIAL;
#else
  return false;
#endif
}

/// Returns whether the threads of Kokkos may call BLAS side by side, each call on one thread: that
/// of OpenBLAS's OpenMP variant within a parallel region of OpenMP.
inline bool blas_is_for_each_thread() {
#if defined(OPENBLAS_OPENMP) && defined(KOKKOS_ENABLE_OPENMP)
  return openblas_get_parallel() == OPENBLAS_OPENMP &&
         std::is_same_v<Kokkos::DefaultHostExecutionSpace, Kokkos::OpenMP>;
#else
  return false;
#endif
}

/// OpenBLAS built for one thread (Debian's libopenblas0-serial 0.3.21) shares its buffers between
/// callers without a lock: two threads that multiply at once get wrong numbers. They take turns.
inline std::unique_lock<std::mutex> blas_turn() {
  static std::mutex turn;
  return blas_is_serial() ? std::unique_lock(turn) : std::unique_lock<std::mutex>();
}

/// The largest extent given to BLAS, whose integers have 32 bits.
inline constexpr Index blas_limit = Index{1} << 30;

/// C = A B + beta C through BLAS, in pieces no longer than `limit`. Leading dimensions must fit an
/// int. Where C is one row or column of real numbers OpenBLAS's gemm takes two to ten times as long
/// as its product of a matrix and a vector.
template <class T>
void split_gemm(bool ta, bool tb, Index m, Index n, Index k, const T* a, Index lda, const T* b,
                Index ldb, T beta, T* c, Index ldc, Index limit = blas_limit) {
  const auto narrow = [](Index i) { return static_cast<int>(i); };
  const auto turn = blas_turn();
  if constexpr (std::is_floating_point_v<T>)
    if ((m == 1 || n == 1) && max_of(m, max_of(n, k)) <= limit) {
      const Index step = n == 1 ? ldc : 1;
      for (Index i = 0; beta == T{0} && i < max_of(m, n); ++i) c[i * step] = T{0};
      if (n == 1)
        return blas_gemv(ta, narrow(ta ? k : m), narrow(ta ? m : k), a, narrow(lda), b,
                         narrow(tb ? 1 : ldb), c, narrow(step));
      return blas_gemv(!tb, narrow(tb ? n : k), narrow(tb ? k : n), b, narrow(ldb), a,
                       narrow(ta ? lda : 1), c, 1);
    }
  for (Index i = 0; i < m; i += limit)
    for (Index j = 0; j < n; j += limit)
      for (Index l = 0; l < k; l += limit)
        blas_gemm(ta, tb, narrow(min_of(limit, m - i)), narrow(min_of(limit, n - j)),
                  narrow(min_of(limit, k - l)), a + (ta ? l * lda + i : i * lda + l), narrow(lda),
                  b + (tb ? j * ldb + l : l * ldb + j), narrow(ldb), l == 0 ? beta : T{1},
                  c + i * ldc + j, narrow(ldc));
}

}  // namespace tessera::detail
