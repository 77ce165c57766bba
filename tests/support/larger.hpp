// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The largest of some differences, which NaN does not hide.
///
///     double most = 0;
///     for (...) most = support::larger(most, std::fabs(a[i] - b[i]));
///     support::larger(0, NAN) == INFINITY
#include <cmath>

namespace support {

/// Returns the larger of the largest so far, a number, and another; infinity where that is NaN.
inline double larger(double most, double other) {
  return std::isnan(other) ? INFINITY : other > most ? other : most;
}

}  // namespace support
