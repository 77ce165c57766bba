// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How values combine: within a reduced dimension, and over the processes that hold partial
/// results; and which element types each is defined on.
///
///     name_of(Reduction::sum) == "sum";   defined(Reduction::max, DType::c64) == false
///
/// Laws: each is associative and commutative (floating point up to rounding).
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

/// Returns whether values of `type` are reduced so: numbers have sums and products, ordered numbers
/// a largest and a smallest, truth values any and all.
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

/// The same bits for any number of processes, as in reduce<Deterministic<Sum>, "bs->b">(x); see
/// op/deterministic.hpp.
template <class Kind> struct Deterministic {
  static_assert(Kind::reduction != Reduction::product,
                "[tessera] products have no deterministic form, since their roundings depend on "
                "the order; sum the logarithms, or take integers");
  static constexpr Reduction reduction = Kind::reduction;
};

}  // namespace tessera
