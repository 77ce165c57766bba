// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Derivatives of the functions within variances, norms and log-sum-exp (op/statistics.hpp).
///
///     Derivative<detail::SquaredSize, 0>::of(f)(x)     // 2 x
///
/// Laws: what a log-sum-exp subtracts and adds again, the largest element, counts as a constant.
#include <tessera/grad/derivatives/exponential.hpp>
#include <tessera/op/statistics.hpp>

namespace tessera {
namespace fn {
/// 2 (x - mean)
struct TwiceDistance {
  template <class T, class C>
  KOKKOS_FORCEINLINE_FUNCTION C operator()(const T& x, const C& mean) const {
    return C(2) * (static_cast<C>(x) - mean);
  }
};
/// factor / (2 r)
struct HalfQuotient {
  double factor;
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(const T& r) const {
    using C = ComputeType<T>;
    return static_cast<T>(C(0.5) * static_cast<C>(factor) / static_cast<C>(r));
  }
};
}  // namespace fn

template <> struct Derivative<fn::TwiceDistance, 0> : WholeSlope<2> {};
template <> struct Derivative<fn::TwiceDistance, 1> : WholeSlope<-2> {};
template <> struct Derivative<detail::SquaredSize, 0> : SlopeBy<fn::Multiple<2>, 0> {};
template <> struct Derivative<detail::Size, 0> : SlopeBy<fn::Sign, 0> {};
template <> struct Derivative<detail::ExpBelow, 0> : SlopeBy<fn::Same, reads_result> {};
template <> struct Derivative<detail::ExpBelow, 1> : ZeroSlope {};
template <> struct Derivative<detail::LogPlus, 0> : SlopeBy<fn::Reciprocal, 0> {};
template <> struct Derivative<detail::LogPlus, 1> : ZeroSlope {};
template <class T> struct Derivative<detail::ScaledAs<T>, 0> {
  static constexpr Slope slope = Slope::function;
  static constexpr Reads reads{};
  static fn::Constant<double> of(const detail::ScaledAs<T>& f) { return {f.factor}; }
};
template <> struct Derivative<detail::Root, 0> : SlopeBy<fn::HalfReciprocal, reads_result> {};
template <class T> struct Derivative<detail::RootAs<T>, 0> {
  static constexpr Slope slope = Slope::function;
  static constexpr Reads reads{reads_result};
  static fn::HalfQuotient of(const detail::RootAs<T>& f) { return {f.factor}; }
};
template <>
struct Derivative<fn::HalfQuotient, 0> : SlopeBy<fn::NegativeQuotient, reads_result, 0> {};

}  // namespace tessera
