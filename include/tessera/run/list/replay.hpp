// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The calls of a list one by one, between tensors that are given: not those that were listed.
///
///     Replay replay(calls);
///     std::vector<TensorCore> tensors(replay.tensors());   // by their numbers in calls.program()
///     tensors[0] = x;
///     replay.run(0, tensors, layers);                      // makes the results of call 0
///
/// Laws: each call does what it would do in a run of the list; nothing is freed but what the caller
/// takes out of `tensors`.
#include <cstddef>
#include <memory>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/run/list/listing.hpp>

namespace tessera::detail {

class OpenAgain;

class Replay {
 public:
  /// The list, and its mesh, live as long.
  explicit Replay(const Listing& calls) : calls_(calls) {}

  /// Returns how many tensors the list has.
  std::size_t tensors() const { return calls_.tensors_.size(); }
  /// Returns the tensor that the list has under a number.
  const TensorCore& listed(int number) const { return calls_.listed(number).tensor; }
  /// Returns memory as the tensor `like`, which the list sees there.
  TESSERA_FUNCTION static TensorCore seen_as(const TensorCore& like,
                                             std::shared_ptr<Storage> memory);
  /// Returns memory that is free, for the tensor that the list has under a number.
  TESSERA_FUNCTION TensorCore fresh(int number) const;
  /// Carries call i out. Its operands, and the memory that it writes, are those of their numbers.
  /// `layers` opens those of the call. Collective over the mesh. Communication: that of the call.
  TESSERA_FUNCTION void run(int i, std::vector<TensorCore>& tensors, OpenAgain& layers);

 private:
  /// Returns tensor `t` of the list in the memory of its number.
  TensorCore seen(int t, const std::vector<TensorCore>& tensors) const {
    return seen_as(calls_.listed(t).tensor,
                   tensors[static_cast<std::size_t>(calls_.number_of(t))].storage());
  }

  const Listing& calls_;
};

}  // namespace tessera::detail

#if TESSERA_BODIES
#include <tessera/run/list/detail/replay.hpp>
#endif
