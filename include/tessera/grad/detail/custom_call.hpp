// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A call whose gradient its author states, as the tapes see it: one node.
///
///     CustomCall call(site);
///     call.argument(x.core());
///     auto y = call.forward([&] { return f(x); });
///     y = Y(call.result(y.core()));
///     call.record(back);                          // back(gradients of results) -> of arguments
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/grad/tape.hpp>

namespace tessera::detail {

class CustomCall final : public Taker {
 public:
  /// Finds the tapes of this thread: more than one where gradients are differentiated. `innermost`:
  /// the other ones take the function's operators, not the call.
  TESSERA_FUNCTION CustomCall(CallSite site, bool innermost);

  bool differentiated() const { return !tapes_.empty(); }
  void argument(const TensorCore& x) { arguments_.push_back(x); }
  /// What the gradient will read.
  void keep(const TensorCore& x) { kept_.push_back(x); }
  /// Runs the function apart from the tapes.
  template <class F> auto forward(const F& f) {
    const TakenBy scope(this);
    const WatchedBy views(tapes_.empty() ? watch_of_thread : tapes_.back()->outer_watch());
    return f();
  }
  /// Returns a result that shares no memory with arguments and other results.
  TESSERA_FUNCTION TensorCore result(const TensorCore& y);
  TESSERA_FUNCTION void record(Tape::Back back);

  TESSERA_FUNCTION TensorCore take(const Request& r) override;
  bool takes_all() const override { return true; }
  TESSERA_FUNCTION void pin(const TensorCore& x, const OpenSharding& to, Where where) override;

 private:
  CallSite site_;
  std::vector<Tape*> tapes_;  ///< from the innermost on
  std::vector<TensorCore> arguments_, results_, kept_;
};

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/grad/detail/custom.hpp>
#endif
