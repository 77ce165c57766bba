// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: the user finalizes Kokkos while tensors and meshes, one with an adopted View, are alive.
// It ends with a failure since planted programs must.
// processes: 2
// says: the mesh data=2 cannot be used: it was closed when Kokkos was finalized
// says: .at kokkos_finalized.cpp:
// says: all were released
#include <cstdio>

#include <Kokkos_Core.hpp>

#include <tessera/tessera.hpp>

using namespace tessera;

struct data : Axis<> {};
using Grid = Mesh<data>;
using Real = ShardedTensor<float, Grid, P<data, _>>;

int main(int argc, char** argv) {
  Kokkos::initialize(argc, argv);
  Environment env(argc, argv);
  {
    const auto mesh = make_mesh<Grid>(env, 2);
    const auto x = zeros<Real>(mesh, 40, 7);
    Real adopted;
    {
      Kokkos::View<float**, Kokkos::LayoutRight> view("view", 20, 7);
      adopted = adopt<Real>(mesh, {40, 7}, view);
    }
    const auto y = einsum<"ik,jk->ij">(x, replicate(adopted));
    Kokkos::finalize();
    try {
      exp(y);
    } catch (const UsageError& error) {
      if (env.process() == 0) std::puts(error.what());
    }
  }
  if (env.process() == 0) std::puts("all were released");
  return env.process() == 0 ? 1 : 0;  // a launcher may end the others with the first that fails
}
