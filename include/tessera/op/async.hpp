// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Reshards and reductions that are started and waited for later, so that other work goes on while
/// data travels.
///
///     auto pending = reshard_async<P<_, model>>(x);     // starts; x is kept until it is done
///     auto y = einsum<"ik,kj->ij">(a, b);               // meanwhile
///     auto z = pending.wait();                          // reshard<P<_, model>>(x)
///
/// Laws: wait() returns what the plain operator returns (floating-point sums to rounding, since MPI
/// may add in another order); what is sent and received is the same. Nothing moves while the
/// program does not call MPI, unless the MPI library has threads of its own: ask done() now and
/// then in long work of your own.
#include <exception>
#include <memory>

#include <tessera/op/reduce.hpp>
#include <tessera/op/reshard.hpp>

namespace tessera {

/// An operator that was started, whose result is a Tensor. It holds its operands and buffers. End
/// it by wait(); else its destructor waits.
template <class Tensor> class [[nodiscard]] Pending {
 public:
  explicit Pending(std::unique_ptr<detail::Started> started) : started_(std::move(started)) {}
  Pending(Pending&&) noexcept = default;
  Pending& operator=(Pending&& other) noexcept {
    if (this != &other) {
      let_go();
      started_ = std::move(other.started_);
    }
    return *this;
  }
  ~Pending() { let_go(); }

  /// Returns true when what was started first is done, and lets it progress. Not collective.
  bool done() { return started_ == nullptr || started_->arrived(); }

  /// Returns the result. Communication: the rest of the operator's plan, after its first call;
  /// collective over the mesh where there is a rest. Throws CommunicationError, and UsageError when
  /// it is waited for a second time.
  Tensor wait(Where where = Where::here()) {
    if (started_ == nullptr)
      throw UsageError(
          "an operator under way is waited for twice; keep the tensor that the first wait returned",
          where);
    const std::unique_ptr<detail::Started> started = std::move(started_);
    return Tensor(started->finish());
  }

 private:
  /// Does not free memory that MPI may still write: it waits or, while an exception passes, leaves
  /// the memory as it is on a mesh that can no longer be used.
  void let_go() noexcept {
    if (started_ == nullptr) return;
    if (std::uncaught_exceptions() == 0) {
      try {
        (void)started_->finish();
        started_.reset();
        return;
      } catch (const std::exception& error) {
        started_->mesh()->poison(std::string("an operator under way failed: ") + error.what());
      }
    } else {
      started_->mesh()->poison("an exception passed while an operator was under way");
    }
    if (started_->arrived_already())
      started_.reset();
    else
      (void)started_.release();
  }
  std::unique_ptr<detail::Started> started_;
};

/// Starts reshard<S>(x). Communication: as reshard. Collective over the mesh: all processes start
/// and run their operators in the same order.
template <class S, class Bound = NoContract, TypedTensor A>
Pending<typename detail::TypedReshard<S, A>::result> reshard_async(const A& x,
                                                                   Where where = Where::here()) {
  using Typed = detail::TypedReshard<S, A>;
  auto started = std::make_unique<detail::Started>();
  detail::Extras extras;
  extras.started = started.get();
  (void)detail::run(
      {Typed::operation, {&x.core()}, {"reshard", where, detail::bound<Typed, Bound>()}, extras});
  return Pending<typename Typed::result>(std::move(started));
}
inline Pending<DynamicTensor> reshard_async(const DynamicTensor& x, const Sharding& to,
                                            const DynamicCall& call = Where::here()) {
  auto started = std::make_unique<detail::Started>();
  detail::Extras extras;
  extras.started = started.get();
  (void)detail::reshard(x.core(), to, call.site("reshard"), extras);
  return Pending<DynamicTensor>(std::move(started));
}

/// Starts reduce<Kind, E, Out>(x): the local part is done at once.
template <class Kind, Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
Pending<typename detail::TypedReduce<Kind, E, Out, A>::result> reduce_async(
    const A& x, Where where = Where::here()) {
  using Typed = detail::TypedReduce<Kind, E, Out, A>;
  auto started = std::make_unique<detail::Started>();
  detail::Extras extras;
  extras.started = started.get();
  (void)detail::run_reduce<Kind, Typed, Bound>(x, E.view(), where, extras);
  return Pending<typename Typed::result>(std::move(started));
}
/// The same with everything known at run time.
template <class Kind>
Pending<DynamicTensor> reduce_async(std::string_view equation, const DynamicTensor& x,
                                    const Sharding& out, const DynamicCall& call = Where::here()) {
  auto started = std::make_unique<detail::Started>();
  detail::Extras extras;
  extras.started = started.get();
  (void)detail::run_reduce<Kind>(equation, x.core(), &out, call.site(equation), extras);
  return Pending<DynamicTensor>(std::move(started));
}

}  // namespace tessera
