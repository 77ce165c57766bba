// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Who sends which box to whom when a tensor goes from one sharding to another: the arithmetic
/// under every move. Forward map (whom do I send to) and inverse map (whom do I receive from)
/// enumerate only peers that matter.
///
///     for_each_receiver(extents, from, to, mesh, at,
///                       [](const Coordinates& peer, const Box& box) { ... });
///
/// Laws: r sends box b to q exactly when q receives box b from r; the boxes that q receives (its
/// own included) are disjoint and cover its new block. Replicas: data comes from the owner whose
/// coordinates on the axes that do not split the source are the receiver's own.
#include <tessera/spec/block.hpp>

namespace tessera {
namespace detail {

/// Visits every assignment of the `free` axes of one dimension's list for which its block meets
/// `target`. visit(Interval overlap) runs with `at` holding the assigned coordinates.
template <class Visit>
constexpr void for_each_part(Interval piece, Interval target, AxisList axes, int i, AxisSet free,
                             const MeshShape& mesh, Coordinates& at, const Visit& visit) {
  const Interval overlap = intersect(piece, target);
  if (overlap.size() == 0) return;
  if (i == axes.size()) {
    visit(overlap);
    return;
  }
  const int axis = axes[i];
  if (!free.contains(axis)) {
    for_each_part(split(piece, mesh[axis], at[axis]), target, axes, i + 1, free, mesh, at, visit);
    return;
  }
  const Index width = ceil_div(piece.size(), mesh[axis]);
  const int first = static_cast<int>((overlap.lo - piece.lo) / width);
  const int last = static_cast<int>((overlap.hi - 1 - piece.lo) / width);
  const int saved = at[axis];
  for (int part = first; part <= last; ++part) {
    at[axis] = part;
    for_each_part(split(piece, mesh[axis], part), target, axes, i + 1, free, mesh, at, visit);
  }
  at[axis] = saved;
}

/// Visits the product over dimensions: peers that vary in `free` and whose block under `sharding`
/// meets `target`.
template <class Visit>
constexpr void for_each_overlap(const Extents& extents, const Sharding& sharding, const Box& target,
                                int d, AxisSet free, const MeshShape& mesh, Coordinates& at,
                                Box& box, const Visit& visit) {
  if (d == extents.size()) {
    visit(at, box);
    return;
  }
  for_each_part({0, extents[d]}, target[d], sharding[d], 0, free, mesh, at, [&](Interval overlap) {
    box[d] = overlap;
    for_each_overlap(extents, sharding, target, d + 1, free, mesh, at, box, visit);
  });
}

/// Visits every assignment of the axes of `free`, lowest axis slowest.
template <class Visit>
constexpr void for_each_member(AxisSet free, int axis, const MeshShape& mesh, Coordinates& at,
                               const Visit& visit) {
  while (axis < mesh.rank() && !free.contains(axis)) ++axis;
  if (axis >= mesh.rank()) {
    visit();
    return;
  }
  const int saved = at[axis];
  for (int i = 0; i < mesh[axis]; ++i) {
    at[axis] = i;
    for_each_member(free, axis + 1, mesh, at, visit);
  }
  at[axis] = saved;
}
}  // namespace detail

/// Calls visit(peer, box) for every process that needs a non-empty box of what the process at
/// `self` owns.
template <class Visit>
constexpr void for_each_receiver(const Extents& extents, const Sharding& from, const Sharding& to,
                                 const MeshShape& mesh, const Coordinates& self,
                                 const Visit& visit) {
  const Box mine = block(extents, from, mesh, self);
  if (mine.empty()) return;
  const AxisSet free = from.used();
  const AxisSet unbound =
      free - to.used();  // these axes do not matter to the receiver: all of them receive
  Coordinates at = self;
  Box box = mine;
  detail::for_each_member(unbound, 0, mesh, at, [&] {
    detail::for_each_overlap(extents, to, mine, 0, free, mesh, at, box, visit);
  });
}

/// Calls visit(peer, box) for every process that owns a non-empty box of what the process at `self`
/// needs.
template <class Visit>
constexpr void for_each_sender(const Extents& extents, const Sharding& from, const Sharding& to,
                               const MeshShape& mesh, const Coordinates& self, const Visit& visit) {
  const Box needed = block(extents, to, mesh, self);
  if (needed.empty()) return;
  Coordinates at = self;
  Box box = needed;
  detail::for_each_overlap(extents, from, needed, 0, from.used(), mesh, at, box, visit);
}

/// What one process sends to others in one move.
struct SentTo {
  Index elements = 0;
  Index messages = 0;
  Index kept = 0;  ///< elements that it needs itself
};

/// Returns what the process at `self` sends; per dimension, so its time does not grow with the mesh
/// unless a dimension is both left and entered by axes.
constexpr SentTo sent(const Extents& extents, const Sharding& from, const Sharding& to,
                      const MeshShape& mesh, const Coordinates& self) {
  const AxisSet free = from.used();
  Index elements = mesh.group_size(free - to.used());
  Index messages = elements;
  Index kept = 1;
  Coordinates at = self;
  for (int d = 0; d < extents.size(); ++d) {
    const Interval mine = block(extents[d], from[d], mesh, self);
    if (mine.size() == 0) return {};
    const Interval wanted = from[d] == to[d] ? mine : block(extents[d], to[d], mesh, self);
    kept = saturating_mul(kept, intersect(mine, wanted).size());
    Index overlap = 0;
    Index parts = 0;
    if (from[d].starts_with(to[d])) {  // nothing cuts this dimension anew: every receiver needs all
      overlap = mine.size();
      parts = 1;
    } else {
      detail::for_each_part({0, extents[d]}, mine, to[d], 0, free, mesh, at, [&](Interval part) {
        overlap += part.size();
        ++parts;
      });
    }
    elements = saturating_mul(elements, overlap);
    messages = saturating_mul(messages, parts);
  }
  return {elements - kept, messages - (kept > 0 ? 1 : 0), kept};
}

}  // namespace tessera
