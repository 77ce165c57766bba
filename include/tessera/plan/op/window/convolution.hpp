// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The description of a convolution: the part of each dimension of each tensor, its windows and
/// groups, and the checks for errors.
///
///     constexpr Terms t = parse("bhwi,hwio->bhwo");       // NHWC; letters say all
///     Convolution c{.stride = {2, 2}, .low = {3, 3}, .high = {3, 3}};
///
/// The letters: input and result share the batch, input and kernel the input feature, kernel and
/// result the output feature, and all three each spatial dimension. So every layout can be written,
/// and a gradient is a convolution with other letters.
///
/// Laws: settings have one entry for each spatial dimension, in the order of the result's letters,
/// or none; no entries stand for 1 (strides and dilations) or 0.
#include <tessera/plan/check/verdict.hpp>
#include <tessera/plan/convolve_shape.hpp>

namespace tessera {

/// Layouts of two spatial dimensions.
inline constexpr Equation nhwc{"bhwi,hwio->bhwo"};
inline constexpr Equation nchw{"bihw,oihw->bohw"};

/// The settings of a convolution (XLA's): GShard, Appendix A.4.
struct Convolution {
  using PerDimension = FixedVector<Index, detail::max_spatial>;
  PerDimension stride{};
  PerDimension low{};   ///< padding before the first element; negative: cropping
  PerDimension high{};  ///< and after the last
  PerDimension base_dilation{};
  PerDimension window_dilation{};
  PerDimension reversed{};  ///< 1: the kernel is reversed in this dimension
  Index feature_groups = 1;
  Index batch_groups = 1;
  bool portable = false;  ///< use Tessera's own kernel, whose bits do not depend on the partition
  constexpr bool operator==(const Convolution&) const = default;
};

namespace detail {
/// Returns the planner's form of the settings; the windows have the kernel's extents.
constexpr ConvolveWindows shape_of(const Convolution& c, const ConvolveParts& parts,
                                   const Extents& kernel) {
  ConvolveWindows shape;
  const auto entry = [](const Convolution::PerDimension& list, int d, Index otherwise) {
    return d < list.size() ? list[d] : otherwise;
  };
  for (int d = 0; d < parts.kernel_spatial.size() && d < max_spatial; ++d)
    shape.windows.push_back({kernel[parts.kernel_spatial[d]], entry(c.stride, d, 1),
                             entry(c.low, d, 0), entry(c.high, d, 0), entry(c.base_dilation, d, 1),
                             entry(c.window_dilation, d, 1), entry(c.reversed, d, 0) != 0});
  shape.groups = c.feature_groups * c.batch_groups;
  if (c.batch_groups > 1) shape.input = GroupSide::other;
  return shape;
}

/// Checks the numbers of a convolution of `input` by `kernel`. Precondition: its letters are
/// correct (check_convolve).
constexpr Verdict check_convolution(const Convolution& c, const Terms& terms, const Extents& input,
                                    const Extents& kernel) {
  const ConvolveParts parts = parts_of(terms);
  const int spatial = parts.result_spatial.size();
  const auto along = [&](Rule rule, int d, Index left, Index right) {
    return Verdict{.rule = rule,
                   .label = terms.result[parts.result_spatial[d]],
                   .left = left,
                   .right = right,
                   .dim = d};
  };
  for (const Convolution::PerDimension* list :
       {&c.stride, &c.low, &c.high, &c.base_dilation, &c.window_dilation, &c.reversed})
    if (!list->empty() && list->size() != spatial)
      return {.rule = Rule::convolution_entry_each, .left = list->size(), .right = spatial};
  for (const Convolution::PerDimension* list : {&c.stride, &c.base_dilation, &c.window_dilation})
    for (int d = 0; d < list->size(); ++d)
      if ((*list)[d] < 1) return along(Rule::convolution_positive, d, (*list)[d], 1);
  if (c.feature_groups < 1 || c.batch_groups < 1 || (c.feature_groups > 1 && c.batch_groups > 1))
    return {.rule = Rule::groups_positive, .left = c.feature_groups, .right = c.batch_groups};
  const Index in = kernel[parts.kernel_in], out = kernel[parts.kernel_out];
  if (input[parts.input_feature] != in * c.feature_groups)
    return {.rule = Rule::channels_match,
            .left = input[parts.input_feature],
            .right = in * c.feature_groups};
  if (out % (c.feature_groups * c.batch_groups) != 0)
    return {
        .rule = Rule::groups_divide_out, .left = out, .right = c.feature_groups * c.batch_groups};
  if (input[parts.input_batch] % c.batch_groups != 0)
    return {.rule = Rule::groups_divide_batch,
            .left = input[parts.input_batch],
            .right = c.batch_groups};
  const ConvolveWindows shape = shape_of(c, parts, kernel);
  for (int d = 0; d < spatial; ++d) {
    const Window& w = shape.windows[d];
    if (w.size < 1) return along(Rule::kernel_not_empty, d, w.size, 1);
    const Index padded = dilated(input[parts.input_spatial[d]], w.base_dilation) + w.low + w.high;
    if (padded < dilated(w.size, w.window_dilation))
      return along(Rule::kernel_fits, d, dilated(w.size, w.window_dilation), max_of(0, padded));
  }
  return {};
}

/// Returns the extents of the result.
constexpr Extents convolved_extents(const ConvolveWindows& shape, const ConvolveParts& parts,
                                    const Extents& input, const Extents& kernel) {
  Extents extents(parts.result_spatial.size() + 2, 1);
  const bool from_batch = shape.input == GroupSide::other,
             to_batch = shape.result == GroupSide::other;
  extents[parts.result_batch] =
      input[parts.input_batch] / (from_batch ? shape.groups : 1) * (to_batch ? shape.groups : 1);
  extents[parts.result_feature] = kernel[parts.kernel_out] /
                                  (shape.kernel == GroupSide::feature ? shape.groups : 1) *
                                  (shape.result == GroupSide::feature ? shape.groups : 1);
  for (int d = 0; d < shape.windows.size(); ++d)
    extents[parts.result_spatial[d]] =
        result_extent(input[parts.input_spatial[d]], shape.windows[d]);
  return extents;
}

/// Checks the letters and shardings of a convolution.
constexpr Verdict check_convolve(const Terms& terms, const Shardings& operands,
                                 const Sharding& out) {
  if (const Verdict v = detail::check_terms(terms, operands, out); !v.ok()) return v;
  if (terms.operands.size() != 2 || !parts_of(terms).complete) return {Rule::convolution_letters};
  for (int i = 0; i < 2; ++i)  // it is linear in each
    if (!operands[i].partial.empty() && operands[i].reduction != Reduction::sum)
      return {Rule::finished, i};
  if (!operands[0].partial.empty() && !operands[1].partial.empty())
    return {Rule::one_unfinished, 1};
  if (out.partial.empty()) return {};
  if (out.reduction != Reduction::sum) return {Rule::reduction_alike, 2};
  // Sums run over the input feature and the taps of the kernel, and over axes that are already
  // open.
  const ConvolveParts parts = parts_of(terms);
  AxisSet may = operands[0][parts.input_feature].set() | operands[1][parts.kernel_in].set();
  for (int d : parts.kernel_spatial) may = may | operands[1][d].set();
  may = may | operands[0].partial | operands[1].partial;
  for (int axis = 0; axis < max_axes; ++axis)
    if (out.partial.contains(axis) && !may.contains(axis))
      return {Rule::open_axis_contracted, 2, 0, axis};
  return {};
}

/// Checks an operator whose windows slide over all dimensions: from finished to finished.
constexpr Verdict check_window(const Shardings& operands, const Sharding& out) {
  const int rank = operands[0].rank();
  for (int i = 0; i < operands.size(); ++i) {
    if (operands[i].rank() != rank) return {Rule::ranks_alike, i, 0, -1, rank, operands[i].rank()};
    if (!operands[i].partial.empty()) return {Rule::finished, i};
  }
  if (out.rank() != rank) return {Rule::entry_each, operands.size(), 0, -1, rank, out.rank()};
  return out.partial.empty() ? Verdict{} : Verdict{Rule::finished, operands.size()};
}

/// Returns the default sharding of the result: the batch and the spatial dimensions like the
/// input's, features like the kernel's; an axis goes to the first dimension that has it.
constexpr Sharding deduce_convolve(const Terms& terms, const Shardings& operands) {
  Sharding s = Sharding::replicated(terms.result.size());
  if (!detail::check_terms(terms, operands, s).ok() || !parts_of(terms).complete) return s;
  const ConvolveParts parts = parts_of(terms);
  AxisSet used;
  const auto give = [&](int to, AxisList axes) {
    s[to] = axes.without(used);
    used = used | axes.set();
  };
  give(parts.result_batch, operands[0][parts.input_batch]);
  for (int d = 0; d < parts.result_spatial.size(); ++d)
    give(parts.result_spatial[d], operands[0][parts.input_spatial[d]]);
  give(parts.result_feature, operands[1][parts.kernel_out]);
  return s;
}
}  // namespace detail
}  // namespace tessera
