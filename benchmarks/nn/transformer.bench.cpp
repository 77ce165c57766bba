// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 1 2
// A step of a Transformer: 4 layers, d 256, 8 heads, feed-forward 1024, sequence 256, batch 8,
// vocabulary 256, Adam, single precision: on one process, data parallel and tensor parallel on two,
// beside its own local compute: the same step of a model of one process's sizes, on each process
// alone. benchmarks/transformer_peers.py measures the same model in PyTorch and JAX.
#include <cstdio>
#include <string>

#include <tessera/nn.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/tessera.hpp>

#include "support/turns.hpp"

namespace {
using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
using U = Under<float, Grid, TensorParallel<data, model>>;
using Ids = U::Of<std::int32_t, logical::batch, logical::sequence>;

// On a device: sequence 1024, d 1024, 16 heads, feed-forward 4096, vocabulary 8192, which fill it.
constexpr bool host = kernels_on_host;
constexpr Index batch = 8, sequence = host ? 256 : 1024, embed = host ? 256 : 1024,
                heads = host ? 8 : 16, hidden = 4 * embed, vocabulary = host ? 256 : 8192;

struct Word {
  Index times, n;
  KOKKOS_FUNCTION std::int32_t operator()(const GlobalIndex& i) const {
    return static_cast<std::int32_t>(i.linear() * times % n);
  }
};

/// A model on a mesh; or, with numbers above 1, the part of it that a process has of so many over
/// data and model.
class Training {
 public:
  Training(const ProcessMesh<Grid>& mesh, Index over_data, Index over_model)
      : weights_(born(mesh, over_model)),
        optimizer_(Adam{}, weights_),
        ids_(words(mesh, over_data, over_model, 37)),
        next_(words(mesh, over_data, over_model, 41)) {}

  const Ids& ids() const { return ids_; }
  const Ids& next() const { return next_; }
  auto step(const Ids& ids, const Ids& next) {
    const auto run = optimizer_.value_and_grad([&](const Decoder<U>& weights) {
      return mean(cross_entropy(next_tokens(weights, ids), next));
    })(weights_);
    optimizer_.step(weights_, run.gradient);
    return run.value;
  }

 private:
  static Decoder<U> born(const ProcessMesh<Grid>& mesh, Index over_model) {
    Parameters<Grid> make(mesh, 1);
    return Decoder<U>::like(make, {.vocabulary = vocabulary / over_model,
                                   .places = sequence,
                                   .embed = embed,
                                   .heads = heads / over_model,
                                   .head_dim = embed / heads,
                                   .hidden = hidden / over_model,
                                   .layers = 4});
  }
  static Ids words(const ProcessMesh<Grid>& mesh, Index over_data, Index over_model, Index times) {
    return from_function<Ids>(mesh, {batch / over_data, sequence},
                              Word{times, vocabulary / over_model});
  }

  Decoder<U> weights_;
  Optimizer<Adam> optimizer_;
  Ids ids_, next_;
};

void measure(Environment& env, int over_data, int over_model) {
  const std::string name =
      "transformer/" + std::to_string(over_data) + "x" + std::to_string(over_model);
  if (!tessera_bench::wanted(name)) return;
  const auto alone = make_mesh<Grid>(mpi_transport(MPI_COMM_SELF), 1, 1);
  Training split(make_mesh<Grid>(env.world(), over_data, over_model), 1, 1),
      local(alone, over_data, over_model);
  auto compiled = compile([&](const Ids& ids, const Ids& next) { return split.step(ids, next); });
  auto compiled_local =
      compile([&](const Ids& ids, const Ids& next) { return local.step(ids, next); });
  const auto t = tessera_bench::in_turns({[&] { (void)compiled(split.ids(), split.next()); },
                                          [&] { (void)split.step(split.ids(), split.next()); },
                                          [&] { (void)compiled_local(local.ids(), local.next()); }},
                                         {5.0});
  tessera_bench::note(name, {{"tessera", t[0]}, {"not compiled", t[1]}, {"local", t[2]}});
  if (env.world()->process() == 0)
    std::printf("%s: %.1f ms, not compiled %.1f ms, its local compute %.1f ms, ratio %.3f\n",
                name.c_str(), t[0] * 1e3, t[1] * 1e3, t[2] * 1e3, t[0] / t[2]);
}
}  // namespace

int main(int argc, char** argv) {
  Environment env(argc, argv);
  tessera_bench::start(argc, argv);
  const int n = env.world()->size();
  measure(env, n, 1);
  if (n > 1) measure(env, 1, n);
  return tessera_bench::finish();
}
