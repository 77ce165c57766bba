// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Reductions on the host: each thread gets whole outputs or, where the outputs are few and long,
/// chunks of them. The division of the work does not depend on types, so that only reduce_part is
/// compiled for each reduction and element type.
///
///     reduce_host(reduce_shape(work), from, to, 1.0, reduce_part<Reduction::sum, float, float>,
///     sizeof(double), strip_width<float>);
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/reduce_loops.hpp>

namespace tessera::detail {

struct HostReduce {
  ReduceShape shape;
  bool strips;       // rows of outputs side by side, else each output on its own
  Index width;       // outputs in a strip
  Index row_strips;  // strips in a row of outputs
  Index chunks;      // of each output's reduced elements
  const void* from;
  void* to;
  double scale;
  void* partial = nullptr;  // (output, chunk) totals, where chunks are reduced separately
  bool joining = false;     // reduces those totals
};

/// Reduces items [begin, end): outputs, strips of at most `widest` outputs, chunks of either, or
/// the totals of chunks. Totals begin as `start`, and join(a, b) joins b to a. strip(output, count,
/// top, bottom, totals) makes those of rows [top, bottom) for `count` outputs side by side,
/// line(output, chunk) that of a chunk; put(output, total) writes an output.
template <Index widest, class Total, class Join, class Strip, class Line, class Put>
TESSERA_INLINE inline void reduce_items(const HostReduce& work, Index begin, Index end,
                                        const Total start, const Join& join, const Strip& strip,
                                        const Line& line, const Put& put) {
  Total* const partial = static_cast<Total*>(work.partial);
  const bool apart = partial && !work.joining;
  const Index chunks = work.chunks, each = apart ? chunks : 1;
  const auto finish = [&](Index output, Index chunk, const Total& total) TESSERA_INLINE {
    if (apart)
      partial[output * chunks + chunk] = total;
    else
      put(output, total);
  };
  for (Index i = begin; i < end; ++i) {
    const Index first = i % each, last = apart ? first + 1 : chunks, item = i / each;
    if (work.strips && !work.joining) {
      const Index inner = work.shape.kept.extent[work.shape.kept.rank - 1],
                  column = item % work.row_strips * work.width;
      const Index count = min_of(work.width, inner - column);
      const Index output = item / work.row_strips * inner + column;
      Total total[widest], next[widest];
      for (Index j = 0; j < count; ++j) total[j] = start;
      for (Index c = first; c < last; ++c) {
        const Index top = c * strip_chunk_rows,
                    bottom = min_of(top + strip_chunk_rows, work.shape.reduced.size);
        strip(output, count, top, bottom, next);
        for (Index j = 0; j < count; ++j) join(total[j], next[j]);
      }
      for (Index j = 0; j < count; ++j) finish(output + j, first, total[j]);
    } else {
      Total total = start;
      for (Index c = first; c < last; ++c)
        join(total, work.joining ? partial[item * chunks + c] : line(item, c));
      finish(item, first, total);
    }
  }
}

/// Reductions that many programs have: products and narrow or unsigned integers are reduced without
/// vectors.
template <Reduction R, class T>
inline constexpr bool is_usual_reduction = (R != Reduction::product ||
                                            ComplexElement<T>)&&(!IntegerElement<T> ||
                                                                 std::is_same_v<T, std::int32_t> ||
                                                                 std::is_same_v<T, std::int64_t> ||
                                                                 std::is_same_v<T, std::uint8_t>);

/// Reduces the results `begin` to `end` - 1.
template <Reduction R, class T, class Out>
[[gnu::noinline]] void reduce_part(const HostReduce& work, Index begin, Index end) {
  using Total = typename Accumulator<R, T, Out>::Total;
  using F = Fold<R, Total>;
  const ReduceShape& shape = work.shape;
  const T* from = static_cast<const T*>(work.from);
  Out* to = static_cast<Out*>(work.to);
  // An empty block has no memory, and its sums read none.
  const auto at = [&](Index output) {
    return from == nullptr ? from : from + shape.kept.offset(output);
  };
  const auto all = [&]() TESSERA_INLINE {
    reduce_items<strip_width<T>>(
        work, begin, end, F::start(),
        [](Total& a, const Total& b) TESSERA_INLINE { a = F::join(a, b); },
        [&](Index output, Index count, Index top, Index bottom, Total* made) TESSERA_INLINE {
          strip_chunk<R, T, Out>(shape.reduced, at(output), shape.kept.stride[shape.kept.rank - 1],
                                 count, top, bottom, made);
        },
        [&](Index output, Index chunk)
            TESSERA_INLINE { return line_chunk<R, T, Out>(shape.reduced, at(output), chunk); },
        [&](Index output, const Total& total)
            TESSERA_INLINE { to[output] = scaled<Out>(total, work.scale); });
  };
  if constexpr (is_usual_reduction<R, T>)
    with_wide_vectors(all);
  else
    run_small(all);
}

using ReducePart = void (*)(const HostReduce& work, Index begin, Index end);

struct ReduceBody {
  const HostReduce& work;
  ReducePart part;
  void run(Index begin, Index end) const { part(work, begin, end); }
};

/// Divides the work into outputs, strips of at most `widest` outputs, and chunks.
inline HostReduce divide_reduce(const ReduceShape& shape, const void* from, void* to, double scale,
                                Index widest) {
  const OffsetBox &kept = shape.kept, &reduced = shape.reduced;
  const bool unit_line = reduced.rank > 0 && reduced.stride[reduced.rank - 1] == 1;
  const bool short_line = reduced.rank == 0 || (reduced.rank == 1 && reduced.size < 16);
  const Index inner = kept.rank > 0 ? kept.extent[kept.rank - 1] : 1, threads = host_threads();
  HostReduce work{shape, inner >= 8 && (short_line || !unit_line), 1, 1, 1, from, to, scale};
  if (work.strips) {
    work.chunks = max_of(1, ceil_div(reduced.size, strip_chunk_rows));
    work.width = min_of(widest, inner);
    if (threads > 1)
      work.width = min_of(work.width, max_of(64, round_up(ceil_div(inner, threads), 16)));
    work.row_strips = ceil_div(inner, work.width);
  } else {
    work.chunks = line_chunks(reduced);
  }
  return work;
}

/// Divides the work and lets `part` do it; its totals have total_bytes each.
inline void reduce_host(const ReduceShape& shape, const void* from, void* to, double scale,
                        ReducePart part, std::size_t total_bytes, Index widest) {
  HostReduce work = divide_reduce(shape, from, to, scale, widest);
  const OffsetBox &kept = shape.kept, &reduced = shape.reduced;
  const Index threads = host_threads();
  const Index items =
      work.strips ? kept.size / kept.extent[kept.rank - 1] * work.row_strips : kept.size;
  const ReduceBody body{work, part};
  if (work.chunks == 1 || threads == 1 || items >= 4 * threads) {
    const Index item = saturating_mul(work.width, reduced.size);
    return launch_host("tessera::reduce", items, max_of(1, 32768 / max_of(1, item)), &body,
                       &run_erased<ReduceBody>);
  }
  const auto totals = std::make_unique<std::byte[]>(
      static_cast<std::size_t>(kept.size * work.chunks) * total_bytes);
  work.partial = totals.get();
  launch_host("tessera::reduce", items * work.chunks, 1, &body, &run_erased<ReduceBody>);
  work.joining = true;
  part(work, 0, kept.size);
}

}  // namespace tessera::detail
