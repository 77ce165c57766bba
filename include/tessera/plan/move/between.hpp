// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The planner of a reshard between two meshes over the same processes: other axes, another order,
/// another device assignment. To the tensor's own mesh, the blocks on the other one are arbitrary
/// boxes (plan/move/place.hpp), so it is one exchange by the same arithmetic.
///
///     const std::vector<Box> boxes = detail::boxes_between(extents, to, other, places);
///     Plan p = detail::plan_reshard_between(desc, boxes, mesh, process);
///
/// Laws: each process receives the elements that it lacks, once; replicas: a process uses its own
/// copy where it has one, else the copy of the process that has its own coordinates on the axes
/// that do not split the tensor; blocks that stay in place cost no communication.
#include <span>
#include <vector>

#include <tessera/plan/move/place.hpp>

namespace tessera::detail {

/// Returns the block of each process of the tensor's mesh on the mesh `other`, where process p is
/// at places[p].
inline std::vector<Box> boxes_between(const Extents& extents, const Sharding& to,
                                      const MeshShape& other, std::span<const int> places) {
  std::vector<Box> boxes;
  for (int place : places) boxes.push_back(block(extents, to, other, other.coordinates(place)));
  return boxes;
}

/// Plans how process r of `mesh` gets boxes[r] of x, in memory that is given. An unfinished x is
/// finished first, or scattered where that is cheaper. The plan views `boxes`.
inline Plan plan_reshard_between(const TensorDesc& x, std::span<const Box> boxes,
                                 const MeshShape& mesh, int process = 0,
                                 const PlanOptions& options = {}) {
  const Placement place = Placement::in_boxes(boxes.data(), static_cast<int>(boxes.size()));
  return detail::plan_out(OperatorKind::reshard, x, place, mesh, process, options);
}
}  // namespace tessera::detail
