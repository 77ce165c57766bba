// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Who sends which box to whom when a tensor goes from one sharding to another: the arithmetic
/// under every move. The forward map (to whom a process sends) and the inverse map (from whom it
/// receives) visit only the peers that share elements.
///
///     detail::for_each_receiver(extents, from, to, group, mesh, at,
///                       [](const Coordinates& peer, const Box& box) {});
///
/// Laws: r sends box b to q exactly when q receives box b from r; the boxes that q receives (its
/// own included) are disjoint and cover its new block. Replicas: data comes from the owner that has
/// the receiver's coordinates on the axes that do not split the source, or from the owners that
/// differ along some of these axes, which share the sending: each sends an equal part of every box
/// to those that do not hold it.
#include <tessera/spec/block.hpp>

namespace tessera::detail {

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
  const int first = static_cast<int>(quotient(overlap.lo - piece.lo, width));
  const int last = static_cast<int>(quotient(overlap.hi - 1 - piece.lo, width));
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
/// Returns whether `holds()` for every such assignment; it stops at the first for which it does
/// not.
template <class Holds>
constexpr bool all_members(AxisSet free, int axis, const MeshShape& mesh, Coordinates& at,
                           const Holds& holds) {
  while (axis < mesh.rank() && !free.contains(axis)) ++axis;
  if (axis >= mesh.rank()) return holds();
  const int saved = at[axis];
  bool all = true;
  for (int i = 0; i < mesh[axis] && all; ++i) {
    at[axis] = i;
    all = all_members(free, axis + 1, mesh, at, holds);
  }
  at[axis] = saved;
  return all;
}

/// How the owners of a box share the sending, where they differ along axes that do not split it.
struct SharedSending {
  AxisSet axes;
  int dim = 0;  ///< along which every box is cut: the longest, where boxes are largest

