// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The search of planners whose operators are made of letters: for every mesh axis, the letter that
/// it splits while the local work runs. plan/take.hpp, plan/scatter.hpp and their like say which
/// letters there are; plan/einsum_search.hpp does the same for products.
///
///     FactorWork work{tensors, .open = {'v'}, .touched = {0, 1, 2}};
///     Factors choice = search_factors(work, mesh, options);       // a sharding for each tensor
///
/// A letter is one factor of the operator (Shardy's form): all tensors that have it are split alike
/// along it. An axis that splits an `open` letter, or over which an operand is unfinished, leaves
/// the result unfinished; a `whole` letter is not split. For every axis the candidates are the
/// letters that it splits in an operand or in the result, and none. The combination of least
/// integer cost wins.
///
/// Laws: the choice depends on global extents, shardings, mesh and options only; ties go to the
/// candidate listed first; under a bounded contract all combinations are looked at.
#include <tessera/plan/builder.hpp>

namespace tessera {

/// What an operator's tensors are, in letters: the operands, then the result.
struct FactorWork {
  using Tensors = FixedVector<TensorDesc, max_operands + 1>;
  FixedVector<Term, max_operands + 1> labels;
  Tensors descs;
  Term open{};                           ///< letters whose split leaves the result unfinished
  Term whole{};                          ///< letters that are not split
  Reduction reduction = Reduction::sum;  ///< by which the result is unfinished then
  /// How often the local work touches each tensor: its price.
  FixedVector<int, max_operands + 1> touched{};
  /// Whether an axis that splits an open letter may be gathered, and split nothing.
  bool gathers_open = true;
};

/// How the tensors are split while the local work runs, unfinished axes included.
struct Factors {
  FixedVector<Sharding, max_operands + 1> shardings;
  std::int64_t cost = max_int64;
};

namespace detail {
class FactorSearch {
 public:
  constexpr FactorSearch(const FactorWork& work, const MeshShape& mesh, const PlanOptions& options,
                         bool leave_out_units)
      : work_(work), mesh_(mesh), options_(options), origin_(mesh.rank(), 0) {
    if (leave_out_units)
      for (TensorDesc& desc : work_.descs) desc.sharding = without_unit_axes(desc.sharding, mesh_);
    for (int t = last(); t >= 0; --t)
      for (char label : work_.labels[t])
        if (!letters_.contains(label)) letters_.push_back(label);
    candidates_.resize(mesh_.rank());
    tolls_.resize(work_.descs.size());
    for (int axis = 0; axis < mesh_.rank(); ++axis) collect_candidates(axis);
  }

  constexpr Factors best() {
    FixedVector<int, max_axes> pick(mesh_.rank(), 0);
    int combinations = 1;
    for (int axis = 0; axis < mesh_.rank(); ++axis) combinations *= candidates_[axis].size();
    evaluate(pick);
    if (combinations <= exhaustive_limit) return evaluate_all(combinations);
    for (int sweep = 0; sweep < 2; ++sweep)
      for (int axis = 0; axis < mesh_.rank(); ++axis) {
        FixedVector<int, max_axes> trial = best_pick_;
        for (int i = 0; i < candidates_[axis].size(); ++i) {
          trial[axis] = i;
          evaluate(trial);
        }
      }
    if (options_.contract.bounded() && breaches(best_.cost) > 0) return evaluate_all(combinations);
    return best_;
  }

 private:
  static constexpr int exhaustive_limit = 16;
  static constexpr int nowhere = -1;  ///< the axis splits nothing: its processes do the same
  static constexpr int through = -2;  ///< operands are unfinished over the axis, and the result is

  constexpr const Factors& evaluate_all(int combinations) {
    FixedVector<int, max_axes> pick(mesh_.rank(), 0);
    for (int i = 1; i < combinations; ++i) {
      int rest = i;
      for (int axis = 0; axis < mesh_.rank(); ++axis) {
        pick[axis] = rest % candidates_[axis].size();
        rest /= candidates_[axis].size();
      }
      evaluate(pick);
    }
    return best_;
  }
  constexpr int last() const { return work_.descs.size() - 1; }
  constexpr int letter_split_by(int tensor, int axis) const {
    const Term& labels = work_.labels[tensor];
    for (int d = 0; d < labels.size(); ++d)
      if (work_.descs[tensor].sharding[d].contains(axis)) return letters_.find(labels[d]);
    return nowhere;
  }
  constexpr bool open(int letter) const { return work_.open.contains(letters_[letter]); }
  constexpr void add(int axis, int candidate) {
    if (candidate >= 0 && work_.whole.contains(letters_[candidate])) return;
    if (!candidates_[axis].contains(candidate)) candidates_[axis].push_back(candidate);
  }
  constexpr void collect_candidates(int axis) {
    const TensorDesc& result = work_.descs[last()];
    for (int t = 0; t < last(); ++t)
      if (work_.descs[t].sharding.partial.contains(axis)) add(axis, through);
    if (result.sharding.partial.contains(axis)) {  // it stays open over the axis
      for (int t = 0; t < last(); ++t)
        if (const int letter = letter_split_by(t, axis); letter >= 0 && open(letter))
          add(axis, letter);
      for (int letter = 0; letter < letters_.size(); ++letter)
        if (open(letter)) add(axis, letter);
      return;
    }
    bool splits_open = false;
    for (int k = 0; k <= last(); ++k) {
      const int letter = letter_split_by(k == 0 ? last() : k - 1, axis);
      if (letter < 0) continue;
      add(axis, letter);
      splits_open = splits_open || open(letter);
    }
    if (!splits_open || work_.gathers_open) add(axis, nowhere);
  }

