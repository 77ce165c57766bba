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
  /// 5, 1962); where sums could overflow, or products vanish, of numbers brought nearer to 1 by a
  /// power of two.
  friend constexpr complex operator/(complex a, complex b) {
    const T near_a = scale(a), near_b = scale(b);
    if (near_a == T(1) && near_b == T(1)) return by_larger_part(a, b);
    const complex q =
        by_larger_part({a.re * near_a, a.im * near_a}, {b.re * near_b, b.im * near_b});
    const T back = near_b / near_a;
    return {q.re * back, q.im * back};
  }
  constexpr complex& operator+=(complex b) { return *this = *this + b; }
  constexpr complex& operator-=(complex b) { return *this = *this - b; }
  constexpr complex& operator*=(complex b) { return *this = *this * b; }
  constexpr complex& operator/=(complex b) { return *this = *this / b; }

 private:
  static constexpr complex by_larger_part(complex a, complex b) {
    const T re_size = b.re < 0 ? -b.re : b.re, im_size = b.im < 0 ? -b.im : b.im;
    if (re_size >= im_size) {
      const T ratio = b.im / b.re, below = b.re + b.im * ratio;
      return {(a.re + a.im * ratio) / below, (a.im - a.re * ratio) / below};
    }
    const T ratio = b.re / b.im, below = b.re * ratio + b.im;
    return {(a.re * ratio + a.im) / below, (a.im * ratio - a.re) / below};
  }
  /// Returns the power of two that brings a number nearer to 1; 1 where its larger part is within
  /// half the exponents, and for zero. (A quotient of two scales is a normal number.)
  static constexpr T scale(complex z) {
    constexpr T small = sizeof(T) == 4 ? T(0x1p-62) : T(0x1p-500), large = T(1) / small;
    const T re_size = z.re < 0 ? -z.re : z.re, im_size = z.im < 0 ? -z.im : z.im;
    const T size = re_size > im_size ? re_size : im_size;
    return size > large ? small : size < small && size > 0 ? large : T(1);
  }
};

/// Returns the complex conjugate.
template <class T> constexpr complex<T> conj(complex<T> z) { return {z.re, -z.im}; }

}  // namespace tessera
