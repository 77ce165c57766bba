// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Positions along a line in memory: int64, or int32 where lines are short enough.
///
///     PositionArray{data, true}.get(i)
///
/// Laws: the largest number of either type stands for no_position.
#include <cstdint>
#include <limits>

#include <Kokkos_Core.hpp>

#include <tessera/base/local_work.hpp>

namespace tessera::detail {

struct PositionArray {
  void* data = nullptr;
  bool narrow = false;  ///< int32

  static PositionArray read(const void* data, bool narrow) {
    return {const_cast<void*>(data), narrow};
  }
  KOKKOS_FORCEINLINE_FUNCTION bool there() const { return data != nullptr; }
  KOKKOS_FORCEINLINE_FUNCTION Index get(Index i) const {
    if (!narrow) return static_cast<const std::int64_t*>(data)[i];
    const std::int32_t position = static_cast<const std::int32_t*>(data)[i];
    return position == std::numeric_limits<std::int32_t>::max() ? no_position : position;
  }
  KOKKOS_FORCEINLINE_FUNCTION void set(Index i, Index position) const {
    if (narrow)
      static_cast<std::int32_t*>(data)[i] = position == no_position
                                                ? std::numeric_limits<std::int32_t>::max()
                                                : static_cast<std::int32_t>(position);
    else
      static_cast<std::int64_t*>(data)[i] = position;
  }
};

}  // namespace tessera::detail
