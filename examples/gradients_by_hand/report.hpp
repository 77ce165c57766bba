// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What is said about a run: who owns what, what a step will do, and whether it did.
///
///     Program step = plan_step<T>(sizes, mesh.sizes(), mesh.process());
///     fmt::print("{}", describe(step));
///
/// Laws: planned payload times steps equals the ledger's, on every process and for every group of
/// axes.
#include <map>
#include <string>
#include <vector>

#include "../support/gemm_rate.hpp"
#include "adam.hpp"

namespace gradients_by_hand {

/// Returns all that one step does on `process`, by a dry run.
template <class T> Program plan_step(const Sizes& n, MeshSizes<Grid> shape, int process) {
  const auto mesh = dry_mesh<Grid>(shape, process);
  Weights<T> weights = initial_weights<T>(mesh, n, 0);
  Adam<T> adam(weights);
  const auto context = zeros<Tensor<Id, data, _>>(mesh, n.batch, n.context);
  const auto next = zeros<Tensor<Id, data>>(mesh, n.batch);
  Recording recording(mesh);
  train_step(weights, adam, context, next, 1e-3);
  return recording.take();
}

/// Returns a step's plan without the operators that only update weights in place: those move
/// nothing.
inline std::string describe(const Program& step) {
  std::string text = explain(step, 0), kept;
  int left_out = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = text.find('\n', at) + 1;
    const std::string line = text.substr(at, end - at);
    const bool update = line.find("Blend") != line.npos || line.find("Improve") != line.npos;
    left_out += update;
    if (!update && line != "  adam\n") kept += line;
    at = end;
  }
  return kept + "  (and " + std::to_string(left_out) +
         " maps of Adam, which communicate nothing)\n";
}

/// Returns who owns the blocks of some tensors of the model.
template <class T> std::string ownership(const Weights<T>& w, const Sizes& n) {
  const ProcessMesh<Grid> mesh(w.table.core().mesh());
  if (mesh.processes() > 16) return "  (not drawn for more than 16 processes)\n";
  const auto x = TensorDesc{dtype_of<T>, {n.batch, n.embed}, Tensor<T, data, model>::sharding()};
  return "activations  " + visualize(x, mesh.shape(), Grid::names()) + "weights in   " +
         visualize(w.layers[0].in) + "weights out  " + visualize(w.layers[0].out);
}

/// Returns flops a second of a feed-forward layer's two products on one process's blocks, all
/// processes at work at once.
template <class T> double local_gemm_rate(const ProcessMesh<Grid>& mesh, const Sizes& n) {
  const Index b = ceil_div(n.batch, mesh.size<data>()), h = ceil_div(n.hidden, mesh.size<model>());
  return support::gemm_rate<T>(mesh, {{b, h, n.embed}, {b, n.embed, h}});
}
using support::gemm_flops;

/// Returns whether this process communicated what was planned, in every group of axes.
inline bool as_planned(const Program& step, const Ledger& counted, Index steps) {
  bool equal = true;
  for (std::uint32_t bits = 1; bits <= step.mesh.axes().bits; ++bits) {
    const auto group = AxisSet::from_bits(bits);
    equal = equal && step.own_payload_bytes(group) * steps == counted.payload_bytes(group);
  }
  return equal && step.own_payload_bytes() * steps == counted.payload_bytes();
}

/// Returns planned against counted communication of this process, a line for each group of axes.
inline std::string compare(const Program& step, const Ledger& counted, Index steps) {
  std::string text;
  for (std::uint32_t bits = 1; bits <= step.mesh.axes().bits; ++bits) {
    const auto group = AxisSet::from_bits(bits);
    text += fmt::format("  over {:<11} planned {} x {} = {} bytes, counted {}\n",
                        to_string(group, step.names()), step.own_payload_bytes(group), steps,
                        step.own_payload_bytes(group) * steps, counted.payload_bytes(group));
  }
  return text;
}

/// Returns how many processes say yes. Collective over the mesh.
inline Index count_yes(const ProcessMesh<Grid>& mesh, bool yes) {
  struct Answer {
    std::int64_t value;
    KOKKOS_FUNCTION std::int64_t operator()(const GlobalIndex&) const { return value; }
  };
  using Votes = ShardedTensor<std::int64_t, Grid, P<data, model>>;
  return value(
      sum(from_function<Votes>(mesh, {mesh.size<data>(), mesh.size<model>()}, Answer{yes})));
}

}  // namespace gradients_by_hand
