// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Floating point in 16 bits, on host and device: `half` (IEEE binary16) and `bfloat16` (the upper
/// half of a float). Values are stored in 16 bits and computed in float: an operator promotes,
/// computes, and rounds to nearest, ties to even.
///
///     half h = 0.1f;   h + h;              // a half, rounded once
///     h + 1;                               // a half: whole numbers do not promote
///     h + 1.0f;                            // a float
///
/// (CUDA has a `half` of its own: beside it write tessera::half.)
///
/// Laws: conversion to float and back keeps the bits (a signalling NaN becomes quiet); conversion
/// from float, double and integers gives the nearest value, rounded once; subnormals, infinities
/// and NaN are kept.
#include <bit>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace tessera {
namespace detail {

/// IEEE 754 binary16: 5 bits of exponent, 10 of mantissa.
struct Binary16 {
  static constexpr int digits = 11, max_exponent = 16;

  static constexpr std::uint16_t round(float x) {
#if defined(__CUDA_ARCH__)
    if (!std::is_constant_evaluated() && x == x) {
      std::uint16_t near = 0;
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(near) : "f"(x));
      return near;
    }
#endif
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t a = bits & 0x7fff'ffffu;
    // Below 2^-14 the results are multiples of 2^-24, and so are the floats from 0.5 to 1.
    const std::uint32_t small = a < 0x3880'0000u ? a : 0u;
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(small) + 0.5f) - 0x3f00'0000u;
    const std::uint32_t normal = (a - 0x3800'0000u + 0xfffu + (a >> 13 & 1u)) >> 13;
    const std::uint32_t finite = a < 0x3880'0000u ? subnormal : normal;
    const std::uint32_t nan = 0x7e00u | (a >> 13 & 0x1ffu);
    const std::uint32_t rest = a > 0x7f80'0000u ? nan : 0x7c00u;
    return static_cast<std::uint16_t>((bits >> 16 & 0x8000u) | (a < 0x4780'0000u ? finite : rest));
  }
  static constexpr float widen(std::uint16_t bits) {
    const std::uint32_t a = bits & 0x7fffu;
#if defined(__CUDA_ARCH__)
    if (!std::is_constant_evaluated() && a <= 0x7c00u) {
      float wide = 0;
      asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits));
      return wide;
    }
#endif
    const std::uint32_t shifted = a << 13;
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(shifted + 0x3880'0000u) - 0x1p-14f);
    const std::uint32_t large = a > 0x7c00u ? shifted + 0x7000'0000u : 0x7f80'0000u;
    const std::uint32_t high =
        a < 0x7c00u ? shifted + 0x3800'0000u : (a > 0x7c00u ? large | 0x0040'0000u : large);
    const std::uint32_t finite = a < 0x0400u ? (a == 0 ? 0u : subnormal) : high;
    return std::bit_cast<float>((static_cast<std::uint32_t>(bits) & 0x8000u) << 16 | finite);
  }
};

/// The upper half of a float: 8 bits of exponent, 7 of mantissa.
struct Brain16 {
  static constexpr int digits = 8, max_exponent = 128;

  static constexpr std::uint16_t round(float x) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t nan = bits >> 16 | 0x0040u;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if (!std::is_constant_evaluated()) {  // the instruction makes one NaN of all
      std::uint16_t near = 0;
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(near) : "f"(x));
      return x == x ? near : static_cast<std::uint16_t>(nan);
    }
#endif
    const std::uint32_t near = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
    // A mask in place of a branch, so that loops become vector instructions: the sign of the
    // difference of two numbers of 31 bits.
    const std::uint32_t is_nan = 0u - ((0x7f80'0000u - (bits & 0x7fff'ffffu)) >> 31);
    return static_cast<std::uint16_t>((nan & is_nan) | (near & ~is_nan));
  }
  static constexpr float widen(std::uint16_t bits) {
    const std::uint32_t quiet = (bits & 0x7fffu) > 0x7f80u ? 0x0040'0000u : 0u;
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16 | quiet);
  }
};

/// Returns a float that rounds to at most 16 digits as x does: the last bit records whether
/// anything was lost (rounding to odd), so that the second rounding cannot mistake a remainder for
/// a tie.
constexpr float sticky_float(double x) {
  constexpr double most = std::numeric_limits<float>::max();
  if (x > most) return std::numeric_limits<float>::infinity();
  if (x < -most) return -std::numeric_limits<float>::infinity();
  const float near = static_cast<float>(x);
  if (static_cast<double>(near) == x || x != x) return near;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(near);
  const double back = near;
  if (x > 0 ? back > x : back < x) --bits;  // towards zero
  return std::bit_cast<float>(bits | 1u);
}
template <std::integral I> constexpr double sticky_double(I x) {
  if constexpr (sizeof(I) == 8) {
    constexpr I low = 1023, whole = I{1} << 53;
    if (x > whole || (std::is_signed_v<I> && x < I{0} - whole))
      x = static_cast<I>(x & ~low) | (x & low ? I{1024} : I{0});
  }
  return static_cast<double>(x);
}
}  // namespace detail

