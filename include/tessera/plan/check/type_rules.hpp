// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Which operators an element type allows, as a value. Elementwise functions say so themselves
/// (op/elements/function_check.hpp); spec/verdict.hpp says which unfinished kinds an element type
/// has.
///
///     detail::check_product_type(DType::boolean).rule == Rule::products_of_numbers
///     detail::check_reduce_type(Reduction::max, false, DType::c64).rule == Rule::extremes_of_ordered
///
/// Laws: ok exactly where the reduction is defined (base/reduction.hpp), except for the mean, which
/// integers do not have, and for sums and products that are wider than their elements.
#include <type_traits>

#include <tessera/base/reduction.hpp>
#include <tessera/base/verdict.hpp>
#include <tessera/spec/sharding.hpp>

namespace tessera::detail {

/// Checks the elements of an einsum.
constexpr Verdict check_product_type(DType type) {
  if (is_number(type)) return {};
  return {.rule = Rule::products_of_numbers, .type = type};
}

/// Checks the elements of a reduction that keeps their type.
constexpr Verdict check_reduce_type(Reduction reduction, bool mean, DType type) {
  if (mean && (is_integer(type) || is_boolean(type)))
    return {.rule = Rule::means_of_floats, .type = type};
  if (defined(reduction, type)) return {};
  if (reduction == Reduction::any || reduction == Reduction::all)
    return {.rule = Rule::any_and_all_of_truths, .type = type};
  if (reduction == Reduction::sum || reduction == Reduction::product)
    return {.rule = Rule::sums_of_numbers, .type = type};
  return {.rule = is_boolean(type) ? Rule::extremes_of_numbers : Rule::extremes_of_ordered,
          .type = type};
}

/// Checks a reduction, or a running one, of elements `type`, and its requested element type
/// `result`. An open sum or product of narrow integers uses their own arithmetic, which wraps, so
/// it is not that of its parts in 64 bits.
constexpr Verdict check_reduced_type(Reduction reduction, bool mean, DType type, DType result,
                                     const Sharding& x) {
  const bool adds = reduction == Reduction::sum || reduction == Reduction::product;
  if (mean || !adds || result == type) return check_reduce_type(reduction, mean, type);
  const bool whole = is_integer(type) || is_boolean(type);
  if (!whole || (result != DType::i64 && result != DType::u64))
    return {.rule = Rule::sums_as_own_or_64_bits, .type = type};
  if (x.partial.empty()) return {};
  if (x.reduction != reduction) return {Rule::finished, 0};
  return {.rule = reduction == Reduction::sum ? Rule::wide_sums_of_finished
                                              : Rule::wide_products_of_finished,
          .type = type};
}

/// Checks the keys of a sort: truth values are ordered, false before true.
constexpr Verdict check_sort_type(DType type) {
  if (!is_complex(type)) return {};
  return {.rule = Rule::extremes_of_ordered, .type = type};
}

/// Checks the elements of a search for the largest or the least.
constexpr Verdict check_arg_type(DType type) {
  if (is_ordered(type)) return {};
  return {.rule = Rule::searches_of_ordered, .type = type};
}

/// Checks the elements of operand `operand`, which holds indices.
constexpr Verdict check_index_type(DType type, int operand) {
  if (type == DType::i32 || type == DType::i64) return {};
  return {.rule = Rule::indices_of_integers, .operand = operand, .type = type};
}

/// Checks that operand `operand` has the same element type as another, as `rule` requires.
constexpr Verdict check_one_type(Rule rule, DType type, DType other, int operand) {
  if (type == other) return {};
  return {.rule = rule, .operand = operand, .type = type, .other = other};
}

template <Rule R, class T> consteval bool demand_elements() {
  if constexpr (R != Rule::ok) return InvalidOperator<R, T>::said();
  return true;
}
}  // namespace tessera::detail
