// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The local work of the steps of a sort.
///
///     LocalSort work = detail::sort_work(plan, step, at);
#include <tessera/plan/region/stored.hpp>

namespace tessera::detail {

/// For the steps of a sort: an element's position counts from the beginning of its whole line.
constexpr LocalSort sort_work(const Plan& plan, const Step& step, const Coordinates& at) {
  const Slot& x = plan.slots[step.in[0]];
  const Extents extents = local_extents(x, plan, at);
  LocalSort work;
  work.descending = step.descending;
  // Positions are the output of an order step, and the last input of other steps.
  const int positions = step.kind == StepKind::order ? step.out : step.in.back();
  work.narrow = plan.slots[positions].desc.type == DType::i32 && step.kind != StepKind::sort;
  work.n = extents[step.along];
  work.limit = local_extents(plan.slots[step.out], plan, at)[step.along];
  work.first = block(x.desc.extents[step.along], x.desc.sharding[step.along], plan.mesh, at).lo;
  for (int d = 0; d < step.along; ++d) work.outer *= extents[d];
  for (int d = step.along + 1; d < extents.size(); ++d) work.inner *= extents[d];
  return work;
}

}  // namespace tessera::detail
