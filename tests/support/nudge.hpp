// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A tensor that is `by` at one place and zero elsewhere, for differences of a function.
///
///     weight = kept + from_function<X>(mesh, kept.extents(), support::Nudge{place, 1e-5});
#include <tessera/kernel/fill_index.hpp>

namespace support {

struct Nudge {
  tessera::Index place;
  double by;
  KOKKOS_FUNCTION double operator()(const tessera::GlobalIndex& i) const {
    return i.linear() == place ? by : 0;
  }
};

}  // namespace support
