// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What is said about a run before it begins: what a step will do.
///
///     Program step = plan_step<U>(flags, mesh);
///     describe(step)
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include <tessera/run/choose_of.hpp>

#include "../support/gemm_rate.hpp"
#include "learning.hpp"
#include "trainer.hpp"

namespace train_transformer {

/// Returns all that one step does on this process, by a dry run.
template <class U> Program plan_step(const Flags& flags, const ProcessMesh<Grid>& on) {
  const auto mesh = dry_mesh(on);
  Trainer<U> trainer(mesh, flags);
  const Sizes& n = flags.sizes;
  const Rows rows{std::vector<Id>(static_cast<std::size_t>(n.batch * n.context)),
                  std::vector<Id>(static_cast<std::size_t>(n.batch * n.context)), n.batch};
  const Batch<U> batch(mesh, rows, n.context);
  Recording recording(mesh);
  trainer.step(batch, 1);
  return recording.take();
}

/// Returns what one step does whose layers all run again, are all kept, or are open.
template <class U>
Program plan_layers(Flags flags, const ProcessMesh<Grid>& on, const Recompute& again) {
  flags.sizes.again.assign(static_cast<std::size_t>(flags.sizes.layers), again);
  return plan_step<U>(flags, on);
}

/// Returns the choice of layers that run again, so that a step holds at most --memory.
template <class U> Choice chosen_layers(const Flags& flags, const ProcessMesh<Grid>& mesh) {
  return choose([&] { return plan_layers<U>(flags, mesh, Open{}); }, mesh,
                {.memory_limit = flags.memory << 20, .keep_shardings = true});
}

/// Returns the choice of a step's shardings, those of weights and batch aside, that sends least and
/// computes no more than the step as it is written; under --memory, of the layers that run again,
/// too. Few steps of the search find most of what there is.
template <class U> Choice chosen_step(const Flags& flags, const ProcessMesh<Grid>& mesh) {
  const bool limited = flags.memory > 0;
  const ChooseOptions options{.objective = Objective::payload,
                              .flops_limit = plan_layers<U>(flags, mesh, limited).flops(),
                              .memory_limit = limited ? flags.memory << 20 : max_int64,
                              .steps = 50};
  return choose([&] { return plan_layers<U>(flags, mesh, Open{}); }, mesh, options);
}

/// Returns what was chosen, and of the tensors that are split otherwise the two largest with each
/// alternative's price, where memory is not limited.
inline std::string why(const Choice& choice) {
  const Program& given = choice.given();
  std::vector<int> changed;
  for (int t = 0; t < static_cast<int>(choice.chosen.size()); ++t)
    if (!(choice.chosen[static_cast<std::size_t>(t)] == given.tensor(t).desc.sharding))
      changed.push_back(t);
  std::stable_sort(changed.begin(), changed.end(), [&](int a, int b) {
    return volume(given.tensor(a).desc.extents) > volume(given.tensor(b).desc.extents);
  });
  std::string text = explain(choice);
  if (choice.memory_limit != max_int64)
    return text;  // under limits alternatives take long to price
  for (std::size_t i = 0; i < changed.size() && i < 2; ++i) text += explain(choice, changed[i]);
  return text;
}

/// Returns flops a second of a product of the feed-forward layer's sizes, all processes at work.
template <class T, class M> double local_gemm_rate(const M& mesh, const Sizes& n) {
  const Index rows = max_of(Index{1}, n.batch * n.context / mesh.processes());
  return support::gemm_rate<T>(mesh, {{rows, 2 * n.hidden, n.embed}});
}
using support::gemm_flops;

/// Says how fast products are, and which steps a run takes; returns the seconds of a step's
/// products on this process.
template <class T, class M>
double seconds_of_products(const M& mesh, const Flags& flags, const Program& step, Index first,
                           const Voice& say) {
  if (first > 0) say("\nGoing on after step {} of {}\n", first, flags.resume);
  const Sizes& n = flags.sizes;
  const double rate = local_gemm_rate<T>(mesh, n);
  say("\nLocal GEMM rate {:.1f} Gflop/s a process; steps {} to {} of {} characters\n", rate / 1e9,
      first + 1, flags.steps, n.batch * n.context);
  return gemm_flops(step) / rate;
}

}  // namespace train_transformer
