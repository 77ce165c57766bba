// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Reductions on the host: whole outputs to threads, or, where there are few and long ones, chunks of them.
///
///     reduce_host<Reduction::sum, float>(reduce_shape(work), from, to, 1.0);
#include <vector>

#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/reduce_loops.hpp>

namespace tessera::detail {

/// An index is an output, or with partial sums asked for, a chunk of an output.
template <Reduction R, class T>
struct ReduceLines {
  using Total = typename Fold<R, T>::Total;
  ReduceShape shape;
  Index chunks;
  const T* from;
  T* to;
  double scale;
  Total* partial;  // (output, chunk), or null

  void run(Index begin, Index end) const {
    const Index each = partial ? chunks : 1;
    for (Index i = begin; i < end; ++i) {
      const T* line = from + shape.kept.offset(i / each);
      const Index first = i % each, last = partial ? first + 1 : chunks;
      Total total = Fold<R, Total>::start();
      for (Index c = first; c < last; ++c)
        total = Fold<R, Total>::join(total, line_chunk<R, T>(shape.reduced, line, c));
      if (partial)
        partial[i] = total;
      else
        to[i] = scaled<T>(total, scale);
    }
  }
};

template <Reduction R, class T>
void reduce_lines(const ReduceShape& shape, const T* from, T* to, double scale) {
  using Total = typename Fold<R, T>::Total;
  const Index outputs = shape.kept.size, chunks = line_chunks(shape.reduced);
  ReduceLines<R, T> kernel{shape, chunks, from, to, scale, nullptr};
  if (chunks == 1 || host_threads() == 1 || outputs >= 4 * host_threads()) {
    launch("tessera::reduce", outputs, max_of(1, 32768 / max_of(1, shape.reduced.size)), kernel);
    return;
  }
  std::vector<Total> partial(static_cast<std::size_t>(outputs * chunks));
  kernel.partial = partial.data();
  launch("tessera::reduce", outputs * chunks, 1, kernel);
  for (Index o = 0; o < outputs; ++o) {
    Total total = kernel.partial[o * chunks];
    for (Index c = 1; c < chunks; ++c) total = Fold<R, Total>::join(total, kernel.partial[o * chunks + c]);
    to[o] = scaled<T>(total, scale);
  }
}

/// An index is a strip of a row of outputs, or with partial sums asked for, a chunk of one.
template <Reduction R, class T>
struct ReduceStrips {
  using Total = typename Fold<R, T>::Total;
  ReduceShape shape;
  Index chunks;
  Index width;   // of a strip
  Index strips;  // in a row of outputs
  const T* from;
  T* to;
  double scale;
  Total* partial;  // (chunk, output), or null

  void run(Index begin, Index end) const {
    const int row_dim = shape.kept.rank - 1;
    const Index inner = shape.kept.extent[row_dim], stride = shape.kept.stride[row_dim];
    const Index each = partial ? chunks : 1;
    for (Index i = begin; i < end; ++i) {
      const Index row = i / each / strips, column = i / each % strips * width;
      const Index count = min_of(width, inner - column), output = row * inner + column;
      const T* p = from + shape.kept.offset(output);
      const Index first = i % each, last = partial ? first + 1 : chunks;
      Total total[strip_width], next[strip_width];
      for (Index j = 0; j < count; ++j) total[j] = Fold<R, Total>::start();
      for (Index c = first; c < last; ++c) {
        const Index top = c * strip_chunk_rows, bottom = min_of(top + strip_chunk_rows, shape.reduced.size);
        strip_chunk<R, T>(shape.reduced, p, stride, count, top, bottom, next);
        for (Index j = 0; j < count; ++j) total[j] = Fold<R, Total>::join(total[j], next[j]);
      }
      if (partial)
        for (Index j = 0; j < count; ++j) partial[first * shape.kept.size + output + j] = total[j];
      else
        for (Index j = 0; j < count; ++j) to[output + j] = scaled<T>(total[j], scale);
    }
  }
};

template <Reduction R, class T>
void reduce_strips(const ReduceShape& shape, const T* from, T* to, double scale) {
  using Total = typename Fold<R, T>::Total;
  const Index inner = shape.kept.extent[shape.kept.rank - 1], threads = host_threads();
  const Index chunks = max_of(1, ceil_div(shape.reduced.size, strip_chunk_rows));
  Index width = min_of(strip_width, inner);
  if (threads > 1) width = min_of(width, max_of(64, round_up(ceil_div(inner, threads), 16)));
  const Index strips = ceil_div(inner, width), count = shape.kept.size / inner * strips;
  ReduceStrips<R, T> kernel{shape, chunks, width, strips, from, to, scale, nullptr};
  if (chunks == 1 || threads == 1 || count >= 4 * threads) {
    launch("tessera::reduce", count, max_of(1, 32768 / max_of(1, saturating_mul(width, shape.reduced.size))), kernel);
    return;
  }
  std::vector<Total> partial(static_cast<std::size_t>(shape.kept.size * chunks));
  kernel.partial = partial.data();
  launch("tessera::reduce", count * chunks, 1, kernel);
  for (Index o = 0; o < shape.kept.size; ++o) {
    Total total = kernel.partial[o];
    for (Index c = 1; c < chunks; ++c)
      total = Fold<R, Total>::join(total, kernel.partial[c * shape.kept.size + o]);
    to[o] = scaled<T>(total, scale);
  }
}

template <Reduction R, class T>
void reduce_host(const ReduceShape& shape, const T* from, T* to, double scale) {
  const OffsetBox &kept = shape.kept, &reduced = shape.reduced;
  const bool unit_line = reduced.rank > 0 && reduced.stride[reduced.rank - 1] == 1;
  const bool short_line = reduced.rank == 0 || (reduced.rank == 1 && reduced.size < 16);
  const bool wide = kept.rank > 0 && kept.extent[kept.rank - 1] >= 8;
  if (wide && (short_line || !unit_line))
    reduce_strips<R, T>(shape, from, to, scale);
  else
    reduce_lines<R, T>(shape, from, to, scale);
}

}  // namespace tessera::detail
