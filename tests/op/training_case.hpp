// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A small training run of the model in examples/gradients_by_hand, on numbers that no mesh divides
/// evenly.
#include <algorithm>
#include <cmath>
#include <vector>

#include <tessera/op/compile.hpp>

#include "../../examples/gradients_by_hand/adam.hpp"
#include "../../examples/gradients_by_hand/report.hpp"
#include "../../examples/support/text.hpp"

namespace training {

using namespace gradients_by_hand;

inline constexpr Sizes sizes{
    .vocabulary = 11, .context = 3, .embed = 10, .hidden = 14, .layers = 2, .batch = 13};

struct Batch {
  Tensor<Id, data, _> context;
  Tensor<Id, data> next;
};

inline Batch batch(const ProcessMesh<Grid>& mesh, Index step) {
  std::vector<Id> context, next;
  for (Index i = 0; i < sizes.batch; ++i) {
    for (Index k = 0; k < sizes.context; ++k) {
      const auto draw =
          support::mixed(static_cast<std::uint64_t>((step * sizes.batch + i) * sizes.context + k));
      context.push_back(static_cast<Id>(draw % sizes.vocabulary));
    }
    next.push_back(context.back());
  }
  return {from_host<Tensor<Id, data, _>>(mesh, {sizes.batch, sizes.context}, context),
          from_host<Tensor<Id, data>>(mesh, {sizes.batch}, next)};
}

/// All numbers that a run led to: the loss of each step, then every weight. A step may be compiled,
/// as it stands; then all have one structure.
inline std::vector<double> numbers_after(const ProcessMesh<Grid>& mesh, Index steps,
                                         bool compiled = false) {
  std::vector<double> numbers;
  Weights<double> weights = initial_weights<double>(mesh, sizes, 7);
  Adam<double> adam(weights);
  const auto train = [&](const Batch& examples) {
    return train_step(weights, adam, examples.context, examples.next, 3e-3);
  };
  auto together = compile(train);
  for (Index step = 0; step < steps; ++step) {
    const Batch examples = batch(mesh, step);
    numbers.push_back(value(compiled ? together(examples) : train(examples)));
  }
  if (compiled && together.structures() != 1) numbers.push_back(NAN);
  for_each_tensor(
      [&](const auto& x) {
        const auto all = to_host(x).values;
        numbers.insert(numbers.end(), all.begin(), all.end());
      },
      weights);
  return numbers;
}

/// Returns the numbers of one process, without the others.
inline std::vector<double> numbers_alone(Index steps) {
  std::vector<double> numbers;
  run_loopback(1, [&](std::shared_ptr<Transport> world) {
    numbers = numbers_after(make_mesh<Grid>(world, 1, 1), steps);
  });
  return numbers;
}

inline double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    if (!(difference <= largest)) largest = difference;  // NaN is large
  }
  return largest;
}

}  // namespace training
