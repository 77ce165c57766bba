// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 2
// A pipeline of two equal stages, a process each: the share of time in which parts stand idle, as
// the clocks have it and as a simulation of the schedule has it, with each pass's median time; and
// the time of a step beside that of the same function on one of the processes. A figure needs a
// core for each.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <tessera/pipeline.hpp>
#include <tessera/tessera.hpp>

#include "support/mpi_benchmark.hpp"

namespace {
using namespace tessera;

namespace grid {
struct stage : Axis<> {};
struct data : Axis<> {};
}  // namespace grid
using Grid = Mesh<grid::stage, grid::data>;
using Part = Without<Grid, grid::stage>;
using Matrix = ShardedTensor<float, Part, P<_, _>>;
using Rows = ShardedTensor<float, Part, P<grid::data, _>>;

constexpr Index width = 768, rows = 192;
constexpr int layers = 4;

struct Model {
  std::vector<Matrix> weights;
  static constexpr auto fields = Fields<&Model::weights>{};
};
struct Batch {
  Rows x;
  static constexpr auto fields = Fields<&Batch::x>{};
};

auto loss(const Model& m, const Batch& b) {
  Rows x = b.x;
  for (std::size_t l = 0; l < m.weights.size(); ++l)
    x = layer("layer." + std::to_string(l), [](const Rows& a, const Matrix& w) {
      return Rows(tanh(einsum<"ik,kj->ij">(a, w)));
    })(x, m.weights[l]);
  return layer("end", [](const Rows& a) { return sum<"ij->">(square(a)); })(x);
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

/// The model of the stages as a run has measured them, with the median of each pass.
PipelineModel as_measured(PipelineModel model, const PipelineSchedule& s, const PipelineRun& run) {
  for (int stage = 0; stage < s.stages(); ++stage)
    for (const PipelinePass pass :
         {PipelinePass::forward, PipelinePass::backward, PipelinePass::backward_inputs,
          PipelinePass::backward_weights}) {
      std::vector<double> times, after;  // until it sends, and from there to its end
      const auto part = static_cast<std::size_t>(s.part(stage));
      for (std::size_t i = 0; i < s.lists[part].size(); ++i) {
        if (s.lists[part][i].stage != stage || s.lists[part][i].pass != pass) continue;
        const PipelineSpan& span = run.parts[part].spans[i];
        times.push_back(static_cast<double>(span.sends - span.begin));
        after.push_back(static_cast<double>(span.end - span.sends));
      }
      if (times.empty()) continue;
      PipelineStage& own = model.stages[static_cast<std::size_t>(stage)];
      const bool whole = pass == PipelinePass::backward;
      (whole ? own.inputs : own.unit(pass)).time = static_cast<std::int64_t>(median(times));
      if (whole) own.weights.time = static_cast<std::int64_t>(median(after));
    }
  return model;
}

void measure(Environment& env, const PipelineSchedule& schedule, int rounds) {
  const auto mesh = make_mesh<Grid>(env.world(), 2, env.world()->size() / 2);
  const auto part = [&](int stage) { return mesh.part<grid::stage>(schedule.part(stage)); };
  const auto own = mesh.part<grid::stage>(mesh.coordinate<grid::stage>());
  Model model, alone;
  StageMap map{{"end", schedule.stages() - 1}};
  for (int l = 0; l < layers; ++l) {
    const int stage = l * schedule.stages() / layers;
    map.add("layer." + std::to_string(l), stage);
    model.weights.push_back(random_normal<Matrix>(part(stage), {width, width},
                                                  10 + static_cast<std::uint64_t>(l), 0, 0.03));
    alone.weights.push_back(
        random_normal<Matrix>(own, {width, width}, 10 + static_cast<std::uint64_t>(l), 0, 0.03));
  }
  std::vector<Batch> batches, its;
  for (int m = 0; m < schedule.micro_batches; ++m) {
    batches.push_back(
        {random_normal<Rows>(part(0), {rows, width}, 50 + static_cast<std::uint64_t>(m))});
    its.push_back({random_normal<Rows>(own, {rows, width}, 50 + static_cast<std::uint64_t>(m))});
  }
  auto step = pipelined<grid::stage>(mesh, loss, map, schedule);
  const auto whole = value_and_grad([](const Model& m, const Batch& b) { return loss(m, b); });
  std::vector<double> measured, simulated, ours, serial;
  for (int round = 0; round < rounds; ++round) {
    const auto clock = [](auto&& body) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      body();
      double seconds = MPI_Wtime() - start;
      MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      return seconds;
    };
    ours.push_back(clock([&] { (void)step(model, batches); }));
    const PipelineRun run = step.measured();
    measured.push_back(run.bubble());
    simulated.push_back(simulate(as_measured(step.model(), schedule, run), schedule).bubble());
    serial.push_back(clock([&] {
      if (mesh.process() != 0) return;
      for (const Batch& b : its) (void)whole(alone, b);
    }));
  }
  const std::string name = "pipeline/" + schedule.name + " of " +
                           std::to_string(schedule.micro_batches) + " micro-batches";
  tessera_bench::note(name, {{"tessera", median(ours)}, {"one process", median(serial)}},
                      {{"percent idle as measured", 100 * median(measured)},
                       {"percent idle as simulated", 100 * median(simulated)}});
  if (env.world()->process() == 0)
    std::printf(
        "%s: idle %.1f %% measured, %.1f %% simulated; a step %.2f ms, on one process %.2f ms, "
        "ratio %.2f\n",
        name.c_str(), 100 * median(measured), 100 * median(simulated), 1e3 * median(ours),
        1e3 * median(serial), median(ours) / median(serial));
}
}  // namespace

int main(int argc, char** argv) {
  Environment env(argc, argv);
  tessera_bench::start(argc, argv);
  const int rounds = tessera_bench::seconds_in_turns() >= 0 ? 3 : 21;
  for (const int m : {4, 8})
    for (const PipelineSchedule& s : {gpipe(2, m), one_f_one_b(2, m), zero_bubble(2, m),
                                      interleaved(2, 2, m), zero_bubble_v(2, m)})
      if (tessera_bench::wanted("pipeline/" + s.name)) measure(env, s, rounds);
  return tessera_bench::finish();
}
