// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that moves a tensor between parts of one mesh, or between a part and the whole. It
/// is one of the whole mesh: on each of its processes it knows the block that the process has and
/// the block that it is to have, either of which may be none.
///
///     ops::BetweenParts{ops::Memory::in_boxes(before, 4), ops::Memory::in_boxes(after, 4)}
///
/// Laws: as ops::Between's; a process that has no block before and none after sends and receives
/// nothing. The operator views the callers' lists, which live as long as the call; its plan views
/// Planning::boxes.
#include <span>
#include <vector>

#include <tessera/mesh/part.hpp>
#include <tessera/plan/op/move/place.hpp>

namespace tessera::detail {

/// Returns for each process of the whole mesh its block of a tensor that lies in a part, whose
/// process p is members[p]; where the tensor does not lie, a box without elements. Precondition:
/// the tensor is finished, and has a dimension.
inline std::vector<Box> boxes_in_part(const Extents& extents, const Sharding& sharding,
                                      const MeshShape& part, std::span<const int> members,
                                      int processes) {
  Box none;
  for (int d = 0; d < extents.size(); ++d) none.side.push_back({0, 0});
  std::vector<Box> boxes(static_cast<std::size_t>(processes), none);
  for (int p = 0; p < part.processes(); ++p)
    boxes[static_cast<std::size_t>(members[static_cast<std::size_t>(p)])] =
        block(extents, sharding, part, part.coordinates(p));
  return boxes;
}
}  // namespace tessera::detail

namespace tessera::ops {

struct BetweenParts {
  Memory from = {}, to = {};

  constexpr OperatorKind kind() const { return OperatorKind::reshard; }
  constexpr Verdict check(const TensorDescs&) const { return {}; }
  constexpr TensorDescs results(const TensorDescs& x) const {
    return {{x[0].type, x[0].extents, Sharding::replicated(x[0].rank())}};
  }
  Plan plan(const TensorDescs& x, const Planning& on) const {
    std::vector<Box> both(from.boxes().begin(), from.boxes().end());
    both.insert(both.end(), to.boxes().begin(), to.boxes().end());
    const std::span<const Box> kept = detail::kept(std::move(both), on);
    const auto place = [&](std::span<const Box> boxes) {
      return detail::Placement::in_boxes(boxes.data(), static_cast<int>(boxes.size()));
    };
    const std::size_t half = kept.size() / 2;
    detail::PlanBuilder build(kind(), on.mesh, on.process, on.options);
    build.plan().destination = Destination::given;
    const Sharding everywhere = Sharding::replicated(x[0].rank());
    const int slot = build.operand({x[0].type, x[0].extents, everywhere},
                                   detail::default_labels(x[0].rank()), place(kept.first(half)));
    return build.finish(build.relocate(slot, everywhere, place(kept.last(half))), everywhere);
  }
  constexpr Contract needs(const TensorDescs&, const MeshShape& mesh, const PlanOptions&) const {
    Contract needed;
    needed.accept(Collective::exchange, mesh.axes());
    return needed;
  }
  template <class V> constexpr void members(const V& visit) const {
    from.members(visit);
    to.members(visit);
  }
  constexpr bool operator==(const BetweenParts&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(BetweenParts)
