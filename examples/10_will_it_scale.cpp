// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 1
//
// Lesson 10: will it scale? This process plays one of 8 to 1,024, without the others: it computes
// the blocks that would be its own, and sends nothing. What its work took, and what the calls
// between take on a network that you describe, make the time of a step, before a job is queued. You
// will see a training step of a Transformer on more and more processes, with as much work on each
// and with the same work for all, on two networks, and how long its operators take and wait.
#include <utility>

#include <tessera/comm/fake.hpp>
#include <tessera/nn.hpp>
#include <tessera/program/network/timing.hpp>
#include <tessera/run/tracing.hpp>
#include <tessera/tessera.hpp>

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
using U = Under<float, Grid, TensorParallel<data, model>>;
using Ids = U::Of<std::int32_t, logical::batch, logical::sequence>;

struct Word {
  KOKKOS_FUNCTION std::int32_t operator()(const GlobalIndex& i) const {
    return static_cast<std::int32_t>(i.linear() * 37 % 256);
  }
};

/// Runs a training step of a Transformer as process 0 of rows x columns, and returns the trace of
/// the shortest of some runs, since a computer does other work too. The first run makes the plans.
Trace step_of(int rows, int columns, Index texts, const Machine& machine) {
  const auto mesh = make_mesh<Grid>(fake_transport(rows * columns), sizes<Grid>(rows, columns),
                                    {.machine = machine});
  Parameters<Grid> make(mesh, 1);
  auto model = Decoder<U>::like(
      make,
      {.vocabulary = 256, .places = 64, .embed = 256, .heads = 8, .hidden = 1024, .layers = 2});
  Optimizer<Adam> optimizer(Adam{}, model);
  const auto ids = from_function<Ids>(mesh, {texts, 64}, Word{});
  const auto step = [&] {
    const auto run = optimizer.value_and_grad([&](const Decoder<U>& weights) {
      return mean(cross_entropy(next_tokens(weights, ids), ids));
    })(model);
    optimizer.step(model, run.gradient);
  };
  step();
  Trace shortest;
  for (int run = 0; run < 5; ++run) {
    Tracing tracing(mesh);
    step();
    Trace trace = tracing.take();
    if (run == 0 || trace.events.back().end < shortest.events.back().end)
      shortest = std::move(trace);
  }
  return shortest;
}

/// Prints the times of steps on meshes of more and more rows of 8 processes, a row on a host.
void table(const char* title, bool more_texts) {
  fmt::print("{}\n  {:>6} {:>7} {:>12} {:>9} {:>17} {:>9}\n", title, "mesh", "texts", "full tree",
             "waiting", "a quarter of it", "waiting");
  // A switch for 16 hosts and 8 of these below a second level, at 100 Gbit/s a link.
  const NetworkLink link{.bytes_per_second = 12.5e9, .seconds = 1e-6};
  const Network full_tree = Network::fat_tree({16, 8}, {1, 16}, link, 8),
                thin_tree = Network::fat_tree({16, 8}, {1, 4}, link, 8);
  for (const int rows : {1, 4, 16, 64, 128}) {
    const Index texts = more_texts ? 2 * rows : 128;
    const Trace trace = step_of(rows, 8, texts, full_tree.machine());
    const NetworkTimes full = simulate(trace, full_tree), thin = simulate(trace, thin_tree);
    fmt::print("  {:>6} {:>7} {:>9.2f} ms {:>7.0f} % {:>14.2f} ms {:>7.0f} %\n",
               fmt::format("{}x8", rows), texts, 1e3 * full.seconds,
               100 * full.exposed / full.seconds, 1e3 * thin.seconds,
               100 * thin.exposed / thin.seconds);
    if (rows == 128) fmt::print("On the thinner tree:\n{}\n", explain(thin, 4));
  }
}

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment&) {
    table("As much for each: 2 texts a row of the mesh", true);
    table("As much for all: 128 texts", false);
  });
}
