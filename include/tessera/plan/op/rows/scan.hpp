// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator of running sums and other joins: for each element the join of all elements up to
/// it.
///
///     ops::Scan{detail::same_terms("bij"), 'j', Reduction::sum, {}, DType::f32, out}
///
/// Each process reduces its block along the dimension, the totals travel over the axes that split
/// it, and a scan of the block starts from the join of the totals before it. (Blelloch, Prefix sums
/// and their applications, 1990.) Totals travel by one all-gather or by doubling, whichever costs
/// less: in round k each part gets, from the part 2^k before it, the join of 2^k totals. (Hillis
/// and Steele, Data parallel algorithms, 1986.)
///
///     Plan p = detail::plan_scan({'b', 'i', 'j'}, 2, Reduction::sum, {}, x, out, mesh, process);
///
/// Laws: no communication when the dimension is not split, else an element for each row from each
/// other part, or from ceil(log2(parts)) of them, in as many rounds. Half types are then joined in
/// float, and rounded once.
#include <tessera/plan/builder.hpp>
#include <tessera/plan/check/row_verdict.hpp>
#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/search/best_way.hpp>
#include <tessera/plan/work/bin_format.hpp>
#include <tessera/plan/work/instruction.hpp>
#include <tessera/plan/work/row_work.hpp>

namespace tessera::step {
/// Joins each element with all before it, and with the totals of earlier parts, the second input.
struct Scan : Verb {
  static constexpr std::string_view name = "scan";
  static constexpr Operations operations = Operations::read;
  std::int8_t along = -1;
  ScanOptions options;
  /// Where the second input holds one total on each process: that of the parts up to this many
  /// before its own, where there are as many.
  int behind = 0;
  detail::LocalScan work(const Plan& plan, const Step& step, const Coordinates& at) const {
    const Slot& x = plan.slots[step.in[0]];
    detail::LocalScan work = detail::lines_work(plan, step, along, at);
    work.reverse = options.reverse;
    work.exclusive = options.exclusive;
    if (step.in.size() > 1) {
      work.parts = plan.slots[step.in[1]].desc.extents[along];
      const Interval own = block(work.parts, x.desc.sharding[along], plan.mesh, at);
      work.earlier = work.reverse ? Interval{own.hi, work.parts} : Interval{0, own.lo};
      if (behind > 0) {
        work.parts = 1;
        work.earlier = {0, work.earlier.size() >= behind ? 1 : 0};
      }
    }
    return work;
  }
  template <class Self, class Visit> static constexpr void members(Self& self, const Visit& visit) {
    visit(self.along);
    visit(self.options.reverse);
    visit(self.options.exclusive);
    visit(self.behind);
  }
};
/// Joins all elements of a part of a line, in order, by the user's function.
struct Fold : Scan {
  static constexpr std::string_view name = "fold";
};
}  // namespace tessera::step

