// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Host loops over one collapsed copy: runs of contiguous elements as block moves, planes whose unit strides lie in
/// different dimensions as transposes of whole cache lines, everything else element by element.
///
///     copy_box<Word<4>>(box, from, to);
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <tessera/kernel/detail/copy_box.hpp>
#include <tessera/kernel/detail/simd.hpp>

namespace tessera::detail {

/// Any element of this many bytes; may alias the float or integer that it really is.
template <int Bytes>
struct __attribute__((may_alias)) Word {
  std::conditional_t<Bytes == 4, std::uint32_t, std::uint64_t> bits;
};

/// Moves n contiguous elements; short runs without a call.
template <class T>
void copy_run(T* to, const T* from, Index n) {
  if (n * static_cast<Index>(sizeof(T)) > 128) {
    std::memcpy(static_cast<void*>(to), from, static_cast<std::size_t>(n) * sizeof(T));
    return;
  }
  constexpr Index wide = 16 / sizeof(T);
  Index i = 0;
  for (; i + wide <= n; i += wide) std::memcpy(static_cast<void*>(to + i), from + i, 16);
  if (wide > 2 && n - i >= 2) {
    std::memcpy(static_cast<void*>(to + i), from + i, 8);
    i += 2;
  }
  if (i < n) to[i] = from[i];
}

#if (defined(__clang__) || __GNUC__ >= 12) && !defined(__CUDACC__)
#define TESSERA_SHUFFLES 1
#else
#define TESSERA_SHUFFLES 0
#endif

#if TESSERA_SHUFFLES
template <int Bytes>
struct Lanes {
  typedef std::uint32_t Vector __attribute__((vector_size(16)));
};
template <>
struct Lanes<8> {
  typedef std::uint64_t Vector __attribute__((vector_size(16)));
};
#endif

/// Transposes the square that fits a cache line: to[i][j] = from[j * stride + i], `to` packed.
template <class T>
void transpose_line(const T* from, Index stride, T* to) {
  constexpr Index line = 64 / sizeof(T);
#if TESSERA_SHUFFLES
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
        const V a = load(f), b = load(f + stride), c = load(f + 2 * stride), d = load(f + 3 * stride);
        const V p = __builtin_shufflevector(a, b, 0, 4, 1, 5), q = __builtin_shufflevector(c, d, 0, 4, 1, 5);
        const V r = __builtin_shufflevector(a, b, 2, 6, 3, 7), s = __builtin_shufflevector(c, d, 2, 6, 3, 7);
        const V o[4] = {__builtin_shufflevector(p, q, 0, 1, 4, 5), __builtin_shufflevector(p, q, 2, 3, 6, 7),
                        __builtin_shufflevector(r, s, 0, 1, 4, 5), __builtin_shufflevector(r, s, 2, 3, 6, 7)};
        for (int k = 0; k < 4; ++k) std::memcpy(static_cast<void*>(t + k * line), &o[k], 16);
      }
    }
#else
  for (Index i = 0; i < line; ++i)
    for (Index j = 0; j < line; ++j) to[i * line + j] = from[j * stride + i];
#endif
}

/// Element (i, j) goes from from[i + j * from_stride] to to[i * to_stride + j].
template <class T>
void transpose_plane(const T* from, T* to, Index rows, Index to_stride, Index columns, Index from_stride) {
  constexpr Index line = 64 / sizeof(T);
  for (Index i = 0; i < rows; i += line)
    for (Index j = 0; j < columns; j += line) {
      const T* f = from + i + j * from_stride;
      T* t = to + i * to_stride + j;
      if (i + line <= rows && j + line <= columns) {
        // Through a packed square, so that strides of a power of two do not evict what is being written.
        T square[line * line];
        transpose_line(f, from_stride, square);
        for (Index k = 0; k < line; ++k) std::memcpy(static_cast<void*>(t + k * to_stride), square + k * line, 64);
      } else {
        const Index m = min_of(line, rows - i), n = min_of(line, columns - j);
        for (Index k = 0; k < m; ++k)
          for (Index l = 0; l < n; ++l) t[k * to_stride + l] = f[k + l * from_stride];
      }
    }
}

/// Copies one collapsed box: two dimensions in the loops above, an odometer over the others.
template <class T>
void copy_box(const CopyBox& box, const T* from, T* to) {
  if (box.size == 0) return;
  from += box.from_offset;
  to += box.to_offset;
  const CopyDim inner = box.dim[box.rank - 1];
  const bool runs = inner.from == 1 && inner.to == 1;
  int row = box.rank - 2;  // the dimension that makes a plane with the inner one
  if (inner.to == 1 && !runs)
    for (int d = 0; d < box.rank - 1; ++d)
      if (box.dim[d].from == 1) row = d;
  const CopyDim outer = row >= 0 ? box.dim[row] : CopyDim{1, 0, 0};
  CopyDim rest[max_dims];
  Index at[max_dims];
  int rank = 0;
  for (int d = 0; d < box.rank - 1; ++d)
    if (d != row) {
      at[rank] = 0;
      rest[rank++] = box.dim[d];
    }
  for (;;) {
    if (runs) {
      for (Index i = 0; i < outer.extent; ++i) copy_run(to + i * outer.to, from + i * outer.from, inner.extent);
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
