// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator of softmax, and of its logarithm.
///
///     ops::Softmax{detail::same_terms("bsv"), 'v', false, out}
///
/// A line that is whole on each process is one step. Where a line is split, each process finds the
/// largest element and the sum of the exponentials, which are joined over the axes that split it,
/// before the step.
///
///     Plan p = detail::plan_softmax({'b', 'v'}, 1, false, x, out, mesh, process);
///
/// Laws: no communication when the dimension is not split, else two all-reduces of an element for
/// each line; no temporary of x's size.
#include <tessera/plan/builder.hpp>
#include <tessera/plan/check/row_verdict.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/work/instruction.hpp>
#include <tessera/plan/work/row_work.hpp>

namespace tessera::step {
/// What works on whole lines of its first input along a dimension.
struct OfLines : Verb {
  static constexpr Operations operations = Operations::read;
  std::int8_t along = -1;
  detail::LocalScan work(const Plan& plan, const Step& step, const Coordinates& at) const {
    return detail::lines_work(plan, step, along, at);
  }
  template <class Self, class Visit> static constexpr void members(Self& self, const Visit& visit) {
    visit(self.along);
  }
};

/// The sum of the exponentials of what a line's elements are below its largest, the second input.
struct ExpSum : OfLines {
  static constexpr std::string_view name = "sum of exponentials";
};
/// Where lines are split, their largest elements and these sums are further inputs.
struct Softmax : OfLines {
  static constexpr std::string_view name = "softmax";
};
struct LogSoftmax : OfLines {
  static constexpr std::string_view name = "log-softmax";
};
}  // namespace tessera::step

namespace tessera::detail {

inline constexpr OperatorName softmax_operator{"softmax"};

/// Plans the softmax of x along dimension `along`, or its logarithm. The sums of half types are
/// floats.
constexpr Plan plan_softmax(const Term& labels, int along, bool logarithm, const TensorDesc& x,
                            const Sharding& out, const MeshShape& mesh, int process = 0,
                            const PlanOptions& options = {}) {
  PlanBuilder build(softmax_operator, mesh, process, options);
  build.plan().reduction = Reduction::max;
  const int operand = build.operand(x, labels);
  const auto line = static_cast<std::int8_t>(along);
  FixedVector<int, 3> inputs{operand};
  if (mesh.parts(x.sharding[along]) > 1) {
    const int local = build.reduce(
        operand, Reduction::max, [&](char label) { return label != labels[along]; }, x.type);
    const TensorDesc open = build.desc(local);
    const Sharding finished = open.sharding.finished();
    inputs.push_back(build.reshard(local, finished));
    const TensorDesc sums{facts_of(x.type).compute, open.extents,
                          finished.with_partial(open.sharding.partial, Reduction::sum)};
    const Term row = build.labels(local);
    inputs.push_back(
        build.reshard(build.compute(step::ExpSum{{{}, line}}, inputs, sums, row), finished));
  }
  const AnyVerb plain = step::Softmax{{{}, line}}, logarithms = step::LogSoftmax{{{}, line}};
  const int slot = build.compute(logarithm ? logarithms : plain, inputs, x, labels);
  return build.finish(build.reshard(slot, out), out);
}
}  // namespace tessera::detail

namespace tessera::ops {

struct Softmax {
  Terms terms = {};  ///< the letters of the operand are the result's
  char along = 0;
  bool logarithm = false;
  Sharding out = {};

  constexpr OperatorKind kind() const { return detail::softmax_operator; }
  constexpr std::string_view name() const { return logarithm ? "log-softmax" : "softmax"; }
  constexpr Verdict check(const TensorDescs& x) const {
    if (!is_real(x[0].type)) return {.rule = Rule::function_of_reals, .type = x[0].type};
    return detail::check_sort(terms, along, detail::shardings_of(x), out);
  }
  constexpr Sharding deduced(const TensorDescs& x) const { return x[0].sharding; }
  constexpr TensorDescs results(const TensorDescs& x) const {
    return {{x[0].type, x[0].extents, out}};
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_softmax(terms.result, terms.result.find(along), logarithm, x[0], out,
                                on.mesh, on.process, on.options);
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("along", along);
    visit("logarithm", logarithm);
    visit("to", out);
  }
  constexpr bool operator==(const Softmax&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Softmax)
