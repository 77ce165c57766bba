// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The calls that one function makes while it is started: each goes as far as its first
/// communication; those that need the result of another one wait for their turn.
///
///     UnderWay calls;
///     { const Starting scope(&calls);  y = f(); }       // started
///     calls.finish();                                   // now y has its values
///
/// Laws: the results are those of the calls made one after the other; calls that were started
/// together end in the order in which they were written.
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/run/started.hpp>

namespace tessera::detail {

class UnderWay;
/// The calls that this thread starts in place of carrying them out; null: it carries them out.
inline constinit thread_local UnderWay* calls_of_thread = nullptr;

class UnderWay {
 public:
  UnderWay() = default;
  UnderWay(const UnderWay&) = delete;
  UnderWay& operator=(const UnderWay&) = delete;
  ~UnderWay() { let_go(); }

  /// Starts a call, or leaves it for later, and returns its result, whose memory is promised.
  /// Throws UsageError when the call has other memory than tensors of one mesh.
  TensorCore add(const Request& r);
  /// The same for a call that has been started by itself.
  void add(std::unique_ptr<Started> started) {
    mesh_ = started->mesh();
    calls_.push_back(std::make_unique<Call>());
    calls_.back()->started = std::move(started);
  }
  /// Returns true when what was started first is done, and lets it progress.
  bool arrived() {
    return next_ == calls_.size() || calls_[next_]->started == nullptr ||
           calls_[next_]->started->arrived();
  }
  /// Carries out what is left.
  void finish();

 private:
  struct Call {
    std::vector<std::shared_ptr<Storage>> promised;  ///< of each result; null: an operand's
    std::unique_ptr<Started> started;
    std::unique_ptr<KeptRequest> later;  ///< in place of `started`
    std::shared_ptr<Storage> into;       ///< the memory of its destination
    Lane* lane = nullptr;
  };
  /// Does not free memory that MPI may still write: it waits or, while an exception passes, leaves
  /// the memory as it is on a mesh that can no longer be used.
  void let_go() noexcept {
    if (next_ == calls_.size()) return;
    if (std::uncaught_exceptions() == 0) {
      try {
        return finish();
      } catch (const std::exception& error) {
        mesh_->poison(std::string("an operator under way failed: ") + error.what());
      }
    } else {
      mesh_->poison("an exception passed while an operator was under way");
    }
    for (; next_ < calls_.size(); ++next_)
      if (Call& call = *calls_[next_]; call.started != nullptr && !call.started->arrived_already())
        (void)calls_[next_].release();
  }

  std::shared_ptr<MeshCore> mesh_;
  std::vector<std::unique_ptr<Call>> calls_;
  std::size_t next_ = 0;  ///< the first that is not finished
};

/// The calls of this thread are started while it lives.
class Starting {
 public:
  explicit Starting(UnderWay* calls) : before_(std::exchange(calls_of_thread, calls)) {}
  Starting(const Starting&) = delete;
  Starting& operator=(const Starting&) = delete;
  ~Starting() { calls_of_thread = before_; }

 private:
  UnderWay* before_;
};

}  // namespace tessera::detail
