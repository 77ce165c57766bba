// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a call is started, and finished.
///
///     started.begin(prepared, request, history);
///
/// Laws: those of run/started.hpp.
#include <cstdint>
#include <memory>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/run/detail/not_finite.hpp>
#include <tessera/run/execute.hpp>
#include <tessera/run/started.hpp>

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

TESSERA_FUNCTION Started::Started() = default;
TESSERA_FUNCTION Started::~Started() = default;

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
  finite_.reset(new FiniteCheck(kept, *prepared.plan));
  execution_.reset(new Execution(prepared, operands_, kept.site, kept.extras));
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
  finite_->results(result, &also);
  kept_.reset();
  return result;
}

}  // namespace tessera::detail
