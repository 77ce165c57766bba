// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The search of what every mesh axis splits during a convolution (plan/op/window/convolve.hpp):
/// its factors, and the problem of plan/search/axis_search.hpp.
///
///     const detail::ConvolveFactors factors(terms, shape, x, k, y);
///
/// Laws: see plan/search/axis_search.hpp and plan/op/window/convolve_way.hpp; a bound is at most
/// its price.
#include <tessera/plan/op/window/convolve_way.hpp>
#include <tessera/plan/search/axis_search.hpp>
#include <tessera/plan/search/factor_rule.hpp>

namespace tessera::detail {

/// A convolution in factors: groups, then the taps of each dimension, then the letters. A spatial
/// dimension of the input combines the result's positions and the kernel's taps.
struct ConvolveFactors {
  FactorRule rule;
  int group = -1, batch = -1, in = -1, out = -1;
  FixedVector<int, max_spatial> spatial, taps;

  constexpr ConvolveFactors(const Terms& terms, const ConvolveWindows& shape,
                            const TensorDesc& input, const TensorDesc& kernel,
                            const TensorDesc& result) {
    const ConvolveParts parts = parts_of(terms);
    if (shape.groups > 1) group = rule.factor('*');
    for (int s = 0; s < shape.windows.size(); ++s)
      taps.push_back(rule.factor(static_cast<char>('0' + s)));
    FactorTensor& x = rule.add(input, terms.operands[0]);
    FactorTensor& k = rule.add(kernel, terms.operands[1]);
    FactorTensor& y = rule.add(result, terms.result, true);
    batch = x.factors[parts.input_batch];
    in = x.factors[parts.input_feature];
    out = k.factors[parts.kernel_out];
    for (int s = 0; s < shape.windows.size(); ++s) {
      spatial.push_back(y.factors[parts.result_spatial[s]]);
      x.also[parts.input_spatial[s]] = static_cast<std::int8_t>(taps[s]);
      k.factors[parts.kernel_spatial[s]] = static_cast<std::int8_t>(taps[s]);
      rule.splitting[taps[s]] = Splitting::opens;
      rule.splitting[spatial[s]] = Splitting::halo;
    }
    rule.splitting[in] = Splitting::opens;
    x.major[parts.input_batch] = x.major[parts.input_feature] = static_cast<std::int8_t>(group);
    k.major[parts.kernel_in] = k.major[parts.kernel_out] = static_cast<std::int8_t>(group);
    y.major[parts.result_batch] = y.major[parts.result_feature] = static_cast<std::int8_t>(group);
  }
};

/// The problem of plan/search/axis_search.hpp for a convolution. Its variants are the ways to
/// collect the input. A bound adds the moves of the other tensors and the operations; the price is
/// the plan's.
class ConvolveProblem {
 public:
  constexpr ConvolveProblem(const ConvolveFactors& factors, const FactorAxes& axes,
                            const ConvolveMaker& maker, const PlanOptions& options)
      : factors_(factors),
        axes_(axes),
        maker_(maker),
        options_(options),
        least_(axes, options.machine,
               options.machine.compute(maker.least_operations(), factors.rule.result().desc.type)) {
  }

  constexpr int axes() const { return axes_.mesh().rank(); }
  constexpr int candidates(int axis) const { return axes_.own(axis); }
  constexpr int free_candidates(int axis) const {
    return axes_.candidates(axis).size() - axes_.own(axis);
  }
  /// A role that the axis can have for any groups.
  constexpr int fallback(int axis) const {
    const FactorAxes::Candidates& all = axes_.candidates(axis);
    for (const int role : {passes_through, splits_nothing, factors_.taps[0]})
      if (const int i = all.find(static_cast<std::int8_t>(role)); i >= 0) return i;
    return 0;
  }
  constexpr bool bounded() const { return options_.contract.bounded(); }
  constexpr bool needs_alone() const { return options_.needs_alone; }
  constexpr const LeastTolls& least_tolls() const { return least_; }
  constexpr Variants variants(const Pick& pick) {
    look_at(pick);
    return maker_.possible(split_) ? Variants{0, 1, 2, 3} : Variants{};
  }
  constexpr Worth bound(const Pick& pick, int variant) {
    look_at(pick);
    number_ = split_number_ * 4 + variant;
    way_ = convolve_ways[variant];
    known_now_ = find(number_);
    if (known_now_ != nullptr) return known_now_->worth;
    return {true, false, least_cost_};
  }
  /// Finds out the costs of the moves, then the price.
  constexpr bool refine() {
    if (known_now_ != nullptr && known_now_->exact) return false;
    const Known found = known_now_ != nullptr ? priced() : moved();
    if (known_now_ != nullptr)
      *known_now_ = found;
    else if (known_.size() < most_known)
      known_.push_back(found);
    else
      known_[next_++ % most_known] = found;
    return true;
  }
  constexpr bool moves(const Pick& pick, int variant) {
    bound(pick, variant);
    while (refine()) bound(pick, variant);
    return known_now_->moves;
  }
  constexpr ConvolveSplit split_of(const AxisRoles& roles) const {
    const FactorSplit split = axes_.together(roles);
    const auto axes_along = [&](int factor) {
      return factor < 0 ? AxisList{}
                        : axes_.ordered(factor, split.axes[factor], factors_.rule.operands);
    };
    ConvolveSplit s{axes_along(factors_.batch),
                    axes_along(factors_.group),
                    axes_along(factors_.in),
                    axes_along(factors_.out),
                    {},
                    {},
                    split.passed};
    for (int d = 0; d < factors_.taps.size(); ++d) {
      s.spatial.push_back(axes_along(factors_.spatial[d]));
      s.taps.push_back(axes_along(factors_.taps[d]));
    }
    return s;
  }

