// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The prices of a question, each found once: of an operator's ways, and of moving a tensor.
///
///     Prices prices(program, planning, options);
///     prices.toll(x, from, to);   prices.ways(entry, operands, result)
///
/// Laws: a price is that of a plan, on process 0, so that all processes find the same; what has no
/// plan is infeasible.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tessera/plan/op/move/reshard.hpp>
#include <tessera/plan/process_classes.hpp>
#include <tessera/program/choice/options.hpp>
#include <tessera/program/program.hpp>
#include <tessera/program/ways.hpp>
#include <tessera/solve/cost.hpp>

namespace tessera::detail {

/// A way with its price.
struct PricedWay {
  Way way;
  Shardings further;  ///< of the results after the first
  Cost cost = 0;
  Index flops = 0;
  Index workspace = 0;  ///< bytes, its results included
  bool returns_operand = false;
};

/// Returns whether nothing is to be done, so that the result is an operand.
inline bool returns_operand(const Plan& plan) { return plan.result < plan.operands; }

class Prices;

/// How many calls of an operator are planned each by itself.
inline constexpr std::size_t most_calls = 1024;
/// Adds the calls that cost less than every way with the moves to it and from it
/// (program/choice/detail/whole_calls.hpp); returns false where there are too many to plan.
inline bool add_whole_calls(Prices& prices, const ProgramEntry& e, const TensorDescs& operands,
                            const TensorDesc& result, const MeshShape& mesh,
                            std::vector<PricedWay>& all);

/// The prices of moving tensors of one type and extents, each found when it is asked for.
class MovePrices {
 public:
  struct Move {
    Cost toll;
    Index held;  ///< bytes that the move takes up, its result included; 0 where nothing is done
  };
  MovePrices(const Prices& prices, const TensorDesc& x, const Contract& contract)
      : prices_(&prices), x_(x), contract_(contract) {}

  /// Returns the number of a sharding, by which prices are asked for.
  int place(const Sharding& sharding) {
    Digest digest;
    add_to(digest, sharding);
    const auto [at, fresh] = numbers_.try_emplace(digest.value(), static_cast<int>(places_.size()));
    if (fresh) places_.push_back(sharding);
    return at->second;
  }
  const Sharding& sharding(int place) const { return places_[static_cast<std::size_t>(place)]; }
  std::vector<int> places_of(const std::vector<Sharding>& all) {
    std::vector<int> numbers;
    for (const Sharding& one : all) numbers.push_back(place(one));
    return numbers;
  }
  Cost toll(int from, int to) { return move(from, to).toll; }
  const Move& move(int from, int to);

 private:
  static constexpr Cost unknown = -1;

  const Prices* prices_;
  TensorDesc x_;
  Contract contract_;
  std::vector<Sharding> places_;
  std::unordered_map<std::uint64_t, int> numbers_;
  std::vector<std::vector<Move>> moves_;  ///< from each place to each
};

class Prices {
 public:
  Prices(const Program& program, const PlanOptions& planning, const ChooseOptions& options)
      : mesh_(program.mesh),
        planning_(planning),
        objective_(options.objective),
        limited_(options.memory_limit != max_int64 || options.flops_limit != max_int64) {}

