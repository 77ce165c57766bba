// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The cost network of a choice, as its parts are added to: prices of pairs, what is held at which
/// time, and variables for what is moved.
///
///     class ChoiceQuestion : public ChoiceNetwork { … begin(); … finish(); };
///
/// Memory is counted as the Program of the network's own ways and copies holds it (UnderChoice,
/// `as_counted`), but for what moves take up: a move needs a variable of its own, which is added
/// for those operators alone where it decides (`count_moves`). So the network first asks for too
/// little memory, and for more where that is not enough.
///
/// Laws: those of program/choice.hpp.
#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/program/choice/detail/free_tensors.hpp>
#include <tessera/program/choice/detail/tensor_lives.hpp>
#include <tessera/program/choice/detail/way_prices.hpp>
#include <tessera/program/detail/over_processes.hpp>
#include <tessera/solve/cost_network.hpp>

namespace tessera::detail {

class ChoiceNetwork : public FreeTensors {
 public:
  ChoiceNetwork(const Program& program, const PlanOptions& planning, const ChooseOptions& options)
      : FreeTensors(program, planning, options),
        counts_moves_(static_cast<std::size_t>(program.size()), false) {}

  /// Counts what moves of operator i's tensors take up, too, once the network is made anew; returns
  /// whether it did not.
  bool count_moves(int i) {
    const bool counted = counts_moves_[static_cast<std::size_t>(i)];
    counts_moves_[static_cast<std::size_t>(i)] = true;
    return !counted;
  }
  /// Sets the limits of the network; a second call corrects them. Time 0 is for flops, the others
  /// are for memory (program/choice/detail/tensor_lives.hpp).
  void limit(Index flops, Index memory) {
    if (options_of_choice_.flops_limit != max_int64)
      network_.set_limit(0, 1, std::max<Index>(0, flops - fixed_flops_) / flops_unit());
    if (options_of_choice_.memory_limit == max_int64) return;
    for (int time = 1; time < lives_->times(); ++time)
      network_.set_limit(
          time, time + 1,
          std::max<Index>(0, memory - fixed_bytes_[static_cast<std::size_t>(time)]) / bytes_unit());
  }

  const CostNetwork& network() const { return network_; }
  /// The price of operators that have no choice.
  Cost fixed() const { return fixed_; }

