// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Which operators elements of a type have, as a value. Elementwise functions say so themselves
/// (op/function_check.hpp); which unfinished kinds an element type has is spec/verdict.hpp's
/// matter.
///
///     check_product_type(DType::boolean).rule == Rule::products_of_numbers
///     check_reduce_type(Reduction::max, false, DType::c64).rule == Rule::extremes_of_ordered
///
/// Laws: ok exactly where the reduction is defined (base/reduction.hpp), but for the mean, which
/// integers do not have.
#include <tessera/base/reduction.hpp>
#include <tessera/base/verdict.hpp>
#include <tessera/spec/sharding.hpp>

namespace tessera {

/// Checks the elements of an einsum.
constexpr Verdict check_product_type(DType type) {
  if (is_number(type)) return {};
  return {.rule = Rule::products_of_numbers, .type = type};
}

/// Checks the elements of a reduction.
constexpr Verdict check_reduce_type(Reduction reduction, bool mean, DType type) {
  if (mean && is_integer(type)) return {.rule = Rule::means_of_floats, .type = type};
  if (defined(reduction, type)) return {};
  if (reduction == Reduction::any || reduction == Reduction::all)
    return {.rule = Rule::any_and_all_of_truths, .type = type};
  if (reduction == Reduction::sum || reduction == Reduction::product)
    return {.rule = Rule::sums_of_numbers, .type = type};
  return {.rule = is_boolean(type) ? Rule::extremes_of_numbers : Rule::extremes_of_ordered,
          .type = type};
}

/// Checks what a reduction, or a running one, of elements `type` is asked to return: `result`. A
/// sum of narrow integers that is left open is one in their own arithmetic, which wraps; so it is
/// not the sum of its parts in int64.
constexpr Verdict check_reduced_type(DType type, DType result, const Sharding& x) {
  if (result == type) return {};
  if (!is_integer(type) || result != DType::i64)
    return {.rule = Rule::sums_as_own_or_int64, .type = type};
  if (x.partial.empty()) return {};
  return {.rule = Rule::wide_sums_of_finished, .type = type};
}

/// Checks the keys of a sort: truth values have an order there, false before true.
constexpr Verdict check_sort_type(DType type) {
  if (!is_complex(type)) return {};
  return {.rule = Rule::extremes_of_ordered, .type = type};
}

namespace detail {
template <Rule R, class T> consteval bool demand_elements() {
  if constexpr (R != Rule::ok) return InvalidOperator<R, T>::said();
  return true;
}
}  // namespace detail

}  // namespace tessera
