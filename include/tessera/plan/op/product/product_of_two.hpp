// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The planner of the product of two tensors: it chooses the dimension that each mesh axis splits
/// during the local product. Gathers before the product and reductions after it follow from this
/// choice.
///
///     Plan p = detail::plan_einsum(parse("bsm,mh->bsh"), x, w, out, mesh, process);
///
/// plan/search/factor_search.hpp assigns the axes: an axis that splits a letter without a place in
/// the result leaves the result unfinished.
///
/// Laws: no communication when the shardings fit; where the result is split over the summed axes,
/// the sum is a reduce-scatter. With half types all parts of the sum are floats, which are rounded
/// when the last one is in.
#include <tessera/plan/op/product/looped_product.hpp>

namespace tessera::detail {

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

/// Sums an operand over the letters that it alone has, in the type of parts: they are parts of the
/// product's sum.
template <class Keep> constexpr int summed_alone(PlanBuilder& build, int slot, const Keep& keep) {
  bool all = true;
  for (const char label : build.labels(slot)) all = all && keep(label);
  if (all) return slot;
  const DType type = build.desc(slot).type;
  return build.reduce(slot, Reduction::sum, keep, build.options().parts_of(Reduction::sum, type));
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
  FixedVector<int, max_operands + 2> inputs{left, right};
  for (int i = 0; i < epilogue.extras.size(); ++i)
    inputs.push_back(build.operand(epilogue.extras[i], last.operands[i + 1]));
  const auto shared_with = [&terms](int other) {  // a label in one operand alone is summed away
    return [&terms, other](char label) {
      return terms.operands[other].contains(label) || terms.result.contains(label);
    };
  };
  left = build.diagonal(left);
  right = build.diagonal(right);
  left = summed_alone(build, left, shared_with(1));
  right = summed_alone(build, right, shared_with(0));

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
  Term units;
  for (int t = 0; t < 2 && options.stored == nullptr; ++t)
    for (int d = 0; d < labels[t].size(); ++d)
      if (rule.tensors[t].desc.extents[d] == 1 && units.size() < max_dims &&
          !units.contains(labels[t][d]))
        units.push_back(labels[t][d]);
  const Contraction roles = contraction(labels[0], labels[1], terms.result, units);
  const detail::ProductWork work{rule, labels, roles, mesh, options.machine};
  const detail::ProductMaker maker{terms.result, result, roles, last, epilogue};
  inputs[0] = left;
  inputs[1] = right;
  const Splits splits = search_splits(rule, work, mesh, options);
  if (splits.size() > 1 || detail::may_loop(options))
    return detail::ProductChoice(build, inputs, rule, work, maker, options).best(splits);
  return build.finish(maker.make(build, inputs, splits[0], {}), out);
}
}  // namespace tessera::detail
