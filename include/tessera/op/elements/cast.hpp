// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Conversion of a tensor to another element type.
///
///     auto wide = cast<double>(x);
///     DynamicTensor d = cast<double>(DynamicTensor(x));      // from any element type
///
/// Laws: kernel/functions/cast.hpp's, elementwise; real to real may act on any unfinished sum,
/// maximum or minimum.
#include <tessera/kernel/functions/cast.hpp>
#include <tessera/op/elements/named_function.hpp>

namespace tessera {

/// Returns x with elements of type U, as static_cast converts them but for two rules: reals beyond
/// the range of an integer saturate, and NaN becomes 0. Communication: none. Collective over the
/// mesh. Throws nothing of its own.
template <Element U, detail::AnyTensor A>
auto cast(const A& x, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Cast<U>{}, call, x);
}

}  // namespace tessera
