// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Prints what operators communicate under the usual shardings, by dry runs, for the pages that
/// cmake/docs/site.py makes: a line `page|call|communication|payload|messages` for each, and then
/// `|communication|payload` of the gradients.
#include <string>
#include <type_traits>

#include <tessera/grad.hpp>
#include <tessera/op/halo/halo.hpp>
#include <tessera/tessera.hpp>

using namespace tessera;
namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
struct everyone : Axis<> {};
}  // namespace grid
using grid::data, grid::model, grid::everyone;
using Grid = Mesh<data, model>;
template <class... D> using Tensor = ShardedTensor<float, Grid, P<D...>>;
template <class... D> using Ids = ShardedTensor<std::int32_t, Grid, P<D...>>;

struct SumAndProduct {
  KOKKOS_FUNCTION auto operator()(float x, float y) const { return several(x + y, x * y); }
};

/// Returns "all-gather over data, ...", or "none".
std::string communication_of(const ProgramSpread& program) {
  std::string text;
  for (const AxesSpread& total : program.axes) {
    text += (text.empty() ? "" : ", ") + std::string(name_of(total.collective)) + " over ";
    std::string axes;
    for (int a = 0; a < Grid::rank; ++a)
      if (total.axes.contains(a))
        axes += (axes.empty() ? "" : " and ") + std::string(Grid::names()[a]);
    text += axes;
  }
  return text.empty() ? "none" : text;
}

/// Calls f, and returns the tensor that is differentiated of what it returns, if any.
template <class F> auto differentiated(const F& f) {
  if constexpr (std::is_void_v<decltype(f())>)
    return 0;
  else if constexpr (requires { f().values; })
    return f().values;
  else
    return f();
}

/// Returns "communication|payload" of the gradients of all operands, from that of the result.
template <class F, class... Operand>
std::string gradients_of(const ProcessMesh<Grid>& mesh, const F& f, const Operand&... operands) {
  using Result = decltype(differentiated(f));
  if constexpr (!TypedTensor<Result> || requires(const Result& y) { y.interior(); }) {
    return "|";  // several tensors, or one with a halo
  } else if constexpr (!RealElement<typename Result::value_type> &&
                       !ComplexElement<typename Result::value_type>) {
    return "no floats|";
  } else {
    detail::Differentiation run(Where::here());
    (run.follow(operands), ...);
    try {
      const Result y = run.forward([&] { return differentiated(f); });
      const Result cotangent = ones_like(y);
      Recording recording(mesh);
      run.back(y, cotangent);
      const ProgramSpread program = over_processes(recording.take());
      return communication_of(program) + "|" + detail::bytes_text(program.payload.most);
    } catch (const UsageError& error) {
      const bool none = std::string_view(error.what()).find(" has no ") != std::string_view::npos;
      if (!none) throw;
      return "none yet|";
    }
  }
}

/// Prints a line; `operands` are the tensors of floats that calls may have.
template <class F, class... Operand>
void row(const ProcessMesh<Grid>& mesh, const char* page, const char* call, const F& f,
         const Operand&... operands) {
  Recording recording(mesh);
  (void)f();
  const ProgramSpread program = over_processes(recording.take());
  fmt::print("{}|{}|{}|{}|{}|{}\n", page, call, communication_of(program),
             detail::bytes_text(program.payload.most), program.messages.most,
             gradients_of(mesh, f, operands...));
}
#define ROW(page, ...)                                                                           \
  row(                                                                                           \
      mesh, page, #__VA_ARGS__, [&] { return __VA_ARGS__; }, rows, columns, blocks, whole, line, \
      cut, updates, batch, image, kernel)

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment&) {
    const auto mesh = dry_mesh<Grid>(4, 2);
    const auto rows = zeros<Tensor<data, _>>(mesh, 4096, 4096);
    const auto columns = zeros<Tensor<_, data>>(mesh, 4096, 4096);
    const auto blocks = zeros<Tensor<data, model>>(mesh, 4096, 4096);
    const auto whole = zeros<Tensor<_, _>>(mesh, 4096, 4096);
    const auto line = zeros<Tensor<_>>(mesh, 4096);
    const auto cut = zeros<Tensor<data>>(mesh, 4096);
    const auto places = zeros<Ids<data, _>>(mesh, 4096, 8);
    const auto other_mesh = dry_mesh<Mesh<everyone>>(8);
    auto target = zeros<Tensor<data, _>>(mesh, 4096, 4096);
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
    ROW("statistics", logsumexp<"ij->i">(columns));
    ROW("arg", argmax<"ij->i">(rows));
    ROW("arg", argmax<"ij->i">(columns));
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
    ROW("matmul", matmul(columns, rows));
    ROW("epilogue", einsum<"ik,kj->ij">(rows, whole, epilogue(fn::Gelu{}).bias(line)));
    ROW("map", map<"ij,i->ij">(fn::Multiply{}, rows, cut));
    ROW("cast", cast<double>(rows));
    ROW("functions", gelu(rows));
    ROW("comparison", rows < columns);
    ROW("comparison", where(rows > 0.0f, rows, columns));
    ROW("logic", logical_and(rows > 0.0f, columns > 0.0f));
    ROW("complex", make_complex(rows, columns));
    ROW("deterministic", sum<"ij->i">(rows, deterministic));
    ROW("deterministic", sum<"ij->i">(columns, deterministic));
    ROW("associative_scan", associative_scan<"ij", 'j'>(fn::Add{}, 0, rows));
    ROW("associative_scan", associative_scan<"ij", 'j'>(fn::Add{}, 0, columns));
    ROW("broadcast", broadcast_to<P<data, _>>(line, {4096, 4096}));
    ROW("broadcast", broadcast_to<P<data, _>>(cut, {4096, 4096}));
    ROW("dimensions", expand_dims<0>(rows));
    ROW("dimensions", stack<0>(rows, columns));
    ROW("dimensions", flip<0>(rows));
    ROW("tensor_slice", concatenate<0>(slice_of<0>(rows, {4095}, {4096}), rows));
    ROW("triangle", tril(rows));
    ROW("take_along_axis", take_along_axis<"ij", 'j'>(rows, places));
    ROW("take_along_axis", take_along_axis<"ij", 'j'>(columns, places));
    ROW("one_hot", one_hot<float, "bv", 'v'>(ids, 1000));
    ROW("histogram", histogram<"ij->v">(rows, 64, -4.0, 4.0));
    ROW("dynamic_slice", dynamic_slice<"ij", 'j'>(rows, {7}, {512}));
    ROW("dynamic_slice", dynamic_slice<"ij", 'i'>(rows, {7}, {512}));
    ROW("dynamic_slice", dynamic_update_slice<"ij", 'i'>(rows, updates, {7}));
    ROW("together", finish_together(sum<"ij->i", P<_, Unreduced<Sum, data>>>(columns),
                                    sum<"ij->j", P<_, Unreduced<Sum, data>>>(rows)));
    ROW("map_several", map_several(SumAndProduct{}, rows, columns));
    ROW("in_place", target += columns);
    ROW("into", into(target, [&] { return rows + columns; }));
    ROW("between",
        reshard<ShardedTensor<float, Mesh<everyone>, P<everyone, _>>>(blocks, other_mesh));
    ROW("create", random_normal<Tensor<data, _>>(mesh, {4096, 4096}, 7));
    ROW("create_like", zeros_like(rows));
    ROW("sequences", arange<Tensor<data>>(mesh, 0, 4096));
  });
}
