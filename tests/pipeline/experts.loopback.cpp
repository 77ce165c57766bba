// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A Transformer with mixtures of experts in stages, within which one axis splits the batch alone
// and another the experts too; and an optimizer whose updates are shared along the data axis of a
// stage.
#include <doctest/doctest.h>

#include <array>

#include "../../examples/train_transformer/model.hpp"
#include "pipeline/training_case.hpp"
#include "support/enumerate.hpp"

using namespace support;
namespace trained = train_transformer;

namespace {

struct stage : Axis<> {};
using trained::data, trained::model, trained::Grid;
using Staged = Mesh<stage, data, model>;
/// Groups of tokens over both axes, experts over the minor one.
using U = Under<
    double, Grid,
    LayerRules<AxisRule<logical::batch, Axes<data, model>>, AxisRule<trained::experts, model>>>;

constexpr int layers = 4;
trained::Sizes sizes_of() {
  return {.vocabulary = 11,
          .context = 4,
          .embed = 6,
          .heads = 3,
          .hidden = 5,
          .layers = layers,
          .experts = 3,
          .dropout = 0.1};
}
int stage_of_block(int block, int stages) { return block * stages / layers; }

/// What is trained. In stages the updates are shared as a policy says; on one part nobody shares.
template <class Policy> struct Task {
  using Model = trained::Model<U>;
  struct Batch {
    trained::Ids<U> ids, next;
    Index first_row;
    static constexpr auto fields = Fields<&Batch::ids, &Batch::next>{};
  };
  struct Numbers {
    Index salt;
    KOKKOS_FUNCTION std::int32_t operator()(const GlobalIndex& i) const {
      return static_cast<std::int32_t>((i.linear() * 7 + salt + i.linear() / 4) % 11);
    }
  };

  static Model make(Parameters<Grid>& parameters) { return Model::like(parameters, sizes_of()); }
  static Batch batch_on(const ProcessMesh<Grid>& first, const ProcessMesh<Grid>& last, int m) {
    const Extents extents{4 + m % 2, 4};
    return {from_function<trained::Ids<U>>(first, extents, Numbers{m}),
            from_function<trained::Ids<U>>(last, extents, Numbers{m + 3}), 5 * m};
  }
  static auto loss(const Model& w, const Batch& b) {
    return std::get<0>(trained::losses(w, b.ids, b.next, sizes_of(), {2, true, b.first_row}));
  }
  static StageMap map(int stages) {
    StageMap m{{"embedding", 0}, {"head", stages - 1}, {"loss", stages - 1}};
    for (int l = 0; l < layers; ++l) m.add("block " + std::to_string(l), stage_of_block(l, stages));
    return m;
  }
  static int stage_of(std::string_view path, int stages) {
    if (path.starts_with("blocks."))
      return stage_of_block(path[std::string_view("blocks.").size()] - '0', stages);
    return path.starts_with("norm") || path.starts_with("head") ? stages - 1 : 0;
  }
  template <class By> struct Update {
    Optimizer<AdamW, By> optimizer;
    void operator()(Model& w, const Model& gradient) { optimizer.step(w, gradient); }
  };
  static auto update(const Model& w) {
    return Update<ReplicatedUpdate>{{AdamW{.rate = 0.01}, w, {.clip = 0.5}}};
  }
  static auto update_in_stages(const Model& w) {
    return Update<Policy>{{AdamW{.rate = 0.01}, w, {.clip = 0.5}}};
  }
};
template <> struct Task<Descent> : Task<ReplicatedUpdate> {
  static Descent update(const Model&) { return {}; }
  static Descent update_in_stages(const Model&) { return {}; }
};

template <class Policy> void trains(const PipelineSchedule& schedule, std::array<int, 2> part) {
  const int processes = schedule.parts() * part[0] * part[1];
  CHECK(quiet(texts_of(processes, [&](const std::shared_ptr<Transport>& transport) {
    return trained_alike<stage>(make_mesh<Staged>(transport, schedule.parts(), part[0], part[1]),
                                schedule, Task<Policy>{}, 3);
  })));
}

}  // namespace

TEST_CASE("pipeline: mixtures of experts in stages have the losses and gradients of one stage") {
  for (const auto& part : {std::array{1, 1}, {2, 1}, {1, 2}, {2, 2}, {1, 3}}) {
    trains<Descent>(interleaved(2, 2, 3), part);
    for (const PipelineSchedule& schedule :
         {gpipe(1, 2), gpipe(2, 3), one_f_one_b(4, 3), zero_bubble(2, 2), zero_bubble(3, 3),
          zero_bubble_v(1, 2)})
      if (part == std::array{1, 2} || (all_cases() && schedule.parts() * part[0] * part[1] <= 8))
        trains<Descent>(schedule, part);
  }
}

TEST_CASE("pipeline: updates that are shared within a stage give the same weights") {
  trains<ShardedUpdate<data>>(one_f_one_b(2, 3), {2, 1});
  trains<ShardedUpdate<data, model>>(zero_bubble(2, 2), {2, 2});
  trains<FlatUpdate<ShardedUpdate<data>>>(gpipe(2, 2), {3, 1});
  trains<FlatUpdate<ShardedUpdate<data, model>>>(interleaved(2, 2, 3), {2, 2});
  trains<CheapestUpdate<data>>(one_f_one_b(4, 3), {2, 1});
}
