// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Drawings of ownership, compared with those that are kept; look at them in a browser.
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>
#include <sstream>

#include <tessera/show/draw_svg.hpp>

#include "support/golden.hpp"

using namespace tessera;

namespace {
long count(const std::string& text, const std::string& part) {
  long n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
}
/// The cells of each line of a text drawing after its title: they are two spaces or more apart.
std::vector<std::vector<std::string>> cells_of(const std::string& drawing) {
  std::vector<std::vector<std::string>> lines;
  std::istringstream in(drawing);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    lines.emplace_back();
    for (std::size_t at = line.find_first_not_of(' '); at < line.size();) {
      const std::size_t end = std::min(line.find("  ", at), line.size());
      lines.back().push_back(line.substr(at, end - at));
      at = line.find_first_not_of(' ', end);
    }
  }
  return lines;
}
std::string range(const Interval& i) {
  return std::to_string(i.lo) + (i.size() > 1 ? ".." + std::to_string(i.hi - 1) : "");
}
/// Processes as runs of neighbours; two are named each, not as a run.
std::vector<std::string> runs_of(const std::set<int>& processes) {
  std::vector<std::string> runs;
  for (const int p : processes) {
    if (processes.count(p - 1) != 0) continue;
    int end = p;
    while (processes.count(end + 1) != 0) ++end;
    runs.push_back(std::to_string(p) +
                   (end == p ? "" : (end == p + 1 ? "," : "-") + std::to_string(end)));
  }
  return runs;
}
/// The blocks of one dimension and who holds them, by asking every process.
std::map<Index, std::pair<Interval, std::set<int>>> holders(const TensorDesc& desc,
                                                            const MeshShape& mesh, int d) {
  std::map<Index, std::pair<Interval, std::set<int>>> found;
  for (int p = 0; p < mesh.processes(); ++p) {
    const Box box = block(desc.extents, desc.sharding, mesh, mesh.coordinates(p));
    if (box.empty()) continue;
    found[box[d].lo].first = box[d];
    found[box[d].lo].second.insert(p);
  }
  return found;
}
/// Follows the headings of one dimension from its first block to its last: each is the next block,
/// or counts the next ones and says their sizes. Returns the starts of the blocks of each heading.
std::vector<std::vector<Index>> follow(
    const std::vector<std::string>& headings,
    const std::map<Index, std::pair<Interval, std::set<int>>>& blocks) {
  std::vector<std::vector<Index>> parts;
  auto next = blocks.begin();
  for (const std::string& heading : headings) {
    parts.emplace_back();
    long many = 1;
    const bool gap = heading.rfind("... ", 0) == 0;
    if (gap) many = std::stol(heading.substr(4));
    CHECK((!gap || many > 1));
    Index least = 1L << 60, most = 0;
    for (long i = 0; i < many; ++i, ++next) {
      if (next == blocks.end()) return {};
      least = std::min(least, next->second.first.size());
      most = std::max(most, next->second.first.size());
      if (!gap) CHECK(heading == range(next->second.first));
      parts.back().push_back(next->first);
    }
    if (gap)
      CHECK(heading == "... " + std::to_string(many) + " more of " + std::to_string(least) +
                           (least == most ? "" : " to " + std::to_string(most)) + " ...");
  }
  CHECK(next == blocks.end());
  return parts;
}
}  // namespace

TEST_CASE("drawings are as they are kept") {
  const AxisNames names{"data", "model"};
  const auto check = [&](const std::string& file, const TensorDesc& desc) {
    const std::string text = draw_svg(desc, MeshShape{2, 4}, names);
    CHECK(support::golden(file, text) == text);
  };
  check("matrix.svg", {DType::f32, {7, 11}, Sharding{{0}, {1}}});
  check("replicas.svg", {DType::f32, {3, 5, 2}, Sharding{{}, {0}, {}}});
  check("unreduced.svg", {DType::f64, {9}, Sharding{{1}}.with_partial(AxisSet{0}, Reduction::sum)});
}

