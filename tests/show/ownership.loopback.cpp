// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: show
// Who owns what, as text and as a drawing, read back and compared with blocks of ceil(n / p).
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/enumerate.hpp"

using namespace tessera;

namespace {

using Text = std::string;
/// The processes that hold each cell of a matrix, by its rows' and columns' text.
using Owners = std::map<std::pair<Text, Text>, std::set<int>>;

/// Returns "2..5", or "2" for one index.
Text span_text(Index lo, Index hi) {
  return hi == lo + 1 ? std::to_string(lo) : std::to_string(lo) + ".." + std::to_string(hi - 1);
}

/// Returns the part of n that a process has: each axis of the dimension splits what the one before
/// it has left.
Text own_span(Index n, const AxisList& axes, const MeshShape& mesh, const Coordinates& at) {
  Index lo = 0, hi = n;
  for (int i = 0; i < axes.size(); ++i) {
    const Index parts = mesh[axes[i]], each = (hi - lo + parts - 1) / parts;
    lo = std::min(hi, lo + at[axes[i]] * each);
    hi = std::min(hi, lo + each);
  }
  return lo == hi ? "" : span_text(lo, hi);
}

/// Returns the processes of "0,2-4".
std::set<int> processes_of(const Text& text) {
  std::set<int> all;
  std::istringstream in(text);
  for (Text run; std::getline(in, run, ',');) {
    const std::size_t dash = run.find('-');
    const int first = std::stoi(run),
              last = dash == Text::npos ? first : std::stoi(run.substr(dash + 1));
    for (int p = first; p <= last; ++p) all.insert(p);
  }
  return all;
}

std::vector<Text> words_of(const Text& line) {
  std::istringstream in(line);
  std::vector<Text> words;
  for (Text word; in >> word;) words.push_back(word);
  return words;
}

/// Reads what visualize() has written of a matrix without gaps.
Owners read(const Text& text) {
  std::istringstream in(text);
  Text line;
  std::getline(in, line);  // the tensor and its mesh
  std::getline(in, line);
  const std::vector<Text> columns = words_of(line);
  Owners all;
  while (std::getline(in, line)) {
    if (line.find("without elements") != Text::npos) break;
    const std::vector<Text> words = words_of(line);
    REQUIRE(words.size() == columns.size() + 1);
    for (std::size_t c = 0; c < columns.size(); ++c)
      all[{words[0], columns[c]}] = processes_of(words[c + 1]);
  }
  return all;
}

int count(const Text& text, const Text& part) {
  int found = 0;
  for (std::size_t at = text.find(part); at != Text::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("a picture of a matrix names for each block the processes that have it") {
  for (const MeshShape& mesh : support::meshes(6, 2)) {
    AxisNames names{"a"};
    if (mesh.rank() > 1) names.push_back("b");
    for (const Sharding& s : support::shardings(2, mesh.rank()))
      for (const Extents& extents : {Extents{7, 4}, Extents{3, 10}, Extents{1, 5}}) {
        const TensorDesc desc{DType::f32, extents, s};
        Owners expected;
        for (int p = 0; p < mesh.processes(); ++p) {
          const Coordinates at = mesh.coordinates(p);
          const Text rows = own_span(extents[0], s[0], mesh, at),
                     columns = own_span(extents[1], s[1], mesh, at);
          if (!rows.empty() && !columns.empty()) expected[{rows, columns}].insert(p);
        }
        const Text text = visualize(desc, mesh, names);
        CAPTURE(text);
        CHECK(read(text) == expected);
        CHECK(count(draw_svg(desc, mesh, names), "fill=\"none\" stroke=\"#333\"") ==
              static_cast<int>(expected.size()));
      }
  }
}