 protected:
  void begin() {
    network_ = {};
    pairs_.clear();
    fixed_ = fixed_flops_ = 0;
    if (!counts_memory()) return;
    lives_.emplace(program_);
    fixed_bytes_.assign(static_cast<std::size_t>(lives_->times()), lives_->others());
  }
  void finish() {
    for (const auto& [pair, costs] : pairs_) network_.add_pair(pair.first, pair.second, costs);
    limit(options_of_choice_.flops_limit, options_of_choice_.memory_limit);
  }
  /// In what a limit is counted, so that it is a number of twenty bits.
  Index flops_unit() const { return std::max<Index>(1, options_of_choice_.flops_limit >> 20); }
  Index bytes_unit() const { return std::max<Index>(1, options_of_choice_.memory_limit >> 20); }
  bool counts_memory() const { return options_of_choice_.memory_limit != max_int64; }
  /// Returns the bytes of a tensor on process 0 under a sharding.
  Index bytes_of(int t, const Sharding& sharding) const {
    ProgramTensor tensor;
    tensor.desc = program_.tensor(t).desc;
    tensor.desc.sharding = sharding;
    return charge_of(tensor, program_.mesh, program_.mesh.coordinates(0));
  }
  /// Adds costs, row by row of a's values; a variable of -1 has one value.
  void add_pair(int a, int b, const std::vector<Cost>& costs) {
    if (a < 0 && b < 0) {
      fixed_ = add_costs(fixed_, costs[0]);
    } else if (a < 0 || b < 0) {
      network_.add_costs(std::max(a, b), costs);
    } else {
      std::vector<Cost>& sum = pairs_[{a, b}];
      if (sum.empty()) sum.assign(costs.size(), 0);
      for (std::size_t i = 0; i < costs.size(); ++i) sum[i] = add_costs(sum[i], costs[i]);
    }
  }
  /// A variable between where a tensor lies and where an operator has it, which says whether it is
  /// moved: what each of its values is for, and what the move takes up meanwhile.
  struct Carried {
    int variable = -1;
    std::vector<int> target;
    std::vector<Index> held;
  };
  /// Adds such a variable between variable a, of n values, and b, whose values have the targets
  /// `of_b`; move(i, target) from value i of a.
  template <class Move>
  Carried add_carried(int a, std::size_t n, int b, const std::vector<int>& of_b, const Move& move) {
    Carried all;
    const int targets = *std::max_element(of_b.begin(), of_b.end()) + 1;
    for (int target = 0; target < targets; ++target)
      for (std::size_t i = 0; i < n; ++i) {
        const MovePrices::Move one = move(i, target);
        if (!is_feasible(one.toll)) continue;
        bool known = false;
        for (std::size_t v = 0; v < all.target.size(); ++v)
          known = known || (all.target[v] == target && all.held[v] == one.held);
        if (known) continue;
        all.target.push_back(target);
        all.held.push_back(one.held);
      }
    if (all.target.empty()) all = {-1, {0}, {0}};
    all.variable = network_.add_variable(std::vector<Cost>(all.target.size(), 0));
    std::vector<Cost> from, to;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t v = 0; v < all.target.size(); ++v) {
        const MovePrices::Move one = move(i, all.target[v]);
        from.push_back(one.held == all.held[v] ? one.toll : infeasible);
      }
    for (const int target : all.target)
      for (const int wanted : of_b) to.push_back(target == wanted ? 0 : infeasible);
    add_pair(a, all.variable, from);
    add_pair(all.variable, b, to);
    return all;
  }
  static std::vector<int> numbers_of(const std::vector<int>& all) {
    std::vector<int> numbers(all.size());
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }
  /// Returns whether moves of a tensor for operator i are counted: those of small ones are not.
  bool counts_moves(int i, int t) const {
    return counts_memory() && counts_moves_[static_cast<std::size_t>(i)] &&
           bytes_of(t, Sharding::replicated(program_.tensor(t).desc.rank())) >
               options_of_choice_.memory_limit >> 10;
  }
  /// Counts what each value of a variable holds at the times begin … end-1; a variable of -1 has
  /// one value.
  void hold(int variable, int begin, int end, const std::vector<Index>& bytes) {
    std::vector<Cost> amounts;
    for (const Index b : bytes) amounts.push_back((b + bytes_unit() - 1) / bytes_unit());
    if (variable >= 0) return network_.add_usage(variable, begin, end, amounts);
    for (int time = begin; time < end; ++time)
      fixed_bytes_[static_cast<std::size_t>(time)] += bytes[0];
  }
  /// The different places that an operator's ways have for a tensor: which one each way has, and a
  /// way that has it.
  struct Targets {
    std::vector<int> of_way;
    std::vector<std::size_t> way;
  };
  static Targets targets_of(const std::vector<int>& to) {
    Targets all;
    for (std::size_t w = 0; w < to.size(); ++w) {
      std::size_t target = 0;
      while (target < all.way.size() && to[all.way[target]] != to[w]) ++target;
      if (target == all.way.size()) all.way.push_back(w);
      all.of_way.push_back(static_cast<int>(target));
    }
    return all;
  }
  CostNetwork network_;
  Cost fixed_ = 0;
  Index fixed_flops_ = 0;
  std::optional<TensorLives> lives_;  ///< where memory is limited

 private:
  std::map<std::pair<int, int>, std::vector<Cost>> pairs_;
  std::vector<bool> counts_moves_;  ///< of each operator
  std::vector<Index> fixed_bytes_;  ///< at each time, what does not depend on the choice
};

}  // namespace tessera::detail
