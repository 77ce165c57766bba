// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The models of GShard's Table 1 by the sizes of its appendix A.2, as trees of parameters on paper:
// how many weights they have, and how many bytes of them a process keeps.
#include <doctest/doctest.h>

#include <cmath>

#include "nn/gshard_models.hpp"

using namespace gshard;

namespace {
struct Counted {
  Index weights, bytes, bytes_of_experts;
};
Counted count(const Sizes& n, Index processes) {
  const auto mesh = dry_mesh<Grid>(static_cast<int>(processes), 1);
  Parameters<Grid> make(mesh, 1);
  const ParameterTable table = parameter_table(Translator<On<float>>::like(make, n));
  Counted made{table.elements(), table.bytes(), 0};
  for (const ParameterRow& row : table.rows)
    if (row.desc.rank() == 3 && row.desc.extents[0] == n.experts)
      made.bytes_of_experts += row.bytes;
  return made;
}
/// Three figures, as the table prints them.
double rounded(Index weights) {
  const double billions = static_cast<double>(weights) * 1e-9;
  const double unit = std::pow(10.0, std::floor(std::log10(billions)) - 2);
  return std::round(billions / unit) * unit;
}
}  // namespace

TEST_CASE("the weights of GShard's Table 1, by the sizes of its appendix A.2") {
  // The table prints 12.5, 37, 600 billion and a trillion for these; its sizes come to more.
  struct Row {
    Sizes sizes;
    double billions;
  };
  for (const Row& row :
       {Row{{.layers = 12, .experts = 128}, 13.3}, Row{{.layers = 36, .experts = 128}, 39.5},
        Row{{.layers = 36, .experts = 2048}, 619}, Row{{.layers = 60, .experts = 2048}, 1030}}) {
    CAPTURE(row.sizes.layers);
    CAPTURE(row.sizes.experts);
    const Counted all = count(row.sizes, row.sizes.experts);
    CHECK(rounded(all.weights) == doctest::Approx(row.billions));
    // A process keeps one expert of each mixture, and all other weights; in float.
    const Index expert = row.sizes.layers / 2 * 2 * 1024 * 8192;
    CHECK(all.bytes_of_experts == expert * 4);
    CHECK(all.bytes - all.bytes_of_experts == (all.weights - row.sizes.experts * expert) * 4);
  }
}

TEST_CASE("a process's weights stay as experts and processes grow together") {
  const Counted few = count({.layers = 36, .experts = 128}, 128);
  for (const Index n : {512, 2048}) {
    const Counted many = count({.layers = 36, .experts = n}, n);
    CHECK(many.bytes_of_experts == few.bytes_of_experts);
    // What grows beside them are the gates, (M, E).
    CHECK(many.bytes - few.bytes == 18 * 1024 * (n - 128) * 4);
  }
}
