// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether an operator that moves elements and computes nothing (plan/shape.hpp) may be applied,
/// decided from shardings alone. Extents are plan/shape_text.hpp's.
///
///     check_shape({x}, x.rank(), out).rule == ShapeRule::ok
///
/// Laws: a plan is made only for operators whose verdict is ShapeRule::ok; the same function serves
/// types and run time.
#include <cstdint>
#include <string>

#include <tessera/plan/shape.hpp>

namespace tessera {

enum class ShapeRule : std::uint8_t {
  ok,
  entry_each,        ///< the result's spec has one entry for each of its dimensions
  ranks_alike,       ///< tensors that are put together have as many dimensions
  dimension_known,   ///< a dimension that is named is the tensor's
  dimension_once,    ///< and is named once
  unfinished_alike,  ///< tensors that are put together are unfinished alike
  open_operand,      ///< what the result leaves open the operands leave open
};

struct ShapeVerdict {
  ShapeRule rule = ShapeRule::ok;
  int operand = -1;  ///< the operand concerned; the number of operands stands for the result
  int left = 0;      ///< the two facts that disagree: numbers of dimensions, or one and a dimension
  int right = 0;
  constexpr bool ok() const { return rule == ShapeRule::ok; }
  constexpr bool operator==(const ShapeVerdict&) const = default;
};

/// Checks operands that become one result of `rank` dimensions. What is unfinished is moved
/// unfinished: moving is linear.
constexpr ShapeVerdict check_shape(const Shardings& operands, int rank, const Sharding& out) {
  const Sharding& x = operands[0];
  for (int i = 1; i < operands.size(); ++i) {
    if (operands[i].rank() != x.rank())
      return {ShapeRule::ranks_alike, i, x.rank(), operands[i].rank()};
    if (operands[i].partial != x.partial || operands[i].reduction != x.reduction)
      return {ShapeRule::unfinished_alike, i};
  }
  if (out.rank() != rank) return {ShapeRule::entry_each, operands.size(), rank, out.rank()};
  if (!(out.partial - x.partial).empty() || (!out.partial.empty() && out.reduction != x.reduction))
    return {ShapeRule::open_operand, operands.size()};
  return {};
}

/// Checks the dimensions that an operator on a tensor of `rank` dimensions names.
constexpr ShapeVerdict check_dimensions(const Dimensions& dims, int rank) {
  for (int i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= rank) return {ShapeRule::dimension_known, 0, rank, dims[i]};
    for (int j = 0; j < i; ++j)
      if (dims[j] == dims[i]) return {ShapeRule::dimension_once, 0, rank, dims[i]};
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

/// Returns the rule that was broken and the way out, without the facts: what a type's message says
/// too.
constexpr std::string_view sentence(ShapeRule rule) {
  switch (rule) {
    case ShapeRule::ok:
      return "the operator is legal";
    case ShapeRule::entry_each:
      return "the spec of the result has another number of entries than the result has "
             "dimensions; write one entry for each dimension";
    case ShapeRule::ranks_alike:
      return "tensors that are put together have different numbers of dimensions; reshape one of "
             "them first";
    case ShapeRule::dimension_known:
      return "a dimension is named that the tensor does not have; dimensions count from 0";
    case ShapeRule::dimension_once:
      return "a dimension is named twice; name each once";
    case ShapeRule::unfinished_alike:
      return "tensors that are put together are not unfinished alike; finish them first, or leave "
             "all open over the same axes";
    case ShapeRule::open_operand:
      return "the result is to stay Unreduced where the operand is not; moving elements leaves "
             "open what was open, and nothing else; ask for a finished result";
  }
  return "";
}

/// Returns the sentence with its facts, for errors at run time.
inline std::string explain(const ShapeVerdict& v, int operands) {
  std::string facts;
  const auto fact = [&](const std::string& f) { facts += (facts.empty() ? "" : ", ") + f; };
  if (v.operand >= 0)
    fact(v.operand < operands ? "operand " + std::to_string(v.operand + 1)
                              : std::string("the result"));
  if (v.rule == ShapeRule::entry_each || v.rule == ShapeRule::ranks_alike)
    fact(std::to_string(v.left) + " against " + std::to_string(v.right));
  if (v.rule == ShapeRule::dimension_known || v.rule == ShapeRule::dimension_once)
    fact("dimension " + std::to_string(v.right) + " of " + std::to_string(v.left));
  return std::string(sentence(v.rule)) + (facts.empty() ? "" : " (" + facts + ")");
}

namespace detail {
/// Instantiated only for a call that breaks a rule; the assertion is the message, the arguments are
/// the facts.
template <ShapeRule R, class... Facts> struct InvalidShape;
template <class...> inline constexpr bool misshapen = false;
template <class... Facts> struct InvalidShape<ShapeRule::entry_each, Facts...> {
  static consteval bool said() {
    static_assert(misshapen<Facts...>,
                  "[tessera] the spec of the result has another number of entries than the result "
                  "has dimensions; write one entry for each dimension");
    return true;
  }
};
template <class... Facts> struct InvalidShape<ShapeRule::ranks_alike, Facts...> {
  static consteval bool said() {
    static_assert(misshapen<Facts...>,
                  "[tessera] tensors that are put together have different numbers of dimensions; "
                  "reshape one of them first");
    return true;
  }
};
template <class... Facts> struct InvalidShape<ShapeRule::dimension_known, Facts...> {
  static consteval bool said() {
    static_assert(misshapen<Facts...>,
                  "[tessera] a dimension is named that the tensor does not have; dimensions count "
                  "from 0");
    return true;
  }
};
template <class... Facts> struct InvalidShape<ShapeRule::dimension_once, Facts...> {
  static consteval bool said() {
    static_assert(misshapen<Facts...>, "[tessera] a dimension is named twice; name each once");
    return true;
  }
};
template <class... Facts> struct InvalidShape<ShapeRule::unfinished_alike, Facts...> {
  static consteval bool said() {
    static_assert(misshapen<Facts...>,
                  "[tessera] tensors that are put together are not unfinished alike; finish them "
                  "first, or leave all open over the same axes");
    return true;
  }
};
template <class... Facts> struct InvalidShape<ShapeRule::open_operand, Facts...> {
  static consteval bool said() {
    static_assert(
        misshapen<Facts...>,
        "[tessera] the result is to stay Unreduced where the operand is not; moving "
        "elements leaves open what was open, and nothing else; ask for a finished result");
    return true;
  }
};
}  // namespace detail

}  // namespace tessera
