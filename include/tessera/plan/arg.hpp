// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The planner of arg-max and arg-min: find each row's extreme value as a reduction does, then the
/// least index at which some process has it; both in one step where each process has whole rows.
///
///     Plan p = detail::plan_arg(parse("bsv->bs"), Reduction::max, x, out, mesh, process);
///
/// Laws: no communication when no reduced dimension is split, else two collectives of a row's size
/// (values, indices); no temporary of x's size; equal values give the smallest index.
#include <tessera/plan/builder.hpp>

namespace tessera::detail {

/// Plans the position of x's largest (or least) element: 64-bit indices into the reduced
/// dimensions, which are counted row-major in the order of x. A partial `out` (Min) leaves the
/// indices open.
constexpr Plan plan_arg(const Terms& terms, Reduction reduction, const TensorDesc& x,
                        const Sharding& out, const MeshShape& mesh, int process = 0,
                        const PlanOptions& options = {}) {
  PlanBuilder build(OperatorKind::arg, mesh, process, options);
  build.plan().reduction = reduction;
  const int operand = build.operand(x, terms.operands[0]);
  const auto keep = [&](char label) { return terms.result.contains(label); };
  Term kept;
  TensorDesc found{DType::i64, {}, {}};
  AxisSet open = x.sharding.partial;
  for (int d = 0; d < x.rank(); ++d) {
    const char label = build.labels(operand)[d];
    if (!keep(label)) {
      open = open | x.sharding[d].set();
      continue;
    }
    kept.push_back(label);
    found.extents.push_back(x.extents[d]);
    found.sharding.dims.push_back(x.sharding[d]);
  }
  FixedVector<int, 2> in{operand};
  if (!open.empty()) {
    const int local = build.reduce(operand, reduction, keep);
    in.push_back(build.reshard(local, found.sharding));
    found.sharding = found.sharding.with_partial(open, Reduction::min);
  }
  int slot = build.compute(StepKind::find, in, found, kept);
  slot = build.permute(slot, terms.result);
  return build.finish(build.reshard(slot, out), out);
}
}  // namespace tessera::detail
