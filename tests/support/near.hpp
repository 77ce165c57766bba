// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether tensors of doubles are equal to rounding, and the message of an error.
#include <cmath>
#include <cstddef>
#include <string>

#include <tessera/tessera.hpp>

namespace support {

/// Returns whether two tensors have the same extents and elements, but for rounding. Collective.
inline bool near(const tessera::DynamicTensor& a, const tessera::DynamicTensor& b) {
  const auto one = tessera::to_host<double>(a), other = tessera::to_host<double>(b);
  bool same = one.extents == other.extents;
  for (std::size_t i = 0; same && i < one.values.size(); ++i)
    same = std::abs(one.values[i] - other.values[i]) < 1e-9;
  return same;
}
/// Returns what the Error says that f throws; nothing where it throws none.
template <class Error, class F> std::string error_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace support
