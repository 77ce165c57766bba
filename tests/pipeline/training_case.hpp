// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Steps of training in stages beside the same steps on one part, which every process takes for
/// itself.
///
///     std::string wrong = support::trained_alike<stage>(mesh, schedule, task, 3);
///
/// A task says what is trained: Model and Batch; make(parameters); batch_on(first, last, m), the
/// m-th micro-batch with what is read first on one part and the rest on another; loss(model,
/// batch); map(stages) and stage_of(path, stages); and update_in_stages(model) and update(model),
/// for one part, which return functions of weights and gradients.
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/nn/on_stages.hpp>
#include <tessera/pipeline.hpp>

#include "op/texts_of.hpp"
#include "support/larger.hpp"

namespace support {
using namespace tessera;

/// w - 0.1 g, for each weight.
struct Descent {
  template <class Model> void operator()(Model& weights, const Model& gradient) const {
    for_each_tensor([](auto& w, const auto& g) { w = w - 0.1 * g; }, weights, gradient);
  }
};

/// The largest difference of the tensors on this process's part, by the largest element there;
/// infinite where one is no number.
template <class Tree> double apart_on(const MeshCore& own, const Tree& x, const Tree& y) {
  double most = 0, scale = 1e-300;
  for_each_tensor(
      [&](const auto& a, const auto& b) {
        if (a.core().mesh().get() != &own) return;
        const auto u = to_host(a), v = to_host(b);
        for (std::size_t i = 0; i < u.values.size(); ++i) {
          most = support::larger(most, std::abs(u.values[i] - v.values[i]));
          scale = std::max(scale, std::abs(static_cast<double>(v.values[i])));
        }
      },
      x, y);
  return most / scale;
}

/// Takes `steps` steps both ways; says which loss, gradient or weight differs by more than
/// `tolerance`, and whether nothing is learnt.
template <class Stage, class Grid, class Task>
std::string trained_alike(const ProcessMesh<Grid>& mesh, const PipelineSchedule& schedule,
                          const Task& task, int steps, double tolerance = 1e-12) {
  using Model = typename Task::Model;
  using Batch = typename Task::Batch;
  using Part = Without<Grid, Stage>;
  const int stages = schedule.stages();
  const auto part = [&](int s) { return mesh.template part<Stage>(schedule.part(s)); };
  const auto own = mesh.template part<Stage>(mesh.template coordinate<Stage>());
  const auto make = [&](auto& parameters) { return task.make(parameters); };
  Model w = on_stages<Stage>(
      mesh, 7, schedule, [&](std::string_view path) { return task.stage_of(path, stages); }, make);
  Parameters<Part> whole(own, 7);
  Model alone = make(whole);
  auto update = task.update_in_stages(w);
  auto update_alone = task.update(alone);
  auto step = pipelined<Stage>(
      mesh, [&](const Model& m, const Batch& b) { return task.loss(m, b); }, task.map(stages),
      schedule);
  double first = 0, last = 0;
  for (int k = 0; k < steps; ++k) {
    std::vector<Batch> batches;
    std::vector<Model> sum;
    last = 0;
    for (int m = 0; m < schedule.micro_batches; ++m) {
      batches.push_back(task.batch_on(part(0), part(stages - 1), m));
      const auto one = value_and_grad(
          [&](const Model& v) { return task.loss(v, task.batch_on(own, own, m)); })(alone);
      last += value(one.value);
      if (m == 0)
        sum.push_back(one.gradient);
      else
        for_each_tensor([](auto& all, const auto& g) { all = all + g; }, sum[0], one.gradient);
    }
    if (k == 0) first = last;
    const auto [loss, gradient] = step(w, batches);
    const std::string label =
        schedule.name + " on " + mesh.core()->to_string() + ", step " + std::to_string(k) + ": ";
    if (loss.core().mesh() == own.core() &&
        !(std::abs(value(loss) - last) <= tolerance * std::abs(last)))
      return label + "the loss is " + std::to_string(value(loss)) + ", and " +
             std::to_string(last) + " on one part";
    if (const double by = apart_on(*own.core(), gradient, sum[0]); !(by <= tolerance))
      return label + "a gradient differs by " + std::to_string(by);
    update(w, gradient);
    update_alone(alone, sum[0]);
    if (const double by = apart_on(*own.core(), w, alone); !(by <= tolerance))
      return label + "a weight differs by " + std::to_string(by);
  }
  return last < first ? ""
                      : "nothing is learnt: " + std::to_string(first) + " before, and " +
                            std::to_string(last) + " after";
}

}  // namespace support
