// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Factor rules (Shardy's form): the letters (factors) of an operator's tensors, and the meaning of
/// splitting each over a mesh axis. plan/search/factor_search.hpp uses them to choose what each
/// axis splits.
///
///     detail::FactorRule rule;                             // a product "ik,kj->ij"
///     rule.add(a, {'i', 'k'});
///     rule.add(b, {'k', 'j'});
///     rule.add(c, {'i', 'j'}, true);
///     rule.mark({'k'}, detail::Splitting::opens);
///     detail::FactorAxes axes(rule, mesh);                 // axes.candidates(0): what axis 0 may split
///
/// Laws: all tensors that have a factor are split alike along it. The candidates of an axis are:
/// the factors that it splits in the result or in an operand; no factor; where an operand is
/// unfinished over the axis, passing through to the result; where the result stays unfinished, the
/// factors that leave it unfinished. Where the choice is free, an axis of few candidates of
/// its own, which splits a tensor or leaves one unfinished, may split any factor: these candidates
/// come after its own.
#include <tessera/plan/deduce.hpp>
#include <tessera/spec/block.hpp>

namespace tessera::detail {

/// What it means to split a factor over an axis.
enum class Splitting : std::uint8_t {
  keeps,  ///< each process makes its part of the result
  opens,  ///< each process makes a part of every sum: the result is left unfinished
  halo,   ///< each process makes its part, and reads beyond its part of an operand
  whole,  ///< it is not split
  moves   ///< not split either, but an axis that splits it may go to any other factor; or parts are
          ///< merged
};

/// One tensor of an operator; factors are numbers.
struct FactorTensor {
  using Factors = FixedVector<std::int8_t, max_dims>;
  TensorDesc desc;
  bool made = false;  ///< a result
  int touched = 0;    ///< how often the local work goes through it: its price
  Factors factors{};  ///< the factor of each dimension
  Factors major{};    ///< a factor that splits the dimension before that one, or -1
  Factors also{};     ///< one more factor that a split dimension may stand for, or -1

  constexpr int dim(int factor) const {
    for (int d = 0; d < factors.size(); ++d)
      if (factors[d] == factor || major[d] == factor || also[d] == factor) return d;
    return -1;
  }
};

struct FactorRule {
  static constexpr int max_factors = 3 * max_dims;
  FixedVector<char, max_factors> letters;
  FixedVector<Splitting, max_factors> splitting;
  FixedVector<FactorTensor, 2 * max_operands> tensors;  ///< the operands, then the results
  int operands = 0;
  Reduction reduction = Reduction::sum;  ///< by which the result is unfinished
  bool gathers_open = true;  ///< an axis that splits an open factor may be gathered instead
  bool holds_all = false;    ///< the local work holds tensors that are not moved, too
  bool passes_one =
      false;  ///< of operands unfinished over an axis, only the first may stay unfinished

  constexpr int factor(char letter) {
    if (const int known = letters.find(letter); known >= 0) return known;
    letters.push_back(letter);
    splitting.push_back(Splitting::keeps);
    return letters.size() - 1;
  }
  /// Adds an operand or a result, and returns it. The first result has the wanted sharding.
  constexpr FactorTensor& add(const TensorDesc& desc, const Term& labels, bool made = false,
                              int touched = 0) {
    FactorTensor& tensor = tensors.push_back({desc, made, touched});
    if (!made) ++operands;
    for (char label : labels) {
      tensor.factors.push_back(static_cast<std::int8_t>(factor(label)));
      tensor.major.push_back(-1);
      tensor.also.push_back(-1);
    }
    return tensor;
  }
  constexpr void mark(const Term& which, Splitting meaning) {
    for (char letter : which) splitting[factor(letter)] = meaning;
  }
  constexpr const FactorTensor& result() const { return tensors[operands]; }
};

/// The roles of an axis that splits no factor.
inline constexpr int splits_nothing = -1;  ///< its processes do the same
inline constexpr int passes_through =
    -2;  ///< operands are unfinished over it, and so is the result

/// The role of each axis of a mesh: the number of the factor that it splits, or one of the above.
using AxisRoles = FixedVector<int, max_axes>;

/// The roles of all axes of a mesh together.
struct FactorSplit {
  AxisSet axes[FactorRule::max_factors];  ///< the axes of each factor
  AxisSet passed;       ///< the operands' unfinished axes that pass through to the result
  AxisSet open;         ///< over which the result is unfinished
  bool joined = false;  ///< several axes split one factor: their order matters
};

/// The possible roles of each axis.
class FactorAxes {
 public:
  using Candidates = FixedVector<std::int8_t, 16>;
  static constexpr int few = 2;  ///< an axis with more roles of its own gets no others

