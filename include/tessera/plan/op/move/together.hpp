// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that reshards several tensors; calls of one kind become one.
///
///     ops::Together{{to_a, to_b}}.results({a, b})
///
/// Several tensors resharded together: calls of the same collective over the same axes become one,
/// where the saved messages cost more than the additional copies.
///
///     Plan p = detail::plan_together({a, b, c}, {to_a, to_b, to_c}, mesh, process);
///     p.count(all_reduce) == 1
///
/// Laws: every result equals that of plan_reshard alone; the choice of joined calls depends only on
/// global extents, shardings and the machine; a joined call's payload is the sum of its parts' (for
/// an all-reduce, the payload of one tensor with all their elements).
#include <string>

#include <tessera/plan/deduce.hpp>
#include <tessera/plan/elementwise.hpp>
#include <tessera/plan/op/move/reshard.hpp>

namespace tessera::detail {

/// Moves slots[i] to targets[i], several in one call where that is cheaper; `slots` then names the
/// slots that hold the tensors.
constexpr void move_together(PlanBuilder& build, FixedVector<int, max_operands>& slots,
                             const Shardings& targets) {
  const MeshShape& mesh = build.plan().mesh;
  const Machine& machine = build.options().machine;
  LazyVector<Moves, max_operands> moves;
  FixedVector<int, max_operands> next(slots.size(), 0);
  FixedVector<DType, max_operands> types;
  for (int i = 0; i < slots.size(); ++i) {
    moves.push_back(build.moves(slots[i], targets[i]));
    types.push_back(build.desc(slots[i]).type);
  }
  const auto comes = [&](int i) { return next[i] < moves[i].list.size(); };
  const auto move = [&](int i) -> const Move& { return moves[i].list[next[i]]; };
  while (true) {
    // Moves that are local, or that join no other, are added at once.
    int leader = -1;
    for (int i = 0; i < slots.size(); ++i) {
      for (; comes(i); ++next[i]) {
        slots[i] = build.before_move(slots[i], move(i), targets[i], types[i]);
        if (may_join(move(i), build.desc(slots[i]), mesh, machine)) break;
        slots[i] = build.move(slots[i], move(i));
      }
      if (leader < 0 && comes(i)) leader = i;
    }
    if (leader < 0) break;
    FixedVector<int, max_operands> members, joined;
    LazyVector<Move, max_operands> theirs;
    for (int i = leader; i < slots.size(); ++i)
      if (comes(i) &&
          joins(move(leader), build.desc(slots[leader]), move(i), build.desc(slots[i]))) {
        members.push_back(i);
        joined.push_back(slots[i]);
        theirs.push_back(move(i));
      }
    if (members.size() == 1)
      joined[0] = build.move(joined[0], theirs[0]);
    else
      build.join(joined, theirs);
    for (int k = 0; k < members.size(); ++k) {
      slots[members[k]] = joined[k];
      ++next[members[k]];
    }
  }
  for (int i = 0; i < slots.size(); ++i) slots[i] = build.convert(slots[i], types[i]);
}

/// Plans tensors[i] -> targets[i] for one to eight tensors; the result of tensor i is the plan's
/// result for i = 0, else plan.also[i - 1].
constexpr Plan plan_together(const TensorDescs& tensors, const Shardings& targets,
                             const MeshShape& mesh, int process = 0,
                             const PlanOptions& options = {}) {
  PlanBuilder build(OperatorKind::reshard, mesh, process, options);
  FixedVector<int, max_operands> slots;
  for (int i = 0; i < tensors.size(); ++i)
    slots.push_back(build.operand(tensors[i], default_labels(tensors[i].rank())));
  move_together(build, slots, targets);
  for (int i = 1; i < tensors.size(); ++i)
    build.plan().also.push_back(static_cast<std::int8_t>(build.returned(slots[i], targets[i])));
  return build.finish(slots[0], targets[0]);
}

}  // namespace tessera::detail

namespace tessera::ops {

struct Together {
  Shardings targets = {};  ///< one for each operand

  constexpr OperatorKind kind() const { return OperatorKind::reshard; }
  /// Checks each tensor as a separate reshard; the verdict names the operand.
  constexpr Verdict check(const TensorDescs& x) const {
    for (int i = 0; i < x.size(); ++i)
      if (Verdict v = Reshard{targets[i]}.check({x[i]}); !v.ok()) {
        v.operand = i;
        return v;
      }
    return {};
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames& names) const {
    return Reshard{targets[v.operand]}.explain(v, {x[v.operand]}, names);
  }
  constexpr TensorDescs results(const TensorDescs& x) const {
    TensorDescs made;
    for (int i = 0; i < x.size(); ++i) made.push_back({x[i].type, x[i].extents, targets[i]});
    return made;
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return tessera::detail::plan_together(x, targets, on.mesh, on.process, on.options);
  }
  template <class V> constexpr void members(const V& visit) const {
    for (const Sharding& target : targets) visit("to", target);
  }
  constexpr bool operator==(const Together&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Together)
