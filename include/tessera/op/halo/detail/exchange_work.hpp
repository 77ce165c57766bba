// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What a repeated exchange does.
///
///     exchange.start(site);   exchange.finish();
///
/// Laws: those of op/halo/detail/repeated_exchange.hpp.
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/op/halo/detail/repeated_exchange.hpp>
#include <tessera/plan/work/instruction_list.hpp>
#include <tessera/run/execute.hpp>

namespace tessera::detail {

struct RepeatedExchange::State {
  const TensorCore& core;
  Operation operation;
  std::shared_ptr<const Prepared> prepared;
  OperatorMark mark;  ///< the exchange that all processes have announced
  OperandList operands{&core};
  bool bound = false;
  Binding binding{};
  std::string label{};
  CallSite site{};
  Lane* lane = nullptr;  ///< of the thread that began it
  std::optional<Execution> execution{};

  /// Asks the group of each exchange to share the block, and makes the list for those that do.
  void bind() {
    const Plan& plan = *prepared->plan;
    std::vector<std::unique_ptr<SharedBlock>> shared;
    Calls how{true, std::vector<bool>(static_cast<std::size_t>(plan.steps.size()), false)};
    for (int i = 0; i < plan.steps.size(); ++i) {
      if (plan.steps[i].kind != StepKind::communicate) continue;
      shared.push_back(core.mesh()->share(plan.steps[i].group, core.memory(),
                                          plan.slots[plan.result].bytes, site.where));
      how.in_place[static_cast<std::size_t>(i)] = shared.back() != nullptr;
    }
    binding.list = InstructionList(plan, how).make();
    binding.calls.resize(shared.size());
    for (std::size_t i = 0; i < shared.size(); ++i) binding.calls[i].shared = std::move(shared[i]);
    bound = true;
  }
};

TESSERA_FUNCTION RepeatedExchange::RepeatedExchange(const TensorCore& core,
                                                    const Operation& operation, const Agreed& call)
    : state_(new State{core, operation, call.prepared.shared_from_this(), call.mark}) {}
TESSERA_FUNCTION RepeatedExchange::~RepeatedExchange() = default;

TESSERA_FUNCTION void RepeatedExchange::compare(CallSite site) const {
  const State& s = *state_;
  if (s.prepared->communicates)
    s.core.mesh()->begin_operator(
        s.mark, [&] { return words_of(site, s.operation, s.operands); }, site.where);
}

TESSERA_FUNCTION void RepeatedExchange::start(CallSite site) {
  State& s = *state_;
  if (s.execution.has_value())
    throw UsageError(std::string(site.label) + ": this halo is being exchanged since " +
                         to_string(s.site.where) +
                         ", and that has not been waited for; wait for it first",
                     site.where);
  s.label = site.label;
  s.site = {s.label, site.where};
  if (!s.bound) s.bind();
  s.lane = lane_of_thread;
  s.core.storage()->use().write();  // after what other lanes do there
  s.execution.emplace(*s.prepared, s.operands, s.site, Extras{}, &s.binding);
  s.core.storage()->begin_use(site.where);
  try {
    s.execution->start();
  } catch (...) {  // there is no exchange to wait for
    s.execution.reset();
    s.core.storage()->end_use();
    throw;
  }
}

TESSERA_FUNCTION bool RepeatedExchange::done() {
  return !state_->execution.has_value() || state_->execution->arrived();
}
TESSERA_FUNCTION bool RepeatedExchange::quiet() const {
  return !state_->execution.has_value() || state_->execution->arrived_already();
}

TESSERA_FUNCTION void RepeatedExchange::finish() {
  State& s = *state_;
  const OnLane there(s.lane);
  (void)s.execution->finish();
  s.execution.reset();
  s.core.storage()->end_use();
}

}  // namespace tessera::detail
