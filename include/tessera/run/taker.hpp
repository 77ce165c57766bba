// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Who takes the calls of operators of a thread, where they are not carried out at once.
///
///     { const TakenBy scope(&taker);  f(); }      // taker.take(call) for each call that f makes
///
/// Laws: one taker at a time; the one before takes over again when the scope ends.
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <tessera/run/extras.hpp>
#include <tessera/spec/open_sharding.hpp>

namespace tessera::detail {

class Tape;

/// From the gradients of a call's results to those of its arguments, undefined where there is none.
using GradientBack = std::function<std::vector<TensorCore>(const std::vector<TensorCore>&)>;

/// What a call with a stated gradient is: an operator; or the same block, seen on another mesh
/// (run/whole_view.hpp), which passes unfinished gradients on as they come.
enum class Stated : std::uint8_t { made, seen };

/// Takes the calls of this thread in place of carrying them out. `outer`: who takes those that it
/// makes itself; null: they are carried out.
class Taker {
 public:
  explicit Taker(Taker* outer = nullptr) : outer_(outer) {}
  Taker(const Taker&) = delete;
  Taker& operator=(const Taker&) = delete;
  virtual TensorCore take(const Request& r) = 0;
  /// Throws where a call that it cannot take would be out of turn.
  virtual void refuse(CallSite site) const {
    if (outer_ != nullptr) outer_->refuse(site);
  }
  /// Returns true when it takes the calls of an async within, too.
  virtual bool takes_all() const { return false; }
  /// Returns the tape that it is (grad/tape.hpp), or null.
  virtual Tape* tape() { return nullptr; }
  /// Returns who takes the calls beneath a tape.
  virtual Taker* beneath() { return this; }
  /// Records in a tape that y was made of x by a call whose gradient is stated.
  virtual void record_stated(const GradientBack&, const TensorCore& /*x*/, const TensorCore& /*y*/,
                             CallSite, Stated) {}
  /// Returns who lists the calls that it takes, to carry them out together; null: nobody does.
  virtual Taker* lister() { return outer_ == nullptr ? nullptr : outer_->lister(); }
  /// Tells a lister that `seen` is x's memory as a tensor of another mesh (run/whole_view.hpp).
  virtual void see(const TensorCore& /*x*/, const TensorCore& /*seen*/, CallSite) {}
  /// Notes what a tensor's sharding shall be where it is chosen (op/constrain.hpp).
  virtual void pin(const TensorCore&, const OpenSharding&, Where) {}

 protected:
  ~Taker() = default;

  Taker* outer_;
};
inline constinit thread_local Taker* taker_of_thread = nullptr;  ///< null: calls are carried out

/// Returns who lists the calls of this thread; null where they are not listed.
inline Taker* lister_of_thread() {
  return taker_of_thread == nullptr ? nullptr : taker_of_thread->lister();
}
/// Returns whether a tape takes the calls of this thread.
inline bool is_taped() { return taker_of_thread != nullptr && taker_of_thread->tape() != nullptr; }

/// Whether the shardings of what this thread's function makes are chosen, once it is listed.
inline constinit thread_local bool chosen_on_thread = false;

/// Throws UsageError where an operator of open tensors would run with nothing that chooses their
/// shardings.
inline void require_chosen(const MeshCore& mesh, CallSite site) {
  if (chosen_on_thread || mesh.dry()) return;
  throw UsageError(std::string(site.label) +
                       ": a tensor whose type has Open entries is used where no shardings are "
                       "chosen; operators on it are for functions that choose, compile(f, choice) "
                       "or compile(f, {.choose = ...}) runs; call it there, or name how the tensor "
                       "lies: reshard<P<...>>(x), as<Tensor>(x)",
                   site.where);
}

/// While it lives, `taker` takes the calls of this thread; null: they are carried out.
class TakenBy {
 public:
  explicit TakenBy(Taker* taker) : before_(std::exchange(taker_of_thread, taker)) {}
  TakenBy(const TakenBy&) = delete;
  TakenBy& operator=(const TakenBy&) = delete;
  ~TakenBy() { taker_of_thread = before_; }

 private:
  Taker* before_;
};

/// Returns f(), which makes a tensor of x apart from the tapes; they get its gradient from `back`.
template <class F>
TensorCore beside_tapes(const TensorCore& x, const GradientBack& back, CallSite site, const F& f,
                        Stated stated = Stated::made) {
  std::vector<Taker*> tapes;
  Taker* beneath = taker_of_thread;
  while (beneath != nullptr && beneath->tape() != nullptr) {
    tapes.push_back(beneath);
    beneath = beneath->beneath();
  }
  const TensorCore y = [&] {
    const TakenBy scope(beneath);
    return f();
  }();
  for (Taker* tape : tapes) tape->record_stated(back, x, y, site, stated);
  return y;
}

/// While it lives, the shardings of what this thread makes are chosen, or not.
class ChosenOnThread {
 public:
  explicit ChosenOnThread(bool chosen) : before_(std::exchange(chosen_on_thread, chosen)) {}
  ChosenOnThread(const ChosenOnThread&) = delete;
  ChosenOnThread& operator=(const ChosenOnThread&) = delete;
  ~ChosenOnThread() { chosen_on_thread = before_; }

 private:
  bool before_;
};

}  // namespace tessera::detail
