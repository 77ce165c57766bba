// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A U-Net in stages: what the way down has made goes by skip connections to stages far behind, or
// to one on its own part. Images are split in space and by batch within a stage.
#include <doctest/doctest.h>

#include <array>

#include <tessera/nn.hpp>
#include <tessera/op/product/convolve.hpp>
#include <tessera/tessera.hpp>

#include "pipeline/training_case.hpp"

using namespace support;

namespace {

struct stage : Axis<> {};
struct batch : Axis<> {};
struct rows : Axis<> {};
using Staged = Mesh<stage, batch, rows>;
using Grid = Without<Staged, stage>;
using Images = ShardedTensor<double, Grid, P<batch, rows, _, _>>;  // batch, height, width, channels
using Kernel = ShardedTensor<double, Grid, P<_, _, _, _>>;
constexpr Equation equation{"bhwi,hwio->bhwo"};

/// Down two levels, up again, and out; the layers have these names.
constexpr std::array<const char*, 6> names{"left 0",  "left 1",  "bottom",
                                           "right 1", "right 0", "out"};

/// A kernel of 3x3, and, on the way up, one of 2x2 that makes images twice as large before it.
struct Level {
  Kernel kernel;
  std::optional<Kernel> up;
  static constexpr auto fields = Fields<&Level::kernel, &Level::up>{};
};

struct Task {
  struct Model {
    std::vector<Level> levels;
    static constexpr auto fields = Fields<&Model::levels>{};
  };
  struct Batch {
    Images x, target;
    static constexpr auto fields = Fields<&Batch::x, &Batch::target>{};
  };

  static Model make(Parameters<Grid>& parameters) {
    constexpr std::array<std::array<Index, 2>, 6> channels{
        {{1, 2}, {2, 3}, {3, 4}, {3, 3}, {2, 2}, {2, 1}}};
    Model m;
    for (std::size_t i = 0; i < channels.size(); ++i) {
      const auto [in, out] = channels[i];
      Level level{parameters.tensor<Kernel>({3, 3, in, out}, Initializer::fan_in(9 * in)), {}};
      if (i == 3 || i == 4)
        level.up = parameters.tensor<Kernel>({2, 2, in + 1, in}, Initializer::fan_in(in + 1));
      m.levels.push_back(std::move(level));
    }
    return m;
  }
  static Batch batch_on(const ProcessMesh<Grid>& first, const ProcessMesh<Grid>& last, int m) {
    const Extents extents{2 + m % 2, 8, 12, 1};
    return {random_normal<Images>(first, extents, static_cast<std::uint64_t>(20 + m)),
            random_normal<Images>(last, extents, static_cast<std::uint64_t>(40 + m))};
  }
  static auto loss(const Model& w, const Batch& given) {
    const auto convolved = [](const Images& x, const Kernel& k) {
      return Images(convolve<equation, P<batch, rows, _, _>>(
          x, k, Convolution{.low = {1, 1}, .high = {1, 1}}));
    };
    const auto twice = [](const Images& x, const Kernel& k) {
      return Images(convolve<equation, P<batch, rows, _, _>>(
          x, k, Convolution{.low = {1, 1}, .high = {1, 1}, .base_dilation = {2, 2}}));
    };
    const auto down = [&](const Images& x, const Level& level) {
      return Images(tanh(convolved(x, level.kernel)));
    };
    const auto halved = [](const Images& x) {
      return Images(
          reduce_window<Mean>(x, WindowSettings{.size = {1, 2, 2, 1}, .stride = {1, 2, 2, 1}}));
    };
    const auto below = [&](const Images& x, const Level& level) { return down(halved(x), level); };
    const auto above = [&](const Images& x, const Images& beside, const Level& level) {
      return down(twice(x, *level.up) + beside, level);
    };
    const auto left_0 = layer(names[0], down)(given.x, w.levels[0]);
    const auto left_1 = layer(names[1], below)(left_0, w.levels[1]);
    const auto bottom = layer(names[2], below)(left_1, w.levels[2]);
    const auto right_1 = layer(names[3], above)(bottom, left_1, w.levels[3]);
    const auto right_0 = layer(names[4], above)(right_1, left_0, w.levels[4]);
    return layer(names[5], [&](const Images& x, const Level& level, const Images& target) {
      return mean<"bhwo->">(square(convolved(x, level.kernel) - target));
    })(right_0, w.levels[5], given.target);
  }
  /// The stage of each layer.
  static std::vector<int> stages_of(int stages) {
    switch (stages) {
      case 1:
        return {0, 0, 0, 0, 0, 0};
      case 2:
        return {0, 0, 1, 1, 1, 1};
      case 3:
        return {0, 1, 1, 1, 2, 2};
      default:
        return {0, 1, 2, 2, 3, 3};
    }
  }
  static StageMap map(int stages) {
    StageMap m;
    for (std::size_t i = 0; i < names.size(); ++i) m.add(names[i], stages_of(stages)[i]);
    return m;
  }
  static int stage_of(std::string_view path, int stages) {
    return stages_of(
        stages)[static_cast<std::size_t>(path[std::string_view("levels.").size()] - '0')];
  }
  static Descent update(const Model&) { return {}; }
  static Descent update_in_stages(const Model&) { return {}; }
};

}  // namespace

TEST_CASE("pipeline: a U-Net in stages has the losses and gradients of one stage") {
  // Of three stages on two parts, the way down and up lie on the first, and the bottom on the
  // other.
  const auto folded = search_schedule(PipelineModel::chain(3, {{2}, {1}, {1}}), {0, 1, 0}, 3);
  const std::vector<PipelineSchedule> schedules{
      gpipe(1, 3),         gpipe(2, 3),          one_f_one_b(3, 4),
      zero_bubble(4, 3),   interleaved(2, 2, 4), interleaved(1, 4, 3),
      zero_bubble_v(2, 3), one_f_one_b(2, 1),    folded.schedule};
  for (const PipelineSchedule& schedule : schedules)
    for (const auto& [b, r] : {std::array{1, 1}, {2, 1}, {1, 2}, {2, 2}}) {
      const int over_batch = b, over_rows = r, processes = schedule.parts() * b * r;
      if (processes > 8) continue;
      CHECK(quiet(texts_of(processes, [&](const std::shared_ptr<Transport>& transport) {
        return trained_alike<stage>(
            make_mesh<Staged>(transport, schedule.parts(), over_batch, over_rows), schedule, Task{},
            3);
      })));
    }
}
