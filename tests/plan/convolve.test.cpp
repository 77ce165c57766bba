// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The convolutions and windows that a partitioner must get right, planned at full size:
// communication, and that the calls of all processes fit together.
#include <doctest/doctest.h>

#include <tessera/plan/convolve.hpp>
#include <tessera/plan/gradient_shape.hpp>
#include <tessera/plan/reduce_window.hpp>
#include <tessera/plan/simulation.hpp>
#include <tessera/plan/window_settings.hpp>

#include "support/enumerate.hpp"

using namespace tessera;
using namespace support;

namespace {
struct Most {
  int exchanges = 0;
  int reduces = 0;
  int gathers = 0;
  Index payload = -1;   ///< of process 0, bytes
  Index messages = -1;  ///< of its exchanges
};

void within(const char* name, const Plan& plan, const Most& most, bool simulate = true) {
  CAPTURE(name);
  CAPTURE(describe(plan));
  CHECK(plan.count(Collective::exchange) + plan.count(all_to_all) +
            plan.count(collective_permute) <=
        most.exchanges);
  CHECK(plan.count(all_reduce) + plan.count(reduce_scatter) <= most.reduces);
  CHECK(plan.count(all_gather) <= most.gathers);
  if (most.payload >= 0) CHECK(plan.payload_bytes() <= most.payload);
  if (most.messages >= 0) CHECK(plan.messages() <= most.messages);
  Index calls = 0;
  if (simulate) CHECK(fault_of(plan, calls) == "");
}

struct Row {
  const char* name;
  const char* letters;
  Extents x;
  Sharding sx;
  Extents k;
  Sharding sk;
  Convolution settings;
  Sharding out;
  MeshShape mesh;
  Most most;
  DType type = DType::f32;
};

Plan plan_of(const Row& row, int process = 0) {
  const Terms terms = parse(row.letters);
  REQUIRE(check_convolve(terms, {row.sx, row.sk}, row.out).ok());
  const ConvolveVerdict verdict = check_convolution(row.settings, parts_of(terms), row.x, row.k);
  REQUIRE_MESSAGE(verdict.ok(), row.name << ": " << explain(verdict, terms));
  return plan_convolve(terms, shape_of(row.settings, parts_of(terms), row.k),
                       {row.type, row.x, row.sx}, {row.type, row.k, row.sk}, row.out, row.mesh,
                       process);
}

std::vector<Row> rows() {
  const MeshShape two{2}, four{4}, square{2, 2};
  const Sharding whole{{}, {}, {}, {}}, on_h{{}, {0}, {}, {}};
  return {
      {"C1",
       "bhwi,hwio->bhwo",
       {128, 224, 224, 3},
       on_h,
       {7, 7, 3, 64},
       whole,
       {.stride = {2, 2}, .low = {3, 3}, .high = {3, 3}},
       on_h,
       two,
       {.exchanges = 1, .payload = 3 * 128 * 224 * 3 * 4, .messages = 1}},
      {"C3",
       "hwib,hwio->hwob",
       {224, 224, 3, 128},
       {{0}, {}, {}, {}},
       {7, 7, 3, 64},
       whole,
       {.stride = {2, 2}, .low = {3, 3}, .high = {3, 3}},
       {{0}, {}, {}, {}},
       two,
       {.exchanges = 1, .payload = 3 * 128 * 224 * 3 * 4, .messages = 1}},
      {"C5",
       "bhwi,hwio->bhwo",
       {128, 7, 7, 512},
       on_h,
       {3, 3, 512, 512},
       whole,
       {.low = {1, 1}, .high = {2, 2}, .base_dilation = {2, 2}, .reversed = {1, 1}},
       on_h,
       two,
       {.exchanges = 1, .payload = 128 * 7 * 512 * 4}},
      {"C7",
       "xib,xio->xbo",
       {5, 128, 64},
       {{0}, {}, {}},
       {5, 128, 256},
       {{0}, {}, {}},
       {.reversed = {1}},
       {{}, {}, {}},
       two,
       {.exchanges = 1, .reduces = 1}},
      {"C9",
       "ihwb,ihwo->bhwo",
       {8, 28, 28, 8},
       on_h,
       {8, 14, 14, 64},
       on_h,
       {.low = {0, 0}, .high = {-1, -1}, .window_dilation = {2, 2}},
       whole,
       four,
       {.exchanges = 1, .reduces = 1}},
      {"C11",
       "ihwb,ihwo->bhwo",
       {128, 224, 224, 3},
       on_h,
       {128, 112, 112, 64},
       on_h,
       {.low = {3, 3}, .high = {2, 2}, .window_dilation = {2, 2}},
       whole,
       two,
       {.exchanges = 1, .reduces = 1}},
      {"C13",
       "ihwb,ihwo->bhwo",
       {128, 14, 14, 512},
       on_h,
       {128, 7, 7, 512},
       on_h,
       {.low = {1, 1}, .high = {0, 0}, .window_dilation = {2, 2}},
       whole,
       two,
       {.exchanges = 1, .reduces = 1}},
      {"C15",
       "bhwi,hwio->bhwo",
       {128, 8, 8, 1280},
       {{0, 1}, {}, {}, {}},
       {3, 3, 1280, 1280},
       {{}, {}, {}, {0}},
       {.low = {1, 1}, .high = {1, 1}},
       {{}, {}, {}, {0}},
       MeshShape{8, 16},
       {.exchanges = 1, .gathers = 2},
       DType::bf16},
      {"C17",
       "ihwb,ihwo->bhwo",
       {16, 801, 1, 1024},
       on_h,
       {16, 801, 1, 1024},
       {{}, {}, {}, {0}},
       {.low = {2, 0}, .high = {2, 0}, .batch_groups = 1024},
       {{}, {}, {}, {0}},
       two,
       {.exchanges = 1, .payload = 16 * 401 * 512 * 4}},
      {"C19",
       "ihwb,ihwo->bhwo",
       {16, 801, 1, 1024},
       {{}, {0}, {}, {1}},
       {16, 801, 1, 1024},
       {{}, {0}, {}, {1}},
       {.low = {2, 0}, .high = {2, 0}, .batch_groups = 1024},
       {{}, {}, {}, {1}},
       square,
       {.exchanges = 1, .reduces = 1}},
      {"C21",
       "ihwb,ihwo->bhwo",
       {8, 28, 1, 64},
       whole,
       {8, 28, 1, 2},
       whole,
       {.batch_groups = 2},
       whole,
       two,
       {}},
      {"C23",
       "bhwi,hwio->bhwo",
       {64, 3, 1, 3072},
       {{}, {}, {}, {0}},
       {3, 1, 1, 3072},
       {{}, {}, {}, {0}},
       {.feature_groups = 3072},
       {{1}, {}, {}, {0}},
       MeshShape{4, 8},
       {}},
      {"C25",
       "bhwi,hwio->bhwo",
       {16, 801, 1, 1024},
       {{}, {}, {}, {0}},
       {5, 1, 1, 2048},
       {{}, {}, {}, {0}},
       {.low = {2, 0}, .high = {2, 0}, .feature_groups = 1024},
       {{0}, {}, {}, {}},
       two,
       {.exchanges = 1, .gathers = 1, .payload = 16 * 801 * 1024 * 4 / 2}},
      {"C27",
       "bxi,xio->bxo",
       {4, 275, 16},
       {{}, {}, {0}},
       {275, 1, 16},
       {{}, {}, {0}},
       {.low = {2}, .high = {2}, .feature_groups = 16},
       {{}, {}, {0}},
       MeshShape{4, 2},
       {}},
      {"C27, transposed",
       "bxi,xio->bxo",
       {4, 275, 16},
       {{}, {}, {1}},
       {275, 1, 16},
       {{}, {}, {0}},
       {.low = {2}, .high = {2}, .feature_groups = 16},
       {{}, {}, {0}},
       MeshShape{4, 2},
       {.exchanges = 2, .gathers = 1}},
      {"C29",
       "bhwi,hwio->bhwo",
       {128, 112, 112, 12},
       {{}, {}, {}, {0}},
       {7, 7, 12, 64},
       {{}, {}, {0}, {1}},
       {.stride = {2, 2}, .low = {3, 3}, .high = {3, 3}},
       {{}, {}, {}, {1}},
       square,
       {.reduces = 1}},
      {"C31",
       "bhwi,hwio->bhwo",
       {8, 210, 210, 12},
       {{}, {0}, {}, {1}},
       {3, 3, 12, 32},
       {{}, {}, {1}, {}},
       {.low = {1, 1}, .high = {1, 1}},
       on_h,
       square,
       {.exchanges = 1, .reduces = 1}},
      {"C33",
       "bhwi,hwio->bhwo",
       {16, 256, 256, 384},
       {{0}, {}, {1}, {}},
       {3, 3, 384, 384},
       whole,
       {.low = {128, 128}, .high = {128, 128}, .window_dilation = {128, 128}},
       {{0}, {}, {1}, {}},
       MeshShape{2, 4},
       {.exchanges = 1, .gathers = 1, .payload = Index{3} * 8 * 256 * 64 * 384 * 2},
       DType::bf16},
      {"E7",
       "bhwi,hwio->bhwo",
       {4, 64, 64, 8},
       {{}, {0}, {1}, {}},
       {3, 3, 8, 8},
       whole,
       {.low = {1, 1}, .high = {1, 1}},
       {{}, {0}, {1}, {}},
       square,
       {.exchanges = 2, .messages = 3}},
  };
}

/// The interval that each process needs of one dimension.
std::string needs(Index n, const Window& w, int parts) {
  RegionDim d;
  d.rule = RegionDim::Rule::window;
  d.window = w;
  d.axes = d.source_axes = {0};
  d.source_extent = n;
  d.extent = result_extent(n, w);
  std::string text;
  for (int p = 0; p < parts; ++p) {
    const Interval i = needed(d, MeshShape{parts}, {p});
    text += (p > 0 ? ", " : "") + std::to_string(i.lo) + "-" + std::to_string(i.hi - 1);
  }
  return text;
}
}  // namespace

