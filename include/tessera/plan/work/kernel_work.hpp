// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The local work of a step on one process: copies between blocks, or a kernel with its work.
///
///     Kernel kernel = detail::kernel_of(plan, i);      // of a step that computes
///     auto copies = detail::local_copies(plan, step);  // of a slice, copy, permutation or diagonal
#include <vector>

#include <tessera/plan/work/instruction.hpp>
#include <tessera/plan/work/row_work.hpp>
#include <tessera/plan/work/window_work.hpp>

namespace tessera::detail {

inline ContractionBlock contraction_block(const Slot& slot, const Plan& plan,
                                          const Coordinates& at) {
  return without_units({slot.labels, local_extents(slot, plan, at), slot.panel_dim, slot.panels,
                        has_gaps(plan, slot) ? strides_of(plan, slot, at) : Extents{}},
                       slot, plan);
}

/// Returns the copy that permutes a slot, or repeats it along labels.
inline StridedCopy permute_work(const Slot& from, const Slot& to, const Plan& plan,
                                const Coordinates& at) {
  StridedCopy copy;
  copy.extents = local_extents(to, plan, at);
  copy.to_strides = strides_of(plan, to, at);
  const Extents strides = strides_of(plan, from, at);
  for (int d = 0; d < to.labels.size(); ++d) {  // what the source has not, or once, is repeated
    const int source = from.labels.find(to.labels[d]);
    const bool repeated = source < 0 || from.desc.extents[source] != to.desc.extents[d];
    copy.from_strides.push_back(repeated ? 0 : strides[source]);
  }
  return copy;
}

/// Returns the copy of the part of the diagonal that this process holds, into its block of the
/// diagonal; its extents are 0 when it holds none.
inline StridedCopy diagonal_work(const Slot& from, const Slot& to, const Plan& plan,
                                 const Coordinates& at) {
  const Box source = block(from.desc.extents, from.desc.sharding, plan.mesh, at);
  const Box target = block(to.desc.extents, to.desc.sharding, plan.mesh, at);
  const Extents strides = strides_of(plan, from, at);
  StridedCopy copy;
  copy.to_strides = row_major_strides(target.extents());
  for (int t = 0; t < target.rank(); ++t) {
    Interval held = target[t];
    for (int d = 0; d < source.rank(); ++d)
      if (from.labels[d] == to.labels[t]) held = intersect(held, source[d]);
    Index stride = 0;
    for (int d = 0; d < source.rank(); ++d)
      if (from.labels[d] == to.labels[t]) {
        stride += strides[d];
        copy.from_offset += (held.lo - source[d].lo) * strides[d];
      }
    copy.to_offset += (held.lo - target[t].lo) * copy.to_strides[t];
    copy.extents.push_back(held.size());
    copy.from_strides.push_back(stride);
  }
  return copy;
}

inline LocalMap map_work(const Plan& plan, const Step& step, const Coordinates& at) {
  const Slot& to = plan.slots[step.out];
  LocalMap work;
  work.extents = local_extents(to, plan, at);
  for (const Interval& side : block(to.desc.extents, to.desc.sharding, plan.mesh, at).side)
    work.offset.push_back(side.lo);
  if (has_gaps(plan, to)) work.result = strides_of(plan, to, at);
  for (int slot : step.in) {
    const Slot& from = plan.slots[slot];
    const Extents own = strides_of(plan, from, at);
    Extents strides(work.extents.size(), 0);
    for (int d = 0; d < strides.size(); ++d)
      if (const int source = from.labels.find(to.labels[d]);
          source >= 0 && from.desc.extents[source] == to.desc.extents[d])
        strides[d] = own[source];
    work.strides.push_back(strides);
  }
  work.flat = work.result.empty();
  for (const Extents& strides : work.strides)
    work.flat = work.flat && strides == row_major_strides(work.extents);
  return work;
}

/// The copies of a local step, and whether they leave elements that are zero.
struct LocalCopies {
  std::vector<StridedCopy> copies;
  bool zeroed = false;
};
inline LocalCopies local_copies(const Plan& plan, const Step& step) {
  const Coordinates at = plan.mesh.coordinates(plan.process);
  const Slot& from = plan.slots[step.in[0]];
  const Slot& to = plan.slots[step.out];
  if (step.kind == StepKind::permute) return {{permute_work(from, to, plan, at)}};
  if (step.kind == StepKind::diagonal) {
    const StridedCopy held = diagonal_work(from, to, plan, at);
    LocalCopies work{{}, !(held.extents == local_extents(to, plan, at))};
    if (volume(held.extents) > 0) work.copies.push_back(held);
    return work;
  }
  const auto strides = [&](const Slot& slot, const Box& box) {
    return slot.stored < 0 ? row_major_strides(box.extents()) : strides_of(plan, slot, at);
  };
  const Box source = Holding(from.desc, from.place, plan.mesh).box(plan.process);
  const Box target = Holding(to.desc, to.place, plan.mesh).box(plan.process);
  if (target.empty()) return {};
  return {{copy_between(box_at(target, source, strides(from, source)),
                        box_at(target, target, strides(to, target)))}};
}

/// Returns the work of a step that computes; of a convolution, kernels_of_convolution() has it.
inline KernelWork kernel_work(const Plan& plan, const Step& step) {
  const Coordinates at = plan.mesh.coordinates(plan.process);
  const Slot& first = plan.slots[step.in[0]];
  const Slot& out = plan.slots[step.out];
  if (step.kind == StepKind::contract)
    return contraction_work(contraction_block(first, plan, at),
                            contraction_block(plan.slots[step.in[1]], plan, at),
                            contraction_block(out, plan, at));
  if (step.kind == StepKind::reduce) return reduce_work(first, out, plan, at);
  if (step.kind == StepKind::map) return map_work(plan, step, at);
  KernelCall call;
  if (step.kind.verb().work != nullptr) step.kind.verb().work(plan, step, at, call);
  return call.work;  // none: of the whole block, or no kernel
}
}  // namespace tessera::detail