TEST_CASE("abbreviated drawings are as they are kept") {
  const AxisNames names{"data", "model"};
  const auto check = [&](const std::string& file, const TensorDesc& desc) {
    const MeshShape mesh{64, 64};
    const std::string svg = draw_svg(desc, mesh, names), text = visualize(desc, mesh, names);
    CHECK(support::golden(file + ".svg", svg) == svg);
    CHECK(support::golden(file + ".txt", text) == text);
  };
  check("matrix_64x64", {DType::f32, {8192, 8192}, Sharding{{0}, {1}}});
  // The last blocks are short, and some processes have none.
  check("ragged_64x64", {DType::f32, {7990, 130}, Sharding{{0}, {1}}});
  check("nested_64x64", {DType::f32, {190 * 64}, Sharding{{0, 1}}});
  check("replicas_64x64", {DType::bf16, {300, 200}, Sharding{{}, {1}}});
  check("experts_64x64", {DType::bf16, {64, 3, 700}, Sharding{{0}, {}, {1}}});
}

TEST_CASE("every block is drawn once, and who has none is named") {
  const AxisNames names{"data", "model"};
  const auto frames = [](const std::string& svg) { return count(svg, "fill=\"none\" stroke"); };
  for (const Extents& extents :
       {Extents{16}, Extents{5}, Extents{16, 3}, Extents{2, 3, 4, 5}, Extents{}}) {
    Sharding s = Sharding::replicated(extents.size());
    if (s.rank() > 0) s[0] = {0, 1};
    const long blocks = s.rank() == 0 ? 1 : min_of(16, extents[0]);
    const std::string svg = draw_svg({DType::f32, extents, s}, MeshShape{4, 4}, names);
    CHECK(frames(svg) == blocks);
    CHECK(count(svg, "without elements") == (blocks < 16 && s.rank() > 0 ? 1 : 0));
  }
  const std::string empty =
      draw_svg({DType::f32, {0, 3}, Sharding{{0}, {}}}, MeshShape{2, 4}, names);
  CHECK(frames(empty) == 0);
  CHECK(count(empty, "without elements: 0-7") == 1);
}

