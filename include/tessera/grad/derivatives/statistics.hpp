// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Derivatives of the functions within variances, norms and log-sum-exp (op/rows/statistics.hpp).
///
///     Derivative<detail::SquaredSize, 0>::of(f)(x)     // 2 x
///
/// Laws: what a log-sum-exp subtracts and adds again, the largest element, counts as a constant;
/// the gradient of a norm or a standard deviation that is 0 is 0.
#include <tessera/grad/derivatives/exponential.hpp>
#include <tessera/op/rows/statistics.hpp>

namespace tessera {
namespace fn {
/// 2 (x - mean)
struct TwiceDistance {
  template <class T, class C>
  KOKKOS_FORCEINLINE_FUNCTION C operator()(const T& x, const C& mean) const {
    return C(2) * (static_cast<C>(x) - mean);
  }
};
/// factor / (2 r), and 0 where r is: the least slope that a norm has there, as PyTorch's. Its
/// derivative by r, from it and r, likewise.
struct HalfQuotient {
  double factor = 1;
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(const T& r) const {
    using C = ComputeType<T>;
    const C root = static_cast<C>(r);
    return static_cast<T>(root == C{} ? C{} : C(0.5) * static_cast<C>(factor) / root);
  }
};
struct HalfQuotientSlope : detail::OfValues<HalfQuotientSlope> {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T d, T r) {
    return r == T{} ? T{} : -(d / r);
  }
};
}  // namespace fn

template <> struct Derivative<fn::TwiceDistance, 0> : detail::WholeSlope<2> {};
template <> struct Derivative<fn::TwiceDistance, 1> : detail::WholeSlope<-2> {};
template <> struct Derivative<detail::SquaredSize, 0> : SlopeBy<fn::Multiple<2>, 0> {};
template <> struct Derivative<detail::Size, 0> : SlopeBy<fn::Sign, 0> {};
template <> struct Derivative<detail::ExpBelow, 0> : SlopeBy<fn::Same, reads_result> {};
template <> struct Derivative<detail::ExpBelow, 1> : ZeroSlope {};
template <> struct Derivative<detail::LogPlus, 0> : SlopeBy<fn::Reciprocal, 0> {};
template <> struct Derivative<detail::LogPlus, 1> : ZeroSlope {};
template <class T> struct Derivative<detail::ScaledAs<T>, 0> {
  static constexpr Slope slope = Slope::function;
  static constexpr Reads reads{};
  KOKKOS_FORCEINLINE_FUNCTION static fn::Constant<double> of(const detail::ScaledAs<T>& f) {
    return fn::Constant<double>{f.factor};
  }
};
template <> struct Derivative<detail::Root, 0> : SlopeBy<fn::HalfQuotient, reads_result> {};
template <class T> struct Derivative<detail::RootAs<T>, 0> {
  static constexpr Slope slope = Slope::function;
  static constexpr Reads reads{reads_result};
  KOKKOS_FORCEINLINE_FUNCTION static fn::HalfQuotient of(const detail::RootAs<T>& f) {
    return fn::HalfQuotient{f.factor};
  }
};
template <>
struct Derivative<fn::HalfQuotient, 0> : SlopeBy<fn::HalfQuotientSlope, reads_result, 0> {};
template <> struct Derivative<fn::HalfQuotientSlope, 0> : SlopeBy<fn::NegativeReciprocal, 1> {};
template <>
struct Derivative<fn::HalfQuotientSlope, 1> : SlopeBy<fn::HalfQuotientSlope, reads_result, 1> {};

}  // namespace tessera
