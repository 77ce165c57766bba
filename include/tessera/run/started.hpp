// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// An operator that was started and is waited for later.
///
///     started.begin(prepared, operands, site, extras);
///     TensorCore y = started.finish();
///
/// Laws: those of run/execute.hpp; its operands and its plan live until it is finished.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/run/detail/same_calls.hpp>
#include <tessera/run/execute.hpp>

namespace tessera::detail {

/// An operator that was started: it keeps its operands, its plan and its buffers until it is
/// finished.
class Started {
 public:
  Started() = default;
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;

  void begin(const Prepared& prepared, const OperandList& operands, CallSite site,
             const Extras& extras, std::uint64_t history = 0);
  TensorCore begun();
  bool arrived();
  bool arrived_already() const;
  TensorCore finish();
  Where where() const { return site_.where; }
  const std::shared_ptr<MeshCore>& mesh() const { return kept_.front().mesh(); }

 private:
  std::string label_;
  CallSite site_;
  std::vector<TensorCore> kept_;
  OperandList operands_;
  std::shared_ptr<const Prepared> prepared_;
  std::uint64_t history_ = 0;
  Lane* lane_ = nullptr;  ///< of the thread that began it
  std::optional<Execution> execution_;
};

#if TESSERA_BODIES

TESSERA_FUNCTION void Started::begin(const Prepared& prepared, const OperandList& operands,
                                     CallSite site, const Extras& extras, std::uint64_t history) {
  history_ = history;
  lane_ = lane_of_thread;
  label_ = site.label;
  site_ = {label_, site.where};
  kept_.reserve(static_cast<std::size_t>(operands.size()));
  for (const TensorCore* operand : operands) kept_.push_back(*operand);
  for (const TensorCore& operand : kept_) {
    operands_.push_back(&operand);
    operand.storage()->begin_use(site.where);
  }
  prepared_ = prepared.shared_from_this();
  execution_.emplace(prepared, operands_, site_, extras);
  execution_->start();
}
TESSERA_FUNCTION TensorCore Started::begun() { return execution_->begun(); }
TESSERA_FUNCTION bool Started::arrived() { return execution_->arrived(); }
TESSERA_FUNCTION bool Started::arrived_already() const { return execution_->arrived_already(); }
TESSERA_FUNCTION TensorCore Started::finish() {
  const OnLane there(lane_);
  TensorCore result = execution_->finish();
  remember(result, operands_, history_);
  for (const TensorCore& operand : kept_) operand.storage()->end_use();
  kept_.clear();
  return result;
}

#endif

}  // namespace tessera::detail
