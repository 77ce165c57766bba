// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Which gradients of one value are left as unfinished sums, to be added as they are and finished
/// together: of n readers that each end in an all-reduce there remains one.
///
///     // q, k and v are products of x with matrices whose heads are split over model: each adjoint
///     // leaves a sum of x's size open over model, and the three are finished as one
///     leave_open(summands, mesh, options);
///
/// A cast of x, or x times a number, passes the sum that its own reader leaves open on to x.
///
/// Laws: pure, and the same on every process; the sum is the same, to rounding; no process sends
/// more than where each is finished by itself, and by the machine model it takes less time. Source:
/// Megatron-LM (Shoeybi et al. 2019), section 3, where f's adjoint is one all-reduce for all
/// products that read its result.
#include <vector>

#include <tessera/grad/adjoint/parts.hpp>
#include <tessera/plan/op/indexed/scatter.hpp>
#include <tessera/plan/op/window/convolve.hpp>
#include <tessera/plan/process_classes.hpp>

namespace tessera::detail {

/// One of the gradients that a value gets: the operator that makes it, what this reads, and the
/// functions of elements through which it then passes.
struct Summand {
  Operation* made_by;
  TensorDescs reads;
  std::vector<Operation> passes = {};
  bool left_open = false;
};

/// Returns the only operand that has a gradient, where that is the cotangent of a result of
/// elements `type`, or a function of its elements and of nothing else: such a function is linear. A
/// sum may then pass unfinished, unless its elements get narrower, for parts would be rounded; -1:
/// it may not.
inline int passes_to(const Adjoint& adjoint, DType type) {
  int operand = -1;
  for (int i = 0; i < adjoint.gradients.size(); ++i) {
    if (!adjoint.gradients[i].known()) continue;
    if (operand >= 0) return -1;
    operand = i;
  }
  constexpr AdjointValue cotangent{AdjointValue::Of::cotangent, 0};
  if (operand < 0 || adjoint.gradients[operand] == cotangent) return operand;
  if (adjoint.steps.size() != 1) return -1;
  const AdjointStep& step = adjoint.steps[0];
  const auto* const map = step.operation.view().get_if<ops::Map>();
  const bool one = map != nullptr && step.inputs.size() == 1 && step.inputs[0] == cotangent &&
                   map->terms.operands[0] == map->terms.result;
  return one && size_of(map->type) >= size_of(type) ? operand : -1;
}

/// Gives an operator's result another sharding; false where its kind has no sums to leave open.
template <class... Op> bool make_under(Operation& operation, const Sharding& out) {
  const auto one = [&](const auto* op) {
    if (op == nullptr) return false;
    auto same = *op;
    same.out = out;
    operation = Operation(same);
    return true;
  };
  return (one(operation.view().template get_if<Op>()) || ...);
}
inline bool make_open(Operation& operation, const Sharding& out) {
  return make_under<ops::Einsum, ops::Convolve, ops::Reduce, ops::Scatter>(operation, out);
}
/// Returns a function of elements through which a sum passes, made to act on one as it comes.
inline Operation passing(const Operation& function, const Sharding& sum) {
  ops::Map map = *function.view().get_if<ops::Map>();
  map.out = sum;
  map.linearity = Linearity::linear;
  return map;
}

/// Whether an axis that splits a dimension of the sum may be left open too: the sum then ends in a
/// reduce-scatter, and until then takes more memory than its block.
enum class OpenScatters : std::uint8_t { no, yes };

/// Returns a sharding that is unfinished over one more axis; the same where that cannot be.
inline Sharding with_open(const Sharding& s, int axis, OpenScatters scatters) {
  Sharding open = s;
  if (s.used().contains(axis)) {
    int at = -1;  // only the minor axis of a dimension goes without moving others
    for (int d = 0; d < s.rank(); ++d)
      if (!s[d].empty() && s[d][s[d].size() - 1] == axis) at = d;
    if (at < 0 || scatters == OpenScatters::no) return s;
    open[at] = {};
    for (int i = 0; i + 1 < s[at].size(); ++i) open[at].push_back(s[at][i]);
  }
  return open.with_partial(s.partial | AxisSet{axis}, Reduction::sum);
}

/// Returns the sharding under which a summand is a sum over as many axes as it may be.
inline Sharding open_sharding(const Summand& summand, const MeshShape& mesh,
                              OpenScatters scatters) {
  Sharding under = summand.made_by->results(summand.reads)[0].sharding;
  AxisSet split;
  for (const TensorDesc& x : summand.reads) split = split | x.sharding.used();
  for (int axis = 0; axis < mesh.rank(); ++axis) {
    if (mesh[axis] < 2 || !split.contains(axis) || under.partial.contains(axis)) continue;
    Operation open = *summand.made_by;
    const Sharding more = with_open(under, axis, scatters);
    if (make_open(open, more) && open.check(summand.reads).ok()) under = more;
  }
  return under;
}

/// The summands of one value that may be left open alike, and what they cost.
class OpenSum {
 public:
  OpenSum(const TensorDesc& open, const Sharding& finished, const MeshShape& mesh,
          const PlanOptions& options)
      : on_{mesh, 0, options}, to_(open.sharding), end_(ops::Reshard{finished}.plan({open}, on_)) {}

