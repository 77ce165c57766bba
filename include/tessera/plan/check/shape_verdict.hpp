// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether an operator that moves elements and computes nothing (plan/region/shape.hpp) may be
/// applied: decided from shardings, extents and the operator's numbers.
///
///     detail::check_shape({x}, x.rank(), out).rule == Rule::ok
///     detail::check_slice({128, 14}, {{0, 2}, {128, 17}, {}}).rule == Rule::slice_within
///
/// Laws: a plan is made only for operators whose verdict is Rule::ok; the same function serves
/// types and run time; a result may be empty.
#include <string>
#include <string_view>
#include <type_traits>

#include <tessera/base/verdict.hpp>
#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/region/shape.hpp>

namespace tessera {
namespace detail {

/// Checks operands that become one result of `rank` dimensions. Unfinished values are moved
/// unfinished: moving is linear.
constexpr Verdict check_shape(const Shardings& operands, int rank, const Sharding& out) {
  const Sharding& x = operands[0];
  for (int i = 1; i < operands.size(); ++i) {
    if (operands[i].rank() != x.rank())
      return {
          .rule = Rule::ranks_alike, .operand = i, .left = x.rank(), .right = operands[i].rank()};
    if (operands[i].partial != x.partial || operands[i].reduction != x.reduction)
      return {Rule::unfinished_alike, i};
  }
  if (out.rank() != rank)
    return {
        .rule = Rule::entry_each, .operand = operands.size(), .left = rank, .right = out.rank()};
  if (!(out.partial - x.partial).empty() || (!out.partial.empty() && out.reduction != x.reduction))
    return {Rule::open_operand, operands.size()};
  return {};
}

/// Checks the dimensions that an operator on a tensor of `rank` dimensions names.
constexpr Verdict check_dimensions(const Dimensions& dims, int rank) {
  for (int i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= rank)
      return {.rule = Rule::dimension_known, .operand = 0, .left = rank, .dim = dims[i]};
    for (int j = 0; j < i; ++j)
      if (dims[j] == dims[i])
        return {.rule = Rule::dimension_once, .operand = 0, .left = rank, .dim = dims[i]};
  }
  return {};
}

/// Checks that a list has one number for each of `rank` dimensions; an `optional` list may be
/// empty.
constexpr Verdict check_number_each(const Extents& numbers, int rank, bool optional = false,
                                    int operand = -1) {
  if (numbers.size() == rank || (optional && numbers.empty())) return {};
  return {.rule = Rule::number_each, .operand = operand, .left = numbers.size(), .right = rank};
}

/// Checks a slice of a tensor of extents x; `operand`: its number, where there are several.
constexpr Verdict check_slice(const Extents& x, const Slice& slice, int operand = -1) {
  for (const Extents* numbers : {&slice.start, &slice.limit, &slice.stride})
    if (const Verdict v = check_number_each(*numbers, x.size(), numbers == &slice.stride, operand);
        !v.ok())
      return v;
  for (int d = 0; d < x.size(); ++d) {
    const Index lo = slice.start[d], hi = slice.limit[d];
    if (lo < 0 || lo > hi || hi > x[d])
      return {.rule = Rule::slice_within, .operand = operand, .left = lo, .right = hi, .dim = d};
    if (slice.step(d) < 1)
      return {.rule = Rule::stride_positive, .operand = operand, .left = slice.step(d), .dim = d};
  }
  return {};
}
}  // namespace detail

/// The value outside a tensor, as far as joins depend on it.
enum class Outside : std::uint8_t { zero, one, other };

namespace detail {
/// Checks that a value may be used with values of this sharding: joining the value with itself,
/// from every process, must give the value.
constexpr Verdict check_outside(Outside value, const Sharding& x) {
  if (x.partial.empty()) return {};
  const bool stays = x.reduction == Reduction::sum       ? value == Outside::zero
                     : x.reduction == Reduction::product ? value != Outside::other
                                                         : true;
  return stays ? Verdict{} : Verdict{Rule::outside_joins};
}

/// Checks tensors that are put together, and their slices: all have the same number of dimensions
/// and the same element type.
constexpr Verdict check_parts(const TensorDescs& x, const Slices& slices) {
  for (int k = 1; k < x.size(); ++k) {
    if (x[k].rank() != x[0].rank())
      return {.rule = Rule::ranks_alike, .operand = k, .left = x[0].rank(), .right = x[k].rank()};
    if (const Verdict v = check_one_type(Rule::joined_types_alike, x[0].type, x[k].type, k);
        !v.ok())
      return v;
  }
  for (int k = 0; k < min_of(slices.size(), x.size()); ++k)
    if (slices[k])
      if (const Verdict v = check_slice(x[k].extents, *slices[k], k); !v.ok()) return v;
  return {};
}

/// Returns the default sharding of a result with the operands' dimensions: that of the first
/// operand that is split; unfinished like the operands.
constexpr Sharding taken_sharding(const Shardings& operands) {
  for (const Sharding& x : operands)
    if (!x.used().empty()) return x;
  return operands[0];
}

/// "14 elements".
inline std::string counted(Index n, std::string_view what) {
  return std::to_string(n) + " " + std::string(what) + (n == 1 ? "" : "s");
}
/// " in dimension 1, which has 14 elements", if there is such a dimension.
inline std::string in_dimension(int d, const Extents& x) {
  if (d < 0 || d >= x.size()) return "";
  return " in dimension " + std::to_string(d) + ", which has " + counted(x[d], "element");
}
/// The fact of Rule::number_each.
inline std::string entries_text(std::string_view name, const Verdict& v) {
  return std::string(name) + " has " + std::to_string(v.left) +
         (v.left == 1 ? " entry for " : " entries for ") + counted(v.right, "dimension");
}
/// Finds the list with the wrong number of entries among an operator's members; strides and
/// interiors may be left out.
struct NameEntries {
  const Verdict& verdict;
  std::string& text;
  template <class T> void operator()(std::string_view name, const T& list) const {
    if constexpr (std::is_same_v<T, Extents>)
      if (text.empty() && list.size() == verdict.left &&
          !(list.empty() && (name == "stride" || name == "interior")))
        text = entries_text(name, verdict);
  }
};
}  // namespace detail
}  // namespace tessera