  /// Returns whether no call of an operator that was asked for costs less than its ways, with the
  /// moves to them and from them.
  bool exact() const { return exact_; }
  /// Returns the price of a plan.
  Cost of(const Plan& plan) const {
    if (objective_ == Objective::time) return plan.cost;
    return saturating_add(saturating_mul(plan.payload_bytes(), 1 << 12), plan.cost >> 20);
  }
  /// Returns the price of a Program: that of its plans.
  Cost of(const Program& program) const {
    Cost cost = 0;
    for (const ProgramEntry& e : program.entries()) cost = add_costs(cost, of(*e.plan));
    return cost;
  }
  /// Returns the flops of a plan on process 0.
  static Index flops_of(Plan plan) {
    if (plan.process != 0) move_to_process(plan, 0);
    return plan.flops();
  }
  /// Returns the plan of an operator; null where it breaks a rule or its contract.
  std::shared_ptr<const Plan> plan(const Operation& operation, const TensorDescs& descs,
                                   Destination destination, const Contract& contract) const {
    if (!operation.check(descs).ok()) return nullptr;
    PlanOptions options = planning_;
    options.destination = destination;
    options.contract = contract;
    auto made = std::make_shared<const Plan>(operation.plan(descs, {mesh_, 0, options}));
    return contract.covers(made->needs) ? made : nullptr;
  }
  /// Returns the prices of moving tensors of this type and these extents, which live as long as
  /// this.
  MovePrices& moves(const TensorDesc& x, const Contract& contract) {
    Digest digest;
    add_to(digest, TensorDesc{x.type, x.extents, Sharding{}});
    digest.add(contract.bits());
    std::unique_ptr<MovePrices>& all = moves_[digest.value()];
    if (all == nullptr) all = std::make_unique<MovePrices>(*this, x, contract);
    return *all;
  }
  /// Returns the price of moving a tensor from one sharding to another.
  Cost toll(const TensorDesc& x, const Sharding& from, const Sharding& to,
            const Contract& contract) {
    if (from == to) return 0;
    MovePrices& all = moves(x, contract);
    return all.toll(all.place(from), all.place(to));
  }
  /// Returns the price of an operator's plan from these tensors to a result under a sharding;
  /// `own`: the result is not an operand.
  Cost direct(const ProgramEntry& e, const TensorDescs& x, const Sharding& out, bool own) {
    Digest digest;
    digest.add(e.operation->with_result(out).digest());
    for (const TensorDesc& one : x) add_to(digest, one);
    add_to(digest, e.plan->destination);
    digest.add(e.contract.bits());
    const auto [at, fresh] = direct_.try_emplace(digest.value(), 0);
    if (fresh) {
      const auto made = plan(e.operation->with_result(out), x, e.plan->destination, e.contract);
      at->second = made == nullptr || (own && returns_operand(*made)) ? infeasible : of(*made);
    }
    return at->second;
  }
  /// Returns a way with its price; nothing where it is no legal call.
  std::optional<PricedWay> priced(const ProgramEntry& e, const TensorDescs& operands,
                                  const Way& way) const {
    const Destination destination = e.plan->destination;
    if (destination == Destination::accumulated && !(way.operands.back() == way.out)) return {};
    TensorDescs descs = operands;
    for (int k = 0; k < descs.size(); ++k) descs[k].sharding = way.operands[k];
    const Operation operation = e.operation->with_result(way.out);
    const auto made = plan(operation, descs, destination, e.contract);
    if (made == nullptr) return {};
    PricedWay one{way, {}, of(*made), made->flops(), made->peak_bytes, returns_operand(*made)};
    const TensorDescs results = operation.view().results(descs);
    for (int k = 1; k < results.size(); ++k) one.further.push_back(results[k].sharding);
    return one;
  }
  /// Returns the ways of an operator, which live as long as this.
  const std::vector<PricedWay>& ways(const ProgramEntry& e, const TensorDescs& operands,
                                     const TensorDesc& result) {
    Digest digest;
    digest.add(e.operation->with_result({}).digest());
    for (const TensorDesc& x : operands) add_to(digest, TensorDesc{x.type, x.extents, Sharding{}});
    if (lies_beside(operands, result)) {
      for (const TensorDesc& x : operands) add_to(digest, x.sharding);
      add_to(digest, result.sharding);
    }
    add_to(digest, e.plan->destination);
    digest.add(e.contract.bits());
    const auto [at, fresh] = ways_.try_emplace(digest.value());
    if (fresh) at->second = priced(e, operands, result);
    return at->second;
  }

 private:
  /// Returns whether a tensor lies as no placement is, such as unfinished: an operator may leave it
  /// so, as it was recorded.
  bool lies_beside(const TensorDescs& operands, const TensorDesc& result) const {
    bool beside = !is_placement(result.sharding, result.extents, mesh_);
    for (const TensorDesc& x : operands)
      beside = beside || !is_placement(x.sharding, x.extents, mesh_);
    return beside;
  }
  std::vector<PricedWay> priced(const ProgramEntry& e, const TensorDescs& operands,
                                const TensorDesc& result) {
    std::vector<PricedWay> all;
    std::vector<Way> ways = ways_of(*e.operation, operands, result, mesh_);
    if (!ways.empty() && lies_beside(operands, result)) {
      ways.push_back({{}, result.sharding});
      for (const TensorDesc& x : operands) ways.back().operands.push_back(x.sharding);
    }
    for (const Way& way : ways)
      if (const std::optional<PricedWay> one = priced(e, operands, way)) all.push_back(*one);
    // The question plans an operator of one tensor whole by itself, unless there are limits.
    const bool by_question =
        e.operands.size() == 1 && e.also.empty() && !limited_ && e.plan->kind != OperatorKind::map;
    if (!all.empty() && !by_question)
      exact_ = add_whole_calls(*this, e, operands, result, mesh_, all) && exact_;
    return all;
  }

  MeshShape mesh_;
  PlanOptions planning_;
  Objective objective_;
  bool limited_;
  bool exact_ = true;
  std::unordered_map<std::uint64_t, std::unique_ptr<MovePrices>> moves_;
  std::unordered_map<std::uint64_t, Cost> direct_;
  std::unordered_map<std::uint64_t, std::vector<PricedWay>> ways_;
};

inline const MovePrices::Move& MovePrices::move(int from, int to) {
  const auto row = static_cast<std::size_t>(from), column = static_cast<std::size_t>(to);
  if (moves_.size() < places_.size()) moves_.resize(places_.size());
  if (moves_[row].size() < places_.size()) moves_[row].resize(places_.size(), {unknown, 0});
  Move& move = moves_[row][column];
  if (from == to) {
    move.toll = 0;
  } else if (move.toll == unknown) {
    const auto made =
        prices_->plan(Operation(ops::Reshard{places_[column]}),
                      {{x_.type, x_.extents, places_[row]}}, Destination::fresh, contract_);
    move.toll = made == nullptr ? infeasible : prices_->of(*made);
    if (made != nullptr && !returns_operand(*made)) move.held = made->peak_bytes;
  }
  return move;
}

}  // namespace tessera::detail

#include <tessera/program/choice/detail/whole_calls.hpp>
