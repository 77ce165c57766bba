// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether a function takes elements of the operands' types, and what it makes of them: decided by
/// asking whether it could be called, so it serves functors of any origin.
///
///     detail::check_function<fn::Sin, detail::Elements, std::int32_t>() == FunctionRule::real_numbers
///
/// Laws: where the verdict is ok, FunctionResult<...>::type is the element type of the result.
#include <cstdint>
#include <type_traits>

#include <tessera/base/dtype.hpp>
#include <tessera/kernel/fill_index.hpp>

namespace tessera {

enum class FunctionRule : std::uint8_t {
  ok,
  same_type,        ///< elementwise functions do not convert
  condition,        ///< a choice is made by bool
  real_numbers,     ///< sin of an integer, or of a complex number
  numbers,          ///< the sum of two truths
  ordered,          ///< which complex number is less
  booleans,         ///< the negation of a number
  integers,         ///< the bits of a float
  complex_numbers,  ///< the imaginary part of a float
  defined,          ///< any other call that the function does not take
  element,          ///< it returns what no tensor holds
};

namespace detail {

/// What a function is called with: elements, or a GlobalIndex and elements.
struct Elements {
  template <class F, class... T>
  static constexpr bool callable = std::is_invocable_v<const F&, const T&...>;
  template <class F, class... T> using result = std::invoke_result_t<const F&, const T&...>;
};
struct IndexAndElements {
  template <class F, class... T>
  static constexpr bool callable = std::is_invocable_v<const F&, const GlobalIndex&, const T&...>;
  template <class F, class... T>
  using result = std::invoke_result_t<const F&, const GlobalIndex&, const T&...>;
};

template <class First, class...> struct FirstOf { using type = First; };
/// U for each type of a pack; not an alias, which nvcc 13.0 does not expand.
template <class U, class> struct Always { using type = U; };

template <class F, class Arguments, class First, class... Rest>
consteval FunctionRule why_not_callable() {
  constexpr bool alike = (std::is_same_v<First, Rest> && ...);
  constexpr bool of_bool =
      Arguments::template callable<F, bool, typename Always<bool, Rest>::type...>;
  constexpr bool of_int =
      Arguments::template callable<F, std::int32_t, typename Always<std::int32_t, Rest>::type...>;
  constexpr bool of_float =
      Arguments::template callable<F, float, typename Always<float, Rest>::type...>;
  if (!std::is_same_v<First, bool> && sizeof...(Rest) > 0 &&
      Arguments::template callable<F, bool, Rest...>)
    return FunctionRule::condition;
  if (!alike &&
      (Arguments::template callable<F, First, typename Always<First, Rest>::type...> ||
       Arguments::template callable<F, bool, First, typename Always<First, Rest>::type...> ||
       of_float || of_int))
    return FunctionRule::same_type;
  if (of_int && of_float)
    return std::is_same_v<First, bool> ? FunctionRule::numbers : FunctionRule::ordered;
  if (of_float) return FunctionRule::real_numbers;
  if (of_int) return FunctionRule::integers;
  if (of_bool) return FunctionRule::booleans;
  if (Arguments::template callable<F, complex<float>,
                                   typename Always<complex<float>, Rest>::type...>)
    return FunctionRule::complex_numbers;
  return FunctionRule::defined;
}

/// Returns the first rule that calling F with elements of types T breaks.
template <class F, class Arguments, class... T> consteval FunctionRule check_function() {
  if constexpr (!Arguments::template callable<F, T...>)
    return why_not_callable<F, Arguments, T...>();
  else if constexpr (!Element<std::remove_cvref_t<typename Arguments::template result<F, T...>>>)
    return FunctionRule::element;
  else
    return FunctionRule::ok;
}

/// Instantiated only for a call that breaks a rule; the assertion is the message.
template <FunctionRule R, class F, class... T> struct InvalidFunction {
  static consteval bool said() {
    static_assert(
        R != FunctionRule::same_type,
        "[tessera] the operands have different element types; elementwise functions do not "
        "convert; cast one of them, as in cast<double>(x)");
    static_assert(
        R != FunctionRule::condition,
        "[tessera] the condition is not of bool; a choice needs one; compare first, as in "
        "not_equal(x, 0)");
    static_assert(R != FunctionRule::real_numbers,
                  "[tessera] this function is for real numbers and its operand is not real; "
                  "cast<float>(x) or cast<double>(x) first");
    static_assert(R != FunctionRule::numbers,
                  "[tessera] this function is for numbers and its operand is bool; "
                  "cast<std::int32_t>(x) first, or use logical_and, logical_or, logical_not");
    static_assert(
        R != FunctionRule::ordered,
        "[tessera] this function is for numbers that have an order, and complex ones have "
        "none; take real(x), imag(x) or abs(x) first");
    static_assert(R != FunctionRule::booleans,
                  "[tessera] logic is for bool; compare first, as in not_equal(x, 0)");
    static_assert(R != FunctionRule::integers,
                  "[tessera] this function is for integers; cast<std::int32_t>(x) first");
    static_assert(R != FunctionRule::complex_numbers,
                  "[tessera] this function is for complex numbers; cast<complex<float>>(x) first");
    static_assert(R != FunctionRule::defined,
                  "[tessera] the function cannot be called with these elements; its operator() is "
                  "const and takes one argument for each operand, of the operand's element type or "
                  "one that it converts to");
    static_assert(R != FunctionRule::element,
                  "[tessera] the function of a map returns a type that no tensor holds; return an "
                  "element type, such as float, double or std::int32_t");
    return true;
  }
};

template <class F, class Arguments, class... T> struct FunctionResult {
  static constexpr FunctionRule rule = check_function<F, Arguments, T...>();
  template <FunctionRule R> static consteval auto make() {
    if constexpr (R == FunctionRule::ok)
      return std::type_identity<
          std::remove_cvref_t<typename Arguments::template result<F, T...>>>{};
    else
      return std::type_identity<typename FirstOf<T...>::type>{};
  }
  static consteval bool demand() {
    if constexpr (rule != FunctionRule::ok) return InvalidFunction<rule, F, T...>::said();
    return true;
  }
  static_assert(demand());
  using type = typename decltype(make<rule>())::type;
};

}  // namespace detail
}  // namespace tessera
