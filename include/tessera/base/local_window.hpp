// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Windows over one process's own memory, as values: planners decide them, kernels carry them out.
/// All offsets and strides count elements. Extents describe the local part, and a window's `low`
/// says where the first tap lies of the first local result (base/window.hpp: local_window); outside
/// the part lie zeros, or the identity of the reduction. `high` is not read.
///
///     // 8 filters of 3 taps over 4 sequences of 16 elements with 3 features each, features first
///     const detail::LocalConvolve c{.batch = 4, .in_features = 3, .out_features = 8,
///                           .input = {16}, .result = {14}, .windows = {{.size = 3}},
///                           .in = {.first = 48, .second = 16, .spatial = {1}},
///                           .kernel = {.first = 3, .second = 9, .spatial = {1}},
///                           .out = {.first = 112, .second = 14, .spatial = {1}}};
///     c.flops() == 2 * 4 * 8 * 14 * 3 * 3;
#include <tessera/base/window.hpp>

namespace tessera::detail {

/// Most spatial dimensions that a convolution may have.
inline constexpr int max_spatial = 3;

/// How one operand of a convolution lies: strides of its groups, of its two other dimensions, and
/// of its spatial dimensions.
struct ConvolveLayout {
  Index offset = 0;
  Index group = 0;
  Index first = 0;   ///< input and result: batch; kernel: input feature
  Index second = 0;  ///< input and result: feature; kernel: output feature
  FixedVector<Index, max_spatial> spatial{};
  constexpr bool operator==(const ConvolveLayout&) const = default;
};

/// Within each group g: result(n, o, y) = sum over c in 0..C-1 and taps t of kernel(c, o, k(t)) *
/// input(n, c, x(y, t)), where k(t) = size-1-t if the window is reversed. Groups of features and of
/// the batch differ only in their strides. The result is overwritten, not added to.
struct LocalConvolve {
  Index groups = 1;
  Index batch = 1;        ///< of one group, like the features
  Index in_features = 1;  ///< C
  Index out_features = 1;
  FixedVector<Index, max_spatial> input{};   ///< spatial extents
  FixedVector<Index, max_spatial> result{};  ///< spatial extents
  FixedVector<Window, max_spatial> windows{};
  ConvolveLayout in{};
  ConvolveLayout kernel{};
  ConvolveLayout out{};
  constexpr Index taps() const {
    Index product = 1;
    for (const Window& w : windows) product = saturating_mul(product, w.size);
    return product;
  }
  /// Returns the multiplications and additions, including those with zeros outside, not those with
  /// the empty positions of a dilated base.
  constexpr Index flops() const {
    Index products = saturating_mul(saturating_mul(2 * batch, groups),
                                    saturating_mul(in_features, out_features));
    for (int d = 0; d < windows.size(); ++d)
      products = saturating_mul(products,
                                detail::products({0, result[d]}, {0, windows[d].size}, windows[d]));
    return products;
  }
  constexpr bool operator==(const LocalConvolve&) const = default;
};

/// Reduces the elements under a window for each result, in all dimensions. The result is
/// contiguous, row-major; the input has strides of its own.
struct LocalReduceWindow {
  Extents input{};
  Extents input_strides{};
  Extents result{};
  WindowList windows{};
  constexpr bool operator==(const LocalReduceWindow&) const = default;
};

/// Selects in each window of `input` the greatest (or least) element that comes first, and adds the
/// window's source to the place of that element: the gradient of a reduce-window by max. Element i
/// of the result is at input element first[d] + i in dimension d. The sources cover all windows
/// that contain such an element, and the input covers all elements of those windows (read_by(),
/// then reach(), give these ranges). More sources and elements may be present and have no effect.
/// Input and source are contiguous, row-major; so is the result, which is overwritten.
struct LocalSelectScatter {
  Extents input{};
  Extents source{};
  Extents result{};
  Extents first{};
  WindowList windows{};
  constexpr bool operator==(const LocalSelectScatter&) const = default;
};

}  // namespace tessera::detail
