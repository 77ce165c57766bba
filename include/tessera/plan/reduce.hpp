// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The planner of reductions over dimensions: reduce the local block, then combine the partial
/// results over the axes that split the reduced dimensions.
///
///     Plan p = detail::plan_reduce(parse("bsv->bs"), Reduction::max, x, out, mesh, process);
///
/// Laws: no communication when no reduced dimension is split; a scattered result costs only a
/// reduce-scatter. Sums of half types are sent in float and rounded once, when the last part is
/// added; sums left open are rounded on each process.
#include <tessera/plan/builder.hpp>

namespace tessera::detail {

/// Plans the reduction of x (terms.operands[0]) to terms.result, with elements of `type`. `out` may
/// leave open the axes that split the reduced dimensions.
constexpr Plan plan_reduce_as(DType type, const Terms& terms, Reduction reduction,
                              const TensorDesc& x, const Sharding& out, const MeshShape& mesh,
                              int process = 0, const PlanOptions& options = {}) {
  PlanBuilder build(OperatorKind::reduce, mesh, process, options);
  build.plan().reduction = reduction;
  int slot = build.operand(x, terms.operands[0]);
  slot = build.diagonal(slot);
  const auto keep = [&](char label) { return terms.result.contains(label); };
  AxisSet sent = x.sharding.partial;  // the axes over which parts are added
  for (int d = 0; d < x.rank(); ++d)
    if (!keep(terms.operands[0][d])) sent = sent | x.sharding[d].set();
  sent = sent - out.partial - mesh.unit_axes();
  slot =
      build.reduce(slot, reduction, keep, sent.empty() ? type : options.parts_of(reduction, type));
  slot = build.permute(slot, terms.result);
  return build.finish(build.reshard(slot, out, type), out);
}

/// The same with reduce's default element type (reduced_type).
constexpr Plan plan_reduce(const Terms& terms, Reduction reduction, const TensorDesc& x,
                           const Sharding& out, const MeshShape& mesh, int process = 0,
                           const PlanOptions& options = {}) {
  return plan_reduce_as(reduced_type(reduction, x.type), terms, reduction, x, out, mesh, process,
                        options);
}

/// Plans a reordering of dimensions, which is local, and a resharding where `out` requires one.
constexpr Plan plan_transpose(const Terms& terms, const TensorDesc& x, const Sharding& out,
                              const MeshShape& mesh, int process = 0,
                              const PlanOptions& options = {}) {
  PlanBuilder build(OperatorKind::transpose, mesh, process, options);
  int slot = build.operand(x, terms.operands[0]);
  slot = build.permute(slot, terms.result);
  return build.finish(build.reshard(slot, out), out);
}
}  // namespace tessera::detail
