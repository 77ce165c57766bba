// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The memory that a step of local work needs beside its slots, as the kernels state it in their
/// descriptions of work.
///
///     Index bytes = detail::work_bytes(plan, step, at);
///
/// Laws: kernels that work on the host allocate no memory that grows with a tensor, but for
/// convolutions, whose libraries do (kernel/convolve/convolve.hpp).
#include <tessera/plan/work/indexed_work.hpp>
#include <tessera/plan/work/sort_work.hpp>

namespace tessera::detail {

/// Returns the bytes of arena memory that a step of local work needs beside its slots.
constexpr Index work_bytes(const Plan& plan, const Step& step, const Coordinates& at) {
  const TensorDesc& out = plan.slots[step.out].desc;
  const auto unit = [&] { return static_cast<Index>(size_of(plan.slots[step.in[0]].desc.type)); };
  switch (step.kind) {
    case StepKind::scatter:
      return saturating_mul(scatter_work(plan, step, at).integers(), 8);
    case StepKind::sort:
    case StepKind::order:
      return sort_work(plan, step, at).scratch_bytes(unit(), step.in.size() > 1);
    case StepKind::find:  // each row's extreme value
      if (step.in.size() > 1) return 0;
      return saturating_mul(block_volume(out.extents, out.sharding, plan.mesh, at), unit());
    default:
      return 0;
  }
}

}  // namespace tessera::detail
