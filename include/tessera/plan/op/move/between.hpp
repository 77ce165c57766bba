// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that moves a tensor to another mesh over the same processes. Its result is stored
/// in the memory of a tensor of that mesh.
///
///     const std::vector<Box> boxes = detail::boxes_between(extents, to, other, places);
///     Plan p = detail::plan_reshard_between(desc, boxes, mesh, process);
///
/// The meshes may differ in axes, order and device assignment. To the tensor's own mesh, the blocks
/// on the other one are arbitrary boxes (plan/op/move/place.hpp), so it is one exchange by the same
/// arithmetic.
///
///     ops::Between{{sharding, other, places, fingerprint}}
///
/// Laws: each process receives the elements that it lacks, once; replicas: a process uses its own
/// copy where it has one, else the copy of the process that has its own coordinates on the axes
/// that do not split the tensor; blocks that stay in place cost no communication.
#include <span>
#include <string>
#include <vector>

#include <tessera/plan/op/move/place.hpp>

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

namespace tessera::ops {

/// The placement of a tensor on the other mesh. A fingerprint of 128 bits stands for the mesh and
/// the places of the processes there; `places` belongs to the caller, and lives as long as the
/// call.
struct OnOtherMesh {
  Sharding sharding = {};
  MeshShape mesh = {};
  std::span<const int> places = {};
  detail::Fingerprint fingerprint = {};

  template <class V> constexpr void members(const V& visit) const {
    visit("sharding", sharding);
    visit("mesh", fingerprint);
  }
  constexpr bool operator==(const OnOtherMesh& other) const {
    return sharding == other.sharding && fingerprint == other.fingerprint;
  }
};

struct Between {
  OnOtherMesh to = {};

  constexpr OperatorKind kind() const { return OperatorKind::reshard; }
  constexpr Verdict check(const TensorDescs& x) const {
    if (to.sharding.rank() != x[0].rank())
      return {Rule::dimensions_kept, 1, 0, -1, x[0].rank(), to.sharding.rank()};
    if (!to.sharding.partial.empty()) return {Rule::arrives_finished, 1};
    return {};
  }
  constexpr TensorDescs results(const TensorDescs& x) const {
    return {{x[0].type, x[0].extents, Sharding::replicated(x[0].rank())}};
  }
  Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_reshard_between(
        x[0],
        tessera::detail::kept(detail::boxes_between(x[0].extents, to.sharding, to.mesh, to.places),
                              on),
        on.mesh, on.process, on.options);
  }
  constexpr Contract needs(const TensorDescs& x, const MeshShape& mesh,
                           const PlanOptions& options) const {
    return tessera::detail::needs_out(x[0], mesh, options.contract);
  }
  template <class V> constexpr void members(const V& visit) const { visit("to", to); }
  constexpr bool operator==(const Between&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Between)
