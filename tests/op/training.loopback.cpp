// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <doctest/doctest.h>

#include <mutex>
#include <utility>

#include "op/training_case.hpp"
#include "support/nudge.hpp"

using namespace training;

namespace {

/// Calls f(mesh) on every process of a data x model mesh and returns the largest result.
template <class F> double worst_on(std::pair<int, int> shape, F f) {
  double worst = 0;
  std::mutex mutex;
  run_loopback(shape.first * shape.second, [&](std::shared_ptr<Transport> world) {
    const double own = f(make_mesh<Grid>(world, shape.first, shape.second));
    const std::lock_guard lock(mutex);
    if (!(own <= worst)) worst = own;
  });
  return worst;
}

/// Returns how far the gradient is from the loss's differences, over some places of every weight.
double gradient_error(const ProcessMesh<Grid>& mesh) {
  const Batch examples = batch(mesh, 0);
  Weights<double> weights = initial_weights<double>(mesh, training::sizes, 7);
  const auto loss_now = [&] {
    const auto pass = forward(weights, examples.context);
    return value(loss(pass, target_rows(pass, examples.next)));
  };
  const auto pass = forward(weights, examples.context);
  const auto gradients = backward(weights, pass, target_rows(pass, examples.next));
  double worst = 0;
  for_each_tensor(
      [&]<class X>(X& weight, const X& gradient) {
        const X kept = weight;
        const auto by_hand = to_host(gradient).values;
        for (Index place = 0; place < kept.size(); place += 1 + kept.size() / 3) {
          const double step = 1e-5;
          weight = kept + from_function<X>(mesh, kept.extents(), support::Nudge{place, step});
          const double above = loss_now();
          weight = kept + from_function<X>(mesh, kept.extents(), support::Nudge{place, -step});
          const double below = loss_now();
          const double error =
              std::abs((above - below) / (2 * step) - by_hand[static_cast<std::size_t>(place)]);
          if (!(error <= worst)) worst = error;
        }
        weight = kept;
      },
      weights, gradients);
  return worst;
}

}  // namespace

TEST_CASE("the hand-written gradient is the slope of the loss") {
  CHECK(worst_on({1, 1}, gradient_error) < 1e-8);
  CHECK(worst_on({2, 2}, gradient_error) < 1e-8);
}

TEST_CASE("20 steps in double lead to the same loss and weights on every mesh") {
  const auto alone = numbers_alone(20);
  CHECK(alone[19] < alone[0]);
  for (const auto& shape : {std::pair{1, 1}, {2, 2}, {4, 1}, {1, 4}, {3, 2}}) {
    CAPTURE(shape.first);
    CAPTURE(shape.second);
    const auto difference = [&](const auto& mesh) {
      return largest_difference(numbers_after(mesh, 20), alone);
    };
    CHECK(worst_on(shape, difference) < 1e-10);
    const auto compiled = [&](const auto& mesh) {
      return largest_difference(numbers_after(mesh, 20, true), alone);
    };
    CHECK(worst_on(shape, compiled) < 1e-10);
  }
}

TEST_CASE(
    "a compiled step sends at most three quarters of what the step alone does, and holds less") {
  const auto mesh = dry_mesh<Grid>(2, 2);
  const Sizes n{
      .vocabulary = 87, .context = 12, .embed = 128, .hidden = 512, .layers = 2, .batch = 512};
  Weights<float> weights = initial_weights<float>(mesh, n, 7);
  Adam<float> adam(weights);
  auto step = compile([&](const auto& context, const auto& next) {
    return train_step(weights, adam, context, next, 3e-3);
  });
  const auto context = zeros<Tensor<Id, data, _>>(mesh, n.batch, n.context);
  const auto next = zeros<Tensor<Id, data>>(mesh, n.batch);
  mesh.arena().reset_peak();
  (void)train_step(weights, adam, context, next, 3e-3);
  const Index peak = mesh.arena().peak();
  mesh.arena().reset_peak();
  (void)step(context, next);
  CHECK(mesh.arena().peak() < peak);
  CHECK(4 * step.program().payload_bytes() < 3 * step.listed().payload_bytes());
  CHECK(step.listed().payload_bytes() ==
        plan_step<float>(n, mesh.sizes(), mesh.process()).payload_bytes());
}

TEST_CASE("training communicates what its plan says, on every process") {
  for (const auto& shape : {std::pair{2, 2}, {3, 2}, {1, 4}, {8, 1}}) {
    CAPTURE(shape.first);
    CAPTURE(shape.second);
    const auto differs = [&](const ProcessMesh<Grid>& mesh) {
      Weights<double> weights = initial_weights<double>(mesh, training::sizes, 7);
      Adam<double> adam(weights);
      const Batch examples = batch(mesh, 0);
      mesh.ledger().reset();
      for (int step = 0; step < 3; ++step)
        train_step(weights, adam, examples.context, examples.next, 3e-3);
      const Program planned = plan_step<double>(training::sizes, mesh.sizes(), mesh.process());
      return as_planned(planned, mesh.ledger(), 3) ? 0.0 : 1.0;
    };
    CHECK(worst_on(shape, differs) == 0);
  }
}
