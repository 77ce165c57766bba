// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The list of rules under which tensors with named dimensions have given shardings
/// (spec/logical.hpp), where there is one.
///
///     const DerivedRules found = derive_rules({{{"embed", "hidden"}, Sharding{{0}, {1}}}});
///     found.rules[0].name == "embed";
///     found.rules[0].axes[0] == 0;       // embed over axis 0, hidden over axis 1
///
/// A rule may come next where every tensor to which it applies wants it. It then changes no other
/// such rule: tensors only lose open dimensions and free axes by it. So rules are taken as long as
/// there is one, and what then lacks its axes no list gives them, unless another tensor lacks its
/// own.
///
/// Laws: a tensor that is not among `differ` has its sharding under the rules; none is where a list
/// of rules gives all of them theirs.
#include <cstddef>
#include <string>
#include <vector>

#include <tessera/base/math.hpp>
#include <tessera/spec/logical.hpp>
#include <tessera/spec/sharding.hpp>

namespace tessera {

/// A tensor whose dimensions have names, "" for none, and how it is split; `weight` says how much
/// it counts where not all have their shardings under one list.
struct NamedSharding {
  std::vector<std::string> names;
  Sharding sharding;
  Index weight = 1;
};

struct DerivedRules {
  std::vector<detail::RuleValue<std::string, int>> rules;  ///< without those of no axes
  std::vector<int> differ;  ///< the tensors that have another sharding under them
};

namespace detail {
class RuleSearch {
 public:
  using Rule = RuleValue<std::string, int>;

  explicit RuleSearch(const std::vector<NamedSharding>& tensors) : tensors_(tensors) {
    for (const NamedSharding& t : tensors_) {
      states_.push_back({std::vector<bool>(t.names.size(), false), {}, t.sharding.partial.empty()});
      for (std::size_t d = 0; d < t.names.size(); ++d) {
        const Rule rule = wanted(t, d);
        if (t.names[d].empty() && !rule.axes.empty()) states_.back().fits = false;
        bool known = t.names[d].empty() || rule.axes.empty();
        for (const Rule& other : candidates_) known = known || same(other, rule);
        if (!known) candidates_.push_back(rule);
      }
    }
  }
  DerivedRules run() {
    DerivedRules found;
    for (Stand next = cheapest(); next.rule >= 0; next = cheapest()) {
      const Rule& rule = candidates_[static_cast<std::size_t>(next.rule)];
      if (next.against <= next.wanting) {
        apply(rule);
        found.rules.push_back(rule);
      } else {
        give_up(rule);
      }
    }
    for (std::size_t t = 0; t < tensors_.size(); ++t)
      if (!states_[t].fits) found.differ.push_back(static_cast<int>(t));
    return found;
  }

 private:
  struct State {
    std::vector<bool> closed;  ///< dimensions that a rule was applied to
    AxisSet used;
    bool fits = true;
  };
  static bool same(const Rule& a, const Rule& b) { return a.name == b.name && a.axes == b.axes; }
  static Rule wanted(const NamedSharding& t, std::size_t d) {
    Rule rule{t.names[d], {}};
    const AxisList& axes = t.sharding[static_cast<int>(d)];
    for (int i = 0; i < axes.size(); ++i) rule.axes.push_back(axes[i]);
    return rule;
  }
  /// Returns the dimension of a tensor to which a rule applies now; -1: none.
  int applies(const Rule& rule, std::size_t t) const {
    for (const int axis : rule.axes)
      if (states_[t].used.contains(axis)) return -1;
    for (std::size_t d = 0; d < tensors_[t].names.size(); ++d)
      if (tensors_[t].names[d] == rule.name && !states_[t].closed[d]) return static_cast<int>(d);
    return -1;
  }
  bool wants(std::size_t t, int d, const Rule& rule) const {
    return same(wanted(tensors_[t], static_cast<std::size_t>(d)), rule);
  }
  /// A rule, and the weight of the tensors that want it and of those that it would split otherwise.
  struct Stand {
    int rule = -1;
    Index wanting = 0, against = 0;
    Index loss() const { return min_of(wanting, against); }
  };
  /// Returns the rule by which, taken or left, the least weight is given up, of those that a tensor
  /// wants; no rule where all have what they want.
  Stand cheapest() const {
    Stand best;
    for (std::size_t c = 0; c < candidates_.size(); ++c) {
      Stand one{static_cast<int>(c), 0, 0};
      for (std::size_t t = 0; t < tensors_.size(); ++t)
        if (const int d = states_[t].fits ? applies(candidates_[c], t) : -1; d >= 0)
          (wants(t, d, candidates_[c]) ? one.wanting : one.against) += tensors_[t].weight;
      if (one.wanting > 0 && (best.rule < 0 || one.loss() < best.loss())) best = one;
    }
    return best;
  }
  /// Leaves a rule out: those that want it differ.
  void give_up(const Rule& rule) {
    for (std::size_t t = 0; t < tensors_.size(); ++t)
      if (const int d = states_[t].fits ? applies(rule, t) : -1; d >= 0 && wants(t, d, rule))
        states_[t].fits = false;
  }
  void apply(const Rule& rule) {
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      const int d = applies(rule, t);
      if (d < 0) continue;
      if (!wants(t, d, rule)) states_[t].fits = false;
      states_[t].closed[static_cast<std::size_t>(d)] = true;
      for (const int axis : rule.axes) states_[t].used.insert(axis);
    }
  }

  const std::vector<NamedSharding>& tensors_;
  std::vector<State> states_;
  std::vector<Rule> candidates_;
};
}  // namespace detail

/// Returns rules in the order in which they stand in a list, and the tensors that differ under
/// them. Where not all have their shardings under one list, those of least weight that stand
/// against a rule are given up first.
inline DerivedRules derive_rules(const std::vector<NamedSharding>& tensors) {
  return detail::RuleSearch(tensors).run();
}

}  // namespace tessera