TEST_CASE("convolutions communicate no more than they must") {
  for (const Row& row : rows()) {
    const Plan plan = plan_of(row);
    within(row.name, plan, row.most, row.mesh.processes() <= 32);
    const int last = row.mesh.processes() - 1;
    CHECK(on_process(plan, last) == plan_of(row, last));
  }
}

TEST_CASE("base dilation needs the rows that it reads, and no more") {
  CHECK(needs(7, {.size = 3, .stride = 2, .low = 2, .high = 2, .base_dilation = 3}, 3) ==
        "0-2, 2-4, 5-6");  // E1
  CHECK(needs(12, {.size = 5, .stride = 2, .low = 2, .high = 2, .base_dilation = 3}, 4) ==
        "0-3, 3-6, 6-10, 10-11");                                           // E3
  CHECK(needs(9, {.size = 7, .low = 3, .high = 3}, 3) == "0-5, 0-8, 3-8");  // E5
}

TEST_CASE("windows communicate no more than they must") {
  const auto windows = [](const WindowSettings& s, const TensorDesc& x, const Sharding& out,
                          const MeshShape& mesh) {
    const WindowVerdict verdict = check_windows(s, x.extents);
    REQUIRE_MESSAGE(verdict.ok(), explain(verdict));
    return plan_reduce_window(Reduction::sum, windows_of(s, x.rank()), x, out, mesh);
  };
  const Sharding rows{{0}, {}};
  within("P1",
         windows({.size = {3, 1}, .stride = {2, 1}, .low = {1, 0}}, {DType::f32, {6, 2}, {{}, {}}},
                 rows, MeshShape{2}),
         {});
  within("P3",
         windows({.size = {4, 1}, .stride = {2, 1}, .low = {3, 0}}, {DType::f32, {9, 2}, rows},
                 rows, MeshShape{5}),
         {.exchanges = 1, .messages = 2});
  within("P5",
         windows({.size = {5, 1}, .stride = {3, 1}, .low = {2, 0}, .high = {2, 0}},
                 {DType::f32, {4, 2}, rows}, rows, MeshShape{2}),
         {.exchanges = 1, .payload = 8});
  within(
      "P7",
      windows({.size = {1, 5, 5, 1},
               .low = {0, 4, 4, 0},
               .high = {0, 4, 4, 0},
               .base_dilation = {1, 3, 3, 1}},
              {DType::f32, {128, 5, 5, 768}, {{}, {0}, {}, {}}}, {{}, {0}, {}, {}}, MeshShape{4}),
      {.exchanges = 1});
  const auto select = [](const WindowSettings& s, const TensorDesc& x, const Sharding& source,
                         const Sharding& out, const MeshShape& mesh) {
    const WindowList list = windows_of(s, x.rank());
    return plan_select_and_scatter(
        true, list, x, {DType::f32, windowed_extents(x.extents, list), source}, out, mesh);
  };
  within("P9",
         select({.size = {3, 2}, .stride = {3, 2}, .high = {1, 0}},
                {DType::f32, {11, 4}, {{}, {0}}}, {{0}, {}}, {{0}, {}}, MeshShape{4}),
         {.exchanges = 1});
  within("P11",
         select({.size = {1, 1, 2, 1}, .stride = {1, 2, 2, 1}},
                {DType::f32, {32, 128, 384, 64}, {{}, {0}, {}, {}}}, {{}, {0}, {}, {}},
                {{}, {0}, {}, {}}, MeshShape{8}),
         {});
}

