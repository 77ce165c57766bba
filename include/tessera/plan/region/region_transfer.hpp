// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Who sends what to whom so that every process gets its region (plan/region/region.hpp): the
/// arithmetic of plan/move/transfer.hpp, with a map between the two sides. It covers multi-hop,
/// ragged, empty, per-process and corner pieces. Peers are enumerated, never searched for.
///
///     detail::for_each_piece_sent(region, mesh, at, [](const Coordinates& peer, const detail::RegionPiece& p) {});
///
/// Laws: r sends a piece to q exactly when q receives it from r; the pieces that a process
/// receives, its own included, are disjoint and cover the part of its region that maps to the
/// source. Replicas: data comes from the owner that has the receiver's coordinates on the axes that
/// do not split the source. A region taken in turns gives the same result as one taken at once and,
/// where nothing is filled, moves no more data.
#include <algorithm>
#include <vector>

#include <tessera/plan/move/transfer.hpp>
#include <tessera/plan/region/regroup.hpp>

namespace tessera::detail {

/// Returns the number of elements of a piece.
constexpr Index volume(const RegionPiece& piece) {
  Index product = 1;
  for (const Strand& s : piece) product = saturating_mul(product, s.count);
  return product;
}

/// Visits, with `at` set to it, each process (varying in `free`) that needs some of `strand` in one
/// dimension; visit(part of the strand).
template <class Visit>
constexpr void for_each_needing(const RegionDim& d, const Strand& strand, AxisSet free,
                                const MeshShape& mesh, Coordinates& at, const Visit& visit) {
  const auto results = [&] {
    const Interval taps = taps_of(d, mesh, at);
    for_each_part({0, d.extent}, results_that_need(d, strand.coordinates(), taps), d.axes, 0, free,
                  mesh, at, [&](Interval) {
                    if (const Strand part = strand.within(needed(d, mesh, at)); part.count > 0)
                      visit(part);
                  });
  };
  if (d.tap_axes.empty()) return results();
  const Interval all{0, d.window.size};
  for_each_part(all, all, d.tap_axes, 0, free, mesh, at, [&](Interval) { results(); });
}

template <class Visit>
constexpr void for_each_receiving(const Region& region, int dim, const Box& mine, AxisSet free,
                                  const MeshShape& mesh, Coordinates& at, RegionPiece& piece,
                                  const Visit& visit) {
  if (dim == region.size()) {
    visit(at, piece);
    return;
  }
  const RegionDim& d = region[dim];
  if (d.turn != RegionDim::Turn::now) {
    piece[dim] = kept_strand(mine[dim]);
    return for_each_receiving(region, dim + 1, mine, free, mesh, at, piece, visit);
  }
  for_each_strand(d, mine[dim], needed_by_all(d), [&](const Strand& strand) {
    for_each_needing(d, strand, free, mesh, at, [&](const Strand& part) {
      piece[dim] = part;
      for_each_receiving(region, dim + 1, mine, free, mesh, at, piece, visit);
    });
  });
}

template <class Visit>
constexpr void for_each_sending(const Region& region, int dim, const Box& wanted, AxisSet free,
                                const MeshShape& mesh, Coordinates& at, RegionPiece& piece,
                                const Visit& visit) {
  if (dim == region.size()) {
    visit(at, piece);
    return;
  }
  const RegionDim& d = region[dim];
  if (d.turn != RegionDim::Turn::now) {
    piece[dim] = kept_strand(wanted[dim]);
    return for_each_sending(region, dim + 1, wanted, free, mesh, at, piece, visit);
  }
  for_each_strand(d, {0, d.source_size()}, wanted[dim], [&](const Strand& strand) {
    const Interval elements = strand.elements();
    const Interval units{quotient(elements.lo, d.source_unit),
                         ceil_div(elements.hi, d.source_unit)};
    for_each_part({0, d.source_extent}, units, d.source_axes, 0, free, mesh, at, [&](Interval) {
      const Strand part = strand.of_elements(owned(d, mesh, at));
      if (part.count == 0) return;
      piece[dim] = part;
      for_each_sending(region, dim + 1, wanted, free, mesh, at, piece, visit);
    });
  });
}

/// Calls visit(peer, piece) for every non-empty piece that some process, possibly itself, needs of
/// the elements that the process at `self` owns. A peer may come several times.
template <class Visit>
constexpr void for_each_piece_sent(const Region& region, const MeshShape& mesh,
                                   const Coordinates& self, const Visit& visit) {
  const Box mine = owned(region, mesh, self);
  if (mine.empty()) return;
  const AxisSet free = source_axes(region);
  Coordinates at = self;
  RegionPiece piece(region.size(), Strand{});
  const bool grouped = regroups(region);
  detail::for_each_member(free - needing_axes(region), 0, mesh, at, [&] {
    if (grouped)
      RegroupedPieces<Visit>(region, mesh, self, true, visit).visit(at);
    else
      detail::for_each_receiving(region, 0, mine, free, mesh, at, piece, visit);
  });
}

/// Calls visit(peer, piece) for every non-empty piece that the process at `self` needs of the
/// elements that some process, possibly itself, owns. A peer may come several times.
template <class Visit>
constexpr void for_each_piece_received(const Region& region, const MeshShape& mesh,
                                       const Coordinates& self, const Visit& visit) {
  const Box wanted = needed(region, mesh, self);
  if (wanted.empty()) return;
  Coordinates at = self;
  RegionPiece piece(region.size(), Strand{});
  if (regroups(region)) return RegroupedPieces<Visit>(region, mesh, self, false, visit).visit(at);
  detail::for_each_sending(region, 0, wanted, source_axes(region), mesh, at, piece, visit);
}

/// Returns whether the process at `self` has all that it needs in one dimension.
constexpr bool has_what_it_needs(const RegionDim& d, const MeshShape& mesh,
                                 const Coordinates& self) {
  if (d.turn != RegionDim::Turn::now) return true;
  const Interval mine = owned(d, mesh, self);
  bool all = true;
  for_each_strand(d, {0, d.source_size()}, needed(d, mesh, self), [&](const Strand& strand) {
    all = all && strand.of_elements(mine).count == strand.count;
  });
  return all;
}

/// Returns whether each process needs its own block of the source and nothing else, whatever the
/// mesh.
constexpr bool stays_as_it_is(const RegionDim& d) {
  return d.rule == RegionDim::Rule::block && d.axes == d.source_axes &&
         d.extent == d.source_extent && d.unit == d.source_unit && d.stride == 1 && d.offset == 0 &&
         d.dilation == 1;
}

/// Returns the axes over which data must move so that every process has what it needs; none when
/// all have it. It depends only on the region: it tries every coordinate on the axes of a dimension
/// or group.
constexpr AxisSet moving_axes(const Region& region, const MeshShape& mesh) {
  AxisSet moving;
  for (int first = 0, end = 0; first < region.size(); first = end) {
    for (end = first + 1; end < region.size() && region[end].inner;) ++end;
    AxisSet sources, axes;
    for (int d = first; d < end; ++d) {
      sources = sources | region[d].source_axes.set();
      axes = axes | region[d].source_axes.set() | region[d].used();
    }
    if (sources.empty() || (end == first + 1 && stays_as_it_is(region[first]))) continue;
    Coordinates at(mesh.rank(), 0);
    const bool all = all_members(axes, 0, mesh, at, [&] {
      return end == first + 1 ? has_what_it_needs(region[first], mesh, at)
                              : has_its_group(region, first, end, mesh, at);
    });
    if (!all) moving = moving | sources;
  }
  return moving;
}

/// Returns whether all members of each group over the axes `group` need the same, of which one
/// member has all: then it may be broadcast. It depends only on the region.
constexpr bool one_has_all(const Region& region, AxisSet group, const MeshShape& mesh) {
  if (regroups(region)) return false;
  for (const RegionDim& d : region) {
    if (!(d.used() & group).empty()) return false;
    if ((d.source_axes.set() & group).empty()) continue;
    Coordinates at(mesh.rank(), 0);
    const bool all = all_members(d.used(), 0, mesh, at, [&] {
      return !all_members(d.source_axes.set(), 0, mesh, at,
                          [&] { return !has_what_it_needs(d, mesh, at); });
    });
    if (!all) return false;
  }
  return true;
}

/// Returns whether each process itself needs all elements of its block of the source that any
/// process needs. Then a dimension that moves can be taken after others, from the elements
/// collected so far.
constexpr bool may_wait(const RegionDim& d, const MeshShape& mesh) {
  if (d.offset != 0 || d.stride != 1 || d.dilation != 1 || d.unit != d.source_unit) return false;
  Coordinates at(mesh.rank(), 0);
  return all_members(d.source_axes.set() | d.used(), 0, mesh, at, [&] {
    const Interval asked = intersect(source_block(d, mesh, at), needed_by_all(d));
    return intersect(asked, needed(d, mesh, at)).size() == asked.size();
  });
}

/// Returns the region in turns. Each turn takes one of the dimensions that move data from the
/// result of the turns before it, so later turns bring the corners; the first turn also takes the
/// dimensions that move nothing. Returns the whole region as one turn where only one dimension
/// moves, or where corners would have to pass through processes that do not need them.
constexpr LazyVector<Region, max_regions> in_turn(const Region& whole, const MeshShape& mesh) {
  using Turn = RegionDim::Turn;
  FixedVector<int, max_dims> order;
  int impatient = 0;
  bool apart = true;
  for (int d = 0; d < whole.size(); ++d) {
    if (moving_axes({whole[d]}, mesh).empty()) continue;
    order.push_back(d);
    for (int other = 0; other < whole.size(); ++other)
      if (other != d && !(whole[d].source_axes.set() & whole[other].used()).empty()) apart = false;
  }
  if (order.size() < 2 || !apart) return {whole};
  for (int i = 0; i < order.size() && impatient < 2; ++i)
    if (!detail::may_wait(whole[order[i]], mesh)) {  // it goes first
      for (int k = i; k > 0; --k) std::swap(order[k], order[k - 1]);
      ++impatient;
    }
  if (impatient > 1) return {whole};
  LazyVector<Region, max_regions> turns;
  for (int turn = 0; turn < order.size(); ++turn) {
    Region region = whole;
    if (turn > 0)
      for (RegionDim& d : region) d.turn = Turn::before;
    for (int i = turn; i < order.size(); ++i)
      region[order[i]].turn = i > turn ? Turn::later : Turn::now;
    turns.push_back(region);
  }
  return turns;
}

/// Returns whether the map leaves coordinates that no element fills, on some process.
constexpr bool needs_filling(const Region& region) {
  for (const RegionDim& d : region) {
    if (d.turn != RegionDim::Turn::now) continue;
    const Interval all = needed_by_all(d);
    Index found = 0;
    for_each_strand(d, {0, d.source_size()}, all, [&](const Strand& s) { found += s.count; });
    if (found < all.size()) return true;
  }
  return false;
}

/// Returns the coordinates of the process that owns the middle of the needed part of the source,
/// with 0 along axes that do not matter: where many need a part of a tensor, this is a process that
/// sends it.
constexpr Coordinates middle_owner(const Region& region, const MeshShape& mesh) {
  Coordinates at(mesh.rank(), 0);
  for (const RegionDim& d : region) {
    if (d.source_axes.empty()) continue;
    Strand longest;
    for_each_strand(d, {0, d.source_size()}, needed_by_all(d), [&](const Strand& strand) {
      if (strand.count > longest.count) longest = strand;
    });
    const Index unit =
        (longest.source + longest.count / 2 * longest.source_step) / max_of(1, d.source_unit);
    Interval left{0, d.source_extent};
    for (int i = 0; i < d.source_axes.size(); ++i) {
      const int axis = d.source_axes[i];
      at[axis] = static_cast<int>((unit - left.lo) / max_of(1, ceil_div(left.size(), mesh[axis])));
      left = split(left, mesh[axis], at[axis]);
    }
  }
  return at;
}

/// A piece and the member of the group that it goes to or comes from.
struct PeerPiece {
  int peer = 0;
  RegionPiece piece;
};

/// Orders pieces by peer and then by their start in the region, which both sides know.
constexpr void sort_pieces(std::vector<PeerPiece>& pieces) {
  std::sort(pieces.begin(), pieces.end(), [](const PeerPiece& a, const PeerPiece& b) {
    if (a.peer != b.peer) return a.peer < b.peer;
    for (int d = 0; d < a.piece.size(); ++d)
      if (a.piece[d].at != b.piece[d].at) return a.piece[d].at < b.piece[d].at;
    return false;
  });
}

/// Return the pieces that the process at `self` sends and receives, by index in `group`, in the
/// order of the messages; pieces that it keeps have its own index.
constexpr std::vector<PeerPiece> pieces_sent(const Region& region, const MeshShape& mesh,
                                             AxisSet group, const Coordinates& self) {
  std::vector<PeerPiece> pieces;
  for_each_piece_sent(region, mesh, self, [&](const Coordinates& peer, const RegionPiece& piece) {
    pieces.push_back({mesh.place_in_group(group, peer), piece});
  });
  detail::sort_pieces(pieces);
  return pieces;
}
constexpr std::vector<PeerPiece> pieces_received(const Region& region, const MeshShape& mesh,
                                                 AxisSet group, const Coordinates& self) {
  std::vector<PeerPiece> pieces;
  for_each_piece_received(region, mesh, self,
                          [&](const Coordinates& peer, const RegionPiece& piece) {
                            pieces.push_back({mesh.place_in_group(group, peer), piece});
                          });
  detail::sort_pieces(pieces);
  return pieces;
}

}  // namespace tessera::detail
