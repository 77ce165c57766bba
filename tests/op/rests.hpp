// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Functions whose values are small whole numbers, so that every sum of them is exact in every
/// order.
///
///     to = map_dynamic<double>("ij,ij->ij", support::AddRest{}, out, x, y);
#include <tessera/tessera.hpp>

namespace support {

/// The rest of a sum by 101.
struct AddRest {
  KOKKOS_FUNCTION double operator()(double x, double y) const {
    const double sum = x + 2 * y;
    return sum - 101 * Kokkos::floor(sum / 101);
  }
};
/// The rest of a product.
struct Times {
  double factor;
  KOKKOS_FUNCTION double operator()(double x) const {
    const double y = factor * x;
    return y - 101 * Kokkos::floor(y / 101);
  }
};
/// A number of each index.
struct Numbered {
  double first;
  template <class I> KOKKOS_FUNCTION double operator()(const I& i) const {
    double value = first;
    for (int d = 0; d < i.size(); ++d) value = value * 3 + static_cast<double>(i[d] * (d + 2));
    return value - 101 * Kokkos::floor(value / 101);
  }
};

}  // namespace support
