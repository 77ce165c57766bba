// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A small network of convolutions learns to tell pictures apart, its batch split over processes.
#include <tessera/nn.hpp>
#include <tessera/tessera.hpp>

using namespace tessera;

namespace grid {
struct data : Axis<> {};
}  // namespace grid
using grid::data;
using Grid = Mesh<data>;
template <class... Dims> using Tensor = ShardedTensor<float, Grid, P<Dims...>>;
using Images = Tensor<data, _, _, _>;  // batch, height, width, channels
using Kernel = Tensor<_, _, _, _>;     // height, width, channels in and out
using Labels = ShardedTensor<std::int32_t, Grid, P<data>>;

struct Net {
  Kernel first, second;
  Tensor<_, _> head;
  Tensor<_> bias;
  static constexpr auto fields = Fields<&Net::first, &Net::second, &Net::head, &Net::bias>{};

  /// The scores of ten classes: x is (batch, 28, 28, 1).
  Tensor<data, _> operator()(const Images& x) const {
    const Convolution same{.low = {1, 1}, .high = {1, 1}};
    const WindowSettings halves{.size = {1, 2, 2, 1}, .stride = {1, 2, 2, 1}};
    const Images one = reduce_window<Max>(relu(convolve<nhwc>(x, first, same)), halves);
    const Images two = reduce_window<Max>(relu(convolve<nhwc>(one, second, same)), halves);
    const auto pooled = mean<"bhwc->bc">(two);
    return map<"bo,o->bo">(fn::Add{}, einsum<"bc,co->bo">(pooled, head), bias);
  }
};

/// A class is how far its picture's stripes lie apart.
struct Pictures {
  Index step;
  KOKKOS_FUNCTION float operator()(const GlobalIndex& at) const {
    const Index apart = 1 + (at[0] + step) % 10;
    return (at[1] + at[2]) % (2 * apart) < apart ? 1.0f : -1.0f;
  }
};
struct Classes {
  Index step;
  KOKKOS_FUNCTION std::int32_t operator()(const GlobalIndex& at) const {
    return static_cast<std::int32_t>((at[0] + step) % 10);
  }
};

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    const auto mesh = make_mesh<Grid>(env, env.size());
    Net net{random_normal<Kernel>(mesh, {3, 3, 1, 8}, 1, 0, 0.3),
            random_normal<Kernel>(mesh, {3, 3, 8, 16}, 2, 0, 0.1),
            random_normal<Tensor<_, _>>(mesh, {16, 10}, 3, 0, 0.2), zeros<Tensor<_>>(mesh, 10)};
    Optimizer<Adam, ReplicatedUpdate> trainer(Adam{.rate = 1e-2}, net);
    for (Index step = 0; step < 200; ++step) {
      const auto x = from_function<Images>(mesh, {64, 28, 28, 1}, Pictures{step});
      const auto labels = from_function<Labels>(mesh, {64}, Classes{step});
      const auto [loss, gradients] = value_and_grad(
          [&](const Net& weights) { return mean(cross_entropy(weights(x), labels)); })(net);
      trainer.step(net, gradients);
      if (step % 20 == 0) fmt::print("step {:>4}: loss {:.4f}\n", step, value(loss));
    }
  });
}
