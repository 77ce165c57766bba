// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The search that all planners share: it chooses a role for every mesh axis during the local work.
/// A problem lists the possible roles of each axis and prices one combination.
/// plan/factor_search.hpp has the problem of operators with letters, plan/convolve_way.hpp the
/// problem of convolutions.
///
///     struct Problem {
///       int axes() const;                    // of the mesh
///       int candidates(int axis) const;      // how many things it may do; at least one
///       int free_candidates(int axis) const; // how many more it may do, numbered after these
///       int fallback(int axis) const;        // one that is possible whatever the others do
///       bool bounded() const;                // a contract is to be kept
///       detail::Variants variants(const detail::Pick&);      // the ways to do a combination
///       detail::Worth bound(const detail::Pick&, int variant);   // what it is worth at best, as far as is known
///       bool refine();                       // finds out more of the last bound; false: it is exact
///       bool moves(const detail::Pick&, int variant);    // whether it communicates
///     };
///     detail::AxisSearch search(problem);
///     search.found()[0];   // a combination, its variant and its worth
///
/// Laws: the search chooses, among the possible combinations, by fewest breaches of the contract,
/// then by the limit of workspace, then by cost, then by order: the first axis counts fastest, its
/// candidates in their order. It tries all combinations when there are at most `exhaustive_limit`,
/// or when the contract would otherwise be broken and there are at most `contract_limit`; else it
/// decides the axes one by one. Where this combination communicates, and no contract is to be kept,
/// free candidates are tried too: all combinations with some where every axis has some and there
/// are at most `free_limit`, else one axis at a time. The best of these is found besides where it
/// saves at least a ninth of the cost.
#include <tessera/plan/equation.hpp>
#include <tessera/plan/move/reshard.hpp>

namespace tessera::detail {

/// The quality of a combination.
struct Worth {
  bool possible = false;
  bool over = true;               ///< it holds more than the limit of workspace
  std::int64_t cost = max_int64;  ///< picoseconds, and breach_cost for each breach of the contract

