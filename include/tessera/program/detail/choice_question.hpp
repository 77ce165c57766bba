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
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/program/detail/free_tensors.hpp>
#include <tessera/program/detail/over_processes.hpp>
#include <tessera/program/detail/way_prices.hpp>
#include <tessera/solve/cost_network.hpp>

namespace tessera::detail {

/// Where a tensor lies: under one sharding, and perhaps copied to another, once for all that read
/// it there.
struct Home {
  Sharding sharding;
  std::optional<Sharding> copy = {};
};

class ChoiceQuestion : public FreeTensors {
 public:
  /// Where something may lie, and which variable of the network says so; -1: it has one place.
  struct Places {
    int variable = -1;
    std::vector<Sharding> all;
    std::size_t at(const Assignment& a) const {
      return variable < 0 ? 0 : static_cast<std::size_t>(a[static_cast<std::size_t>(variable)]);
    }
  };

  ChoiceQuestion(const Program& program, const PlanOptions& planning, const ChooseOptions& options)
      : FreeTensors(program, planning, options), prices_(program, planning, options.objective) {
    fixed_bytes_.assign(program_.entries().size(), 0);
    for (int t = 0; t < tensors(); ++t) {
      add_tensor(t);
      if (counts_memory()) add_memory(t);
    }
    for (int i = 0; i < program.size(); ++i) add_operator(i);
    for (const auto& [pair, costs] : pairs_) network_.add_pair(pair.first, pair.second, costs);
    limit(options.flops_limit, options.memory_limit);
  }
  /// Sets the limits of the network; a second call corrects them. Time 0 is for flops, time i + 1
  /// for the memory while operator i runs.
  void limit(Index flops, Index memory) {
    if (options_of_choice_.flops_limit != max_int64)
      network_.set_limit(0, 1, std::max<Index>(0, flops - fixed_flops_) / flops_unit());
    if (options_of_choice_.memory_limit == max_int64) return;
    for (int i = 0; i < program_.size(); ++i)
      network_.set_limit(
          i + 1, i + 2,
          std::max<Index>(0, memory - fixed_bytes_[static_cast<std::size_t>(i)]) / bytes_unit());
  }

