// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The einsum planner: which dimension each mesh axis splits while the local product runs, and so
/// what is gathered before it and reduced after it.
///
///     Plan p = plan_einsum(parse("bsm,mh->bsh"), x, w, out, mesh, process);
///
/// The assignment of axes is plan/einsum_search.hpp's.
///
/// Laws: no communication when the shardings fit; a sum that the result wants scattered is a
/// reduce-scatter.
#include <tessera/plan/deduce.hpp>
#include <tessera/plan/einsum_search.hpp>
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

/// Returns the terms of a product followed by those of the extras of its epilogue; an extra of more
/// dimensions than the result gets the result's letters alone, which a verdict refuses.
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
  const auto search = [&](bool leave_out_units) {
    return detail::EinsumSearch(build.labels(left), build.desc(left), build.labels(right),
                                build.desc(right), terms.result, result, mesh, options,
                                leave_out_units)
        .best();
  };
  auto choice = search(true);
  if (options.contract.bounded() && breaches(choice.cost) > 0 && !mesh.unit_axes().empty())
    if (const auto other = search(false); breaches(other.cost) < breaches(choice.cost))
      choice = other;  // what the contract allows may be the moves of meshes without axes of size 1
  const Contraction roles = contraction(build.labels(left), build.labels(right), terms.result);
  detail::PanelChoice panels(build, roles);
  panels.leave_out(build.has_gaps(left) || build.has_gaps(right));
  left = build.reshard(left, choice.a);
  panels.consider(left, build.last_step(), Collective::all_gather, build.labels(left), roles.a);
  right = build.reshard(right, choice.b);
  panels.consider(right, build.last_step(), Collective::all_gather, build.labels(right), roles.b);
  left = build.permute(left, roles.a);
  right = build.permute(right, roles.b);

  TensorDesc product{a.type, {}, {}};
  for (char label : roles.c) {
    const int d = terms.result.find(label);
    product.extents.push_back(result.extents[d]);
    product.sharding.dims.push_back(choice.c[d]);
  }
  product.sharding = product.sharding.with_partial(choice.c.partial, Reduction::sum);
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
