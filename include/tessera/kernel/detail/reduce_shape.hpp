// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A LocalReduce made small: dimensions of extent 1 are dropped, neighbours joined, the reduced
/// dimensions sorted by stride.
///
///     reduce_shape({.kept = {4}, .kept_strides = {6}, .reduced = {2, 3}, .reduced_strides = {3,
///     1}}).reduced.rank == 1
#include <Kokkos_Core.hpp>

#include <tessera/base/local_work.hpp>

namespace tessera::detail {

/// A box of offsets in row-major order.
struct OffsetBox {
  int rank;
  Index size;
  Index extent[max_dims];
  Index stride[max_dims];

  KOKKOS_FUNCTION Index offset(Index i) const {
    Index at = 0;
    for (int d = rank - 1; d > 0; --d) {
      at += i % extent[d] * stride[d];
      i /= extent[d];
    }
    return rank > 0 ? at + i * stride[0] : at;
  }
};

inline OffsetBox offset_box(const Extents& extents, const Extents& strides, bool sorted) {
  Index extent[max_dims], stride[max_dims];
  OffsetBox box{0, 1, {}, {}};
  int rank = 0;
  for (int d = 0; d < extents.size(); ++d) {
    box.size *= max_of(0, extents[d]);
    if (extents[d] == 1) continue;
    const Index key = strides[d] < 0 ? -strides[d] : strides[d];
    int at = rank++;
    for (; sorted && at > 0 && (stride[at - 1] < 0 ? -stride[at - 1] : stride[at - 1]) < key;
         --at) {
      extent[at] = extent[at - 1];
      stride[at] = stride[at - 1];
    }
    extent[at] = extents[d];
    stride[at] = strides[d];
  }
  for (int d = 0; d < rank; ++d) {
    if (box.rank > 0 && box.stride[box.rank - 1] == stride[d] * extent[d]) {
      box.extent[box.rank - 1] *= extent[d];
      box.stride[box.rank - 1] = stride[d];
    } else {
      box.extent[box.rank] = extent[d];
      box.stride[box.rank++] = stride[d];
    }
  }
  return box;
}

struct ReduceShape {
  OffsetBox kept;
  OffsetBox reduced;
};

inline ReduceShape reduce_shape(const LocalReduce& work) {
  return {offset_box(work.kept, work.kept_strides, false),
          offset_box(work.reduced, work.reduced_strides, true)};
}

/// Steps through the rows of a box (all dimensions but the last) in order, without division.
struct RowWalk {
  const OffsetBox& box;
  Index at[max_dims];
  Index offset = 0;

  RowWalk(const OffsetBox& walked, Index row) : box(walked) { move_to(row); }
  void move_to(Index row) {
    offset = 0;
    for (int d = box.rank - 2; d >= 0; --d) {
      at[d] = row % box.extent[d];
      row /= box.extent[d];
      offset += at[d] * box.stride[d];
    }
  }
  void next() {
    for (int d = box.rank - 2; d >= 0; --d) {
      offset += box.stride[d];
      if (++at[d] < box.extent[d]) return;
      offset -= box.stride[d] * box.extent[d];
      at[d] = 0;
    }
  }
};

}  // namespace tessera::detail
