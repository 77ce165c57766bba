// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The calls that one function makes while it is started: each goes as far as its first
/// communication; those that need the result of another one wait for their turn.
///
///     UnderWay calls;
///     { const TakenBy scope(&calls);  y = f(); }         // started
///     calls.finish();                                   // now y has its values
///
/// Laws: the results are those of the calls made one after the other; calls that were started
/// together end in the order in which they were written.
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include <tessera/base/compiled.hpp>
#include <tessera/run/started.hpp>
#include <tessera/run/taker.hpp>

namespace tessera::detail {

class UnderWay final : public Taker {
 public:
  UnderWay() = default;
  ~UnderWay() { let_go(); }

  /// Starts a call, or leaves it for later, and returns its result, whose memory is promised.
  /// Throws UsageError when the call has other memory than tensors of one mesh.
  TESSERA_FUNCTION TensorCore take(const Request& r) override;
  /// Takes a call that has been started by itself.
  void add(std::unique_ptr<Started> started) {
    mesh_ = started->mesh();
    auto call = std::make_unique<Call>();
    call->started = std::move(started);
    add(std::move(call));
  }
  /// Returns true when what was started first is done, and lets it progress.
  bool arrived() {
    return first_ == nullptr || first_->started == nullptr || first_->started->arrived();
  }
  /// Carries out what is left.
  void finish();

 private:
  struct Call {
    Promises promised;  ///< null: the first result has a destination
    std::unique_ptr<Started> started;
    std::unique_ptr<KeptRequest> later;  ///< in place of `started`
    std::shared_ptr<Storage> into;       ///< the memory of its destination
    Lane* lane = nullptr;
    std::unique_ptr<Call> next;
  };
  void add(std::unique_ptr<Call> call) {
    Call* const added = call.get();
    (first_ == nullptr ? first_ : last_->next) = std::move(call);
    last_ = added;
  }
  /// Does not free memory that MPI may still write: it waits or, while an exception passes, leaves
  /// the memory as it is on a mesh that can no longer be used.
  void let_go() noexcept {
    if (first_ == nullptr) return;
    if (std::uncaught_exceptions() == 0) {
      try {
        return finish();
      } catch (const std::exception& error) {
        mesh_->poison(std::string("an operator under way failed: ") + error.what());
      }
    } else {
      mesh_->poison("an exception passed while an operator was under way");
    }
    while (first_ != nullptr) {
      const std::unique_ptr<Call> ended = std::exchange(first_, std::move(first_->next));
      for (const std::shared_ptr<Storage>& promise : ended->promised)
        if (promise != nullptr) promise->break_promise();
      if (ended->into != nullptr) ended->into->break_promise();
      if (ended->started != nullptr && !ended->started->arrived_already())
        (void)ended->started.release();
    }
  }

  std::shared_ptr<MeshCore> mesh_;
  std::unique_ptr<Call> first_;  ///< the calls that are not finished
  Call* last_ = nullptr;
};

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/run/run.hpp>
#endif
