// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The parts of complex numbers, and their squared sizes.
///
///     fn::Imag{}(complex<float>{1, 2}) == 2.0f
#include <tessera/kernel/functions/number.hpp>

namespace tessera::detail {
/// |d|^2, also of a real number.
template <class C> KOKKOS_FORCEINLINE_FUNCTION PartType<C> squared_size(C d) {
  if constexpr (ComplexElement<C>)
    return d.re * d.re + d.im * d.im;
  else
    return d * d;
}
}  // namespace tessera::detail

namespace tessera::fn {

struct Real {
  static constexpr Linearity linearity = Linearity::linear;
  template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(complex<T> z) const {
    return z.re;
  }
};
struct Imag {
  static constexpr Linearity linearity = Linearity::linear;
  template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(complex<T> z) const {
    return z.im;
  }
};
/// The complex conjugate.
struct Conj {
  static constexpr Linearity linearity = Linearity::linear | Linearity::multiplicative;
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION constexpr complex<T> operator()(complex<T> z) const {
    return {z.re, -z.im};
  }
};
/// The angle of the number, in (-pi, pi].
struct Arg {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(complex<T> z) const {
    return Kokkos::atan2(z.im, z.re);
  }
};
/// The complex number with these real and imaginary parts.
struct MakeComplex {
  static constexpr Linearity linearity = Linearity::linear;
  template <class T>
    requires(std::is_same_v<T, float> || std::is_same_v<T, double>)
  KOKKOS_FORCEINLINE_FUNCTION constexpr complex<T> operator()(T re, T im) const { return {re, im}; }
};

}  // namespace tessera::fn
