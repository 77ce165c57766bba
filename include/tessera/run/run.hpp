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
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/run/detail/not_finite.hpp>
#include <tessera/run/detail/start.hpp>
#include <tessera/run/execute.hpp>
#include <tessera/run/recording.hpp>
#include <tessera/run/request.hpp>
#include <tessera/run/started.hpp>
#include <tessera/run/under_way.hpp>

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

inline bool writes(const Plan& plan, int slot) {
  for (const Step& step : plan.steps)
    if (step.out == slot || step.also.contains(static_cast<std::int8_t>(slot))) return true;
  return false;
}
/// Orders the call after the work of other lanes that is in its way.
inline void order_lanes(const Request& r, const Plan& plan) {
  if (kernels_on_host || r.mesh()->dry()) return;
  for (int i = 0; i < r.operands.size(); ++i)
    writes(plan, i) ? r.operands[i]->storage()->use().write()
                    : r.operands[i]->storage()->use().read();
  if (r.extras.into != nullptr) r.extras.into->storage()->use().write();
}

/// Begins a planned call, or carries it out; `history` is what its results remember.
inline TensorCore carry_out(const Request& r, const Prepared& prepared, std::uint64_t history) {
  order_lanes(r, *prepared.plan);
  if (r.extras.started != nullptr) {
    r.extras.started->begin(prepared, r, history);
    return TensorCore();
  }
  const FiniteCheck finite(r, *prepared.plan);
  const bool into = r.extras.into != nullptr;
  TensorCore result;
  if (r.extras.also == nullptr) {
    result = execute(prepared, r.operands, r.site, r.extras);
    remember(result, r.operands, history, into);
  } else {
    Execution execution(prepared, r.operands, r.site, r.extras);
    result = results_of(execution, execution.run(), r.operation.results(descs_of(r.operands)),
                        r.operands, history, into, *r.extras.also);
  }
  finite.results(result, r.extras.also);
  return result;
}

/// A plan and the boxes that it views.
struct PlanWithBoxes {
  Plan plan;
  std::vector<Box> boxes;
};

/// What a plan is looked up by: it depends on nothing else of a call.
struct PlanQuestion {
  Contract contract;
  StoredOperands stored;  ///< where its tensors lie within halos
  PlanQuery query;

  explicit PlanQuestion(const Request& r)
      : contract(contract_at(*r.mesh(), r.site)),
        stored(r.operands, r.extras.into),
        query(r.operation, r.operands, r.extras.destination, contract, stored.get()) {
    require_one_mesh(r.operands, r.site);
  }
  PlanQuestion(const PlanQuestion&) = delete;
  PlanQuestion& operator=(const PlanQuestion&) = delete;
};

/// Plans a call, or finds its plan.
inline const Prepared& planned(const Request& r, const PlanQuestion& question) {
  MeshCore& mesh = *r.mesh();
  return prepare(mesh, question.query, [&]() -> std::shared_ptr<const Plan> {
    const TensorDescs descs = descs_of(r.operands);
    require(r.operation, descs, mesh, r.site);
    PlanOptions options = plan_options(mesh);
    options.destination = r.extras.destination;
    options.contract = question.contract;
    options.stored = question.stored.get();
    try {
      const auto made = std::make_shared<PlanWithBoxes>();
      made->plan = r.operation.plan(descs, {mesh.shape(), mesh.process(), options, &made->boxes});
      require_contract(made->plan, question.contract, mesh, r.site);
      return {made, &made->plan};
    } catch (const std::length_error&) {
      throw ShapeError(std::string(r.site.label) + ": the plan needs more than the " +
                       std::to_string(Plan::max_steps) +
                       " steps that a plan holds; reshard some of the operands first");
    }
  });
}

