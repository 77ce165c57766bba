// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How values combine: within a reduced dimension, and over the processes that hold partial
/// results; and which element types each is defined on.
///
///     name_of(Reduction::sum) == "sum";   defined(Reduction::max, DType::c64) == false
///
/// Laws: each is associative and commutative (floating point up to rounding); sums and products are
/// int64 of signed integers and truth values, uint64 of unsigned integers, whatever their width.
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
/// Returns the name of the reduction's tag: "Sum".
constexpr std::string_view tag_name(Reduction reduction) {
  constexpr std::string_view names[] = {"none", "Sum", "Product", "Max", "Min", "Any", "All"};
  return names[static_cast<int>(reduction)];
}

/// Returns whether values of `type` are reduced so, to `type`: numbers have sums and products,
/// ordered numbers a largest and a smallest, truth values any and all. (Sums of truth values are
/// integers: reduced_type.)
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

/// Returns the element type that a reduction, or a running one, of `type` has unless the call names
/// another. As NumPy's, sums and products of unsigned integers are uint64, those of signed ones and
/// of truth values, which count as 0 and 1, int64; anything else keeps its type.
constexpr DType reduced_type(Reduction reduction, DType type) {
  if (reduction != Reduction::sum && reduction != Reduction::product) return type;
  if (is_unsigned(type)) return DType::u64;
  return is_integer(type) || is_boolean(type) ? DType::i64 : type;
}

/// Returns the type in which parts of a sum or product of `type` are kept, and sent, until the last
/// of them is added: half types' in float, narrow integers' in 64 bits.
constexpr DType partial_type(Reduction reduction, DType type) {
  const bool adds = reduction == Reduction::sum || reduction == Reduction::product;
  return adds && is_short(type) ? facts_of(type).compute : reduced_type(reduction, type);
}

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
/// Whether one of the values is true: the logical or.
struct Any {
  static constexpr Reduction reduction = Reduction::any;
};
/// Whether all of them are: the logical and.
struct All {
  static constexpr Reduction reduction = Reduction::all;
};
/// The sum divided by the number of elements; no partial kind.
struct Mean {
  static constexpr Reduction reduction = Reduction::sum;
};

namespace detail {
template <class Kind> inline constexpr bool is_mean = false;
template <> inline constexpr bool is_mean<Mean> = true;
template <class Kind> inline constexpr bool is_deterministic = false;
}  // namespace detail

/// A sum or product whose elements are T: reduce<As<Sum, std::int8_t>, "bs->b">(x) of int8 wraps,
/// as sums of narrow integers otherwise do not. T is the tensor's own element type or, of integers
/// and truth values, int64 or uint64, which differ in the sign of the same 64 bits.
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

/// The same bits for any number of processes, as in reduce<Deterministic<Sum>, "bs->b">(x); see
/// op/deterministic.hpp.
template <class Kind> struct Deterministic {
  static_assert(Kind::reduction != Reduction::product,
                "[tessera] products have no deterministic form, since their roundings depend on "
                "the order; sum the logarithms, or take integers");
  static constexpr Reduction reduction = Kind::reduction;
};

namespace detail {
template <class Kind> inline constexpr bool is_mean<Deterministic<Kind>> = is_mean<Kind>;
template <class Kind> inline constexpr bool is_deterministic<Deterministic<Kind>> = true;

/// The element type that reduce<Kind> of `type` has.
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
