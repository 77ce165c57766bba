// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: plan_operators
// The convolutions and windows that a partitioner must get right, planned at full size:
// communication, and that the calls of all processes fit together.
#include <doctest/doctest.h>

#include <tessera/plan/op/window/convolve.hpp>
#include <tessera/plan/op/window/gradient_shape.hpp>
#include <tessera/plan/op/window/reduce_window.hpp>
#include <tessera/plan/region/window_settings.hpp>
#include <tessera/program/explain.hpp>
#include <tessera/program/simulation.hpp>

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
  if (simulate) CHECK(detail::fault_of(plan, calls) == "");
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

Plan plan_of(const Row& row, int process = 0, const PlanOptions& options = {}) {
  const Terms terms = parse(row.letters);
  REQUIRE(detail::check_convolve(terms, {row.sx, row.sk}, row.out).ok());
  const Verdict verdict = detail::check_convolution(row.settings, terms, row.x, row.k);
  REQUIRE_MESSAGE(verdict.ok(), row.name << ": " << explain(verdict, terms, {}));
  return detail::plan_convolve(
      terms, detail::shape_of(row.settings, detail::parts_of(terms), row.k),
      {row.type, row.x, row.sx}, {row.type, row.k, row.sk}, row.out, row.mesh, process, options);
}
PlanOptions message_price(std::int64_t picoseconds) {
  PlanOptions options;
  options.machine.message_ps = picoseconds;
  return options;
}
/// Checks that the plans of all processes fit together, and follow from that of process 0.
template <class Make> void all_fit(const Make& make) {
  const Plan plan = make(0);
  Index calls = 0;
  CHECK(detail::fault_of(plan, calls) == "");
  for (int p = 0; p < plan.mesh.processes(); ++p) CHECK(on_process(plan, p) == make(p));
}
bool overlaps(const Plan& plan) {
  for (const Step& step : plan.steps)
    if (step.overlaps) return true;
  return false;
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
       {.exchanges = 2, .gathers = 2, .payload = 8 * 105 * 210 * 32 * 4}},
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
      {"batch to space: the input is exchanged, not gathered",
       "bhwi,hwio->bhwo",
       {128, 224, 224, 3},
       {{0}, {}, {}, {}},
       {3, 3, 3, 64},
       whole,
       {.low = {1, 1}, .high = {1, 1}},
       on_h,
       two,
       {.exchanges = 2, .payload = 64 * 113 * 224 * 3 * 4}},
      {"a kernel for each example: its own taps alone",
       "bxi,xio->bxo",
       {8, 16, 16},
       {{}, {0}, {}},
       {16, 16, 4},
       {{0}, {}, {}},
       {.base_dilation = {16}, .window_dilation = {15}},
       {{}, {0}, {}},
       four,
       {}},
      {"a kernel for each example, ragged and elsewhere",
       "bxi,xio->bxo",
       {8, 15, 16},
       {{}, {0}, {}},
       {15, 16, 4},
       {{}, {0}, {}},
       {.base_dilation = {15}, .window_dilation = {14}},
       {{}, {0}, {}},
       four,
       {.exchanges = 1, .payload = 15 * 16 * 4 * 4}},
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
  detail::RegionDim d;
  d.rule = detail::RegionDim::Rule::window;
  d.window = w;
  d.axes = d.source_axes = {0};
  d.source_extent = n;
  d.extent = detail::result_extent(n, w);
  std::string text;
  for (int p = 0; p < parts; ++p) {
    const Interval i = detail::needed(d, MeshShape{parts}, {p});
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
    const WindowList list = detail::windows_of(s, x.rank());
    const Verdict verdict = detail::check_windows(list, x.extents);
    REQUIRE_MESSAGE(verdict.ok(), explain(verdict));
    return ops::ReduceWindow{.reduction = Reduction::sum, .windows = list, .out = out}.plan({x},
                                                                                            {mesh});
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
    const WindowList list = detail::windows_of(s, x.rank());
    return ops::SelectAndScatter{true, list, out, false}.plan(
        {x, TensorDesc{DType::f32, detail::windowed_extents(x.extents, list), source}}, {mesh});
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

TEST_CASE("corners of a convolution in three dimensions: 26 messages, or 6, for the same payload") {
  const Sharding split{{}, {0}, {1}, {2}, {}};
  const Row row{"3-D",
                "bxyzi,xyzio->bxyzo",
                {2, 24, 24, 24, 4},
                split,
                {3, 3, 3, 4, 5},
                {{}, {}, {}, {}, {}},
                {.low = {1, 1, 1}, .high = {1, 1, 1}},
                split,
                MeshShape{3, 3, 3},
                {}};
  const Index unit = 2 * 4 * 4;  // batch, features, bytes
  for (const std::int64_t price : {0, 1'000'000}) {
    const PlanOptions options = message_price(price);
    const Plan middle = plan_of(row, 13, options), corner = plan_of(row, 0, options);
    CAPTURE(describe(middle));
    CHECK(middle.count(Collective::exchange) == (price > 0 ? 3 : 1));
    CHECK(middle.communications() == middle.count(Collective::exchange));
    CHECK(middle.messages() == (price > 0 ? 6 : 26));
    CHECK(corner.messages() == (price > 0 ? 3 : 7));
    CHECK(middle.own_payload_bytes() == unit * (10 * 10 * 10 - 8 * 8 * 8));
    CHECK(corner.own_payload_bytes() == unit * (9 * 9 * 9 - 8 * 8 * 8));
    all_fit([&](int p) { return plan_of(row, p, options); });
  }
  // One face after the other, the later ones wider.
  const Plan plan = plan_of(row, 13);
  CHECK(plan.steps[0].payload == unit * 2 * 8 * 8);
  CHECK(plan.steps[1].payload == unit * 2 * 10 * 8);
  CHECK(plan.steps[2].payload == unit * 2 * 10 * 10);
  const std::string text = explain(plan, {"a", "b", "c"});
  CAPTURE(text);
  const auto line = [&](const std::string& over, const std::string& halo) {
    const auto at = text.find("exchange over " + over + " ");
    return at != std::string::npos &&
           text.substr(at, text.find('\n', at) - at).find(halo) != std::string::npos;
  };
  CHECK(line("a", "with halo 0_0x1_1x0_0x0_0x0_0"));
  CHECK(line("b", "with halo 0_0x1_1x1_1x0_0x0_0"));
  CHECK(line("c", "with halo 0_0x1_1x1_1x1_1x0_0"));
}

TEST_CASE("a large block exchanges its border with all neighbours at once, and is not copied") {
  const Sharding split{{}, {0}, {1}, {}};
  const auto of = [&](Index n) {
    return Row{"2-D",
               "bhwi,hwio->bhwo",
               {1, 3 * n, 3 * n, 8},
               split,
               {3, 3, 8, 8},
               {{}, {}, {}, {}},
               {.low = {1, 1}, .high = {1, 1}},
               split,
               MeshShape{3, 3},
               {}};
  };
  const Plan small = plan_of(of(16), 4), large = plan_of(of(1024), 4);
  CHECK(small.count(Collective::exchange) == 2);
  CHECK(small.messages() == 4);
  CHECK(small.payload_bytes() == 8 * 4 * (18 * 18 - 16 * 16));
  CHECK(!overlaps(small));
  CHECK(large.count(Collective::exchange) == 1);
  CHECK(large.messages() == 8);
  CHECK(overlaps(large));
  // Two strips of three rows, of which two are its own, and two of three columns.
  CHECK(large.payload_bytes() == 8 * 4 * 2 * (3 * 1026 - 2 * 1024 + 1024));
}

TEST_CASE("axes that split one dimension together take their turn together") {
  const Sharding split{{}, {0, 2}, {1}, {}};
  const Row row{"2-D, three axes",
                "bhwi,hwio->bhwo",
                {1, 32, 16, 8},
                split,
                {3, 3, 8, 8},
                {{}, {}, {}, {}},
                {.low = {1, 1}, .high = {1, 1}},
                split,
                MeshShape{2, 2, 2},
                {}};
  const Plan plan = plan_of(row, 3);  // the second of four blocks of rows, the last of columns
  REQUIRE(plan.count(Collective::exchange) == 2);
  CHECK(plan.steps[0].group == (AxisSet{0} | AxisSet{2}));
  CHECK(plan.steps[1].group == AxisSet{1});
  CHECK(plan.messages() == 3);
  CHECK(plan.own_payload_bytes() == 8 * 4 * (2 * 8 + 10));
  all_fit([&](int p) { return plan_of(row, p); });
}

TEST_CASE("corners are sent directly where a process would pass on what it does not need") {
  const PlanOptions dear = message_price(1'000'000'000);
  const auto plan = [&](Index low_h, Index low_w) {
    // Windows that begin one element late: a block's first element is its neighbour's only.
    const WindowSettings s{.size = {3, 3}, .low = {low_h, low_w}, .high = {2 - low_h, 2 - low_w}};
    const TensorDesc x{DType::f32, {24, 24}, {{0}, {1}}};
    return ops::ReduceWindow{
        .reduction = Reduction::sum, .windows = detail::windows_of(s, 2), .out = x.sharding}
        .plan({x}, {MeshShape{3, 3}, 4, dear});
  };
  CHECK(plan(1, 1).count(Collective::exchange) == 2);
  CHECK(plan(-1, 1).count(Collective::exchange) == 2);
  CHECK(plan(-1, 1).steps[0].group == AxisSet{0});
  CHECK(plan(1, -1).count(Collective::exchange) == 2);
  CHECK(plan(1, -1).steps[0].group == AxisSet{1});  // such a dimension comes first
  CHECK(plan(-1, -1).count(Collective::exchange) == 1);
}

TEST_CASE("windows and select-and-scatter take corners dimension by dimension too") {
  const WindowList windows =
      detail::windows_of({.size = {1, 3, 5}, .low = {0, 1, 2}, .high = {0, 1, 2}}, 3);
  const TensorDesc x{DType::f64, {4, 24, 30}, {{}, {0}, {1}}};
  const MeshShape mesh{3, 3};
  for (const std::int64_t price : {0, 1'000'000}) {
    const PlanOptions options = message_price(price);
    const auto reduce = [&](int p) {
      return ops::ReduceWindow{.reduction = Reduction::max, .windows = windows, .out = x.sharding}
          .plan({x}, {mesh, p, options});
    };
    const auto select = [&](int p) {
      return ops::SelectAndScatter{true, windows, x.sharding, false}.plan({x, x},
                                                                          {mesh, p, options});
    };
    CHECK(reduce(4).count(Collective::exchange) == (price > 0 ? 2 : 1));
    CHECK(reduce(4).messages() == (price > 0 ? 4 : 8));
    CHECK(reduce(4).payload_bytes() == 4 * 8 * (10 * 14 - 8 * 10));
    all_fit(reduce);
    // The windows that touch a block, and what they read, twice as far.
    CHECK(select(4).count(Collective::exchange) == (price > 0 ? 4 : 2));
    CHECK(select(4).messages() == (price > 0 ? 8 : 16));
    CHECK(select(4).payload_bytes() == 4 * 8 * (10 * 14 + 12 * 18 - 2 * 8 * 10));
    all_fit(select);
  }
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
      CHECK(plan.own_payload_bytes() == neighbours * 4 * 8 * 32 * 4);
      CHECK(plan.messages() == neighbours);
      CHECK(plan.flops() == 2 * 4 * 16 * 16 * 32 * 8 * 9);
    }
}

TEST_CASE(
    "operations are the products that kernels make, which skip a dilated base's empty positions") {
  Random random(10);
  const Terms terms = parse("bxi,xio->bxo");
  for (int i = 0; i < 400 / share; ++i) {
    const TensorDesc x{DType::f32, {3, 4 + random.below(20), 4}, some_sharding(random, 3, 2)};
    const TensorDesc k{DType::f32, {1 + random.below(5), 4, 5}, some_sharding(random, 3, 2)};
    Convolution c;
    c.stride = {1 + random.below(3)};
    c.base_dilation = {1 + random.below(4)};
    c.window_dilation = {1 + random.below(3)};
    c.low = {random.below(5) - 1};
    c.high = {4};
    c.reversed = {random.below(2)};
    if (!detail::check_convolution(c, terms, x.extents, k.extents).ok()) continue;
    const detail::ConvolveWindows shape = detail::shape_of(c, detail::parts_of(terms), k.extents);
    const Window& w = shape.windows[0];
    const MeshShape mesh{1 + random.below(4), 1 + random.below(3)};
    const Plan plan =
        detail::plan_convolve(terms, shape, x, k, some_sharding(random, 3, 2), mesh, 0);
    const auto made_of = [](const Plan& there) {
      Index flops = 0;
      for (const Step& step : there.steps)
        if (step.kind == StepKind::convolve) flops += step.flops;
      return flops;
    };
    const auto counted = [&](int process) {
      const Plan there = on_process(plan, process);
      const Coordinates at = mesh.coordinates(process);
      Index flops = 0;
      for (const Step& step : there.steps) {
        if (step.kind != StepKind::convolve) continue;
        const Slot& kernel = there.slots[step.in[1]];
        const Slot& made = there.slots[step.out];
        const Box taps = block(k.extents, kernel.desc.sharding, mesh, at);
        const Box results = block(made.desc.extents, made.desc.sharding, mesh, at);
        Index products = 0;
        for (Index o = results[1].lo; o < results[1].hi; ++o)
          for (Index tap = 0; tap < w.size; ++tap) {
            const Index element = w.reversed ? w.size - 1 - tap : tap;
            const bool mine = kernel.region >= 0 || (element >= taps[0].lo && element < taps[0].hi);
            if (mine && (o * w.stride - w.low + tap * w.window_dilation) % w.base_dilation == 0)
              ++products;
          }
        flops += 2 * products * results[0].size() * results[2].size() * taps[1].size();
      }
      CHECK_MESSAGE(made_of(there) == flops, describe(plan));
      return flops;
    };
    Index sum = 0, of_classes = 0;
    for (int process = 0; process < mesh.processes(); ++process) sum += counted(process);
    detail::ProcessClasses classes(mesh);
    classes.add(plan);
    classes.visit([&](int process, const Coordinates&, Index alike) {
      of_classes += alike * counted(process);
    });
    CHECK_MESSAGE(of_classes == sum, describe(plan));
  }
  // A strided convolution makes each product once, and so does the gradient of its input.
  const TensorDesc x{DType::f32, {2, 32, 8}, {{}, {}, {}}}, k{DType::f32, {4, 8, 16}, {{}, {}, {}}};
  const Convolution halves{.stride = {2}, .low = {1}, .high = {1}};
  const auto shape = detail::shape_of(halves, detail::parts_of(terms), k.extents);
  const TensorDesc y{DType::f32, {2, 16, 16}, {{}, {}, {}}};
  const auto back = detail::input_gradient(terms, shape, x.extents);
  const Plan forward = detail::plan_convolve(terms, shape, x, k, y.sharding, MeshShape{1}, 0);
  const Plan backward =
      detail::plan_convolve(back.terms, back.shape, y, k, x.sharding, MeshShape{1}, 0);
  CHECK(forward.flops() == 2 * (2 * 16 * 4) * 8 * 16);
  CHECK(backward.flops() == forward.flops());
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
    detail::ConvolveWindows shape{{w}, 2};
    const Extents y = detail::convolved_extents(shape, detail::parts_of(terms), x, k);
    if (y[1] == 0) continue;
    const detail::ConvolveGradient by_x = detail::input_gradient(terms, shape, x),
                                   by_k = detail::kernel_gradient(terms, shape, x, k);
    CHECK(detail::convolved_extents(by_x.shape, detail::parts_of(by_x.terms), y, k) == x);
    CHECK(detail::convolved_extents(by_k.shape, detail::parts_of(by_k.terms), x, y) == k);
  }
}
