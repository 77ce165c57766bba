// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The planner of softmax and its logarithm along one dimension. A line that is whole on each
/// process is one step. Of a split line each process finds the largest element and the sum of the
/// exponentials, which are joined over the axes that split it, before the step.
///
///     Plan p = detail::plan_softmax({'b', 'v'}, 1, false, x, out, mesh, process);
///
/// Laws: no communication when the dimension is not split, else two all-reduces of an element for
/// each line; no temporary of x's size.
#include <tessera/plan/builder.hpp>

namespace tessera::detail {

/// Plans the softmax of x along dimension `along`, or its logarithm. The sums of half types are
/// floats.
constexpr Plan plan_softmax(const Term& labels, int along, bool logarithm, const TensorDesc& x,
                            const Sharding& out, const MeshShape& mesh, int process = 0,
                            const PlanOptions& options = {}) {
  PlanBuilder build(OperatorKind::softmax, mesh, process, options);
  build.plan().reduction = Reduction::max;
  const int operand = build.operand(x, labels);
  FixedVector<int, 3> inputs{operand};
  if (mesh.parts(x.sharding[along]) > 1) {
    const int local = build.reduce(
        operand, Reduction::max, [&](char label) { return label != labels[along]; }, x.type);
    const TensorDesc open = build.desc(local);
    const Sharding finished = open.sharding.finished();
    inputs.push_back(build.reshard(local, finished));
    const TensorDesc sums{facts_of(x.type).compute, open.extents,
                          finished.with_partial(open.sharding.partial, Reduction::sum)};
    const Term row = build.labels(local);
    inputs.push_back(
        build.reshard(build.compute(StepKind::exp_sum, inputs, sums, row, along), finished));
  }
  const int slot = build.compute(logarithm ? StepKind::log_softmax : StepKind::softmax, inputs, x,
                                 labels, along);
  return build.finish(build.reshard(slot, out), out);
}
}  // namespace tessera::detail
