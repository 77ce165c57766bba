// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a value that varies leaves a manual function (manual/manual.hpp): as blocks of one tensor.
///
///     const auto same = manual<model>([](const auto& block) { return along<0, model>(block); });
///
/// Laws: the result's dimension D has the blocks one behind the other, in the order of the axes,
/// the first one major, and is split over them.
#include <tessera/manual/detail/entered.hpp>

namespace tessera {

/// Returns y, (n, m, ...), as a result of a manual function whose dimension D is split over the
/// axes X...: there the blocks of all their coordinates lie. Of several dimensions:
/// along<1, b>(along<0, a>(y)). Communication: none. Throws nothing.
template <int D, class... X, TypedTensor A> LiesAlong<A, Lies<D, X...>> along(const A& y) {
  static_assert(D >= 0 && D < A::rank,
                "[tessera] along names a dimension that the tensor does not have; dimensions count "
                "from 0");
  static_assert(sizeof...(X) > 0, "[tessera] along names no axis; name those over which y varies");
  return {y};
}
template <int D, class... X, class A, class... L>
LiesAlong<A, L..., Lies<D, X...>> along(const LiesAlong<A, L...>& y) {
  return {along<D, X...>(y.tensor).tensor};
}

}  // namespace tessera
