// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 2 4
// GSPMD's "2D finalized" feed-forward layer, B·S = 2048, M = 512, H = 2048, single precision:
// Tessera beside the same layer written by hand with MPI and BLAS, in the same run, one after the
// other in turns. On 2 processes: meshes 1 x 2 and 2 x 1; on 4: 2 x 2. The figure to read is the
// ratio that is printed at the end (medians of alternating calls); with more processes than cores
// it says little about a machine that has a core for each.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/by_hand.hpp"
#include "support/mpi_benchmark.hpp"

namespace {
using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
template <class... D> using Tensor = ShardedTensor<float, Grid, P<D...>>;

Tensor<data, _, model> feed_forward(const Tensor<data, _, model>& x,
                                    const Tensor<data, model>& w_in,
                                    const Tensor<model, data>& w_out) {
  const auto h = gelu(einsum<"bsm,mh->bsh">(x, w_in));
  return einsum<"bsh,hm->bsm", P<data, _, model>>(h, w_out);
}

constexpr Index batch = 8, sequence = 256, embed = 512, hidden = 2048;

/// One mesh with the layer in both forms on the same data.
struct Case {
  ProcessMesh<Grid> mesh;
  Tensor<data, _, model> x;
  Tensor<data, model> w_in;
  Tensor<model, data> w_out;
  tessera_bench::HandwrittenLayer hand;

  Case(Environment& env, int d, int m)
      : mesh(make_mesh<Grid>(env.world(), d, m)),
        x(random_normal<Tensor<data, _, model>>(mesh, {batch, sequence, embed}, 1)),
        w_in(random_normal<Tensor<data, model>>(mesh, {embed, hidden}, 2, 0, 0.05)),
        w_out(random_normal<Tensor<model, data>>(mesh, {hidden, embed}, 3, 0, 0.05)),
        hand(d, m, batch * sequence, embed, hidden) {}

  void tessera() { (void)feed_forward(x, w_in, w_out); }
  void by_hand() { hand.run(x.data(), w_in.data(), w_out.data()); }

  /// Returns the largest difference between the two forms, over all processes.
  double difference() {
    const auto y = feed_forward(x, w_in, w_out);
    by_hand();
    return tessera_bench::most_apart(y.data(), hand.result(), y.local_size());
  }
  /// Returns the medians of alternating calls, in seconds: Tessera's, the other's.
  std::pair<double, double> medians(int rounds) {
    std::vector<double> ours, theirs;
    const auto clock = [](auto&& body) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      body();
      double seconds = MPI_Wtime() - start;
      MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
      return seconds;
    };
    for (int i = 0; i < rounds; ++i) {
      ours.push_back(clock([&] { tessera(); }));
      theirs.push_back(clock([&] { by_hand(); }));
    }
    const auto median = [](std::vector<double>& v) {
      std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
      return v[v.size() / 2];
    };
    return {median(ours), median(theirs)};
  }
};
}  // namespace

int main(int argc, char** argv) {
  Environment env(argc, argv);
  tessera_bench::start(argc, argv);
  const int processes = env.world()->size();
  std::vector<std::pair<int, int>> shapes;
  for (int d = 1; d <= processes; ++d)
    if (processes % d == 0 && (processes != 4 || d == 2)) shapes.emplace_back(d, processes / d);

  std::vector<std::unique_ptr<Case>> cases;
  for (const auto& [d, m] : shapes) {
    const std::string name = std::to_string(d) + "x" + std::to_string(m);
    if (!tessera_bench::wanted("feed_forward/" + name) &&
        !tessera_bench::wanted("feed_forward in turns/" + name)) {
      cases.emplace_back();
      continue;
    }
    cases.push_back(std::make_unique<Case>(env, d, m));
    Case* c = cases.back().get();
    const double difference = c->difference();
    if (difference > 1e-3) {
      std::fprintf(stderr, "feed_forward on %s: the two forms differ by %g\n", name.c_str(),
                   difference);
      return 1;
    }
    benchmark::RegisterBenchmark(("feed_forward/" + name + "/tessera").c_str(),
                                 tessera_bench::timed([c] { c->tessera(); }))
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("feed_forward/" + name + "/by hand").c_str(),
                                 tessera_bench::timed([c] { c->by_hand(); }))
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond);
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string name = "feed_forward in turns/" + std::to_string(shapes[i].first) + "x" +
                             std::to_string(shapes[i].second);
    if (!cases[i] || !tessera_bench::wanted(name)) continue;
    const auto [ours, theirs] = cases[i]->medians(tessera_bench::seconds_in_turns() >= 0 ? 3 : 41);
    tessera_bench::note(name, {{"tessera", ours}, {"MPI and BLAS by hand", theirs}});
    if (env.world()->process() == 0)
      std::printf(
          "feed_forward on %dx%d: tessera %.2f ms, by hand %.2f ms, ratio %.3f; %.1f GFLOP/s a "
          "process\n",
          shapes[i].first, shapes[i].second, ours * 1e3, theirs * 1e3, ours / theirs,
          4.0 * double(batch * sequence * embed * hidden) / double(processes) / ours * 1e-9);
  }
  return tessera_bench::finish();
}
