// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A plan's steps, computed for its process: the exact calls, the packing and unpacking, the local
/// arithmetic. Made once when a plan enters the cache; the executor only carries it out.
///
///     std::vector<StepWork> work = work_of(plan);
///
/// Laws: the calls are those that a PMPI layer intercepts; their payload_bytes and network_bytes
/// add up to the step's; the staging buffers add up to step.scratch.
#include <vector>

#include <tessera/plan/move/merge_split.hpp>
#include <tessera/plan/move/relocation.hpp>
#include <tessera/plan/move/staged.hpp>
#include <tessera/plan/work/communication_work.hpp>
#include <tessera/plan/work/indexed_work.hpp>
#include <tessera/plan/work/row_work.hpp>
#include <tessera/plan/work/step_work.hpp>
#include <tessera/plan/work/window_work.hpp>

namespace tessera {

namespace detail {

inline ContractionBlock contraction_block(const Slot& slot, const Plan& plan,
                                          const Coordinates& at) {
  return {slot.labels, local_extents(slot, plan, at), slot.panel_dim, slot.panels,
          has_gaps(plan, slot) ? strides_of(plan, slot, at) : Extents{}};
}

inline StridedCopy permute_work(const Slot& from, const Slot& to, const Plan& plan,
                                const Coordinates& at) {
  StridedCopy copy;
  copy.extents = local_extents(to, plan, at);
  copy.to_strides = strides_of(plan, to, at);
  const Extents strides = strides_of(plan, from, at);
  for (char label : to.labels) copy.from_strides.push_back(strides[from.labels.find(label)]);
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
}  // namespace detail

/// Returns the work of one step on the plan's process; for a step in several rounds, of round
/// `round`.
inline StepWork work_of(const Plan& plan, const Step& step, Index round = 0) {
  if (step.region >= 0) return region_work(plan, step);
  if (is_relocation(plan, step)) return relocation_work(plan, step, round);
  if (step.merges) return merge_work(plan, step, round);
  const Coordinates at = plan.mesh.coordinates(plan.process);
  const Slot& first = plan.slots[step.in[0]];
  const Slot& out = plan.slots[step.out];
  StepWork work;
  switch (step.kind) {
    case StepKind::communicate:
      if (!step.also.empty()) return joined_work(plan, step);
      return step.near.empty() ? detail::CommunicationWork(plan, step).make()
                               : detail::StagedWork(plan, step).make();
    case StepKind::slice:
    case StepKind::copy: {
      const auto strides = [&](const Slot& slot, const Box& box) {
        return slot.stored < 0 ? row_major_strides(box.extents())
                               : detail::strides_of(plan, slot, at);
      };
      const Box source = Holding(first.desc, first.place, plan.mesh).box(plan.process);
      const Box target = Holding(out.desc, out.place, plan.mesh).box(plan.process);
      if (!target.empty())
        work.local.push_back(
            detail::box_copy(target, source, strides(first, source), target, strides(out, target)));
      break;
    }
    case StepKind::permute:
      work.local.push_back(detail::permute_work(first, out, plan, at));
      break;
    case StepKind::diagonal: {
      const StridedCopy held = detail::diagonal_work(first, out, plan, at);
      work.zeroed = !(held.extents == detail::local_extents(out, plan, at));
      if (volume(held.extents) > 0) work.local.push_back(held);
      break;
    }
    case StepKind::contract: {
      const Slot& second = plan.slots[step.in[1]];
      work.contract = contraction_work(detail::contraction_block(first, plan, at),
                                       detail::contraction_block(second, plan, at),
                                       detail::contraction_block(out, plan, at));
      break;
    }
    case StepKind::round:
    case StepKind::widen:
      break;  // the whole block
    case StepKind::reduce:
      work.reduce = detail::reduce_work(first, out, plan, at);
      break;
    case StepKind::map:
      work.map = detail::map_work(plan, step, at);
      break;
    case StepKind::find:
      work.find = detail::find_work(first, out, plan, at);
      break;
    case StepKind::scan:
    case StepKind::fold:
      work.scan = detail::scan_work(plan, step, at);
      break;
    case StepKind::sort:
    case StepKind::order:
    case StepKind::arrange:
      work.sort = detail::sort_work(plan, step, at);
      break;
    case StepKind::exponent:
    case StepKind::bins:
    case StepKind::unbin:
      work.bins = detail::bins_work(plan, step, at);
      break;
    case StepKind::convolve:
      work.convolve = detail::convolve_work(plan, step, at);
      break;
    case StepKind::reduce_window:
      work.reduce_window = detail::reduce_window_work(plan, step, at);
      break;
    case StepKind::select_and_scatter:
      work.select = detail::select_work(plan, step, at);
      break;
    case StepKind::take:
      work.take = detail::take_work(plan, step, at);
      break;
    case StepKind::scatter:
      work.scatter = detail::scatter_work(plan, step, at);
      work.send_staging = detail::work_bytes(plan, step, at);
      break;
    case StepKind::one_hot:
      work.one_hot = detail::one_hot_work(plan, step, at);
      break;
    case StepKind::slide:
    case StepKind::put:
      work.slide = detail::slide_work(plan, step, at);
      break;
  }
  return work;
}

/// Returns the work of every step, in order; for a step in several rounds, of the first round.
inline std::vector<StepWork> work_of(const Plan& plan) {
  std::vector<StepWork> all;
  all.reserve(static_cast<std::size_t>(plan.steps.size()));
  for (const Step& step : plan.steps) all.push_back(work_of(plan, step));
  return all;
}

}  // namespace tessera
