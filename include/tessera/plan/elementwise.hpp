// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Tensors that an elementwise step reads and makes: their letters, extents and shardings with
/// broadcasting. plan/op/elements/map.hpp plans the operator.
///
///     detail::broadcast_terms({3, 1}) == parse("abc,c->abc")
///     const int slot = detail::add_map(build, {x, bias}, terms, result);
///
/// Laws: no communication when the operands' shardings agree; a dimension of extent 1 that is
/// broadcast is replicated.
#include <tessera/plan/builder.hpp>
#include <tessera/plan/deduce.hpp>

namespace tessera::detail {

/// Returns terms that line dimensions up from the right, as NumPy does: "abc,bc,c->abc".
constexpr Terms broadcast_terms(const FixedVector<int, max_operands>& ranks) {
  Terms terms;
  int most = 0;
  for (int rank : ranks) most = rank > most ? rank : most;
  terms.result = default_labels(most);
  for (int rank : ranks) {
    Term term;
    for (int d = most - rank; d < most; ++d) term.push_back(terms.result[d]);
    terms.operands.push_back(term);
  }
  return terms;
}

/// Returns the extents of the result: for each label the extent of an operand that is not broadcast
/// along it.
constexpr Extents broadcast_extents(const Terms& terms, const TensorDescs& operands) {
  Extents extents(terms.result.size(), 1);
  for (int d = 0; d < terms.result.size(); ++d)
    for (int i = 0; i < operands.size(); ++i)
      if (const int at = terms.operands[i].find(terms.result[d]); at >= 0 && extents[d] == 1)
        extents[d] = operands[i].extents[at];
  return extents;
}

/// Returns the sharding that operand i needs for a result of sharding `out`.
constexpr Sharding aligned_sharding(const Term& labels, const TensorDesc& operand,
                                    const Terms& terms, const Extents& extents,
                                    const Sharding& out) {
  Sharding s = Sharding::replicated(labels.size());
  for (int d = 0; d < labels.size(); ++d) {
    const int at = terms.result.find(labels[d]);
    const bool stretched = operand.extents[d] == 1 && extents[at] != 1;
    if (!stretched) s[d] = out[at];
  }
  // Where one operand is open, as in a product, finished operands stay finished.
  return operand.sharding.partial.empty() ? s : s.with_partial(out.partial, out.reduction);
}

/// Adds f(slots...) -> a tensor `result` with the labels of terms.result to a plan: every slot is
/// brought to the result's sharding first. Returns the new slot.
constexpr int add_map(PlanBuilder& build, FixedVector<int, max_operands> slots, const Terms& terms,
                      const TensorDesc& result) {
  for (int i = 0; i < slots.size(); ++i)
    slots[i] = build.reshard(slots[i], aligned_sharding(terms.operands[i], build.desc(slots[i]),
                                                        terms, result.extents, result.sharding));
  return build.compute(step::Map{}, slots, result, terms.result);
}
}  // namespace tessera::detail
