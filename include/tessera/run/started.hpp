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

#include <tessera/base/compiled.hpp>
#include <tessera/base/owned.hpp>
#include <tessera/run/kept_request.hpp>

namespace tessera::detail {

class Execution;
class FiniteCheck;

class Started {
 public:
  Started();
  Started(const Started&) = delete;
  Started& operator=(const Started&) = delete;
  ~Started();

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
  Owned<FiniteCheck> finite_;
  Owned<Execution> execution_;
};

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/run/detail/start.hpp>
#endif
