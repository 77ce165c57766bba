// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Reductions on a device. Rows that lie side by side in memory are reduced by a team each, long
/// ones that are few in pieces. Others are reduced by `lanes` threads for each output, whose
/// partial results are then reduced in turn; neighbouring threads read neighbouring elements.
///
///     reduce_device<Reduction::sum, double, float>(reduce_shape(work), from, to, 1.0);
///
/// Laws: the shape alone gives the pieces and the lanes, so the order is fixed.
#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/detail/reduce_shape.hpp>
#include <tessera/kernel/device/packs.hpp>
#include <tessera/kernel/device/row_teams.hpp>
#include <tessera/kernel/scratch.hpp>

namespace tessera::detail {

/// A piece of each output's row, whose elements follow each other.
template <Reduction R, class Total, class In, class Out> struct ReduceRow {
  struct Found {
    Total total;
  };
  static constexpr int phases = 1;
  OffsetBox kept;
  Index length, parts, each;  // elements of a row; its pieces, and the elements of one
  const In* from;
  Out* to;
  double scale;

  template <int>
  KOKKOS_FUNCTION Found find(Index piece, Index lane, Index lanes, const Found&) const {
    const In* const row = from + kept.offset(piece / parts);
    const Index first = piece % parts * each, end = min_of(length, first + each);
    Found found{Fold<R, Total>::start()};
    if constexpr (R == Reduction::sum && !std::is_integral_v<Total>)
      found.total = long_sum_of_lane<Total>(row + first, end - first, lane, lanes,
                                            [](In x) { return static_cast<ComputeType<In>>(x); });
    else
      each_of_lane(row + first, end - first, lane, lanes, [&](In x, Index) {
        found.total = Fold<R, Total>::join(found.total, static_cast<Total>(x));
      });
    return found;
  }
  template <int> KOKKOS_FUNCTION static Found join(const Found& a, const Found& b) {
    return {Fold<R, Total>::join(a.total, b.total)};
  }
  KOKKOS_FUNCTION void finish(Index piece, Index lane, Index, const Found& found) const {
    if (lane == 0) to[piece] = scaled<Out>(found.total, scale);
  }
};

/// How many threads of a device have work when it is full.
inline constexpr Index device_threads = Index{1} << 18;

/// Returns into how many pieces each of `rows` rows of n elements is cut, so that teams are enough.
inline Index row_parts(Index rows, Index n) {
  return rows >= 1024 ? 1 : max_of(1, min_of(ceil_div(2048, max_of(1, rows)), n / 4096));
}

template <Reduction R, class Total, class In, class Out>
void reduce_rows(const OffsetBox& kept, Index length, const In* from, Out* to, double scale) {
  const Index parts = row_parts(kept.size, length);
  if (parts == 1)
    return launch_rows<In>("tessera::reduce", kept.size, length,
                           ReduceRow<R, Total, In, Out>{kept, length, 1, length, from, to, scale});
  const Index each = ceil_div(length, parts);
  const Scratch<Total> partial(kept.size * parts);
  launch_rows<In>(
      "tessera::reduce", kept.size * parts, each,
      ReduceRow<R, Total, In, Total>{kept, length, parts, each, from, partial.data(), 1.0});
  launch_rows<Total>(
      "tessera::reduce", kept.size, parts,
      ReduceRow<R, Total, Total, Out>{
          {1, kept.size, {kept.size}, {parts}}, parts, 1, parts, partial.data(), to, scale});
}

/// An index is an output and one of its lanes; `apart`: a lane's outputs follow each other, else an
/// output's lanes.
template <Reduction R, class Total, class In, class Out> struct ReduceLanes {
  ReduceShape shape;
  Index lanes;
  bool apart;
  const In* from;
  Out* to;
  double scale;
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      const Index output = apart ? i % shape.kept.size : i / lanes;
      const In* p = from + shape.kept.offset(output);
      Total total = Fold<R, Total>::start();
      Index e = apart ? i / shape.kept.size : i % lanes;
      if (shape.reduced.rank == 1) {
        constexpr int some = 8;  // reads at once
        const Index step = lanes * shape.reduced.stride[0];
        const In* x = p + e * shape.reduced.stride[0];
        for (; e + (some - 1) * lanes < shape.reduced.size; e += some * lanes, x += some * step) {
          In read[some];
          for (int k = 0; k < some; ++k) read[k] = x[k * step];
          for (int k = 0; k < some; ++k)
            total = Fold<R, Total>::join(total, static_cast<Total>(read[k]));
        }
      }
      for (; e < shape.reduced.size; e += lanes)
        total = Fold<R, Total>::join(total, static_cast<Total>(p[shape.reduced.offset(e)]));
      to[i] = scaled<Out>(total, scale);
    }
  }
};

template <Reduction R, class Total, class In, class Out>
void reduce_device(const ReduceShape& shape, const In* from, Out* to, double scale) {
  const OffsetBox& reduced = shape.reduced;
  const Index outputs = shape.kept.size, length = reduced.size;
  const bool unit_line = reduced.rank > 0 && reduced.stride[reduced.rank - 1] == 1;
  if (unit_line && reduced.rank == 1)
    return reduce_rows<R, Total>(shape.kept, length, from, to, scale);
  const Index wanted = max_of(unit_line ? 32 : 1, device_threads / max_of(1, outputs));
  const Index lanes = length < 64 ? 1 : min_of(wanted, length / 16);
  if (lanes <= 1) {
    launch("tessera::reduce", outputs, 1,
           ReduceLanes<R, Total, In, Out>{shape, 1, true, from, to, scale});
    return;
  }
  const Scratch<Total> partial(outputs * lanes);
  launch("tessera::reduce", outputs * lanes, 1,
         ReduceLanes<R, Total, In, Total>{shape, lanes, !unit_line, from, partial.data(), 1.0});
  const ReduceShape next =
      unit_line ? ReduceShape{{1, outputs, {outputs}, {lanes}}, {1, lanes, {lanes}, {1}}}
                : ReduceShape{{1, outputs, {outputs}, {1}}, {1, lanes, {lanes}, {outputs}}};
  reduce_device<R, Total, Total, Out>(next, partial.data(), to, scale);
}

}  // namespace tessera::detail
