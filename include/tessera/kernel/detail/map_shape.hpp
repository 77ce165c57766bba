// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A LocalMap made small: dimensions of extent 1 dropped, neighbours joined where every operand
/// allows it.
///
///     map_shape<2>(work).operand[1].flat     // operand 1 lies exactly as the result does
#include <Kokkos_Core.hpp>

#include <tessera/base/local_work.hpp>

namespace tessera::detail {

struct MapOperand {
  bool flat;  // contiguous, row-major
  Index stride[max_dims];
};

template <int N> struct MapShape {
  int rank;
  Index size;
  Index extent[max_dims];
  MapOperand operand[N];
  bool flat;  // all operands are

  KOKKOS_FUNCTION Index offset(Index i, int k) const {
    if (operand[k].flat) return i;
    Index at = 0;
    for (int d = rank - 1; d > 0; --d) {
      at += i % extent[d] * operand[k].stride[d];
      i /= extent[d];
    }
    return rank > 0 ? at + i * operand[k].stride[0] : at;
  }
};

/// Fills in the shape; not a template, so that it is compiled once.
inline void collapse_map(const LocalMap& work, int operands, int& rank, Index& size, Index* extent,
                         MapOperand* operand) {
  rank = 0;
  size = 1;
  for (int d = 0; d < work.extents.size(); ++d) {
    const Index next = work.extents[d];
    size *= max_of(0, next);
    if (next == 1) continue;
    bool join = rank > 0;
    for (int k = 0; k < operands && join; ++k)
      join = operand[k].stride[rank - 1] == work.strides[k][d] * next;
    if (join)
      extent[rank - 1] *= next;
    else
      extent[rank++] = next;
    for (int k = 0; k < operands; ++k) operand[k].stride[rank - 1] = work.strides[k][d];
  }
  for (int k = 0; k < operands; ++k) {
    operand[k].flat = true;
    Index expected = 1;
    for (int d = rank - 1; d >= 0; --d) {
      operand[k].flat = operand[k].flat && operand[k].stride[d] == expected;
      expected *= extent[d];
    }
  }
}

template <int N> MapShape<N> map_shape(const LocalMap& work) {
  MapShape<N> shape;
  collapse_map(work, N, shape.rank, shape.size, shape.extent, shape.operand);
  shape.flat = true;
  for (int k = 0; k < N; ++k) shape.flat = shape.flat && shape.operand[k].flat;
  return shape;
}

/// Most elements of an operand that are gathered at a time.
inline constexpr Index map_tile = 512;

/// Returns `count` consecutive elements (in the result's order, from `begin`) of an operand: in
/// place where they lie side by side, else gathered into `buffer`. `filled` remembers what a
/// broadcast filled the buffer with.
template <class T>
const T* gather_tile(int rank, const Index* extent, const MapOperand& operand, const T* in,
                     Index begin, Index count, T* buffer, const T*& filled) {
  if (operand.flat) return in + begin;
  Index at[max_dims];
  Index rest = begin;
  const T* from = in;
  for (int d = rank - 1; d >= 0; --d) {
    at[d] = d > 0 ? rest % extent[d] : rest;
    rest /= extent[d];
    from += at[d] * operand.stride[d];
  }
  const int last = rank - 1;
  const Index stride = operand.stride[last];
  if (at[last] + count <= extent[last]) {  // within one row
    if (stride == 1) return from;
    if (stride == 0) {
      if (filled != from)
        for (Index i = 0; i < map_tile; ++i) buffer[i] = *from;
      filled = from;
      return buffer;
    }
  }
  filled = nullptr;
  for (Index done = 0;;) {
    const Index piece = min_of(extent[last] - at[last], count - done);
    T* to = buffer + done;
    if (stride == 1)
      for (Index i = 0; i < piece; ++i) to[i] = from[i];
    else if (stride == 0)
      for (Index i = 0; i < piece; ++i) to[i] = *from;
    else
      for (Index i = 0; i < piece; ++i) to[i] = from[i * stride];
    done += piece;
    if (done == count) return buffer;
    from -= at[last] * stride;
    at[last] = 0;
    for (int d = last - 1; d >= 0; --d) {
      from += operand.stride[d];
      if (++at[d] < extent[d]) break;
      from -= operand.stride[d] * extent[d];
      at[d] = 0;
    }
  }
}

}  // namespace tessera::detail
