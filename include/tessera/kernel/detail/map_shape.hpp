// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A LocalMap made small: dimensions of extent 1 are dropped, neighbours joined where every operand
/// allows it.
///
///     map_shape<2>(work).operand[1].flat     // operand 1 lies exactly as the result does
#include <cstdint>

#include <Kokkos_Core.hpp>

#include <tessera/base/local_work.hpp>
#include <tessera/kernel/detail/simd.hpp>

namespace tessera::detail {

struct MapOperand {
  bool flat;  // contiguous, row-major
  Index stride[max_dims];

  KOKKOS_FUNCTION Index offset(Index i, int rank, const Index* extent) const {
    if (flat) return i;
    Index at = 0;
    for (int d = rank - 1; d > 0; --d) {
      at += i % extent[d] * stride[d];
      i /= extent[d];
    }
    return rank > 0 ? at + i * stride[0] : at;
  }
};

template <int N> struct MapShape {
  int rank;
  Index size;
  Index extent[max_dims];
  MapOperand operand[N + 1];  // the last is the result
  bool flat;                  // all operands are flat

  KOKKOS_FUNCTION Index offset(Index i, int k) const { return operand[k].offset(i, rank, extent); }
};

/// Fills in the shape: `operand` holds the operands and the result. Not a template, so that it is
/// compiled once.
inline void collapse_map(const LocalMap& work, int operands, int& rank, Index& size, Index* extent,
                         MapOperand* operand) {
  const bool row_major = work.result.empty();  // then any dimensions of it may be joined
  const int tensors = operands + (row_major ? 0 : 1);
  const auto strides = [&](int k) { return (k < operands ? work.strides[k] : work.result).data(); };
  rank = 0;
  size = 1;
  for (int d = 0; d < work.extents.size(); ++d) {
    const Index next = work.extents[d];
    size *= max_of(0, next);
    if (next == 1) continue;
    bool join = rank > 0;
    for (int k = 0; k < tensors && join; ++k)
      join = operand[k].stride[rank - 1] == strides(k)[d] * next;
    if (join)
      extent[rank - 1] *= next;
    else
      extent[rank++] = next;
    for (int k = 0; k < tensors; ++k) operand[k].stride[rank - 1] = strides(k)[d];
  }
  for (int k = 0; k < tensors; ++k) {
    operand[k].flat = true;
    Index expected = 1;
    for (int d = rank - 1; d >= 0; --d) {
      operand[k].flat = operand[k].flat && operand[k].stride[d] == expected;
      expected *= extent[d];
    }
  }
  if (!row_major) return;
  MapOperand& result = operand[operands];
  result.flat = true;
  for (Index d = rank - 1, next = 1; d >= 0; next *= extent[d--]) result.stride[d] = next;
}

/// Returns the shape of a map of so many operands, at most N.
template <int N> MapShape<N> map_shape(const LocalMap& work, int operands = N) {
  MapShape<N> shape;
  if (work.flat) {
    shape.rank = 1;
    shape.size = shape.extent[0] = volume(work.extents);
    shape.flat = true;
    for (MapOperand& operand : shape.operand) operand.flat = true;
    return shape;
  }
  collapse_map(work, operands, shape.rank, shape.size, shape.extent, shape.operand);
  shape.flat = true;
  for (int k = 0; k <= operands; ++k) shape.flat = shape.flat && shape.operand[k].flat;
  return shape;
}

/// Most elements of an operand that are copied into a buffer at a time.
inline constexpr Index map_tile = 512;

/// Steps through the rows of N tensors in different layouts: `offset` is where the next row begins
/// in each. The first row begins at element at[last].
template <int N> struct MapRows {
  Index at[max_dims];
  Index offset[N];

  MapRows(int last, const Index* extent, const MapOperand* operand, Index begin) : offset{} {
    for (int d = last; d >= 0; --d) {
      at[d] = d > 0 ? begin % extent[d] : begin;
      begin /= extent[d];
      for (int k = 0; k < N; ++k) offset[k] += at[d] * operand[k].stride[d];
    }
  }
  void next(int last, const Index* extent, const MapOperand* operand) {
    if (at[last] != 0)
      for (int k = 0; k < N; ++k) offset[k] -= at[last] * operand[k].stride[last];
    at[last] = 0;
    for (int d = last - 1; d >= 0; --d) {
      const bool over = ++at[d] == extent[d];
      const Index steps = over ? 1 - extent[d] : 1;
      for (int k = 0; k < N; ++k) offset[k] += steps * operand[k].stride[d];
      if (!over) return;
      at[d] = 0;
    }
  }
};
/// Returns `count` elements of a row: in place, or copied into `buffer`; `filled` as below. `most`:
/// no piece of the rows has more.
template <class T>
const T* row_piece(const T* from, Index stride, Index count, Index most, T* buffer,
                   const T*& filled) {
  if (stride == 1) return from;
  if (stride == 0) {
    if (filled == from) return buffer;
    if constexpr (sizeof(T) == 2) {  // as integers: g++ 12 makes no vectors of half types
      const std::uint16_t x = *reinterpret_cast<const std::uint16_t*>(from);
      TESSERA_SIMD
      for (Index i = 0; i < most; ++i) reinterpret_cast<std::uint16_t*>(buffer)[i] = x;
    } else {
      const T x = *from;
      TESSERA_SIMD
      for (Index i = 0; i < most; ++i) buffer[i] = x;
    }
    filled = from;
    return buffer;
  }
  filled = nullptr;
  for (Index i = 0; i < count; ++i) buffer[i] = from[i * stride];
  return buffer;
}

/// Returns `count` consecutive elements (in the result's order, from `begin`) of an operand: in
/// place where they are contiguous, else copied into `buffer`. `filled` remembers the value with
/// which a broadcast filled the buffer.
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
  if (at[last] + count <= extent[last])
    return row_piece(from, stride, count, min_of(map_tile, extent[last]), buffer, filled);
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
