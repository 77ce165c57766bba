// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The gradients of a convolution are convolutions: of the result's gradient by the kernel, with
/// strides and base dilations exchanged, and of the input by the result's gradient, with strides
/// and window dilations exchanged.
///
///     const detail::ConvolveGradient g = detail::input_gradient(terms, shape, x);   // plan_convolve(g.terms, g.shape, dy, k, ...)
///
/// Laws: <convolve(x, k), y> == <x, input gradient(y, k)> == <k, kernel gradient(x, y)>; the
/// gradient of a tensor has that tensor's shape.
#include <tessera/plan/convolve_shape.hpp>

namespace tessera::detail {

/// A convolution that is a gradient.
struct ConvolveGradient {
  Terms terms;
  ConvolveWindows shape;
};

/// The gradient with respect to the input: the operands are the result's gradient and the kernel.
/// `x`: the extents of the input of the original convolution.
constexpr ConvolveGradient input_gradient(const Terms& terms, const ConvolveWindows& shape,
                                          const Extents& x) {
  const ConvolveParts parts = parts_of(terms);
  ConvolveGradient g{terms, shape};
  g.terms.operands[0] = terms.result;
  g.terms.result = terms.operands[0];
  g.shape.input = shape.result;
  g.shape.kernel = shape.kernel == GroupSide::feature ? GroupSide::other : GroupSide::feature;
  g.shape.result = shape.input;
  const ConvolveParts turned = parts_of(g.terms);
  for (int d = 0; d < shape.windows.size(); ++d) {
    // Spatial letters come in the order of the gradient's own result, which is the input's order.
    const char label = g.terms.result[turned.result_spatial[d]];
    int from = 0;
    while (terms.result[parts.result_spatial[from]] != label) ++from;
    g.shape.windows[d] = tessera::turned(shape.windows[from], x[parts.input_spatial[from]]);
  }
  return g;
}

/// The gradient with respect to the kernel: the operands are the input and the result's gradient.
constexpr ConvolveGradient kernel_gradient(const Terms& terms, const ConvolveWindows& shape,
                                           const Extents& x, const Extents& k) {
  const ConvolveParts parts = parts_of(terms);
  ConvolveGradient g{terms, shape};
  g.terms.operands[1] = terms.result;
  g.terms.result = terms.operands[1];
  g.shape.input = shape.input == GroupSide::feature ? GroupSide::other : GroupSide::feature;
  g.shape.kernel = shape.result;
  g.shape.result = shape.kernel;
  const ConvolveParts turned = parts_of(g.terms);
  g.shape.mirrored.resize(shape.windows.size());
  for (int d = 0; d < shape.windows.size(); ++d) {
    const char label = g.terms.result[turned.result_spatial[d]];
    int from = 0;
    while (terms.result[parts.result_spatial[from]] != label) ++from;
    const Window& w = shape.windows[from];
    const Index n = x[parts.input_spatial[from]];
    const Index size = k[parts.kernel_spatial[from]], made = result_extent(n, w);
    Window& back = g.shape.windows[d];
    back = w;
    back.size = made;
    back.stride = w.window_dilation;
    back.window_dilation = w.stride;
    back.reversed = false;
    back.high = (size - 1) * w.window_dilation + dilated(made, w.stride) -
                dilated(n, w.base_dilation) - w.low;
    g.shape.mirrored[d] = w.reversed;
  }
  return g;
}
}  // namespace tessera::detail
