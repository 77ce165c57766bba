// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// One sharded product, on as many processes as there are: what uses MPI, Kokkos and BLAS of the
/// package.
#include <tessera/tessera.hpp>

namespace grid {
struct model : tessera::Axis<> {};
}  // namespace grid

using namespace tessera;
using grid::model;
using Grid = Mesh<model>;
template <class... Dims> using Tensor = ShardedTensor<double, Grid, P<Dims...>>;

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    const auto mesh = make_mesh<Grid>(env, env.size());
    const auto x = full<Tensor<_, model>>(mesh, {3, 10}, 2.0);
    const auto w = full<Tensor<model, _>>(mesh, {10, 5}, 0.5);
    const double total = value(sum(einsum<"ik,kj->ij">(x, w)));
    if (total != 150.0)
      throw Error("the sum of the product is " + std::to_string(total) + ", not 150");
  });
}
