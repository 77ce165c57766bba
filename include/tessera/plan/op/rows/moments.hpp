// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator of variances over dimensions of a tensor, and of means with them.
///
///     ops::Moments{parse("bsv->bs"), true, out}         // the variance, then the mean
///
/// Rows that are whole on each process are one step, which reads memory once. Where rows are split,
/// their mean is formed first, and joined over the axes that split them; then the squared distances
/// to it.
///
///     Plan p = detail::plan_moments(parse("bsv->bs"), true, x, out, mesh, process);
///
/// Laws: no communication when no reduced dimension is split, else two collectives of a row's size
/// (means, squares); no temporary of x's size; half types are computed, and sent, in float.
#include <tessera/plan/builder.hpp>
#include <tessera/plan/check/row_verdict.hpp>
#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/step/moments.hpp>

namespace tessera::detail {

inline constexpr OperatorName moments_operator{"moments"};

/// Plans the variance of x (terms.operands[0]) over what terms.result drops and, `with_mean`, the
/// mean as a further result; both under `out`.
constexpr Plan plan_moments(const Terms& terms, bool with_mean, const TensorDesc& x,
                            const Sharding& out, const MeshShape& mesh, int process = 0,
                            const PlanOptions& options = {}) {
  PlanBuilder build(moments_operator, mesh, process, options);
  build.plan().reduction = Reduction::sum;
  const int operand = build.operand(x, terms.operands[0]);
  const DType computed = facts_of(x.type).compute;
  const KeptRow row = build.kept_row(operand, terms.result, computed);
  const AxisSet split = row.split - mesh.unit_axes();
  FixedVector<int, 2> in{operand};
  int mean = -1;
  if (!split.empty()) {
    const auto keep = [&](char label) { return terms.result.contains(label); };
    mean = build.reshard(build.reduce(operand, Reduction::sum, keep, computed), row.desc.sharding);
    in.push_back(mean);
  }
  TensorDesc squares{part_type(computed), row.desc.extents,
                     row.desc.sharding.with_partial(split, Reduction::sum)};
  int slot = build.compute(step::Moments{}, in, squares, row.labels);
  if (with_mean && mean < 0) {
    mean = build.temporary(row.desc, row.labels);
    build.plan().steps.back().also.push_back(static_cast<std::int8_t>(mean));
  }
  slot = build.reshard(build.permute(slot, terms.result), out);
  if (with_mean) {
    mean = build.reshard(build.permute(mean, terms.result), out);
    build.plan().also.push_back(static_cast<std::int8_t>(build.returned(mean, out)));
  }
  return build.finish(slot, out);
}
}  // namespace tessera::detail

namespace tessera::ops {

struct Moments {
  Terms terms = {};
  bool with_mean = false;  ///< a further result
  Sharding out = {};

  constexpr OperatorKind kind() const { return detail::moments_operator; }
  constexpr std::string_view name() const { return with_mean ? "mean and variance" : "variance"; }
  constexpr Verdict check(const TensorDescs& x) const {
    if (const Verdict v = detail::check_deterministic(terms, detail::shardings_of(x), out); !v.ok())
      return v;
    return detail::check_reduce_type(Reduction::sum, true, x[0].type);
  }
  constexpr Sharding deduced(const TensorDescs& x) const {
    return detail::deduce_finished(terms, x);
  }
  /// In the type that elements are computed in; a variance is real.
  constexpr TensorDescs results(const TensorDescs& x) const {
    const DType computed = detail::facts_of(x[0].type).compute;
    const Extents extents = detail::extents_of(terms.result, terms, x);
    TensorDescs made{{part_type(computed), extents, out}};
    if (with_mean) made.push_back({computed, extents, out});
    return made;
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_moments(terms, with_mean, x[0], out, on.mesh, on.process, on.options);
  }
  /// Returns 1 / the number of elements in each mean.
  constexpr double scale(const TensorDescs& x) const {
    return detail::mean_scale(terms, x[0].extents);
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("mean", with_mean);
    visit("to", out);
  }
  constexpr bool operator==(const Moments&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Moments)
