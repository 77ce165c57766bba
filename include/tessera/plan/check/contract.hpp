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
#include <tessera/plan/operation.hpp>

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

}  // namespace tessera
