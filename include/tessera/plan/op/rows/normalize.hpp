// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator of layer norm, and of RMS norm, over the last dimension.
///
///     ops::Normalize{detail::norm_terms(3, 3), true, 1e-5, out}        // "abc,c,c->abc"
///
/// Rows that are whole on each process are one step. Where rows are split, their means are formed
/// first, unless it is an RMS norm, and joined over the axes that split them; then the squared
/// distances to them, or to zero.
///
///     Plan p = detail::plan_normalize(terms, true, 1e-5, {x, scale, bias}, out, mesh, process);
///
/// Laws: no communication of x when the last dimension is not split, else a collective of a row's
/// number (a square), and one more for means; no temporary of x's size; half types are computed,
/// and sent, in float.
#include <tessera/plan/builder.hpp>
#include <tessera/plan/check/row_verdict.hpp>
#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/step/moments.hpp>

namespace tessera {
namespace step {
/// Normalizes each row, along the last dimension of its first input. The inputs are x, its scale,
/// its bias where it is `biased`, and what is `known` of rows: variances, and means of centred
/// ones. It writes the norm, one over each row's deviation and, of centred rows, means that are not
/// known.
struct Normalize : Verb {
  static constexpr std::string_view name = "normalize";
  static constexpr Operations operations = Operations::read;
  bool centred = true;  ///< about means, else about zero
  bool biased = false;
  bool known = false;
  double epsilon = 0;  ///< is added to variances
  detail::LocalScan work(const Plan& plan, const Step& step, const Coordinates& at) const {
    return detail::lines_work(plan, step, plan.slots[step.in[0]].desc.rank() - 1, at);
  }
  template <class Self, class Visit> static constexpr void members(Self& self, const Visit& visit) {
    visit(self.centred);
    visit(self.biased);
    visit(self.known);
    visit(self.epsilon);
  }
};
}  // namespace step

namespace detail {
/// The functions that the adjoint of a norm asks for, where that of a map asks by operand.
struct NormPull {
  enum : int {
    by_x,        ///< the gradient of x
    scale_terms  ///< whose sum is the gradient of the scale
  };
};
}  // namespace detail
}  // namespace tessera

namespace tessera::detail {

inline constexpr OperatorName normalize_operator{"normalize"};

/// Returns the letters of the norm of a tensor of `rank` dimensions, at least one, with 2 or 3
/// operands.
constexpr Terms norm_terms(int rank, int operands) {
  const Term x = default_labels(rank > 0 ? rank : 1);
  Terms terms{{x}, x};
  for (int i = 1; i < operands; ++i) terms.operands.push_back(Term{x.back()});
  return terms;
}
/// Returns the terms of a sum over a norm's rows: "abc->ab".
constexpr Terms norm_rows(const Terms& terms) {
  Terms rows{{terms.result}, terms.result};
  if (!rows.result.empty()) rows.result.resize(rows.result.size() - 1);
  return rows;
}

/// Plans the norm of x[0] by x[1], its scale, and where there is one x[2], its bias. Further
/// results, split as x's rows are, are one over the deviation of each row and, where rows are
/// `centred`, their means.
constexpr Plan plan_normalize(const Terms& terms, bool centred, double epsilon,
                              const TensorDescs& x, const Sharding& out, const MeshShape& mesh,
                              int process = 0, const PlanOptions& options = {}) {
  PlanBuilder build(normalize_operator, mesh, process, options);
  build.plan().reduction = Reduction::sum;
  const int last = x[0].rank() - 1;
  const Term kept = norm_rows(terms).result;
  FixedVector<int, max_operands> in;
  for (int i = 0; i < x.size(); ++i) in.push_back(build.operand(x[i], terms.operands[i]));
  for (int i = 1; i < x.size(); ++i) in[i] = build.reshard(in[i], Sharding{{x[0].sharding[last]}});
  const KeptRow row = build.kept_row(in[0], kept, facts_of(x[0].type).compute);
  const AxisSet split = row.split - mesh.unit_axes();
  int mean = -1;
  if (!split.empty()) {
    FixedVector<int, 2> rows{in[0]};
    if (centred) {
      const auto keep = [&](char label) { return kept.contains(label); };
      mean = build.reshard(build.reduce(in[0], Reduction::sum, keep, row.desc.type),
                           row.desc.sharding);
      rows.push_back(mean);
    }
    const TensorDesc squares{row.desc.type, row.desc.extents,
                             row.desc.sharding.with_partial(split, Reduction::sum)};
    const int local = build.compute(step::Moments{{}, centred}, rows, squares, kept);
    in.push_back(build.reshard(local, row.desc.sharding));
    if (centred) in.push_back(mean);
  }
  const step::Normalize verb{{}, centred, x.size() > 2, !split.empty(), epsilon};
  int slot = build.compute(verb, in, x[0], terms.result);
  const auto made = [&] {
    const int more = build.temporary(row.desc, kept);
    build.plan().steps.back().also.push_back(static_cast<std::int8_t>(more));
    return more;
  };
  FixedVector<int, 2> more{made()};
  if (centred) more.push_back(mean < 0 ? made() : mean);
  slot = build.reshard(slot, out);
  for (const int one : more) build.plan().also.push_back(static_cast<std::int8_t>(one));
  return build.finish(slot, out);
}
}  // namespace tessera::detail

namespace tessera::ops {

struct Normalize {
  Terms terms = {};
  bool centred = true;  ///< else it is an RMS norm
  double epsilon = 0;   ///< is added to the variance
  Sharding out = {};

  constexpr OperatorKind kind() const { return detail::normalize_operator; }
  constexpr std::string_view name() const { return centred ? "layer norm" : "RMS norm"; }
  constexpr Verdict check(const TensorDescs& x) const {
    if (x[0].rank() == 0 || terms.result.empty()) return {Rule::norm_of_rows, 0};
    const Shardings shardings = detail::shardings_of(x);
    if (const Verdict v = detail::check_sort(terms, terms.result.back(), shardings, out); !v.ok())
      return v;
    if (!is_real(x[0].type)) return {.rule = Rule::function_of_reals, .type = x[0].type};
    for (int i = 1; i < x.size(); ++i)
      if (const Verdict v = detail::check_one_type(Rule::norm_types_alike, x[0].type, x[i].type, i);
          !v.ok())
        return v;
    if (!(epsilon >= 0)) return {.rule = Rule::epsilon_not_negative, .type = x[0].type};
    return detail::check_extents(terms, x, false);
  }
  constexpr Sharding deduced(const TensorDescs& x) const { return x[0].sharding; }
  /// The norm; and of each row, as x is split, one over its deviation, and the mean of centred
  /// ones.
  constexpr TensorDescs results(const TensorDescs& x) const {
    TensorDesc row = x[0];
    row.type = detail::facts_of(x[0].type).compute;
    if (x[0].rank() > 0) {
      row.extents.resize(x[0].rank() - 1);
      row.sharding.dims.resize(x[0].rank() - 1);
    }
    TensorDescs made{{x[0].type, x[0].extents, out}, row};
    if (centred) made.push_back(row);
    return made;
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_normalize(terms, centred, epsilon, x, out, on.mesh, on.process, on.options);
  }
  /// Returns 1 / the number of elements in each row.
  constexpr double scale(const TensorDescs& x) const {
    return detail::mean_scale(detail::norm_rows(terms), x[0].extents);
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("centred", centred);
    visit("epsilon", epsilon);
    visit("to", out);
  }
  constexpr bool operator==(const Normalize&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Normalize)
