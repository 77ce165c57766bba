// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The local work of takes, scatters and similar operators on one process.
/// plan/work/kernel_work.hpp uses it; plan/numbers.hpp uses the size of the memory in which a
/// scatter orders its updates.
///
///     detail::LocalIndexed work = detail::take_work(plan, step, at);
///
/// Laws: the work stays within the process's blocks, for any indices.
#include <tessera/plan/region/stored.hpp>
#include <tessera/plan/work/index_terms.hpp>

namespace tessera::detail {

constexpr Box block_of_slot(const Plan& plan, int slot, const Coordinates& at) {
  const TensorDesc& desc = plan.slots[slot].desc;
  return block(desc.extents, desc.sharding, plan.mesh, at);
}

/// The tensors of indices that a step reads, starting at its input `first`, and their letters.
struct IndexSlots {
  const Plan& plan;
  const Step& step;
  int first;
  IndexTerms terms;
  constexpr IndexSlots(const Plan& of, const Step& reads, int begin, int end, const Term& table,
                       const Term& rows)
      : plan(of), step(reads), first(begin), terms{{}, table, rows} {
    for (int t = begin; t < end; ++t) terms.tensors.push_back(plan.slots[step.in[t]].labels);
  }
  constexpr const Slot& operator[](int t) const { return plan.slots[step.in[first + t]]; }
  constexpr bool have(char label) const {
    for (const Term& labels : terms.tensors)
      if (labels.contains(label)) return true;
    return false;
  }
};

/// Adds the indices into the indexed dimensions of `table`; `steps`: the distance of one index in
/// each dimension; `rows`: the tensor that has the windows.
constexpr void add_indices(LocalIndexed& work, const IndexSlots& slots, const Slot& table,
                           const Box& held, const Extents& steps, const Slot& rows, const Box& made,
                           const Coordinates& at) {
  const Term indexed = slots.terms.indexed();
  const auto places = slots.terms.places();
  for (int i = 0; i < indexed.size(); ++i) {
    const int d = table.labels.find(indexed[i]);
    const auto [tensor, column] = places[i];
    LocalIndex& index = work.indices.push_back({});
    index.extent = table.desc.extents[d];
    index.held = held[d];
    index.step = steps[d];
    if (const int w = rows.labels.find(slots.terms.window(indexed[i])); w >= 0) {
      index.extent = table.desc.extents[d] - rows.desc.extents[w] + 1;
      index.held = {held[d].lo - made[w].lo, held[d].hi - made[w].lo};
    }
    index.tensor = tensor;
    if (column == 0) continue;
    const int along = slots[tensor].labels.find(slots.terms.column(tensor));
    index.offset = column * strides_of(slots.plan, slots[tensor], at)[along];
  }
}
/// Adds a dimension `label` of the tuples to every tensor of indices, or as a window to the indices
/// that begin it.
constexpr void add_tuple(LocalIndexed& work, const IndexSlots& slots, char label, Index extent,
                         Index stride, Index in_table, const Coordinates& at) {
  work.tuples.push_back(extent);
  work.strides.push_back(stride);
  work.in_table.push_back(in_table);
  const Term indexed = slots.terms.indexed();
  for (int i = 0; i < indexed.size(); ++i) {
    LocalIndex& index = work.indices[i];
    const Slot& slot = slots[index.tensor];
    const int d = slot.labels.find(label);
    index.strides.push_back(d < 0 ? 0 : strides_of(slots.plan, slot, at)[d]);
    if (slots.terms.window(indexed[i]) == label) index.window = work.tuples.size() - 1;
  }
}

constexpr LocalIndexed take_work(const Plan& plan, const Step& step, OutOfRange out_of_range,
                                 const Coordinates& at) {
  const Slot& table = plan.slots[step.in[0]];
  const Slot& out = plan.slots[step.out];
  const Box held = block_of_slot(plan, step.in[0], at);
  const Box block = block_of_slot(plan, step.out, at);
  const Extents made = block.extents();
  const Extents strides = row_major_strides(made), in_table = strides_of(plan, table, at);
  const IndexSlots slots(plan, step, 1, step.in.size(), table.labels, out.labels);
  const Term windows = slots.terms.windows();
  LocalIndexed work;
  work.out_of_range = out_of_range;
  add_indices(work, slots, table, held, in_table, out, block, at);
  for (int d = 0; d < made.size(); ++d) {
    const char label = out.labels[d];
    // A window lies in the table along its letter: as part of a row where the table has it whole.
    const bool window = windows.contains(label);
    const int t = table.labels.find(window ? other_case(label) : label);
    if (slots.have(label) || (window && held[t].size() < table.desc.extents[t])) {
      add_tuple(work, slots, label, made[d], strides[d], t < 0 || window ? 0 : in_table[t], at);
    } else {
      work.row.push_back(made[d]);
      work.row_strides.push_back(strides[d]);
      work.row_in_table.push_back(in_table[t]);
    }
  }
  return work;
}

/// Returns whether the process at `at` is the first of the processes that differ only in the axes
/// `group`.
constexpr bool first_of(AxisSet group, const Coordinates& at) {
  for (int axis = 0; axis < at.size(); ++axis)
    if (group.contains(axis) && at[axis] != 0) return false;
  return true;
}

/// Returns whether a scatter step's first input is a table, that is, has the indexed letters.
constexpr bool scatters_into(const Plan& plan, const Step& step) {
  Terms terms{{}, plan.slots[step.out].labels};
  for (const int slot : step.in) terms.operands.push_back(plan.slots[slot].labels);
  return has_operand(terms);
}

constexpr LocalScatter scatter_work(const Plan& plan, const Step& step, OutOfRange out_of_range,
                                    const Coordinates& at) {
  const int last = step.in.size() - 1;
  const Slot& updates = plan.slots[step.in[last]];
  const Slot& out = plan.slots[step.out];
  const bool operand = scatters_into(plan, step);
  const IndexSlots slots(plan, step, operand ? 1 : 0, last, out.labels, updates.labels);
  const Box held = block_of_slot(plan, step.out, at);
  const Box block = block_of_slot(plan, step.in[last], at);
  const Extents read = block.extents();
  const Extents strides = row_major_strides(read);
  const Extents in_result = row_major_strides(held.extents());
  const auto is_row = [&](char label) {
    return out.labels.contains(label) && updates.labels.contains(label) && !slots.have(label);
  };
  LocalScatter work;
  Extents steps(held.rank(), 0);  // of the table's rows, counted row-major
  Index step_of_row = 1;
  for (int d = held.rank() - 1; d >= 0; --d)
    if (!is_row(out.labels[d])) {
      steps[d] = step_of_row;
      step_of_row = saturating_mul(step_of_row, held[d].size());
    }
  for (int d = 0; d < held.rank(); ++d)
    if (!is_row(out.labels[d])) {
      work.table.push_back(held[d].size());
      work.table_strides.push_back(in_result[d]);
    }
  work.rows.out_of_range = out_of_range;
  add_indices(work.rows, slots, out, held, steps, updates, block, at);
  AxisSet parts;  // axes that split the updates among processes that have the same rows
  for (int d = 0; d < read.size(); ++d) {
    const char label = updates.labels[d];
    const int t = out.labels.find(label);
    if (t < 0) parts = parts | updates.desc.sharding[d].set();
    if (is_row(label)) {
      work.rows.row.push_back(read[d]);
      work.rows.row_strides.push_back(strides[d]);
      work.rows.row_in_table.push_back(in_result[t]);
    } else {
      add_tuple(work.rows, slots, label, read[d], strides[d], t < 0 ? 0 : steps[t], at);
    }
  }
  const AxisSet open = out.desc.sharding.partial;
  const AxisSet given = operand ? plan.slots[step.in[0]].desc.sharding.partial : AxisSet{};
  work.start = !first_of(open - given, at) ? ScatterStart::nothing
               : operand                   ? ScatterStart::operand
                                           : ScatterStart::identity;
  work.updates = first_of(open - updates.desc.sharding.partial - parts, at);
  return work;
}

constexpr LocalOneHot one_hot_work(const Plan& plan, const Step& step, const Coordinates& at) {
  const Slot& indices = plan.slots[step.in[0]];
  const Slot& out = plan.slots[step.out];
  const Box made = block_of_slot(plan, step.out, at);
  const Extents strides = strides_of(plan, indices, at);
  LocalOneHot work;
  work.extents = made.extents();
  for (int d = 0; d < made.rank(); ++d) {
    const int at_index = indices.labels.find(out.labels[d]);
    work.strides.push_back(at_index < 0 ? 0 : strides[at_index]);
    if (at_index >= 0) continue;
    work.along = d;
    work.first = made[d].lo;
  }
  return work;
}

/// For a slice of the slot `whole` that is the slot `window`.
constexpr LocalSlide slide_work(const Plan& plan, int whole, int window, const Coordinates& at) {
  return {plan.slots[whole].desc.extents, plan.slots[window].desc.extents,
          block_of_slot(plan, whole, at), block_of_slot(plan, window, at),
          strides_of(plan, plan.slots[whole], at)};
}

}  // namespace tessera::detail
