// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Operators that are started and waited for later, so that other work goes on while data travels.
///
///     auto pending = async([&] { return reshard<P<_, model>>(x); });    // starts; x is kept
///     auto y = einsum<"ik,kj->ij">(a, b);                               // meanwhile
///     auto z = pending.wait();                                          // what the function returned
///
/// Any operators may stand in the function, typed or dynamic. Each goes as far as its first
/// communication; one that needs the result of another one under way runs in wait().
///
/// Laws: wait() returns what the function returns without async (floating-point sums to rounding,
/// since MPI may add in another order); what is sent and received is the same. Nothing moves while
/// the program does not call MPI, unless the MPI library has threads of its own: ask done() now and
/// then in long work of your own.
#include <memory>
#include <type_traits>
#include <utility>

#include <tessera/run/request.hpp>
#include <tessera/run/under_way.hpp>

namespace tessera {

/// Operators that were started, whose results are a Result: a tensor, or a tuple or vector of them.
/// It holds their operands, functions and buffers. End it by wait(); else its destructor waits.
template <class Result> class [[nodiscard]] Pending {
 public:
  Pending(std::unique_ptr<detail::UnderWay> calls, Result result)
      : result_(std::move(result)), calls_(std::move(calls)) {}
  Pending(Pending&&) noexcept = default;
  Pending& operator=(Pending&&) noexcept = default;

  /// Returns true when what was started first is done, and lets it progress. Not collective.
  bool done() { return calls_ == nullptr || calls_->arrived(); }

  /// Returns the result. Communication: what is left of the operators' plans; collective over the
  /// mesh where something is left. Throws CommunicationError, and UsageError when it is waited for
  /// a second time.
  Result wait(Where where = Where::here()) {
    if (calls_ == nullptr)
      throw UsageError(
          "operators under way are waited for twice; keep what the first wait returned", where);
    const std::unique_ptr<detail::UnderWay> calls = std::move(calls_);
    calls->finish();
    return std::move(result_);
  }

 protected:
  Result result_;

 private:
  std::unique_ptr<detail::UnderWay> calls_;
};

/// Starts the operators that f() calls, and returns its result to wait for. f is called at once, on
/// this thread; it gives tensors to operators and returns them, and does not look at their
/// elements. Communication: that of f, some of it in wait(). Collective over the mesh: all
/// processes start, run and wait for their operators in the same order. A tensor that f writes
/// (`_into`, `+=`) cannot be used before wait(). Throws what f throws, and UsageError when f brings
/// a tensor to or from the host or another mesh, or refreshes a halo. Within a compiled function
/// the operators are that function's.
template <class F> Pending<std::decay_t<std::invoke_result_t<F&>>> async(F&& f) {
  static_assert(!std::is_void_v<std::invoke_result_t<F&>>,
                "[tessera] the function that async starts returns nothing; let it return the "
                "tensors that its operators make");
  auto calls = std::make_unique<detail::UnderWay>();
  detail::Taker* const outer = detail::taker_of_thread;
  const detail::TakenBy scope(outer != nullptr && outer->takes_all() ? outer : calls.get());
  auto result = f();
  return {std::move(calls), std::move(result)};
}

}  // namespace tessera