/// A number of 16 bits in one of the two formats; spelt `half` or `bfloat16`.
template <class Format> class ShortFloat {
 public:
  ShortFloat() = default;
  constexpr ShortFloat(float x) : bits_(Format::round(x)) {}  // NOLINT: a number is a number
  constexpr ShortFloat(double x) : ShortFloat(detail::sticky_float(x)) {}  // NOLINT
  template <std::integral I>
  constexpr ShortFloat(I x) : ShortFloat(detail::sticky_double(x)) {}  // NOLINT
  constexpr operator float() const { return Format::widen(bits_); }    // NOLINT

  constexpr std::uint16_t bits() const { return bits_; }
  static constexpr ShortFloat from_bits(std::uint16_t bits) {
    ShortFloat x{};
    x.bits_ = bits;
    return x;
  }

  friend constexpr ShortFloat operator+(ShortFloat a, ShortFloat b) { return float(a) + float(b); }
  friend constexpr ShortFloat operator-(ShortFloat a, ShortFloat b) { return float(a) - float(b); }
  friend constexpr ShortFloat operator*(ShortFloat a, ShortFloat b) { return float(a) * float(b); }
  friend constexpr ShortFloat operator/(ShortFloat a, ShortFloat b) { return float(a) / float(b); }
  friend constexpr ShortFloat operator-(ShortFloat a) {
    return from_bits(static_cast<std::uint16_t>(a.bits_ ^ 0x8000u));
  }
  friend constexpr ShortFloat operator+(ShortFloat a) { return a; }
  constexpr ShortFloat& operator+=(ShortFloat b) { return *this = *this + b; }
  constexpr ShortFloat& operator-=(ShortFloat b) { return *this = *this - b; }
  constexpr ShortFloat& operator*=(ShortFloat b) { return *this = *this * b; }
  constexpr ShortFloat& operator/=(ShortFloat b) { return *this = *this / b; }

  /// The type of an operation on a ShortFloat and a number of type A: a float or a double, or, with
  /// an integer, a ShortFloat (as for std::float16_t of C++23).
  template <class A>
    requires(std::is_arithmetic_v<A>)
  using Mixed = std::conditional_t<std::is_integral_v<A>, ShortFloat,
                                   std::conditional_t<std::is_same_v<A, float>, float, A>>;
  template <class A> friend constexpr Mixed<A> operator+(ShortFloat a, A b) {
    return Mixed<A>(a) + Mixed<A>(b);
  }
  template <class A> friend constexpr Mixed<A> operator+(A a, ShortFloat b) {
    return Mixed<A>(a) + Mixed<A>(b);
  }
  template <class A> friend constexpr Mixed<A> operator-(ShortFloat a, A b) {
    return Mixed<A>(a) - Mixed<A>(b);
  }
  template <class A> friend constexpr Mixed<A> operator-(A a, ShortFloat b) {
    return Mixed<A>(a) - Mixed<A>(b);
  }
  template <class A> friend constexpr Mixed<A> operator*(ShortFloat a, A b) {
    return Mixed<A>(a) * Mixed<A>(b);
  }
  template <class A> friend constexpr Mixed<A> operator*(A a, ShortFloat b) {
    return Mixed<A>(a) * Mixed<A>(b);
  }
  template <class A> friend constexpr Mixed<A> operator/(ShortFloat a, A b) {
    return Mixed<A>(a) / Mixed<A>(b);
  }
  template <class A> friend constexpr Mixed<A> operator/(A a, ShortFloat b) {
    return Mixed<A>(a) / Mixed<A>(b);
  }

 private:
  std::uint16_t bits_;
};

using half = ShortFloat<detail::Binary16>;
using bfloat16 = ShortFloat<detail::Brain16>;

}  // namespace tessera

template <class Format> class std::numeric_limits<tessera::ShortFloat<Format>> {
  using T = tessera::ShortFloat<Format>;
  static constexpr int mantissa = Format::digits - 1;
  static constexpr std::uint16_t top = static_cast<std::uint16_t>(0x7fffu >> mantissa << mantissa);

 public:
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false,
                        is_exact = false, is_bounded = true, is_modulo = false, is_iec559 = true,
                        has_infinity = true, has_quiet_NaN = true, has_signaling_NaN = true,
                        traps = false, tinyness_before = false;
  static constexpr std::float_round_style round_style = std::round_to_nearest;
  static constexpr int radix = 2, digits = Format::digits, digits10 = (digits - 1) * 301 / 1000,
                       max_digits10 = digits * 301 / 1000 + 2, max_exponent = Format::max_exponent,
                       min_exponent = 3 - max_exponent, max_exponent10 = max_exponent * 301 / 1000,
                       min_exponent10 = -((max_exponent - 2) * 301 / 1000);
  static constexpr T min() noexcept { return T::from_bits(std::uint16_t{1} << mantissa); }
  static constexpr T max() noexcept { return T::from_bits(static_cast<std::uint16_t>(top - 1)); }
  static constexpr T lowest() noexcept { return -max(); }
  static constexpr T epsilon() noexcept { return 1.0f / static_cast<float>(1 << mantissa); }
  static constexpr T round_error() noexcept { return 0.5f; }
  static constexpr T infinity() noexcept { return T::from_bits(top); }
  static constexpr T quiet_NaN() noexcept {
    return T::from_bits(static_cast<std::uint16_t>(top | 1u << (mantissa - 1)));
  }
  static constexpr T signaling_NaN() noexcept {
    return T::from_bits(static_cast<std::uint16_t>(top | 1u));
  }
  static constexpr T denorm_min() noexcept { return T::from_bits(1); }
};
