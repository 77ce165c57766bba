// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The question that a choice answers, as a cost network: a variable for each tensor, whose values
/// are where it lies and where the copy lies that its readers share, if there is one; a variable
/// for each operator, its ways; and between them the prices of moving to a way.
///
///     ChoiceQuestion question(program, planning, options);
///     question.network();   question.home(tensor, assignment)
///
/// Laws: those of program/choice.hpp.
#include <algorithm>
#include <cstddef>
#include <vector>

#include <tessera/program/choice/detail/places.hpp>

namespace tessera::detail {

class ChoiceQuestion : public ChoicePlaces {
 public:
  ChoiceQuestion(const Program& program, const PlanOptions& planning, const ChooseOptions& options)
      : ChoicePlaces(program, planning, options) {
    build();
  }
  /// Returns whether the network has every call that costs less than a way with its moves: else a
  /// Program may cost less than the network says.
  bool exact() const { return exact_ && prices_.exact(); }
  /// Makes the network, anew once moves of more operators are counted.
  void build() {
    exact_ = true;
    homes_.clear();
    copies_.clear();
    operators_.clear();
    begin();
    for (int t = 0; t < tensors(); ++t) add_tensor(t);
    if (options_of_choice_.keep_shardings) return;
    for (const TensorPin& pin : program_.pins())
      if (pin.like >= 0) add_tie(pin.like, pin.tensor);
    for (int i = 0; i < program_.size(); ++i) add_operator(i);
    for (int t = 0; t < tensors() && counts_memory(); ++t) add_memory(t);
    finish();
  }

