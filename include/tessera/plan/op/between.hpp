// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that moves a tensor to another mesh over the same processes. Its result is stored
/// in the memory of a tensor of that mesh.
///
///     ops::Between{{sharding, other, places, fingerprint}}
#include <span>
#include <string>

#include <tessera/plan/move/between.hpp>
#include <tessera/plan/op/place.hpp>

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
