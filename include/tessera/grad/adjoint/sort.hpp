// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The adjoint of a sort, and of the first elements of each line: what came from a position goes
/// back to it.
///
///     // s = sort "bv" along v of x: dx is the scatter of ds at the positions
///
/// Laws: a call that returns no positions sorts once more on the way back, and keeps its keys
/// alone.
#include <tessera/grad/adjoint/scatter.hpp>
#include <tessera/plan/op/rows/sort.hpp>

namespace tessera::detail {

inline void adjoint_of(const ops::Sort& op, AdjointBuilder& build) {
  const TensorDescs &x = build.call().operands, &made = build.call().results;
  AdjointValue positions;
  if (op.task.positions) {
    positions = build.result(made.size() - 1);
  } else {
    ops::Sort again = op;
    again.terms.operands.resize(1);
    again.task.keys = false;
    again.task.positions = true;
    positions = build.add(again, {build.operand(0)});
  }
  const int first = op.task.keys ? 0 : 1;  // of the operands whose elements are results
  for (int i = first; i < x.size(); ++i)
    if (build.wants(i))
      build.set(i, scattered_along(build, build.cotangent(i - first), positions,
                                   op.terms.result.find(op.along), build.gradient_of(i)));
}

inline const bool sort_has_adjoint = have_adjoints<ops::Sort>();

}  // namespace tessera::detail
