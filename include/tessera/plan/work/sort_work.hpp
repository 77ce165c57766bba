// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The local work of the steps of a sort.
///
///     LocalSort work = detail::sort_work(plan, step, 1, false, -1, at);
#include <tessera/plan/region/stored.hpp>

namespace tessera::detail {

/// Returns the comparisons that order lines of n elements, of which the first `limit` are kept.
constexpr Index comparisons(Index elements, Index n, Index limit) {
  int levels = 1;
  while (levels < 62 && (Index{1} << levels) < min_of(n, limit)) ++levels;
  return saturating_mul(elements, levels);
}

/// For the steps of a sort along a dimension: an element's position counts from the beginning of
/// its whole line. `positions`: the slot that has positions, or -1.
constexpr LocalSort sort_work(const Plan& plan, const Step& step, int along, bool descending,
                              int positions, const Coordinates& at) {
  const Slot& x = plan.slots[step.in[0]];
  const Extents extents = local_extents(x, plan, at);
  LocalSort work;
  work.descending = descending;
  work.narrow = positions >= 0 && plan.slots[positions].desc.type == DType::i32;
  work.n = extents[along];
  work.limit = local_extents(plan.slots[step.out], plan, at)[along];
  work.first = block(x.desc.extents[along], x.desc.sharding[along], plan.mesh, at).lo;
  for (int d = 0; d < along; ++d) work.outer *= extents[d];
  for (int d = along + 1; d < extents.size(); ++d) work.inner *= extents[d];
  return work;
}

}  // namespace tessera::detail
