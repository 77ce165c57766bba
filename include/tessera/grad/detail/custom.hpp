// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The bodies of grad/detail/custom_call.hpp, and what a tape does with such calls.
///
///     call.record(back);
#include <string>

#include <tessera/grad/adjoint/parts.hpp>
#include <tessera/grad/detail/custom_call.hpp>
#include <tessera/run/run.hpp>

namespace tessera::detail {

TESSERA_FUNCTION CustomCall::CustomCall(CallSite site, bool innermost)
    : Taker(taker_of_thread), site_(site) {
  while (Tape* const tape = outer_ != nullptr ? outer_->tape() : nullptr) {
    tapes_.push_back(tape);
    outer_ = tape->beneath();
    if (innermost) break;
  }
}

inline bool share_memory(const std::vector<TensorCore>& list, const TensorCore& x) {
  for (const TensorCore& one : list)
    if (memory_of(one) == memory_of(x)) return true;
  return false;
}

TESSERA_FUNCTION TensorCore CustomCall::take(const Request& r) {
  for (const Tape* tape : tapes_) {
    for (const TensorCore* operand : r.operands)
      if (tape->follows(*operand) && !share_memory(arguments_, *operand))
        throw UsageError(
            std::string(r.site.label) + ": a function within " + std::string(site_.label) +
                " reads a tensor that is differentiated and is none of its arguments, so that a "
                "gradient would be lost; give it to the function, or take stop_gradient of it",
            r.site.where);
    if (r.extras.into != nullptr && tape->follows(*r.extras.into))
      throw UsageError(std::string(r.site.label) + ": a function within " +
                           std::string(site_.label) +
                           " writes to a tensor that is differentiated; write to a copy",
                       r.site.where);
  }
  const TakenBy outer(outer_);
  return run(r);
}

TESSERA_FUNCTION void CustomCall::pin(const TensorCore& x, const OpenSharding& to, Where where) {
  const TakenBy scope(outer_);
  pin_tensor(x, to, where);
}

TESSERA_FUNCTION TensorCore CustomCall::result(const TensorCore& y) {
  if (!y.sharding().partial.empty())
    throw UsageError(std::string(site_.label) +
                         ": the function returns an unfinished tensor, whose gradient would have "
                         "another type; finish it with reshard first",
                     site_.where);
  TensorCore made = y;
  bool shared = share_memory(arguments_, y) || share_memory(results_, y);
  for (const Tape* tape : tapes_) shared = shared || tape->follows(y);
  if (shared && is_differentiable(y.type())) {  // others are not told apart
    const TakenBy outer(outer_);
    made = copied(y, site_);
  }
  results_.push_back(made);
  return made;
}

TESSERA_FUNCTION void CustomCall::record(Tape::Back back) {
  for (Tape* tape : tapes_) tape->record(back, arguments_, results_, kept_, site_);
}

}  // namespace tessera::detail
