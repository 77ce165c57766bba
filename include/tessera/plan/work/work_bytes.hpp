// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The memory that a step of local work needs beside its slots, as the kernels state it in their
/// descriptions of work.
///
///     Index bytes = detail::work_bytes(plan, step, at);
///
/// Laws: kernels that work on the host allocate no memory that grows with a tensor, but for
/// convolutions: those take, and those of float and half types keep for the next one, at most two
/// copies of each operand and of the result on this process, half types as float. Libraries of
/// products keep up to 20 MiB. The program tests/run/allocations.cpp counts both.
#include <tessera/plan/work/indexed_work.hpp>
#include <tessera/plan/work/sort_work.hpp>
#include <tessera/plan/work/window_work.hpp>

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
    case StepKind::select_and_scatter:  // what each window selects
      return saturating_mul(volume(select_work(plan, step, at).source), 8);
    case StepKind::find:  // each row's extreme value
      if (step.in.size() > 1) return 0;
      return saturating_mul(block_volume(out.extents, out.sharding, plan.mesh, at), unit());
    default:
      return 0;
  }
}

}  // namespace tessera::detail