  constexpr FactorAxes(const FactorRule& rule, const MeshShape& mesh, bool free_choice = true)
      : rule_(rule), mesh_(mesh) {
    for (int axis = 0; axis < mesh_.rank(); ++axis) {
      Candidates& list = candidates_.push_back({});
      collect(axis, list);
      own_.push_back(list.size());
      if (free_choice) collect_free(axis, list);
    }
  }
  constexpr const Candidates& candidates(int axis) const { return candidates_[axis]; }
  /// Returns how many candidates come from what the axis splits in some tensor: the first ones.
  constexpr int own(int axis) const { return own_[axis]; }

  constexpr AxisRoles roles(const FixedVector<int, max_axes>& pick) const {
    AxisRoles roles;
    for (int axis = 0; axis < pick.size(); ++axis) roles.push_back(candidates_[axis][pick[axis]]);
    return roles;
  }

  constexpr FactorSplit together(const AxisRoles& roles) const {
    FactorSplit split;
    for (int axis = 0; axis < roles.size(); ++axis) {
      const int role = roles[axis];
      if (role == passes_through) split.passed.insert(axis);
      if (role == passes_through || (role >= 0 && opens(role))) split.open.insert(axis);
      if (role < 0) continue;
      if (!split.axes[role].empty()) split.joined = true;
      split.axes[role].insert(axis);
    }
    return split;
  }

  /// Returns the axes of a factor in the order of tensor `first`, then of the result, then of the
  /// operands; axes that no tensor has along the factor come in the mesh's order.
  constexpr AxisList ordered(int factor, AxisSet axes, int first) const {
    AxisList list;
    if (axes.several()) {
      take_in_order(first, factor, axes, list);
      take_in_order(rule_.operands, factor, axes, list);
      for (int t = 0; t < rule_.operands && !axes.empty(); ++t)
        take_in_order(t, factor, axes, list);
    }
    for (int axis = 0; !axes.empty(); ++axis)
      if (axes.contains(axis)) {
        list.push_back(axis);
        axes.erase(axis);
      }
    return list;
  }
  /// Returns how a tensor is split while the local work runs, unfinished axes included.
  constexpr Sharding sharding(int tensor, const FactorSplit& split, int first) const {
    const FactorTensor& t = rule_.tensors[tensor];
    Sharding s;
    for (int d = 0; d < t.factors.size(); ++d) {
      AxisList& axes = s.dims.push_back({});
      for (const int f : {t.major[d], t.factors[d]}) {
        if (f < 0 || split.axes[f].empty()) continue;
        const AxisList own = ordered(f, split.axes[f], first);
        for (int i = 0; i < own.size(); ++i) axes.push_back(own[i]);
      }
    }
    return t.made ? s.with_partial(split.open, rule_.reduction)
                  : s.with_partial(kept(tensor) & split.passed, t.desc.sharding.reduction);
  }
  /// Returns the axes over which an operand may stay unfinished.
  constexpr AxisSet kept(int tensor) const {
    AxisSet axes = rule_.tensors[tensor].desc.sharding.partial;
    if (rule_.passes_one)
      for (int t = 0; t < tensor; ++t) axes = axes - rule_.tensors[t].desc.sharding.partial;
    return axes;
  }
  /// Returns the orders in which to try the axes of a split, each order once: the number of the
  /// tensor whose order leads. The result's order is the first.
  constexpr FixedVector<int, max_operands + 1> orders(const FactorSplit& split) const {
    FixedVector<int, max_operands + 1> firsts{rule_.operands};
    if (!split.joined) return firsts;
    FixedVector<AxisList, max_axes> known[max_operands + 1]{};
    for (int k = 0; k <= rule_.operands; ++k) {
      FixedVector<AxisList, max_axes>& lists = known[firsts.size() - (k == 0 ? 1 : 0)];
      lists.clear();
      for (int f = 0; f < rule_.letters.size(); ++f)
        if (split.axes[f].several())
          lists.push_back(ordered(f, split.axes[f], k == 0 ? rule_.operands : k - 1));
      bool is_new = k > 0;
      for (int i = 0; i < firsts.size() && is_new; ++i) is_new = !(known[i] == lists);
      if (is_new) firsts.push_back(k - 1);
    }
    return firsts;
  }
  constexpr bool opens(int factor) const { return rule_.splitting[factor] == Splitting::opens; }
  constexpr const FactorRule& rule() const { return rule_; }
  constexpr const MeshShape& mesh() const { return mesh_; }