 private:
  struct Known {
    Index number = -1;
    Worth worth;
    bool exact = false;
    bool moves = false;  ///< it communicates
  };
  static constexpr int most_known = 128;
  constexpr Known* find(Index number) {
    for (Known& known : known_)
      if (known.number == number) return &known;
    return nullptr;
  }
  constexpr void look_at(const Pick& pick) {
    Index number = 0;
    for (int axis = axes() - 1; axis >= 0; --axis) number = number * 16 + pick[axis];
    if (number == split_number_) return;
    split_number_ = number;
    const AxisRoles roles = axes_.roles(pick);
    split_ = split_of(roles);
    least_cost_ = saturating_add(
        options_.machine.compute(maker_.operations(split_), factors_.rule.result().desc.type),
        least_.without_work(roles));
  }

  struct KnownToll {
    Sharding sharding;
    std::int64_t cost = 0;
  };
  /// Returns the cost of moving tensor t to a sharding, or from it.
  constexpr std::int64_t toll(int t, const Sharding& s) {
    const FactorTensor& tensor = factors_.rule.tensors[t];
    if (tensor.desc.sharding == s) return 0;
    for (const KnownToll& known : tolls_[t])
      if (known.sharding == s) return known.cost;
    TensorDesc from = tensor.desc;
    if (tensor.made) from.sharding = s;
    const std::int64_t cost = reshard_moves(from, tensor.made ? tensor.desc.sharding : s,
                                            options_.parts_of(from.sharding.reduction, from.type),
                                            axes_.mesh(), options_.machine, options_.contract)
                                  .cost;
    if (tolls_[t].size() < tolls_[t].capacity) tolls_[t].push_back({s, cost});
    return cost;
  }
  /// Returns the cost of the moves and the operations of the last bound; several breaches count as
  /// one, as in priced().
  constexpr Known moved() {
    std::int64_t broken = 0, cost = options_.machine.compute(maker_.operations(split_),
                                                             factors_.rule.result().desc.type);
    const auto add = [&](std::int64_t price) {
      cost = saturating_add(cost, price % breach_cost);
      broken = max_of(broken, breaches(price));
    };
    add(toll(0, maker_.source_of(split_, way_)));
    add(toll(1, maker_.weights(split_)));
    add(toll(2, maker_.made(split_)));
    cost = max_of(cost, least_cost_);
    return {
        number_, {true, false, saturating_add(cost, broken > 0 ? breach_cost : 0)}, false, false};
  }
  /// Prices the last bound's way by its plan on process 0, so that all processes agree.
  constexpr Known priced() const {
    PlanBuilder build(OperatorKind::convolve, axes_.mesh(), 0, options_);
    if (!maker_.make(build, split_, way_)) return {number_, {}, true, false};
    const Plan& plan = build.plan();
    std::int64_t cost = plan.cost;
    if (!options_.contract.covers(plan.needs)) cost = saturating_add(cost, breach_cost);
    return {number_,
            {true, plan.peak_bytes > options_.workspace_limit, cost},
            true,
            plan.communications() > 0};
  }

  const ConvolveFactors& factors_;
  const FactorAxes& axes_;
  const ConvolveMaker& maker_;
  const PlanOptions& options_;
  LeastTolls least_;
  FixedVector<Known, most_known> known_;
  FixedVector<KnownToll, 16> tolls_[3];
  int next_ = 0;
  // Those of the last bound.
  Index number_ = 0, split_number_ = -1;
  Known* known_now_ = nullptr;
  std::int64_t least_cost_ = 0;
  ConvolveSplit split_;
  ConvolveWay way_ = ConvolveWay::as_it_is;
};
}  // namespace tessera::detail
