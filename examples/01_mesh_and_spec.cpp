// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 4
//
// Lesson 1: a mesh names the axes of a grid of processes, a spec says which axes split which
// dimension, and both are part of a tensor's type. You will see who owns what, and that no mesh
// changes the numbers.
#include <tessera/tessera.hpp>

using namespace tessera;

namespace grid {
struct data : Axis<> {};  // Axis<> takes its size when the program starts, Axis<4> fixes it
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
template <class... Dims>
using Tensor = ShardedTensor<float, Grid, P<Dims...>>;  // one entry for each dimension

// Equal shardings are one type, however they are spelt.
static_assert(std::is_same_v<Tensor<Axes<data>, Axes<>>, Tensor<data, _>>);

// A wrong spec does not compile, and the message says why: Tensor<data, data> names an axis twice.

struct Table {  // element (i, j) of the whole tensor, wherever it lies
  KOKKOS_FUNCTION float operator()(const GlobalIndex& at) const {
    return static_cast<float>(10 * at[0] + at[1]);
  }
};

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    const auto mesh = make_mesh<Grid>(env, 2, 2);  // the sizes multiply to the number of processes
    const auto both =
        from_function<Tensor<data, model>>(mesh, {5, 6}, Table{});  // 5 rows: blocks of 3 and 2
    const auto rows =
        from_function<Tensor<Axes<data, model>, _>>(mesh, {5, 6}, Table{});  // blocks of 2, 1, 1, 1
    const auto whole =
        from_function<Tensor<_, _>>(mesh, {5, 6}, Table{});  // each process has all of it

    if (mesh.process() == 0) {
      fmt::print(
          "Rows are blocks of the first dimension, columns of the second, cells the processes that "
          "own them.\n\n");
      fmt::print("{}\n{}\n{}\n", visualize(both), visualize(rows), visualize(whole));
      fmt::print("The mesh {} has {} processes.\n", to_string(mesh.shape(), Grid::names()),
                 mesh.processes());
    }
    print(both);  // gathered first: the same numbers, whoever owns them
    if (to_host(both) != to_host(whole) || to_host(rows) != to_host(whole))
      throw Error("a spec changed the numbers");
  });
}
