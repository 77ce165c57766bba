// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators and a training step under SimGrid's SMPI, beside what simulate(program, network) says
// of them: a table of times with their differences. Computing takes no time on either side. Every
// process must send the bytes and messages of its plan, and of two rows whose simulated times
// differ by more than a twentieth the plan must have the same one first.
//
//   smpirun … times fat_tree 8 1024             a mesh of n/8 x 8, matrices of 1024 x 1024
//   smpirun … times fat_tree 8 1024 FILE.json   writes its rows, too, for cmake/docs/figures.py
#include <fmt/format.h>
#include <mpi.h>
#include <simgrid/version.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <tessera/nn.hpp>
#include <tessera/program/network/timing.hpp>
#include <tessera/tessera.hpp>

#include "networks.hpp"
#include "support/written.hpp"

namespace grid {
struct data : tessera::Axis<> {};
struct model : tessera::Axis<> {};
}  // namespace grid

namespace {

using namespace tessera;
using grid::data, grid::model;
using Grid = Mesh<data, model>;
template <class... Entries> using Matrix = ShardedTensor<float, Grid, P<Entries...>>;

double most(double own) {
  double all = own;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

/// Returns when all processes go on, at one moment: a barrier lets them go one after the other.
double start_together() {
  const double start = most(MPI_Wtime()) + 1e-3, left = start - MPI_Wtime();
  timespec nap{0, static_cast<long>(1e9 * left)};
  smpi_nanosleep(&nap, nullptr);
  return start;
}

std::string spoken(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

struct Row {
  std::string name;
  double simulated = 0, planned = 0;  ///< seconds
};

/// Runs f twice: recorded, and by the clock.
template <class F>
Row row(const ProcessMesh<Grid>& mesh, const Network& network, std::string name, const F& f) {
  Recording recording(mesh);
  const Index bytes = mesh.ledger().payload_bytes(), messages = mesh.ledger().total().messages;
  f();
  const Program program = recording.take();
  const auto require = [&](const char* what, Index planned, Index counted) {
    if (planned != counted)
      throw Error(fmt::format("{}: planned and counted {} of process {} differ: {} and {}", name,
                              what, mesh.process(), planned, counted));
  };
  require("bytes", program.own_payload_bytes(), mesh.ledger().payload_bytes() - bytes);
  Index planned = 0;
  for (int i = 0; i < program.size(); ++i) planned += program.entry(i).plan->messages();
  require("messages", planned, mesh.ledger().total().messages - messages);
  const double start = start_together();
  f();
  Row made{std::move(name), most(MPI_Wtime()) - start, 0};
  if (mesh.process() == 0) made.planned = simulate(program, network, {.computes = false}).seconds;
  return made;
}

void run(Environment& env, const std::string& shape, int columns, Index n,
         const std::string& file) {
  const auto mesh = make_mesh<Grid>(env, env.size() / columns, columns);
  const Network network = simgrid::network_of(shape, env.size());
  const auto x = full<Matrix<data, model>>(mesh, {n, n}, 1);
  std::vector<Row> rows;
  const auto add = [&](const char* name, const auto& f) {
    rows.push_back(row(mesh, network, name, f));
  };
  add("all-reduce over data", [&] { reduce<Sum, "ij->j", P<model>>(x); });
  add("all-reduce over model", [&] { reduce<Sum, "ij->i", P<data>>(x); });
  add("all-gather over both", [&] { reshard<P<_, _>>(x); });
  add("all-gather over data", [&] { reshard<P<_, model>>(x); });
  add("all-gather over model", [&] { reshard<P<data, _>>(x); });
  add("rows to columns", [&] { reshard<P<model, data>>(x); });
  add("matrix product", [&] { einsum<"ij,jk->ik", P<data, model>>(x, x); });
  add("shift by a row", [&] { roll<0>(x, 1); });
  using Here = Under<float, Grid, TensorParallel<data, model>>;
  Parameters<Grid> make(mesh, 1);
  const auto layer = FeedForward<Here>::like(make, 64, 4 * n / 8);
  const auto states = full<Here::Tensor<logical::batch, logical::sequence, logical::embed>>(
      mesh, {n / 8, 16, 64}, 1);
  add("step of a layer", [&] {
    value_and_grad(
        [&](const auto& w) { return mean(square(feed_forward(w, states, fn::Gelu{}))); })(layer);
  });
  if (env.process() != 0) return;
  fmt::print(
      "{} of {} processes, {} x {}, matrices of {} x {}; times "
      "simulated\n{:<24}{:>14}{:>14}{:>9}\n",
      shape, env.size(), env.size() / columns, columns, n, n, "", "SMPI, us", "plan, us", "error");
  int pairs = 0, right = 0;
  tessera_bench::WrittenTable table;
  for (const Row& a : rows) {
    fmt::print("{:<24}{:>14.2f}{:>14.2f}{:>8.1f}%\n", a.name, 1e6 * a.simulated, 1e6 * a.planned,
               100 * (a.planned / a.simulated - 1));
    const std::string network_name = fmt::format("{} {}", spoken(shape), env.size());
    table.add({{"operation", a.name},
               {network_name + ", us", 1e6 * a.simulated},
               {"plan's error, " + network_name + ", %",
                std::round(1e5 * (a.planned / a.simulated - 1)) / 1e3}});
    for (const Row& b : rows)
      if (a.simulated > 1.05 * b.simulated) ++pairs, right += a.planned > b.planned;
  }
  fmt::print("order: {} of {} pairs\n", right, pairs);
  if (right != pairs) throw Error("the plan has another row first");
  if (!file.empty())
    table.write(
        file,
        fmt::format("smpirun -np {} ... simgrid_times {} {} {}", env.size(), shape, columns, n),
        "simulated by SMPI of " SIMGRID_VERSION_STRING);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return run_main(1, argv, [&](Environment& env) {
    if (words.size() != 3 && words.size() != 4)
      throw UsageError(
          "say which network, how many processes along `model`, the size of matrices, and perhaps "
          "a file for the rows");
    run(env, words[0], std::stoi(words[1]), std::stoll(words[2]),
        words.size() == 4 ? words[3] : "");
  });
}
