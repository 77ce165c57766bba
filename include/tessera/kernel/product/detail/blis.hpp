// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Matrix products on the host by BLIS, which is optional: any number of threads may call it at
/// once, with any strides.
///
///     if (blis_is_ready()) blis_gemm(2, 3, 4, a, 4, 1, b, 3, 1, 0.0, c, 3);
///
/// Its prototypes are declared here under other names, since its header declares cblas.h's types
/// anew. They are those of its versions 0.9 to 2.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include <tessera/base/complex.hpp>
#include <tessera/base/math.hpp>

#if defined(TESSERA_HAVE_BLIS)
#define TESSERA_BLIS_GEMM(letter)                                                                  \
  void tessera_bli_##letter##gemm(                                                                 \
      int trans_a, int trans_b, std::int64_t m, std::int64_t n, std::int64_t k, const void* alpha, \
      const void* a, std::int64_t a_row, std::int64_t a_column, const void* b, std::int64_t b_row, \
      std::int64_t b_column, const void* beta, void* c, std::int64_t c_row,                        \
      std::int64_t c_column) __asm__("bli_" #letter "gemm")
extern "C" {
TESSERA_BLIS_GEMM(s);
TESSERA_BLIS_GEMM(d);
TESSERA_BLIS_GEMM(c);
TESSERA_BLIS_GEMM(z);
std::int64_t tessera_bli_int_bits() __asm__("bli_info_get_int_type_size");
const char* tessera_bli_version() __asm__("bli_info_get_version_str");
int tessera_bli_arch() __asm__("bli_arch_query_id");
void tessera_bli_set_threads(std::int64_t threads) __asm__("bli_thread_set_num_threads");
}
#undef TESSERA_BLIS_GEMM
#endif

namespace tessera::detail {

#if defined(TESSERA_HAVE_BLIS)
/// BLIS knows Intel's processors by their names, and those with AVX-512 that have another (as in
/// virtual machines), and AMD's, get kernels without it, of half the speed or less. So they are
/// named for it, before main and before its first call, unless the user has done so. AMD's own BLIS
/// (AOCL) knows AMD's processors.
inline bool name_blis_kernels() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      std::strncmp(tessera_bli_version(), "AOCL", 4) != 0)
    return setenv("BLIS_ARCH_TYPE", "skx", 0) == 0;
#endif
  return false;
}
inline const bool blis_kernels_named = name_blis_kernels();

/// Returns whether BLIS is here and has integers of 64 bits. Its own threads are switched off: the
/// threads of the host that call it share its work.
inline bool blis_is_ready() {
  static const bool wide = (static_cast<void>(blis_kernels_named), tessera_bli_int_bits() == 64);
  thread_local const bool ready = wide && (tessera_bli_set_threads(1), true);
  return ready;
}

/// C = A B + beta C; the columns of C are contiguous.
template <class T>
void blis_gemm(Index m, Index n, Index k, const T* a, Index a_row, Index a_column, const T* b,
               Index b_row, Index b_column, T beta, T* c, Index c_row) {
  const T one{1};
  const auto call = [&](auto* gemm) {
    gemm(0, 0, m, n, k, &one, a, a_row, a_column, b, b_row, b_column, &beta, c, c_row, 1);
  };
  if constexpr (std::is_same_v<T, float>) call(tessera_bli_sgemm);
  if constexpr (std::is_same_v<T, double>) call(tessera_bli_dgemm);
  if constexpr (std::is_same_v<T, complex<float>>) call(tessera_bli_cgemm);
  if constexpr (std::is_same_v<T, complex<double>>) call(tessera_bli_zgemm);
}
#else
inline bool blis_is_ready() { return false; }
template <class T>
void blis_gemm(Index, Index, Index, const T*, Index, Index, const T*, Index, Index, T, T*, Index) {}
#endif

}  // namespace tessera::detail
