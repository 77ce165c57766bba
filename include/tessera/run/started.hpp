// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// An operator that was started and is waited for later.
///
///     started.begin(prepared, request, history);
///     TensorCore y = started.finish();
///
/// Laws: those of run/execute.hpp; its operands, function and plan live until it is finished.
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/run/execute.hpp>
#include <tessera/run/kept_request.hpp>

namespace tessera::detail {

/// Returns the first result of an execution; `also` gets the further ones, whose descriptions are
/// `results` from the second on. All remember how they were made. `into`: the first is a tensor
/// that was there.
inline TensorCore results_of(Execution& execution, TensorCore first, const TensorDescs& results,
                             const OperandList& operands, std::uint64_t history, bool into,
                             std::vector<TensorCore>& also) {
  remember(first, operands, history, into);
  for (int i = 1; i < results.size(); ++i) {
    also.push_back(execution.also(i - 1, results[i].sharding));
    remember(also.back(), operands, history == 0 ? 0 : mix(history, static_cast<std::uint64_t>(i)));
  }
  return first;
}

class Started {
 public:
  Started() = default;
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;

  /// Carries the call out up to its first communication, and starts that. `history`: what the
  /// results remember.
  void begin(const Prepared& prepared, const Request& r, std::uint64_t history);
  /// Returns the result while it is in progress.
  TensorCore begun();
  bool arrived();
  bool arrived_already() const;
  /// Returns true when nothing is left to do but finish(), which then communicates nothing.
  bool complete() const;
  TensorCore finish();
  const std::shared_ptr<MeshCore>& mesh() const { return kept_->mesh(); }

 private:
  std::unique_ptr<KeptRequest> kept_;
  OperandList operands_;
  TensorDescs results_;
  std::shared_ptr<const Prepared> prepared_;
  std::uint64_t history_ = 0;
  bool into_ = false;
  Lane* lane_ = nullptr;  ///< of the thread that began it
  std::optional<Execution> execution_;
};

#if TESSERA_BODIES

TESSERA_FUNCTION void Started::begin(const Prepared& prepared, const Request& r,
                                     std::uint64_t history) {
  history_ = history;
  lane_ = lane_of_thread;
  prepared_ = prepared.shared_from_this();
  if (r.extras.also != nullptr) results_ = r.operation.results(descs_of(r.operands));
  kept_ = std::make_unique<KeptRequest>(r);
  const Request kept = kept_->request();
  into_ = kept.extras.into != nullptr;
  operands_ = kept.operands;
  execution_.emplace(prepared, operands_, kept.site, kept.extras);
  execution_->start();
}
TESSERA_FUNCTION TensorCore Started::begun() { return execution_->begun(); }
TESSERA_FUNCTION bool Started::arrived() { return execution_->arrived(); }
TESSERA_FUNCTION bool Started::arrived_already() const { return execution_->arrived_already(); }
TESSERA_FUNCTION bool Started::complete() const { return execution_->complete(); }
TESSERA_FUNCTION TensorCore Started::finish() {
  const OnLane there(lane_);
  std::vector<TensorCore> also;
  const TensorCore result =
      results_of(*execution_, execution_->finish(), results_, operands_, history_, into_, also);
  kept_.reset();
  return result;
}

#endif

}  // namespace tessera::detail