  /// Returns a number that is smaller for a better combination: by breaches, then the limit, then
  /// the time.
  constexpr std::uint64_t rank() const {
    if (!possible) return ~std::uint64_t{0};
    const auto all = static_cast<std::uint64_t>(cost), time = all % breach_cost;
    return (all - time) << 1 | (over ? std::uint64_t{breach_cost} : 0) | time;
  }
  constexpr bool better_than(const Worth& other) const {
    return possible && (!other.possible || rank() < other.rank());
  }
};

/// For each axis, the number of its candidate.
using Pick = FixedVector<int, max_axes>;
/// The variants of a combination, numbered by the problem.
using Variants = FixedVector<int, max_operands + 1>;

/// A combination, in its best variant.
struct FoundPick {
  Pick pick;
  int variant = 0;
  Worth worth;
};

/// The most combinations that are all tried: enough for two axes of six candidates each, or for
/// three that split few dimensions. A plan over two axes then takes less than 100,000 steps of
/// clang's constant evaluation, the limit for a plan that is a constant
/// (tests/plan/headline.static.cpp); a plan over three takes about a third of clang's own limit.
inline constexpr int exhaustive_limit = 40;
/// The most combinations that are all tried to keep a contract: enough for six such axes.
inline constexpr int contract_limit = 4096;

/// The most combinations, free candidates included, that are all tried.
inline constexpr int free_limit = 40;
/// The part of the cost that a combination with free candidates has to save.
inline constexpr int least_saving = 9;

template <class Problem> class AxisSearch {
 public:
  constexpr explicit AxisSearch(Problem& problem)
      : problem_(problem), best_{Pick(problem.axes(), 0), 0, {}} {
    Index combinations = 1;
    for (int axis = 0; axis < problem_.axes(); ++axis)
      combinations = saturating_mul(combinations, problem_.candidates(axis));
    if (combinations <= exhaustive_limit) {
      look_at_promising();
    } else {
      look_axis_by_axis();
      if (combinations <= contract_limit && problem_.bounded() && breaches(best_.worth.cost) > 0)
        look_at_all();
    }
    found_.push_back(best_);
    if (problem_.bounded() || !best_.worth.possible) return;
    look_freely();
    if (!(best_.pick == found_[0].pick)) found_.push_back(best_);
  }

  /// Returns the best combination without free candidates, then a better one with some, if any.
  constexpr const FixedVector<FoundPick, 2>& found() const { return found_; }

 private:
  static constexpr int most_promises = 2 * exhaustive_limit;
  /// Ways to do combinations, in their order.
  struct Promises {
    FixedVector<Pick, most_promises> picks;
    FixedVector<int, most_promises> variants;
    FixedVector<std::uint64_t, most_promises> ranks;  ///< the best rank that each may have
    constexpr int best() const {
      int best = 0;
      for (int i = 1; i < ranks.size(); ++i)
        if (ranks[i] < ranks[best]) best = i;
      return best;
    }
    constexpr void drop_worse_than(std::uint64_t rank) {
      int kept = 0;
      for (int i = 0; i < ranks.size(); ++i) {
        if (ranks[i] > rank) continue;
        picks[kept] = picks[i];
        variants[kept] = variants[i];
        ranks[kept++] = ranks[i];
      }
      ranks.resize(kept);
    }
  };

  /// Moves on to the next combination; false after the last one.
  constexpr bool next(Pick& pick, bool free = false) const {
    for (int axis = 0; axis < pick.size(); ++axis) {
      const int all = problem_.candidates(axis) + (free ? problem_.free_candidates(axis) : 0);
      if (++pick[axis] < all) return true;
      pick[axis] = 0;
    }
    return false;
  }
  constexpr void look_at_all() {
    Pick pick(problem_.axes(), 0);
    do consider(pick);
    while (next(pick));
  }
  /// Finds the same combination by refining the bounds of the most promising one until its rank is
  /// exact; most combinations are never refined.
  constexpr void look_at_promising() {
    Promises all;
    Pick pick(problem_.axes(), 0);
    do {
      for (const int variant : problem_.variants(pick)) {
        const Worth bound = problem_.bound(pick, variant);
        if (!bound.possible) continue;
        if (all.ranks.size() == most_promises) return look_at_all();
        all.picks.push_back(pick);
        all.variants.push_back(variant);
        all.ranks.push_back(bound.rank());
      }
    } while (next(pick));
    if (all.ranks.empty()) return;
    const int first = all.best();
    while (follow(all, first)) {
    }
    all.drop_worse_than(all.ranks[first]);
    while (follow(all, all.best())) {
    }
  }
  /// Refines the bound of a combination; false when it is exact already.
  constexpr bool follow(Promises& all, int i) {
    best_.worth = problem_.bound(all.picks[i], all.variants[i]);
    const std::uint64_t promised = all.ranks[i];
    all.ranks[i] = best_.worth.rank();
    if (promised != all.ranks[i] || problem_.refine()) return true;
    best_.pick = all.picks[i];
    best_.variant = all.variants[i];
    return false;
  }
  constexpr void look_axis_by_axis() {
    Pick pick(problem_.axes(), 0);
    consider(pick);
    if (!best_.worth.possible) {
      for (int axis = 0; axis < pick.size(); ++axis) pick[axis] = problem_.fallback(axis);
      consider(pick);
    }
    for (int sweep = 0; sweep < 2; ++sweep)
      for (int axis = 0; axis < pick.size(); ++axis) {
        pick = best_.pick;
        for (int i = 0; i < problem_.candidates(axis); ++i) {
          pick[axis] = i;
          consider(pick);
        }
      }
  }
  constexpr bool is_free(const Pick& pick) const {
    bool free = false;
    for (int axis = 0; axis < pick.size(); ++axis)
      free = free || pick[axis] >= problem_.candidates(axis);
    return free;
  }
  /// Looks at combinations with free candidates: at all, where there are few, else axis by axis.
  constexpr void look_freely() {
    Index combinations = 1, own = 1;
    bool all_free = true;
    for (int axis = 0; axis < problem_.axes(); ++axis) {
      const int free = problem_.free_candidates(axis);
      all_free = all_free && free > 0;
      own = saturating_mul(own, problem_.candidates(axis));
      combinations = saturating_mul(combinations, problem_.candidates(axis) + free);
    }
    if (combinations == own || !problem_.moves(best_.pick, best_.variant)) return;
    const Index most = best_.worth.cost - best_.worth.cost / least_saving;
    if (all_free && combinations <= free_limit) {
      Pick pick(problem_.axes(), 0);
      while (next(pick, true))
        if (is_free(pick)) consider(pick, most);
      return;
    }
    for (bool again = true, first = true; again; first = false) {
      const Pick before = best_.pick;
      for (int axis = 0; axis < problem_.axes(); ++axis) {
        Pick pick = best_.pick;
        const int all = problem_.candidates(axis) + problem_.free_candidates(axis);
        for (int i = first ? problem_.candidates(axis) : 0; i < all; ++i) {
          pick[axis] = i;
          consider(pick, most);
        }
      }
      again = !(best_.pick == before);
    }
  }
  /// Keeps a combination that is better than the best so far, and costs no more than `most`.
  constexpr void consider(const Pick& pick, std::int64_t most = max_int64) {
    for (const int variant : problem_.variants(pick)) {
      Worth goal = best_.worth;
      if (goal.possible) goal.cost = min_of(goal.cost, most);
      Worth worth = problem_.bound(pick, variant);
      while (worth.better_than(goal) && problem_.refine()) worth = problem_.bound(pick, variant);
      if (!worth.better_than(goal)) continue;
      best_ = {pick, variant, worth};
    }
  }

  Problem& problem_;
  FoundPick best_;
  FixedVector<FoundPick, 2> found_;
};
}  // namespace tessera::detail
