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
    if (move.kind != StepKind::communicate || move.collective != wanted || move.panel_dim < 0)
      return;
    if ((wanted == Collective::all_gather ? move.out : move.in[0]) != slot) return;
    if (chopped_.contains(given[move.panel_dim])) return;
    const MeshShape& mesh = build_.plan().mesh;
    const Coordinates origin(mesh.rank(), 0);
    const int panels = mesh.group_size(move.group);
    const TensorDesc& desc = build_.desc(slot);
    const Index n =
        block(desc.extents[move.panel_dim], desc.sharding[move.panel_dim], mesh, origin).size();
    if (!takes_panels(roles_, given, stored, move.panel_dim, n, panels)) return;
    const bool summed = !roles_.c.contains(given[move.panel_dim]);
    for (int i = 0; i < chosen_.size();
         ++i) {  // where two blocks have panels along a label, they must fit together
      const int more = parts_[i] > panels ? parts_[i] : panels;
      const int fewer = parts_[i] > panels ? panels : parts_[i];
      if (chosen_[i] == given[move.panel_dim] && (summed ? more != fewer : more % fewer != 0))
        return;
    }
    chosen_.push_back(given[move.panel_dim]);
    parts_.push_back(panels);
    build_.use_panels(slot, step);
  }

 private:
  PlanBuilder& build_;
  Contraction roles_;
  Term chosen_, chopped_;
  FixedVector<int, max_dims> parts_;
  bool none_ = false;
};

}  // namespace tessera::detail
