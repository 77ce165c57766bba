// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether an operator that moves elements and computes nothing (plan/shape.hpp) may be applied,
/// decided from shardings alone. Extents are plan/shape_text.hpp's.
///
///     check_shape({x}, x.rank(), out).rule == Rule::ok
///
/// Laws: a plan is made only for operators whose verdict is Rule::ok; the same function serves
/// types and run time.
#include <tessera/base/verdict.hpp>
#include <tessera/plan/shape.hpp>

namespace tessera {

/// Checks operands that become one result of `rank` dimensions. What is unfinished is moved
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

/// Returns the sharding that a result of the operands' rank has where none is asked for: that of
/// the first operand that is split; unfinished as they are.
constexpr Sharding taken_sharding(const Shardings& operands) {
  for (const Sharding& x : operands)
    if (!x.used().empty()) return x;
  return operands[0];
}

}  // namespace tessera