  /// Returns the axes assigned to a letter, in the order that tensor `first` has them, then the
  /// others.
  constexpr AxisList order(int letter, AxisSet assigned, int first) const {
    AxisList list;
    for (int k = -1; k <= last() && !assigned.empty(); ++k) {
      const int t = k < 0 ? first : last() - k;
      const int d = work_.labels[t].find(letters_[letter]);
      if (d < 0) continue;
      const AxisList& axes = work_.descs[t].sharding[d];
      for (int i = 0; i < axes.size(); ++i)
        if (assigned.contains(axes[i])) {
          list.push_back(axes[i]);
          assigned.erase(axes[i]);
        }
    }
    for (int axis = 0; axis < mesh_.rank(); ++axis)
      if (assigned.contains(axis)) list.push_back(axis);
    return list;
  }

  constexpr void evaluate(const FixedVector<int, max_axes>& pick) {
    FixedVector<AxisSet, 3 * max_dims> assigned(letters_.size(), AxisSet{});
    AxisSet left_open, passed;
    for (int axis = 0; axis < mesh_.rank(); ++axis) {
      const int choice = candidates_[axis][pick[axis]];
      if (choice == through) passed.insert(axis);
      if (choice >= 0) assigned[choice].insert(axis);
      if (choice >= 0 && open(choice)) left_open.insert(axis);
    }
    bool joined = false;  // several axes on one letter: the order of each tensor is worth a try
    for (const AxisSet& axes : assigned) joined = joined || axes.size() > 1;
    for (int first = last(); first >= (joined ? 0 : last()); --first) {
      FixedVector<AxisList, 3 * max_dims> of_letter;
      for (int l = 0; l < letters_.size(); ++l) of_letter.push_back(order(l, assigned[l], first));
      Factors choice;
      for (int t = 0; t <= last(); ++t) {
        const TensorDesc& desc = work_.descs[t];
        Sharding s = Sharding::replicated(desc.rank());
        for (int d = 0; d < s.rank(); ++d) s[d] = of_letter[letters_.find(work_.labels[t][d])];
        choice.shardings.push_back(
            t < last() ? s.with_partial(passed & desc.sharding.partial, desc.sharding.reduction)
                       : s.with_partial(passed | left_open, work_.reduction));
      }
      consider(pick, choice);
    }
  }
  constexpr void consider(const FixedVector<int, max_axes>& pick, Factors& choice) {
    choice.cost = 0;
    Index held = 0;
    for (int t = 0; t <= last(); ++t) {
      const Index bytes = bytes_of(t, choice.shardings[t]);
      const std::int64_t toll = toll_of(t, choice.shardings[t]);
      choice.cost = saturating_add(choice.cost, toll);
      choice.cost = saturating_add(choice.cost,
                                   options_.machine.copy(saturating_mul(work_.touched[t], bytes)));
      if (toll > 0) held = saturating_add(held, bytes);
    }
    const bool over = held > options_.workspace_limit;
    const std::int64_t broken = breaches(best_.cost);  // the contract goes before the limit
    if (breaches(choice.cost) > broken) return;
    if (breaches(choice.cost) == broken &&
        ((over && !over_limit_) || (over == over_limit_ && choice.cost >= best_.cost)))
      return;
    best_ = choice;
    best_pick_ = pick;
    over_limit_ = over;
  }
  constexpr Index bytes_of(int t, const Sharding& s) const {
    return saturating_mul(block_volume(work_.descs[t].extents, s, mesh_, origin_),
                          static_cast<Index>(size_of(work_.descs[t].type)));
  }
  /// Returns what it costs to bring operand t to a sharding, or the result from it.
  constexpr std::int64_t toll_of(int t, const Sharding& s) {
    const TensorDesc& desc = work_.descs[t];
    if (desc.sharding == s) return 0;
    for (const Toll& known : tolls_[t])
      if (known.sharding == s) return known.cost;
    TensorDesc moved = desc;
    if (t == last()) moved.sharding = s;
    const std::int64_t cost = reshard_moves(moved, t == last() ? desc.sharding : s, mesh_,
                                            options_.machine, options_.contract)
                                  .cost;
    if (tolls_[t].size() < tolls_[t].capacity) tolls_[t].push_back({s, cost});
    return cost;
  }

  struct Toll {
    Sharding sharding;
    std::int64_t cost = 0;
  };
  FactorWork work_;
  MeshShape mesh_;
  PlanOptions options_;
  Coordinates origin_;
  FixedVector<char, 3 * max_dims> letters_;
  FixedVector<FixedVector<int, max_operands + 3>, max_axes> candidates_;
  FixedVector<FixedVector<Toll, 24>, max_operands + 1> tolls_;
  Factors best_;
  FixedVector<int, max_axes> best_pick_{};
  bool over_limit_ = true;  ///< nothing that fits the workspace limit has been found yet
};
}  // namespace detail

/// Returns how the tensors are best split while the local work runs.
constexpr Factors search_factors(const FactorWork& work, const MeshShape& mesh,
                                 const PlanOptions& options) {
  Factors best = detail::FactorSearch(work, mesh, options, true).best();
  if (options.contract.bounded() && breaches(best.cost) > 0 && !mesh.unit_axes().empty())
    if (const Factors other = detail::FactorSearch(work, mesh, options, false).best();
        breaches(other.cost) < breaches(best.cost))
      best = other;  // what the contract allows may be the moves of meshes without axes of size 1
  return best;
}

}  // namespace tessera
