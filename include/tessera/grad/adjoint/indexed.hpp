// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The adjoints of operators at indices: what was taken is added where it came from, what was added
/// is taken again.
///
///     // y = take "vm,bs->bsm" of table, tokens: the table's gradient is the scatter of dy, summed
///
/// Laws: indices have no gradient.
#include <tessera/grad/adjoint/parts.hpp>
#include <tessera/plan/op/scatter.hpp>
#include <tessera/plan/op/take.hpp>

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
  build.set(0, build.add(back, values));
}

inline void adjoint_of(const ops::Scatter& op, AdjointBuilder& build) {
  if (op.reduction != Reduction::sum)
    return build.miss(
        "a scatter by another reduction than the sum has no gradient yet; use scatter<Sum>");
  const bool table = has_operand(op.terms);
  const int count = op.terms.operands.size();
  // Operands in the order of the call: in place the table is the last, else the first.
  const auto at = [&](int term) { return !op.in_place ? term : term == 0 ? count - 1 : term - 1; };
  const int updates = at(count - 1);
  if (table && build.wants(at(0))) build.set(at(0), build.cotangent());
  if (!build.wants(updates)) return;
  const TensorDesc to = build.gradient_of(updates);
  ops::Take back;
  FixedVector<AdjointValue, max_operands> values{build.cotangent()};
  back.terms.operands.push_back(op.terms.result);
  for (int k = table ? 1 : 0; k + 1 < count; ++k) {
    back.terms.operands.push_back(op.terms.operands[k]);
    values.push_back(build.operand(at(k)));
  }
  back.terms.result = op.terms.operands.back();
  const Term windows = indices_of_take(back.terms).windows();
  for (char letter : windows) back.windows.push_back(to.extents[back.terms.result.find(letter)]);
  back.out_of_range = op.out_of_range;
  back.out = to.sharding;
  build.set(updates, build.add(back, values));
}

}  // namespace tessera::detail
