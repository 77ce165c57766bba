// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Host loops over one collapsed copy: runs of contiguous elements as block moves, planes whose
/// unit strides lie in different dimensions as transposes of whole cache lines, everything else
/// element by element.
///
///     copy_box<Word<4>>(box, from, to);
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <tessera/kernel/detail/copy_box.hpp>
#include <tessera/kernel/detail/simd.hpp>

namespace tessera::detail {

/// Any element of this many bytes; may alias the float or integer that it really is.
template <int Bytes> struct __attribute__((may_alias)) Word {
  std::conditional_t<
      Bytes == 1, std::uint8_t,
      std::conditional_t<Bytes == 2, std::uint16_t,
                         std::conditional_t<Bytes == 4, std::uint32_t, std::uint64_t>>>
      bits;
};
template <> struct __attribute__((may_alias)) Word<16> { std::uint64_t bits[2]; };

/// Moves n contiguous elements; short runs without a call.
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

#if (defined(__clang__) || __GNUC__ >= 12) && !defined(__CUDACC__)
#define TESSERA_SHUFFLES 1
#else
#define TESSERA_SHUFFLES 0
#endif

#if TESSERA_SHUFFLES
template <int Bytes> struct Lanes {
  typedef std::uint32_t Vector __attribute__((vector_size(16)));
};
template <> struct Lanes<8> { typedef std::uint64_t Vector __attribute__((vector_size(16))); };

template <class T> void transpose_shuffled(const T* from, Index stride, T* to) {
  constexpr Index line = 64 / sizeof(T);
  using V = typename Lanes<sizeof(T)>::Vector;
  constexpr Index wide = 16 / sizeof(T);
  const auto load = [](const T* p) {
    V v;
    std::memcpy(&v, p, 16);
    return v;
  };
  for (Index j = 0; j < line; j += wide)
    for (Index i = 0; i < line; i += wide) {
      const T* f = from + j * stride + i;
      T* t = to + i * line + j;
      if constexpr (wide == 2) {
        const V a = load(f), b = load(f + stride);
        const V o[2] = {__builtin_shufflevector(a, b, 0, 2), __builtin_shufflevector(a, b, 1, 3)};
        for (int k = 0; k < 2; ++k) std::memcpy(static_cast<void*>(t + k * line), &o[k], 16);
      } else {
        const V a = load(f), b = load(f + stride), c = load(f + 2 * stride),
                d = load(f + 3 * stride);
        const V p = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                q = __builtin_shufflevector(c, d, 0, 4, 1, 5);
        const V r = __builtin_shufflevector(a, b, 2, 6, 3, 7),
                s = __builtin_shufflevector(c, d, 2, 6, 3, 7);
        const V o[4] = {
            __builtin_shufflevector(p, q, 0, 1, 4, 5), __builtin_shufflevector(p, q, 2, 3, 6, 7),
            __builtin_shufflevector(r, s, 0, 1, 4, 5), __builtin_shufflevector(r, s, 2, 3, 6, 7)};
        for (int k = 0; k < 4; ++k) std::memcpy(static_cast<void*>(t + k * line), &o[k], 16);
      }
    }
}
#endif

/// Transposes the square that fits a cache line: to[i][j] = from[j * stride + i], `to` packed.
template <class T> void transpose_line(const T* from, Index stride, T* to) {
  constexpr Index line = 64 / sizeof(T);
#if TESSERA_SHUFFLES
  if constexpr (sizeof(T) == 4 || sizeof(T) == 8) return transpose_shuffled(from, stride, to);
#endif
  for (Index i = 0; i < line; ++i)
    for (Index j = 0; j < line; ++j) to[i * line + j] = from[j * stride + i];
}

/// Element (i, j) goes from from[i + j * from_stride] to to[i * to_stride + j].
template <class T>
void transpose_tile(const T* from, T* to, Index rows, Index to_stride, Index columns,
                    Index from_stride) {
  constexpr Index line = 64 / sizeof(T);
  if (rows == line && columns == line) {
    // Through a packed square, so that strides of a power of two do not evict what is being
    // written.
    T square[line * line];
    transpose_line(from, from_stride, square);
    for (Index i = 0; i < line; ++i)
      std::memcpy(static_cast<void*>(to + i * to_stride), square + i * line, 64);
  } else {
    for (Index i = 0; i < rows; ++i)
      for (Index j = 0; j < columns; ++j) to[i * to_stride + j] = from[i + j * from_stride];
  }
}

/// The same for a plane of any size, in bands of four cache lines: each visit to a row reads 256
/// bytes.
template <class T>
void transpose_plane(const T* from, T* to, Index rows, Index to_stride, Index columns,
                     Index from_stride) {
  constexpr Index line = 64 / sizeof(T), band = 4 * line;
  for (Index i = 0; i < rows; i += band)
    for (Index j = 0; j < columns; j += line)
      for (Index k = i; k < min_of(rows, i + band); k += line)
        transpose_tile(from + k + j * from_stride, to + k * to_stride + j, min_of(line, rows - k),
                       to_stride, min_of(line, columns - j), from_stride);
}

/// Rows of short runs whose sources lie closer along another dimension: a few of that dimension's
/// at a time, so that reads are as long as possible while each of them is still written in order.
template <class T>
void copy_short_runs(const T* from, T* to, Index run, CopyDim outer, CopyDim near) {
  const Index block = max_of(1, 1024 / static_cast<Index>(sizeof(T)) / run);
  for (Index n = 0; n < near.extent; n += block)
    for (Index i = 0; i < outer.extent; ++i)
      for (Index k = n; k < min_of(near.extent, n + block); ++k)
        copy_run(to + i * outer.to + k * near.to, from + i * outer.from + k * near.from, run);
}

/// Copies one collapsed box: two or three dimensions in the loops above, an odometer over the
/// others.
template <class T> void copy_box(const CopyBox& box, const T* from, T* to) {
  if (box.size == 0) return;
  from += box.from_offset;
  to += box.to_offset;
  const CopyDim inner = box.dim[box.rank - 1];
  const bool runs = inner.from == 1 && inner.to == 1;
  int row = box.rank - 2,
      near = -1;  // the dimensions that are looped over together with the inner one
  if (inner.to == 1 && !runs)
    for (int d = 0; d < box.rank - 1; ++d)
      if (box.dim[d].from == 1) row = d;
  if (runs && inner.extent * static_cast<Index>(sizeof(T)) < 512)
    for (int d = 0; d < row; ++d)
      if (magnitude(box.dim[d].from) < magnitude(box.dim[near < 0 ? row : near].from)) near = d;
  const CopyDim outer = row >= 0 ? box.dim[row] : CopyDim{1, 0, 0};
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
