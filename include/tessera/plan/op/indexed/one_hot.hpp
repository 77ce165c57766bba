// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that writes one at the index, along a new dimension, and zero elsewhere.
///
///     ops::OneHot{detail::same_terms("bsv"), 'v', DType::f32, 1000, out}
#include <tessera/plan/check/row_verdict.hpp>
#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/step/indexed.hpp>

namespace tessera::detail {
/// Plans a tensor with `one` at the indices (of dimensions `labels` without `along`), along a new
/// dimension.
constexpr Plan plan_one_hot(const Term& labels, char along, DType type, const TensorDesc& indices,
                            Index extent, const Sharding& out, const MeshShape& mesh,
                            int process = 0, const PlanOptions& options = {}) {
  PlanBuilder build(OperatorKind::one_hot, mesh, process, options);
  TensorDesc result{type, {}, out};
  Sharding aligned = Sharding::replicated(indices.rank());
  const Term of_indices = letters_without(labels, Term{along});
  for (int d = 0; d < labels.size(); ++d) {
    const int at = of_indices.find(labels[d]);
    result.extents.push_back(at < 0 ? extent : indices.extents[at]);
    if (at >= 0) aligned[at] = out[d];
  }
  const int operand = build.reshard(build.operand(indices, of_indices), aligned);
  const int slot = build.compute(step::OneHot{}, FixedVector<int, 1>{operand}, result, labels);
  return build.finish(slot, out);
}
}  // namespace tessera::detail

namespace tessera::ops {

struct OneHot {
  Terms terms = {};         ///< the letters of the result, of which the indices lack `along`
  char along = 0;           ///< the letter of the new dimension
  DType type = DType::f32;  ///< of the result
  Index extent = 0;         ///< of the new dimension
  Sharding out = {};

  constexpr OperatorKind kind() const { return OperatorKind::one_hot; }
  constexpr Verdict check(const TensorDescs& x) const {
    if (!terms.well_formed) return {Rule::equation_readable};
    if (!terms.result.contains(along)) return {Rule::along_known, 1, along};
    Terms known = terms;
    known.operands = {detail::letters_without(terms.result, Term{along}), Term{along}};
    const Sharding& s = x[0].sharding;
    if (const Verdict v = detail::check_terms(known, {s, Sharding::replicated(1)}, out); !v.ok())
      return v;
    if (!s.partial.empty()) return {Rule::finished, 0};
    if (!out.partial.empty()) return {Rule::finished, 1};
    if (const Verdict v = detail::check_index_type(x[0].type, 0); !v.ok()) return v;
    if (extent < 0) return {.rule = Rule::extent_not_negative, .left = extent};
    return {};
  }
  /// Returns the default sharding of the result: the indices' sharding, with the new dimension
  /// whole.
  constexpr Sharding deduced(const TensorDescs& x) const {
    Sharding s = Sharding::replicated(terms.result.size());
    for (int d = 0, at = 0; d < s.rank() && at < x[0].rank(); ++d)
      if (terms.result[d] != along) s[d] = x[0].sharding[at++];
    return s;
  }
  constexpr TensorDescs results(const TensorDescs& x) const {
    Extents extents;
    int at = 0;
    for (const char letter : terms.result)
      extents.push_back(letter == along ? extent : x[0].extents[at++]);
    return {{type, extents, out}};
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_one_hot(terms.result, along, type, x[0], extent, out, on.mesh, on.process,
                                on.options);
  }
  constexpr detail::StandIn<OneHot> stand_in(const TensorDescs& x) const {
    return {{terms, along, type, 5040, out}, detail::stand_ins(x)};
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("along", along);
    visit("type", type);
    visit("extent", extent);
    visit("to", out);
  }
  constexpr bool operator==(const OneHot&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(OneHot)
