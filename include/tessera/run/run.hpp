// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The way that all calls of operators take: check, plan (or find the plan), compare with the other
/// processes, carry out.
///
///     TensorCore y = detail::run({ops::Reshard{to}, {&x}, {"reshard", where}});
///
/// Laws: those of run/request.hpp.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/run/request.hpp>

namespace tessera::detail {

TESSERA_FUNCTION void require(OperationView operation, const TensorDescs& operands,
                              const MeshCore& mesh, CallSite site) {
  const auto said = [&](const Verdict& v, const std::string& text) {
    const std::string label(site.label);
    if (kind_of(v.rule) == ErrorKind::usage)
      return label + " of " + std::string(name_of(v.type)) + ": " + text;
    return text.starts_with('"' + label + '"') ? text : label + ": " + text;
  };
  if (const Verdict v = operation.check(operands); !v.ok())
    throw_broken(v.rule, said(v, operation.explain(v, operands, mesh.names())), site.where);
  for (const TensorDesc& result : operation.results(operands))
    if (const Verdict v = tessera::check(result, mesh.shape().rank()); !v.ok())
      throw_broken(v.rule, said(v, tessera::explain(v, result.sharding, mesh.names())), site.where);
}

/// Orders the call after the work of other lanes that is in its way.
inline void order_lanes(const Request& r, const Plan& plan) {
  if (kernels_on_host || r.operands[0]->dry()) return;
  const auto writes = [&](int slot) {
    for (const Step& step : plan.steps)
      if (step.out == slot || step.also.contains(static_cast<std::int8_t>(slot))) return true;
    return false;
  };
  for (int i = 0; i < r.operands.size(); ++i)
    writes(i) ? r.operands[i]->storage()->use().write() : r.operands[i]->storage()->use().read();
  if (r.extras.into != nullptr) r.extras.into->storage()->use().write();
}

/// Begins a planned call, or carries it out; `history` is what its results remember.
inline TensorCore carry_out(const Request& r, const Prepared& prepared, std::uint64_t history) {
  order_lanes(r, *prepared.plan);
  if (r.extras.started != nullptr) {
    r.extras.started->begin(prepared, r.operands, r.site, r.extras, history);
    return TensorCore();
  }
  if (r.extras.also == nullptr) {
    TensorCore result = execute(prepared, r.operands, r.site, r.extras);
    if (r.extras.into == nullptr)
      remember(result, r.operands, history);
    else if (history != 0 && result.storage() != nullptr)
      result.storage()->set_history(history);
    return result;
  }
  const TensorDescs results = r.operation.results(descs_of(r.operands));
  Execution execution(prepared, r.operands, r.site, r.extras);
  TensorCore first = execution.run();
  remember(first, r.operands, history);
  for (int i = 1; i < results.size(); ++i) {
    r.extras.also->push_back(execution.also(i - 1, results[i].sharding));
    remember(r.extras.also->back(), r.operands,
             history == 0 ? 0 : mix(history, static_cast<std::uint64_t>(i)));
  }
  return first;
}

/// A plan and the boxes that it views.
struct PlanWithBoxes {
  Plan plan;
  std::vector<Box> boxes;
};

TESSERA_FUNCTION Agreed agree_on(const Request& r) {
  MeshCore& mesh = *r.operands[0]->mesh();
  const Contract contract = contract_at(mesh, r.site);
  const StoredOperands stored(r.operands, r.extras.into);
  const PlanQuery query(r.operation, r.operands, r.extras.destination, contract, stored.get());
  require_one_mesh(r.operands, r.site);
  Comparison comparison(r.operands, query, r.site, r.extras.starts);
  const Prepared& prepared = prepare(mesh, query, [&]() -> std::shared_ptr<const Plan> {
    const TensorDescs descs = descs_of(r.operands);
    require(r.operation, descs, mesh, r.site);
    PlanOptions options = plan_options(mesh);
    options.destination = r.extras.destination;
    options.contract = contract;
    options.stored = stored.get();
    try {
      const auto made = std::make_shared<PlanWithBoxes>();
      made->plan = r.operation.plan(descs, {mesh.shape(), mesh.process(), options, &made->boxes});
      require_contract(made->plan, contract, mesh, r.site);
      return {made, &made->plan};
    } catch (const std::length_error&) {
      throw ShapeError(std::string(r.site.label) + ": the plan needs more than the " +
                       std::to_string(Plan::max_steps) +
                       " steps that a plan holds; reshard some of the operands first");
    }
  });
  if (r.extras.into != nullptr)
    require_destination(*prepared.plan, r.operands, *r.extras.into, r.site);
  comparison.begin(prepared);
  return {prepared, comparison.mark(), comparison.history()};
}

/// Returns the call with the destination that its site names.
inline Request directed(const Request& r) {
  const bool many =
      r.extras.also != nullptr && r.operation.results(descs_of(r.operands)).size() > 1;
  if (r.extras.into != nullptr || r.extras.started != nullptr || many)
    throw UsageError(std::string(r.site.label) +
                         ": the call writes to a tensor of its own choice, is left under way or "
                         "returns several tensors, so that it takes no destination; call it "
                         "without one, and copy what it returns with reshard_into",
                     r.site.where);
  Request to = r;
  to.site.into = nullptr;
  to.extras.into = r.site.into;
  to.extras.destination = Destination::given;
  if (r.operation.kind() == OperatorKind::map)  // which may read its destination
    for (const TensorCore* operand : r.operands)
      if (operand->storage() == r.site.into->storage())
        to.extras.destination = Destination::accumulated;
  return to;
}

TESSERA_FUNCTION TensorCore run(const Request& r) {
  if (r.site.into != nullptr) return run(directed(r));
  return on_process(mesh_of(*r.operands[0], r.site), r.site, [&] {
    const Agreed call = agree_on(r);
    return carry_out(r, call.prepared, call.history);
  });
}

}  // namespace tessera::detail
