// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Loops over SLEEF's vector functions, of 256 bits (AVX2) and 512 (AVX-512), for g++ on x86-64.
///
///     sleef::find("exp", 10)->floats_of_256(x, x, y, n);        // y[i] = exp(x[i]), n a multiple of 16
///
/// Laws: the loops of a width may be called where the processor has it. The functions are declared
/// here, as sleef.h does it where all of a source is compiled for the width.
#include <x86intrin.h>

#include <cstddef>
#include <cstring>

namespace tessera_bench::sleef {

template <class T> using Loop = void (*)(const T* x, const T* z, T* y, std::size_t n);
/// A function whose error SLEEF states as `tenths` of an ulp; z is the second argument of a power.
struct Function {
  const char* name;
  int tenths;
  Loop<float> floats_of_256, floats_of_512;
  Loop<double> doubles_of_256, doubles_of_512;
};

#define SLEEF_LOOP(loop, T, lanes, store, call)                                    \
  inline void loop(const T* x, [[maybe_unused]] const T* z, T* y, std::size_t n) { \
    for (std::size_t i = 0; i < n; i += lanes) store(y + i, call);                 \
  }
#define SLEEF_LOOPS(each)                                                                         \
  each(exp, 10) each(exp2, 10) each(exp2, 35) each(expm1, 10) each(log, 10) each(log, 35)         \
      each(log1p, 10) each(log2, 10) each(log2, 35) each(log10, 10) each(cbrt, 10) each(cbrt, 35) \
          each(sin, 10) each(sin, 35) each(cos, 10) each(cos, 35) each(tan, 10) each(tan, 35)     \
              each(asin, 10) each(asin, 35) each(acos, 10) each(acos, 35) each(atan, 10)          \
                  each(atan, 35) each(sinh, 10) each(sinh, 35) each(cosh, 10) each(cosh, 35)      \
                      each(tanh, 10) each(tanh, 35) each(erf, 10)

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define SLEEF_DECLARE_256(name, tenths)                       \
  extern "C" __m256 Sleef_##name##f8_u##tenths##avx2(__m256); \
  extern "C" __m256d Sleef_##name##d4_u##tenths##avx2(__m256d);
SLEEF_LOOPS(SLEEF_DECLARE_256)
extern "C" __m256 Sleef_powf8_u10avx2(__m256, __m256);
extern "C" __m256d Sleef_powd4_u10avx2(__m256d, __m256d);
#define SLEEF_OF_256(name, tenths)                                     \
  SLEEF_LOOP(name##_##tenths##_f256, float, 8, _mm256_storeu_ps,       \
             Sleef_##name##f8_u##tenths##avx2(_mm256_loadu_ps(x + i))) \
  SLEEF_LOOP(name##_##tenths##_d256, double, 4, _mm256_storeu_pd,      \
             Sleef_##name##d4_u##tenths##avx2(_mm256_loadu_pd(x + i)))
SLEEF_LOOPS(SLEEF_OF_256)
SLEEF_LOOP(pow_10_f256, float, 8, _mm256_storeu_ps,
           Sleef_powf8_u10avx2(_mm256_loadu_ps(x + i), _mm256_loadu_ps(z + i)))
SLEEF_LOOP(pow_10_d256, double, 4, _mm256_storeu_pd,
           Sleef_powd4_u10avx2(_mm256_loadu_pd(x + i), _mm256_loadu_pd(z + i)))
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512dq,avx512vl,avx512bw")
#define SLEEF_DECLARE_512(name, tenths)                           \
  extern "C" __m512 Sleef_##name##f16_u##tenths##avx512f(__m512); \
  extern "C" __m512d Sleef_##name##d8_u##tenths##avx512f(__m512d);
SLEEF_LOOPS(SLEEF_DECLARE_512)
extern "C" __m512 Sleef_powf16_u10avx512f(__m512, __m512);
extern "C" __m512d Sleef_powd8_u10avx512f(__m512d, __m512d);
#define SLEEF_OF_512(name, tenths)                                         \
  SLEEF_LOOP(name##_##tenths##_f512, float, 16, _mm512_storeu_ps,          \
             Sleef_##name##f16_u##tenths##avx512f(_mm512_loadu_ps(x + i))) \
  SLEEF_LOOP(name##_##tenths##_d512, double, 8, _mm512_storeu_pd,          \
             Sleef_##name##d8_u##tenths##avx512f(_mm512_loadu_pd(x + i)))
SLEEF_LOOPS(SLEEF_OF_512)
SLEEF_LOOP(pow_10_f512, float, 16, _mm512_storeu_ps,
           Sleef_powf16_u10avx512f(_mm512_loadu_ps(x + i), _mm512_loadu_ps(z + i)))
SLEEF_LOOP(pow_10_d512, double, 8, _mm512_storeu_pd,
           Sleef_powd8_u10avx512f(_mm512_loadu_pd(x + i), _mm512_loadu_pd(z + i)))
#pragma GCC pop_options

#define SLEEF_FUNCTION(name, tenths) \
  Function{#name,                    \
           tenths,                   \
           name##_##tenths##_f256,   \
           name##_##tenths##_f512,   \
           name##_##tenths##_d256,   \
           name##_##tenths##_d512},
inline constexpr Function functions[] = {SLEEF_LOOPS(SLEEF_FUNCTION) SLEEF_FUNCTION(pow, 10)};

/// Returns the function; nullptr where SLEEF has none of that error.
inline const Function* find(const char* name, int tenths) {
  for (const Function& f : functions)
    if (std::strcmp(f.name, name) == 0 && f.tenths == tenths) return &f;
  return nullptr;
}
#undef SLEEF_FUNCTION
#undef SLEEF_OF_512
#undef SLEEF_DECLARE_512
#undef SLEEF_OF_256
#undef SLEEF_DECLARE_256
#undef SLEEF_LOOPS
#undef SLEEF_LOOP

}  // namespace tessera_bench::sleef