  void add(Summand& one) {
    Kind* kind = nullptr;  // a weight may be read a thousand times
    for (Kind& k : kinds_)
      if (k.made_by == *one.made_by && k.reads == one.reads && k.passes == one.passes) kind = &k;
    if (kind == nullptr) {
      Operation open = *one.made_by;
      make_open(open, to_);
      kinds_.push_back({*one.made_by,
                        one.reads,
                        one.passes,
                        one.made_by->plan(one.reads, on_),
                        open.plan(one.reads, on_),
                        cost_of_passing(one, *one.made_by) - cost_of_passing(one, open),
                        {}});
      kind = &kinds_.back();
    }
    kind->members.push_back(&one);
  }
  /// Leaves those open that are cheaper so, if all together are with what finishes them.
  void decide() {
    std::int64_t saved = -end_.cost;
    std::size_t count = 0;
    ProcessClasses classes(on_.mesh);
    classes.add_calls(end_);
    for (Kind& k : kinds_) {
      k.cheaper = k.open.cost < k.finished.cost + k.saved_in_passing;
      if (!k.cheaper) continue;
      count += k.members.size();
      saved += static_cast<std::int64_t>(k.members.size()) *
               (k.finished.cost - k.open.cost + k.saved_in_passing);
      classes.add_calls(k.finished);
      classes.add_calls(k.open);
    }
    if (count < 2 || saved <= 0) return;
    bool more = false;  // on any process
    classes.visit([&](int process, const Coordinates&, Index) {
      Index payload = end_.payload_bytes_on(process);
      for (const Kind& k : kinds_)
        if (k.cheaper)
          payload += static_cast<Index>(k.members.size()) *
                     (k.open.payload_bytes_on(process) - k.finished.payload_bytes_on(process));
      more = more || payload > 0;
    });
    if (more) return;
    for (const Kind& k : kinds_)
      for (Summand* one : k.members)
        if (k.cheaper) one->left_open = make_open(*one->made_by, to_);
  }

 private:
  /// Summands that one operator makes of like tensors.
  struct Kind {
    Operation made_by;
    TensorDescs reads;
    std::vector<Operation> passes;
    Plan finished, open;
    std::int64_t saved_in_passing = 0;  ///< less than 0 where unfinished sums have more elements
    std::vector<Summand*> members;
    bool cheaper = false;
  };
  /// What the functions cost through which the sum passes that an operator makes.
  std::int64_t cost_of_passing(const Summand& one, const Operation& made_by) const {
    std::int64_t cost = 0;
    TensorDesc sum = made_by.results(one.reads)[0];
    for (const Operation& function : one.passes) {
      const Operation pass = passing(function, sum.sharding);
      cost += pass.plan({sum}, on_).cost;
      sum = pass.results({sum})[0];
    }
    return cost;
  }
  const Planning on_;
  const Sharding to_;
  const Plan end_;
  std::vector<Kind> kinds_;
};

/// Changes the operators of those summands that are to be left open; all are of one value, and have
/// its sharding now.
inline void leave_open(std::vector<Summand>& summands, const MeshShape& mesh,
                       const PlanOptions& options, OpenScatters scatters) {
  std::vector<Sharding> under;
  for (const Summand& one : summands) under.push_back(open_sharding(one, mesh, scatters));
  for (std::size_t first = 0; first < summands.size(); ++first) {
    TensorDesc sum = summands[first].made_by->results(summands[first].reads)[0];
    // Parts would be rounded before they are added.
    if (options.parts_of(Reduction::sum, sum.type) != sum.type) continue;
    if (!summands[first].passes.empty())
      sum.type = summands[first].passes.back().results({sum})[0].type;
    const Sharding finished = sum.sharding;
    sum.sharding = under[first];
    if (sum.sharding == finished) continue;
    OpenSum alike(sum, finished, mesh, options);
    for (std::size_t k = first; k < summands.size(); ++k) {
      if (!(under[k] == sum.sharding)) continue;
      under[k] = finished;  // this round decides
      alike.add(summands[k]);
    }
    alike.decide();
  }
}

}  // namespace tessera::detail
