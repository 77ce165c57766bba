// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A convolution of images, batch norm and a function of the elements, as in residual networks.
///
///     auto block = ConvolutionBlock<Here>::like(make, {3, 3}, 2, 6);
///     auto [y, mean, variance] = convolution_block(block, images, {.low = {1, 1}, .high = {1, 1}}, fn::Relu{});
///
/// Laws: equals batch_norm of the convolution, and then the function.
#include <tessera/nn/batch_norm.hpp>
#include <tessera/op/product/convolve.hpp>

namespace tessera {

template <class U, class In = logical::in_channels, class Out = logical::channels>
struct ConvolutionBlock {
  typename U::template Tensor<_, _, In, Out> kernel;
  BatchNorm<U, Out> norm;
  static constexpr auto fields = Fields<&ConvolutionBlock::kernel, &ConvolutionBlock::norm>{};

  /// Returns a block with a kernel of the given window, from `in` to `out` channels. Source of the
  /// deviation: He et al. (2015).
  static ConvolutionBlock like(Parameters<typename U::mesh_type>& make, const Extents& window,
                               Index in, Index out, Where where = Where::here()) {
    if (window.size() != 2)
      throw ShapeError("convolution_block: the window has " + std::to_string(window.size()) +
                           " dimensions, and an image has two; give its height and width",
                       where);
    auto kernel = make.template tensor<typename U::template Tensor<_, _, In, Out>>(
        {window[0], window[1], in, out},
        Initializer::fan_in(window[0] * window[1] * in, 1.4142135623730951), where);
    return {kernel, BatchNorm<U, Out>::like(make, out)};
  }
};

/// Returns activation(batch_norm(convolution of x)), with the batch's statistics, as batch_norm: x
/// is (batch, height, width, in), y (batch, height', width', out). Communication: the convolution's
/// halos where height or width are split, and batch_norm's reductions. Collective over the mesh.
/// Throws ShapeError as convolve does. Source: He et al., "Deep residual learning" (2016).
template <class U, class In, class Out, TypedTensor A, class F>
auto convolution_block(const ConvolutionBlock<U, In, Out>& block, const A& x,
                       const Convolution& settings, const F& activation, double epsilon = 1e-5,
                       Where where = Where::here()) {
  auto made =
      batch_norm(block.norm, convolve<nhwc>(x, block.kernel, settings, where), epsilon, where);
  made.y = map(activation, made.y, where);
  return made;
}

}  // namespace tessera
