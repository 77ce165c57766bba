// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Derivatives of what pulls a gradient back, cotangent times derivative: for gradients of
/// gradients.
///
///     Derivative<fn::Times<fn::Cos, 1>, 0>::of(f)(x)     // cos(x)
///
/// Laws: linear in the cotangent.
#include <tessera/op/elements/pull_backs.hpp>

namespace tessera {

/// By the cotangent.
template <class D, int N> struct Derivative<fn::Times<D, N>, 0> {
  static constexpr Slope slope = Slope::function;
  static constexpr Reads reads = [] {
    Reads all;
    for (int k = 1; k <= N; ++k) all.push_back(k);
    return all;
  }();
  KOKKOS_FORCEINLINE_FUNCTION static D of(const fn::Times<D, N>& f) { return f.d; }
};
namespace fn {
/// D of some of N values: those in Derivative<Of, I>::reads, where Of is a function of all of them.
template <class Of, int I> struct SlopeWithin {
  using Within = Derivative<Of, I>;
  Of of;
  template <class... V> KOKKOS_FORCEINLINE_FUNCTION auto operator()(const V&... values) const {
    return pick(std::make_index_sequence<static_cast<std::size_t>(Within::reads.size())>{},
                values...);
  }

 private:
  template <std::size_t... K, class First, class... Rest>
  KOKKOS_FORCEINLINE_FUNCTION auto pick(std::index_sequence<K...>, const First& first,
                                        const Rest&... rest) const {
    return Within::of(of)(value<Within::reads[static_cast<int>(K)]>(first, rest...)...);
  }
  template <int K, class First, class... Rest>
  KOKKOS_FORCEINLINE_FUNCTION auto value(const First& first, const Rest&... rest) const {
    if constexpr (K == reads_result)
      return of(first, rest...);
    else if constexpr (K == 0)
      return first;
    else
      return value<K - 1>(rest...);
  }
};
}  // namespace fn
/// By a value that D reads: cotangent times D's own derivative.
template <class D, int N, int I>
  requires(I >= 1 && detail::HasDerivative<D, I - 1>)
struct Derivative<fn::Times<D, N>, I> {
  using Inner = Derivative<D, I - 1>;
  static constexpr Slope slope = Inner::slope == Slope::zero ? Slope::zero : Slope::function;
  static constexpr Reads reads = [] {
    Reads all{0};
    for (int k = 1; k <= N && Inner::slope == Slope::function; ++k) all.push_back(k);
    return all;
  }();
  KOKKOS_FORCEINLINE_FUNCTION static auto of(const fn::Times<D, N>& f) {
    if constexpr (Inner::slope == Slope::function)
      return fn::Times<fn::SlopeWithin<D, I - 1>, N>{{f.d}};
    else if constexpr (Inner::slope == Slope::minus_one)
      return fn::Negate{};
    else
      return fn::Scale{};
  }
};

}  // namespace tessera
