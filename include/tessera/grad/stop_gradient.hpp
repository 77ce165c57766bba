// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A tensor as a constant: gradients do not pass through it.
///
///     auto target = stop_gradient(x * w);           // d target / d w is zero
///
/// Laws: the values are x's. It is a copy, since gradients tell tensors apart by their memory.
#include <tessera/kernel/functions/derivative.hpp>
#include <tessera/op/elements/named_function.hpp>

namespace tessera {
namespace fn {
struct StopGradient {
  static constexpr std::string_view name = "stop_gradient";
  static constexpr Linearity linearity = Linearity::linear | Linearity::multiplicative;
  static constexpr Slope slope = Slope::zero;
  template <Element T> KOKKOS_FORCEINLINE_FUNCTION T operator()(const T& x) const { return x; }
};
}  // namespace fn

/// Returns x, through which no gradient passes. Communication: none. Collective over the mesh.
/// Throws nothing of its own.
template <detail::AnyTensor A>
auto stop_gradient(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::StopGradient{}, call, x);
}

}  // namespace tessera
