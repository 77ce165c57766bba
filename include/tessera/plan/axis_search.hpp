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
///       int fallback(int axis) const;        // one that is possible whatever the others do
///       bool bounded() const;                // a contract is to be kept
///       detail::Variants variants(const detail::Pick&);      // the ways to do a combination
///       detail::Worth bound(const detail::Pick&, int variant);   // what it is worth at best, as far as is known
///       bool refine();                       // finds out more of the last bound; false: it is exact
///     };
///     detail::AxisSearch search(problem);
///     search.pick();   search.variant();   search.worth()
///
/// Laws: the search chooses, among the possible combinations, by fewest breaches of the contract,
/// then by the limit of workspace, then by cost, then by order: the first axis counts fastest, its
/// candidates in their order. It tries all combinations when there are at most `exhaustive_limit`,
/// or when the contract would otherwise be broken and there are at most `contract_limit`; else it
/// decides the axes one by one.
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

/// The most combinations that are all tried: enough for two axes of six candidates each, or for
/// three that split few dimensions. A plan over two axes then takes less than 100,000 steps of
/// clang's constant evaluation, the limit for a plan that is a constant
/// (tests/plan/headline.static.cpp); a plan over three takes about a third of clang's own limit.
inline constexpr int exhaustive_limit = 40;
/// The most combinations that are all tried to keep a contract: enough for six such axes.
inline constexpr int contract_limit = 4096;

template <class Problem> class AxisSearch {
 public:
  constexpr explicit AxisSearch(Problem& problem) : problem_(problem), pick_(problem.axes(), 0) {
    Index combinations = 1;
    for (int axis = 0; axis < problem_.axes(); ++axis)
      combinations = saturating_mul(combinations, problem_.candidates(axis));
    if (combinations <= exhaustive_limit) {
      look_at_promising();
      return;
    }
    look_axis_by_axis();
    if (combinations <= contract_limit && problem_.bounded() && breaches(worth_.cost) > 0)
      look_at_all();
  }

  constexpr const Pick& pick() const { return pick_; }
  constexpr int variant() const { return variant_; }
  constexpr const Worth& worth() const { return worth_; }

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
  constexpr bool next(Pick& pick) const {
    for (int axis = 0; axis < pick.size(); ++axis) {
      if (++pick[axis] < problem_.candidates(axis)) return true;
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
    worth_ = problem_.bound(all.picks[i], all.variants[i]);
    const std::uint64_t promised = all.ranks[i];
    all.ranks[i] = worth_.rank();
    if (promised != all.ranks[i] || problem_.refine()) return true;
    pick_ = all.picks[i];
    variant_ = all.variants[i];
    return false;
  }
  constexpr void look_axis_by_axis() {
    Pick pick(problem_.axes(), 0);
    consider(pick);
    if (!worth_.possible) {
      for (int axis = 0; axis < pick.size(); ++axis) pick[axis] = problem_.fallback(axis);
      consider(pick);
    }
    for (int sweep = 0; sweep < 2; ++sweep)
      for (int axis = 0; axis < pick.size(); ++axis) {
        pick = pick_;
        for (int i = 0; i < problem_.candidates(axis); ++i) {
          pick[axis] = i;
          consider(pick);
        }
      }
  }
  constexpr void consider(const Pick& pick) {
    for (const int variant : problem_.variants(pick)) {
      Worth worth = problem_.bound(pick, variant);
      while (worth.better_than(worth_) && problem_.refine()) worth = problem_.bound(pick, variant);
      if (!worth.better_than(worth_)) continue;
      worth_ = worth;
      pick_ = pick;
      variant_ = variant;
    }
  }

  Problem& problem_;
  Pick pick_;
  int variant_ = 0;
  Worth worth_;
};
}  // namespace tessera::detail
