// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The search that all planners share: it chooses a role for every mesh axis during the local work.
/// A problem lists the possible roles of each axis and prices one combination.
/// plan/search/factor_search.hpp has the problem of operators with letters,
/// plan/op/window/convolve_way.hpp the problem of convolutions.
///
///     struct Problem {
///       int axes() const;                    // of the mesh
///       int candidates(int axis) const;      // how many things it may do; at least one
///       int free_candidates(int axis) const; // how many more it may do, numbered after these
///       int fallback(int axis) const;        // one that is possible whatever the others do
///       const detail::LeastTolls& least_tolls();  // what candidates and combinations cost at least
///       bool bounded() const;                // a contract is to be kept
///       bool needs_alone() const;            // any combination that keeps it will do
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
/// decides the axes one by one. Where this combination communicates, free candidates are tried too:
/// all combinations with some where there are at most `free_limit` that may be better, else one
/// axis at a time. The best of these is found besides where it saves at least a ninth of the cost,
/// or breaks the contract less often; so a contract that the best combination of all keeps is kept.
#include <tessera/plan/equation.hpp>
#include <tessera/plan/move/reshard.hpp>
#include <tessera/plan/search/least_tolls.hpp>

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
/// three that split few dimensions. A plan over two axes then takes less than an eighth
/// of the steps of clang's constant evaluation, the limit for a plan that is a constant
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
    for (int axis = 0; axis < problem_.axes(); ++axis) {
      tried_.push_back({});
      for (int i = 0; i < problem_.candidates(axis); ++i)
        tried_[axis].push_back(static_cast<std::int8_t>(i));
      combinations = saturating_mul(combinations, problem_.candidates(axis));
    }
    if (combinations <= exhaustive_limit) {
      look_at_all({});
    } else {
      look_axis_by_axis();
      if (combinations <= contract_limit && breached()) look_at_all(best_.worth);
    }
    found_.push_back(best_);
    if (problem_.needs_alone() && !breached()) return;
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
    constexpr void add(const Pick& pick, int variant, std::uint64_t rank) {
      picks.push_back(pick);
      variants.push_back(variant);
      ranks.push_back(rank);
    }
    constexpr void drop_worse_than(std::uint64_t rank) {
      int kept = 0;
      for (int i = 0; i < ranks.size(); ++i) {
        if (ranks[i] > rank) continue;
        picks[kept] = picks[i];
        variants[kept] = variants[i];
        ranks[kept++] = ranks[i];
      }
      truncate(kept);
    }
    constexpr void truncate(int size) {
      picks.truncate(size);
      variants.truncate(size);
      ranks.truncate(size);
    }
  };

  constexpr bool breached() const {
    return problem_.bounded() && (!best_.worth.possible || breaches(best_.worth.cost) > 0);
  }
  /// Moves on to the next combination of what is tried; false after the last one.
  constexpr bool next(Pick& places) const {
    for (int axis = 0; axis < places.size(); ++axis) {
      if (++places[axis] < tried_[axis].size()) return true;
      places[axis] = 0;
    }
    return false;
  }
  /// Finds the best of all combinations that are better than `goal`, by refining the bounds of the
  /// most promising one until its rank is exact; most combinations are never refined.
  constexpr void look_at_all(Worth goal, const LeastTolls* least = nullptr) {
    Promises all;
    Pick places(problem_.axes(), 0);
    do {
      const Pick pick = tried(places);
      if (least != nullptr &&
          !(is_free(pick) && Worth{true, false, least->of(pick)}.better_than(goal)))
        continue;
      for (const int variant : problem_.variants(pick)) {
        const Worth bound = problem_.bound(pick, variant);
        if (!bound.better_than(goal)) continue;
        if (all.ranks.size() == most_promises) settle(all, goal);
        all.add(pick, variant, bound.rank());
      }
    } while (next(places));
    settle(all, goal);
  }
  constexpr void settle(Promises& all, Worth& goal) {
    if (all.ranks.empty()) return;
    const int first = all.best();
    while (all.ranks[first] < goal.rank() && follow(all, first)) {
    }
    all.drop_worse_than(all.ranks[first]);
    for (int i = all.best(); all.ranks[i] < goal.rank(); i = all.best())
      if (!follow(all, i)) goal = best_.worth;
    all.truncate(0);
  }
  /// Refines the bound of a combination; false when it is exact already.
  constexpr bool follow(Promises& all, int i) {
    const Worth worth = problem_.bound(all.picks[i], all.variants[i]);
    const std::uint64_t promised = all.ranks[i];
    all.ranks[i] = worth.rank();
    if (promised != all.ranks[i] || problem_.refine()) return true;
    best_ = {all.picks[i], all.variants[i], worth};
    return false;
  }
  constexpr void look_axis_by_axis() {
    Pick pick(problem_.axes(), 0);
    consider(pick, best_.worth);
    if (!best_.worth.possible) {
      for (int axis = 0; axis < pick.size(); ++axis) pick[axis] = problem_.fallback(axis);
      consider(pick, best_.worth);
    }
    for (int sweep = 0; sweep < 2; ++sweep)
      for (int axis = 0; axis < pick.size(); ++axis) {
        pick = best_.pick;
        for (const int i : tried_[axis]) {
          pick[axis] = i;
          consider(pick, best_.worth);
        }
      }
  }
  constexpr Pick tried(const Pick& places) const {
    Pick pick = places;
    for (int axis = 0; axis < pick.size(); ++axis) pick[axis] = tried_[axis][places[axis]];
    return pick;
  }
  constexpr bool is_free(const Pick& pick) const {
    bool free = false;
    for (int axis = 0; axis < pick.size(); ++axis)
      free = free || pick[axis] >= problem_.candidates(axis);
    return free;
  }
  /// Looks at combinations with free candidates: at all, where there are few, else axis by axis.
  /// Candidates whose least cost is too much already are left out.
  constexpr void look_freely() {
    bool any = false;
    for (int axis = 0; axis < problem_.axes(); ++axis)
      any = any || problem_.free_candidates(axis) > 0;
    const bool breaks = breached();
    if (!any || (!best_.worth.possible && !breaks)) return;
    if (!breaks && !problem_.moves(best_.pick, best_.variant)) return;
    Worth goal = best_.worth;
    if (!breaks) goal.cost -= goal.cost / least_saving;
    const LeastTolls& least = problem_.least_tolls();
    Index combinations = 1;
    any = false;
    for (int axis = 0; axis < problem_.axes(); ++axis) {
      tried_[axis].clear();
      const int own = problem_.candidates(axis), all = own + problem_.free_candidates(axis);
      for (int i = 0; i < all; ++i) {
        if (!Worth{true, false, least.of(axis, i)}.better_than(goal)) continue;
        tried_[axis].push_back(static_cast<std::int8_t>(i));
        any = any || i >= own;
      }
      combinations = saturating_mul(combinations, tried_[axis].size());
    }
    if (!any || combinations == 0) return;
    if (combinations <= (breaks ? contract_limit : free_limit)) return look_at_all(goal, &least);
    for (bool again = true, first = true; again; first = false) {
      const Pick before = best_.pick;
      for (int axis = 0; axis < problem_.axes(); ++axis) {
        Pick pick = best_.pick;
        for (const int i : tried_[axis]) {
          if (first && i < problem_.candidates(axis)) continue;
          pick[axis] = i;
          if (Worth{true, false, least.of(pick)}.better_than(goal)) consider(pick, goal);
        }
      }
      again = !(best_.pick == before);
    }
  }
  /// Keeps a combination that is better than the goal, which it then is.
  constexpr void consider(const Pick& pick, Worth& goal) {
    for (const int variant : problem_.variants(pick)) {
      Worth worth = problem_.bound(pick, variant);
      while (worth.better_than(goal) && problem_.refine()) worth = problem_.bound(pick, variant);
      if (!worth.better_than(goal)) continue;
      best_ = {pick, variant, worth};
      goal = worth;
    }
  }

  Problem& problem_;
  FoundPick best_;
  FixedVector<FoundPick, 2> found_;
  FixedVector<FixedVector<std::int8_t, 32>, max_axes> tried_;  ///< the candidates of each axis
};
}  // namespace tessera::detail
