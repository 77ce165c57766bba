// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A layer beside the stream of states that goes past it, with its norm before it or after both.
///
///     const A y = residual(x, norm_first, drop, norm, layer, where);
#include <tessera/nn/dropout.hpp>
#include <tessera/op/elements/arithmetic.hpp>

namespace tessera::detail {

/// Returns x + layer(norm(x)), or norm(x + layer(x)); what the layer makes is dropped as `drop`
/// says. Source: Xiong et al., "On Layer Normalization in the Transformer Architecture" (2020).
template <TypedTensor A, class Normed, class Run>
A residual(const A& x, bool norm_first, const Dropout& drop, const Normed& norm, const Run& layer,
           Where where) {
  const A made = x + dropout(A(layer(norm_first ? A(norm(x)) : x)), drop, where);
  return norm_first ? made : A(norm(made));
}

}  // namespace tessera::detail
