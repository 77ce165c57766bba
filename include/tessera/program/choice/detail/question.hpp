// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The question that a choice answers, as a cost network: a variable for each tensor, whose values
/// are shardings, one for the copy that all of its readers share, one for each operator, its ways,
/// and between them the prices of moving to a way.
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
  /// Makes the network, anew once moves of more operators are counted.
  void build() {
    homes_.clear();
    copies_.clear();
    operators_.clear();
    begin();
    for (int t = 0; t < tensors(); ++t) add_tensor(t);
    for (const TensorPin& pin : program_.pins())
      if (pin.like >= 0) add_tie(pin.like, pin.tensor);
    for (int i = 0; i < program_.size(); ++i) add_operator(i);
    for (int t = 0; t < tensors() && counts_memory(); ++t) add_memory(t);
    finish();
  }

 private:
  void add_tensor(int t) {
    const ProgramTensor& tensor = program_.tensor(t);
    const Sharding& own = tensor.desc.sharding;
    homes_.push_back({-1, {own}});
    copies_.push_back({-1, {own}});
    const bool copied = may_be_copied(t);
    if (!is_free(t) && !copied) return;
    const std::vector<Sharding> all = placements(tensor.desc.extents, program_.mesh);
    const auto add = [&](Places& places, const std::vector<Sharding>& others) {
      for (const Sharding& s : others)
        if (!(s == own)) places.all.push_back(s);
      if (places.all.size() > 1 || !(places.all[0] == own))
        places.variable = network_.add_variable(std::vector<Cost>(places.all.size(), 0));
    };
    if (is_free(t)) {
      if (!pins_.allow(t, own)) homes_.back().all.clear();
      add(homes_.back(), pins_.pinned(t) ? pins_.placements(t) : all);
    }
    if (copied) add(copies_.back(), all);
    if (copies(t).variable < 0) return;
    std::vector<Cost> costs;
    for (const Sharding& home : homes(t).all)
      for (const Sharding& copy : copies(t).all) costs.push_back(toll_to_copy(t, home, copy));
    add_pair(homes(t).variable, copies(t).variable, costs);
  }
  /// A result lies as the argument whose place it takes.
  void add_tie(int argument, int result) {
    if (!is_free(argument) || !is_free(result)) return;
    std::vector<Cost> costs;
    for (const Sharding& given : homes(argument).all)
      for (const Sharding& returned : homes(result).all)
        costs.push_back(given == returned ? 0 : infeasible);
    add_pair(homes(argument).variable, homes(result).variable, costs);
  }
  /// Counts what the places of a tensor take up, while it is alive. A free tensor that has a copy
  /// is read from the copy alone, so that it ends where its first reader begins.
  void add_memory(int t) {
    TensorLives::Life life = lives_->of(t);
    const int last = TensorLives::operator_at(life.end - 1);
    if (life.begin < life.end && operators_[static_cast<std::size_t>(last)].variable >= 0 &&
        ends_with(last, t))
      life.end = TensorLives::works(last);
    const Places &home = homes(t), &copy = copies(t);
    const auto bytes = [&](const Places& places) {
      std::vector<Index> all;
      for (const Sharding& s : places.all) all.push_back(bytes_of(t, s));
      return all;
    };
    std::vector<Index> at_home = bytes(home);
    if (program_.tensor(t).adopted) at_home.assign(at_home.size(), 0);
    if (copy.variable < 0) return hold(home.variable, life.begin, life.end, at_home);
    const int made = TensorLives::moves_in(life.first_reader);
    if (counts_moves(life.first_reader, t)) {
      MovePrices& moves = prices_.moves(program_.tensor(t).desc, {});
      const std::vector<int> from = moves.places_of(home.all), to = moves.places_of(copy.all);
      const Carried making =
          add_carried(home.variable, from.size(), copy.variable, numbers_of(to),
                      [&](std::size_t h, int c) -> MovePrices::Move {
                        return {0, moves.move(from[h], to[static_cast<std::size_t>(c)]).held};
                      });
      hold(making.variable, made, made + 1, making.held);
    }
    hold(home.variable, life.begin, is_free(t) ? made + 1 : life.end, at_home);
    std::vector<Index> copied = bytes(copy);
    if (!is_free(t)) copied[0] = 0;  // its home
    hold(copy.variable, made + 1, life.end, copied);
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
    // Its operands are brought to where it was recorded to read them.
    for (int k = 0; k < e.operands.size(); ++k) {
      const int t = e.operands[k];
      const TensorDesc& x = e.plan->slots[k].desc;
      std::vector<Cost> costs;
      for (const Sharding& from : read_from(t).all)
        costs.push_back(from == program_.tensor(t).desc.sharding
                            ? 0
                            : prices_.toll(x, from, x.sharding, e.contract));
      add_pair(read_from(t).variable, -1, costs);
      if (!counts_memory() || !is_free(t)) continue;
      MovePrices& moves = prices_.moves(x, e.contract);
      std::vector<Index> moving, moved;
      for (const int place : moves.places_of(read_from(t).all)) {
        moving.push_back(moves.move(place, moves.place(x.sharding)).held);
        moved.push_back(moving.back() > 0 ? bytes_of(t, x.sharding) : 0);
      }
      hold(read_from(t).variable, TensorLives::moves_in(i), TensorLives::works(i), moving);
      hold(read_from(t).variable, TensorLives::works(i), TensorLives::moves_home(i), moved);
    }
  }
  void add_move(const ProgramEntry& e) {
    const int t = e.operands[0];
    const Places &from = sources(t), &to = homes(e.result);
    MovePrices& moves = prices_.moves(program_.tensor(t).desc, e.contract);
    const std::vector<int> begin = moves.places_of(from.all), end = moves.places_of(to.all);
    const int at_home = moves.place(homes(t).all[0]);
    const auto move = [&](std::size_t h, int target) {
      const int there = end[static_cast<std::size_t>(target)];
      MovePrices::Move one = moves.move(begin[h], there);
      if (!is_free(t) && moves.toll(at_home, there) <= one.toll) one = moves.move(at_home, there);
      if (makes_own(e) && one.toll == 0) one.toll = infeasible;
      return one;
    };
    const int i = static_cast<int>(operators_.size()) - 1;
    if (counts_moves(i, t)) {
      const Carried carried =
          add_carried(from.variable, begin.size(), to.variable, numbers_of(end), move);
      return hold(carried.variable, TensorLives::works(i), TensorLives::moves_home(i),
                  carried.held);
    }
    std::vector<Cost> costs;
    for (std::size_t h = 0; h < begin.size(); ++h)
      for (std::size_t j = 0; j < end.size(); ++j)
        costs.push_back(move(h, static_cast<int>(j)).toll);
    add_pair(from.variable, to.variable, costs);
  }
  /// Returns whether an operator of one tensor, which may move elements as it works, is priced by
  /// its plans from every place to every other.
  bool is_planned_whole(const ProgramEntry& e) const {
    const bool plain = e.operands.size() == 1 && e.also.empty() && e.operands[0] != e.result &&
                       e.plan->destination == Destination::fresh;
    const bool limited = counts_memory() || options_of_choice_.flops_limit != max_int64;
    return plain && !limited && e.plan->kind != OperatorKind::map &&
           read_from(e.operands[0]).all.size() * homes(e.result).all.size() <= most_calls;
  }
  void add_whole(int i) {
    const ProgramEntry& e = program_.entry(i);
    const int t = e.operands[0];
    const Places &from = sources(t), &to = homes(e.result);
    std::vector<Cost> costs;
    for (const Sharding& begin : from.all)
      for (const Sharding& end : to.all) {
        costs.push_back(whole(i, begin, end));
        if (!is_free(t)) costs.back() = std::min(costs.back(), whole(i, homes(t).all[0], end));
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
    const std::vector<int> home = moves.places_of(to.all);
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
  /// Adds the prices of bringing operand k to each way. A tensor that is not free is read where it
  /// lies or from its copy; a free one from its copy, which may lie where it does.
  void add_reads(int i, std::size_t k) {
    const Operator& of = operators_[static_cast<std::size_t>(i)];
    const int t = program_.entry(i).operands[static_cast<int>(k)];
    MovePrices& moves = *of.operands[k].moves;
    const Places& from = sources(t);
    const int own = moves.place(homes(t).all[0]);
    const std::vector<int> places = moves.places_of(from.all);
    const auto move = [&](std::size_t place, std::size_t w) -> MovePrices::Move {
      const int to = of.operands[k].to[w];
      if (same_move(i, k, w)) return {0, 0};
      const MovePrices::Move one = moves.move(places[place], to);
      if (is_free(t)) return one;
      const MovePrices::Move from_own = moves.move(own, to);
      return from_own.toll <= one.toll ? from_own : one;
    };
    if (counts_moves(i, t)) return carry(i, k, t, from, move);
    std::vector<Cost> costs;
    costs.reserve(from.all.size() * of.ways->size());
    for (std::size_t place = 0; place < places.size(); ++place)
      for (std::size_t w = 0; w < of.ways->size(); ++w) costs.push_back(move(place, w).toll);
    add_pair(from.variable, of.variable, costs);
  }
  /// Adds the moves of operand k, and what they take up.
  template <class Move>
  void carry(int i, std::size_t k, int t, const Places& from, const Move& move) {
    const Operator& of = operators_[static_cast<std::size_t>(i)];
    std::vector<int> to = of.operands[k].to;
    for (std::size_t w = 0; w < to.size(); ++w)
      if (same_move(i, k, w)) to[w] = -1;  // a target of its own
    const Targets targets = targets_of(to);
    const Carried carried =
        add_carried(from.variable, from.all.size(), of.variable, targets.of_way,
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
};

}  // namespace tessera::detail
