// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that finds the position of a row's largest or least element.
///
///     ops::Arg{parse("bsv->bs"), Reduction::max, out}
///
/// The planner finds each row's extreme value as a reduction does, then the least index at which
/// some process has it; both in one step where each process has whole rows.
///
///     Plan p = detail::plan_arg(parse("bsv->bs"), Reduction::max, x, out, mesh, process);
///
/// Laws: no communication when no reduced dimension is split, else two collectives of a row's size
/// (values, indices); no temporary of x's size; equal values give the smallest index.
#include <tessera/plan/builder.hpp>
#include <tessera/plan/check/row_verdict.hpp>
#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/work/instruction.hpp>
#include <tessera/plan/work/row_work.hpp>

namespace tessera::step {
/// Finds the positions in rows of the first input: where each row's extreme value, the second
/// input, lies first; or else of its own, which needs memory for that of each row.
struct Find : Verb {
  static constexpr std::string_view name = "find";
  static constexpr Operations operations = Operations::read;
  static constexpr bool reads_gaps = true;
  constexpr Index scratch(const Plan& plan, const Step& step, const Coordinates& at) const {
    if (step.in.size() > 1) return 0;
    const TensorDesc& out = plan.slots[step.out].desc;
    return detail::saturating_mul(detail::block_volume(out.extents, out.sharding, plan.mesh, at),
                                  static_cast<Index>(size_of(plan.slots[step.in[0]].desc.type)));
  }
  detail::LocalFind work(const Plan& plan, const Step& step, const Coordinates& at) const {
    const Slot &from = plan.slots[step.in[0]], &to = plan.slots[step.out];
    detail::LocalFind work{detail::reduce_work(from, to, plan, at), 0, {}};
    const Box held = block(from.desc.extents, from.desc.sharding, plan.mesh, at);
    work.steps.resize(work.rows.reduced.size());
    Index apart = 1;
    for (int d = held.rank() - 1, r = work.steps.size() - 1; d >= 0; --d)
      if (!to.labels.contains(from.labels[d])) {
        work.steps[r--] = apart;
        work.first += held[d].lo * apart;
        apart = detail::saturating_mul(apart, from.desc.extents[d]);
      }
    return work;
  }
};
}  // namespace tessera::step

namespace tessera::detail {

/// Plans the position of x's largest (or least) element: 64-bit indices into the reduced
/// dimensions, which are counted row-major in the order of x. A partial `out` (Min) leaves the
/// indices open.
constexpr Plan plan_arg(const Terms& terms, Reduction reduction, const TensorDesc& x,
                        const Sharding& out, const MeshShape& mesh, int process = 0,
                        const PlanOptions& options = {}) {
  PlanBuilder build(OperatorKind::arg, mesh, process, options);
  build.plan().reduction = reduction;
  const int operand = build.operand(x, terms.operands[0]);
  KeptRow row = build.kept_row(operand, terms.result, DType::i64);
  const AxisSet open = x.sharding.partial | row.split;
  FixedVector<int, 2> in{operand};
  if (!open.empty()) {
    const auto keep = [&](char label) { return terms.result.contains(label); };
    const int local = build.reduce(operand, reduction, keep, x.type);
    in.push_back(build.reshard(local, row.desc.sharding));
    row.desc.sharding = row.desc.sharding.with_partial(open, Reduction::min);
  }
  int slot = build.compute(step::Find{}, in, row.desc, row.labels);
  slot = build.permute(slot, terms.result);
  return build.finish(build.reshard(slot, out), out);
}
}  // namespace tessera::detail

namespace tessera::ops {

struct Arg {
  Terms terms = {};
  Reduction reduction = Reduction::max;
  Sharding out = {};

  constexpr OperatorKind kind() const { return OperatorKind::arg; }
  constexpr Verdict check(const TensorDescs& x) const {
    if (const Verdict v = detail::check_arg_type(x[0].type); !v.ok()) return v;
    if (const Verdict v = detail::check_arg(terms, detail::shardings_of(x), out); !v.ok()) return v;
    if (volume(detail::extents_of(terms.result, terms, x)) > 0 &&
        detail::reduced_count(terms, x[0].extents) == 0)
      return {.rule = Rule::row_not_empty};
    return {};
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames& names) const {
    if (v.rule == Rule::row_not_empty)
      return tessera::explain(v, {.first = to_string(x[0].extents)});
    return tessera::explain(v, terms, names);
  }
  constexpr Sharding deduced(const TensorDescs& x) const {
    return detail::deduce_finished(terms, x);
  }
  constexpr TensorDescs results(const TensorDescs& x) const {
    return {{DType::i64, detail::extents_of(terms.result, terms, x), out}};
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_arg(terms, reduction, x[0], out, on.mesh, on.process, on.options);
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("reduction", reduction);
    visit("to", out);
  }
  constexpr bool operator==(const Arg&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Arg)
