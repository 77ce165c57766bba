// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Conversions between element types.
///
///     fn::Cast<std::int32_t>{}(-2.7) == -2;   fn::Cast<std::int32_t>{}(1e10) == 2147483647
///
/// Laws: real to real and integer to real round to nearest; real to integer truncates and
/// saturates, NaN gives 0; integer to integer wraps (modulo 2 to the number of its bits); to bool
/// is x != 0 (true for NaN); bool gives 0 and 1; real to complex has imaginary part 0. There is no
/// complex to real: take real(x), imag(x) or abs(x).
#include <tessera/kernel/functions/number.hpp>

namespace tessera::fn {

template <class U> struct Cast {
  static constexpr std::string_view name = "Cast";
  /// Real to real is linear (to rounding) and monotone; a conversion of integers is monotone where
  /// it keeps every value in order, and linear where it only wraps.
  template <class T> static constexpr Linearity linearity_on() {
    if constexpr (std::is_same_v<T, U> && OrderedElement<T>)
      return Linearity::linear_monotone;
    else if constexpr (RealElement<T> && RealElement<U>)
      return Linearity::linear_monotone;
    else if constexpr (IntegerElement<T> && RealElement<U>)
      return Linearity::monotone;
    else if constexpr (IntegerElement<T> && IntegerElement<U>)
      return keeps_order<T>()         ? Linearity::monotone
             : sizeof(U) <= sizeof(T) ? Linearity::linear
                                      : Linearity::pointwise;
    else if constexpr (ComplexElement<U> && !IntegerElement<T> && !std::is_same_v<T, bool>)
      return Linearity::linear;
    else
      return Linearity::pointwise;
  }
  template <class T>
  requires detail::Castable<T, U> KOKKOS_FORCEINLINE_FUNCTION constexpr U operator()(T x) const {
    if constexpr (std::is_same_v<T, U>)
      return x;
    else if constexpr (std::is_same_v<U, bool>)
      return !(x == T(0));
    else if constexpr (RealElement<T> && IntegerElement<U>)
      return detail::from_double<U>(static_cast<double>(x));
    else if constexpr (ComplexElement<U> && !ComplexElement<T>)
      return U(static_cast<typename U::value_type>(x));
    else
      return static_cast<U>(static_cast<ComputeType<T>>(x));
  }

 private:
  template <class T> static constexpr bool keeps_order() {
    return std::numeric_limits<U>::digits >= std::numeric_limits<T>::digits &&
           (std::is_signed_v<U> || !std::is_signed_v<T>);
  }
};

}  // namespace tessera::fn