namespace tessera::detail {

/// Beyond this a plan has no room for the rounds of doubling.
inline constexpr Index most_doubled_parts = Index{1} << max_regions;

/// Returns the slot that holds, on each process, the join of the totals of all parts before its own
/// along dimension `along`; nothing on the first. `own` holds each part's total.
constexpr int join_by_doubling(PlanBuilder& build, int own, int along, bool reverse) {
  const TensorDesc totals = build.desc(own);
  const Term labels = build.labels(own);
  const int parts = static_cast<int>(totals.extents[along]);
  int before = -1;
  for (int by = 1; by < parts; by *= 2) {
    Region region;
    for (int d = 0; d < totals.rank(); ++d) {
      RegionDim& one = region.push_back({});
      one.extent = one.source_extent = totals.extents[d];
      one.axes = one.source_axes = totals.sharding[d];
    }
    region[along].boundary = Boundary::constant;
    region[along].offset = reverse ? by : -by;
    const int got = build.take({own}, {region}, totals, labels, false);
    const auto join = [&](int later) {
      const step::Scan verb{{}, static_cast<std::int8_t>(along), {.reverse = reverse}, by};
      return build.compute(verb, FixedVector<int, 2>{later, got}, totals, labels);
    };
    before = before < 0 ? got : join(before);
    if (by * 2 < parts) own = join(own);
  }
  return before;
}

/// Plans, for each element along dimension `along` of x, the join of all elements up to it;
/// Reduction::none stands for a function. x may be partial by the same reduction; the result is
/// then partial where `out` is. Its elements are of `type`.
constexpr Plan plan_scan_as(DType type, const Term& labels, int along, Reduction reduction,
                            ScanOptions scan, const TensorDesc& x, const Sharding& out,
                            const MeshShape& mesh, int process = 0,
                            const PlanOptions& options = {}) {
  const Index parts = mesh.parts(x.sharding[along]);
  const auto line = static_cast<std::int8_t>(along);
  Sharding all = x.sharding;  // of the totals where they are gathered
  all[along] = {};
  const auto make = [&](const Sharding& totals_so, int at) {
    const bool doubles = parts > 1 && !(totals_so == all);
    PlanBuilder build(OperatorKind::scan, mesh, at, options);
    build.plan().reduction = reduction;
    int operand = build.operand(x, labels);
    TensorDesc joined{type, x.extents, x.sharding};
    if (parts > 1 && x.type == type) {  // totals are parts
      joined.type = options.parts_of(reduction, type);
      operand = build.convert(operand, joined.type);
    }
    FixedVector<int, 2> inputs{operand};
    if (parts > 1) {
      TensorDesc totals =
          joined;  // one element for each part: the block law gives each process exactly its own
      totals.extents[along] = parts;
      Term parted = labels;
      parted[along] = parts_label;
      // A function need not commute: its totals are taken in order.
      const AnyVerb fold = step::Fold{{{}, line, scan}}, sum = step::Reduce{};
      const int own = build.compute(reduction == Reduction::none ? fold : sum,
                                    FixedVector<int, 1>{operand}, totals, parted);
      inputs.push_back(doubles ? join_by_doubling(build, own, along, scan.reverse)
                               : build.reshard(own, all));
    }
    const step::Scan verb{{}, line, scan, doubles ? 1 : 0};
    const int slot = build.compute(verb, inputs, joined, labels);
    return build.finish(build.reshard(slot, out, type), out);
  };
  BestWay<Sharding> best(options);
  best.add(make(all, 0), all);
  // A round takes three steps of the plan. Without prices, only a contract can prefer doubling.
  if (parts > 2 && parts <= most_doubled_parts && !(options.needs_alone && best.keeps()))
    best.add(make(x.sharding, 0), x.sharding);
  return process == 0 ? best.plan() : make(best.way(), process);
}
/// Plans with the default element type of running joins (reduced_type).
constexpr Plan plan_scan(const Term& labels, int along, Reduction reduction, ScanOptions scan,
                         const TensorDesc& x, const Sharding& out, const MeshShape& mesh,
                         int process = 0, const PlanOptions& options = {}) {
  return plan_scan_as(reduced_type(reduction, x.type), labels, along, reduction, scan, x, out, mesh,
                      process, options);
}
}  // namespace tessera::detail

namespace tessera::ops {

struct Scan {
  Terms terms = {};  ///< the letters of the operand are the result's
  char along = 0;
  Reduction reduction = Reduction::sum;  ///< none: by the call's function
  ScanOptions options = {};
  DType type = DType::f32;  ///< of the result
  Sharding out = {};

  constexpr OperatorKind kind() const { return OperatorKind::scan; }
  constexpr Verdict check(const TensorDescs& x) const {
    if (reduction != Reduction::none)
      if (const Verdict v =
              detail::check_reduced_type(reduction, false, x[0].type, type, x[0].sharding);
          !v.ok())
        return v;
    return detail::check_scan(terms, along, reduction, detail::shardings_of(x), out);
  }
  constexpr Sharding deduced(const TensorDescs& x) const { return x[0].sharding; }
  constexpr TensorDescs results(const TensorDescs& x) const { return {{type, x[0].extents, out}}; }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_scan_as(type, terms.result, terms.result.find(along), reduction, options,
                                x[0], out, on.mesh, on.process, on.options);
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("along", along);
    visit("reduction", reduction);
    visit("reverse", options.reverse);
    visit("exclusive", options.exclusive);
    visit("type", type);
    visit("to", out);
  }
  constexpr bool operator==(const Scan&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Scan)