  /// The axes are those of an exchange over `group` that do not split the source.
  constexpr SharedSending(const Extents& extents, const Sharding& from, const Sharding& to,
                          AxisSet group, const MeshShape& mesh)
      : axes(group - from.used()) {
    if (axes.empty()) return;
    const Coordinates origin(mesh.rank(), 0);
    Index longest = 0;
    for (int d = 0; d < extents.size(); ++d) {
      const Index n = min_of(block(extents[d], from[d], mesh, origin).size(),
                             block(extents[d], to[d], mesh, origin).size());
      if (n > longest) dim = d;
      longest = max_of(longest, n);
    }
  }
  /// Returns the part of an interval along `dim` that the process at `at` sends.
  constexpr Interval part(Interval whole, const MeshShape& mesh, const Coordinates& at) const {
    return split(whole, mesh.group_size(axes), mesh.place_in_group(axes, at));
  }
};
/// Returns whether two processes hold the same block.
constexpr bool hold_the_same(const Sharding& s, const MeshShape& mesh, const Coordinates& a,
                             const Coordinates& b) {
  const AxisSet used = s.used();
  for (int axis = 0; axis < mesh.rank(); ++axis)
    if (used.contains(axis) && a[axis] != b[axis]) return false;
  return true;
}

/// Calls visit(peer, box) for every process that needs a non-empty box of the block that the
/// process at `self` owns, in an exchange over `group`.
template <class Visit>
constexpr void for_each_receiver(const Extents& extents, const Sharding& from, const Sharding& to,
                                 AxisSet group, const MeshShape& mesh, const Coordinates& self,
                                 const Visit& visit) {
  const Box mine = block(extents, from, mesh, self);
  if (mine.empty()) return;
  const SharedSending sharing(extents, from, to, group, mesh);
  const AxisSet free = from.used() | sharing.axes;
  const AxisSet unbound =
      free - to.used();  // these axes do not matter to the receiver: all of them receive
  Coordinates at = self;
  Box box = mine;
  const auto visit_part = [&](const Coordinates& peer, const Box& whole) {
    if (sharing.axes.empty() || peer == self) return visit(peer, whole);
    if (hold_the_same(from, mesh, peer, self)) return;
    Box part = whole;
    part[sharing.dim] = sharing.part(whole[sharing.dim], mesh, self);
    if (!part.empty()) visit(peer, part);
  };
  detail::for_each_member(unbound, 0, mesh, at, [&] {
    detail::for_each_overlap(extents, to, mine, 0, free, mesh, at, box, visit_part);
  });
}

/// Calls visit(peer, box) for every process that owns a non-empty box of the block that the process
/// at `self` needs, in an exchange over `group`.
template <class Visit>
constexpr void for_each_sender(const Extents& extents, const Sharding& from, const Sharding& to,
                               AxisSet group, const MeshShape& mesh, const Coordinates& self,
                               const Visit& visit) {
  const Box needed = block(extents, to, mesh, self);
  if (needed.empty()) return;
  const SharedSending sharing(extents, from, to, group, mesh);
  Coordinates at = self;
  Box box = needed;
  const auto visit_parts = [&](const Coordinates& owner, const Box& whole) {
    if (sharing.axes.empty() || owner == self) return visit(owner, whole);
    Coordinates sender = owner;
    for_each_member(sharing.axes, 0, mesh, sender, [&] {
      Box part = whole;
      part[sharing.dim] = sharing.part(whole[sharing.dim], mesh, sender);
      if (!part.empty()) visit(sender, part);
    });
  };
  detail::for_each_overlap(extents, from, needed, 0, from.used(), mesh, at, box, visit_parts);
}

/// The parts of one dimension that meet an interval: how much of it they hold, and how many are
/// not empty.
struct Parts {
  Index elements = 0;
  Index count = 0;
  constexpr Parts& add(const Parts& other, Index times) {
    elements = saturating_add(elements, saturating_mul(other.elements, times));
    count = saturating_add(count, saturating_mul(other.count, times));
    return *this;
  }
};

/// The coordinates first, first + stride, ... below `last` that members of `group` take on `axis`
/// when the process at `at` is one of them.
struct Places {
  int first = 0;
  int last = 1;
  int stride = 1;
  /// Returns how many of these coordinates are in [lo, hi).
  constexpr Index within(Index lo, Index hi) const {
    lo = max_of(lo, first);
    hi = min_of(hi, last);
    return hi <= lo
               ? 0
               : quotient(hi - 1 - first, stride) - quotient(lo - 1 - first + stride, stride) + 1;
  }
  constexpr bool contains(Index place) const { return within(place, place + 1) == 1; }
};
constexpr Places places(const AxisGroup& group, int axis, const MeshShape& mesh,
                        const Coordinates& at) {
  if (group.axes.contains(axis)) return {0, mesh[axis], 1};
  if (group.divided != axis) return {at[axis], at[axis] + 1, 1};
  if (group.outer) return {at[axis] % group.inner, mesh[axis], group.inner};
  const int run = at[axis] / group.inner * group.inner;
  return {run, run + group.inner, 1};
}

/// Returns the parts of `target` in one dimension that the members of `group` hold, or of each of
/// them that which the process at `at` sends, where it shares the sending along this dimension; it
/// is a member. By arithmetic: parts wholly within `target` are alike, so each level of
/// nesting needs at most the first, one in the middle and the last two, for any size of the mesh.
constexpr Parts parts_of_group(Interval piece, Interval target, AxisList axes, int i,
                               const AxisGroup& group, const MeshShape& mesh, const Coordinates& at,
                               const SharedSending* sharing = nullptr) {
  const Interval overlap = intersect(piece, target);
  if (overlap.size() == 0) return {};
  if (i == axes.size()) {
    const Index n = sharing == nullptr ? overlap.size() : sharing->part(overlap, mesh, at).size();
    return {n, n > 0};
  }
  const int axis = axes[i];
  const Places members = places(group, axis, mesh, at);
  const Index width = ceil_div(piece.size(), mesh[axis]);
  const Index first = quotient(overlap.lo - piece.lo, width);
  const Index last = quotient(overlap.hi - 1 - piece.lo, width);
  Parts sum;
  const auto add = [&](Index part, Index times) {
    if (times > 0)
      sum.add(parts_of_group(split(piece, mesh[axis], part), target, axes, i + 1, group, mesh, at,
                             sharing),
              times);
  };
  add(first, members.within(first, first + 1));
  if (last > first + 1) add(first + 1, members.within(first + 1, last));
  if (last > first) add(last, members.within(last, last + 1));
  return sum;
}

/// Returns how many elements the members of `group` own together, counting each replica; the
/// process at `at` is a member. The time does not grow with the group.
constexpr Index owned_by(const AxisGroup& group, const Extents& extents, const Sharding& sharding,
                         const MeshShape& mesh, const Coordinates& at) {
  Index elements = 1;
  AxisSet used;
  for (int d = 0; d < extents.size(); ++d) {
    const Interval whole{0, extents[d]};
    elements = saturating_mul(
        elements, detail::parts_of_group(whole, whole, sharding[d], 0, group, mesh, at).elements);
    used = used | sharding[d].set();
  }
  AxisGroup replicas = group;
  replicas.axes = replicas.axes - used;
  if (group.is_divided() && used.contains(group.divided)) replicas.divided = -1;
  return saturating_mul(elements, mesh.group_size(replicas));
}

/// The elements that one process sends to others in one move.
struct SentTo {
  Index elements = 0;
  Index messages = 0;
  Index kept = 0;  ///< elements that it needs itself
};

/// Returns the elements that the process at `self` sends to the other members of `group`: all axes
/// that split the source, or some of them. The time does not grow with the mesh.
constexpr SentTo sent(const Extents& extents, const Sharding& from, const Sharding& to,
                      const MeshShape& mesh, const Coordinates& self, const AxisGroup& group) {
  const bool divided = group.is_divided();
  AxisGroup unbound = group;  // these do not matter to the receiver: all of them receive
  const AxisSet bound = to.used();
  unbound.axes = group.axes - bound;
  if (divided && bound.contains(group.divided)) unbound.divided = -1;
  Index elements = mesh.group_size(unbound);
  Index messages = elements;
  Index kept = 1;
  for (int d = 0; d < extents.size(); ++d) {
    const Index n = extents[d];
    const Interval mine = block(n, from[d], mesh, self);
    if (mine.size() == 0) return {};
    if (from[d] == to[d]) {
      elements = saturating_mul(elements, mine.size());
      kept = saturating_mul(kept, mine.size());
      continue;
    }
    const Interval wanted = block(n, to[d], mesh, self);
    const Index shared = intersect(mine, wanted).size();
    kept = saturating_mul(kept, shared);
    if (from[d].starts_with(
            to[d])) {  // no new split of this dimension: every receiver needs all of it
      elements = saturating_mul(elements, mine.size());
      continue;
    }
    const AxisSet cut = to[d].set();
    if (!divided &&
        (cut & group.axes).empty()) {  // every receiver needs the same elements as this process
      elements = saturating_mul(elements, shared);
      if (shared == 0) messages = 0;
      continue;
    }
    if (const Index parts = mesh.parts(to[d]);
        (cut - group.axes).empty() && (to[d].size() == 1 || divides(parts, n))) {
      const Index width = ceil_div(n, parts);  // receivers divide it among themselves
      elements = saturating_mul(elements, mine.size());
      messages =
          saturating_mul(messages, quotient(mine.hi - 1, width) - quotient(mine.lo, width) + 1);
      continue;
    }
    const detail::Parts parts = detail::parts_of_group({0, n}, mine, to[d], 0, group, mesh, self);
    elements = saturating_mul(elements, parts.elements);
    messages = saturating_mul(messages, parts.count);
  }
  return {elements - kept, messages - (kept > 0 ? 1 : 0), kept};
}
constexpr SentTo sent(const Extents& extents, const Sharding& from, const Sharding& to,
                      const MeshShape& mesh, const Coordinates& self) {
  return sent(extents, from, to, mesh, self, from.used());
}
/// Returns the same where the owners of a box share the sending: to the members that need it, less
/// those that hold it.
constexpr SentTo sent_shared(const Extents& extents, const Sharding& from, const Sharding& to,
                             const SharedSending& sharing, const MeshShape& mesh,
                             const Coordinates& self, const AxisGroup& group) {
  const Box mine = block(extents, from, mesh, self);
  const auto without = [](AxisGroup some, AxisSet axes) {
    some.axes = some.axes - axes;
    if (some.is_divided() && axes.contains(some.divided)) some.divided = -1;
    return some;
  };
  const auto needed_by = [&](const AxisGroup& members) {
    Parts all{1, 1};
    for (int d = 0; d < extents.size(); ++d) {
      const Parts parts = parts_of_group({0, extents[d]}, mine[d], to[d], 0, members, mesh, self,
                                         d == sharing.dim ? &sharing : nullptr);
      all = {saturating_mul(all.elements, parts.elements), saturating_mul(all.count, parts.count)};
    }
    return Parts{}.add(all, mesh.group_size(without(members, to.used())));
  };
  const Parts all = needed_by(group), held = needed_by(without(group, from.used()));
  return {all.elements - held.elements, all.count - held.count,
          intersect(mine, block(extents, to, mesh, self)).size()};
}
}  // namespace tessera::detail
