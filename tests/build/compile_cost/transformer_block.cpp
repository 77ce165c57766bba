// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A Transformer block, forward and backward, its heads and hidden elements split over processes.
#include <tessera/nn.hpp>
#include <tessera/tessera.hpp>

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
using Here = Under<float, Grid, TensorParallel<data, model>>;
using X = Here::Tensor<logical::batch, logical::sequence, logical::embed>;

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    const int across = env.size() % 2 == 0 ? 2 : 1;
    const auto mesh = make_mesh<Grid>(env, env.size() / across, across);
    Parameters<Grid> make(mesh, 1);
    auto block = DecoderBlock<Here>::like(make, {.embed = 64, .heads = 4, .hidden = 256});
    Optimizer<Adam, ReplicatedUpdate> trainer(Adam{.rate = 1e-3}, block);
    const auto x = random_normal<X>(mesh, {8, 32, 64}, 2);
    const auto target = random_normal<X>(mesh, {8, 32, 64}, 3);
    for (int step = 0; step < 100; ++step) {
      const auto [loss, gradients] = value_and_grad([&](const DecoderBlock<Here>& weights) {
        return mean<"bse->">(square(decoder_block(weights, x) - target));
      })(block);
      trainer.step(block, gradients);
      if (env.process() == 0) fmt::print("step {:>3}: loss {:.5f}\n", step, value(loss));
    }
  });
}