  const CostNetwork& network() const { return network_; }
  Prices& prices() { return prices_; }
  /// The price of operators that have no choice.
  Cost fixed() const { return fixed_; }
  /// Returns where a tensor may lie, and where its copy may; the copy at its home is none.
  const Places& homes(int t) const { return homes_[static_cast<std::size_t>(t)]; }
  const Places& copies(int t) const { return copies_[static_cast<std::size_t>(t)]; }
  Home home(int t, const Assignment& a) const {
    Home home{homes(t).all[homes(t).at(a)]};
    if (copies(t).variable < 0) return home;
    const Sharding& copy = copies(t).all[copies(t).at(a)];
    if (!(copy == home.sharding)) home.copy = copy;
    return home;
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
  /// Returns the price of reading a tensor under another sharding.
  Cost read(const TensorDesc& x, const Home& from, const Sharding& to, const Contract& contract) {
    const Cost cost = prices_.toll(x, from.sharding, to, contract);
    return from.copy ? std::min(cost, prices_.toll(x, *from.copy, to, contract)) : cost;
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
  const Program& program() const { return program_; }

 private:
  /// What an operator reads or makes in each of its ways, as numbers of `moves`.
  struct Tolls {
    MovePrices* moves = nullptr;
    std::vector<int> to;
  };
  struct Operator {
    int variable = -1;
    const std::vector<PricedWay>* ways = nullptr;
    std::vector<Tolls> operands, results;
  };

  /// In what a limit is counted, so that it is a number of twenty bits.
  Index flops_unit() const { return std::max<Index>(1, options_of_choice_.flops_limit >> 20); }
  Index bytes_unit() const { return std::max<Index>(1, options_of_choice_.memory_limit >> 20); }
  bool counts_memory() const { return options_of_choice_.memory_limit != max_int64; }
  /// Returns the bytes of a tensor on process 0 under a sharding.
  Index bytes_of(int t, const Sharding& sharding) const {
    ProgramTensor tensor = program_.tensor(t);
    tensor.desc.sharding = sharding;
    return charge_of(tensor, program_.mesh, program_.mesh.coordinates(0));
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
  /// Returns from where a tensor is read: its copy, where there may be one of a free tensor, else
  /// its home.
  const Places& source(int t) const {
    return copies(t).variable >= 0 && is_free(t) ? copies(t) : homes(t);
  }

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
  /// Counts what the places of a tensor take up, while it is alive.
  void add_memory(int t) {
    const ProgramTensor& tensor = program_.tensor(t);
    const int begin = tensor.made < 0 ? tensor.first : tensor.made + 1;
    const int end = std::min(tensor.last, program_.size() - 1) + 1;
    if (begin >= end || tensor.adopted) return;
    const Sharding& own = homes(t).all[0];
    if (!is_free(t))
      for (int i = begin; i < end; ++i)
        fixed_bytes_[static_cast<std::size_t>(i)] += bytes_of(t, own);
    const Places& places = is_free(t) ? source(t) : copies(t);
    if (places.variable < 0) return;
    std::vector<Cost> bytes;
    for (const Sharding& s : places.all)
      bytes.push_back(!is_free(t) && s == own ? 0 : bytes_of(t, s) / bytes_unit());
    network_.add_usage(places.variable, begin + 1, end + 1, bytes);
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
  void add_fixed(const ProgramEntry& e) {
    fixed_ = add_costs(fixed_, prices_.of(*e.plan));
    fixed_flops_ = saturating_add(fixed_flops_, Prices::flops_of(*e.plan));
    // Its operands are brought to where it was recorded to read them.
    for (int k = 0; k < e.operands.size(); ++k) {
      const int t = e.operands[k];
      const TensorDesc& x = e.plan->slots[k].desc;
      std::vector<Cost> costs;
      for (const Sharding& from : source(t).all)
        costs.push_back(from == program_.tensor(t).desc.sharding
                            ? 0
                            : prices_.toll(x, from, x.sharding, e.contract));
      add_pair(source(t).variable, -1, costs);
    }
  }
  void add_move(const ProgramEntry& e) {
    const Places &from = source(e.operands[0]), &to = homes(e.result);
    const bool own = makes_own(e);
    std::vector<Cost> costs;
    for (const Sharding& begin : from.all)
      for (const Sharding& end : to.all) {
        const Cost cost = prices_.toll(program_.tensor(e.operands[0]).desc, begin, end, e.contract);
        costs.push_back(own && cost == 0 ? infeasible : cost);
      }
    add_pair(from.variable, to.variable, costs);
  }
  /// Returns whether an operator of one tensor, which may move elements as it works, is priced by
  /// its plans from every place to every other.
  bool is_planned_whole(const ProgramEntry& e) const {
    const bool plain = e.operands.size() == 1 && e.also.empty() && e.operands[0] != e.result &&
                       e.plan->destination == Destination::fresh;
    const bool limited = counts_memory() || options_of_choice_.flops_limit != max_int64;
    return plain && !limited && e.plan->kind != OperatorKind::map &&
           source(e.operands[0]).all.size() * homes(e.result).all.size() <= 1024;
  }
  void add_whole(int i) {
    const ProgramEntry& e = program_.entry(i);
    const Places &from = source(e.operands[0]), &to = homes(e.result);
    std::vector<Cost> costs;
    for (const Sharding& begin : from.all)
      for (const Sharding& end : to.all) costs.push_back(whole(i, begin, end));
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
    std::vector<Cost> costs, flops, bytes;
    for (std::size_t w = 0; w < ways.size(); ++w) {
      costs.push_back(cost_of_way(i, w));
      flops.push_back(ways[w].flops / flops_unit());
      bytes.push_back(ways[w].workspace / bytes_unit());
    }
    of.variable = network_.add_variable(costs);
    if (options_of_choice_.flops_limit != max_int64) network_.add_usage(of.variable, 0, 1, flops);
    if (counts_memory()) network_.add_usage(of.variable, i + 1, i + 2, bytes);
    for (std::size_t k = 0; k < of.operands.size(); ++k) add_reads(i, k);
    for (std::size_t k = 0; k < of.results.size(); ++k) {
      const Places& to = homes(result(e, k));
      costs.clear();
      for (const int home : of.results[k].moves->places_of(to.all))
        for (std::size_t w = 0; w < ways.size(); ++w) costs.push_back(toll_home(i, k, w, home));
      add_pair(to.variable, of.variable, costs);
    }
  }
  /// Adds the prices of bringing operand k to each way. A tensor that is not free is read where it
  /// lies or from its copy; a free one from its copy, which may lie where it does.
  void add_reads(int i, std::size_t k) {
    const Operator& of = operators_[static_cast<std::size_t>(i)];
    const int t = program_.entry(i).operands[static_cast<int>(k)];
    MovePrices& moves = *of.operands[k].moves;
    const Places& from = copies(t).variable >= 0 ? copies(t) : homes(t);
    const int own = moves.place(homes(t).all[0]);
    std::vector<Cost> costs;
    costs.reserve(from.all.size() * of.ways->size());
    for (const int place : moves.places_of(from.all))
      for (std::size_t w = 0; w < of.ways->size(); ++w) {
        const int to = of.operands[k].to[w];
        Cost cost = same_move(i, k, w) ? 0 : moves.toll(place, to);
        if (!is_free(t)) cost = std::min(cost, moves.toll(own, to));
        costs.push_back(cost);
      }
    add_pair(from.variable, of.variable, costs);
  }

  mutable Prices prices_;
  CostNetwork network_;
  std::vector<Places> homes_, copies_;  ///< of each tensor
  std::vector<Operator> operators_;
  std::map<std::pair<int, int>, std::vector<Cost>> pairs_;
  Cost fixed_ = 0;
  Index fixed_flops_ = 0;
  std::vector<Index> fixed_bytes_;  ///< that operators find, of tensors that are not free
};

}  // namespace tessera::detail
