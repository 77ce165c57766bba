// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_moves
// Regions against their definition: which element each coordinate maps to, asked one by one.
#include <doctest/doctest.h>

#include <map>
#include <random>

#include <tessera/plan/region/region_payload.hpp>

using namespace tessera;

namespace {
/// The element at coordinate v, or -1.
Index element_at(const detail::RegionDim& d, Index v) {
  const Index n = d.source_size();
  if (d.turn != detail::RegionDim::Turn::now) return v;  // it lies at its own place
  if (n == 0) return -1;
  const Index q = v * d.stride + d.offset;
  switch (d.boundary) {
    case Boundary::none:
    case Boundary::constant:
      if (q < 0 || q % d.dilation != 0 || q / d.dilation >= n) return -1;
      return q / d.dilation;
    case Boundary::periodic:
      return ((q % n) + n) % n;
    case Boundary::reflected: {
      if (n == 1) return 0;
      const Index p = 2 * (n - 1), r = ((q % p) + p) % p;
      return r < n ? r : p - r;
    }
    case Boundary::symmetric: {
      const Index r = ((q % (2 * n)) + 2 * n) % (2 * n);
      return r < n ? r : 2 * n - 1 - r;
    }
  }
  return -1;
}

using Pairs = std::map<std::vector<Index>, std::vector<Index>>;  // coordinate -> element

void add(Pairs& pairs, const detail::RegionPiece& piece, bool& twice) {
  std::vector<Index> at(static_cast<std::size_t>(piece.size())), source(at.size());
  const auto visit = [&](auto&& self, int d) -> void {
    if (d == piece.size()) {
      twice = twice || !pairs.emplace(at, source).second;
      return;
    }
    for (Index k = 0; k < piece[d].count; ++k) {
      at[static_cast<std::size_t>(d)] = piece[d].at + k * piece[d].step;
      source[static_cast<std::size_t>(d)] = piece[d].source + k * piece[d].source_step;
      self(self, d + 1);
    }
  };
  visit(visit, 0);
}

/// What the definition says that process `self` takes from process `owner`, for every owner.
std::map<int, Pairs> expected(const detail::Region& region, const MeshShape& mesh, int self) {
  std::map<int, Pairs> result;
  const Coordinates at = mesh.coordinates(self);
  const Box wanted = detail::needed(region, mesh, at);
  const AxisSet split = detail::source_axes(region);
  std::vector<Index> v(static_cast<std::size_t>(region.size())), e(v.size());
  const auto visit = [&](auto&& recurse, int d) -> void {
    if (d < region.size()) {
      for (Index i = wanted[d].lo; i < wanted[d].hi; ++i) {
        v[static_cast<std::size_t>(d)] = i;
        e[static_cast<std::size_t>(d)] = element_at(region[d], i);
        if (region[d].turn != detail::RegionDim::Turn::now || e[static_cast<std::size_t>(d)] >= 0)
          recurse(recurse, d + 1);
      }
      return;
    }
    for (int p = 0; p < mesh.processes(); ++p) {
      const Coordinates there = mesh.coordinates(p);
      bool owns = true;
      for (int a = 0; a < mesh.rank(); ++a) owns = owns && (split.contains(a) || there[a] == at[a]);
      const Box box = detail::owned(region, mesh, there);
      for (int k = 0; k < region.size(); ++k)
        owns = owns && box[k].lo <= e[static_cast<std::size_t>(k)] &&
               e[static_cast<std::size_t>(k)] < box[k].hi;
      if (owns) result[p].emplace(v, e);
    }
  };
  visit(visit, 0);
  return result;
}

void require_region(const detail::Region& region, const MeshShape& mesh) {
  std::map<std::pair<int, int>, Pairs> sent, received;  // (from, to)
  bool twice = false;
  for (int p = 0; p < mesh.processes(); ++p) {
    const Coordinates at = mesh.coordinates(p);
    detail::for_each_piece_sent(region, mesh, at,
                                [&](const Coordinates& to, const detail::RegionPiece& piece) {
                                  add(sent[{p, mesh.process(to)}], piece, twice);
                                });
    detail::for_each_piece_received(region, mesh, at,
                                    [&](const Coordinates& from, const detail::RegionPiece& piece) {
                                      add(received[{mesh.process(from), p}], piece, twice);
                                    });
  }
  REQUIRE_FALSE(twice);
  CHECK(sent == received);
  // How much that is, counted dimension by dimension.
  const auto others = [&](const auto& pieces, int p, bool sends) {
    Index sum = 0;
    for (const auto& [between, pairs] : pieces)
      if (const auto [from, to] = between; from != to && (sends ? from : to) == p)
        sum += static_cast<Index>(pairs.size());
    return sum;
  };
  REQUIRE(detail::RegionPayload::counts(region, false));
  const detail::RegionPayload out(region, false, mesh), back(region, true, mesh);
  for (int p = 0; p < mesh.processes(); ++p) {
    CHECK(out.elements(mesh.coordinates(p)) == others(sent, p, true));
    CHECK(back.elements(mesh.coordinates(p)) == others(received, p, false));
  }
  bool local = true;
  for (int p = 0; p < mesh.processes(); ++p)
    for (const auto& [owner, pairs] : expected(region, mesh, p)) {
      CHECK(received[{owner, p}] == pairs);
      if (!pairs.empty()) local = local && owner == p;
    }
  if (detail::moving_axes(region, mesh).empty()) CHECK(local);
}

detail::RegionDim random_dim(std::mt19937& random, AxisList source, AxisList result,
                             AxisList taps) {
  const auto any = [&](Index lo, Index hi) {
    return std::uniform_int_distribution<Index>(lo, hi)(random);
  };
  detail::RegionDim d;
  d.source_axes = source;
  d.axes = result;
  d.source_extent = any(0, 9);
  switch (any(0, 7)) {
    case 0:
      d.rule = detail::RegionDim::Rule::window;
      d.window = {any(1, 4), any(1, 3), any(-1, 3),    any(-1, 3),
                  any(1, 3), any(1, 3), any(0, 1) == 1};
      d.tap_axes = taps;
      d.extent = detail::result_extent(d.source_extent, d.window);
      break;
    case 1:
      d.rule = detail::RegionDim::Rule::extended;
      d.window.low = any(0, 5);
      d.window.high = any(0, 5);
      d.extent = d.source_extent;
      d.boundary = static_cast<Boundary>(any(0, 4));
      break;
    case 2:  // a slice, or one backwards
      d.boundary = Boundary::constant;
      d.stride = any(0, 1) == 1 ? any(1, 3) : -any(1, 3);
      d.offset = any(-2, 9);
      d.extent = any(0, 9);
      break;
    case 3:  // a pad
      d.boundary = Boundary::constant;
      d.dilation = any(1, 3);
      d.offset = any(-3, 3);
      d.extent = any(0, 12);
      break;
    case 6:  // what select-and-scatter needs of its source,
    case 7:  // and of its input
      d.rule = detail::RegionDim::Rule::readers;
      d.window = {any(1, 4), any(1, 4), any(-1, 3), any(-1, 3), any(1, 3), any(1, 3)};
      d.extent = d.source_extent;
      d.source_extent = detail::result_extent(d.extent, d.window);
      if (any(0, 1) == 1) {
        d.rule = detail::RegionDim::Rule::neighbours;
        d.source_extent = d.extent;
      }
      break;
    case 4:  // a roll
      d.boundary = d.source_extent > 0 ? Boundary::periodic : Boundary::none;
      d.offset = any(-12, 12);
      d.extent = d.source_extent;
      break;
    default:  // rows of 4 regrouped in rows of 6 or the other way round
      d.source_unit = any(1, 4);
      d.unit = any(1, 6);
      d.source_extent = any(0, 4) * d.unit;
      d.extent = d.source_size() / d.unit;
      break;
  }
  return d;
}

using Blocks = std::vector<Pairs>;  // which element each process has at which coordinate
/// Lets every process take one turn, the first from the source; returns how many elements travel.
Index take_turn(const detail::Region& region, const MeshShape& mesh, Blocks& blocks, bool first,
                bool fills) {
  const Blocks before = blocks;
  Index moved = 0;
  for (int p = 0; p < mesh.processes(); ++p)
    detail::for_each_piece_received(
        region, mesh, mesh.coordinates(p),
        [&](const Coordinates& from, const detail::RegionPiece& piece) {
          Pairs pairs;
          bool twice = false;
          add(pairs, piece, twice);
          const int q = mesh.process(from);
          if (q != p) moved += volume(piece);
          Pairs& mine = blocks[static_cast<std::size_t>(p)];
          for (const auto& [at, source] : pairs) {
            if (first) {
              mine.emplace(at, source);
              continue;
            }
            const Pairs& theirs = before[static_cast<std::size_t>(q)];
            const auto found = theirs.find(source);
            if (found == theirs.end()) {  // what is filled, there and here
              CHECK(fills);
              continue;
            }
            const auto [place, is_new] = mine.emplace(at, found->second);
            CHECK(place->second == found->second);
            if (q != p) CHECK(is_new);  // nothing comes twice
          }
        });
  return moved;
}

/// Checks that the turns end as the whole does, and bring no more; returns whether there are turns.
bool require_turns(const detail::Region& whole, const MeshShape& mesh) {
  const detail::LazyVector<detail::Region, detail::max_regions> turns =
      detail::in_turn(whole, mesh);
  if (turns.size() == 1) {
    CHECK(turns[0] == whole);
    return false;
  }
  const auto count = static_cast<std::size_t>(mesh.processes());
  Blocks at_once(count), blocks(count);
  const bool fills = detail::needs_filling(whole);
  const Index most = take_turn(whole, mesh, at_once, true, fills);
  Index moved = 0;
  AxisSet over;
  for (int i = 0; i < turns.size(); ++i) {
    require_region(turns[i], mesh);
    const AxisSet axes = detail::moving_axes(turns[i], mesh);
    CHECK((axes & over).empty());
    over = over | axes;
    moved += take_turn(turns[i], mesh, blocks, i == 0, fills);
  }
  CHECK(over == detail::moving_axes(whole, mesh));
  CHECK(blocks == at_once);
  // What is filled travels with the rest, and of several images of an element one.
  bool images = false;
  for (const detail::RegionDim& d : whole) images = images || d.boundary > Boundary::constant;
  if (!fills) CHECK((images ? moved <= most : moved == most));
  for (int p = 0; p < mesh.processes(); ++p)
    CHECK(detail::needed(turns.back(), mesh, mesh.coordinates(p)) ==
          detail::needed(whole, mesh, mesh.coordinates(p)));
  return true;
}

std::string halos(Index n, const Window& w, int parts) {
  detail::RegionDim d;
  d.rule = detail::RegionDim::Rule::window;
  d.window = w;
  d.axes = d.source_axes = {0};
  d.source_extent = n;
  d.extent = detail::result_extent(n, w);
  const MeshShape mesh{parts};
  std::string text;
  for (int p = 0; p < parts; ++p) {
    text += p > 0 ? "; " : "";
    detail::for_each_piece_received(
        {d}, mesh, {p}, [&](const Coordinates& peer, const detail::RegionPiece& piece) {
          if (peer[0] != p)
            text += std::to_string(peer[0]) + ":" + std::to_string(volume(piece)) + " ";
        });
  }
  return text;
}
}  // namespace

