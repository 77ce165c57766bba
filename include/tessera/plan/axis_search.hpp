// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The one search of the planners: for every mesh axis what it does while the local work runs. A
/// problem lists what each axis may do and prices one combination; plan/factor_search.hpp is that
/// of operators that are made of letters, plan/convolve_way.hpp that of convolutions.
///
///     struct Problem {
///       int axes() const;                    // of the mesh
///       int candidates(int axis) const;      // how many things it may do; at least one
///       int fallback(int axis) const;        // one that is possible whatever the others do
///       bool bounded() const;                // a contract is to be kept
///       Variants variants(const Pick&);      // the ways to do a combination
///       Worth bound(const Pick&, int variant);   // what it is worth at best, as far as is known
///       bool refine();                       // finds out more of the last bound; false: it is exact
///     };
///     AxisSearch search(problem);
///     search.pick();   search.variant();   search.worth()
///
/// Laws: of possible combinations the one that breaks a contract least is taken, of these one
/// within the limit of workspace, of these the cheapest, of these the first: the first axis counts
/// fastest, its candidates in their order. All are looked at where there are at most
/// `exhaustive_limit`, or where a contract is broken else and there are at most `contract_limit`;
/// else axes are decided one by one.
#include <tessera/plan/equation.hpp>
#include <tessera/plan/move/reshard.hpp>

namespace tessera {

/// What a combination is worth.
struct Worth {
  bool possible = false;
  bool over = true;               ///< it holds more than the limit of workspace
  std::int64_t cost = max_int64;  ///< picoseconds, and breach_cost for each breach of the contract

  /// Returns a number that is less for what is better: by breaches, the limit, the time.
  constexpr std::uint64_t rank() const {
    if (!possible) return ~std::uint64_t{0};
    const auto all = static_cast<std::uint64_t>(cost), time = all % breach_cost;
    return (all - time) << 1 | (over ? std::uint64_t{breach_cost} : 0) | time;
  }
  constexpr bool better_than(const Worth& other) const {
    return possible && (!other.possible || rank() < other.rank());
  }
};

/// Of each axis the number of its candidate.
using Pick = FixedVector<int, max_axes>;
/// The ways to do a combination, in numbers of the problem's.
using Variants = FixedVector<int, max_operands + 1>;

/// Most combinations that are all looked at: those of two axes of six candidates each, or of three
/// that split few dimensions. A plan over two axes then takes less than 100,000 steps of clang's
/// constant evaluation, which is what a plan that is stated as a constant may take
/// (tests/plan/headline.static.cpp); one over three takes about a third of what clang allows.
inline constexpr int exhaustive_limit = 40;
/// Most that are all looked at for the sake of a contract: six such axes.
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
    FixedVector<std::uint64_t, most_promises> ranks;  ///< of what they are worth at best
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

  /// Moves on to the next combination; false behind the last one.
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
  /// Finds the same by following up the most promising combination until it keeps what it promised;
  /// most are left at their first bound.
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
  /// Finds out more of what a combination is worth; false when nothing more is to be found out.
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

}  // namespace tessera
