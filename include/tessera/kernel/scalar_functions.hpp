// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Functors that combine an element with one number of the same type; the number is part of the functor.
///
///     map(fn::ScaleBy<float>{0.5f}, work, y, x)
///
/// Laws: each is fn::Add, Subtract, Multiply or Divide with one argument fixed.
#include <tessera/kernel/functions.hpp>

namespace tessera::fn {

template <class T>
struct ScaleBy {
  T factor;
  KOKKOS_FUNCTION T operator()(T x) const { return Multiply{}(x, factor); }
};
template <class T>
struct ShiftBy {
  T offset;
  KOKKOS_FUNCTION T operator()(T x) const { return Add{}(x, offset); }
};
template <class T>
struct SubtractFrom {
  T whole;
  KOKKOS_FUNCTION T operator()(T x) const { return Subtract{}(whole, x); }
};
template <class T>
struct DivideBy {
  T divisor;
  KOKKOS_FUNCTION T operator()(T x) const {
    return Divide{}(x, divisor);
  }
};
template <class T>
struct DivideInto {
  T dividend;
  KOKKOS_FUNCTION T operator()(T x) const {
    return Divide{}(dividend, x);
  }
};

}  // namespace tessera::fn
