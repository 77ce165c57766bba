// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GShard, section 5.1, on paper: which layers of its models run again where a process has 16 GiB,
// and what that costs.
#include <doctest/doctest.h>

#include "nn/gshard_models.hpp"

using namespace gshard;

namespace {
constexpr Index gib = Index{1} << 30;

/// A step of 2,048 processes in float, each with 2,048 tokens of source and of target: with
/// weights, Adafactor's state and all else that a step holds.
Program step(Index layers, const std::vector<bool>& again) {
  using U = On<float>;
  const auto mesh = dry_mesh<Grid>(2048, 1);
  Recording recording(mesh);
  Parameters<Grid> make(mesh, 1);
  auto model = Translator<U>::like(make, {.layers = layers, .experts = 2048});
  Optimizer<Adafactor> optimizer(Adafactor{}, model);
  const auto text = zeros<Texts<U>>(mesh, {2048 * 16, 128});
  const auto run = optimizer.value_and_grad([&](const Translator<U>& w) {
    return mean(cross_entropy(translate(w, text, text, again), text));
  })(model);
  optimizer.step(model, run.gradient);
  return recording.take();
}
RecomputeChoice chosen(int layers, Index limit) {
  const RecomputeChoice choice = choose_recompute(
      layers, limit, [&](const std::vector<bool>& again) { return step(layers, again); });
  MESSAGE(layers << " layers: " << explain(choice));
  return choice;
}
}  // namespace

TEST_CASE("GShard's models: how much runs again where a process has 16 GiB") {
  // The paper: nothing of 12 and 24 layers, 28 % of the time at 36 and 34 % at 60.
  CHECK(chosen(12, 16 * gib).count() == 0);
  CHECK(chosen(24, 16 * gib).count() == 0);
  const RecomputeChoice deep = chosen(36, 16 * gib);  // 16.2 GiB if nothing runs again
  CHECK(deep.within());
  CHECK(deep.count() > 0);
  // Weights and their gradients alone are 15 GiB: with all layers again it is 2 % too much. A
  // forward pass is a third of a step: once more of all is a quarter of the time, and not 34 %.
  const RecomputeChoice deepest = chosen(60, 16 * gib);
  CHECK(deepest.count() == 60);
  CHECK(deepest.peak < 16 * gib + gib / 2);
  CHECK(deepest.share_of_time() == doctest::Approx(0.25).epsilon(0.04));
}
