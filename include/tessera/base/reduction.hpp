// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How values combine, within a reduced dimension and over the processes that hold partial results;
/// and on which element types each reduction is defined.
///
///     name_of(Reduction::sum) == "sum";   defined(Reduction::max, DType::c64) == false
///
/// Laws: each is associative and commutative (floating point up to rounding); sums and products of
/// signed integers and bools are int64, of unsigned integers uint64, whatever their width.
#include <cstdint>
#include <string_view>

#include <tessera/base/dtype.hpp>

namespace tessera {

enum class Reduction : std::uint8_t { none, sum, product, max, min, any, all };
inline constexpr int reductions = 7;  // none included

/// Returns the name as plans print it: "sum".
constexpr std::string_view name_of(Reduction reduction) {
  constexpr std::string_view names[] = {"none", "sum", "product", "max", "min", "any", "all"};
  return names[static_cast<int>(reduction)];
}

namespace detail {
/// Returns the name of the reduction's tag: "Sum".
constexpr std::string_view tag_name(Reduction reduction) {
  constexpr std::string_view names[] = {"none", "Sum", "Product", "Max", "Min", "Any", "All"};
  return names[static_cast<int>(reduction)];
}
}  // namespace detail

/// Returns whether values of `type` have this reduction with a result of `type`: numbers have sums
/// and products, ordered numbers maxima and minima, bools any and all. (Sums of bools are integers:
/// reduced_type.)
constexpr bool defined(Reduction reduction, DType type) {
  switch (reduction) {
    case Reduction::none:
      return true;
    case Reduction::sum:
    case Reduction::product:
      return is_number(type);
    case Reduction::max:
    case Reduction::min:
      return is_ordered(type);
    case Reduction::any:
    case Reduction::all:
      return is_boolean(type);
  }
  return false;
}

namespace detail {
/// Returns the element type of a reduction, or a running one, of `type` unless the call names
/// another. As in NumPy, sums and products of unsigned integers are uint64, and of signed integers
/// and bools (counted as 0 and 1) int64; every other reduction keeps its type.
constexpr DType reduced_type(Reduction reduction, DType type) {
  if (reduction != Reduction::sum && reduction != Reduction::product) return type;
  if (is_unsigned(type)) return DType::u64;
  return is_integer(type) || is_boolean(type) ? DType::i64 : type;
}

/// Returns the type in which partial sums or products of `type` are kept, and sent, until the last
/// is added: float for half types, 64 bits for narrow integers.
constexpr DType partial_type(Reduction reduction, DType type) {
  const bool adds = reduction == Reduction::sum || reduction == Reduction::product;
  return adds && is_short(type) ? facts_of(type).compute : reduced_type(reduction, type);
}
}  // namespace detail

/// Tags that name a reduction in a type: `reduce<Sum, "bs->b">(x)`, `Unreduced<Sum, model>`.
struct Sum {
  static constexpr Reduction reduction = Reduction::sum;
};
struct Product {
  static constexpr Reduction reduction = Reduction::product;
};
struct Max {
  static constexpr Reduction reduction = Reduction::max;
};
struct Min {
  static constexpr Reduction reduction = Reduction::min;
};
/// Whether any value is true: the logical or.
struct Any {
  static constexpr Reduction reduction = Reduction::any;
};
/// Whether all values are true: the logical and.
struct All {
  static constexpr Reduction reduction = Reduction::all;
};
/// The sum divided by the number of elements; there are no partial means.
struct Mean {
  static constexpr Reduction reduction = Reduction::sum;
};

namespace detail {
template <class Kind> inline constexpr bool is_mean = false;
template <> inline constexpr bool is_mean<Mean> = true;
template <class Kind> inline constexpr bool is_deterministic = false;
}  // namespace detail

/// A sum or product whose elements are T: reduce<As<Sum, std::int8_t>, "bs->b">(x) of int8 wraps,
/// while other sums of narrow integers do not. T is the tensor's own element type or, for integers
/// and bools, int64 or uint64, which differ in the sign of the same 64 bits.
template <class Kind, class T> struct As {
  static consteval bool said() {
    static_assert((Kind::reduction == Reduction::sum || Kind::reduction == Reduction::product) &&
                      !detail::is_mean<Kind>,
                  "[tessera] only the element type of sums and products is a choice; a mean, "
                  "a maximum, a minimum, any and all have that of the tensor; leave As<...> out");
    return true;
  }
  static_assert(said());
  static constexpr Reduction reduction = Kind::reduction;
};

/// Gives the same bits for any number of processes, as in reduce<Deterministic<Sum>, "bs->b">(x);
/// see op/deterministic.hpp.
template <class Kind> struct Deterministic {
  static consteval bool said() {
    static_assert(Kind::reduction != Reduction::product,
                  "[tessera] products have no deterministic form, since their roundings depend on "
                  "the order; sum the logarithms, or use integers");
    return true;
  }
  static_assert(said());
  static constexpr Reduction reduction = Kind::reduction;
};

namespace detail {
template <class Kind> inline constexpr bool is_mean<Deterministic<Kind>> = is_mean<Kind>;
template <class Kind> inline constexpr bool is_deterministic<Deterministic<Kind>> = true;

/// The element type of the result of reduce<Kind> on `type`.
template <class Kind> struct KindType {
  static constexpr DType of(DType type) { return reduced_type(Kind::reduction, type); }
};
template <> struct KindType<Mean> {
  static constexpr DType of(DType type) { return type; }
};
template <class Kind, class T> struct KindType<As<Kind, T>> {
  static constexpr DType of(DType) { return dtype_of<T>; }
};
template <class Kind> struct KindType<Deterministic<Kind>> : KindType<Kind> {};
}  // namespace detail
}  // namespace tessera
