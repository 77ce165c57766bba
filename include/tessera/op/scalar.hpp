// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Numbers beside tensors: which types may stand there, and their conversion to the tensor's
/// element type.
///
///     detail::scalar_as<float>(2) == 2.0f
///
/// Laws: no conversion loses a fraction silently.
#include <concepts>
#include <type_traits>

#include <tessera/base/dtype.hpp>

namespace tessera {

/// S may stand beside a tensor: a number, a truth value, or any other element.
template <class S>
concept Scalar = std::is_arithmetic_v<S> || Element<S>;

namespace detail {

/// Returns the number as an element of type T. Tensors of integers take whole numbers: a fraction
/// would be cut off silently.
template <class T, Scalar S> constexpr T scalar_as(S s) {
  static_assert(!std::is_integral_v<T> || std::is_integral_v<S>,
                "[tessera] a fraction stands beside a tensor of integers; nothing is converted in "
                "silence; cast the tensor, as in cast<double>(x), or write a whole number");
  static_assert(!std::is_same_v<T, bool> || std::is_same_v<S, bool>,
                "[tessera] a number stands beside a tensor of bool; write true or false, or "
                "cast<std::int32_t>(x) first");
  static_assert(std::is_constructible_v<T, S>,
                "[tessera] the scalar cannot become an element of the tensor; cast the tensor "
                "first, as in cast<complex<double>>(x)");
  if constexpr (ComplexElement<T> && std::is_arithmetic_v<S>)
    return T(static_cast<typename T::value_type>(s));
  else if constexpr (std::is_constructible_v<T, S>)
    return static_cast<T>(s);
  else
    return T{};
}

}  // namespace detail
}  // namespace tessera
