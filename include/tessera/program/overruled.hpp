// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What an operator overruled: dimensions of an operand that were split over an axis, and no longer
/// are when the operator computes. program/explain.hpp prints it.
///
///     for (const Overruled& one : overruled(plan)) text += to_string(one, names);
///     // "operand 1's m on model is overruled by operand 2's h"
///
/// Laws: the list is empty exactly when no operand loses an axis before the local work; the list is
/// the same on every process.
#include <string>

#include <tessera/plan/plan.hpp>

namespace tessera {

/// Dimension `label` of `operand` was split over `axis`, and is not when the operator computes.
struct Overruled {
  int operand = 0;  ///< from 0
  char label = 0;
  int axis = 0;
  char by = 0;          ///< the dimension that replaced it; 0: none is split instead
  int by_operand = -1;  ///< the first operand given with that dimension split; -1: the result
  AxisSet by_axes;      ///< the axes of that dimension
  constexpr bool operator==(const Overruled&) const = default;
};
/// At most one entry for each operand and axis.
using OverruledList = FixedVector<Overruled, max_operands * max_axes>;

namespace detail {
constexpr AxisSet axes_of_label(const Slot& slot, char label) {
  AxisSet axes;
  for (int d = 0; d < slot.labels.size(); ++d)
    if (slot.labels[d] == label) axes = axes | slot.desc.sharding[d].set();
  return axes;
}
/// Calls f(slot) for the inputs and outputs of a step, until f returns true.
template <class F> constexpr bool any_slot(const Plan& plan, const Step& step, const F& f) {
  for (const std::int8_t in : step.in)
    if (f(plan.slots[in])) return true;
  return f(plan.slots[step.out]);
}
/// Fills in what replaced one.label on one.axis in a step.
constexpr void find_winner(const Plan& plan, const Step& step, Overruled& one) {
  any_slot(plan, step, [&](const Slot& slot) {  // another dimension over this axis
    for (const char label : slot.labels)
      if (axes_of_label(slot, label).contains(one.axis)) one.by = label;
    return one.by != 0;
  });
  if (one.by == 0)  // or this dimension over another axis
    any_slot(plan, step, [&](const Slot& slot) {
      if (!axes_of_label(slot, one.label).empty()) one.by = one.label;
      return one.by != 0;
    });
  if (one.by == 0) return;
  any_slot(plan, step, [&](const Slot& slot) {
    one.by_axes = one.by_axes | axes_of_label(slot, one.by);
    return false;
  });
  for (int i = plan.operands - 1; i >= 0; --i) {
    const AxisSet given = axes_of_label(plan.slots[i], one.by);
    if (one.by == one.label ? i != one.operand && !(given & one.by_axes).empty()
                            : given.contains(one.axis))
      one.by_operand = i;
  }
}
}  // namespace detail

/// Returns what an operator overruled, in the order of its operands. Communication: none.
constexpr OverruledList overruled(const Plan& plan) {
  OverruledList list;
  for (int operand = 0; operand < plan.operands; ++operand) {
    int slot = operand;    // the slot that now holds the operand,
    int before = operand;  // and the one when a step last computed with it
    for (const Step& step : plan.steps) {
      const int at = step.in.find(static_cast<std::int8_t>(slot));
      if (at < 0) continue;
      const bool computes = step.kind != StepKind::communicate && step.kind != StepKind::slice &&
                            step.kind != StepKind::copy && step.kind != StepKind::permute &&
                            step.kind != StepKind::diagonal;
      if (computes)
        for (const char label : plan.slots[slot].labels) {
          const AxisSet lost = detail::axes_of_label(plan.slots[before], label) -
                               detail::axes_of_label(plan.slots[slot], label);
          for (int axis = 0; axis < plan.mesh.rank(); ++axis) {
            if (!lost.contains(axis)) continue;
            Overruled one{operand, label, axis, 0, -1, {}};
            detail::find_winner(plan, step, one);
            list.push_back(one);
          }
        }
      if (computes && step.kind != StepKind::reduce) break;  // what was summed may be multiplied
      slot = at == 0 ? step.out : step.also[at - 1];
      if (computes || step.kind == StepKind::diagonal) before = slot;
    }
  }
  return list;
}

/// Returns "operand 1's m on model is overruled by operand 2's h".
inline std::string to_string(const Overruled& one, const AxisNames& names) {
  const auto owner = [](int operand) {
    return operand < 0 ? std::string("the result's ")
                       : "operand " + std::to_string(operand + 1) + "'s ";
  };
  const auto on = [&](AxisSet axes) {
    std::string text;
    for (int a = 0; a < max_axes; ++a)
      if (axes.contains(a))
        text += (text.empty() ? " on " : ",") +
                (a < names.size() ? std::string(names[a]) : "axis" + std::to_string(a));
    return text;
  };
  AxisSet axis;
  axis.insert(one.axis);
  const std::string text = owner(one.operand) + one.label + on(axis) + " is overruled";
  if (one.by == 0) return text + ": nothing is split over it";
  return text + " by " + owner(one.by_operand) + one.by +
         (one.by == one.label ? on(one.by_axes) : std::string());
}

}  // namespace tessera
