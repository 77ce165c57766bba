// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A Transformer of which each block is a stage, within which data and model axes split it: the
// losses of several steps, and the weights after them, are those of one part.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include <tessera/io/checkpoint.hpp>
#include <tessera/nn/on_stages.hpp>
#include <tessera/pipeline.hpp>

#include "nn/decoder_case.hpp"
#include "op/texts_of.hpp"

using namespace nn_test;

namespace {

struct stage : Axis<> {};
using Staged = Mesh<stage, data, model>;
static_assert(std::is_same_v<Without<Staged, stage>, Grid>);
using U = Under<double, Grid, TensorParallel<data, model>>;
using Model = Decoder<U>;

struct Text2 {
  TokenIds<U> ids, targets;
  static constexpr auto fields = Fields<&Text2::ids, &Text2::targets>{};
};
constexpr DecoderSizes small{
    .vocabulary = 11, .places = 5, .embed = 6, .heads = 3, .hidden = 7, .layers = 3};
constexpr int micro_batches = 3;

int stage_of(std::string_view path) {
  if (path.starts_with("blocks.1")) return 1;
  if (path.starts_with("blocks.2") || path.starts_with("norm") || path.starts_with("head"))
    return 2;
  return 0;
}
const StageMap layers{
    {"embedding", 0}, {"block 0", 0}, {"block 1", 1}, {"block 2", 2}, {"head", 2}};

template <class W>
Text2 text_on(const ProcessMesh<Grid>& ids, const ProcessMesh<Grid>& targets, int m, const W&) {
  const Extents extents{3 + m, 4};
  return {from_function<TokenIds<U>>(ids, extents, Ids{11 - m}),
          from_function<TokenIds<U>>(targets, extents, Ids{9 - m})};
}
auto loss_of_text(const Model& w, const Text2& text) {
  const DecoderOptions options{.dropout = {.rate = 0.1, .seed = 8, .step = 3},
                               .again = {false, true, false}};
  return mean(cross_entropy(next_tokens(w, text.ids, options), text.targets));
}
/// One step of plain descent.
template <class G> void descend(Model& w, const G& gradient) {
  for_each_tensor([](auto& x, const auto& g) { x = x - 0.3 * g; }, w, gradient);
}

/// Whether all tensors of x that lie on this process's part have (or, `same` false, one of them has
/// not) the values of y's.
bool same_values(const Model& x, const Model& y, const ProcessMesh<Grid>& own, bool same) {
  bool all = true, any = false;
  for_each_tensor(
      [&](const auto& a, const auto& b) {
        if (a.core().mesh() != own.core()) return;
        any = true;
        const auto u = to_host(a), v = to_host(b);
        for (std::size_t i = 0; i < u.values.size(); ++i)
          all = all && std::abs(u.values[i] - v.values[i]) <= 1e-12;
      },
      x, y);
  return !any || all == same;
}

std::string decoder_case(const std::shared_ptr<Transport>& transport,
                         const PipelineSchedule& schedule, int data_size) {
  const auto mesh = make_mesh<Staged>(transport, schedule.parts(), data_size,
                                      transport->size() / schedule.parts() / data_size);
  const auto part = [&](int s) { return mesh.part<stage>(schedule.part(s)); };
  const auto own = mesh.part<stage>(mesh.coordinate<stage>());
  const auto make = [](auto& parameters) { return Model::like(parameters, small); };
  Model w = on_stages<stage>(mesh, 7, schedule, stage_of, make);
  Parameters<Grid> whole(own, 7);
  Model alone = make(whole);
  std::vector<Text2> texts, its;
  for (int m = 0; m < micro_batches; ++m) {
    texts.push_back(text_on(part(0), part(2), m, w));
    its.push_back(text_on(own, own, m, w));
  }
  auto step = pipelined<stage>(mesh, loss_of_text, layers, schedule);
  double first = 0, last = 0;
  for (int k = 0; k < 5; ++k) {
    const Index before = own.arena().in_use();
    own.arena().reset_peak();
    const auto [loss, gradient] = step(w, texts);
    const Index peak = own.arena().peak() - before;
    const PipelineRun planned = step.planned();
    const PipelinePart& here =
        planned.parts[static_cast<std::size_t>(mesh.template coordinate<stage>())];
    if (peak != here.peak_bytes)
      return "the peak is " + std::to_string(peak) + " bytes, and stated are " +
             std::to_string(here.peak_bytes);
    descend(w, gradient);
    std::vector<ValueAndGradient<decltype(loss_of_text(alone, its[0])), Model>> sum;
    for (const Text2& text : its) {
      const auto one = value_and_grad([&](const Model& v) { return loss_of_text(v, text); })(alone);
      if (sum.empty()) {
        sum.push_back(one);
        continue;
      }
      sum[0].value = sum[0].value + one.value;
      for_each_tensor([](auto& all, const auto& g) { all = all + g; }, sum[0].gradient,
                      one.gradient);
    }
    descend(alone, sum[0].gradient);
    last = value(sum[0].value);
    if (k == 0) first = last;
    if (loss.core().mesh() == own.core() &&
        !(std::abs(value(loss) - last) <= 1e-12 * std::abs(last)))
      return "step " + std::to_string(k) + ": the loss is " + std::to_string(value(loss)) +
             ", and " + std::to_string(last) + " of one part";
  }
  if (!(last < first)) return "nothing is learnt";
  return same_values(w, alone, own, true) ? "" : "a weight differs after five steps";
}

}  // namespace