TEST_CASE("Table 4's convolution: compute and communication of a process do not grow with D") {
  // BIXY,xyIO->BOXY, X split, with a halo of one row on each side.
  for (int d = 2; d <= 4096; d *= 2)
    for (const int process : {0, d / 2, d - 1}) {
      const Extents x{4, 8, 16 * d, 32}, k{3, 3, 8, 16};
      const Sharding split{{}, {}, {0}, {}};
      const Row row{"Table 4",
                    "bixy,xyio->boxy",
                    x,
                    split,
                    k,
                    {{}, {}, {}, {}},
                    {.low = {1, 1}, .high = {1, 1}},
                    split,
                    MeshShape{d},
                    {}};
      const Plan plan = plan_of(row, process);
      const Index neighbours = process == 0 || process == d - 1 ? 1 : 2;
      CAPTURE(d);
      CHECK(plan.communications() == 1);
      CHECK(plan.payload_bytes() == neighbours * 4 * 8 * 32 * 4);
      CHECK(plan.messages() == neighbours);
      CHECK(plan.flops() == 2 * 4 * 16 * 16 * 32 * 8 * 9);
    }
}

TEST_CASE("the shape of a gradient is that of what it is the gradient of") {
  Random random(9);
  const Terms terms = parse("bxi,xio->bxo");
  for (int i = 0; i < 2000; ++i) {
    const Window w{random.of<Index>({1, 2, 3, 4}),
                   random.of<Index>({1, 2, 3}),
                   random.below(5) - 1,
                   random.below(5) - 1,
                   random.of<Index>({1, 2, 3}),
                   random.of<Index>({1, 2, 3}),
                   random.chance(50)};
    const Extents x{2, random.of<Index>({1, 2, 5, 9}), 6}, k{w.size, 3, 4};
    ConvolveWindows shape{{w}, 2};
    const Extents y = convolved_extents(shape, parts_of(terms), x, k);
    if (y[1] == 0) continue;
    const ConvolveGradient by_x = input_gradient(terms, shape, x),
                           by_k = kernel_gradient(terms, shape, x, k);
    CHECK(convolved_extents(by_x.shape, parts_of(by_x.terms), y, k) == x);
    CHECK(convolved_extents(by_k.shape, parts_of(by_k.terms), x, y) == k);
  }
}