TEST_CASE("regions in one dimension hold what the definition says") {
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    const int parts = 1 + i % 5;
    const bool taps = i % 7 == 0;
    const detail::RegionDim d =
        random_dim(random, i % 3 == 0 ? AxisList{} : AxisList{0},
                   i % 4 == 0 || taps ? AxisList{} : AxisList{0}, taps ? AxisList{0} : AxisList{});
    CAPTURE(i);
    require_region({d}, MeshShape{parts});
  }
}

TEST_CASE("regions on two axes hold what the definition says") {
  std::mt19937 random(8);
  const AxisList lists[] = {{}, {0}, {1}, {0, 1}, {1, 0}};
  for (int i = 0; i < 1500; ++i) {
    const int s = static_cast<int>(random() % 5), t = static_cast<int>(random() % 5);
    const AxisList other = s == 1 ? AxisList{1} : s == 2 ? AxisList{0} : AxisList{};
    const AxisList result = t == 1 ? AxisList{1} : t == 2 ? AxisList{0} : AxisList{};
    const detail::RegionDim a =
        random_dim(random, lists[s], lists[t], t == 1 ? AxisList{1} : AxisList{});
    const bool taken = !a.tap_axes.empty();
    const detail::RegionDim b = random_dim(random, other, taken ? AxisList{} : result, {});
    CAPTURE(i);
    require_region({a, b}, MeshShape{2, 3});
  }
}

