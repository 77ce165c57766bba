// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Where the blocks of a tensor lie: as its sharding says, whole on one process, or in boxes that
/// the application has chosen. Also the arithmetic of moving from one such placement to another;
/// plan/move/transfer.hpp is the case of two shardings on one mesh.
///
///     const detail::Holding from(desc, detail::Placement::on_root(0), mesh), to(desc, {}, mesh);
///     detail::for_each_part_sent(from, to, whole(desc.extents), 0, [](int peer, const Box& box) {});
///
/// Laws: r sends box b to q exactly when q receives box b from r; the boxes that q receives, its
/// own included, are disjoint and cover the part that q is to hold. Where there are replicas, a
/// process uses its own copy if it has one. Else, under a sharding, it takes the copy of the
/// process that has its own coordinates on the axes that do not split the tensor. Among equal boxes
/// it looks at the n that share most of its coordinates, and takes the one at index (its number
/// modulo n).
#include <cstdint>

#include <tessera/plan/move/transfer.hpp>

namespace tessera::detail {

struct Placement {
  enum class Kind : std::uint8_t { sharded, root, boxes };
  Kind kind = Kind::sharded;
  int root = 0;  ///< the process that has everything, for Kind::root
  const Box* boxes =
      nullptr;  ///< one for each process, for Kind::boxes; the owner of a plan keeps them alive
  int count = 0;

  static constexpr Placement on_root(int process) {
    Placement place;
    place.kind = Kind::root;
    place.root = process;
    return place;
  }
  static constexpr Placement in_boxes(const Box* boxes, int count) {
    Placement place;
    place.kind = Kind::boxes;
    place.boxes = boxes;
    place.count = count;
    return place;
  }
  constexpr bool sharded() const { return kind == Kind::sharded; }
  constexpr bool operator==(const Placement& other) const {
    if (kind != other.kind || root != other.root || count != other.count) return false;
    for (int i = 0; i < count; ++i)
      if (!(boxes[i] == other.boxes[i])) return false;
    return true;
  }
};

/// A finished tensor and its placement among the processes of a mesh.
class Holding {
 public:
  constexpr Holding(const TensorDesc& desc, const Placement& place, const MeshShape& mesh)
      : extents_(desc.extents), sharding_(desc.sharding), place_(place), mesh_(mesh) {}

  constexpr const Extents& extents() const { return extents_; }
  /// Returns whether the process has a part of the tensor; box() is that part.
  constexpr bool holds(int process) const {
    return place_.kind != Placement::Kind::root || process == place_.root;
  }
  constexpr Box box(int process) const {
    switch (place_.kind) {
      case Placement::Kind::root:
        return whole(extents_);
      case Placement::Kind::boxes:
        return place_.boxes[process];
      case Placement::Kind::sharded:
        break;
    }
    return block(extents_, sharding_, mesh_, mesh_.coordinates(process));
  }
  constexpr Index size(int process) const { return holds(process) ? box(process).size() : 0; }

  /// Returns whether `asker` takes its part of `owner`'s box from `owner`, not from a replica.
  constexpr bool serves(int owner, int asker) const {
    switch (place_.kind) {
      case Placement::Kind::root:
        break;
      case Placement::Kind::boxes: {
        if (owner == asker) return true;
        if (place_.boxes[asker] == place_.boxes[owner]) return false;
        const int least = axes_apart(owner, asker);
        int nearest = 0, number = 0;  // how many replicas are nearest, and which the owner is
        for (int i = 0; i < place_.count; ++i) {
          if (!(place_.boxes[i] == place_.boxes[owner])) continue;
          const int apart = axes_apart(i, asker);
          if (apart < least) return false;
          if (i == owner) number = nearest;
          nearest += apart == least ? 1 : 0;
        }
        return asker % nearest == number;
      }
      case Placement::Kind::sharded: {
        const AxisSet split = sharding_.used();
        const Coordinates a = mesh_.coordinates(owner), b = mesh_.coordinates(asker);
        for (int axis = 0; axis < mesh_.rank(); ++axis)
          if (!split.contains(axis) && a[axis] != b[axis]) return false;
        break;
      }
    }
    return true;
  }

