// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 1 2
// What a run takes, and what simulate(trace, network) foretells of it: each process traces the same
// calls alone (comm/fake.hpp), where nothing is sent, and the calls between take what they take on
// a network with the links that `calibrate` has measured; the longest of the processes' medians
// counts. Beside it what simulate(program, network) says, whose work is by rates.
// Operators, a layer and steps of training, single precision, on n x 1 and on 1 x n processes; and
// a checkpoint, beside as many bytes that each process writes and flushes. A figure needs a core
// for each.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tessera/comm/fake.hpp>
#include <tessera/io/checkpoint.hpp>
#include <tessera/nn.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/program/network/timing.hpp>
#include <tessera/run/calibrate.hpp>
#include <tessera/run/tracing.hpp>
#include <tessera/tessera.hpp>

#include "support/mpi_benchmark.hpp"
#include "support/turns.hpp"

namespace {
using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
using On = ProcessMesh<Grid>;
template <class... D> using Tensor = ShardedTensor<float, Grid, P<D...>>;
using Body = std::function<void()>;
/// Makes what is measured on a mesh.
using Case = std::function<Body(const On&)>;

/// Keeps a state alive with the function that uses it.
template <class State, class F> Body with(State state, F f) {
  auto kept = std::make_shared<State>(std::move(state));
  return [kept, f] { f(*kept); };
}

struct Word {
  Index times, n;
  KOKKOS_FUNCTION std::int32_t operator()(const GlobalIndex& i) const {
    return static_cast<std::int32_t>(i.linear() * times % n);
  }
};

Body products(const On& mesh) {
  const auto x = random_normal<Tensor<data, model>>(mesh, {1024, 1024}, 1);
  return [x] { (void)einsum<"ij,jk->ik", P<data, model>>(x, x); };
}
Body thin_products(const On& mesh) {
  const auto x = random_normal<Tensor<data, model>>(mesh, {4096, 256}, 1);
  const auto w = random_normal<Tensor<_, model>>(mesh, {256, 64}, 2);
  return [x, w] { (void)einsum<"ij,jk->ik", P<data, model>>(x, w); };
}
Body softmax_of(const On& mesh) {
  const auto x = random_normal<Tensor<data, model>>(mesh, {1024, 1024}, 1);
  return [x] { (void)softmax<"ij", 'j'>(x); };
}
Body columns(const On& mesh) {
  const auto x = random_normal<Tensor<data, model>>(mesh, {2048, 1024}, 1);
  return [x] { (void)reduce<Sum, "ij->j", P<_>>(x); };
}
Body gather(const On& mesh) {
  const auto x = random_normal<Tensor<data, model>>(mesh, {1024, 1024}, 1);
  return [x] { (void)reshard<P<_, _>>(x); };
}
Body transposed(const On& mesh) {
  const auto x = random_normal<Tensor<data, model>>(mesh, {1024, 1024}, 1);
  return [x] { (void)reshard<P<model, data>>(x); };
}
Body map_of(const On& mesh) {
  const auto x = random_normal<Tensor<data, model>>(mesh, {1024, 1024}, 1);
  return [x] { (void)(tanh(x) * x + 1.0F); };
}
Body sweeps(const On& mesh) {
  const auto x = random_normal<Tensor<data, model>>(mesh, {1024, 1024}, 1);
  return [x] {
    auto y = x;
    for (int sweep = 0; sweep < 4; ++sweep)
      y = 0.25F * (shift<0>(y, 1) + shift<0>(y, -1) + shift<1>(y, 1) + shift<1>(y, -1));
  };
}

using Rules = TensorParallel<data, model>;
using U = Under<float, Grid, Rules>;
using Ids = U::Of<std::int32_t, logical::batch, logical::sequence>;

Body step_of_layer(const On& mesh) {
  Parameters<Grid> make(mesh, 1);
  using X = U::Tensor<logical::batch, logical::sequence, logical::embed>;
  struct State {
    FeedForward<U> weights;
    X x;
  };
  return with(
      State{FeedForward<U>::like(make, 256, 1024), random_normal<X>(mesh, {8, 128, 256}, 2)},
      [](State& s) {
        (void)value_and_grad([&](const auto& w) {
          return mean(square(feed_forward(w, s.x, fn::Gelu{})));
        })(s.weights);
      });
}

/// A step of a Transformer.
Body step_of_transformer(const On& mesh) {
  struct Training {
    Decoder<U> weights;
    Optimizer<Adam> optimizer;
    Ids ids, next;
    void step(const Ids& a, const Ids& b) {
      const auto run = optimizer.value_and_grad(
          [&](const Decoder<U>& w) { return mean(cross_entropy(next_tokens(w, a), b)); })(weights);
      optimizer.step(weights, run.gradient);
    }
  };
  Parameters<Grid> make(mesh, 1);
  auto weights = Decoder<U>::like(
      make,
      {.vocabulary = 256, .places = 128, .embed = 256, .heads = 8, .hidden = 1024, .layers = 2});
  Optimizer<Adam> optimizer(Adam{}, weights);
  auto t = std::make_shared<Training>(Training{std::move(weights), std::move(optimizer),
                                               from_function<Ids>(mesh, {8, 128}, Word{37, 256}),
                                               from_function<Ids>(mesh, {8, 128}, Word{41, 256})});
  return [t] { t->step(t->ids, t->next); };
}

Body step_of_experts(const On& mesh) {
  using Tokens = Tensor<Axes<data, model>, _, _>;
  using Sent = Tensor<Axes<data, model>, _, _>;
  using Weights = ExpertWeights<Tensor<_, _>, Sent, Sent>;
  struct State {
    Tokens x;
    Weights w;
  };
  return with(State{random_normal<Tokens>(mesh, {8, 256, 256}, 1),
                    {random_normal<Tensor<_, _>>(mesh, {256, 8}, 2, 0, 0.05),
                     random_normal<Sent>(mesh, {8, 256, 1024}, 3, 0, 0.05),
                     random_normal<Sent>(mesh, {8, 1024, 256}, 4, 0, 0.05)}},
              [](State& s) {
                (void)value_and_grad<0, 1>([](const Tokens& t, const Weights& w) {
                  const auto made = mixture_of_experts(t, w);
                  return sum<"gsm->">(square(made.output)) + 0.01F * made.gating.auxiliary_loss;
                })(s.x, s.w);
              });
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

void measure(const On& real, const On& alone, const Network& network, const std::string& name,
             const Case& f, double seconds) {
  const Body run = f(real), by_itself = f(alone);
  for (int i = 0; i < 3; ++i) run(), by_itself();
  std::vector<double> times, foretold, plain;
  const double begin = MPI_Wtime();
  for (double spent = 0; times.size() < 5 || (times.size() < 201 && spent < seconds);) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    run();
    double took[2] = {MPI_Wtime() - start, MPI_Wtime() - begin};
    MPI_Allreduce(MPI_IN_PLACE, took, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    times.push_back(took[0]);
    spent = took[1];
    MPI_Barrier(MPI_COMM_WORLD);
    Tracing tracing(alone);
    by_itself();
    const Trace trace = tracing.take();
    foretold.push_back(simulate(trace, network).seconds);
    plain.push_back(
        simulate(trace.program, network, {.machine = real.core()->options().machine}).seconds);
  }
  const double t = median(times), by_plan = median(plain);
  double by_trace = median(foretold);
  MPI_Allreduce(MPI_IN_PLACE, &by_trace, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  const auto percent = [&](double other) { return 100 * (other / t - 1); };
  tessera_bench::note("forecast/" + name, {{"tessera", t}, {"foretold", by_trace}},
                      {{"percent error", percent(by_trace)},
                       {"percent error by the plan's rates", percent(by_plan)}});
  if (real.process() == 0)
    std::printf("%-28s %10.1f us, foretold %10.1f us (%+.1f %%), by rates %10.1f us (%+.1f %%)\n",
                name.c_str(), 1e6 * t, 1e6 * by_trace, percent(by_trace), 1e6 * by_plan,
                percent(by_plan));
}

/// Writes and flushes bytes by the operating system's calls.
void write_plainly(const std::string& file, const std::vector<char>& bytes) {
  const int to = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  std::size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t n = to < 0 ? -1 : write(to, bytes.data() + written, bytes.size() - written);
    if (n < 0) throw FileError(file + " cannot be written; name a folder with room in TMPDIR");
    written += static_cast<std::size_t>(n);
  }
  fsync(to);
  close(to);
}

/// Writes 64 MiB as a checkpoint and, as is foretold of it, as many bytes of each process plainly,
/// in turns.
void measure_checkpoint(const On& mesh, const std::string& name, double seconds) {
  const std::string place = std::filesystem::temp_directory_path() / "tessera_forecast",
                    file = place + ".safetensors", own = place + std::to_string(mesh.process());
  std::vector<Tensor<data, model>> tensors;
  for (int i = 0; i < 16; ++i)
    tensors.push_back(
        random_normal<Tensor<data, model>>(mesh, {1024, 1024}, static_cast<std::uint64_t>(i)));
  const std::vector<char> bytes((std::size_t{64} << 20) /
                                static_cast<std::size_t>(mesh.shape().processes()));
  const std::vector<double> times = tessera_bench::in_turns(
      {[&] { write_checkpoint(mesh, file, tensors); }, [&] { write_plainly(own, bytes); }},
      {.seconds = seconds, .least = 5, .most = 201});
  std::filesystem::remove(own);
  if (mesh.process() == 0) std::filesystem::remove(file);
  const double t = times[0], foretold = times[1];
  tessera_bench::note("forecast/" + name, {{"tessera", t}, {"foretold", foretold}},
                      {{"percent error", 100 * (foretold / t - 1)}});
  if (mesh.process() == 0)
    std::printf("%-28s %10.1f us, written plainly %10.1f us\n", name.c_str(), 1e6 * t,
                1e6 * foretold);
}
}  // namespace

int main(int argc, char** argv) {
  Environment env(argc, argv);
  tessera_bench::start(argc, argv);
  const int n = env.world()->size();
  const double seconds =
      tessera_bench::seconds_in_turns() >= 0 ? tessera_bench::seconds_in_turns() : 2;
  for (const bool rows : {true, false}) {
    if (n == 1 && !rows) continue;
    const Machine machine = calibrate(make_mesh<Grid>(env.world(), rows ? n : 1, rows ? 1 : n));
    const MeshOptions options{.machine = machine};
    const auto real =
        make_mesh<Grid>(env.world(), sizes<Grid>(rows ? n : 1, rows ? 1 : n), options);
    const auto alone = make_mesh<Grid>(fake_transport(n, env.world()->process()),
                                       sizes<Grid>(rows ? n : 1, rows ? 1 : n), options);
    const Network network = Network::nodes(machine, n);
    const std::string shape =
        n == 1 ? "" : ", " + (rows ? std::to_string(n) + "x1" : "1x" + std::to_string(n));
    const std::vector<std::pair<std::string, Case>> cases{
        {"matrix product", products},
        {"thin product", thin_products},
        {"softmax", softmax_of},
        {"sum of columns", columns},
        {"tanh(x) x + 1", map_of},
        {"all-gather", gather},
        {"rows to columns", transposed},
        {"four sweeps of a stencil", sweeps},
        {"feed-forward layer, step", step_of_layer},
        {"Transformer, step", step_of_transformer},
        {"mixture of experts, step", step_of_experts}};
    for (const auto& [name, f] : cases)
      if (tessera_bench::wanted("forecast/" + name + shape))
        measure(real, alone, network, name + shape, f, seconds);
    if (tessera_bench::wanted("forecast/checkpoint" + shape))
      measure_checkpoint(real, "checkpoint" + shape, seconds);
  }
  return tessera_bench::finish();
}
