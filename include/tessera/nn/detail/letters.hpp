// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Equations for tensors of any number of dimensions, of which layers name the last: letters from
/// 'a' on, and 'y' and 'z' for those with a meaning.
///
///     static_assert(detail::last_product(3).view() == "aby,yz->abz");
#include <initializer_list>
#include <string_view>

#include <tessera/plan/equation.hpp>

namespace tessera::detail {

/// Puts texts together; "*" stands for the first `leading` letters.
constexpr Equation equation_of(int leading, std::string_view pattern) {
  Equation e;
  const auto put = [&](char c) { e.text[e.length++] = c; };
  for (const char c : pattern) {
    if (c != '*') {
      put(c);
      continue;
    }
    for (int d = 0; d < leading; ++d) put(static_cast<char>('a' + d));
  }
  return e;
}
/// Of a tensor of `rank` dimensions: its last one replaced by a product; left out; alone.
constexpr Equation last_product(int rank) { return equation_of(rank - 1, "*y,yz->*z"); }
constexpr Equation without_last(int rank) { return equation_of(rank - 1, "*y->*"); }
constexpr Equation last_alone(int rank) { return equation_of(rank - 1, "*y->y"); }

}  // namespace tessera::detail
