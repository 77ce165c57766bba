// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 1 4
// headers: alone
//
// Lesson 6: how data come in and go out. You will make a tensor of what one process has, save it as
// a .npy file that NumPy reads, load it under another spec, hand boxes of your own to the library,
// and draw who owns what.
#include <cstdio>
#include <fstream>
#include <numeric>

#include <tessera/tessera.hpp>

using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
template <class... Dims> using Tensor = ShardedTensor<float, Grid, P<Dims...>>;

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    const auto mesh = env.size() == 4 ? make_mesh<Grid>(env, 2, 2) : make_mesh<Grid>(env, 1, 1);
    const bool first = mesh.process() == 0;
    const Extents extents{700, 300};

    // Process 0 alone has the numbers; each process gets its block.
    std::vector<float> values(first ? 700 * 300 : 0);
    std::iota(values.begin(), values.end(), 0.0f);
    const auto x = from_root<Tensor<data, model>>(mesh, extents, 0, values);
    if (first) fmt::print("{}\n", x);  // one process's view; nobody else is asked

    // Each process writes its own piece; the file takes its name when all have written.
    const std::string path = "lesson_6_" + std::to_string(env.size()) + ".npy";
    write_npy(x, path, {.progress = progress_bar("writing", first), .extents = {}});
    const auto y = read_npy<Tensor<_, Axes<data, model>>>(mesh, path);
    if (to_host(y) != to_host(x)) throw Error("the file holds other numbers");

    // Rows that the application has cut in its own way: here the last process has most of them.
    Box mine = whole(extents);
    mine[0] = {10 * mesh.process(),
               mesh.process() + 1 == mesh.processes() ? 700 : 10 * mesh.process() + 10};
    const Kokkos::View<float**, Kokkos::LayoutRight> rows("rows", mine[0].size(), 300);
    to_irregular(y, mine, rows);
    mesh.ledger().reset();
    const auto z = from_irregular<Tensor<data, _>>(mesh, extents, mine, rows);
    std::printf("process %d sent %lld bytes to make its rows regular\n", mesh.process(),
                static_cast<long long>(mesh.ledger().payload_bytes()));
    if (to_root(z).values != values) throw Error("the rows hold other numbers");

    if (first) {
      const std::string drawing = "lesson_6_" + std::to_string(env.size()) + ".svg";
      std::ofstream(drawing) << draw_svg(y);
      fmt::print("{} is drawn in {}\n", with_names<Grid>(y.desc()), drawing);
    }
  });
}
