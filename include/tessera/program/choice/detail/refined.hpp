// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A choice made better by plans of whole operators, one tensor after the other.
///
///     Assignment better = RefinedChoice(question, solution.assignment).make();
///
/// The network prices an operator's moves each by itself. Its plan may take less: a product that is
/// made in rounds hides the rounds' moves. So each tensor tries its other places, at the prices of
/// the plans of the operators that have it, until none pays (iterated conditional modes: Besag,
/// Journal of the Royal Statistical Society B 48, 1986).
///
/// Laws: the Program of what is returned costs no more than that of what is given.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <tessera/program/choice/detail/question.hpp>

namespace tessera::detail {

class RefinedChoice {
 public:
  RefinedChoice(ChoiceQuestion& question, Assignment assignment)
      : question_(question),
        at_(std::move(assignment)),
        operators_of_(question.program().tensors().size()),
        open_(operators_of_.size(), true) {
    const Program& program = question_.program();
    for (const TensorPin& pin : program.pins())
      if (pin.like >= 0)  // one of the two alone would break the tie
        open_[static_cast<std::size_t>(pin.like)] = open_[static_cast<std::size_t>(pin.tensor)] =
            false;
    alone_ = open_;
    for (int i = 0; i < program.size(); ++i) {
      const ProgramEntry& e = program.entry(i);
      const auto note = [&](int t) {
        std::vector<int>& all = operators_of_[static_cast<std::size_t>(t)];
        if (t >= 0 && (all.empty() || all.back() != i)) all.push_back(i);
      };
      for (const int t : e.operands) note(t);
      if (e.result >= 0) note(e.result);
      for (const int t : e.also) note(t);
    }
  }

  Assignment make() {
    for (int sweep = 0; sweep < 4; ++sweep) {
      bool changed = false;
      for (std::size_t t = 0; t < operators_of_.size(); ++t) {
        if (!open_[t]) continue;
        open_[t] = false;
        if (!improve(static_cast<int>(t))) continue;
        changed = true;
        open_around(t);
      }
      if (!changed) break;
    }
    return at_;
  }

 private:
  /// Tensors that share an operator with one that was put elsewhere may pay now.
  void open_around(std::size_t t) {
    const auto open = [&](int other) {
      if (other >= 0)
        open_[static_cast<std::size_t>(other)] = alone_[static_cast<std::size_t>(other)];
    };
    for (const int i : operators_of_[t]) {
      const ProgramEntry& e = question_.program().entry(i);
      for (const int other : e.operands) open(other);
      open(e.result);
      for (const int other : e.also) open(other);
    }
  }
  /// Puts a tensor and its copy where they and their operators cost least; returns whether that is
  /// elsewhere.
  bool improve(int t) {
    const auto& homes = question_.homes(t);
    if (homes.variable < 0) return false;
    Cost least = price_at(t);
    Assignment best = at_;
    bool changed = false;
    for (std::size_t h = 0; h < homes.all.size(); ++h) {
      at_[static_cast<std::size_t>(homes.variable)] = static_cast<int>(h);
      if (const Cost cost = price_at(t); cost < least) {
        least = cost;
        best = at_;
        changed = true;
      }
    }
    at_ = std::move(best);
    return changed;
  }
  /// Returns the price of a tensor's copy and of the operators that have it, whose ways become the
  /// best ones.
  Cost price_at(int t) {
    const Home home = question_.home(t, at_);
    Cost cost = home.copy ? question_.toll_to_copy(t, home.sharding, *home.copy) : 0;
    for (const int i : operators_of_[static_cast<std::size_t>(t)]) cost = add_costs(cost, price(i));
    return cost;
  }
  Cost price(int i) {
    const ProgramEntry& e = question_.program().entry(i);
    if (question_.ways(i) == nullptr) return price_without_ways(i);
    const Sharding out = question_.home(e.result, at_).sharding;
    if (question_.way_variable(i) < 0) {
      const Home from = question_.home(e.operands[0], at_);
      const Cost cost = question_.whole(i, from.sharding, out);
      return from.copy ? std::min(cost, question_.whole(i, *from.copy, out)) : cost;
    }
    const auto [way, least] = question_.best_way(i, at_);
    at_[static_cast<std::size_t>(question_.way_variable(i))] = static_cast<int>(way);
    if (!is_feasible(least) || !e.also.empty()) return least;
    TensorDescs sources;  // as the Program reads them in that way
    for (int k = 0; k < e.operands.size(); ++k) {
      const Home home = question_.home(e.operands[k], at_);
      TensorDesc x = e.plan->slots[k].desc;
      const Sharding& to = (*question_.ways(i))[way].way.operands[k];
      x.sharding = question_.source(x, home, to, e.contract).sharding;
      sources.push_back(x);
    }
    return std::min(least, question_.prices().direct(e, sources, out, question_.makes_own(e)));
  }
  /// The moves to and from an operator that stays as it was recorded, or that is a move itself.
  Cost price_without_ways(int i) {
    const ProgramEntry& e = question_.program().entry(i);
    if (question_.is_move(e)) {
      const Cost cost = question_
                            .source(question_.program().tensor(e.operands[0]).desc,
                                    question_.home(e.operands[0], at_),
                                    question_.home(e.result, at_).sharding, e.contract)
                            .toll;
      return question_.must_move(i) && cost == 0 ? infeasible : cost;
    }
    Cost cost = 0;
    for (int k = 0; k < e.operands.size(); ++k) {
      const TensorDesc& x = e.plan->slots[k].desc;
      const Home home = question_.home(e.operands[k], at_);
      if (!(home.sharding == question_.program().tensor(e.operands[k]).desc.sharding))
        cost = add_costs(cost, question_.source(x, home, x.sharding, e.contract).toll);
    }
    return cost;
  }

  ChoiceQuestion& question_;
  Assignment at_;
  std::vector<std::vector<int>> operators_of_;  ///< the operators of each tensor
  std::vector<bool> open_;                      ///< whether a tensor's places are to be tried
  std::vector<bool> alone_;                     ///< whether they may be, without another's
};

}  // namespace tessera::detail