TEST_CASE("pipeline: a decoder in three stages trains as one on a part does") {
  for (const auto& meshes :
       {std::array<int, 3>{1, 1, 1}, {3, 3, 1}, {6, 3, 2}, {6, 3, 1}, {8, 2, 2}}) {
    const int processes = meshes[0], parts = meshes[1], data_size = meshes[2];
    std::vector<PipelineSchedule> all;
    if (parts == 3)
      all = {gpipe(3, micro_batches), one_f_one_b(3, micro_batches), zero_bubble(3, micro_batches)};
    else
      all = {search_schedule(PipelineModel::chain(3, {{2}, {2}, {1}}),
                             parts == 1 ? std::vector<int>{0, 0, 0} : std::vector<int>{0, 1, 0},
                             micro_batches)
                 .schedule};
    for (const PipelineSchedule& schedule : all)
      CHECK(support::quiet(
          support::texts_of(processes, [&](const std::shared_ptr<Transport>& transport) {
            return decoder_case(transport, schedule, data_size);
          })));
  }
}

TEST_CASE(
    "pipeline: an optimizer keeps its state within stages, and a checkpoint is read by any number "
    "of them") {
  const std::string path = "pipeline_decoder.safetensors";
  const auto train = [&](const std::shared_ptr<Transport>& transport,
                         const PipelineSchedule& schedule, bool fresh) -> std::string {
    const auto mesh =
        make_mesh<Staged>(transport, schedule.parts(), 1, transport->size() / schedule.parts());
    const auto own = mesh.part<stage>(mesh.coordinate<stage>());
    const auto make = [](auto& parameters) { return Model::like(parameters, small); };
    Model w = on_stages<stage>(mesh, 7, schedule, stage_of, make);
    Parameters<Grid> whole(own, 7);
    Model alone = make(whole);
    std::vector<Text2> texts, its;
    for (int m = 0; m < micro_batches; ++m) {
      texts.push_back(
          text_on(mesh.part<stage>(schedule.part(0)), mesh.part<stage>(schedule.part(2)), m, w));
      its.push_back(text_on(own, own, m, w));
    }
    auto step = pipelined<stage>(mesh, loss_of_text, layers, schedule);
    const OptimizerOptions clipped{.clip = 0.5};
    Optimizer optimizer(AdamW{.rate = 0.01}, w, clipped),
        other(AdamW{.rate = 0.01}, alone, clipped);
    for (int k = 0; k < 6; ++k) {
      if (!fresh && k == 0) {  // the first three steps are in the file
        Model read = w;
        (void)read_checkpoint(mesh, path, read);
        if (!same_values(read, w, own, false))
          return "the checkpoint has the weights of the beginning";
      }
      optimizer.step(w, step(w, texts).gradient);
      std::vector<Model> sum;
      for (const Text2& text : its) {
        const auto one =
            value_and_grad([&](const Model& v) { return loss_of_text(v, text); })(alone);
        if (sum.empty())
          sum.push_back(one.gradient);
        else
          for_each_tensor([](auto& all, const auto& g) { all = all + g; }, sum[0], one.gradient);
      }
      other.step(alone, sum[0]);
      if (!same_values(w, alone, own, true))
        return "step " + std::to_string(k) + ": a weight differs";
      if (k == 2 && fresh) write_checkpoint(mesh, path, w);
      if (k == 2 && !fresh) {
        Model read = on_stages<stage>(mesh, 8, schedule, stage_of, make);
        (void)read_checkpoint(mesh, path, read);
        if (!same_values(read, alone, own, true)) return "what is read from the checkpoint differs";
      }
    }
    const double norm = optimizer.report().norm, alike = other.report().norm;
    if (!(std::abs(norm - alike) <= 1e-12 * alike)) return "the norm of all gradients differs";
    Model spoilt = w;  // as a gradient, in which stage 1 has a number that is none
    spoilt.blocks[1].feed_forward_norm.scale =
        spoilt.blocks[1].feed_forward_norm.scale * std::numeric_limits<double>::quiet_NaN();
    const auto before = w.table.weight;
    optimizer.step(w, spoilt);
    const StepReport report = optimizer.report();
    if (report.skipped.size() != 1 ||
        report.skipped[0].paths != std::vector<std::string>{"blocks.1.feed_forward_norm.scale"})
      return "a number that is none in one stage is not told of on all processes";
    if (w.table.weight.core().mesh() == own.core() && !(to_host(w.table.weight) == to_host(before)))
      return "a step is taken that should be skipped";
    return "";
  };
  const auto runs = [&](int processes, const PipelineSchedule& schedule, bool fresh) {
    return support::quiet(
        support::texts_of(processes, [&](const std::shared_ptr<Transport>& transport) {
          return train(transport, schedule, fresh);
        }));
  };
  CHECK(runs(6, one_f_one_b(3, micro_batches), true));
  CHECK(runs(3, zero_bubble(3, micro_batches), false));
  CHECK(runs(
      1,
      search_schedule(PipelineModel::chain(3, {{2}, {2}, {1}}), {0, 0, 0}, micro_batches).schedule,
      false));
  std::remove(path.c_str());
}
