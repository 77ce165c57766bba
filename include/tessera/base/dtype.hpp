// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Element types as values: what erased tensors, plans and calls carry in place of a type.
///
///     dtype_of<float> == DType::f32;   size_of(DType::i64) == 8;   name_of(DType::f32) == "float"
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tessera {

enum class DType : std::uint8_t { f32, f64, i32, i64 };

constexpr std::size_t size_of(DType type) {
  return type == DType::f32 || type == DType::i32 ? 4 : 8;
}

constexpr std::string_view name_of(DType type) {
  switch (type) {
    case DType::f32:
      return "float";
    case DType::f64:
      return "double";
    case DType::i32:
      return "int32";
    case DType::i64:
      return "int64";
  }
  return "?";
}

namespace detail {
template <class T> struct DTypeOf;  // an element type Tessera does not have
template <> struct DTypeOf<float> { static constexpr DType value = DType::f32; };
template <> struct DTypeOf<double> { static constexpr DType value = DType::f64; };
template <> struct DTypeOf<std::int32_t> { static constexpr DType value = DType::i32; };
template <> struct DTypeOf<std::int64_t> { static constexpr DType value = DType::i64; };
}  // namespace detail

/// The value that stands for element type T.
template <class T> inline constexpr DType dtype_of = detail::DTypeOf<T>::value;

/// T can be an element of a tensor.
template <class T>
concept Element = requires {
  detail::DTypeOf<T>::value;
};

/// Calls f(T{}) with T the element type that `type` stands for, and returns its result.
template <class F> constexpr decltype(auto) with_type(DType type, F&& f) {
  switch (type) {
    case DType::f64:
      return f(double{});
    case DType::i32:
      return f(std::int32_t{});
    case DType::i64:
      return f(std::int64_t{});
    case DType::f32:
      break;
  }
  return f(float{});
}

}  // namespace tessera
