// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The planner of sums with the same bits for any number of processes, mesh and spec. Elements are
/// added as integers, exactly: each is cut into limbs of a fixed-point number whose top lies above
/// the row's largest magnitude, which is found first. Adding the limbs in any order gives the same
/// integers. (The idea is from Demmel & Nguyen, Parallel Reproducible Summation, IEEE TC 2015, and
/// from fixed-point superaccumulators; the layout here is new.)
///
///     Plan p = detail::plan_deterministic_sum(parse("bsv->bs"), x, out, mesh, process);
#include <tessera/plan/builder.hpp>
#include <tessera/plan/step/bins.hpp>
#include <tessera/plan/work/bin_format.hpp>

namespace tessera::detail {

/// Plans the sum of x over the dimensions that terms.result drops. x is finished and floating (or
/// complex), `out` finished, and bin_format has limbs for it.
constexpr Plan plan_deterministic_sum(const Terms& terms, const TensorDesc& x, const Sharding& out,
                                      const MeshShape& mesh, int process = 0,
                                      const PlanOptions& options = {}) {
  PlanBuilder build(OperatorKind::reduce, mesh, process, options);
  build.plan().reduction = Reduction::sum;
  const int operand = build.operand(x, terms.operands[0]);
  const KeptRow row = build.kept_row(operand, terms.result, DType::i64);
  Sharding target;  // out's, with the kept dimensions in x's order
  for (char label : row.labels) target.dims.push_back(out[terms.result.find(label)]);
  const BinFormat format = bin_format(x.type, reduced_count(terms, x.extents));
  // Exponents and limbs lie along one more dimension.
  const auto cut = [&](int n, Reduction reduction) {
    TensorDesc desc = row.desc;
    desc.extents.push_back(n);
    desc.sharding.dims.push_back({});
    desc.sharding = desc.sharding.with_partial(row.split, reduction);
    return desc;
  };
  Term cut_labels = row.labels;
  cut_labels.push_back(parts_label);
  const TensorDesc top = cut(format.parts, Reduction::max);
  int exponent = build.compute(step::Exponent{}, FixedVector<int, 1>{operand}, top, cut_labels);
  exponent = build.reshard(exponent, top.sharding.finished());

  const TensorDesc limbs = cut(format.limbs * format.parts, Reduction::sum);
  int bins = build.compute(step::Bins{}, FixedVector<int, 2>{operand, exponent}, limbs, cut_labels);
  Sharding all_limbs = target;
  all_limbs.dims.push_back({});
  bins = build.reshard(bins, all_limbs);
  exponent = build.reshard(exponent, all_limbs);

  TensorDesc sum{x.type, row.desc.extents, target};
  int slot = build.compute(step::Unbin{}, FixedVector<int, 2>{bins, exponent}, sum, row.labels);
  slot = build.permute(slot, terms.result);
  return build.finish(build.reshard(slot, out), out);
}
}  // namespace tessera::detail
