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
  KeptRow row = build.kept_row(operand, terms.result, DType::i64);
  const AxisSet open = x.sharding.partial | row.split;
  FixedVector<int, 2> in{operand};
  if (!open.empty()) {
    const auto keep = [&](char label) { return terms.result.contains(label); };
    const int local = build.reduce(operand, reduction, keep, x.type);
    in.push_back(build.reshard(local, row.desc.sharding));
    row.desc.sharding = row.desc.sharding.with_partial(open, Reduction::min);
  }
  int slot = build.compute(StepKind::find, in, row.desc, row.labels);
  slot = build.permute(slot, terms.result);
  return build.finish(build.reshard(slot, out), out);
}
}  // namespace tessera::detail
