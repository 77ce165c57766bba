// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What a block of memory costs in an arena: the one rule by which planners predict and arenas
/// count.
///
///     detail::arena_charge(1) == 256;   detail::arena_charge(0) == 0
///
/// Laws: arena_charge(n) >= n, is a multiple of arena_alignment, and never falls when n grows.
#include <tessera/base/math.hpp>

namespace tessera::detail {

/// Every block of an arena starts at a multiple of this many bytes.
inline constexpr Index arena_alignment = 256;

/// Returns what an arena counts for a block of `bytes`.
constexpr Index arena_charge(Index bytes) { return round_up(bytes, arena_alignment); }
}  // namespace tessera::detail
