// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether a function takes elements of the operands' types, and the type it returns: decided by
/// whether it can be called, so any functor will do.
///
///     detail::check_function<fn::Sin, detail::Elements, std::int32_t>().rule ==
///         Rule::function_of_reals
///
/// Laws: where the verdict is ok, FunctionResult<...>::type is the element type of the result.
#include <cstdint>
#include <type_traits>

#include <tessera/base/dtype.hpp>
#include <tessera/base/verdict.hpp>
#include <tessera/kernel/fill_index.hpp>

namespace tessera {

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

struct InEpilogue : Elements {};  // the elements of a product and of its extras

template <class First, class...> struct FirstOf { using type = First; };
/// U for each type of a pack; not an alias, which nvcc 13.0 does not expand.
template <class U, class> struct Always { using type = U; };

template <class F, class Arguments, class First, class... Rest> consteval Rule why_not_callable() {
  constexpr bool alike = (std::is_same_v<First, Rest> && ...);
  constexpr bool of_bool =
      Arguments::template callable<F, bool, typename Always<bool, Rest>::type...>;
  constexpr bool of_int =
      Arguments::template callable<F, std::int32_t, typename Always<std::int32_t, Rest>::type...>;
  constexpr bool of_float =
      Arguments::template callable<F, float, typename Always<float, Rest>::type...>;
  if (!std::is_same_v<First, bool> && sizeof...(Rest) > 0 &&
      Arguments::template callable<F, bool, Rest...>)
    return Rule::condition_of_truths;
  if (!alike &&
      (Arguments::template callable<F, First, typename Always<First, Rest>::type...> ||
       Arguments::template callable<F, bool, First, typename Always<First, Rest>::type...> ||
       of_float || of_int))
    return Rule::function_types_alike;
  if (of_int && of_float)
    return std::is_same_v<First, bool> ? Rule::function_of_numbers : Rule::function_of_ordered;
  if (of_float) return Rule::function_of_reals;
  if (of_int) return Rule::function_of_integers;
  if (of_bool) return Rule::function_of_truths;
  if (Arguments::template callable<F, complex<float>,
                                   typename Always<complex<float>, Rest>::type...>)
    return Rule::function_of_complex;
  return Rule::function_defined;
}

/// Returns the first rule that calling F with elements of types T breaks.
template <class F, class Arguments, class... T> consteval Verdict check_function() {
  if constexpr (!Arguments::template callable<F, T...>)
    return {why_not_callable<F, Arguments, T...>()};
  else if constexpr (!Element<std::remove_cvref_t<typename Arguments::template result<F, T...>>>)
    return {Rule::function_makes_element};
  else
    return {};
}

/// The element type of F's result on elements T, if the function can be called with them; else the
/// first operand's, since the error has been reported already.
template <class F, class Arguments, class... T> struct FunctionResult {
  static constexpr bool callable = false;
  static consteval bool said() {
    constexpr Rule rule = check_function<F, Arguments, T...>().rule;
    if constexpr (rule == Rule::function_makes_element && std::is_same_v<Arguments, InEpilogue>) {
      static_assert(never<F, T...>,
                    "[tessera] the function of an epilogue returns a type that no tensor holds; "
                    "return an element type");
      return true;
    } else {
      return InvalidOperator<rule, F, T...>::said();
    }
  }
  static_assert(said());
  using type = typename FirstOf<T...>::type;
};
template <class F, class Arguments, class... T>
  requires(check_function<F, Arguments, T...>().ok())
struct FunctionResult<F, Arguments, T...> {
  static constexpr bool callable = true;
  using type = std::remove_cvref_t<typename Arguments::template result<F, T...>>;
};

/// For operands that a call with a mistake has made up: there is no second error, about the
/// function.
template <class First, class...> struct UnknownFunction {
  static constexpr bool callable = false;
  using type = typename First::value_type;
};

}  // namespace detail
}  // namespace tessera
