// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Comparisons and tests, which give bool, and the selection by their results. A comparison with
/// NaN is false, except NotEqual, which is true.
///
///     fn::Less{}(1, 2) == true;   fn::Select{}(true, 1.5, 2.5) == 1.5
#include <concepts>
#include <string_view>

#include <tessera/kernel/functions/fixed.hpp>
#include <tessera/kernel/functions/number.hpp>

namespace tessera::fn {

/// a == b; of any element type
struct Equal {
  static constexpr bool compares = true;
  template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr bool operator()(T a, T b) const {
    return a == b;
  }
};
/// a != b; of any element type
struct NotEqual {
  static constexpr bool compares = true;
  template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr bool operator()(T a, T b) const {
    return !(a == b);
  }
};
/// a < b
struct Less {
  static constexpr bool compares = true;
  template <OrderedElement T>
  KOKKOS_FORCEINLINE_FUNCTION constexpr bool operator()(T a, T b) const {
    return a < b;
  }
};
/// a <= b
struct LessEqual {
  static constexpr bool compares = true;
  template <OrderedElement T>
  KOKKOS_FORCEINLINE_FUNCTION constexpr bool operator()(T a, T b) const {
    return a <= b;
  }
};
/// a > b
struct Greater {
  static constexpr bool compares = true;
  template <OrderedElement T>
  KOKKOS_FORCEINLINE_FUNCTION constexpr bool operator()(T a, T b) const {
    return a > b;
  }
};
/// a >= b
struct GreaterEqual {
  static constexpr bool compares = true;
  template <OrderedElement T>
  KOKKOS_FORCEINLINE_FUNCTION constexpr bool operator()(T a, T b) const {
    return a >= b;
  }
};
/// The comparison F of integers x with a number, which need not be of their type: x is an element
/// or not, or at most an element or not. compared_with (op/elements/beside.hpp) makes it.
template <class F, class T> struct Compared {
  static constexpr std::string_view name = detail::function_name<F>();
  /// F asks whether numbers are equal, not which is less.
  static constexpr bool equality = F{}(T(0), T(1)) == F{}(T(1), T(0));
  T value;
  T flag;  ///< 1 or 0: whether an element is equal at all; or whether the answer is the contrary
  template <std::same_as<T> A> KOKKOS_FORCEINLINE_FUNCTION constexpr bool operator()(A x) const {
    if constexpr (equality)
      return ((x == value) & (flag != T{})) != F{}(T(0), T(1));
    else
      return (x <= value) != (flag != T{});
  }
};
/// x is not a number.
struct IsNan {
  template <NumberElement T> KOKKOS_FORCEINLINE_FUNCTION constexpr bool operator()(T x) const {
    return !(x == x);
  }
};
/// x is plus or minus infinity.
struct IsInf {
  template <OrderedElement T> KOKKOS_FORCEINLINE_FUNCTION bool operator()(T x) const {
    if constexpr (RealElement<T>) {
      using W = ComputeType<T>;
      return Kokkos::fabs(static_cast<W>(x)) == std::numeric_limits<W>::infinity();
    } else {
      return false;
    }
  }
};
/// x is neither infinite nor NaN.
struct IsFinite {
  template <OrderedElement T> KOKKOS_FORCEINLINE_FUNCTION bool operator()(T x) const {
    if constexpr (RealElement<T>) {
      using W = ComputeType<T>;
      return Kokkos::fabs(static_cast<W>(x)) <= std::numeric_limits<W>::max();
    } else {
      return true;
    }
  }
};
/// condition ? a : b; of any element type
struct Select {
  static constexpr Linearity linearity = Linearity::selection;
  template <detail::Boolean C, class T>
  KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(C condition, T a, T b) const {
    return condition ? a : b;
  }
};

}  // namespace tessera::fn
