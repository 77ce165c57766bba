// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Gives a tensor that is there to the last of the operators that a function calls.
///
///     IntoLast calls(y, where);
///     { const TakenBy scope(&calls);  result = f(); }
///     calls.finish(result);                             // now y has the values of the result
///
/// Each call is held back until the next one comes, or the function has returned: then it is known
/// whether it was the last.
///
/// Laws: all operators but the last are carried out as without it, one call later; nothing is
/// written to the destination before all others are done.
#include <memory>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/run/kept_request.hpp>
#include <tessera/run/taker.hpp>

namespace tessera::detail {

class IntoLast final : public Taker {
 public:
  IntoLast(const TensorCore& y, Where where) : Taker(taker_of_thread), y_(y), where_(where) {}
  ~IntoLast() {
    for (const Made& made : made_) made.promised.storage()->break_promise();
  }

  /// Holds a call back, and returns its results, whose memory is promised. Throws what the call
  /// before it throws, and UsageError when this one has a destination of its own.
  TESSERA_FUNCTION TensorCore take(const Request& r) override;
  bool takes_all() const override { return true; }
  TESSERA_FUNCTION void pin(const TensorCore& x, const OpenSharding& to, Where where) override;
  /// Throws UsageError where a tape takes the calls then: a call that asks for it would pass by
  /// those that are held back.
  Tape* tape() override {
    if (outer_ != nullptr && outer_->tape() != nullptr)
      throw UsageError(
          "the function given to into is differentiated, and calls one whose gradient is stated "
          "(custom_gradient, recompute) or copies a halo tensor's block; call that before, and use "
          "its result in the function",
          where_);
    return nullptr;
  }

  /// Carries out the last call, whose result is `returned`, with the destination. Throws UsageError
  /// when another call has made that, or none.
  TESSERA_FUNCTION void finish(const TensorCore& returned);

 private:
  /// A result of a call.
  struct Made {
    TensorCore promised;  ///< what the function has of it
    TensorCore result;    ///< undefined until the call has been carried out
  };

  TESSERA_FUNCTION void hold(const Request& r);
  /// Carries out the call that is held back, which is not the last.
  TESSERA_FUNCTION void pass_on();
  /// Ends the results that the function has no more.
  void let_go();
  /// Returns the tensor that stands for an operand now.
  const TensorCore& now(const TensorCore& operand) const;

  const TensorCore& y_;
  Where where_;
  std::unique_ptr<KeptRequest> held_;
  bool several_ = false;  ///< the held call returns its further results
  Lane* lane_ = nullptr;  ///< on which it was called
  TensorCore last_;       ///< the first result of the last call, as the function has it
  std::vector<Made> made_;
  std::size_t open_ = 0;  ///< the results of the held call, at the end of made_
};

/// Writes what f() returns to y: the last operator that f calls makes it there, and the others make
/// tensors of their own. Throws as IntoLast.
template <class F> void write_last(const TensorCore& y, Where where, const F& f) {
  IntoLast calls(y, where);
  const TensorCore returned = [&] {
    const TakenBy scope(&calls);
    return f();
  }();
  calls.finish(returned);
}

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/run/detail/into_last.hpp>
#endif
