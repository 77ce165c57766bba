// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Element types as values: what erased tensors, plans and calls carry in place of a type. One
/// table holds the facts of each type.
///
///     dtype_of<float> == DType::f32;   size_of(DType::i64) == 8;   name_of(DType::f32) == "float"
///     detail::with_type(DType::f32, [](auto x) { return sizeof(x); }) == 4
///
/// Laws: sizes equal sizeof of the C++ types; with_type(dtype_of<T>, f) calls f(T{}).
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include <tessera/base/complex.hpp>
#include <tessera/base/short_float.hpp>

namespace tessera {

enum class DType : std::uint8_t {
  f16,
  bf16,
  f32,
  f64,
  c64,
  c128,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  boolean
};
inline constexpr int dtypes = 15;

namespace detail {
enum class DTypeKind : std::uint8_t { real, complex, integer, boolean };

struct DTypeFacts {
  std::string_view name;
  std::uint8_t size;  ///< bytes
  DTypeKind kind;
  bool is_signed;
  DType compute;  ///< the type in which one operation is done, before its result is rounded
  DType total;    ///< the type in which long sums and products are kept
};

inline constexpr DTypeFacts dtype_table[dtypes] = {
    {"half", 2, DTypeKind::real, true, DType::f32, DType::f64},
    {"bfloat16", 2, DTypeKind::real, true, DType::f32, DType::f64},
    {"float", 4, DTypeKind::real, true, DType::f32, DType::f64},
    {"double", 8, DTypeKind::real, true, DType::f64, DType::f64},
    {"complex<float>", 8, DTypeKind::complex, true, DType::c64, DType::c128},
    {"complex<double>", 16, DTypeKind::complex, true, DType::c128, DType::c128},
    {"int8", 1, DTypeKind::integer, true, DType::i8, DType::i8},
    {"int16", 2, DTypeKind::integer, true, DType::i16, DType::i16},
    {"int32", 4, DTypeKind::integer, true, DType::i32, DType::i32},
    {"int64", 8, DTypeKind::integer, true, DType::i64, DType::i64},
    {"uint8", 1, DTypeKind::integer, false, DType::u8, DType::u8},
    {"uint16", 2, DTypeKind::integer, false, DType::u16, DType::u16},
    {"uint32", 4, DTypeKind::integer, false, DType::u32, DType::u32},
    {"uint64", 8, DTypeKind::integer, false, DType::u64, DType::u64},
    {"bool", 1, DTypeKind::boolean, false, DType::boolean, DType::boolean},
};

template <DType> struct ElementOf;
template <> struct ElementOf<DType::f16> { using type = half; };
template <> struct ElementOf<DType::bf16> { using type = bfloat16; };
template <> struct ElementOf<DType::f32> { using type = float; };
template <> struct ElementOf<DType::f64> { using type = double; };
template <> struct ElementOf<DType::c64> { using type = complex<float>; };
template <> struct ElementOf<DType::c128> { using type = complex<double>; };
template <> struct ElementOf<DType::i8> { using type = std::int8_t; };
template <> struct ElementOf<DType::i16> { using type = std::int16_t; };
template <> struct ElementOf<DType::i32> { using type = std::int32_t; };
template <> struct ElementOf<DType::i64> { using type = std::int64_t; };
template <> struct ElementOf<DType::u8> { using type = std::uint8_t; };
template <> struct ElementOf<DType::u16> { using type = std::uint16_t; };
template <> struct ElementOf<DType::u32> { using type = std::uint32_t; };
template <> struct ElementOf<DType::u64> { using type = std::uint64_t; };
template <> struct ElementOf<DType::boolean> { using type = bool; };

template <class T> struct DTypeOf {};  // an element type Tessera does not have
template <DType D> struct DTypeIs { static constexpr DType value = D; };
template <> struct DTypeOf<half> : DTypeIs<DType::f16> {};
template <> struct DTypeOf<bfloat16> : DTypeIs<DType::bf16> {};
template <> struct DTypeOf<float> : DTypeIs<DType::f32> {};
template <> struct DTypeOf<double> : DTypeIs<DType::f64> {};
template <> struct DTypeOf<complex<float>> : DTypeIs<DType::c64> {};
template <> struct DTypeOf<complex<double>> : DTypeIs<DType::c128> {};
template <> struct DTypeOf<std::int8_t> : DTypeIs<DType::i8> {};
template <> struct DTypeOf<std::int16_t> : DTypeIs<DType::i16> {};
template <> struct DTypeOf<std::int32_t> : DTypeIs<DType::i32> {};
template <> struct DTypeOf<std::int64_t> : DTypeIs<DType::i64> {};
template <> struct DTypeOf<std::uint8_t> : DTypeIs<DType::u8> {};
template <> struct DTypeOf<std::uint16_t> : DTypeIs<DType::u16> {};
template <> struct DTypeOf<std::uint32_t> : DTypeIs<DType::u32> {};
template <> struct DTypeOf<std::uint64_t> : DTypeIs<DType::u64> {};
template <> struct DTypeOf<bool> : DTypeIs<DType::boolean> {};

/// Returns the facts of a type: size in bytes, name, kind; the next functions return parts of it.
constexpr const DTypeFacts& facts_of(DType type) {
  return detail::dtype_table[static_cast<int>(type)];
}
/// Returns whether values are computed in a wider type: half and bfloat16, in float.
constexpr bool is_short(DType type) { return facts_of(type).compute != type; }
}  // namespace detail

/// Return parts of a type's facts: its size in bytes, its name, its kind.
constexpr std::size_t size_of(DType type) { return detail::facts_of(type).size; }
constexpr std::string_view name_of(DType type) { return detail::facts_of(type).name; }
constexpr bool is_real(DType type) {
  return detail::facts_of(type).kind == detail::DTypeKind::real;
}
constexpr bool is_complex(DType type) {
  return detail::facts_of(type).kind == detail::DTypeKind::complex;
}
constexpr bool is_integer(DType type) {
  return detail::facts_of(type).kind == detail::DTypeKind::integer;
}
/// Returns whether values are unsigned integers.
constexpr bool is_unsigned(DType type) {
  return is_integer(type) && !detail::facts_of(type).is_signed;
}
constexpr bool is_boolean(DType type) {
  return detail::facts_of(type).kind == detail::DTypeKind::boolean;
}
/// Returns whether values can be added and multiplied: all but bool.
constexpr bool is_number(DType type) { return !is_boolean(type); }
/// Returns whether values are ordered: real numbers and integers.
constexpr bool is_ordered(DType type) { return is_real(type) || is_integer(type); }

/// Returns the type of a complex number's parts, and of its magnitude; any other type is its own.
constexpr DType part_type(DType type) {
  return type == DType::c64 ? DType::f32 : type == DType::c128 ? DType::f64 : type;
}

/// The value that stands for element type T.
template <class T> inline constexpr DType dtype_of = detail::DTypeOf<T>::value;
/// The element type that a value stands for.
template <DType type> using element_of = typename detail::ElementOf<type>::type;

/// T can be an element of a tensor.
template <class T>
concept Element = requires {
  detail::DTypeOf<T>::value;
};

// The kinds of elements: half, bfloat16, float and double; complex; integers; and the larger sets
// that unite these kinds.
template <class T>
concept RealElement = Element<T> && is_real(dtype_of<T>);
template <class T>
concept ComplexElement = Element<T> && is_complex(dtype_of<T>);
template <class T>
concept IntegerElement = Element<T> && is_integer(dtype_of<T>);
template <class T>
concept NumberElement = Element<T> && is_number(dtype_of<T>);
template <class T>
concept OrderedElement = Element<T> && is_ordered(dtype_of<T>);

/// The type in which one operation on T is done, and the type in which long sums are kept.
template <Element T> using ComputeType = element_of<detail::facts_of(dtype_of<T>).compute>;
template <Element T> using TotalType = element_of<detail::facts_of(dtype_of<T>).total>;
/// The type of a complex number's parts; any other T is its own.
template <Element T> using PartType = element_of<part_type(dtype_of<T>)>;

namespace detail {
/// Calls f(T{}) with T the element type that `type` stands for, one of half, bfloat16, float and
/// double, and returns its result; f is compiled for these types alone. The caller has checked
/// is_real(type).
template <class F> constexpr decltype(auto) with_real_type(DType type, F&& f) {
  switch (type) {
    case DType::f16:
      return f(half{});
    case DType::bf16:
      return f(bfloat16{});
    case DType::f64:
      return f(double{});
    default:
      return f(float{});
  }
}
/// Calls f with an integer of the type. The caller has checked is_integer(type).
template <class F> constexpr decltype(auto) with_integer_type(DType type, F&& f) {
  switch (type) {
    case DType::i8:
      return f(std::int8_t{});
    case DType::i16:
      return f(std::int16_t{});
    case DType::i64:
      return f(std::int64_t{});
    case DType::u8:
      return f(std::uint8_t{});
    case DType::u16:
      return f(std::uint16_t{});
    case DType::u32:
      return f(std::uint32_t{});
    case DType::u64:
      return f(std::uint64_t{});
    default:
      return f(std::int32_t{});
  }
}
/// Calls f with a real number or an integer of the type. The caller has checked is_ordered(type).
template <class F> constexpr decltype(auto) with_ordered_type(DType type, F&& f) {
  return is_real(type) ? with_real_type(type, f) : with_integer_type(type, f);
}
/// Calls f with a number of the type: anything but bool. The caller has checked is_number(type).
template <class F> constexpr decltype(auto) with_number_type(DType type, F&& f) {
  if (type == DType::c64) return f(complex<float>{});
  if (type == DType::c128) return f(complex<double>{});
  return with_ordered_type(type, f);
}
/// Calls f with an element of any type.
template <class F> constexpr decltype(auto) with_type(DType type, F&& f) {
  if (type == DType::boolean) return f(bool{});
  return with_number_type(type, f);
}
}  // namespace detail
}  // namespace tessera
