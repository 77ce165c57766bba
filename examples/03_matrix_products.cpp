// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 8
//
// Lesson 3: a product of two split matrices. You will see the four cases of the article "Tensor
// Parallelism with jax.pjit" (A is 4 x 16, B is 16 x 4, the mesh 2 x 4): what each communicates,
// and how much of its work several processes do alike. On another number of processes the plans are
// printed, and nothing is run.
#include <tessera/tessera.hpp>

using namespace tessera;

namespace grid {
struct x : Axis<> {};
struct y : Axis<> {};
}  // namespace grid
using grid::x, grid::y;
using Grid = Mesh<x, y>;
template <class... Dims> using Tensor = ShardedTensor<float, Grid, P<Dims...>>;

/// Prints what "ik,kj->ij" does on a 2 x 4 mesh, and runs it where there are 8 processes.
template <class Out, class A, class B> void show(const char* name, Environment& env) {
  const auto product = [](const A& a, const B& b) { return einsum<"ik,kj->ij", Out>(a, b); };
  const Program program = plan(product)(like<A>(4, 16), like<B>(16, 4), sizes<Grid>(2, 4));
  if (env.process() == 0) {
    fmt::print("{}\n{}", name, with_names<Grid>(*program.entries()[0].plan));
    fmt::print(
        "  the whole product is 512 flop, this process's part {}, of which {} flop are done by "
        "others too\n\n",
        program.flops(), program.duplicated_flops());
  }
  if (env.size() != 8) return;

  const auto mesh = make_mesh<Grid>(env, 2, 4);
  const auto a = random_uniform<A>(mesh, {4, 16}, 1);
  const auto b = random_uniform<B>(mesh, {16, 4}, 2);
  const auto c = to_host(product(a, b));
  const auto whole_a = to_host(a), whole_b = to_host(b);
  for (Index i = 0; i < 4; ++i)
    for (Index j = 0; j < 4; ++j) {
      float sum = 0;
      for (Index k = 0; k < 16; ++k) sum += whole_a(i, k) * whole_b(k, j);
      if (!(std::abs(c(i, j) - sum) <= 1e-5f)) throw Error("the product is wrong");
    }
}

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    show<P<_, _>, Tensor<_, y>, Tensor<y, _>>(
        "Case 1A: the inner dimensions are split alike; the products are summed", env);
    show<P<_, _>, Tensor<_, y>, Tensor<x, _>>(
        "Case 1B: the inner dimensions are split by different axes", env);
    show<P<x, _>, Tensor<x, y>, Tensor<x, _>>("Case 2: an outer dimension is split as well", env);
    show<P<x, y>, Tensor<x, y>, Tensor<x, y>>(
        "Full sharding: both outer dimensions are split, and nothing is done twice", env);
  });
}
