// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Where the tensors of a question may lie, the ways of its operators, and what an assignment says
/// of both.
///
///     question.home(tensor, assignment);   question.way(operator, assignment)
///
/// Laws: those of program/choice.hpp.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/program/choice/detail/network.hpp>

namespace tessera::detail {

/// Where a tensor lies: under one sharding, and perhaps copied to another, once for all that read
/// it there.
struct Home {
  Sharding sharding;
  std::optional<Sharding> copy = {};
};

class ChoicePlaces : public ChoiceNetwork {
 public:
  /// Where a tensor may lie, and which variable of the network says so; -1: it has one place.
  struct Places {
    int variable = -1;
    std::vector<Home> all;
    std::size_t at(const Assignment& a) const {
      return variable < 0 ? 0 : static_cast<std::size_t>(a[static_cast<std::size_t>(variable)]);
    }
  };

  ChoicePlaces(const Program& program, const PlanOptions& planning, const ChooseOptions& options)
      : ChoiceNetwork(program, planning, options),
        kept_prices_(options.prices != nullptr
                         ? options.prices
                         : std::make_shared<Prices>(program, planning, options)),
        prices_(*kept_prices_) {}

  Prices& prices() { return prices_; }
  const Prices& prices() const { return prices_; }
  /// Returns where a tensor may lie, with and without a copy, and where it does.
  const Places& homes(int t) const { return homes_[static_cast<std::size_t>(t)]; }
  Home home(int t, const Assignment& a) const {
    Home home = homes(t).all[homes(t).at(a)];
    const Places& copies = copies_[static_cast<std::size_t>(t)];
    if (copies.variable < 0) return home;
    const Sharding& copy = copies.all[copies.at(a)].sharding;
    if (!(copy == home.sharding)) home.copy = copy;
    return home;
  }
  /// Returns the shardings that a tensor itself may have.
  std::vector<Sharding> shardings(int t) const {
    std::vector<Sharding> all;
    for (const Home& one : homes(t).all)
      if (std::find(all.begin(), all.end(), one.sharding) == all.end()) all.push_back(one.sharding);
    return all;
  }
  /// Returns whether a tensor's sharding is to be found: else it is as the Program has it.
  bool has_choice(int t) const {
    const Sharding& own = program_.tensor(t).desc.sharding;
    return std::any_of(homes(t).all.begin(), homes(t).all.end(),
                       [&](const Home& one) { return !(one.sharding == own); });
  }
  /// Returns the ways of operator i, and their variable; null, -1 where it has no choice.
  const std::vector<PricedWay>* ways(int i) const {
    return operators_[static_cast<std::size_t>(i)].ways;
  }
  int way_variable(int i) const { return operators_[static_cast<std::size_t>(i)].variable; }
  /// Returns the way of operator i; null where it has no choice.
  const PricedWay* way(int i, const Assignment& a) {
    const Operator& of = operators_[static_cast<std::size_t>(i)];
    if (of.ways == nullptr) return nullptr;
    const std::size_t number =
        of.variable < 0 ? best_way(i, a).first  // of one tensor: that of least price
                        : static_cast<std::size_t>(a[static_cast<std::size_t>(of.variable)]);
    return &(*of.ways)[number];
  }
  /// Returns the number of the way of least price between the homes of an operator's tensors, and
  /// that price.
  std::pair<std::size_t, Cost> best_way(int i, const Assignment& a) {
    const Operator& of = operators_[static_cast<std::size_t>(i)];
    const ProgramEntry& e = program_.entry(i);
    FixedVector<FixedVector<int, 2>, max_operands> from;
    for (std::size_t k = 0; k < of.operands.size(); ++k) {
      const Home at = home(e.operands[static_cast<int>(k)], a);
      from.push_back({});
      from.back().push_back(of.operands[k].moves->place(at.sharding));
      if (at.copy) from.back().push_back(of.operands[k].moves->place(*at.copy));
    }
    FixedVector<int, max_operands> to;
    for (std::size_t k = 0; k < of.results.size(); ++k)
      to.push_back(of.results[k].moves->place(home(result(e, k), a).sharding));
    std::pair<std::size_t, Cost> best{0, infeasible};
    for (std::size_t w = 0; w < of.ways->size(); ++w) {
      Cost cost = cost_of_way(i, w);
      for (std::size_t k = 0; k < of.operands.size() && cost < best.second; ++k) {
        if (same_move(i, k, w)) continue;
        Cost least = infeasible;
        for (const int place : from[static_cast<int>(k)])
          least = std::min(least, of.operands[k].moves->toll(place, of.operands[k].to[w]));
        cost = add_costs(cost, least);
      }
      for (std::size_t k = 0; k < of.results.size() && cost < best.second; ++k)
        cost = add_costs(cost, toll_home(i, k, w, to[static_cast<int>(k)]));
      if (cost < best.second) best = {w, cost};
    }
    return best;
  }
  /// Returns the price of a tensor's copy. That of a free tensor lies where the tensor does,
  /// without some of the axes, or none.
  Cost toll_to_copy(int t, const Sharding& home, const Sharding& copy) {
    for (int d = 0; d < home.rank() && is_free(t); ++d)
      if (!(copy[d].set() - home[d].set()).empty()) return infeasible;
    return prices_.toll(program_.tensor(t).desc, home, copy, {});
  }
  /// Where a tensor is read from, its home or its copy, and the price of bringing it to its reader.
  struct Source {
    Sharding sharding;
    bool copy = false;
    Cost toll = 0;
  };
  /// Returns that of least price; of equal ones, its home.
  Source source(const TensorDesc& x, const Home& from, const Sharding& to,
                const Contract& contract) {
    const Source own{from.sharding, false, prices_.toll(x, from.sharding, to, contract)};
    if (!from.copy) return own;
    const Source other{*from.copy, true, prices_.toll(x, *from.copy, to, contract)};
    return other.toll < own.toll ? other : own;
  }
  /// Returns the least price of an operator of one tensor from a place to a sharding: of its plan,
  /// or by one of its ways.
  Cost whole(int i, const Sharding& from, const Sharding& out) {
    const ProgramEntry& e = program_.entry(i);
    const Operator& of = operators_[static_cast<std::size_t>(i)];
    const TensorDesc& x = e.plan->slots[0].desc;
    Cost least = prices_.direct(e, {{x.type, x.extents, from}}, out, makes_own(e));
    const int begin = of.operands[0].moves->place(from), end = of.results[0].moves->place(out);
    for (std::size_t w = 0; w < of.ways->size(); ++w)
      least = std::min(least,
                       add_costs(cost_of_way(i, w),
                                 add_costs(of.operands[0].moves->toll(begin, of.operands[0].to[w]),
                                           toll_home(i, 0, w, end))));
    return least;
  }
  /// Returns whether move i makes a tensor of its own even where there is nothing to move: the
  /// caller keeps the result, or an operator changes it or the operand.
  bool must_move(int i) const { return operators_[static_cast<std::size_t>(i)].must_move; }
  const Program& program() const { return program_; }

