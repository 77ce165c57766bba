// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Derivatives of functions that choose, round and convert: kernel/functions/comparison.hpp,
/// rounding.hpp and cast.hpp.
///
///     Derivative<fn::Select, 1>::of(f)(condition)     // where it is true
///
/// Laws: a rounded number is constant almost everywhere; a clamped one counts on its bounds,
/// and NaN counts nowhere.
#include <tessera/grad/derivatives/slope.hpp>
#include <tessera/kernel/functions/cast.hpp>
#include <tessera/kernel/functions/comparison.hpp>
#include <tessera/kernel/functions/rounding.hpp>
#include <tessera/op/elements/pull_backs.hpp>

namespace tessera {
namespace fn {
struct Not {
  KOKKOS_FORCEINLINE_FUNCTION bool operator()(bool x) const { return !x; }
};
/// Whether x lies between two numbers, or on one of them; NaN does not.
template <class T> struct WithinBounds {
  T low, high;
  KOKKOS_FORCEINLINE_FUNCTION bool operator()(const T& x) const { return low <= x && x <= high; }
};
/// Which of (x, low, high) the clamped number is: the bounds, where x is beyond them;
/// high, where they are in the wrong order; none, where one is NaN.
template <int I> struct ClampSlope {
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION bool operator()(const T& x, const T& low, const T& high) const {
    return I == 0   ? low <= x && x <= high
           : I == 1 ? x < low && low <= high
                    : (high < x && low <= x) || (high < low && x <= low);
  }
};
}  // namespace fn

template <> struct Derivative<fn::Floor, 0> : ZeroSlope {};
template <> struct Derivative<fn::Ceil, 0> : ZeroSlope {};
template <> struct Derivative<fn::Round, 0> : ZeroSlope {};
template <> struct Derivative<fn::Trunc, 0> : ZeroSlope {};
template <> struct Derivative<fn::Sign, 0> : ZeroSlope {};
template <int I> struct Derivative<fn::Clamp, I> : SlopeBy<fn::ClampSlope<I>, 0, 1, 2> {};
template <int I, int J> struct Derivative<fn::ClampSlope<I>, J> : ZeroSlope {};
template <class T> struct Derivative<fn::ClampTo<T>, 0> {
  static constexpr Slope slope = Slope::function;
  static constexpr Reads reads{0};
  KOKKOS_FORCEINLINE_FUNCTION static fn::WithinBounds<T> of(const fn::ClampTo<T>& f) {
    return fn::WithinBounds<T>{f.low, f.high};
  }
};
template <class T> struct Derivative<fn::WithinBounds<T>, 0> : ZeroSlope {};
template <> struct Derivative<fn::Select, 0> : ZeroSlope {};
template <> struct Derivative<fn::Select, 1> : SlopeBy<fn::Same, 0> {};
template <> struct Derivative<fn::Select, 2> : SlopeBy<fn::Not, 0> {};
template <class U> struct Derivative<fn::Cast<U>, 0> : UnitSlope {};
template <class U> struct Derivative<fn::Converted<U>, 0> : UnitSlope {};

}  // namespace tessera