TEST_CASE(
    "a region that is taken in turns ends as one that is taken at once, and nothing comes twice") {
  std::mt19937 random(9);
  int turned = 0;
  const AxisList lists[] = {{0}, {1}, {2}, {}};
  for (int i = 0; i < 1500; ++i) {
    detail::Region region;
    int result[] = {0, 1, 2, 3};
    if (i % 3 == 0) std::shuffle(result, result + 4, random);
    for (int d = 0; d < 2 + i % 2; ++d) {
      const bool taps = random() % 9 == 0;
      const AxisList axes = lists[result[d]];
      region.push_back(
          random_dim(random, lists[d], taps ? AxisList{} : axes, taps ? axes : AxisList{}));
    }
    CAPTURE(i);
    turned += require_turns(region, i % 2 == 0 ? MeshShape{2, 3, 1} : MeshShape{2, 2, 2});
  }
  MESSAGE(turned << " regions in turns");
  CHECK(turned > 200);
}

TEST_CASE("halos of ragged windows come from as many processes as they must") {
  // GShard's figure 11: 12 elements on 4 parts, window 3, stride 2, padding 1_4.
  CHECK(halos(12, {.size = 3, .stride = 2, .low = 1, .high = 4}, 4) == "1:1 ; 2:2 ; 3:3 ; ");
  // 9 rows on 5 parts of 2, window 4, stride 2, padding 3_0.
  CHECK(halos(9, {.size = 4, .stride = 2, .low = 3}, 5) == "; 0:2 ; 0:1 1:2 ; 1:1 2:2 ; 2:1 3:2 ");
}
