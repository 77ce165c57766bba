// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The repeated exchange in place of one extended block: its list of instructions is bound to the
/// block's memory once, its requests are made once, and where the processes of a group share
/// memory, each reads its halo out of the others' blocks, without messages, packing or unpacking.
///
///     RepeatedExchange exchange(core, operation, call);   exchange.start(site);   exchange.finish();
///
/// Laws: it moves, counts and holds the same as a single exchange with the same plan; a repeated
/// exchange allocates nothing on the heap; one exchange at a time is in progress.
#include <tessera/base/compiled.hpp>
#include <tessera/base/owned.hpp>
#include <tessera/run/request.hpp>

namespace tessera::detail {

class RepeatedExchange {
 public:
  /// `core`: the extended block, the only operand and result of `call`'s plan.
  RepeatedExchange(const TensorCore& core, const Operation& operation, const Agreed& call);
  RepeatedExchange(const RepeatedExchange&) = delete;
  RepeatedExchange& operator=(const RepeatedExchange&) = delete;
  ~RepeatedExchange();

  /// Compares the call with those of the other processes, as Comparison does, for an exchange after
  /// the first. Throws MismatchError.
  void compare(CallSite site) const;
  /// Carries out the list up to the first call, and starts that. Throws UsageError when one is in
  /// progress.
  void start(CallSite site);
  /// Returns true when the call that was started first is done, and lets it progress.
  bool done();
  /// Returns true when it waits for no memory that others write.
  bool quiet() const;
  /// Carries out what is left.
  void finish();

 private:
  struct State;
  Owned<State> state_;
};

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/op/halo/detail/exchange_work.hpp>
#endif
