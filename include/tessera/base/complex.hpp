// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Complex numbers on host and device, laid out like std::complex, Kokkos::complex and MPI's
/// complex types, and converted from and to the first two. (std::complex cannot be used on a
/// device, and the rooms that plan do not include Kokkos.)
///
///     complex<float> z{1, 2};   z * z == complex<float>{-3, 4};
///     std::complex<float> s = z;
///
/// Laws: a product is (ac - bd, ad + bc), without a special case for infinities, as in BLAS.
#include <concepts>

namespace tessera {

template <std::floating_point T> struct complex;

namespace detail {
/// Z is another library's complex number with parts of type T.
template <class Z, class T>
concept ForeignComplex = !std::same_as<Z, complex<T>> && std::same_as<typename Z::value_type, T> &&
                         requires(const Z& z) {
  { z.real() } -> std::convertible_to<T>;
  { z.imag() } -> std::convertible_to<T>;
};
}  // namespace detail

template <std::floating_point T> struct complex {
  using value_type = T;
  T re, im;

  complex() = default;
  constexpr complex(T real_part, T imaginary_part = T{})  // NOLINT: a real number is a complex one
      : re(real_part), im(imaginary_part) {}
  template <std::floating_point U>
    requires(!std::same_as<T, U>)
  explicit(sizeof(U) > sizeof(T)) constexpr complex(const complex<U>& z)
      : re(static_cast<T>(z.re)), im(static_cast<T>(z.im)) {}
  template <detail::ForeignComplex<T> Z>
  constexpr complex(const Z& z) : re(z.real()), im(z.imag()) {}  // NOLINT: the same number
  template <detail::ForeignComplex<T> Z> constexpr operator Z() const {
    return Z(re, im);
  }  // NOLINT

  constexpr T real() const { return re; }
  constexpr T imag() const { return im; }

  friend constexpr bool operator==(complex a, complex b) { return a.re == b.re && a.im == b.im; }
  friend constexpr complex operator+(complex a) { return a; }
  friend constexpr complex operator-(complex a) { return {-a.re, -a.im}; }
  friend constexpr complex operator+(complex a, complex b) { return {a.re + b.re, a.im + b.im}; }
  friend constexpr complex operator-(complex a, complex b) { return {a.re - b.re, a.im - b.im}; }
  friend constexpr complex operator*(complex a, complex b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  /// Divides by the larger part of b first, so that b's square cannot overflow (R. L. Smith, CACM
  /// 5, 1962).
  friend constexpr complex operator/(complex a, complex b) {
    const T re_size = b.re < 0 ? -b.re : b.re, im_size = b.im < 0 ? -b.im : b.im;
    if (re_size >= im_size) {
      const T ratio = b.im / b.re, below = b.re + b.im * ratio;
      return {(a.re + a.im * ratio) / below, (a.im - a.re * ratio) / below};
    }
    const T ratio = b.re / b.im, below = b.re * ratio + b.im;
    return {(a.re * ratio + a.im) / below, (a.im * ratio - a.re) / below};
  }
  constexpr complex& operator+=(complex b) { return *this = *this + b; }
  constexpr complex& operator-=(complex b) { return *this = *this - b; }
  constexpr complex& operator*=(complex b) { return *this = *this * b; }
  constexpr complex& operator/=(complex b) { return *this = *this / b; }
};

/// Returns the complex conjugate.
template <class T> constexpr complex<T> conj(complex<T> z) { return {z.re, -z.im}; }

}  // namespace tessera
