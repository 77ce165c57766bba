// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A convolution in the form of planners and plans: windows, groups, and the part of each dimension
/// of each tensor. plan/op/window/convolution.hpp has the form that users write.
///
///     const detail::ConvolveParts p = detail::parts_of(parse("bhwi,hwio->bhwo"));      // p.kernel_out == 3
///
/// Laws: the parts follow from the letters alone: input and result share the batch, input and
/// kernel the input feature, kernel and result the output feature, all three each spatial
/// dimension.
#include <tessera/base/local_window.hpp>
#include <tessera/plan/equation.hpp>

namespace tessera::detail {

/// Which dimension of a tensor has the groups: its feature dimension, or the other one.
enum class GroupSide : std::uint8_t { feature, other };

/// The windows and groups of a convolution.
struct ConvolveWindows {
  FixedVector<Window, max_spatial> windows;
  Index groups = 1;
  GroupSide input = GroupSide::feature;       ///< other: the batch
  GroupSide kernel = GroupSide::feature;      ///< the output feature; other: the input feature
  GroupSide result = GroupSide::feature;      ///< other: the batch
  FixedVector<bool, max_spatial> mirrored{};  ///< the result is reversed in this dimension
  constexpr bool operator==(const ConvolveWindows&) const = default;
};

/// The dimension of each tensor that plays each part; -1: none.
struct ConvolveParts {
  int input_batch = -1, input_feature = -1;
  int kernel_in = -1, kernel_out = -1;
  int result_batch = -1, result_feature = -1;
  FixedVector<int, max_dims> input_spatial, kernel_spatial, result_spatial;
  bool complete = false;
};
constexpr ConvolveParts parts_of(const Term& input, const Term& kernel, const Term& result) {
  ConvolveParts parts;
  for (int d = 0; d < result.size(); ++d) {
    const char label = result[d];
    const int i = input.find(label), k = kernel.find(label);
    if (i >= 0 && k >= 0) {
      parts.input_spatial.push_back(i);
      parts.kernel_spatial.push_back(k);
      parts.result_spatial.push_back(d);
    } else if (i >= 0) {
      parts.input_batch = i;
      parts.result_batch = d;
    } else if (k >= 0) {
      parts.kernel_out = k;
      parts.result_feature = d;
    }
  }
  for (int d = 0; d < input.size(); ++d)
    if (const int k = kernel.find(input[d]); k >= 0 && !result.contains(input[d])) {
      parts.input_feature = d;
      parts.kernel_in = k;
    }
  const int spatial = parts.result_spatial.size();
  parts.complete = parts.input_batch >= 0 && parts.input_feature >= 0 && parts.kernel_out >= 0 &&
                   spatial >= 1 && spatial <= max_spatial && input.size() == spatial + 2 &&
                   kernel.size() == spatial + 2 && result.size() == spatial + 2;
  return parts;
}
constexpr ConvolveParts parts_of(const Terms& terms) {
  return parts_of(terms.operands[0], terms.operands[1], terms.result);
}

/// Returns the operations by which a process makes `made` of the result from its block of the
/// kernel, whose extents are `whole`: two for each product, zeros outside of the input included,
/// but not those that a dilated base has within. `all_taps`: dimensions in which the block holds
/// all taps that its results need.
constexpr Index operations(const ConvolveWindows& shape, const ConvolveParts& parts,
                           const Extents& whole, const Box& kernel, const Box& made,
                           const FixedVector<bool, max_spatial>& all_taps) {
  Index in = kernel[parts.kernel_in].size();
  if (shape.kernel == GroupSide::other) in = min_of(in, whole[parts.kernel_in] / shape.groups);
  Index products = saturating_mul(
      in, saturating_mul(made[parts.result_batch].size(), made[parts.result_feature].size()));
  for (int d = 0; d < shape.windows.size(); ++d) {
    const Window& w = shape.windows[d];
    const Interval taps =
        all_taps[d] ? Interval{0, w.size} : kernel_taps(w, kernel[parts.kernel_spatial[d]]);
    products = saturating_mul(products, detail::products(made[parts.result_spatial[d]], taps, w));
  }
  return saturating_mul(2, products);
}
}  // namespace tessera::detail
