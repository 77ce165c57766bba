// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The Transformer of GSPMD's blog on 16 devices, as 4x4: X splits the batch of the embedding and
// the softmax layers, and is the pipeline's stages of encoder and decoder; Y splits the vocabulary,
// the batch, and the experts. One program has all of it.
#include <doctest/doctest.h>

#include <mutex>

#include <tessera/op/compile.hpp>
#include <tessera/run/recording.hpp>

#include "op/texts_of.hpp"
#include "pipeline/nested_model.hpp"

using namespace nested_test;
using namespace nested_test::blog;
using support::quiet, support::texts_of;

TEST_CASE("pipeline: the blog's nested patterns: values and gradients are those of one process") {
  for (const Shape& n : {Shape{}, Shape{.layer = {.stages = 2, .heads = 1, .experts = 3},
                                  .vocabulary = 11,
                                  .micro_batches = 2,
                                  .rows = 5,
                                  .tokens = 2}}) {
    const std::vector<double> wanted = of_one_process(n);
    for (const auto& [a, b] :
         std::vector<std::pair<int, int>>{{1, 1}, {2, 2}, {2, 1}, {1, 2}, {4, 2}, {2, 3}, {3, 1}}) {
      const int over_x = a, over_y = b;
      CHECK(quiet(texts_of(over_x * over_y, [&](const std::shared_ptr<Transport>& world) {
        const auto mesh = make_mesh<Grid>(world, over_x, over_y);
        const double by = apart(numbers_on(mesh, n, by_turns), wanted);
        return by <= 1e-12 ? std::string()
                           : "on " + std::to_string(over_x) + "x" + std::to_string(over_y) +
                                 " they differ by " + std::to_string(by);
      })));
    }
  }
}

TEST_CASE("pipeline: the blog's nested patterns on 4x4: the plan, and its payload by layer") {
  const Shape n{
      .layer = {.stages = 4, .embed = 16, .heads = 4, .each = 4, .hidden = 32, .experts = 8},
      .vocabulary = 1024,
      .micro_batches = 8,
      .rows = 8,
      .tokens = 4};
  const auto mesh = dry_mesh<Grid>(4, 4);
  const Ids source = ids_on(mesh, n, 3), target = ids_on(mesh, n, 4), next = ids_on(mesh, n, 9);
  const Model model = Model::like(mesh, n);
  const auto forward = [&](const Model& m) { return loss_of(m, source, target, next, by_turns); };
  const auto recorded = [&](const auto& f) {
    Recording recording(mesh);
    (void)f(model);
    return recording.take();
  };
  const auto printed = [](const Program& program) {
    std::string text;
    for (const LayerTotal& layer : by_layer(program))
      text += "  " + (layer.depth == 0 ? "in all" : layer.path) + ": " +
              std::to_string(layer.operators) + " operators, " + std::to_string(layer.payload) +
              " bytes\n";
    for (const CollectiveTotal& total : by_axes(program))
      if (total.payload > 0)
        text += "  " + std::string(name_of(total.collective)) + " over " +
                to_string(total.axes, program.names()) + ": " + std::to_string(total.payload) +
                " bytes in " + std::to_string(total.messages) + " messages\n";
    return text;
  };
  const Program program = recorded(forward);
  MESSAGE("16 devices as 4x4, forward\n" << printed(program));
  MESSAGE("16 devices as 4x4, a step\n" << printed(recorded(value_and_grad(forward))));

  // In bytes that process 0 sends, or receives. A turn moves a state of one micro-batch:
  const Index p = 4, word = 8, turns = n.micro_batches + n.layer.stages - 1;
  const Index state = n.rows / p * n.tokens * n.layer.embed * word, rows = n.micro_batches * state;
  const Index capacity = expert_capacity(n.tokens, n.layer.experts, 1.25);
  const Index buffers = n.layer.experts * n.rows / p * capacity * n.layer.embed * word;
  const auto but_own = [](Index all) { return all - all / 4; };
  // Parts of the look-ups in a table whose vocabulary Y splits are summed over Y. Rows that X has
  // split are then split by Y: the four replicas of a block share its sending to three others.
  const Index embedding = 2 * (2 * but_own(rows) + but_own(rows));
  // The state moves on along X; tokens go to the experts along Y, and come back; what the last
  // stage has made is sent to all others along X.
  const auto stages = [&](Index of_state) {
    return turns * (of_state + 2 * but_own(buffers)) + n.micro_batches * of_state;
  };
  const Index softmax = but_own(rows) +                         // rows by X again
                        3 * 2 * but_own(rows / n.layer.embed);  // sums over the vocabulary
  const auto payload = [&](const std::string& path) -> Index {
    for (const LayerTotal& layer : by_layer(program))
      if (layer.path == path) return layer.payload;
    return -1;
  };
  CHECK(payload("embedding") == embedding);
  CHECK(payload("encoder") == stages(state));
  CHECK(payload("decoder") == stages(2 * state));
  CHECK(payload("softmax") == softmax);
}
