// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Visits the elements of rows (the reduced box of each kept element) with their place in the row.
/// Neighbouring rows are visited together, and long rows are cut into chunks, whose results an
/// operation joins by integer atomics: the bits depend only on the elements.
///
///     row_pieces("tessera::find", rows, from, FindOp<float>{best, out});
#include <limits>

#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/reduce_shape.hpp>

namespace tessera::detail {

inline constexpr Index row_strip = 16;
inline constexpr Index row_chunk = 8192;

struct Rows {
  OffsetBox kept;
  OffsetBox reduced;
  Index step[max_dims];  // of the reduced dimensions, within a row
  Index width = 1;       // rows visited together
  Index strips = 1;      // in all
  Index row_strips = 1;  // in the last kept dimension
  Index chunk = row_chunk;
  Index chunks = 1;
};

/// Returns the rows; empty `steps` mean that places do not matter.
inline Rows rows_of(const LocalReduce& work, const Extents& steps) {
  Rows rows{offset_box(work.kept, work.kept_strides, false), {0, 1, {}, {}}, {}};
  if (steps.empty()) {
    rows.reduced = offset_box(work.reduced, work.reduced_strides, true);
  } else {
    OffsetBox& box = rows.reduced;
    for (int d = 0; d < work.reduced.size(); ++d) {
      const Index extent = work.reduced[d], stride = work.reduced_strides[d];
      box.size *= extent;
      if (extent == 1) continue;
      const int last = box.rank - 1;
      if (last >= 0 && box.stride[last] == stride * extent &&
          rows.step[last] == steps[d] * extent) {
        box.extent[last] *= extent;
        box.stride[last] = stride;
        rows.step[last] = steps[d];
      } else {
        box.extent[box.rank] = extent;
        box.stride[box.rank] = stride;
        rows.step[box.rank++] = steps[d];
      }
    }
  }
  const OffsetBox& kept = rows.kept;
  const Index inner = kept.rank > 0 ? kept.extent[kept.rank - 1] : 1;
  // Rows across memory are visited side by side.
  const bool along = rows.reduced.rank > 0 && rows.reduced.stride[rows.reduced.rank - 1] == 1;
  if (kernels_on_host && kept.rank > 0 && !along) rows.width = max_of(1, min_of(row_strip, inner));
  rows.row_strips = ceil_div(inner, rows.width);
  rows.strips = inner > 0 ? kept.size / inner * rows.row_strips : 0;
  rows.chunks = max_of(1, ceil_div(rows.reduced.size, rows.chunk));
  return rows;
}

/// An Op that takes n elements that follow each other at once, where a row lies so.
template <class T, class Op>
concept HasRowWay = requires(const Op& op, typename Op::State& state, const T* p, Index n) {
  op.take_row(state, p, n, n, n);
};

/// Op has a State, start(output) for it, take(state, value, place) and put(output, state, whole):
/// `whole` means that the state covers the whole row; else it is joined by atomics.
template <class T, class Op> struct RowPieces {
  Rows rows;
  const T* from;
  Op op;

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) piece(i % rows.strips, i / rows.strips);
  }
  KOKKOS_FUNCTION void piece(Index strip, Index chunk) const {
    const OffsetBox &kept = rows.kept, &box = rows.reduced;
    const Index inner = kept.rank > 0 ? kept.extent[kept.rank - 1] : 1;
    const Index across = kept.rank > 0 ? kept.stride[kept.rank - 1] : 0;
    const Index column = strip % rows.row_strips * rows.width;
    const Index output = strip / rows.row_strips * inner + column;
    const Index count = min_of(rows.width, inner - column);
    typename Op::State state[kernels_on_host ? row_strip : 1];
    for (Index j = 0; j < count; ++j) state[j] = op.start(output + j);
    const T* p = from + kept.offset(output);
    const int last = box.rank - 1;
    const Index row = last >= 0 ? box.extent[last] : 1;
    const Index stride = last >= 0 ? box.stride[last] : 0, step = last >= 0 ? rows.step[last] : 0;
    const Index stop = min_of(box.size, (chunk + 1) * rows.chunk);
    for (Index e = chunk * rows.chunk; e < stop;) {
      Index rest = e / row, offset = 0, place = 0;
      const Index first = e % row, n = min_of(row - first, stop - e);
      for (int d = last - 1; d >= 0; --d) {
        offset += rest % box.extent[d] * box.stride[d];
        place += rest % box.extent[d] * rows.step[d];
        rest /= box.extent[d];
      }
      offset += first * stride;
      place += first * step;
      if constexpr (kernels_on_host && HasRowWay<T, Op>)
        if (count == 1 && stride == 1) {
          op.take_row(state[0], p + offset, n, place, step);
          e += n;
          continue;
        }
      for (Index k = 0; k < n; ++k, offset += stride, place += step)
        for (Index j = 0; j < count; ++j) op.take(state[j], p[offset + j * across], place);
      e += n;
    }
    for (Index j = 0; j < count; ++j) op.put(output + j, state[j], rows.chunks == 1);
  }
};

template <class T, class Op>
void row_pieces(const char* label, const Rows& rows, const T* from, const Op& op) {
  const Index each = saturating_mul(rows.width, min_of(rows.chunk, max_of(1, rows.reduced.size)));
  launch(label, rows.strips * rows.chunks, max_of(1, 32768 / each),
         RowPieces<T, Op>{rows, from, op});
}

}  // namespace tessera::detail
