// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Numbers that become elements: which types may stand beside a tensor, and which of their numbers.
///
///     detail::scalar_as<float>(2, {"add", where}) == 2.0f
///     detail::holds<std::int8_t>(300) == false
///
/// Laws: beside integers stand whole numbers that their type holds, and no other: nothing wraps,
/// and no fraction is lost. Real and complex elements take the nearest number of their type, as
/// IEEE 754 rounds: beyond the largest, infinity.
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include <tessera/base/dtype.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/text/type_name.hpp>
#include <tessera/run/call_site.hpp>

namespace tessera {

/// S may stand beside a tensor: a number, a truth value, or any other element.
template <class S>
concept Scalar = std::is_arithmetic_v<S> || Element<S>;

namespace detail {

template <class S> constexpr bool is_negative(S s) {
  if constexpr (std::is_signed_v<S>)
    return s < S{};
  else
    return false;
}
/// A whole number that no arithmetic on two elements overflows.
__extension__ typedef __int128 WholeNumber;

/// Text of a number from -2^63 to 2^64 - 1.
inline std::string number_text(WholeNumber x) {
  return x < 0 ? std::to_string(static_cast<std::int64_t>(x))
               : std::to_string(static_cast<std::uint64_t>(x));
}

/// Returns whether the number is an element of type T; real and complex ones are rounded to one.
template <class T, class S> constexpr bool holds(S s) {
  if constexpr (std::is_integral_v<T> && std::is_integral_v<S>) {
    const T element = static_cast<T>(s);
    return static_cast<S>(element) == s && is_negative(element) == is_negative(s);
  } else {
    return true;
  }
}
[[noreturn]] inline void throw_no_element(WholeNumber s, DType type, CallSite site) {
  with_integer_type(type, [&](auto zero) {
    using Limits = std::numeric_limits<decltype(zero)>;
    throw UsageError(std::string(site.label) + ": " + number_text(s) + " is no element of " +
                         std::string(name_of(type)) + ", which holds " +
                         number_text(Limits::lowest()) + " to " + number_text(Limits::max()) +
                         "; nothing is converted in silence; give a number that it holds, or cast "
                         "the tensor to a wider type first",
                     site.where);
  });
  __builtin_unreachable();
}
[[noreturn]] inline void throw_foreign_scalar(std::string_view given, DType type, CallSite site) {
  throw UsageError(
      std::string(site.label) + ": a value of type " + std::string(given) +
          " stands beside elements of " + std::string(name_of(type)) +
          "; nothing is converted in silence; give a value that the element type holds",
      site.where);
}

/// Returns the number as an element of a type that is known when the program runs. Throws
/// UsageError when it is none.
template <class T, class S> constexpr T element_of_type(S s, CallSite site) {
  constexpr bool fraction = std::is_integral_v<T> && Scalar<S> && !std::is_integral_v<S>;
  constexpr bool number = std::is_same_v<T, bool> && !std::is_same_v<S, bool>;
  if constexpr (fraction || number || !std::is_constructible_v<T, S>) {
    throw_foreign_scalar(type_name<S>(), dtype_of<T>, site);
  } else {
    if constexpr (std::is_integral_v<T> && std::is_integral_v<S>)
      if (!holds<T>(s)) throw_no_element(s, dtype_of<T>, site);
    if constexpr (ComplexElement<T> && std::is_arithmetic_v<S>)
      return T(static_cast<typename T::value_type>(s));
    else
      return static_cast<T>(s);
  }
}
/// The types of numbers that may stand beside elements T.
template <class T, class S> consteval bool demand_scalar() {
  static_assert(!std::is_integral_v<T> || !Scalar<S> || std::is_integral_v<S>,
                "[tessera] a fraction stands beside a tensor of integers; nothing is converted in "
                "silence; cast the tensor, as in cast<double>(x), or write a whole number");
  static_assert(!std::is_same_v<T, bool> || std::is_same_v<S, bool>,
                "[tessera] a number stands beside a tensor of bool; write true or false, or "
                "cast<std::int32_t>(x) first");
  static_assert(std::is_constructible_v<T, S>,
                "[tessera] the scalar cannot become an element of the tensor; cast the tensor "
                "first, as in cast<complex<double>>(x)");
  return true;
}
/// Converts a number to a type that is known while the program compiles.
template <class T, class S> constexpr T scalar_as(S s, CallSite site) {
  static_assert(demand_scalar<T, S>());
  return element_of_type<T>(s, site);
}

/// An argument that becomes an element T: any number, or what converts to T.
template <Element T> class GivenElement {
 public:
  GivenElement() = default;
  template <class S>
    requires(Scalar<S> || std::is_convertible_v<S, T>)
  constexpr GivenElement(S s) {  // NOLINT: a number is an argument
    static_assert(demand_scalar<T, S>());
    if constexpr (std::is_integral_v<T> && std::is_integral_v<S>) held_ = holds<T>(s), given_ = s;
    if (held_) value_ = element_of_type<T>(s, {});
  }
  constexpr GivenElement(PartType<T> re, PartType<T> im) requires ComplexElement<T>
      : value_(re, im) {}
  /// Returns the element. Throws UsageError when the number is none.
  constexpr T at(CallSite site) const {
    if (!held_) throw_no_element(given_, dtype_of<T>, site);
    return value_;
  }

 private:
  T value_{};
  WholeNumber given_ = 0;
  bool held_ = true;
};
/// The element type that a call names, or that of the number that it gives.
template <class Named, class S>
using NamedOrOwn = std::conditional_t<std::is_void_v<Named>, S, Named>;

}  // namespace detail
}  // namespace tessera
