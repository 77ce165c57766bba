// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The adjoint of a take: what was taken is added where it came from.
///
///     // y = take "vm,bs->bsm" of table, tokens: the table's gradient is the scatter of dy, summed
///
/// Laws: indices have no gradient.
#include <tessera/grad/adjoint/parts.hpp>
#include <tessera/plan/op/indexed/scatter.hpp>
#include <tessera/plan/op/indexed/take.hpp>

namespace tessera::detail {

inline void adjoint_of(const ops::Take& op, AdjointBuilder& build) {
  if (!build.wants(0)) return;
  const TensorDesc to = build.gradient_of(0);
  ops::Scatter back;
  FixedVector<AdjointValue, max_operands> values;
  for (int k = 1; k < op.terms.operands.size(); ++k) {
    back.terms.operands.push_back(op.terms.operands[k]);
    values.push_back(build.operand(k));
  }
  back.terms.operands.push_back(op.terms.result);
  values.push_back(build.cotangent());
  back.terms.result = op.terms.operands[0];
  for (char letter : indexed_letters(back.terms))
    back.indexed.push_back(to.extents[back.terms.result.find(letter)]);
  back.out_of_range = op.out_of_range;
  back.out = to.sharding;
  build.set(0, build.add_open(0, back, values));
}

inline const bool take_has_adjoint = have_adjoints<ops::Take>();

}  // namespace tessera::detail
