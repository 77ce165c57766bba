// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether an operator can keep a contract (mesh/contract.hpp), decided from names: the planner,
/// told of the contract, plans it on a mesh that stands for all meshes with those axes. What the
/// plan needs is compared with what the contract accepts.
///
///     const Contract needed = needs(ops::Reshard{to}, {from}, paper_mesh<Grid>(), contract);
///     contract.covers(needed)                      // then the call compiles
///
/// What a move is called depends on names alone but for two things. Axes of one size make a
/// permutation of an exchange: so axes whose size is open get sizes that differ. Axes of size 1
/// vanish, and a move over the rest may be a simpler one: tests try every mesh. Products of three
/// and more are looked at from left to right, as they are written.
///
/// Laws: when a contract covers what is needed on paper, the plan keeps it on every mesh of those
/// axes and for all extents; but an operand of a map whose extent of 1 is stretched, and split, is
/// gathered, which names do not show: that is found when the plan is made.
#include <tessera/plan/reshape.hpp>

namespace tessera {

/// Returns sizes for the axes of a mesh type: its own where they are fixed, else all different.
template <class M> constexpr MeshShape paper_mesh() {
  constexpr auto fixed = M::fixed_sizes();
  MeshShape mesh;
  int next = 2;
  for (int a = 0; a < M::rank; ++a) {
    while (fixed.contains(next)) ++next;
    mesh.push_back(fixed[a] != dynamic ? fixed[a] : next++);
  }
  return mesh;
}

namespace detail {
/// A tensor large enough that no extent matters.
constexpr TensorDesc paper_desc(const Sharding& sharding) {
  return {DType::f32, Extents(sharding.rank(), 5040), sharding};
}
constexpr PlanOptions bounded_by(const Contract& contract) {
  PlanOptions options;
  options.contract = contract;
  return options;
}
constexpr PlanOptions asked_needs(const Contract& contract) {
  PlanOptions options = bounded_by(contract);
  options.needs_alone = true;
  return options;
}
}  // namespace detail

/// Each returns what the plan that keeps `contract`, if there is one, needs; else what the one with
/// the fewest breaches needs. Preconditions: the operator's verdict is ok.
/// Of an operator that takes elements from elsewhere along `dims`, and nowhere else; an update only
/// those of its block.
constexpr Contract needs_of_regions(OperatorKind kind, const Shardings& operands,
                                    const Dimensions& dims, const Sharding& out,
                                    const MeshShape& mesh, const Contract& contract) {
  TensorDescs descs;
  Taking taken{kind, {}, Extents(out.rank(), 5040), false};
  Region region = detail::same_region(taken.extents);
  for (int d : dims) region[d] = shift_dim(region[d].extent, 1);
  for (const Sharding& operand : operands) {
    descs.push_back(detail::paper_desc(operand));
    const bool stays = kind == OperatorKind::update && taken.regions.empty();
    taken.regions.push_back(stays ? detail::same_region(taken.extents) : region);
  }
  return plan_regions(taken, descs, out, mesh, 0, detail::asked_needs(contract)).needs;
}
/// Of a reshape, whatever the extents: on paper no two dimensions hold the same elements, and no
/// two blocks.
constexpr Contract needs_of_reshape(const Sharding& x, const Sharding& out, const MeshShape& mesh,
                                    const Contract& contract) {
  TensorDesc from{DType::f32, Extents(x.rank(), 11), x},
      to{DType::f32, Extents(out.rank(), 13), out};
  if (x.rank() == 0 || out.rank() == 0) {
    from.extents = Extents(x.rank(), 1);
    to.extents = Extents(out.rank(), 1);
  } else {
    from.extents.back() = to.extents.back() = 17;
    for (int d = 1; d < out.rank(); ++d) from.extents.back() *= 13;
    for (int d = 1; d < x.rank(); ++d) to.extents.back() *= 11;
  }
  return plan_reshape(from, to, mesh, 0, detail::asked_needs(contract)).needs;
}

}  // namespace tessera
