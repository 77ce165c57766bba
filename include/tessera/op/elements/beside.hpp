// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A function of two operands of which one is a number: the function of the other one.
///
///     const auto above = detail::beside<fn::Greater, 1, std::int8_t>({}, 200, {"greater", where});
///     above(std::int8_t{100}) == false
///
/// Laws: comparisons of integers with a number are exact, whatever the number: a fraction, an
/// infinity, NaN, or beyond the type's ends. The larger or smaller of integers and a number, and a
/// clamp, take a number beyond an end where their result is an element all the same:
/// maximum(uint8, -1) is x. For every other function the number is an element, or there is an
/// error (op/call/scalar.hpp).
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include <tessera/kernel/functions/comparison.hpp>
#include <tessera/kernel/functions/fixed.hpp>
#include <tessera/kernel/functions/rounding.hpp>
#include <tessera/op/call/outside.hpp>

namespace tessera::detail {

/// Where a number lies among the elements of a type of integers.
template <class T> struct NearestElements {
  std::optional<T> at_most, at_least;  ///< the nearest elements on its sides; none beyond an end
};
template <IntegerElement T, class S> constexpr NearestElements<T> nearest_elements(S s) {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_integral_v<S>) {
    if (holds<T>(s)) return {static_cast<T>(s), static_cast<T>(s)};
    if (is_negative(s)) return {{}, Limits::lowest()};
    return {Limits::max(), {}};
  } else if constexpr (!std::is_arithmetic_v<S>) {
    return nearest_elements<T>(static_cast<float>(s));
  } else {
    constexpr S lowest = static_cast<S>(Limits::lowest()), end = static_cast<S>(beyond<T>);
    const S below = std::floor(s), above = std::ceil(s);
    NearestElements<T> found;  // of NaN neither
    if (below >= lowest) found.at_most = below < end ? static_cast<T>(below) : Limits::max();
    if (above < end) found.at_least = above >= lowest ? static_cast<T>(above) : Limits::lowest();
    return found;
  }
}
/// Returns a number that a setting gives as a double as an element T. Throws UsageError when a type
/// of integers has no such element.
template <class T> T element_of_setting(double s, CallSite site) {
  if constexpr (IntegerElement<T>)
    if (const NearestElements<T> near = nearest_elements<T>(s);
        !near.at_most || near.at_most != near.at_least)
      throw UsageError(std::string(site.label) + ": " + std::to_string(s) + " is no element of " +
                           std::string(name_of(dtype_of<T>)) +
                           "; nothing is converted in silence; give a number that it holds",
                       site.where);
  return from_double<T>(s);
}
/// Returns the comparison f of elements T with s or, where the number is first, of s with them.
template <class F, IntegerElement T, class S>
fn::Compared<F, T> compared_with(F f, S s, bool number_first) {
  using Limits = std::numeric_limits<T>;
  const NearestElements<T> near = nearest_elements<T>(s);
  if constexpr (fn::Compared<F, T>::equality) {
    const bool held = near.at_most && near.at_most == near.at_least;
    return {held ? *near.at_most : T{}, held};
  } else {
    // x <= s and x < s; x > s and x >= s are their contraries.
    const bool at = f(0, 0), above = number_first ? f(0, 1) : f(1, 0);
    if (!near.at_most && !near.at_least) return {Limits::max(), true};  // NaN: always false
    if (at != above) return {near.at_most.value_or(Limits::max()), near.at_most ? above : !above};
    if (near.at_least == Limits::lowest()) return {Limits::max(), !above};
    return {near.at_least ? static_cast<T>(*near.at_least - 1) : Limits::max(), above};
  }
}

/// Returns the element nearest to s, where the elements beyond it do not matter to the result:
/// those below the least where s is a lower limit, those above the largest where it is an upper
/// one.
template <class T, class S> T limit_as(S s, bool lower, CallSite site) {
  if constexpr (IntegerElement<T> && std::is_integral_v<S>)
    if (!holds<T>(s) && is_negative(s) == lower)
      return lower ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  return element_of_type<T>(s, site);
}
/// Returns the clamp of elements T from low to high: min(max(x, low), high), which is an element
/// for every x, or throws UsageError.
template <class T, class L, class H> fn::ClampTo<T> clamp_to(L low, H high, CallSite site) {
  const T most = limit_as<T>(high, false, site);
  if constexpr (IntegerElement<T> && std::is_integral_v<L> && std::is_integral_v<H>)
    if (holds<T>(high) && !holds<T>(low) && !is_negative(low))
      return {std::numeric_limits<T>::max(), most};
  return {limit_as<T>(low, true, site), most};
}

template <class F>
concept Compares = F::compares;
/// Any number compares with these elements.
template <class F, class T, class S>
concept ComparesWith = Compares<F> && IntegerElement<T> && Scalar<S> && !ComplexElement<S>;

/// Returns the function of elements T that is f with s for its argument `position`. Throws
/// UsageError when s is no element and f needs one.
template <class F, int position, class T, class S> auto beside(F f, S s, CallSite site) {
  if constexpr (ComparesWith<F, T, S>)
    return compared_with<F, T>(f, s, position == 0);
  else if constexpr (std::is_same_v<F, fn::Maximum> || std::is_same_v<F, fn::Minimum>)
    return fn::Fixed<F, position, T>{f, limit_as<T>(s, std::is_same_v<F, fn::Maximum>, site)};
  else
    return fn::Fixed<F, position, T>{f, element_of_type<T>(s, site)};
}
/// This overload is for a tensor whose type is known while the program compiles.
template <class F, int position, class T, class S> auto typed_beside(F f, S s, CallSite site) {
  if constexpr (!ComparesWith<F, T, S>) static_assert(demand_scalar<T, S>());
  return beside<F, position, T>(f, s, site);
}
}  // namespace tessera::detail