  /// Calls visit(owner, box) for each process from which `asker` takes a non-empty part of
  /// `needed`.
  template <class Visit>
  constexpr void for_each_owner(const Box& needed, int asker, const Visit& visit) const {
    if (needed.empty()) return;
    if (place_.kind != Placement::Kind::sharded) {
      each_listed(needed, [&](int owner, const Box& part) {
        if (serves(owner, asker)) visit(owner, part);
      });
      return;
    }
    Coordinates at = mesh_.coordinates(asker);
    Box part = needed;
    detail::for_each_overlap(
        extents_, sharding_, needed, 0, sharding_.used(), mesh_, at, part,
        [&](const Coordinates& owner, const Box& box) { visit(mesh_.process(owner), box); });
  }

  /// Calls visit(holder, box) for each process that has a non-empty part of `part`, replicas too.
  template <class Visit> constexpr void for_each_holder(const Box& part, const Visit& visit) const {
    if (part.empty()) return;
    if (place_.kind != Placement::Kind::sharded) return each_listed(part, visit);
    const AxisSet split = sharding_.used();
    Coordinates at(mesh_.rank(), 0);
    Box box = part;
    detail::for_each_member(mesh_.axes() - split, 0, mesh_, at, [&] {
      detail::for_each_overlap(
          extents_, sharding_, part, 0, split, mesh_, at, box,
          [&](const Coordinates& holder, const Box& b) { visit(mesh_.process(holder), b); });
    });
  }

 private:
  /// Returns along how many axes two processes have different coordinates.
  constexpr int axes_apart(int a, int b) const {
    const Coordinates first = mesh_.coordinates(a), second = mesh_.coordinates(b);
    int apart = 0;
    for (int axis = 0; axis < mesh_.rank(); ++axis) apart += first[axis] != second[axis] ? 1 : 0;
    return apart;
  }
  template <class Visit> constexpr void each_listed(const Box& part, const Visit& visit) const {
    if (place_.kind == Placement::Kind::root) {
      visit(place_.root, part);
      return;
    }
    for (int i = 0; i < place_.count; ++i)
      if (const Box overlap = intersect(place_.boxes[i], part); !overlap.empty()) visit(i, overlap);
  }

  Extents extents_;
  Sharding sharding_;
  Placement place_;
  MeshShape mesh_;
};

/// Calls visit(peer, box) for every process, `self` included, that needs a non-empty box, within
/// `window`, of `self`'s part.
template <class Visit>
constexpr void for_each_part_sent(const Holding& from, const Holding& to, const Box& window,
                                  int self, const Visit& visit) {
  if (!from.holds(self)) return;
  to.for_each_holder(intersect(from.box(self), window), [&](int peer, const Box& box) {
    if (from.serves(self, peer)) visit(peer, box);
  });
}

/// Calls visit(peer, box) for every process, `self` included, that has a non-empty box, within
/// `window`, of the part that `self` needs.
template <class Visit>
constexpr void for_each_part_received(const Holding& from, const Holding& to, const Box& window,
                                      int self, const Visit& visit) {
  if (to.holds(self)) from.for_each_owner(intersect(to.box(self), window), self, visit);
}

/// A tensor cut into runs of consecutive elements (row-major), of at most `most` each where
/// possible. They pass through one process in rounds.
///
/// Laws: the slabs are disjoint and cover the tensor, in order; a slab's part of any box is a run
/// of that box's elements too.
class Slabs {
 public:
  constexpr Slabs(const Extents& extents, Index most) : extents_(extents) {
    if (volume(extents) == 0 || volume(extents) <= most || extents.empty()) return;
    Index row = volume(extents);
    for (dim_ = 0; dim_ < extents.size(); ++dim_) {
      row /= extents[dim_];
      if (row <= most || dim_ + 1 == extents.size()) break;
    }
    const Index rows = max_of(1, most / max_of(1, row));
    pieces_ = ceil_div(extents[dim_], rows);
    rows_ = ceil_div(extents[dim_], pieces_);
    pieces_ = ceil_div(extents[dim_], rows_);
    for (int d = 0; d < dim_; ++d) outer_ *= extents[d];
  }
  constexpr Index count() const { return outer_ * pieces_; }
  constexpr Box box(Index i) const {
    Box slab = whole(extents_);
    if (count() == 1) return slab;
    const Index piece = i % pieces_;
    slab[dim_] = {piece * rows_, min_of(extents_[dim_], (piece + 1) * rows_)};
    Index rest = i / pieces_;
    for (int d = dim_ - 1; d >= 0; --d) {
      slab[d] = {rest % extents_[d], rest % extents_[d] + 1};
      rest /= extents_[d];
    }
    return slab;
  }

 private:
  Extents extents_;
  int dim_ = 0;
  Index rows_ = 0;
  Index pieces_ = 1;
  Index outer_ = 1;
};
}  // namespace tessera::detail
