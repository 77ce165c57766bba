// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Prints what operators communicate under the usual shardings, by dry runs, for the pages that
/// cmake/docs/site.py makes: a line `page|call|communication|payload|messages` for each.
#include <algorithm>
#include <string>

#include <tessera/op/halo/halo.hpp>
#include <tessera/tessera.hpp>

using namespace tessera;
namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
template <class... D> using Tensor = ShardedTensor<float, Grid, P<D...>>;
template <class... D> using Ids = ShardedTensor<std::int32_t, Grid, P<D...>>;

template <class F>
void row(const ProcessMesh<Grid>& mesh, const char* page, std::string call, const F& f) {
  Recording recording(mesh);
  (void)f();
  const ProgramSpread program = over_processes(recording.take());
  std::string text;
  for (const AxesSpread& total : program.axes) {
    text += (text.empty() ? "" : ", ") + std::string(name_of(total.collective)) + " over ";
    std::string axes;
    for (int a = 0; a < Grid::rank; ++a)
      if (total.axes.contains(a))
        axes += (axes.empty() ? "" : " and ") + std::string(Grid::names()[a]);
    text += axes;
  }
  fmt::print("{}|{}|{}|{}|{}\n", page, call, text.empty() ? "none" : text,
             detail::bytes_text(program.payload.most), program.messages.most);
}
#define ROW(page, ...) row(mesh, page, #__VA_ARGS__, [&] { return __VA_ARGS__; })

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment&) {
    const auto mesh = dry_mesh<Grid>(4, 2);
    const auto rows = zeros<Tensor<data, _>>(mesh, 4096, 4096);
    const auto columns = zeros<Tensor<_, data>>(mesh, 4096, 4096);
    const auto blocks = zeros<Tensor<data, model>>(mesh, 4096, 4096);
    const auto whole = zeros<Tensor<_, _>>(mesh, 4096, 4096);
    const auto line = zeros<Tensor<_>>(mesh, 4096);
    const auto ids = zeros<Ids<data>>(mesh, 512);
    const auto updates = zeros<Tensor<data, _>>(mesh, 512, 4096);
    const auto batch = zeros<Tensor<data, _, _, _>>(mesh, 8, 256, 256, 32);
    const auto image = zeros<Tensor<_, data, _, _>>(mesh, 8, 256, 256, 32);
    const auto kernel = zeros<Tensor<_, _, _, _>>(mesh, 3, 3, 32, 32);
    const Convolution same{.low = {1, 1}, .high = {1, 1}};
    const WindowSettings pool{.size = {1, 2, 2, 1}, .stride = {1, 2, 2, 1}};

    ROW("einsum", einsum<"ik,kj->ij">(rows, whole));
    ROW("einsum", einsum<"ik,kj->ij">(rows, rows));
    ROW("einsum", einsum<"ik,kj->ij">(columns, columns));
    ROW("einsum", einsum<"ik,kj->ij">(columns, rows));
    ROW("einsum", einsum<"ik,kj->ij", P<data, _>>(columns, rows));
    ROW("einsum", einsum<"ik,kj->ij">(blocks, blocks));
    ROW("matmul", matmul(rows, whole));
    ROW("matmul", matmul(blocks, blocks));
    ROW("dot", dot(rows, rows));
    ROW("dot", dot(rows, columns));
    ROW("arithmetic", rows + rows);
    ROW("arithmetic", rows + columns);
    ROW("arithmetic", rows * line);
    ROW("map", map(fn::Add{}, rows, columns));
    ROW("reduce", sum<"ij->i">(rows));
    ROW("reduce", sum<"ij->i">(columns));
    ROW("reduce", sum<"ij->i", P<data>>(columns));
    ROW("reduce", sum(blocks));
    ROW("variance", variance<"ij->i">(rows));
    ROW("variance", variance<"ij->i">(columns));
    ROW("statistics", norm<2, "ij->">(rows));
    ROW("statistics", log_sum_exp<"ij->i">(columns));
    ROW("arg", arg_max<"ij->i">(rows));
    ROW("arg", arg_max<"ij->i">(columns));
    ROW("softmax", softmax<"ij", 'j'>(rows));
    ROW("softmax", softmax<"ij", 'j'>(columns));
    ROW("normalize", layer_norm(rows, line, line));
    ROW("normalize", layer_norm(columns, line, line));
    ROW("cumulative", cumsum<"ij", 'j'>(rows));
    ROW("cumulative", cumsum<"ij", 'j'>(columns));
    ROW("sort", sort<"ij", 'j'>(rows));
    ROW("sort", sort<"ij", 'j'>(columns));
    ROW("top_k", top_k<"ij", 'j'>(rows, 8));
    ROW("top_k", top_k<"ij", 'j'>(columns, 8));
    ROW("reshard", reshard<P<_, _>>(rows));
    ROW("reshard", reshard<P<_, data>>(rows));
    ROW("reshard", reshard<P<data, model>>(rows));
    ROW("reshard", reshard<P<model, data>>(blocks));
    ROW("transpose", transpose<"ij->ji">(rows));
    ROW("transpose", transpose<"ij->ji", P<data, _>>(rows));
    ROW("reshape", reshape<P<data, _>>(rows, {2048, 8192}));
    ROW("reshape", reshape<P<_, data>>(rows, {2048, 8192}));
    ROW("slice", slice(rows, {1, 0}, {4096, 4096}));
    ROW("slice", slice(rows, {0, 1}, {4096, 4096}));
    ROW("pad", pad(rows, {1, 0}, {0, 0}));
    ROW("roll", roll<0>(rows, 1));
    ROW("roll", roll<1>(rows, 1));
    ROW("roll", reverse<0>(rows));
    ROW("concatenate", concatenate<0>(rows, rows));
    ROW("concatenate", concatenate<1>(rows, rows));
    ROW("take", take<0>(whole, ids));
    ROW("take", take<0>(rows, ids));
    ROW("take", take<0>(columns, ids));
    ROW("scatter", scatter<Sum, "vm,b,bm->vm">(rows, ids, updates));
    ROW("scatter", scatter<Sum, "vm,b,bm->vm">(whole, ids, updates));
    ROW("bincount", bincount<"b->v">(ids, 1000));
    ROW("convolve", convolve<nhwc>(batch, kernel, same));
    ROW("convolve", convolve<nhwc>(image, kernel, same));
    ROW("reduce_window", reduce_window<Max>(batch, pool));
    ROW("reduce_window", reduce_window<Max>(image, pool));
    ROW("halo", halo_exchange<0, 1>(blocks, 1, 1, Boundary::periodic));
    ROW("halo", halo_exchange<0>(rows, 1, 1, Boundary::none));
  });
}
