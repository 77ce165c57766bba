// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The einsum planner: it chooses the dimension that each mesh axis splits during the local
/// product. Gathers before the product and reductions after it follow from this choice.
///
///     Plan p = plan_einsum(parse("bsm,mh->bsh"), x, w, out, mesh, process);
///
/// plan/factor_search.hpp assigns the axes: an axis that splits a letter without a place in the
/// result leaves the result unfinished.
///
/// Laws: no communication when the shardings fit; where the result is split over the summed axes,
/// the sum is a reduce-scatter.
#include <tessera/plan/deduce.hpp>
#include <tessera/plan/factor_search.hpp>
#include <tessera/plan/map.hpp>
#include <tessera/plan/panel_choice.hpp>

namespace tessera {

/// Elementwise work on a product before it is delivered: f(product, extras...) -> elements of
/// `type`. The extras' dimensions line up with the result's from the right.
struct Epilogue {
  bool present = false;
  TensorDescs extras;
  DType type = DType::f32;
};

/// Returns the terms of a product, then the terms of its epilogue's extras. An extra with more
/// dimensions than the result gets only the result's letters, which a verdict refuses.
constexpr Terms with_extras(const Terms& terms, const TensorDescs& extras) {
  Terms all = terms;
  for (const TensorDesc& extra : extras) {
    Term term;
    const int missing = terms.result.size() - extra.rank();
    for (int d = missing > 0 ? missing : 0; d < terms.result.size(); ++d)
      term.push_back(terms.result[d]);
    all.operands.push_back(term);
  }
  return all;
}

namespace detail {
/// A local product for plan/factor_search.hpp: two operations for each combination of the letters;
/// panels save a copy.
struct ProductWork {
  const FactorRule& rule;  ///< the operands and the result
  const Term (&labels)[3];
  const Contraction& roles;
  const MeshShape& mesh;
  const Machine& machine;

  constexpr std::int64_t price(const FactorRule&, const FactorSplit&, const FactorParts& parts,
                               const Machine&) const {
    return machine.compute(saturating_mul(2, parts.all()), rule.tensors[2].desc.type);
  }
  constexpr std::int64_t saved(int t, const Moves& moves, const Sharding& s) const {
    const Move& move = t == 2 ? moves.list[0] : moves.list.back();
    if (move.panel_dim < 0 ||
        move.collective != (t == 2 ? Collective::reduce_scatter : Collective::all_gather))
      return 0;
    const Term& stored = t == 0 ? roles.a : t == 1 ? roles.b : roles.c;
    const TensorDesc& desc = rule.tensors[t].desc;
    const Coordinates origin(mesh.rank(), 0);
    const Index n = block(desc.extents[move.panel_dim], s[move.panel_dim], mesh, origin).size();
    if (!takes_panels(roles, labels[t], stored, move.panel_dim, n, mesh.group_size(move.group)))
      return 0;
    return machine.copy(saturating_mul(block_volume(desc.extents, s, mesh, origin),
                                       static_cast<Index>(size_of(desc.type))));
  }
};
}  // namespace detail

/// Plans a * b -> result. a is (terms.operands[0]), b is (terms.operands[1]); `out` may leave
/// contracted axes open. The extras of an epilogue are operands too; it acts on the finished
/// product, in place. Preconditions: check_einsum (and check_epilogue) found nothing wrong.
constexpr Plan plan_einsum(const Terms& terms, const TensorDesc& a, const TensorDesc& b,
                           const Sharding& out, const MeshShape& mesh, int process = 0,
                           const PlanOptions& options = {}, const Epilogue& epilogue = {}) {
  PlanBuilder build(OperatorKind::einsum, mesh, process, options);
  build.plan().reduction = Reduction::sum;
  int left = build.operand(a, terms.operands[0]);
  int right = build.operand(b, terms.operands[1]);
  const Terms last = with_extras(Terms{{terms.result}, terms.result}, epilogue.extras);
  FixedVector<int, max_operands> inputs{-1};
  for (int i = 0; i < epilogue.extras.size(); ++i)
    inputs.push_back(build.operand(epilogue.extras[i], last.operands[i + 1]));
  const auto shared_with = [&terms](int other) {  // a label in one operand alone is summed away
    return [&terms, other](char label) {
      return terms.operands[other].contains(label) || terms.result.contains(label);
    };
  };
  left = build.diagonal(left);
  right = build.diagonal(right);
  left = build.reduce(left, Reduction::sum, shared_with(1));
  right = build.reduce(right, Reduction::sum, shared_with(0));

  TensorDesc result{a.type, {}, out};
  for (char label : terms.result) {
    const int in_a = terms.operands[0].find(label);
    result.extents.push_back(in_a >= 0 ? a.extents[in_a]
                                       : b.extents[terms.operands[1].find(label)]);
  }
  const Term labels[3] = {build.labels(left), build.labels(right), terms.result};
  FactorRule rule;
  rule.passes_one = true;
  rule.add(build.desc(left), labels[0]);
  rule.add(build.desc(right), labels[1]);
  rule.mark(letters_without(labels[0], terms.result), Splitting::opens);
  rule.add(result, terms.result, true);
  const Contraction roles = contraction(labels[0], labels[1], terms.result);
  const Factors choice = search_factors(
      rule, detail::ProductWork{rule, labels, roles, mesh, options.machine}, mesh, options);
  const Sharding &as_a = choice.shardings[0], &as_b = choice.shardings[1],
                 &as_c = choice.shardings[2];
  detail::PanelChoice panels(build, roles);
  panels.leave_out(build.has_gaps(left) || build.has_gaps(right));
  left = build.reshard(left, as_a);
  panels.consider(left, build.last_step(), Collective::all_gather, build.labels(left), roles.a);
  right = build.reshard(right, as_b);
  panels.consider(right, build.last_step(), Collective::all_gather, build.labels(right), roles.b);
  left = build.permute(left, roles.a);
  right = build.permute(right, roles.b);

  TensorDesc product{a.type, {}, {}};
  for (char label : roles.c) {
    const int d = terms.result.find(label);
    product.extents.push_back(result.extents[d]);
    product.sharding.dims.push_back(as_c[d]);
  }
  product.sharding = product.sharding.with_partial(as_c.partial, Reduction::sum);
  int slot = build.compute(StepKind::contract, FixedVector<int, 2>{left, right}, product, roles.c);
  const int product_slot = slot;
  const int next = build.last_step() + 1;
  slot = build.reshard(build.permute(slot, terms.result), out);
  if (next <= build.last_step())
    panels.consider(product_slot, next, Collective::reduce_scatter, terms.result, roles.c);
  if (epilogue.present) {
    inputs[0] = slot;
    slot = add_map(build, inputs, last, {epilogue.type, result.extents, out});
  }
  return build.finish(slot, out);
}

}  // namespace tessera
