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
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tessera/plan/op/reshard.hpp>
#include <tessera/plan/process_classes.hpp>
#include <tessera/program/choose_options.hpp>
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

class Prices {
 public:
  Prices(const Program& program, const PlanOptions& planning, Objective objective)
      : mesh_(program.mesh), planning_(planning), objective_(objective) {}

  /// Returns the price of a plan.
  Cost of(const Plan& plan) const {
    if (objective_ == Objective::time) return plan.cost;
    return saturating_add(saturating_mul(plan.payload_bytes(), 1 << 12), plan.cost >> 20);
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
  /// Returns the price of moving a tensor from one sharding to another.
  Cost toll(const TensorDesc& x, const Sharding& from, const Sharding& to,
            const Contract& contract) {
    if (from == to) return 0;
    Digest digest;
    add_to(digest, TensorDesc{x.type, x.extents, from});
    add_to(digest, to);
    digest.add(contract.bits());
    const auto [at, fresh] = tolls_.try_emplace(digest.value(), 0);
    if (fresh) {
      const auto made = plan(Operation(ops::Reshard{to}), {{x.type, x.extents, from}},
                             Destination::fresh, contract);
      at->second = made == nullptr ? infeasible : of(*made);
    }
    return at->second;
  }
  /// Returns the price of an operator's plan from these tensors to a result under a sharding;
  /// `own`: the result is not an operand.
  Cost direct(const ProgramEntry& e, const TensorDescs& x, const Sharding& out, bool own) {
    Digest digest;
    digest.add(e.operation->with_result(out).digest());
    for (const TensorDesc& one : x) add_to(digest, one);
    add_to(digest, e.plan->destination);
    digest.add(e.contract.bits());
    const auto [at, fresh] = tolls_.try_emplace(digest.value(), 0);
    if (fresh) {
      const auto made = plan(e.operation->with_result(out), x, e.plan->destination, e.contract);
      at->second = made == nullptr || (own && returns_operand(*made)) ? infeasible : of(*made);
    }
    return at->second;
  }
  /// Returns the ways of an operator, which live as long as this.
  const std::vector<PricedWay>& ways(const ProgramEntry& e, const TensorDescs& operands,
                                     const TensorDesc& result) {
    Digest digest;
    digest.add(e.operation->with_result({}).digest());
    for (const TensorDesc& x : operands) add_to(digest, TensorDesc{x.type, x.extents, Sharding{}});
    add_to(digest, e.plan->destination);
    digest.add(e.contract.bits());
    const auto [at, fresh] = ways_.try_emplace(digest.value());
    if (fresh) at->second = priced(e, operands, result);
    return at->second;
  }

 private:
  std::vector<PricedWay> priced(const ProgramEntry& e, const TensorDescs& operands,
                                const TensorDesc& result) const {
    std::vector<PricedWay> all;
    const Destination destination = e.plan->destination;
    for (const Way& way : ways_of(*e.operation, operands, result, mesh_)) {
      if (destination == Destination::accumulated && !(way.operands.back() == way.out)) continue;
      TensorDescs descs = operands;
      for (int k = 0; k < descs.size(); ++k) descs[k].sharding = way.operands[k];
      const Operation operation = e.operation->with_result(way.out);
      const auto made = plan(operation, descs, destination, e.contract);
      if (made == nullptr) continue;
      PricedWay one{way, {}, of(*made), made->flops(), made->peak_bytes, returns_operand(*made)};
      const TensorDescs results = operation.view().results(descs);
      for (int k = 1; k < results.size(); ++k) one.further.push_back(results[k].sharding);
      all.push_back(one);
    }
    return all;
  }

  MeshShape mesh_;
  PlanOptions planning_;
  Objective objective_;
  std::unordered_map<std::uint64_t, Cost> tolls_;
  std::unordered_map<std::uint64_t, std::vector<PricedWay>> ways_;
};

}  // namespace tessera::detail