 protected:
  /// What an operator reads or makes in each of its ways, as numbers of `moves`.
  struct Tolls {
    MovePrices* moves = nullptr;
    std::vector<int> to;
  };
  /// Where a tensor is read from in each of its places, as numbers of `moves`: its home or its
  /// copy; -1: it has none.
  struct Reads {
    int variable = -1;  ///< of the places
    MovePrices* moves = nullptr;
    std::vector<int> home = {}, copy = {};
    std::size_t size() const { return home.size(); }
    /// Returns the move of least price from place `at` to `to`; of equal ones, that from home.
    MovePrices::Move move(std::size_t at, int to) const {
      if (copy[at] < 0) return moves->move(home[at], to);
      const MovePrices::Move other = moves->move(copy[at], to);
      const MovePrices::Move& own = moves->move(home[at], to);
      return own.toll <= other.toll ? own : other;
    }
  };
  /// Where memory is counted, a free tensor that may have a copy is read from that alone, which may
  /// lie where the tensor does: so the tensor itself ends where its first reader begins.
  bool is_read_from_copy(int t) const { return counts_memory() && is_free(t) && may_be_copied(t); }
  Reads reads_of(int t, const TensorDesc& x, const Contract& contract) {
    const Places& places = is_read_from_copy(t) ? copies_[static_cast<std::size_t>(t)] : homes(t);
    Reads reads{places.variable, &prices_.moves(x, contract)};
    for (const Home& one : places.all) {
      reads.home.push_back(reads.moves->place(one.sharding));
      reads.copy.push_back(one.copy ? reads.moves->place(*one.copy) : -1);
    }
    return reads;
  }
  struct Operator {
    int variable = -1;
    const std::vector<PricedWay>* ways = nullptr;
    std::vector<Tolls> operands, results;
    bool must_move = false;
  };
  /// Returns whether a move's operand may become its result, which the caller keeps, where nothing
  /// is to be moved: an operator makes it, which returns none of its own operands, and no other
  /// reads or changes it.
  bool may_become_result(const ProgramEntry& e) const {
    const int from = e.operands[0];
    const ProgramTensor& tensor = program_.tensor(from);
    if (tensor.made < 0 || tensor.last >= program_.size() || is_written(from) ||
        is_written(e.result) || is_move(program_.entry(tensor.made)))
      return false;
    int readers = 0;
    for (int i = tensor.made; i <= tensor.last; ++i)
      for (const int t : program_.entry(i).operands) readers += t == from ? 1 : 0;
    const std::vector<PricedWay>* const ways = this->ways(tensor.made);
    return readers == 1 && (ways == nullptr ||
                            std::none_of(ways->begin(), ways->end(),
                                         [](const PricedWay& way) { return way.returns_operand; }));
  }

  static int result(const ProgramEntry& e, std::size_t k) {
    return k == 0 ? e.result : e.also[static_cast<int>(k) - 1];
  }
  /// Returns whether operand k is an earlier operand again, and goes to the same place, so that it
  /// is moved once.
  bool same_move(int i, std::size_t k, std::size_t w) const {
    const ProgramEntry& e = program_.entry(i);
    const Operator& of = operators_[static_cast<std::size_t>(i)];
    for (std::size_t j = 0; j < k; ++j)
      if (e.operands[static_cast<int>(j)] == e.operands[static_cast<int>(k)] &&
          of.operands[j].to[w] == of.operands[k].to[w])
        return true;
    return false;
  }
  Cost cost_of_way(int i, std::size_t w) const {
    const PricedWay& way = (*operators_[static_cast<std::size_t>(i)].ways)[w];
    return way.returns_operand && makes_own(program_.entry(i)) ? infeasible : way.cost;
  }
  /// Returns the price of moving result k from where a way makes it; what is not fresh is made
  /// where it lies.
  Cost toll_home(int i, std::size_t k, std::size_t w, int home) const {
    const Tolls& tolls = operators_[static_cast<std::size_t>(i)].results[k];
    if (k == 0 && program_.entry(i).plan->destination != Destination::fresh)
      return tolls.to[w] == home ? 0 : infeasible;
    return tolls.moves->toll(tolls.to[w], home);
  }
  std::shared_ptr<Prices> kept_prices_;  ///< which other questions may have, too
  Prices& prices_;
  /// The places of each tensor; copies have places of their own where they alone are read.
  std::vector<Places> homes_, copies_;
  std::vector<Operator> operators_;
};

}  // namespace tessera::detail
