// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The question that a choice answers, as a cost network: a variable for each tensor, whose values
/// are shardings, one for each operator, its ways, and between them the prices of moving to a way.
///
///     ChoiceQuestion question(program, planning, options);
///     question.network();   question.sharding(tensor, assignment)
///
/// Laws: those of program/choice.hpp.
#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/program/detail/free_tensors.hpp>
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
  /// Returns where a tensor may lie.
  const std::vector<Home>& domain(int t) const { return domains_[static_cast<std::size_t>(t)]; }
  int variable(int t) const { return variables_[static_cast<std::size_t>(t)]; }
  const Home& home(int t, const Assignment& a) const {
    const int v = variable(t);
    return domain(t)[v < 0 ? 0 : static_cast<std::size_t>(a[static_cast<std::size_t>(v)])];
  }
  /// Returns the way of operator i; null where it has no choice.
  const PricedWay* way(int i, const Assignment& a) {
    const Of& of = operators_[static_cast<std::size_t>(i)];
    if (of.ways == nullptr) return nullptr;
    if (of.variable >= 0)
      return &(*of.ways)[static_cast<std::size_t>(a[static_cast<std::size_t>(of.variable)])];
    const ProgramEntry& e = program_.entry(i);  // of one tensor: the way of least price
    const TensorDesc x = e.plan->slots[0].desc, result = e.plan->result_desc();
    const auto price = [&](const PricedWay& way) {
      return add_costs(
          makes_own(e) && way.returns_operand ? infeasible : way.cost,
          add_costs(read(x, home(e.operands[0], a), way.way.operands[0], e.contract),
                    prices_.toll(result, way.way.out, home(e.result, a).sharding, e.contract)));
    };
    return &*std::min_element(
        of.ways->begin(), of.ways->end(),
        [&](const PricedWay& one, const PricedWay& other) { return price(one) < price(other); });
  }
  /// Returns the ways of operator i, and their variable; null, -1 where it has no choice.
  const std::vector<PricedWay>* ways(int i) const {
    return operators_[static_cast<std::size_t>(i)].ways;
  }
  int way_variable(int i) const { return operators_[static_cast<std::size_t>(i)].variable; }
  /// Returns the price of reading a tensor under another sharding.
  Cost read(const TensorDesc& x, const Home& from, const Sharding& to, const Contract& contract) {
    const Cost cost = prices_.toll(x, from.sharding, to, contract);
    return from.copy ? std::min(cost, prices_.toll(x, *from.copy, to, contract)) : cost;
  }
  /// Returns the least price of an operator of one tensor from a place to a sharding: of its plan,
  /// or by one of its ways.
  Cost whole(int i, const ProgramEntry& e, const TensorDesc& x, const TensorDesc& result,
             const Home& home, const Sharding& out) {
    const bool own = makes_own(e);
    const auto from = [&](const Sharding& s) {
      Cost least = prices_.direct(e, {{x.type, x.extents, s}}, out, own);
      for (const PricedWay& way : *operators_[static_cast<std::size_t>(i)].ways)
        if (!own || !way.returns_operand)
          least = std::min(
              least,
              add_costs(way.cost, add_costs(prices_.toll(x, s, way.way.operands[0], e.contract),
                                            prices_.toll(result, way.way.out, out, e.contract))));
      return least;
    };
    return home.copy ? std::min(from(home.sharding), from(*home.copy)) : from(home.sharding);
  }
  const Program& program() const { return program_; }

 private:
  /// In what a limit is counted, so that it is a number of twenty bits.
  Index flops_unit() const { return std::max<Index>(1, options_of_choice_.flops_limit >> 20); }
  Index bytes_unit() const { return std::max<Index>(1, options_of_choice_.memory_limit >> 20); }
  bool counts_memory() const { return options_of_choice_.memory_limit != max_int64; }
  /// Returns the bytes of a tensor on process 0.
  Index bytes_of(const TensorDesc& x, const Sharding& s) const {
    return arena_charge(
        saturating_mul(block_volume(x.extents, s, program_.mesh, program_.mesh.coordinates(0)),
                       static_cast<Index>(size_of(x.type))));
  }
  /// Counts what the places of a tensor take up, while it is alive.
  void add_memory(int t) {
    const ProgramTensor& tensor = program_.tensor(t);
    const int begin = tensor.made < 0 ? tensor.first : tensor.made + 1;
    const int end = std::min(tensor.last, program_.size() - 1) + 1;
    if (begin >= end || tensor.adopted) return;
    if (variable(t) < 0) {
      for (int i = begin; i < end; ++i)
        fixed_bytes_[static_cast<std::size_t>(i)] += bytes_of(tensor.desc, tensor.desc.sharding);
      return;
    }
    std::vector<Cost> bytes;
    for (const Home& home : domain(t))
      bytes.push_back((bytes_of(tensor.desc, home.sharding) +
                       (home.copy ? bytes_of(tensor.desc, *home.copy) : 0)) /
                      bytes_unit());
    network_.add_usage(variable(t), begin + 1, end + 1, bytes);
  }
  struct Of {
    int variable = -1;
    const std::vector<PricedWay>* ways = nullptr;
  };

  /// Adds the copies that several operators may read: without some of the axes of `own`, or any.
  void add_copies(std::vector<Home>& domain, const TensorDesc& x, const Sharding& own,
                  const std::vector<Sharding>& all, bool any) const {
    for (const Sharding& copy : all) {
      bool fewer = !(copy == own);
      for (int d = 0; d < own.rank() && !any; ++d)
        fewer = fewer && (copy[d].set() - own[d].set()).empty();
      if (fewer && is_feasible(prices_.toll(x, own, copy, {}))) domain.push_back({own, copy});
    }
  }
  void add_tensor(int t) {
    const ProgramTensor& tensor = program_.tensor(t);
    const Sharding& own = tensor.desc.sharding;
    variables_.push_back(-1);
    domains_.push_back({{own}});
    const bool copied = may_be_copied(t);
    if (!is_free(t) && !copied) return;
    std::vector<Home>& domain = domains_.back();
    const std::vector<Sharding> all = placements(tensor.desc.extents, program_.mesh);
    if (is_free(t))
      for (const Sharding& s : all)
        if (!(s == own)) domain.push_back({s});
    const std::size_t homes = domain.size();
    if (copied)
      for (std::size_t i = 0; i < homes; ++i) {
        const Sharding home = domain[i].sharding;
        add_copies(domain, tensor.desc, home, all, !is_free(t));
      }
    if (domain.size() == 1) return;
    std::vector<Cost> costs;
    for (const Home& home : domain)
      costs.push_back(home.copy ? prices_.toll(tensor.desc, home.sharding, *home.copy, {}) : 0);
    variables_.back() = network_.add_variable(costs);
  }
  /// Adds a price for each place of tensor t and each value of a variable.
  template <class Toll> void add_tolls(int t, int variable, std::size_t count, const Toll& toll) {
    const std::vector<Home>& from = domain(t);
    std::vector<Cost> costs;
    costs.reserve(from.size() * count);
    for (const Home& home : from)
      for (std::size_t w = 0; w < count; ++w) costs.push_back(toll(home, w));
    if (this->variable(t) < 0)
      network_.add_costs(variable, costs);
    else
      add_pair(this->variable(t), variable, costs);
  }
  void add_pair(int a, int b, const std::vector<Cost>& costs) {
    std::vector<Cost>& sum = pairs_[{a, b}];
    if (sum.empty()) sum.assign(costs.size(), 0);
    for (std::size_t i = 0; i < costs.size(); ++i) sum[i] = add_costs(sum[i], costs[i]);
  }
  void add_fixed(const ProgramEntry& e) {
    fixed_ = add_costs(fixed_, prices_.of(*e.plan));
    fixed_flops_ = saturating_add(fixed_flops_, Prices::flops_of(*e.plan));
    // Its operands are brought to where it was recorded to read them.
    for (int k = 0; k < e.operands.size(); ++k) {
      const int t = e.operands[k];
      if (variable(t) < 0) continue;
      std::vector<Cost> costs;
      const TensorDesc& x = e.plan->slots[k].desc;
      const Sharding& own = program_.tensor(t).desc.sharding;
      for (const Home& home : domain(t))
        costs.push_back(home.sharding == own ? 0 : read(x, home, x.sharding, e.contract));
      network_.add_costs(variable(t), costs);
    }
  }
  void add_move(const ProgramEntry& e) {
    const int from = e.operands[0], to = e.result;
    const TensorDesc& x = program_.tensor(from).desc;
    const std::vector<Home>&out = domain(to), &in = domain(from);
    const bool own = makes_own(e);
    const auto toll = [&](const Home& home, const Sharding& wanted) {
      const Cost cost = read(x, home, wanted, e.contract);
      return own && cost == 0 ? infeasible : cost;
    };
    if (variable(from) < 0 && variable(to) < 0) {
      fixed_ = add_costs(fixed_, toll(in[0], out[0].sharding));
    } else if (variable(to) < 0) {
      std::vector<Cost> costs;
      for (const Home& home : in) costs.push_back(toll(home, out[0].sharding));
      network_.add_costs(variable(from), costs);
    } else {
      add_tolls(from, variable(to), out.size(),
                [&](const Home& home, std::size_t w) { return toll(home, out[w].sharding); });
    }
  }
  /// Returns whether an operator of one tensor, which may move elements as it works, is priced by
  /// its plans from every place to every other.
  bool is_planned_whole(const ProgramEntry& e) const {
    const bool plain = e.operands.size() == 1 && e.also.empty() && e.operands[0] != e.result &&
                       e.plan->destination == Destination::fresh;
    const bool limited = counts_memory() || options_of_choice_.flops_limit != max_int64;
    return plain && !limited && e.plan->kind != OperatorKind::map &&
           domain(e.operands[0]).size() * domain(e.result).size() <= 1024;
  }
  void add_whole(int i, const TensorDesc& x, const TensorDesc& result) {
    const ProgramEntry& e = program_.entry(i);
    const int from = e.operands[0], to = e.result;
    const std::vector<Home>&in = domain(from), out = domain(to);
    std::vector<Cost> costs;
    for (const Home& home : in)
      for (const Home& other : out) costs.push_back(whole(i, e, x, result, home, other.sharding));
    if (variable(from) >= 0 && variable(to) >= 0)
      add_pair(variable(from), variable(to), costs);
    else if (variable(from) >= 0)
      network_.add_costs(variable(from), costs);
    else if (variable(to) >= 0)
      network_.add_costs(variable(to), costs);
    else
      fixed_ = add_costs(fixed_, costs[0]);
  }
  void add_operator(int i) {
    const ProgramEntry& e = program_.entry(i);
    operators_.emplace_back();
    if (is_move(e)) return add_move(e);
    if (!is_open(e)) return add_fixed(e);
    const TensorDescs descs = operands_of(e);
    const TensorDesc result = e.plan->result_desc();
    const std::vector<PricedWay>& ways = prices_.ways(e, descs, result);
    if (ways.empty()) return add_fixed(e);
    Of& of = operators_.back();
    of.ways = &ways;
    if (is_planned_whole(e)) return add_whole(i, descs[0], result);
    std::vector<Cost> costs, flops, bytes;
    const bool own = makes_own(e);
    for (const PricedWay& way : ways) {
      costs.push_back(own && way.returns_operand ? infeasible : way.cost);
      flops.push_back(way.flops / flops_unit());
      bytes.push_back(way.workspace / bytes_unit());
    }
    of.variable = network_.add_variable(costs);
    if (options_of_choice_.flops_limit != max_int64) network_.add_usage(of.variable, 0, 1, flops);
    if (counts_memory()) network_.add_usage(of.variable, i + 1, i + 2, bytes);
    for (int k = 0; k < descs.size(); ++k) {
      bool again = false;  // the same tensor to the same place is moved once
      for (int j = 0; j < k; ++j) again = again || e.operands[j] == e.operands[k];
      add_tolls(e.operands[k], of.variable, ways.size(), [&](const Home& home, std::size_t w) {
        const Shardings& to = ways[w].way.operands;
        if (again)
          for (int j = 0; j < k; ++j)
            if (e.operands[j] == e.operands[k] && to[j] == to[k]) return Cost{0};
        return read(descs[k], home, to[k], e.contract);
      });
    }
    add_tolls(e.result, of.variable, ways.size(), [&](const Home& home, std::size_t w) {
      if (e.plan->destination != Destination::fresh && !(ways[w].way.out == home.sharding))
        return infeasible;  // it is made where it lies
      return prices_.toll(result, ways[w].way.out, home.sharding, e.contract);
    });
    for (int k = 0; k < e.also.size(); ++k) {
      const TensorDesc& x = program_.tensor(e.also[k]).desc;
      add_tolls(e.also[k], of.variable, ways.size(), [&](const Home& home, std::size_t w) {
        return prices_.toll(x, ways[w].further[k], home.sharding, e.contract);
      });
    }
  }

  mutable Prices prices_;
  CostNetwork network_;
  std::vector<int> variables_;              ///< of each tensor; -1: it has one place
  std::vector<std::vector<Home>> domains_;  ///< of each tensor
  std::vector<Of> operators_;
  std::map<std::pair<int, int>, std::vector<Cost>> pairs_;
  Cost fixed_ = 0;
  Index fixed_flops_ = 0;
  std::vector<Index> fixed_bytes_;  ///< that operators find, of tensors with one place
};

}  // namespace tessera::detail
