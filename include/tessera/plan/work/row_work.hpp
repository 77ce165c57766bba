// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The local work of steps along rows: reductions, lines of elements, and sums in limbs.
///
///     detail::LocalReduce rows = detail::reduce_work(from, to, plan, at);
///
/// Laws: the work stays within the process's blocks.
#include <tessera/plan/region/stored.hpp>
#include <tessera/plan/work/bin_format.hpp>

namespace tessera::detail {

inline LocalReduce reduce_work(const Slot& from, const Slot& to, const Plan& plan,
                               const Coordinates& at) {
  LocalReduce work;
  const Extents extents = local_extents(from, plan, at);
  const Extents strides = strides_of(plan, from, at);
  for (char label : to.labels) {  // a label that `from` lacks has extent 1
    const int d = from.labels.find(label);
    work.kept.push_back(d < 0 ? 1 : extents[d]);
    work.kept_strides.push_back(d < 0 ? 0 : strides[d]);
  }
  for (int d = 0; d < extents.size(); ++d)
    if (!to.labels.contains(from.labels[d])) {
      work.reduced.push_back(extents[d]);
      work.reduced_strides.push_back(strides[d]);
    }
  return work;
}

/// Returns the rows of `from` that `to` keeps; further dimensions of `to` are ignored.
inline LocalReduce rows_work(const Slot& from, Slot to, const Plan& plan, const Coordinates& at) {
  if (const int d = to.labels.find(parts_label); d >= 0) to.labels.resize(d);  // it is the last
  return reduce_work(from, to, plan, at);
}

/// Returns the lines of a step's first input along a dimension.
inline LocalScan lines_work(const Plan& plan, const Step& step, int along, const Coordinates& at) {
  const Extents extents = local_extents(plan.slots[step.in[0]], plan, at);
  LocalScan work;
  work.n = extents[along];
  for (int d = 0; d < along; ++d) work.outer *= extents[d];
  for (int d = along + 1; d < extents.size(); ++d) work.inner *= extents[d];
  return work;
}

/// For the steps of a sum in limbs, whose operand is the first slot; `back`: from integers to
/// elements.
inline LocalBins bins_work(const Plan& plan, const Step& step, bool back, const Coordinates& at) {
  const Slot& x = plan.slots[0];
  const Slot& out = plan.slots[step.out];
  LocalBins work;
  work.count = 1;
  Term kept = plan.slots[step.in[0]].labels;
  if (!back) kept = out.labels;
  for (int d = 0; d < x.labels.size(); ++d)
    if (!kept.contains(x.labels[d])) work.count = saturating_mul(work.count, x.desc.extents[d]);
  const BinFormat format = bin_format(x.desc.type, work.count);
  work.bits = format.bits;
  work.limbs = format.limbs;
  if (back)
    work.rows.kept = local_extents(out, plan, at);
  else
    work.rows = rows_work(x, out, plan, at);
  return work;
}

}  // namespace tessera::detail
