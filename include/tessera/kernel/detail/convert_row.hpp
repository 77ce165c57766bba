// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Conversions of elements that follow each other, on the host: between half types and float by
/// vector instructions, AVX-512's or F16C's where the CPU has them.
///
///     float wide[256];
///     convert_row(halves, 256, wide);
///
/// Laws: to[i] is from[i] converted, to the bit.
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <tessera/base/dtype.hpp>
#include <tessera/base/math.hpp>
#include <tessera/kernel/detail/simd.hpp>

#if defined(__x86_64__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define TESSERA_F16C 1
#endif

namespace tessera::detail {

// Loops over the bits: g++ 12 makes no vectors of objects that are copied.
template <class Format>
TESSERA_INLINE inline void widen_loop(const std::uint16_t* from, Index n, float* to) {
  TESSERA_SIMD
  for (Index i = 0; i < n; ++i) to[i] = Format::widen(from[i]);
}
template <class Format>
TESSERA_INLINE inline void narrow_loop(const float* from, Index n, std::uint16_t* to) {
  TESSERA_SIMD
  for (Index i = 0; i < n; ++i) to[i] = Format::round(from[i]);
}
template <class From, class To> void convert_row(const From* from, Index n, To* to) {
  for (Index i = 0; i < n; ++i) to[i] = static_cast<To>(from[i]);
}
template <class Format> void convert_row(const ShortFloat<Format>* from, Index n, float* to) {
  const auto* bits = reinterpret_cast<const std::uint16_t*>(from);
  with_wide_vectors<computes_much>([&]() TESSERA_INLINE { widen_loop<Format>(bits, n, to); });
}
template <class Format> void convert_row(const float* from, Index n, ShortFloat<Format>* to) {
  auto* bits = reinterpret_cast<std::uint16_t*>(to);
  with_wide_vectors<computes_much>([&]() TESSERA_INLINE { narrow_loop<Format>(from, n, bits); });
}

#if defined(TESSERA_F16C)
// The builtins in place of immintrin.h's functions: that header is longer than all of this room.
typedef short Shorts8 __attribute__((vector_size(16)));
typedef float Floats8 __attribute__((vector_size(32)));

/// Converts the elements that make up whole vectors; returns how many.
__attribute__((target("avx,f16c"), noinline)) inline Index widen_f16c(const half* from, Index n,
                                                                      float* to) {
  Index i = 0;
  for (; i + 8 <= n; i += 8) {
    Shorts8 in;
    std::memcpy(&in, from + i, sizeof(in));
    const Floats8 out = __builtin_ia32_vcvtph2ps256(in);
    std::memcpy(to + i, &out, sizeof(out));
  }
  return i;
}
__attribute__((target("avx,f16c"), noinline)) inline Index narrow_f16c(const float* from, Index n,
                                                                       half* to) {
  Index i = 0;
  for (; i + 8 <= n; i += 8) {
    Floats8 in;
    std::memcpy(&in, from + i, sizeof(in));
    const auto out = __builtin_ia32_vcvtps2ph256(in, 0);  // 0: to nearest, ties to even
    std::memcpy(static_cast<void*>(to + i), &out, sizeof(out));
  }
  return i;
}
#if defined(TESSERA_AVX512)
typedef short Shorts16 __attribute__((vector_size(32)));
typedef float Floats16 __attribute__((vector_size(64)));
typedef int Integers16 __attribute__((vector_size(64)));
typedef std::uint32_t Words16 __attribute__((vector_size(64)));
typedef std::uint16_t Parts32 __attribute__((vector_size(64)));  // of as many words, low ones first
inline constexpr short every = -1;                               // the mask of all elements

/// The elements that are converted together.
inline constexpr Index short_lanes = 16;
template <class T> struct ShortLanes {
  alignas(64) T lane[short_lanes];
  ShortLanes() {}  // leaves them uninitialized
};
TESSERA_AVX512_INLINE inline void widen_lanes(const half* from, float* to) {
  Shorts16 in;
  std::memcpy(&in, from, sizeof(in));
  const Floats16 out = __builtin_ia32_vcvtph2ps512_mask(in, Floats16{}, every, 4);
  std::memcpy(to, &out, sizeof(out));
}
TESSERA_AVX512_INLINE inline void narrow_lanes(const float* from, half* to) {
  Floats16 in;
  std::memcpy(&in, from, sizeof(in));
  const auto out = __builtin_ia32_vcvtps2ph512_mask(in, 0, Shorts16{}, every);
  std::memcpy(static_cast<void*>(to), &out, sizeof(out));
}
/// By the builtin: g++ 12 widens vectors of integers in halves.
TESSERA_AVX512_INLINE inline Words16 bits_of_lanes(const bfloat16* from) {
  Shorts16 in;
  std::memcpy(&in, from, sizeof(in));
  const auto wide = __builtin_ia32_pmovzxwd512_mask(in, Integers16{}, every);
  return reinterpret_cast<Words16>(wide) << 16;
}
TESSERA_AVX512_INLINE inline void widen_lanes(const bfloat16* from, float* to) {
  const Words16 bits = bits_of_lanes(from);
  const auto x = reinterpret_cast<Floats16>(bits);
  const Words16 out = x == x ? bits : bits | 0x0040'0000u;
  std::memcpy(to, &out, sizeof(out));
}
/// Rounds to the upper halves of words; a tie goes to the even one of its neighbours.
TESSERA_AVX512_INLINE inline Words16 rounded_lanes(Words16 bits) {
  const auto in = reinterpret_cast<Integers16>(bits), one = Integers16{} + 0x1'0000;
  const Words16 below = bits + 0x7fffu;
  const auto odd = __builtin_ia32_ptestmd512(in, one, every);
  return reinterpret_cast<Words16>(__builtin_ia32_paddd512_mask(
      in, Integers16{} + 0x8000, reinterpret_cast<Integers16>(below), odd));
}
TESSERA_AVX512_INLINE inline void write_high_parts(Words16 words, bfloat16* to) {
  const auto parts = reinterpret_cast<Parts32>(words);
  const auto out = __builtin_shufflevector(parts, parts, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23,
                                           25, 27, 29, 31);
  std::memcpy(static_cast<void*>(to), &out, sizeof(out));
}
TESSERA_AVX512_INLINE inline void narrow_lanes(const float* from, bfloat16* to) {
  Words16 bits;
  Floats16 x;
  std::memcpy(&bits, from, sizeof(bits));
  std::memcpy(&x, from, sizeof(x));
  const Words16 near = rounded_lanes(bits);
  write_high_parts(x == x ? near : bits | 0x0040'0000u, to);
}
/// As narrow_lanes, where the low halves of NaNs are 0 and they are quiet.
TESSERA_AVX512_INLINE inline void narrow_widened(const float* from, bfloat16* to) {
  Words16 bits;
  std::memcpy(&bits, from, sizeof(bits));
  write_high_parts(rounded_lanes(bits), to);
}
TESSERA_AVX512_INLINE inline void narrow_widened(const float* from, half* to) {
  narrow_lanes(from, to);
}
/// Types that are computed as they are need no conversion.
template <class T> TESSERA_AVX512_INLINE inline void widen_lanes(const T* from, T* to) {
  std::memcpy(to, from, short_lanes * sizeof(T));
}
template <class T> TESSERA_AVX512_INLINE inline void narrow_lanes(const T* from, T* to) {
  std::memcpy(to, from, short_lanes * sizeof(T));
}
/// As widen_lanes, but a NaN need not become quiet.
TESSERA_AVX512_INLINE inline void read_lanes(const bfloat16* from, float* to) {
  const Words16 bits = bits_of_lanes(from);
  std::memcpy(to, &bits, sizeof(bits));
}
template <class T, class C> TESSERA_AVX512_INLINE inline void read_lanes(const T* from, C* to) {
  widen_lanes(from, to);
}

/// Convert the elements that make up whole vectors; return how many.
template <class T> TESSERA_AVX512_ALONE Index widen_avx512(const T* from, Index n, float* to) {
  Index i = 0;
  for (; i + short_lanes <= n; i += short_lanes) widen_lanes(from + i, to + i);
  return i;
}
template <class T> TESSERA_AVX512_ALONE Index narrow_avx512(const float* from, Index n, T* to) {
  Index i = 0;
  for (; i + short_lanes <= n; i += short_lanes) narrow_lanes(from + i, to + i);
  return i;
}
/// As many elements as softmax takes at a time, for loops of constant length.
inline constexpr Index usual_lanes = 64;
template <class T> TESSERA_AVX512_ALONE Index widen_usual(const T* from, float* to) {
  for (Index i = 0; i < usual_lanes; i += short_lanes) widen_lanes(from + i, to + i);
  return usual_lanes;
}
template <class T> TESSERA_AVX512_ALONE Index narrow_usual(const float* from, T* to) {
  for (Index i = 0; i < usual_lanes; i += short_lanes) narrow_lanes(from + i, to + i);
  return usual_lanes;
}
#endif
/// Every CPU with AVX2 has F16C, which clang 14 does not ask for by name.
inline bool has_f16c() { return __builtin_cpu_supports("avx2"); }
inline Index widen_vectors(const half* from, Index n, float* to) {
#if defined(TESSERA_AVX512)
  if (has_avx512()) return n == usual_lanes ? widen_usual(from, to) : widen_avx512(from, n, to);
#endif
  return has_f16c() ? widen_f16c(from, n, to) : 0;
}
inline Index narrow_vectors(const float* from, Index n, half* to) {
#if defined(TESSERA_AVX512)
  if (has_avx512()) return n == usual_lanes ? narrow_usual(from, to) : narrow_avx512(from, n, to);
#endif
  return has_f16c() ? narrow_f16c(from, n, to) : 0;
}
inline void convert_row(const half* from, Index n, float* to) {
  for (Index i = widen_vectors(from, n, to); i < n; ++i) to[i] = from[i];
}
#if defined(TESSERA_AVX2)
/// Arguments in registers: a closure in memory keeps the reads of one row behind the last one's
/// writes.
__attribute__((target("avx2"), noinline)) inline void widen_avx2(const std::uint16_t* from, Index n,
                                                                 float* to) {
  widen_loop<Brain16>(from, n, to);
}
inline void convert_row(const bfloat16* from, Index n, float* to) {
  const auto* bits = reinterpret_cast<const std::uint16_t*>(from);
#if defined(TESSERA_AVX512)
  // Its reads of short rows that lie apart wait for the last row's writes: softmax across memory
  // takes four times as long.
  if (n >= 256 && has_avx512()) {
    const Index done = widen_avx512(from, n, to);
    return widen_loop<Brain16>(bits + done, n - done, to + done);
  }
#endif
  if (has_f16c()) return widen_avx2(bits, n, to);
  widen_loop<Brain16>(bits, n, to);
}
#endif
#if defined(TESSERA_AVX512)
inline void convert_row(const float* from, Index n, bfloat16* to) {
  auto* bits = reinterpret_cast<std::uint16_t*>(to);
  if (!has_avx512())
    return with_wide_vectors([&]() TESSERA_INLINE { narrow_loop<Brain16>(from, n, bits); });
  const Index done = narrow_avx512(from, n, to);
  narrow_loop<Brain16>(from + done, n - done, bits + done);
}
#endif
inline void convert_row(const float* from, Index n, half* to) {
  for (Index i = narrow_vectors(from, n, to); i < n; ++i) to[i] = from[i];
}
#endif

/// Rounds doubles to a half type, once: on the way there they become floats that are rounded to odd
/// (as sticky_float does it, without branches), in `floats`.
template <class Format>
void round_row(const double* from, Index n, float* floats, ShortFloat<Format>* to) {
  with_wide_vectors<computes_much>([&]() TESSERA_INLINE {
    TESSERA_SIMD
    for (Index i = 0; i < n; ++i) {
      const double x = from[i];
      const float near = static_cast<float>(x);
      const double back = near, size = x < 0 ? -x : x, back_size = back < 0 ? -back : back;
      const auto lost = static_cast<std::uint32_t>(size < back_size) |
                        static_cast<std::uint32_t>(size > back_size);  // false for NaN
      const auto bits = std::bit_cast<std::uint32_t>(near);
      const auto away = static_cast<std::uint32_t>(size < back_size);
      floats[i] = std::bit_cast<float>((bits - away) | lost);
    }
  });
  convert_row(floats, n, to);
}
template <class Format> void round_row(const float* from, Index n, float*, ShortFloat<Format>* to) {
  convert_row(from, n, to);
}

/// Returns n elements in the type in which they are computed: in place, or converted into `buffer`.
template <class T>
const ComputeType<T>* computed_row(const T* from, Index n,
                                   [[maybe_unused]] ComputeType<T>* buffer) {
  if constexpr (std::is_same_v<T, ComputeType<T>>) {
    return from;
  } else {
    convert_row(from, n, buffer);
    return buffer;
  }
}

/// A bfloat16 that is read without a look for NaN: arithmetic and the last rounding make it quiet.
struct __attribute__((may_alias)) BrainBits {
  std::uint16_t bits;
  operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }  // NOLINT
};
// The type as which a loop reads elements T: half is widened before, bfloat16 where it is read.
template <class T> T read_type(const T*);
float read_type(const half*);
BrainBits read_type(const bfloat16*);
template <class T> using ReadType = decltype(read_type(static_cast<const T*>(nullptr)));
template <class T> const T* readable_row(const T* from, Index, T*) { return from; }
inline const float* readable_row(const half* from, Index n, float* wide) {
  return computed_row(from, n, wide);
}
inline const BrainBits* readable_row(const bfloat16* from, Index, BrainBits*) {
  return reinterpret_cast<const BrainBits*>(from);
}

}  // namespace tessera::detail
