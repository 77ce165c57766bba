// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A StridedCopy made small: no dimensions of extent 1, no two that could be one, the target's
/// strides descending. Only three shapes remain: runs, transposes, and all others. copy_loops.hpp
/// has their loops.
///
///     collapse_copy({.extents = {2, 3}, .from_strides = {3, 1}, .to_strides = {3, 1}}).rank == 1
///
/// Laws: the collapsed box moves the same elements and has at least one dimension; only an empty
/// box has size 0.
#include <Kokkos_Core.hpp>

#include <tessera/base/local_work.hpp>

namespace tessera::detail {

struct CopyDim {
  Index extent;
  Index from;  // strides
  Index to;
};

struct CopyBox {
  int rank;
  Index size;
  Index from_offset;
  Index to_offset;
  Index first;  // elements of the boxes before this one, for a flat index on a device
  CopyDim dim[max_dims];

  /// Finds the source and the target of the box's i-th element.
  KOKKOS_FUNCTION void locate(Index i, Index& from, Index& to) const {
    from = from_offset;
    to = to_offset;
    for (int d = rank - 1; d > 0; --d) {
      const Index at = i % dim[d].extent;
      i /= dim[d].extent;
      from += at * dim[d].from;
      to += at * dim[d].to;
    }
    from += i * dim[0].from;
    to += i * dim[0].to;
  }
};

constexpr Index magnitude(Index i) { return i < 0 ? -i : i; }

inline CopyBox collapse_copy(const StridedCopy& copy) {
  CopyBox box;
  box.size = 1;
  box.from_offset = copy.from_offset;
  box.to_offset = copy.to_offset;
  box.first = 0;
  int rank = 0;
  for (int d = 0; d < copy.extents.size(); ++d) {
    const CopyDim next{copy.extents[d], copy.from_strides[d], copy.to_strides[d]};
    box.size *= max_of(0, next.extent);
    if (next.extent == 1) continue;
    int at = rank++;
    for (; at > 0 && magnitude(box.dim[at - 1].to) < magnitude(next.to); --at)
      box.dim[at] = box.dim[at - 1];
    box.dim[at] = next;
  }
  box.rank = 0;
  for (int d = 0; d < rank; ++d) {
    const CopyDim& next = box.dim[d];
    CopyDim* last = box.rank > 0 ? &box.dim[box.rank - 1] : nullptr;
    if (last && last->from == next.from * next.extent && last->to == next.to * next.extent)
      *last = {last->extent * next.extent, next.from, next.to};
    else
      box.dim[box.rank++] = next;
  }
  if (box.rank == 0) box.dim[box.rank++] = {1, 1, 1};
  return box;
}

/// Cuts a box into `parts` along one long dimension and returns the part-th piece, perhaps empty.
inline CopyBox piece_of(const CopyBox& box, Index part, Index parts) {
  int cut = 0;
  for (int d = 0; d < box.rank && box.dim[cut].extent < parts; ++d)
    if (box.dim[d].extent > box.dim[cut].extent) cut = d;
  CopyBox piece = box;
  CopyDim& dim = piece.dim[cut];
  const Index each = ceil_div(dim.extent, parts);
  const Index begin = min_of(dim.extent, part * each);
  const Index end = min_of(dim.extent, begin + each);
  piece.size = box.size / dim.extent * (end - begin);
  piece.from_offset += begin * dim.from;
  piece.to_offset += begin * dim.to;
  dim.extent = end - begin;
  return piece;
}

}  // namespace tessera::detail
