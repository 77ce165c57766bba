// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// GShard, section 5.1, on paper: which layers of its models run again where a process has 16 GiB,
// and what that costs.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include <tessera/program/peak.hpp>
#include <tessera/run/choose_of.hpp>

#include "nn/gshard_models.hpp"

using namespace gshard;

namespace {
constexpr Index gib = Index{1} << 30;

/// A step of 2,048 processes in float, each with 2,048 tokens of source and of target: with
/// weights, Adafactor's state and all else that a step holds. Of all layers it is open whether they
/// run again.
Program step(Index layers) {
  using U = On<float>;
  const auto mesh = dry_mesh<Grid>(2048, 1);
  Recording recording(mesh);
  Parameters<Grid> make(mesh, 1);
  auto model = Translator<U>::like(make, {.layers = layers, .experts = 2048});
  Optimizer<Adafactor> optimizer(Adafactor{}, model);
  const auto text = zeros<Texts<U>>(mesh, {2048 * 16, 128});
  const std::vector<Recompute> again(static_cast<std::size_t>(layers), Open{});
  const auto run = optimizer.value_and_grad([&](const Translator<U>& w) {
    return mean(cross_entropy(translate(w, text, text, again), text));
  })(model);
  optimizer.step(model, run.gradient);
  return recording.take();
}
Choice chosen(int layers) {
  const ChooseOptions options{.memory_limit = 16 * gib, .keep_shardings = true};
  const Choice choice = choose([&] { return step(layers); }, dry_mesh<Grid>(2048, 1), options);
  MESSAGE(layers << " layers, of " << choice.recorded << " Programs: " << explain(choice));
  return choice;
}
auto count(const Choice& choice) {
  return std::count_if(choice.layers.begin(), choice.layers.end(),
                       [](const ChosenLayer& layer) { return layer.again; });
}
}  // namespace

TEST_CASE("GShard's models: how much runs again where a process has 16 GiB") {
  // The paper: nothing of 12 and 24 layers, 28 % of the time at 36 and 34 % at 60.
  CHECK(count(chosen(12)) == 0);
  CHECK(count(chosen(24)) == 0);
  const Choice deep = chosen(36);  // 16.5 GiB if nothing runs again
  CHECK(deep.found);
  CHECK(peak_over_processes(deep.program) <= 16 * gib);
  CHECK(count(deep) == 2);
  CHECK(static_cast<double>(deep.cost - deep.before) < 0.02 * static_cast<double>(deep.cost));
  CHECK(deep.recorded < 50);  // there are four kinds of layers
  // Weights and their gradients alone are 15 GiB: with all layers again it is 2 % too much. A
  // forward pass is a third of a step: once more of all is a quarter of the time, and not 34 %.
  const Choice deepest = chosen(60);
  CHECK_FALSE(deepest.found);
  CHECK(count(deepest) == 60);
  CHECK(deepest.least_peak < 16 * gib + gib / 2);
  const auto more = static_cast<double>(deepest.cost - deepest.before);
  CHECK(more / static_cast<double>(deepest.cost) == doctest::Approx(0.25).epsilon(0.04));
}
