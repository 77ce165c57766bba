// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Reductions on a device: `lanes` threads for each output, each taking every lanes-th element so
/// that neighbouring threads read neighbouring elements; then the lanes are reduced in turn. The
/// shape alone gives the number of lanes, so the order is fixed.
///
///     reduce_device<Reduction::sum, double, float>(reduce_shape(work), from, to, 1.0);
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/detail/reduce_shape.hpp>
#include <tessera/kernel/scratch.hpp>

namespace tessera::detail {

template <Reduction R, class Total, class In, class Out> struct ReduceLanes {
  ReduceShape shape;
  Index lanes;
  const In* from;
  Out* to;
  double scale;
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      const In* p = from + shape.kept.offset(i / lanes);
      Total total = Fold<R, Total>::start();
      for (Index e = i % lanes; e < shape.reduced.size; e += lanes)
        total = Fold<R, Total>::join(total, static_cast<Total>(p[shape.reduced.offset(e)]));
      to[i] = scaled<Out>(total, scale);
    }
  }
};

template <Reduction R, class Total, class In, class Out>
void reduce_device(const ReduceShape& shape, const In* from, Out* to, double scale) {
  const Index outputs = shape.kept.size, length = shape.reduced.size;
  const bool unit_line =
      shape.reduced.rank > 0 && shape.reduced.stride[shape.reduced.rank - 1] == 1;
  const Index wanted = max_of(unit_line ? 32 : 1, (Index{1} << 18) / max_of(1, outputs));
  const Index lanes = length < 64 ? 1 : min_of(wanted, length / 16);
  if (lanes <= 1) {
    launch("tessera::reduce", outputs, 1,
           ReduceLanes<R, Total, In, Out>{shape, 1, from, to, scale});
    return;
  }
  const Scratch<Total> partial(outputs * lanes);
  launch("tessera::reduce", outputs * lanes, 1,
         ReduceLanes<R, Total, In, Total>{shape, lanes, from, partial.data(), 1.0});
  const ReduceShape next{{1, outputs, {outputs}, {lanes}}, {1, lanes, {lanes}, {1}}};
  reduce_device<R, Total, Total, Out>(next, partial.data(), to, scale);
}

}  // namespace tessera::detail
