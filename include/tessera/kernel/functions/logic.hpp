// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Logic on bool, and the same on the bits of integers.
///
///     fn::LogicalXor{}(true, false) == true;   fn::ShiftLeft{}(3, 4) == 48
#include <tessera/kernel/functions/number.hpp>

namespace tessera::fn {

struct LogicalAnd {
  static constexpr Linearity linearity = Linearity::conjunction;
  template <detail::Boolean T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T a, T b) const {
    return (a & b) != 0;
  }
};
struct LogicalOr {
  static constexpr Linearity linearity = Linearity::disjunction;
  template <detail::Boolean T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T a, T b) const {
    return (a | b) != 0;
  }
};
struct LogicalXor {
  template <detail::Boolean T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T a, T b) const {
    return a != b;
  }
};
struct LogicalNot {
  template <detail::Boolean T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T x) const {
    return !x;
  }
};

struct BitwiseAnd {
  template <IntegerElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitwiseOr {
  template <IntegerElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitwiseXor {
  template <IntegerElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct BitwiseNot {
  template <IntegerElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T x) const {
    return static_cast<T>(~x);
  }
};
/// x times 2^n, wrapping; 0 where n is negative or as large as T has bits.
struct ShiftLeft {
  template <IntegerElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T x, T n) const {
    using U = std::make_unsigned_t<T>;
    if (static_cast<U>(n) >= sizeof(T) * 8) return T{};
    return static_cast<T>(static_cast<U>(static_cast<std::uint64_t>(static_cast<U>(x)) << n));
  }
};
/// floor(x / 2^n); where n is negative or as large as T has bits: 0, or -1 for negative x.
struct ShiftRight {
  template <IntegerElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T x, T n) const {
    using U = std::make_unsigned_t<T>;
    if (static_cast<U>(n) >= sizeof(T) * 8) return x < T{} ? static_cast<T>(-1) : T{};
    return static_cast<T>(x >> n);
  }
};

}  // namespace tessera::fn
