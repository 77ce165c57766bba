// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether the calls of several tensors may become one, and how much that saves. Joined tensors are
/// packed one after another, so joining pays for small tensors.
///
///     detail::may_join(move, desc, mesh, machine);         // it saves more than it takes
///     detail::joins(a, desc_a, b, desc_b);                 // a and b fit into one call
///
/// Laws: the answers are the same on every process.
#include <tessera/plan/move/move_cost.hpp>

namespace tessera::detail {

/// Returns the price of a move's messages, which joining it to another call saves.
constexpr std::int64_t join_saving(const Move& move, const TensorDesc& desc, const MeshShape& mesh,
                                   const Machine& machine) {
  const MoveNumbers n = count_move(move, desc, mesh, Coordinates(mesh.rank(), 0), machine);
  return saturating_add(machine.transfer(0, n.messages - n.network_messages),
                        machine.transfer(0, n.network_messages, Level::network));
}

/// Returns the price of the copies that a joined call needs in addition to those of the move alone.
constexpr std::int64_t join_toll(const Move& move, const TensorDesc& desc, const MeshShape& mesh,
                                 const Machine& machine) {
  const Coordinates origin(mesh.rank(), 0);
  const Index unit = static_cast<Index>(size_of(desc.type));
  Index elements = 0;
  if (move.direct_send) elements += block_volume(desc.extents, desc.sharding, mesh, origin);
  if (move.direct_receive) elements += block_volume(desc.extents, move.to, mesh, origin);
  return machine.copy(saturating_mul(elements, unit));
}

/// Returns true when a move gains by being part of a joined call. Twice the toll: the call's first
/// tensor pays it and saves nothing.
constexpr bool may_join(const Move& move, const TensorDesc& desc, const MeshShape& mesh,
                        const Machine& machine) {
  return move.kind == StepKind::communicate && move.near.empty() &&
         move.collective <= Collective::all_reduce &&
         join_saving(move, desc, mesh, machine) >
             saturating_mul(2, join_toll(move, desc, mesh, machine));
}

/// Returns true when two moves can be made by one call. Tensors that are only moved may have
/// different types of the same size.
constexpr bool joins(const Move& a, const TensorDesc& x, const Move& b, const TensorDesc& y) {
  return b.kind == StepKind::communicate && a.collective == b.collective && a.group == b.group &&
         (x.type == y.type ||
          (size_of(x.type) == size_of(y.type) &&
           (a.collective == Collective::all_gather || a.collective == Collective::all_to_all))) &&
         x.sharding.reduction == y.sharding.reduction && b.near.empty();
}
}  // namespace tessera::detail
