// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Copies boxes of elements between strided layouts: packing, unpacking, slicing, permuting and
/// broadcasting alike, a whole list of boxes in few launches. base/local_work.hpp describes the
/// copies. Only the size of an element matters, not its type.
///
///     const detail::StridedCopy turned{.extents = {2, 3}, .from_strides = {3, 1}, .to_strides = {1, 2}};
///     detail::copy(DType::f32, from, to, &turned, 1);        // the transpose of a 2 x 3 matrix
///
/// Laws: unpacking packed elements restores them; the order of boxes and dimensions does not
/// matter.
#include <algorithm>

#include <tessera/base/dtype.hpp>
#include <tessera/base/local_work.hpp>
#include <tessera/kernel/copy/copy_box.hpp>
#include <tessera/kernel/copy/copy_loops.hpp>
#include <tessera/kernel/copy/detail/transpose_tiles.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/elements.hpp>

namespace tessera::detail {

/// Host: all boxes, divided among `parts` threads; a small box goes to one thread whole.
template <class T> struct CopyParts {
  const T* from;
  T* to;
  const StridedCopy* copies;
  int count;
  Index parts;
  void run(Index begin, Index end) const {
    if (const Index strips = strips_of(copies, count); strips > 1)
      return run_strips(begin, end, strips);
    for (int c = 0; c < count; ++c) {
      const CopyBox box = collapse_copy(copies[c]);
      for (Index part = begin; part < end; ++part) {
        if (parts > 1 && box.size >= 4096)
          copy_box(piece_of(box, part, parts), from, to);
        else if (c % parts == part)
          copy_box(box, from, to);
      }
    }
  }
  /// Several boxes of short runs, such as the faces of a block, are copied in strips, one strip of
  /// each box in turn: memory between the runs of two faces, or on a page with them, is fetched
  /// once.
  void run_strips(Index begin, Index end, Index strips) const {
    for (Index part = begin; part < end; ++part)
      for (Index strip = 0; strip < strips; ++strip)
        for (int c = 0; c < count; ++c)
          copy_box(piece_of(collapse_copy(copies[c]), part * strips + strip, parts * strips), from,
                   to);
  }
  /// Returns how many strips are worthwhile; 1: none.
  static Index strips_of(const StridedCopy* copies, int count) {
    constexpr Index rows_of_strip = 256;
    Index most = 1;
    for (int c = 0; count > 1 && c < count; ++c) {
      const CopyBox box = collapse_copy(copies[c]);
      if (box.size < 2 * rows_of_strip) return 1;
      const CopyDim inner = box.dim[box.rank - 1];
      const Index run = inner.from == 1 && inner.to == 1 ? inner.extent : 1;
      if (run * static_cast<Index>(sizeof(T)) >= 64) return 1;
      most = max_of(most, box.size / run / rows_of_strip);
    }
    return most;
  }
};

/// Device: one thread for each element; the kernel's arguments hold the boxes.
template <class T, int Held> struct CopyElements {
  const T* from;
  T* to;
  int count;
  CopyBox boxes[Held];
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      int low = 0;
      for (int high = count; high - low > 1;) {
        const int middle = (low + high) / 2;
        if (boxes[middle].first <= i)
          low = middle;
        else
          high = middle;
      }
      Index f, t;
      boxes[low].locate(i - boxes[low].first, f, t);
      to[t] = from[f];
    }
  }
};

template <class T, int Held>
void copy_held(const T* from, T* to, const StridedCopy* copies, int count) {
  CopyElements<T, Held> kernel{from, to, 0, {}};
  static_assert(sizeof(kernel) <= 4096, "CUDA takes no more arguments");
  Index total = 0;
  for (int c = 0; c < count; ++c) {
    CopyBox box = collapse_copy(copies[c]);
    if (box.size == 0) continue;
    box.first = total;
    total += box.size;
    kernel.boxes[kernel.count++] = box;
  }
  launch("tessera::copy", total, 1, kernel);
}

/// For all elements of Bytes bytes.
template <int Bytes>
void copy_elements(const void* from_bytes, void* to_bytes, const StridedCopy* copies, int count) {
  using T = Word<Bytes>;
  const T* from = static_cast<const T*>(from_bytes);
  T* to = static_cast<T*>(to_bytes);
  if constexpr (kernels_on_host) {
    Index total = 0;
    for (int c = 0; c < count; ++c) total = saturating_add(total, volume(copies[c].extents));
    const Index parts = total < 65536 ? 1 : host_threads();
    launch("tessera::copy", parts, 1, CopyParts<T>{from, to, copies, count, parts});
  } else if (count <= 1) {
    if constexpr (has_teams<KernelSpace>)
      if (count == 1)
        if (const CopyBox box = collapse_copy(copies[0]); box.size > 0 && across_of(box) >= 0)
          return transpose_tiles(from, to, box);
    copy_held<T, 1>(from, to, copies, count);
  } else {
    for (int first = 0; first < count; first += 16)
      copy_held<T, 16>(from, to, copies + first, std::min(16, count - first));
  }
}

struct CopyKernels {
  void (*run)(const void* from, void* to, const StridedCopy* copies, int count);
  template <class T> static constexpr bool has = true;
  template <class T> static constexpr CopyKernels of() { return {&copy_elements<sizeof(T)>}; }
};

/// Copies `count` boxes from one buffer to another. The targets of all boxes must be
/// disjoint and must not overlap what is read. Strides may be negative or, on the source's side, 0.
/// Communication: none.
inline void copy(DType type, const void* from, void* to, const StridedCopy* copies, int count) {
  kernels_of<CopyKernels>(type).run(from, to, copies, count);
}
}  // namespace tessera::detail
