// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The planner of reductions over dimensions: reduce the local block, then combine the partial
/// results over the axes that split the reduced dimensions.
///
///     Plan p = plan_reduce(parse("bsv->bs"), Reduction::max, x, out, mesh, process);
///
/// Laws: no communication when no reduced dimension is split; a scattered result costs a
/// reduce-scatter, no more.
#include <tessera/plan/builder.hpp>

namespace tessera {

/// Returns the sharding of a local reduction's result: the kept dimensions as they are, partial
/// over the axes of the others.
constexpr Sharding partial_after(const Terms& terms, const TensorDesc& x, Reduction reduction) {
  Sharding s;
  AxisSet open = x.sharding.partial;
  for (char label : terms.result) s.dims.push_back(x.sharding[terms.operands[0].find(label)]);
  for (int d = 0; d < x.rank(); ++d)
    if (!terms.result.contains(terms.operands[0][d])) open = open | x.sharding[d].set();
  return s.with_partial(open, reduction);
}

/// Plans the reduction of x (terms.operands[0]) to terms.result. `out` may leave open axes that
/// split what is reduced.
constexpr Plan plan_reduce(const Terms& terms, Reduction reduction, const TensorDesc& x,
                           const Sharding& out, const MeshShape& mesh, int process = 0,
                           const PlanOptions& options = {}) {
  PlanBuilder build(OperatorKind::reduce, mesh, process, options);
  build.plan().reduction = reduction;
  int slot = build.operand(x, terms.operands[0]);

  if (terms.result.size() < terms.operands[0].size()) {
    Term kept;  // in the operand's order; a permutation follows if the result wants another
    TensorDesc result{x.type, {}, {}};
    for (int d = 0; d < x.rank(); ++d)
      if (terms.result.contains(terms.operands[0][d])) {
        kept.push_back(terms.operands[0][d]);
        result.extents.push_back(x.extents[d]);
      }
    Terms local = terms;
    local.result = kept;
    result.sharding = partial_after(local, build.desc(slot), reduction);
    const Index flops = block(x.extents, build.desc(slot).sharding, mesh, build.at()).size();
    const Index at_origin =
        block(x.extents, build.desc(slot).sharding, mesh, Coordinates(mesh.rank(), 0)).size();
    slot =
        build.compute(StepKind::reduce, FixedVector<int, 1>{slot}, result, kept, flops, at_origin);
  }
  slot = build.permute(slot, terms.result);
  return build.finish(build.reshard(slot, out), out);
}

/// Plans a reordering of dimensions, which is local, and a resharding where `out` asks for one.
constexpr Plan plan_transpose(const Terms& terms, const TensorDesc& x, const Sharding& out,
                              const MeshShape& mesh, int process = 0,
                              const PlanOptions& options = {}) {
  PlanBuilder build(OperatorKind::transpose, mesh, process, options);
  int slot = build.operand(x, terms.operands[0]);
  slot = build.permute(slot, terms.result);
  return build.finish(build.reshard(slot, out), out);
}

}  // namespace tessera