/// Compares a call, whose plan `find` returns, with what the other processes call.
template <class Find> Agreed agree_on(const Request& r, const CallName& name, const Find& find) {
  Comparison comparison(r.operands, name, r.site, r.extras);
  const Prepared& prepared = find();
  if (r.extras.into != nullptr) require_destination(*prepared.plan, r);
  comparison.begin(prepared);
  return {prepared, comparison.mark(), comparison.history()};
}
inline CallName name_of(const Request& r, const PlanQuestion& question) {
  if (!r.mesh()->remembers()) return {r.operation, 0};
  return {question.query, r.site.label};
}
inline Agreed agree_on(const Request& r, const PlanQuestion& question) {
  return agree_on(r, name_of(r, question),
                  [&]() -> const Prepared& { return planned(r, question); });
}
TESSERA_FUNCTION Agreed agree_on(const Request& r) { return agree_on(r, PlanQuestion(r)); }

/// Returns the call with the destination that its site names.
inline Request directed(const Request& r) {
  const bool many =
      r.extras.also != nullptr && r.operation.results(descs_of(r.operands)).size() > 1;
  if (r.extras.into != nullptr || r.extras.started != nullptr || many)
    throw UsageError(std::string(r.site.label) +
                         ": the call writes to a tensor of its own choice, is left under way or "
                         "returns several tensors, so it takes no destination; call it without "
                         "one, and copy what it returns with reshard_into",
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

/// Returns the call on open tensors as one whose shardings are known: what its result's type leaves
/// open lies as it is deduced from how the operands lie. Throws UsageError where nothing is chosen,
/// but for a reshard to a sharding without open entries.
inline TensorCore run_open(const Request& r) {
  const Sharding* const stated = r.operation.stated();
  const bool open = stated != nullptr && has_open(*stated);
  const bool leaves = r.operation.kind() == OperatorKind::reshard && !open;
  if (!leaves) require_chosen(mesh_of(r), r.site);
  FixedVector<TensorCore, max_operands> known;
  Request closed = r;
  closed.operands.clear();
  for (const TensorCore* operand : r.operands) known.push_back(operand->as_closed());
  for (const TensorCore& operand : known) closed.operands.push_back(&operand);
  if (!open) return run(closed);
  const Operation known_result =
      Operation(r.operation)
          .with_result(filled(*stated, r.operation.deduced(descs_of(r.operands))));
  closed.operation = known_result;
  if (r.operation.kind() != OperatorKind::reshard) return run(closed);
  closed.site.label = "reshard to open";  // a move that may end elsewhere
  const TensorCore made = run(closed);
  pin_tensor(made, OpenSharding(*stated), r.site.where);
  return made;
}

TESSERA_FUNCTION TensorCore run(const Request& r) {
  for (const TensorCore* operand : r.operands)
    if (operand->open()) return run_open(r);
  if (r.site.into != nullptr) return run(directed(r));
  if (Taker* taker = taker_of_thread; taker != nullptr && r.extras.started == nullptr)
    return taker->take(r);
  return on_process(mesh_of(r), r.site, [&] {
    const Agreed call = agree_on(r);
    return carry_out(r, call.prepared, call.history);
  });
}

/// Throws unless a call inside async or a compiled function leaves all memory alone but for its own
/// tensors' (a compiled function's moves between meshes are not asked). `goes`: its result may be a
/// tensor of another mesh.
inline void require_own_tensors(const Request& r, const Plan& plan, bool goes) {
  const TensorCore* into = r.extras.into;
  const bool gone = into != nullptr && into->mesh() != r.mesh();
  bool elsewhere = gone ? !goes : !plan.slots[plan.result].place.sharded();
  for (int i = 0; i < r.operands.size(); ++i)
    elsewhere = elsewhere || !plan.slots[i].place.sharded() || (writes(plan, i) && into == nullptr);
  if (elsewhere)
    throw UsageError(
        std::string(r.site.label) +
            ": a call inside async or a compiled function has tensors for its operands and "
            "results; "
            "this one reads or writes other memory, another mesh's inside async, or refreshes a "
            "halo; call it before or after",
        r.site.where);
}

/// Throws when a call that `waits` reads memory that its caller may free before.
inline void require_kept(const Request& r, bool waits) {
  if (waits && r.extras.kernel.make != nullptr && r.extras.kernel.keep == nullptr)
    throw UsageError(std::string(r.site.label) +
                         ": the call reads the host's memory, which may be gone when the "
                         "destination is free: an operator under way writes it; call it before "
                         "or after",
                     r.site.where);
}

/// Returns a tensor of memory that is promised, which the call will make.
inline TensorCore promised(const std::shared_ptr<MeshCore>& on, const TensorDesc& desc,
                           const Request& r) {
  TensorCore result(on, desc, make_promise(on, r.site.where));
  note_varies(result, r.operands, false);
  return result;
}

/// Calls take(result) for the results of a call before there are any: each is an operand, or of
/// memory that is promised, but the first is the destination, where the call has one.
template <class Take> void promise_results(const Request& r, const Plan& plan, const Take& take) {
  const std::shared_ptr<MeshCore>& on = r.mesh();
  const auto one = [&](int slot, const TensorDesc& desc) {
    if (slot < plan.operands)
      take(TensorCore(on, desc, r.operands[slot]->storage()));
    else if (r.extras.into != nullptr && slot == plan.result)
      take(TensorCore(on, desc, r.extras.into->storage()));
    else
      take(promised(on, desc, r));
  };
  one(plan.result, plan.result_desc());
  if (plan.also.empty()) return;
  const TensorDescs descs = r.operation.results(descs_of(r.operands));
  for (int i = 0; i < plan.also.size(); ++i) {
    TensorDesc desc = plan.slots[plan.also[i]].desc;
    desc.sharding = descs[i + 1].sharding;
    one(plan.also[i], desc);
  }
}

TESSERA_FUNCTION TensorCore UnderWay::take(const Request& r) {
  return on_process(mesh_of(r), r.site, [&] {
    const PlanQuestion question(r);
    const auto prepared = planned(r, question).shared_from_this();
    const Plan& plan = *prepared->plan;
    require_own_tensors(r, plan, true);
    const TensorCore* into = r.extras.into;
    bool waits = into != nullptr && into->storage()->promised();
    for (const TensorCore* operand : r.operands) waits = waits || operand->storage()->promised();
    require_kept(r, waits);
    auto call = std::make_unique<Call>();
    std::vector<TensorCore> results;
    promise_results(r, plan, [&](const TensorCore& result) {
      results.push_back(result);
      call->promised.push_back(result.storage());
    });
    std::vector<TensorCore> also;
    Request promised = r;
    if (into != nullptr) call->promised[0] = nullptr;
    promised.extras.promised = &call->promised;
    promised.extras.also = &also;
    if (!waits) {
      const Agreed agreed = agree_on(promised, question);
      call->started = std::make_unique<Started>();
      promised.extras.started = call->started.get();
      (void)carry_out(promised, agreed.prepared, agreed.history);
      if (call->started->complete()) (void)std::exchange(call->started, nullptr)->finish();
    } else if (plan.steps.size() > 0) {
      call->later = std::make_unique<KeptRequest>(promised);
      call->lane = lane_of_thread;
    }
    if (call->started != nullptr || call->later != nullptr) {
      if (into != nullptr) {
        call->into = into->storage();
        call->into->hide(r.site.where);
      }
      mesh_ = r.mesh();
      add(std::move(call));
    }
    if (r.extras.also != nullptr)
      for (std::size_t i = 1; i < results.size(); ++i) r.extras.also->push_back(results[i]);
    return results[0];
  });
}

TESSERA_FUNCTION void UnderWay::finish() {
  const TakenBy none(nullptr);  // they run as without async
  while (first_ != nullptr) {
    Call& call = *first_;
    if (call.into != nullptr) call.into->show();
    if (call.started != nullptr) {
      (void)call.started->finish();
      call.started.reset();
    } else {
      const OnLane there(call.lane);
      std::vector<TensorCore> also;
      Request r = call.later->request();
      r.extras.also = &also;
      call.later->end_use();
      (void)run(r);
      call.later.reset();
    }
    first_ = std::move(call.next);
  }
}

}  // namespace tessera::detail
