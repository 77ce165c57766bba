// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How gradients pass between real and complex numbers: kernel/functions/complex.hpp, and the size.
///
///     Pulled<fn::Imag, 0>::of(f)(g)     // -i g
///
/// Laws: the gradient of a real function by z = x + i y is its derivative by x less i times that by
/// y, as JAX's; it is conjugated nowhere.
#include <tessera/kernel/functions/arithmetic.hpp>
#include <tessera/kernel/functions/complex.hpp>
#include <tessera/kernel/functions/derivative.hpp>

namespace tessera {
namespace fn {
/// g, and -i g, of a real gradient.
struct FromReal {
  static constexpr std::string_view name = "gradient";
  template <class T> KOKKOS_FORCEINLINE_FUNCTION complex<T> operator()(const T& g) const {
    return {g, T{}};
  }
};
struct FromImag {
  static constexpr std::string_view name = "gradient";
  template <class T> KOKKOS_FORCEINLINE_FUNCTION complex<T> operator()(const T& g) const {
    return {T{}, -g};
  }
};
/// i g, of a real gradient.
struct FromNegativeImag {
  static constexpr std::string_view name = "gradient";
  template <class T> KOKKOS_FORCEINLINE_FUNCTION complex<T> operator()(const T& g) const {
    return {T{}, g};
  }
};
/// The imaginary part's negative.
struct NegativeImag {
  static constexpr std::string_view name = "gradient";
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(const complex<T>& g) const {
    return -g.im;
  }
};
/// g conj(z) / r, of the size r of z; 0 where it is 0.
struct BySize {
  static constexpr std::string_view name = "gradient";
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION complex<T> operator()(const T& g, const complex<T>& z,
                                                    const T& r) const {
    return r == T{} ? complex<T>{} : complex<T>{g * (z.re / r), -g * (z.im / r)};
  }
};
/// -i g / z
struct ByAngle {
  static constexpr std::string_view name = "gradient";
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION complex<T> operator()(const T& g, const complex<T>& z) const {
    return complex<T>{T{}, -g} / z;
  }
};
/// The pulls of BySize, of a gradient c: by g, z and r.
struct BySizeByGradient {
  static constexpr std::string_view name = "gradient";
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(const complex<T>& c, const complex<T>& z,
                                           const T& r) const {
    return r == T{} ? T{} : c.re * (z.re / r) + c.im * (z.im / r);
  }
};
struct BySizeByNumber {
  static constexpr std::string_view name = "gradient";
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION complex<T> operator()(const complex<T>& c, const T& g,
                                                    const T& r) const {
    return r == T{} ? complex<T>{} : complex<T>{c.re * (g / r), -c.im * (g / r)};
  }
};
struct BySizeBySize {
  static constexpr std::string_view name = "gradient";
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(const complex<T>& c, const T& g, const complex<T>& z,
                                           const T& r) const {
    return r == T{} ? T{} : -(g / r) * (c.re * (z.re / r) + c.im * (z.im / r));
  }
};
/// The pulls of ByAngle, of a gradient c: by g and z.
struct ByAngleByGradient {
  static constexpr std::string_view name = "gradient";
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(const complex<T>& c, const complex<T>& z) const {
    return (c / z).im;
  }
};
struct ByAngleByNumber {
  static constexpr std::string_view name = "gradient";
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION complex<T> operator()(const complex<T>& c, const T& g,
                                                    const complex<T>& z) const {
    return c * (complex<T>{T{}, g} / z) / z;
  }
};
}  // namespace fn

namespace detail {
/// The base of pulls by a functor D of the cotangent and the values that are named.
template <class D, int... Values> struct PulledBy {
  static constexpr Reads reads{Values...};
  template <class F> KOKKOS_FORCEINLINE_FUNCTION static D of(const F&) { return {}; }
};
}  // namespace detail

template <> struct Pulled<fn::Real, 0> : detail::PulledBy<fn::FromReal> {};
template <> struct Pulled<fn::Imag, 0> : detail::PulledBy<fn::FromImag> {};
template <> struct Pulled<fn::Conj, 0> : detail::PulledBy<fn::Conj> {};
template <> struct Pulled<fn::MakeComplex, 0> : detail::PulledBy<fn::Real> {};
template <> struct Pulled<fn::MakeComplex, 1> : detail::PulledBy<fn::NegativeImag> {};
template <> struct Pulled<fn::FromReal, 0> : detail::PulledBy<fn::Real> {};
template <> struct Pulled<fn::FromImag, 0> : detail::PulledBy<fn::Imag> {};
template <> struct Pulled<fn::FromNegativeImag, 0> : detail::PulledBy<fn::NegativeImag> {};
template <> struct Pulled<fn::NegativeImag, 0> : detail::PulledBy<fn::FromNegativeImag> {};
template <> struct Pulled<fn::BySize, 0> : detail::PulledBy<fn::BySizeByGradient, 1, 2> {};
template <> struct Pulled<fn::BySize, 1> : detail::PulledBy<fn::BySizeByNumber, 0, 2> {};
template <> struct Pulled<fn::BySize, 2> : detail::PulledBy<fn::BySizeBySize, 0, 1, 2> {};
template <> struct Pulled<fn::ByAngle, 0> : detail::PulledBy<fn::ByAngleByGradient, 1> {};
template <> struct Pulled<fn::ByAngle, 1> : detail::PulledBy<fn::ByAngleByNumber, 0, 1> {};
template <> struct Pulled<fn::Arg, 0> : detail::PulledBy<fn::ByAngle, 0> {};
/// The derivative of the size of complex numbers; that of real ones is in arithmetic.hpp.
template <> struct Pulled<fn::Abs, 0> : detail::PulledBy<fn::BySize, 0, reads_result> {};

}  // namespace tessera
