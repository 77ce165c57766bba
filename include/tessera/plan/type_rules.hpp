// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Which operators elements of a type have, as a value. Elementwise functions say so themselves
/// (op/function_check.hpp); which unfinished kinds an element type has is spec/verdict.hpp's
/// matter.
///
///     check_product_type(DType::boolean) == TypeRule::products
///     check_reduce_type(Reduction::max, false, DType::c64) == TypeRule::order
///
/// Laws: TypeRule::ok exactly where the reduction is defined (base/reduction.hpp), but for the
/// mean, which integers do not have.
#include <cstdint>
#include <string_view>

#include <tessera/base/reduction.hpp>
#include <tessera/spec/sharding.hpp>

namespace tessera {

enum class TypeRule : std::uint8_t {
  ok,
  products,  ///< the product of truth values
  sums,      ///< their sum
  mean,      ///< the mean of integers
  order,     ///< the largest of complex numbers
  truths,    ///< the largest of truth values
  numbers,   ///< whether any number is true
  open,      ///< the sum, as int64, of narrow integers whose own sums are unfinished
  named,     ///< a result type that is neither the elements' own nor int64
};

/// Checks the elements of an einsum.
constexpr TypeRule check_product_type(DType type) {
  return is_number(type) ? TypeRule::ok : TypeRule::products;
}

/// Checks the elements of a reduction.
constexpr TypeRule check_reduce_type(Reduction reduction, bool mean, DType type) {
  if (mean && is_integer(type)) return TypeRule::mean;
  if (defined(reduction, type)) return TypeRule::ok;
  if (reduction == Reduction::any || reduction == Reduction::all) return TypeRule::numbers;
  if (reduction == Reduction::sum || reduction == Reduction::product) return TypeRule::sums;
  return is_boolean(type) ? TypeRule::truths : TypeRule::order;
}

/// Checks what a reduction, or a running one, of elements `type` is asked to return: `result`. A
/// sum of narrow integers that is left open is one in their own arithmetic, which wraps; so it is
/// not the sum of its parts in int64.
constexpr TypeRule check_reduced_type(DType type, DType result, const Sharding& x) {
  if (result == type) return TypeRule::ok;
  if (!is_integer(type) || result != DType::i64) return TypeRule::named;
  return x.partial.empty() ? TypeRule::ok : TypeRule::open;
}

/// Checks the keys of a sort: truth values have an order there, false before true.
constexpr TypeRule check_sort_type(DType type) {
  return is_complex(type) ? TypeRule::order : TypeRule::ok;
}

/// Returns what is wrong, the rule and the way out: what a type's message says too.
constexpr std::string_view sentence(TypeRule rule) {
  switch (rule) {
    case TypeRule::ok:
      return "the elements have this operator";
    case TypeRule::products:
      return "truth values have no products and sums; cast them to a number first, or use "
             "logical_and with reduce<Any> or reduce<All>";
    case TypeRule::sums:
      return "truth values have no sum and no product; cast them to an integer to count them, or "
             "use reduce<Any> or reduce<All>";
    case TypeRule::mean:
      return "the mean of integers is not an integer; convert to float or double with cast first";
    case TypeRule::order:
      return "complex numbers have no largest and no smallest; take abs(x), real(x) or imag(x) "
             "first";
    case TypeRule::truths:
      return "truth values are reduced by reduce<Any> and reduce<All>, not by their size; use one "
             "of these";
    case TypeRule::numbers:
      return "numbers are not true or false; compare them first, as in not_equal(x, 0)";
    case TypeRule::open:
      return "the tensor is an unfinished sum of narrow integers, which wraps in their own type, "
             "and "
             "sums of them are int64; reshard it to a finished spec first, cast it to int64 before "
             "it is left open, or name its own type, as in reduce<As<Sum, std::int8_t>, ...>";
    case TypeRule::named:
      return "sums and products have the tensor's own element type, or of integers int64; name one "
             "of these in As<...>, or cast the result";
  }
  return "";
}

namespace detail {
/// Instantiated only for elements that lack an operator; the assertion is the message, the argument
/// the fact.
template <TypeRule R, class T> struct InvalidElements {
  static consteval bool said() {
    static_assert(
        R != TypeRule::products,
        "[tessera] truth values have no products and sums; cast them to a number first, or "
        "use logical_and with reduce<Any> or reduce<All>");
    static_assert(R != TypeRule::sums,
                  "[tessera] truth values have no sum and no product; cast them to an integer to "
                  "count them, or use reduce<Any> or reduce<All>");
    static_assert(
        R != TypeRule::mean,
        "[tessera] the mean of integers is not an integer; convert to float or double with "
        "cast first");
    static_assert(R != TypeRule::order,
                  "[tessera] complex numbers have no largest and no smallest; take abs(x), real(x) "
                  "or imag(x) first");
    static_assert(R != TypeRule::truths,
                  "[tessera] truth values are reduced by reduce<Any> and reduce<All>, not by their "
                  "size; use one of these");
    static_assert(R != TypeRule::numbers,
                  "[tessera] numbers are not true or false; compare them first, as in "
                  "not_equal(x, 0)");
    static_assert(
        R != TypeRule::open,
        "[tessera] the tensor is an unfinished sum of narrow integers, which wraps in their "
        "own type, and sums of them are int64; reshard it to a finished spec first, cast it "
        "to int64 before it is left open, or name its own type, as in reduce<As<Sum, "
        "std::int8_t>, ...>");
    static_assert(R != TypeRule::named,
                  "[tessera] sums and products have the tensor's own element type, or of integers "
                  "int64; name one of these in As<...>, or cast the result");
    return true;
  }
};
template <TypeRule R, class T> consteval bool demand_elements() {
  if constexpr (R != TypeRule::ok) return InvalidElements<R, T>::said();
  return true;
}
}  // namespace detail

}  // namespace tessera
