// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Drawings of ownership, compared with those that are kept; look at them in a browser.
#include <doctest/doctest.h>

#include <tessera/op/draw_svg.hpp>

#include "support/golden.hpp"

using namespace tessera;

namespace {
long count(const std::string& text, const std::string& part) {
  long n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
  return n;
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

TEST_CASE("every block is drawn once, and who has none is named") {
  const AxisNames names{"data", "model"};
  const auto frames = [](const std::string& svg) { return count(svg, "fill=\"none\" stroke"); };
  for (const Extents& extents :
       {Extents{64}, Extents{5}, Extents{64, 3}, Extents{2, 3, 4, 5}, Extents{}}) {
    Sharding s = Sharding::replicated(extents.size());
    if (s.rank() > 0) s[0] = {0, 1};
    const long blocks = s.rank() == 0 ? 1 : min_of(64, extents[0]);
    const std::string svg = draw_svg({DType::f32, extents, s}, MeshShape{8, 8}, names);
    CHECK(frames(svg) == blocks);
    CHECK(count(svg, "without elements") == (blocks < 64 && s.rank() > 0 ? 1 : 0));
  }
  const std::string empty =
      draw_svg({DType::f32, {0, 3}, Sharding{{0}, {}}}, MeshShape{2, 4}, names);
  CHECK(frames(empty) == 0);
  CHECK(count(empty, "without elements: 0-7") == 1);
}
