// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How values combine: within a reduced dimension, and over the processes that hold partial
/// results.
///
///     name_of(Reduction::sum) == "sum"
#include <cstdint>
#include <string_view>

namespace tessera {

enum class Reduction : std::uint8_t { none, sum, max, min };

constexpr std::string_view name_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::none:
      return "none";
    case Reduction::sum:
      return "sum";
    case Reduction::max:
      return "max";
    case Reduction::min:
      return "min";
  }
  return "?";
}

/// Tags that name a reduction in a type: `reduce<Sum, "bs->b">(x)`, `Unreduced<Sum, model>`.
struct Sum {
  static constexpr Reduction reduction = Reduction::sum;
};
struct Max {
  static constexpr Reduction reduction = Reduction::max;
};
struct Min {
  static constexpr Reduction reduction = Reduction::min;
};
/// The sum divided by the number of elements; no partial kind.
struct Mean {
  static constexpr Reduction reduction = Reduction::sum;
};

}  // namespace tessera
