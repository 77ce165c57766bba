// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Host loops over one collapsed copy: runs of contiguous elements as block moves, planes whose
/// unit strides lie in different dimensions as transposes (transpose_plane.hpp), everything else
/// element by element.
///
///     copy_box<Word<4>>(box, from, to);
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <tessera/kernel/copy/copy_box.hpp>
#include <tessera/kernel/copy/detail/transpose_plane.hpp>

namespace tessera::detail {

/// A word of this many bytes; it may alias the float or integer stored there.
template <int Bytes> struct __attribute__((may_alias)) Word {
  std::conditional_t<
      Bytes == 1, std::uint8_t,
      std::conditional_t<Bytes == 2, std::uint16_t,
                         std::conditional_t<Bytes == 4, std::uint32_t, std::uint64_t>>>
      bits;
};
template <> struct __attribute__((may_alias)) Word<16> { std::uint64_t bits[2]; };

/// Moves n contiguous elements; short runs without a function call.
template <class T> void copy_run(T* to, const T* from, Index n) {
  if (n * static_cast<Index>(sizeof(T)) > 128) {
    std::memcpy(static_cast<void*>(to), from, static_cast<std::size_t>(n) * sizeof(T));
    return;
  }
  constexpr Index wide = 16 / sizeof(T);
  Index i = 0;
  for (; i + wide <= n; i += wide) std::memcpy(static_cast<void*>(to + i), from + i, 16);
  if constexpr (wide > 2) {
    if (n - i >= wide / 2) {
      std::memcpy(static_cast<void*>(to + i), from + i, 8);
      i += wide / 2;
    }
  }
  if constexpr (wide > 4) {
    if (n - i >= wide / 4) {
      std::memcpy(static_cast<void*>(to + i), from + i, 4);
      i += wide / 4;
    }
  }
  for (; i < n; ++i) to[i] = from[i];
}

/// Copies rows of short runs whose sources lie closer along another dimension: a few rows along
/// that dimension at a time, so that reads are as long as possible while each row is still written
/// in order. Runs of whole cache lines may be written to more places in turn.
template <class T>
void copy_short_runs(const T* from, T* to, Index run, CopyDim outer, CopyDim near) {
  const Index bytes = run * static_cast<Index>(sizeof(T));
  const Index block = bytes >= 256 ? 16 : max_of(1, 1024 / bytes);
  for (Index n = 0; n < near.extent; n += block)
    for (Index i = 0; i < outer.extent; ++i)
      for (Index k = n; k < min_of(near.extent, n + block); ++k)
        copy_run(to + i * outer.to + k * near.to, from + i * outer.from + k * near.from, run);
}

/// Copies one collapsed box: two or three dimensions in the loops above, the others by an odometer.
template <class T> void copy_box(const CopyBox& box, const T* from, T* to) {
  if (box.size == 0) return;
  from += box.from_offset;
  to += box.to_offset;
  const CopyDim inner = box.dim[box.rank - 1];
  const bool runs = inner.from == 1 && inner.to == 1;
  int row = box.rank - 2,
      near = -1;  // the dimensions in the loops together with the inner one
  if (inner.to == 1 && !runs)
    for (int d = 0; d < box.rank - 1; ++d)
      if (box.dim[d].from == 1) row = d;
  if (runs && inner.extent * static_cast<Index>(sizeof(T)) < 2048)
    for (int d = 0; d < row; ++d)
      if (magnitude(box.dim[d].from) < magnitude(box.dim[near < 0 ? row : near].from)) near = d;
  CopyDim outer = row >= 0 ? box.dim[row] : CopyDim{1, 0, 0};
  if (runs && outer.from < 0) {  // rows that are read in the order of memory come sooner
    from += (outer.extent - 1) * outer.from;
    to += (outer.extent - 1) * outer.to;
    outer = {outer.extent, -outer.from, -outer.to};
  }
  CopyDim rest[max_dims];
  Index at[max_dims];
  int rank = 0;
  for (int d = 0; d < box.rank - 1; ++d)
    if (d != row && d != near) {
      at[rank] = 0;
      rest[rank++] = box.dim[d];
    }
  for (;;) {
    if (near >= 0) {
      copy_short_runs(from, to, inner.extent, outer, box.dim[near]);
    } else if (runs) {
      for (Index i = 0; i < outer.extent; ++i)
        copy_run(to + i * outer.to, from + i * outer.from, inner.extent);
    } else if (inner.to == 1 && outer.from == 1) {
      transpose_plane(from, to, outer.extent, outer.to, inner.extent, inner.from);
    } else {
      for (Index i = 0; i < outer.extent; ++i)
        for (Index j = 0; j < inner.extent; ++j)
          to[i * outer.to + j * inner.to] = from[i * outer.from + j * inner.from];
    }
    int d = rank - 1;
    for (; d >= 0; --d) {
      from += rest[d].from;
      to += rest[d].to;
      if (++at[d] < rest[d].extent) break;
      from -= rest[d].from * rest[d].extent;
      to -= rest[d].to * rest[d].extent;
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace tessera::detail
