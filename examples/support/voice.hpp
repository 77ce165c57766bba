// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What a program says: on one process alone.
///
///     const Voice say{env.process() == 0};
///     say("{} steps\n", steps);
#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace support {

/// Prints on the process that speaks.
struct Voice {
  bool speaks;
  template <class... X> void operator()(fmt::format_string<X...> text, X&&... x) const {
    if (speaks) fmt::print(text, std::forward<X>(x)...), std::fflush(stdout);
  }
};

}  // namespace support
