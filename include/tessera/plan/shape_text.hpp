// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What is wrong with the extents and places that an operator of plan/shape.hpp is given, as a
/// sentence with the numbers in it.
///
///     slice_text({128, 14}, {0, 2}, {128, 17}, {})
///     // the slice is [2, 17) in dimension 1, which has 14 elements; 0 <= start <= limit <= extent; ...
///
/// Laws: empty exactly where the operator is defined; a result may be empty.
#include <string>

#include <tessera/plan/explain.hpp>
#include <tessera/plan/shape.hpp>

namespace tessera {
namespace detail {
/// What is wrong with the number of entries of an argument.
inline std::string entries_text(std::string_view name, int entries, int dimensions) {
  if (entries == dimensions) return "";
  return std::string(name) + " has " + std::to_string(entries) +
         (entries == 1 ? " entry" : " entries") + " for " + std::to_string(dimensions) +
         (dimensions == 1 ? " dimension" : " dimensions") + "; give one entry for each dimension";
}
inline std::string in_dimension(int d, const Extents& x) {
  return " in dimension " + std::to_string(d) + ", which has " + std::to_string(x[d]) +
         (x[d] == 1 ? " element" : " elements");
}
inline std::string interval_text(Index lo, Index hi) {
  return "[" + std::to_string(lo) + ", " + std::to_string(hi) + ")";
}
}  // namespace detail

/// Returns what is wrong with a slice, or nothing.
inline std::string slice_text(const Extents& x, const Extents& start, const Extents& limit,
                              const Extents& stride) {
  for (const std::string& text :
       {detail::entries_text("start", start.size(), x.size()),
        detail::entries_text("limit", limit.size(), x.size()),
        detail::entries_text("stride", stride.empty() ? x.size() : stride.size(), x.size())})
    if (!text.empty()) return text;
  for (int d = 0; d < x.size(); ++d) {
    if (start[d] < 0 || start[d] > limit[d] || limit[d] > x[d])
      return "the slice is " + detail::interval_text(start[d], limit[d]) +
             detail::in_dimension(d, x) +
             "; 0 <= start <= limit <= extent; cut it to the tensor, or pad the tensor first";
    if (!stride.empty() && stride[d] < 1)
      return "the stride is " + std::to_string(stride[d]) + detail::in_dimension(d, x) +
             "; strides count from 1; reverse goes backwards";
  }
  return "";
}

/// Returns what is wrong with the slices of operands, of extents x, or nothing.
inline std::string slices_text(const FixedVector<Extents, max_operands>& x, const Slices& slices) {
  for (int k = 0; k < slices.size(); ++k)
    if (slices[k])
      if (const std::string text =
              slice_text(x[k], slices[k]->start, slices[k]->limit, slices[k]->stride);
          !text.empty())
        return "of operand " + std::to_string(k + 1) + ", " + text;
  return "";
}

/// Returns what is wrong with a pad, or nothing.
inline std::string pad_text(const Extents& x, const Extents& low, const Extents& high,
                            const Extents& interior) {
  for (const std::string& text :
       {detail::entries_text("low", low.size(), x.size()),
        detail::entries_text("high", high.size(), x.size()),
        detail::entries_text("interior", interior.empty() ? x.size() : interior.size(), x.size())})
    if (!text.empty()) return text;
  constexpr Index most = max_int64 / 4;
  for (int d = 0; d < x.size(); ++d) {
    const Index between = interior.empty() ? 0 : interior[d];
    if (between < 0)
      return "the interior padding is " + std::to_string(between) + detail::in_dimension(d, x) +
             "; it counts from 0; a slice with a stride leaves elements out";
    if (between >= most || saturating_mul(max_of(x[d], 1), between + 1) >= most ||
        max_of(low[d], high[d]) > most || min_of(low[d], high[d]) < -most)
      return "the padding is " + std::to_string(low[d]) + "_" + std::to_string(high[d]) + "_" +
             std::to_string(between) + detail::in_dimension(d, x) +
             "; a padded dimension has less than 2^61 elements";
    const Index wide = dilated(x[d], between + 1);
    if (wide + low[d] + high[d] < 0)
      return "the padding is " + std::to_string(low[d]) + "_" + std::to_string(high[d]) +
             detail::in_dimension(d, x) +
             (between > 0 ? " (" + std::to_string(wide) + " with the interior padding)" : "") +
             "; negative padding crops, and cannot crop more than there is";
  }
  return "";
}

/// Returns what is wrong with the extents of tensors that are put one behind the other along `dim`,
/// or nothing.
inline std::string concatenate_text(const FixedVector<Extents, max_operands>& x, int dim) {
  for (int k = 1; k < x.size(); ++k)
    for (int d = 0; d < x[0].size(); ++d)
      if (d != dim && x[k][d] != x[0][d])
        return "operand 1 is " + to_string(x[0]) + " and operand " + std::to_string(k + 1) +
               " is " + to_string(x[k]) + ": dimension " + std::to_string(d) + " has " +
               std::to_string(x[0][d]) + " elements in one and " + std::to_string(x[k][d]) +
               " in the other; all extents but that of dimension " + std::to_string(dim) +
               " are equal; pad or slice one of them first";
  return "";
}

/// Returns what is wrong with a block that takes the place of part of x, or nothing.
inline std::string update_text(const Extents& x, const Extents& block, const Extents& start) {
  if (const std::string text = detail::entries_text("start", start.size(), x.size()); !text.empty())
    return text;
  for (int d = 0; d < x.size(); ++d)
    if (start[d] < 0 || start[d] > x[d] - block[d])
      return "the block, of " + std::to_string(block[d]) +
             (block[d] == 1 ? " element" : " elements") + ", begins at " +
             std::to_string(start[d]) + detail::in_dimension(d, x) +
             "; it lies within the tensor; move it, or slice it first";
  return "";
}

/// Returns what is wrong with new extents, or nothing.
inline std::string reshape_text(const Extents& from, const Extents& to) {
  for (int d = 0; d < to.size(); ++d)
    if (to[d] < 0)
      return "the new extents are " + to_string(to) + ": dimension " + std::to_string(d) + " has " +
             std::to_string(to[d]) + " elements; extents count from 0";
  if (volume(from) == volume(to)) return "";
  return "a tensor of " + to_string(from) + " has " + std::to_string(volume(from)) +
         " elements and one of " + to_string(to) + " has " + std::to_string(volume(to)) +
         "; reshape keeps their number; pad or slice the tensor first";
}

}  // namespace tessera
