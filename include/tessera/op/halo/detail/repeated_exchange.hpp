// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The repeated exchange in place of one extended block: its list of instructions is bound to the
/// block's memory once, its requests are made once, and where the processes of a group share
/// memory, each reads its halo out of the others' blocks, without messages, packing or unpacking.
///
///     RepeatedExchange exchange(core, operation, call);   exchange.start(site);   exchange.finish();
///
/// Laws: it moves, counts and holds the same as a single exchange with the same plan; a repeated
/// exchange allocates nothing on the heap; one exchange at a time is in progress.
#include <memory>
#include <optional>
#include <string>

#include <tessera/run/request.hpp>

namespace tessera::detail {

class RepeatedExchange {
 public:
  /// `core`: the extended block, the only operand and result of `call`'s plan.
  RepeatedExchange(const TensorCore& core, const Operation& operation, const Agreed& call)
      : core_(core),
        operands_{&core_},
        operation_(operation),
        prepared_(call.prepared.shared_from_this()),
        mark_(call.mark) {}
  RepeatedExchange(const RepeatedExchange&) = delete;
  RepeatedExchange& operator=(const RepeatedExchange&) = delete;

  /// Compares the call with those of the other processes, as Comparison does, for an exchange after
  /// the first. Throws MismatchError.
  void compare(CallSite site) const {
    if (prepared_->communicates)
      mesh().begin_operator(
          mark_, [&] { return words_of(site, operation_, operands_); }, site.where);
  }

  /// Carries out the list up to the first call, and starts that. Throws UsageError when one is in
  /// progress.
  void start(CallSite site) {
    if (execution_.has_value())
      throw UsageError(std::string(site.label) + ": this halo is being exchanged since " +
                           to_string(site_.where) +
                           ", and that has not been waited for; wait for it first",
                       site.where);
    label_ = site.label;
    site_ = {label_, site.where};
    if (!bound_) bind();
    lane_ = lane_of_thread;
    core_.storage()->use().write();  // after what other lanes do there
    execution_.emplace(*prepared_, operands_, site_, Extras{}, &binding_);
    core_.storage()->begin_use(site.where);
    execution_->start();
  }
  /// Returns true when the call that was started first is done, and lets it progress.
  bool done() { return !execution_.has_value() || execution_->arrived(); }
  /// Returns true when it waits for no memory that others write.
  bool quiet() const { return !execution_.has_value() || execution_->arrived_already(); }
  /// Carries out what is left.
  void finish() {
    const OnLane there(lane_);
    (void)execution_->finish();
    execution_.reset();
    core_.storage()->end_use();
  }

 private:
  MeshCore& mesh() const { return *core_.mesh(); }
  /// Asks the group of each exchange to share the block, and makes the list for those that do.
  void bind() {
    const Plan& plan = *prepared_->plan;
    std::vector<std::unique_ptr<SharedBlock>> shared;
    Calls how{true, std::vector<bool>(static_cast<std::size_t>(plan.steps.size()), false)};
    for (int i = 0; i < plan.steps.size(); ++i) {
      if (plan.steps[i].kind != StepKind::communicate) continue;
      shared.push_back(mesh().share(plan.steps[i].group, core_.memory(),
                                    plan.slots[plan.result].bytes, site_.where));
      how.in_place[static_cast<std::size_t>(i)] = shared.back() != nullptr;
    }
    binding_.list = InstructionList(plan, how).make();
    binding_.calls.resize(shared.size());
    for (std::size_t i = 0; i < shared.size(); ++i) binding_.calls[i].shared = std::move(shared[i]);
    bound_ = true;
  }

  const TensorCore& core_;
  OperandList operands_;
  Operation operation_;
  std::shared_ptr<const Prepared> prepared_;
  OperatorMark mark_;  ///< the exchange that all processes have announced
  bool bound_ = false;
  Binding binding_;
  std::string label_;
  CallSite site_;
  Lane* lane_ = nullptr;  ///< of the thread that began it
  std::optional<Execution> execution_;
};

}  // namespace tessera::detail
