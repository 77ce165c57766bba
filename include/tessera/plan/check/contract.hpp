// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether an operator can keep a contract (mesh/contract.hpp), decided from names: the planner,
/// given the contract, plans it on a mesh that stands for all meshes with those axes. The plan's
/// communication is compared with the communication that the contract accepts.
///
///     const Contract needed = needs(ops::Reshard{to}, {from}, detail::stand_in_mesh<Grid>(), contract);
///     contract.covers(needed)                      // then the call compiles
///
/// The kind of a move depends only on names, with two exceptions. Axes of equal size can turn an
/// exchange into a permutation, so axes of unknown size get different sizes. Axes of size 1 vanish,
/// and a move over the rest may be a simpler one: tests try every mesh. Products of three and more
/// operands are checked from left to right, as written.
///
/// Laws: when a contract covers the communication on that mesh, the plan keeps it on every mesh of
/// those axes and for all extents. One exception: a map gathers an operand that is split along a
/// broadcast extent of 1; names do not show this, so it is found when the plan is made.
#include <tessera/plan/operation.hpp>

namespace tessera::detail {

/// Returns sizes for the axes of a mesh type: its own where they are fixed, else sizes that all
/// differ.
template <class M> constexpr MeshShape stand_in_mesh() {
  constexpr auto fixed = M::fixed_sizes();
  MeshShape mesh;
  int next = 2;
  for (int a = 0; a < M::rank; ++a) {
    while (fixed.contains(next)) ++next;
    mesh.push_back(fixed[a] != dynamic ? fixed[a] : next++);
  }
  return mesh;
}
}  // namespace tessera::detail
