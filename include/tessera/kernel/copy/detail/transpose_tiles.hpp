// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Transposes on a device: a team of threads reads a square whose rows follow each other in the
/// source, and writes it by its columns, which follow each other in the target.
///
///     if (across_of(box) >= 0) transpose_tiles(from, to, box);
#include <tessera/kernel/copy/copy_box.hpp>
#include <tessera/kernel/device/row_teams.hpp>

namespace tessera::detail {

inline constexpr Index tile_lanes = 256;
/// The least extents that are worth a tile.
inline constexpr Index least_side = 16;

/// Returns the dimension along which neighbours in the source are not neighbours in the target, or
/// -1 where none is long.
inline int across_of(const CopyBox& box) {
  const CopyDim& last = box.dim[box.rank - 1];
  if (last.to != 1 || last.from == 1 || last.extent < least_side) return -1;
  for (int d = 0; d < box.rank - 1; ++d)
    if (box.dim[d].from == 1 && box.dim[d].extent >= least_side) return d;
  return -1;
}

template <class T> struct TransposeTiles {
  static constexpr Index side = sizeof(T) <= 8 ? 64 : 32;  ///< with at most 33 KiB of a block's 48
  CopyBox rest;  ///< the dimensions that are neither of the two
  CopyDim across, down;
  Index tiles_across, tiles_down, first;
  const T* from;
  T* to;

  static constexpr Index pitch = side + 1;  ///< of a row: columns lie in different banks
  static constexpr std::size_t bytes = static_cast<std::size_t>(side * pitch) * sizeof(T);

  template <class Member> KOKKOS_FUNCTION void operator()(const Member& team) const {
    const std::size_t size = bytes;
    T* const tile = static_cast<T*>(team.team_scratch(0).get_shmem_aligned(size, alignof(T)));
    const Index number = first + team.league_rank();
    const Index left = number % tiles_across * side;
    const Index top = number / tiles_across % tiles_down * side;
    Index source, target;
    rest.locate(number / tiles_across / tiles_down, source, target);
    const Index lane = team.team_rank() % side, step = tile_lanes / side;
    const Index begin = team.team_rank() / side;
    constexpr int turns = static_cast<int>(side * side / tile_lanes);
    T held[turns];  // all reads are under way before a thread waits for the first
    for (int j = 0; j < turns; ++j) {
      const Index k = begin + j * step;
      if (left + lane < across.extent && top + k < down.extent)
        held[j] = from[source + left + lane + (top + k) * down.from];
    }
    for (int j = 0; j < turns; ++j) tile[(begin + j * step) * pitch + lane] = held[j];
    team.team_barrier();
    for (Index k = begin; k < side; k += step)
      if (left + k < across.extent && top + lane < down.extent)
        to[target + (left + k) * across.to + top + lane] = tile[lane * pitch + k];
  }
};

/// Copies a box that has such a dimension.
template <class T> void transpose_tiles(const T* from, T* to, const CopyBox& box) {
  const int at = across_of(box);
  TransposeTiles<T> kernel{box, box.dim[at], box.dim[box.rank - 1], 0, 0, 0, from, to};
  kernel.rest.rank = 0;
  for (int d = 0; d < box.rank - 1; ++d)
    if (d != at) kernel.rest.dim[kernel.rest.rank++] = box.dim[d];
  if (kernel.rest.rank == 0) kernel.rest.dim[kernel.rest.rank++] = {1, 0, 0};
  kernel.tiles_across = ceil_div(kernel.across.extent, TransposeTiles<T>::side);
  kernel.tiles_down = ceil_div(kernel.down.extent, TransposeTiles<T>::side);
  const Index others = box.size / kernel.across.extent / kernel.down.extent;
  const Index tiles = kernel.tiles_across * kernel.tiles_down * others;
  launch_teams("tessera::copy", tiles, tile_lanes, static_cast<Index>(TransposeTiles<T>::bytes),
               kernel);
}

}  // namespace tessera::detail