TEST_CASE("what abbreviated drawings leave out is counted, and the short blocks are shown") {
  const AxisNames names{"a", "b", "c"};
  std::mt19937 random(7);
  const auto any = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::size_t longest_text = 0, longest_svg = 0;
  long abbreviated = 0;
  for (const MeshShape& mesh : {MeshShape{64, 64}, MeshShape{4096}, MeshShape{16, 16, 16},
                                MeshShape{5, 40, 3}, MeshShape{1, 17, 2}})
    for (int trial = 0; trial < 12; ++trial) {
      // The axes in any order, on two dimensions or on none.
      Sharding s = Sharding::replicated(2);
      std::vector<int> order;
      for (int a = 0; a < mesh.rank(); ++a) order.insert(order.begin() + any(a + 1), a);
      for (const int a : order)
        if (const int d = any(3); d < 2) s[d].push_back(a);
      Extents extents;
      for (int d = 0; d < 2; ++d) {
        const int parts = mesh.parts(s[d]);
        extents.push_back(any(4) == 0 ? 1 + any(parts) : parts * (1 + any(5)) + any(parts));
      }
      const TensorDesc desc{DType::f32, extents, s};
      const std::string text = visualize(desc, mesh, names), svg = draw_svg(desc, mesh, names);
      CAPTURE(text);
      longest_text = std::max(longest_text, text.size());
      longest_svg = std::max(longest_svg, svg.size());

      std::vector<std::vector<std::string>> lines = cells_of(text);
      if (lines.back()[0].rfind("without elements: ", 0) == 0) lines.pop_back();
      const std::string counts = lines.back()[0];
      if (counts.find("gaps name") != std::string::npos) lines.pop_back();
      const auto row_blocks = holders(desc, mesh, 0), column_blocks = holders(desc, mesh, 1);
      std::vector<std::string> row_names;
      for (std::size_t r = 1; r < lines.size(); ++r) row_names.push_back(lines[r][0]);
      const auto rows = follow(row_names, row_blocks), columns = follow(lines[0], column_blocks);
      REQUIRE(rows.size() + 1 == lines.size());
      REQUIRE(columns.size() == lines[0].size());
      REQUIRE(rows.back().size() == 1);  // what is last, and often short, is drawn
      REQUIRE(columns.back().size() == 1);
      long drawn = 0;
      for (std::size_t r = 0; r < rows.size(); ++r)
        for (std::size_t c = 0; c < columns.size(); ++c) {
          std::set<int> in_rows, in_columns, both;
          for (const Index lo : rows[r])
            in_rows.insert(row_blocks.at(lo).second.begin(), row_blocks.at(lo).second.end());
          for (const Index lo : columns[c])
            in_columns.insert(column_blocks.at(lo).second.begin(),
                              column_blocks.at(lo).second.end());
          std::set_intersection(in_rows.begin(), in_rows.end(), in_columns.begin(),
                                in_columns.end(), std::inserter(both, both.begin()));
          const std::string& cell = lines[r + 1][c + 1];
          const std::string first = std::to_string(*both.begin()),
                            last = std::to_string(*both.rbegin());
          if (rows[r].size() > 1 || columns[c].size() > 1) {
            CHECK(cell == first + " ... " + last);
          } else {
            ++drawn;
            const std::vector<std::string> runs = runs_of(both);
            std::string all;
            for (const std::string& run : runs) all += (all.empty() ? "" : ",") + run;
            CHECK(cell == (runs.size() <= 8
                               ? all
                               : runs[0] + "," + runs[1] + "," + runs[2] + ",...," + runs.back() +
                                     " (" + std::to_string(both.size()) + " in all)"));
          }
        }
      CHECK(count(svg, "fill=\"none\" stroke") == drawn);
      const auto whole = static_cast<long>(row_blocks.size() * column_blocks.size());
      abbreviated += drawn < whole;
      const std::string sentence =
          std::to_string(drawn) + " of " + std::to_string(whole) + " blocks; gaps name";
      CHECK((counts.find(sentence) == 0) == (drawn < whole));
      CHECK(count(svg, std::to_string(drawn) + " of " + std::to_string(whole) + " blocks") ==
            (drawn < whole ? 1 : 0));
      long idle = 0;
      for (int p = 0; p < mesh.processes(); ++p)
        idle += block(extents, s, mesh, mesh.coordinates(p)).empty();
      CHECK(count(svg, "without elements: ") == (idle > 0 ? 1 : 0));
      CHECK(count(text, "without elements: ") == (idle > 0 ? 1 : 0));
    }
  CHECK(abbreviated > 20);
  MESSAGE("longest: text ", longest_text, " B, SVG ", longest_svg, " B");
  CHECK(longest_text < 10'000);
  CHECK(longest_svg < 200'000);
}

TEST_CASE("the size of a drawing is bounded whatever the mesh") {
  const AxisNames names{"a", "b", "c", "d", "e", "f"};
  const auto check = [&](const Extents& extents, const Sharding& s, const MeshShape& mesh) {
    const TensorDesc desc{DType::f32, extents, s};
    const std::string text = visualize(desc, mesh, names), svg = draw_svg(desc, mesh, names);
    CAPTURE(text);
    CHECK(text.size() < 20'000);
    CHECK(svg.size() < 600'000);
    CHECK(svg.find("blocks are drawn") != std::string::npos);
  };
  check({1 << 20}, Sharding{{0}}, MeshShape{1 << 20});
  check({4096}, Sharding{{1, 0}}, MeshShape{64, 64});
  check({100, 100, 100}, Sharding{{0}, {1}, {2}}, MeshShape{16, 16, 16});
  check({64, 64, 64}, Sharding{{0, 3}, {1, 4}, {2, 5}}, MeshShape{4, 4, 4, 4, 4, 4});
  check({11, 13, 7, 9, 10, 11}, Sharding{{0}, {1}, {2}, {3}, {4}, {5}},
        MeshShape{4, 4, 4, 4, 4, 4});
  check({99, 77, 55}, Sharding{{5, 0}, {1, 4}, {2, 3}}, MeshShape{4, 4, 4, 4, 4, 4});
  check({1000}, Sharding{{0, 1, 2, 3, 4, 5}}, MeshShape{4, 4, 4, 4, 4, 4});
}
