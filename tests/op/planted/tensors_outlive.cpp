// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What: tensors in statics outlive their meshes, Kokkos and MPI, and are used and made after that.
// It ends with a failure since planted programs must.
// processes: 3
// says: a tensor keeps its mesh: 10
// says: the mesh data=3 cannot be used: it is closed .at tensors_outlive.cpp:
// says: the mesh data=3 cannot be used: it is closed.all 3 have ended in order
#include <cstdio>
#include <vector>

#include <tessera/tessera.hpp>

using namespace tessera;

struct data : Axis<> {};
using Grid = Mesh<data>;
using Real = ShardedTensor<double, Grid, P<data, _>>;

static std::vector<Real> tensors;
static ProcessMesh<Grid> last_mesh;

int main(int argc, char** argv) {
  int rank = 0;
  {
    Environment env(argc, argv);
    rank = env.process();
    {
      const auto mesh = make_mesh<Grid>(env, 3);
      tensors.push_back(full<Real>(mesh, {12, 5}, 0.5));
    }
    last_mesh = make_mesh<Grid>(env, 3);  // a second mesh at the same time
    tensors.push_back(full<Real>(last_mesh, {4, 5}, 0.5));
    const double first = value(sum(tensors[0]));
    const double second = value(sum(tensors[1]));
    if (first == 30 && rank == 0) std::printf("a tensor keeps its mesh: %g\n", second);
    Kokkos::View<double**, Kokkos::LayoutRight> view("view", rank < 2 ? 2 : 0, 5);
    tensors.push_back(adopt<Real>(last_mesh, {4, 5}, view));
  }
  try {
    sum(tensors[0]);
  } catch (const UsageError& error) {
    if (rank == 0) std::puts(error.what());
  }
  try {
    zeros<Real>(last_mesh, 4, 5);
  } catch (const Error& error) {
    if (rank == 0) std::puts(error.what());
  }
  if (rank == 0) std::puts("all 3 have ended in order");
  return rank == 0 ? 1 : 0;  // a launcher may end the others with the first that fails
}