 private:
  static constexpr void add(Candidates& list, int candidate) {
    if (!list.contains(static_cast<std::int8_t>(candidate)))
      list.push_back(static_cast<std::int8_t>(candidate));
  }
  constexpr void collect(int axis, Candidates& list) const {
    for (int t = 0; t < rule_.operands; ++t)
      if (rule_.tensors[t].desc.sharding.partial.contains(axis)) add(list, passes_through);
    const bool stays_open = rule_.result().desc.sharding.partial.contains(axis);
    bool splits_open = false, moves = false;
    const auto consider = [&](int factor) {
      if (factor < 0 || (stays_open && !opens(factor))) return;
      splits_open = splits_open || opens(factor);
      moves = moves || rule_.splitting[factor] == Splitting::moves;
      if (rule_.splitting[factor] != Splitting::whole) add(list, factor);
    };
    for (int k = 0; k <= rule_.operands; ++k) {
      const FactorTensor& t = rule_.tensors[k == 0 ? rule_.operands : k - 1];
      for (int d = 0; d < t.factors.size(); ++d)
        if (t.desc.sharding[d].contains(axis))
          for (const int factor : {t.major[d], t.factors[d], t.also[d]}) consider(factor);
    }
    if (stays_open || moves)
      for (int factor = 0; factor < rule_.letters.size(); ++factor) consider(factor);
    if (!stays_open && (!splits_open || rule_.gathers_open)) add(list, splits_nothing);
  }
  constexpr void collect_free(int axis, Candidates& list) const {
    int roles = 0;
    for (const int role : list) roles += role != splits_nothing;
    if (roles == 0 || roles > few) return;
    const bool stays_open = rule_.result().desc.sharding.partial.contains(axis);
    for (int factor = 0; factor < rule_.letters.size(); ++factor)
      if (rule_.splitting[factor] <= Splitting::halo && (!stays_open || opens(factor)) &&
          list.size() < list.capacity)
        add(list, factor);
  }
  constexpr void take_in_order(int tensor, int factor, AxisSet& axes, AxisList& list) const {
    const FactorTensor& t = rule_.tensors[tensor];
    const int d = t.dim(factor);
    if (d < 0) return;
    const AxisList has = t.desc.sharding[d];
    for (int i = 0; i < has.size(); ++i)
      if (axes.contains(has[i])) {
        list.push_back(has[i]);
        axes.erase(has[i]);
      }
  }

  const FactorRule& rule_;
  MeshShape mesh_;
  FixedVector<Candidates, max_axes> candidates_;
  FixedVector<int, max_axes> own_;
};
}  // namespace tessera::detail