 private:
  void add_tensor(int t) {
    const TensorDesc& x = program_.tensor(t).desc;
    const bool copied = may_be_copied(t);
    std::vector<Sharding> lies, all;
    if (!is_free(t) || pins_.allow(t, x.sharding)) lies.push_back(x.sharding);
    if (is_free(t) || copied) all = placements(x.extents, program_.mesh);
    if (is_free(t))
      for (const Sharding& s : pins_.pinned(t) ? pins_.placements(t) : all)
        if (!(s == x.sharding)) lies.push_back(s);
    if (copied) {  // as the tensor was recorded first
      std::erase(all, x.sharding);
      all.insert(all.begin(), x.sharding);
    }
    Places& homes = homes_.emplace_back();
    copies_.emplace_back();
    std::vector<Cost> costs;
    for (const Sharding& s : lies) {
      homes.all.push_back({s});
      costs.push_back(0);
    }
    const bool apart = is_read_from_copy(t);
    for (const Sharding& s : lies)
      for (const Sharding& copy : all) {
        if (!copied || apart || copy == s) continue;
        const Cost toll = toll_to_copy(t, s, copy);
        if (!is_feasible(toll)) continue;
        homes.all.push_back({s, copy});
        costs.push_back(toll);
      }
    if (homes.all.size() > 1 || !(lies[0] == x.sharding))
      homes.variable = network_.add_variable(costs);
    if (apart) add_copies(t, all);
  }
  /// Adds the places of a tensor's copy, which are its own.
  void add_copies(int t, const std::vector<Sharding>& all) {
    Places& copies = copies_.back();
    for (const Sharding& copy : all) copies.all.push_back({copy});
    copies.variable = network_.add_variable(std::vector<Cost>(all.size(), 0));
    std::vector<Cost> costs;
    for (const Home& home : homes(t).all)
      for (const Sharding& copy : all)
        costs.push_back(copy == home.sharding ? 0 : toll_to_copy(t, home.sharding, copy));
    add_pair(homes(t).variable, copies.variable, costs);
  }
  /// A result lies as the argument whose place it takes.
  void add_tie(int argument, int result) {
    if (!is_free(argument) || !is_free(result)) return;
    std::vector<Cost> costs;
    for (const Home& given : homes(argument).all)
      for (const Home& returned : homes(result).all)
        costs.push_back(given.sharding == returned.sharding ? 0 : infeasible);
    add_pair(homes(argument).variable, homes(result).variable, costs);
  }
  /// Counts what the places of a tensor take up, while it is alive.
  void add_memory(int t) {
    TensorLives::Life life = lives_->of(t);
    const int last = TensorLives::operator_at(life.end - 1);
    if (life.begin < life.end && operators_[static_cast<std::size_t>(last)].variable >= 0 &&
        ends_with(last, t))
      life.end = TensorLives::works(last);
    const int made = TensorLives::moves_in(life.first_reader);
    const Places& home = homes(t);
    std::vector<Index> own;
    for (const Home& one : home.all)
      own.push_back(program_.tensor(t).adopted ? 0 : bytes_of(t, one.sharding));
    if (!may_be_copied(t)) return hold(home.variable, life.begin, life.end, own);
    if (is_read_from_copy(t)) return add_memory_apart(t, life, own);
    MovePrices& moves = prices_.moves(program_.tensor(t).desc, {});
    std::vector<Index> making(own.size(), 0), later(own.size(), 0);
    for (std::size_t i = 0; i < own.size(); ++i) {
      const Home& one = home.all[i];
      if (!one.copy) continue;
      if (counts_moves(life.first_reader, t))
        making[i] = moves.move(moves.place(one.sharding), moves.place(*one.copy)).held;
      later[i] = bytes_of(t, *one.copy);
    }
    hold(-1, life.begin, life.end, own);  // it is stated, and lies in one place
    hold(home.variable, made, made + 1, making);
    hold(home.variable, made + 1, life.end, later);
  }
  /// Adds the memory of a tensor whose copy is read in its place; `own`: what it takes up itself.
  void add_memory_apart(int t, const TensorLives::Life& life, const std::vector<Index>& own) {
    const Places& home = homes(t);
    const int made = TensorLives::moves_in(life.first_reader);
    MovePrices& moves = prices_.moves(program_.tensor(t).desc, {});
    const Reads copies = reads_of(t, program_.tensor(t).desc, {});
    if (counts_moves(life.first_reader, t)) {
      const Carried making =
          add_carried(home.variable, home.all.size(), copies.variable, numbers_of(copies.home),
                      [&](std::size_t h, int c) -> MovePrices::Move {
                        const int to = copies.home[static_cast<std::size_t>(c)];
                        return {0, moves.move(moves.place(home.all[h].sharding), to).held};
                      });
      hold(making.variable, made, made + 1, making.held);
    }
    std::vector<Index> copied;
    for (const int to : copies.home) copied.push_back(bytes_of(t, moves.sharding(to)));
    hold(home.variable, life.begin, made + 1, own);
    hold(copies.variable, made + 1, life.end, copied);
  }
  /// Returns a plan's peak on process 0: all processes ask the same question.
  static Index peak_on_first(Plan plan) {
    if (plan.process != 0) move_to_process(plan, 0);
    return plan.peak_bytes;
  }
  void add_fixed(const ProgramEntry& e) {
    fixed_ = add_costs(fixed_, prices_.of(*e.plan));
    fixed_flops_ = saturating_add(fixed_flops_, Prices::flops_of(*e.plan));
    const int i = static_cast<int>(operators_.size()) - 1;
    if (counts_memory())
      hold(-1, TensorLives::works(i), TensorLives::moves_home(i), {peak_on_first(*e.plan)});
    // Its free operands are brought to where it was recorded to read them.
    for (int k = 0; k < e.operands.size(); ++k) {
      const int t = e.operands[k];
      if (!is_free(t)) continue;
      const Reads reads = reads_of(t, e.plan->slots[k].desc, e.contract);
      const int to = reads.moves->place(e.plan->slots[k].desc.sharding);
      std::vector<Cost> costs;
      std::vector<Index> moving, moved;
      for (std::size_t at = 0; at < reads.size(); ++at) {
        const MovePrices::Move move = reads.move(at, to);
        costs.push_back(move.toll);
        moving.push_back(move.held);
        moved.push_back(move.held > 0 ? bytes_of(t, reads.moves->sharding(to)) : 0);
      }
      add_pair(reads.variable, -1, costs);
      if (!counts_memory()) continue;
      hold(reads.variable, TensorLives::moves_in(i), TensorLives::works(i), moving);
      hold(reads.variable, TensorLives::works(i), TensorLives::moves_home(i), moved);
    }
  }
  void add_move(const ProgramEntry& e) {
    const int t = e.operands[0];
    const Reads reads = reads_of(t, program_.tensor(t).desc, e.contract);
    std::vector<int> to, targets;  // the shardings of the result, and which of them each place has
    for (const Home& one : homes(e.result).all) {
      const int place = reads.moves->place(one.sharding);
      const auto at = std::find(to.begin(), to.end(), place);
      targets.push_back(static_cast<int>(at - to.begin()));
      if (at == to.end()) to.push_back(place);
    }
    const bool moves = operators_.back().must_move = makes_own(e) && !may_become_result(e);
    const auto move = [&](std::size_t at, int target) {
      MovePrices::Move one = reads.move(at, to[static_cast<std::size_t>(target)]);
      if (moves && one.toll == 0) one.toll = infeasible;
      return one;
    };
    const int made = homes(e.result).variable;
    const int i = static_cast<int>(operators_.size()) - 1;
    if (counts_moves(i, t)) {
      const Carried carried = add_carried(reads.variable, reads.size(), made, targets, move);
      return hold(carried.variable, TensorLives::works(i), TensorLives::moves_home(i),
                  carried.held);
    }
    std::vector<Cost> costs;
    for (std::size_t at = 0; at < reads.size(); ++at)
      for (const int target : targets) costs.push_back(move(at, target).toll);
    add_pair(reads.variable, made, costs);
  }
  /// Returns whether an operator of one tensor, which may move elements as it works, is priced by
  /// its plans from every place to every other.
  bool is_planned_whole(const ProgramEntry& e) {
    const bool plain = e.operands.size() == 1 && e.also.empty() && e.operands[0] != e.result &&
                       e.plan->destination == Destination::fresh;
    const bool limited = counts_memory() || options_of_choice_.flops_limit != max_int64;
    if (!plain || limited || e.plan->kind == OperatorKind::map) return false;
    const bool few = shardings(e.operands[0]).size() * shardings(e.result).size() <= most_calls;
    exact_ = exact_ && few;
    return few;
  }
  void add_whole(int i) {
    const ProgramEntry& e = program_.entry(i);
    const Places &from = homes(e.operands[0]), &to = homes(e.result);
    std::vector<Cost> costs;
    for (const Home& begin : from.all)
      for (const Home& end : to.all) {
        costs.push_back(whole(i, begin.sharding, end.sharding));
        if (begin.copy) costs.back() = std::min(costs.back(), whole(i, *begin.copy, end.sharding));
      }
    add_pair(from.variable, to.variable, costs);
  }
  void add_operator(int i) {
    const ProgramEntry& e = program_.entry(i);
    operators_.emplace_back();
    if (is_move(e)) return add_move(e);
    if (!is_open(e)) return add_fixed(e);
    const TensorDescs descs = operands_of(e);
    const std::vector<PricedWay>& ways = prices_.ways(e, descs, e.plan->result_desc());
    if (ways.empty()) return add_fixed(e);
    Operator& of = operators_.back();
    of.ways = &ways;
    const auto tolls_of = [&](const TensorDesc& x, const auto& in_way) {
      Tolls tolls{&prices_.moves(x, e.contract), {}};
      for (const PricedWay& way : ways) tolls.to.push_back(tolls.moves->place(in_way(way)));
      return tolls;
    };
    for (int k = 0; k < descs.size(); ++k)
      of.operands.push_back(
          tolls_of(descs[k], [&](const PricedWay& way) { return way.way.operands[k]; }));
    of.results.push_back(
        tolls_of(e.plan->result_desc(), [&](const PricedWay& way) { return way.way.out; }));
    for (int k = 0; k < e.also.size(); ++k)
      of.results.push_back(tolls_of(program_.tensor(e.also[k]).desc,
                                    [&](const PricedWay& way) { return way.further[k]; }));
    if (is_planned_whole(e)) return add_whole(i);
    std::vector<Cost> costs, flops;
    for (std::size_t w = 0; w < ways.size(); ++w) {
      costs.push_back(cost_of_way(i, w));
      flops.push_back(ways[w].flops / flops_unit());
    }
    of.variable = network_.add_variable(costs);
    if (options_of_choice_.flops_limit != max_int64) network_.add_usage(of.variable, 0, 1, flops);
    if (counts_memory()) add_work(i);
    for (std::size_t k = 0; k < of.operands.size(); ++k) add_reads(i, k);
    for (std::size_t k = 0; k < of.results.size(); ++k) add_made(i, k);
  }
  /// Counts what an operator takes up in each way, and its operands there that end with it: such a
  /// tensor ends with its move, if it is moved.
  void add_work(int i) {
    const ProgramEntry& e = program_.entry(i);
    const Operator& of = operators_[static_cast<std::size_t>(i)];
    std::vector<Index> bytes;
    for (std::size_t w = 0; w < of.ways->size(); ++w) {
      bytes.push_back((*of.ways)[w].workspace);
      for (std::size_t k = 0; k < of.operands.size(); ++k)
        if (const int t = e.operands[static_cast<int>(k)]; ends_with(i, t))
          bytes.back() += bytes_of(t, of.operands[k].moves->sharding(of.operands[k].to[w]));
    }
    hold(of.variable, TensorLives::works(i), TensorLives::moves_home(i), bytes);
  }
  /// Returns whether an operator with ways is the last that has a tensor, which it reads once.
  bool ends_with(int i, int t) const {
    const ProgramEntry& e = program_.entry(i);
    return is_free(t) && lives_->of(t).end == TensorLives::moves_home(i) && t != e.result &&
           std::count(e.operands.begin(), e.operands.end(), t) == 1 &&
           std::count(e.also.begin(), e.also.end(), t) == 0;
  }
  /// Adds the prices of bringing result k home from each way.
  void add_made(int i, std::size_t k) {
    const Operator& of = operators_[static_cast<std::size_t>(i)];
    const int t = result(program_.entry(i), k);
    const Places& to = homes(t);
    MovePrices& moves = *of.results[k].moves;
    std::vector<int> home;
    for (const Home& one : to.all) home.push_back(moves.place(one.sharding));
    if (counts_moves(i, t)) {
      const Targets targets = targets_of(of.results[k].to);
      const Carried carried = add_carried(
          to.variable, home.size(), of.variable, targets.of_way,
          [&](std::size_t h, int target) -> MovePrices::Move {
            const std::size_t w = targets.way[static_cast<std::size_t>(target)];
            return {toll_home(i, k, w, home[h]), moves.move(of.results[k].to[w], home[h]).held};
          });
      std::vector<Index> held;
      for (std::size_t v = 0; v < carried.target.size(); ++v) {
        const int out = of.results[k].to[targets.way[static_cast<std::size_t>(carried.target[v])]];
        held.push_back(bytes_of(t, moves.sharding(out)) + carried.held[v]);
      }
      return hold(carried.variable, TensorLives::moves_home(i), TensorLives::moves_in(i + 1), held);
    }
    std::vector<Cost> costs;
    for (const int place : home)
      for (std::size_t w = 0; w < of.ways->size(); ++w) costs.push_back(toll_home(i, k, w, place));
    add_pair(to.variable, of.variable, costs);
  }
  /// Adds the prices of bringing operand k to each way.
  void add_reads(int i, std::size_t k) {
    const Operator& of = operators_[static_cast<std::size_t>(i)];
    const ProgramEntry& e = program_.entry(i);
    const int t = e.operands[static_cast<int>(k)];
    const Reads reads = reads_of(t, e.plan->slots[static_cast<int>(k)].desc, e.contract);
    const auto move = [&](std::size_t at, std::size_t w) -> MovePrices::Move {
      if (same_move(i, k, w)) return {0, 0};
      return reads.move(at, of.operands[k].to[w]);
    };
    if (counts_moves(i, t)) return carry(i, k, t, reads, move);
    std::vector<Cost> costs;
    costs.reserve(reads.size() * of.ways->size());
    for (std::size_t at = 0; at < reads.size(); ++at)
      for (std::size_t w = 0; w < of.ways->size(); ++w) costs.push_back(move(at, w).toll);
    add_pair(reads.variable, of.variable, costs);
  }
  /// Adds the moves of operand k, and what they take up.
  template <class Move>
  void carry(int i, std::size_t k, int t, const Reads& reads, const Move& move) {
    const Operator& of = operators_[static_cast<std::size_t>(i)];
    std::vector<int> to = of.operands[k].to;
    for (std::size_t w = 0; w < to.size(); ++w)
      if (same_move(i, k, w)) to[w] = -1;  // a target of its own
    const Targets targets = targets_of(to);
    const Carried carried =
        add_carried(reads.variable, reads.size(), of.variable, targets.of_way,
                    [&](std::size_t place, int target) {
                      return move(place, targets.way[static_cast<std::size_t>(target)]);
                    });
    std::vector<Index> held;
    for (std::size_t v = 0; v < carried.target.size(); ++v) {
      const int place = to[targets.way[static_cast<std::size_t>(carried.target[v])]];
      const bool counts = place >= 0 && carried.held[v] > 0 && !ends_with(i, t);
      held.push_back(counts ? bytes_of(t, of.operands[k].moves->sharding(place)) : 0);
    }
    hold(carried.variable, TensorLives::moves_in(i), TensorLives::works(i), carried.held);
    hold(carried.variable, TensorLives::works(i), TensorLives::moves_home(i), held);
  }

  bool exact_ = true;  ///< whether operators of one tensor are planned whole
};

}  // namespace tessera::detail
