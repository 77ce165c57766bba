// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The planner of running sums, products, maxima and minima along one dimension, sharded or not,
/// and of running joins by any associative function: each process reduces its block along the
/// dimension, the totals are gathered over the axes that split it, and a scan of the block starts
/// from the join of the totals before it. (Blelloch, Prefix sums and their applications, 1990.)
///
///     Plan p = detail::plan_scan({'b', 'i', 'j'}, 2, Reduction::sum, {}, x, out, mesh, process);
///
/// Laws: no communication when the dimension is not split, else one all-gather of an element for
/// each row and part. Of half types all is done in float then, and rounded once.
#include <tessera/plan/builder.hpp>

namespace tessera::detail {

/// The label, in a slot, of a dimension that no operand has: the parts of a scanned dimension, the
/// limbs of an exact sum.
inline constexpr char parts_label = '#';

/// Plans, for each element along dimension `along` of x, the join of all elements up to it;
/// Reduction::none stands for a function. x may be partial by the same reduction; the result is
/// then partial where `out` is. Its elements are of `type`.
constexpr Plan plan_scan_as(DType type, const Term& labels, int along, Reduction reduction,
                            ScanOptions scan, const TensorDesc& x, const Sharding& out,
                            const MeshShape& mesh, int process = 0,
                            const PlanOptions& options = {}) {
  PlanBuilder build(OperatorKind::scan, mesh, process, options);
  build.plan().reduction = reduction;
  const Index parts = mesh.parts(x.sharding[along]);
  int operand = build.operand(x, labels);
  TensorDesc joined{type, x.extents, x.sharding};
  if (parts > 1 && x.type == type) {  // totals are parts
    joined.type = options.parts_of(reduction, type);
    operand = build.convert(operand, joined.type);
  }
  FixedVector<int, 2> inputs{operand};
  if (parts > 1) {
    TensorDesc totals =
        joined;  // one element for each part: the block law gives each process exactly its own
    totals.extents[along] = parts;
    Term parted = labels;
    parted[along] = parts_label;
    // A function need not commute: its totals are taken in order.
    const StepKind total = reduction == Reduction::none ? StepKind::fold : StepKind::reduce;
    const int own = build.compute(total, FixedVector<int, 1>{operand}, totals, parted, along);
    build.plan().steps.back().scan = scan;
    Sharding all = x.sharding;
    all[along] = {};
    inputs.push_back(build.reshard(own, all));
  }
  const int slot = build.compute(StepKind::scan, inputs, joined, labels, along);
  build.plan().steps.back().scan = scan;
  return build.finish(build.reshard(slot, out, type), out);
}
/// The same with the default element type of running joins (reduced_type).
constexpr Plan plan_scan(const Term& labels, int along, Reduction reduction, ScanOptions scan,
                         const TensorDesc& x, const Sharding& out, const MeshShape& mesh,
                         int process = 0, const PlanOptions& options = {}) {
  return plan_scan_as(reduced_type(reduction, x.type), labels, along, reduction, scan, x, out, mesh,
                      process, options);
}
}  // namespace tessera::detail
