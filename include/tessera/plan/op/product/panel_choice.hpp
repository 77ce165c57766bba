// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Which blocks of a product are stored in panels, in the layout of the collectives before and
/// after it, so that nothing is packed or unpacked. plan/work/contraction.hpp says which panels a
/// product can use.
///
///     PanelChoice panels(build, roles);
///     panels.consider(left, build.last_step(), Collective::all_gather, labels, roles.a);
///
/// Laws: a block is panelled only when nothing but the product reads or writes it.
#include <tessera/plan/builder.hpp>
#include <tessera/plan/work/contraction.hpp>

namespace tessera::detail {

/// Uses panels, where possible, so that a product's operands are not unpacked and its result is not
/// packed.
class PanelChoice {
 public:
  constexpr PanelChoice(PlanBuilder& build, const Contraction& roles)
      : build_(build), roles_(roles) {}
  /// Blocks within a halo are multiplied row by row, without panels.
  constexpr void leave_out(bool all) { none_ = all; }
  /// A product in rounds takes parts of these dimensions.
  constexpr void leave_out(const Term& dimensions) { chopped_ = dimensions; }

  /// `slot` is an operand or the result of the product, `step` the communicate step that makes or
  /// takes it.
  constexpr void consider(int slot, int step, Collective wanted, const Term& given,
                          const Term& stored) {
    if (step < 0 || none_) return;
    const Step& move = build_.plan().steps[step];
    if (move.kind != StepKind::communicate || move.collective != wanted) return;
    const bool gathers = wanted == Collective::all_gather;
    if ((gathers ? move.out : move.in[0]) != slot) return;
    if (move.panel_dim >= 0) choose(slot, step, given, stored);
    if (gathers) gathers_.push_back(step);
  }

  /// Lets the product read this process's own part of one gathered operand where it lies, so that
  /// the gather does not copy it; `slots`: the operands and the result. On one node, where the
  /// gather of the others' parts is a copy too.
  constexpr void leave_own_part(const int (&slots)[3]) {
    int best = -1;
    Index most = 0;
    for (const int step : gathers_)
      if (const Index bytes = own_part(step, slots); bytes > most) {
        most = bytes;
        best = step;
      }
    if (best >= 0) build_.leave_own_part(build_.plan().steps[best].out, best);
  }

 private:
  constexpr void choose(int slot, int step, const Term& given, const Term& stored) {
    const Step& move = build_.plan().steps[step];
    const char letter = given[move.panel_dim];
    const int panels = build_.plan().mesh.group_size(move.group);
    if (chopped_.contains(letter)) return;
    if (!takes_panels(roles_, build_.desc(slot).type, given, stored, move.panel_dim,
                      extent(slot, move.panel_dim), panels))
      return;
    const bool summed = !roles_.c.contains(letter);
    for (int i = 0; i < chosen_.size();
         ++i) {  // where two blocks have panels along a label, they must fit together
      const int more = parts_[i] > panels ? parts_[i] : panels;
      const int fewer = parts_[i] > panels ? panels : parts_[i];
      if (chosen_[i] == letter && (summed ? more != fewer : more % fewer != 0)) return;
    }
    chosen_.push_back(letter);
    parts_.push_back(panels);
    build_.use_panels(slot, step);
  }
  /// Returns the bytes of the own part that an all-gather need not copy; 0: it has to, or to copy
  /// them is cheaper than a product for each part, which passes once more over the tensor that the
  /// part does not belong to.
  constexpr Index own_part(int step, const int (&slots)[3]) const {
    const Plan& plan = build_.plan();
    const Step& gather = plan.steps[step];
    const Slot& whole = plan.slots[gather.out];
    const Slot& own = plan.slots[gather.in[0]];
    const int t = gather.out == slots[0] ? 0 : 1;
    if (gather.out != slots[t] || own.role != SlotRole::operand || !gather.direct_receive ||
        gather.level != Level::node || !gather.near.empty())
      return 0;
    const int d = gathered_dim(own.desc.sharding, whole.desc.sharding, plan.mesh);
    const char letter = whole.labels[d];
    const int parts = plan.mesh.group_size(gather.group);
    const Term& stored = t == 0 ? roles_.a : roles_.b;
    if (!takes_panels(roles_, own.desc.type, whole.labels, stored, d, extent(gather.out, d), parts))
      return 0;
    const Machine& machine = build_.options().machine;
    const Index bytes = build_.bytes_of_origin(own.desc);
    std::int64_t price = machine.message_ps;  // of a product more
    for (int other = 0; other < 3; ++other) {
      const Slot& slot = plan.slots[slots[other]];
      const int same = slot.labels.find(letter);
      if (other != t && same >= 0 && slot.panel_dim == same) return 0;
      if (same < 0 && whole.panel_dim < 0)
        price = saturating_add(price, machine.copy(build_.bytes_of_origin(slot.desc)));
    }
    return saturating_mul(parts - 1, price) < machine.copy(bytes) ? bytes : 0;
  }
  /// Returns the extent of the block on process 0.
  constexpr Index extent(int slot, int d) const {
    const MeshShape& mesh = build_.plan().mesh;
    const TensorDesc& desc = build_.desc(slot);
    return block(desc.extents[d], desc.sharding[d], mesh, Coordinates(mesh.rank(), 0)).size();
  }

  PlanBuilder& build_;
  Contraction roles_;
  Term chosen_, chopped_;
  FixedVector<int, max_dims> parts_;
  FixedVector<int, 2> gathers_;
  bool none_ = false;
};

}  // namespace tessera::detail
