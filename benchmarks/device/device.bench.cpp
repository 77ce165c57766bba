// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 1
// Operators on one device, beside what the device can do: the rate of a copy, and the products of
// its own library. benchmarks/device/peers.py measures the same rows in PyTorch and JAX.
//
// A time is the median of groups of calls with one fence at the end of each, so that launches
// overlap with kernels as they do in a program. Where kernels run on the host, sizes are small: the
// program can then be tried, and its figures mean nothing.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>

#include <tessera/tessera.hpp>

#include "support/turns.hpp"

namespace {
using namespace tessera;

namespace grid {
struct all : Axis<1> {};
}  // namespace grid
using grid::all;
using Grid = Mesh<all>;
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;
template <class T> using Vector = Tensor<T, _>;
template <class T> using Matrix = Tensor<T, _, _>;
template <class T> using Images = Tensor<T, _, _, _, _>;

constexpr Index scaled(Index large, Index small) { return kernels_on_host ? small : large; }

/// Returns the seconds of a call.
double time_of(const std::function<void()>& call) {
  const auto group = [&](int calls) {
    for (int i = 0; i < calls; ++i) call();
    Kokkos::fence();
  };
  group(3);
  const double once = tessera_bench::in_turns({[&] { group(1); }}, {.seconds = 0, .least = 3})[0];
  const int calls = static_cast<int>(std::clamp(2e-3 / once, 1.0, 64.0));
  return tessera_bench::in_turns({[&] { group(calls); }}, {.seconds = 0.03, .least = 5})[0] / calls;
}

/// What a call must move or multiply.
struct Needs {
  double bytes = 0;
  double flops = 0;
};

/// The bytes a second of a copy, those read and those written.
double copy_rate() {
  static const double rate = [] {
    const Index n = scaled(Index{1} << 29, Index{1} << 22);
    Kokkos::View<char*> from("from", n), to("to", n);
    Kokkos::deep_copy(from, 1);
    return 2.0 * static_cast<double>(n) /
           time_of([&] { Kokkos::deep_copy(KernelSpace(), to, from); });
  }();
  return rate;
}

void row(const std::string& name, const Needs& needs, const std::function<void()>& call) {
  if (!tessera_bench::wanted("device/" + name)) return;
  try {
    const double time = time_of(call);
    tessera_bench::note("device/" + name, {{"tessera", time}});
    std::printf("%s\t%.6f\t", name.c_str(), time * 1e3);
    if (needs.flops > 0) std::printf("%.1f TFLOP/s", needs.flops / time * 1e-12);
    if (needs.bytes > 0) std::printf("%.2f of a copy", needs.bytes / time / copy_rate());
    std::printf("\n");
  } catch (const std::exception& error) {
    std::printf("%s\tfails: %s\n", name.c_str(), error.what());
  }
  std::fflush(stdout);
}

struct Places {
  Index n;
  KOKKOS_FUNCTION std::int32_t operator()(const GlobalIndex& i) const {
    return static_cast<std::int32_t>(i.linear() * 2654435761 % n);
  }
};

template <class X> X numbers(const ProcessMesh<Grid>& mesh, const Extents& extents, int seed = 1) {
  return random_normal<X>(mesh, extents, static_cast<std::uint64_t>(seed));
}
template <class X> double bytes_of(const X& x) {
  return static_cast<double>(x.size()) * sizeof(typename X::value_type);
}

template <class T> void products(const ProcessMesh<Grid>& mesh, const std::string& type) {
  for (const Index n : {scaled(1024, 64), scaled(8192, 96)}) {
    const auto a = numbers<Matrix<T>>(mesh, {n, n}), b = numbers<Matrix<T>>(mesh, {n, n}, 2);
    auto c = zeros_like(a);
    const double flops = 2.0 * static_cast<double>(n) * static_cast<double>(n * n);
    row("product of " + std::to_string(n) + "^3, " + type, {.flops = flops},
        [&] { einsum_into<"ik,kj->ij">(c, a, b); });
  }
}

template <class T> void rows(const ProcessMesh<Grid>& mesh, const std::string& type) {
  const Index m = scaled(16384, 64), n = scaled(4096, 32);
  const auto x = numbers<Matrix<T>>(mesh, {m, n}), z = numbers<Matrix<T>>(mesh, {m, n}, 2);
  const auto line = numbers<Vector<T>>(mesh, {n}, 3);
  auto y = zeros_like(x);
  const double size = bytes_of(x);
  row("add, " + type, {.bytes = 3 * size}, [&] { map_into(y, fn::Add{}, x, z); });
  row("gelu, " + type, {.bytes = 2 * size}, [&] { map_into(y, fn::Gelu{}, x); });
  row("exp, " + type, {.bytes = 2 * size}, [&] { map_into(y, fn::Exp{}, x); });
  row("add a row, " + type, {.bytes = 2 * size}, [&] { map_into(y, fn::Add{}, x, line); });
  row("transpose, " + type, {.bytes = 2 * size}, [&] { (void)transpose<"ij->ji">(x); });
  row("sum of rows, " + type, {.bytes = size}, [&] { (void)sum<"ij->i">(x); });
  row("sum of columns, " + type, {.bytes = size}, [&] { (void)sum<"ij->j">(x); });
  row("sum of all, " + type, {.bytes = size}, [&] { (void)reduce<Sum, "ij->">(x); });
  row("max of rows, " + type, {.bytes = size}, [&] { (void)max<"ij->i">(x); });
  row("arg-max of rows, " + type, {.bytes = size}, [&] { (void)argmax<"ij->i">(x); });
  row("running sum of rows, " + type, {.bytes = 2 * size}, [&] { (void)cumsum<"ij", 'j'>(x); });
  row("softmax of rows, " + type, {.bytes = 2 * size}, [&] { (void)softmax<"ij", 'j'>(x); });
  row("layer norm, " + type, {.bytes = 2 * size}, [&] { (void)layer_norm(x, line, line); });
  row("variance of rows, " + type, {.bytes = size}, [&] { (void)variance<"ij->i">(x); });
}

void indexed(const ProcessMesh<Grid>& mesh) {
  const Index words = scaled(50000, 50), width = scaled(1024, 8), taken = scaled(65536, 64);
  auto table = numbers<Matrix<float>>(mesh, {words, width});
  const auto places = from_function<Vector<std::int32_t>>(mesh, {taken}, Places{words});
  auto some = take<"vm,b->bm">(table, places);
  row("take rows, float", {.bytes = 2 * bytes_of(some)},
      [&] { (void)take<"vm,b->bm">(table, places); });
  row("scatter-add rows, float", {.bytes = 3 * bytes_of(some)},
      [&] { scatter_into<Sum, "vm,b,bm->vm">(table, places, some); });
  const auto keys = numbers<Vector<float>>(mesh, {scaled(Index{1} << 24, 4096)});
  row("sort, 2^24 floats", {.bytes = 2 * bytes_of(keys)},
      [&] { (void)tessera::sort<"i", 'i'>(keys); });
  const auto lines = numbers<Matrix<float>>(mesh, {scaled(4096, 16), scaled(4096, 64)});
  row("sort of rows, float", {.bytes = 2 * bytes_of(lines)},
      [&] { (void)tessera::sort<"ij", 'j'>(lines); });
  row("top 16 of rows, float", {.bytes = bytes_of(lines)},
      [&] { (void)top_k<"ij", 'j'>(lines, 16); });
}

template <class T> void convolutions(const ProcessMesh<Grid>& mesh, const std::string& type) {
  const Index batch = scaled(32, 1), side = scaled(64, 8), features = scaled(256, 4);
  const auto x = numbers<Images<T>>(mesh, {batch, side, side, features});
  const auto w = numbers<Images<T>>(mesh, {3, 3, features, features}, 2);
  Convolution settings;
  settings.low = settings.high = {1, 1};
  const double flops = 18.0 * static_cast<double>(x.size()) * static_cast<double>(features);
  row("convolution, " + type, {.flops = flops}, [&] { (void)convolve<nhwc>(x, w, settings); });
  row("convolution, gradient by data, " + type, {.flops = flops},
      [&] { (void)convolve_input_gradient<nhwc>(x, w, x.extents(), settings); });
  row("convolution, gradient by kernel, " + type, {.flops = flops},
      [&] { (void)convolve_kernel_gradient<nhwc>(x, x, w.extents(), settings); });
}

void overhead(const ProcessMesh<Grid>& mesh) {
  const auto x = numbers<Vector<float>>(mesh, {16});
  auto y = zeros_like(x);
  row("an operator of 16 floats, into", {}, [&] { map_into(y, fn::Add{}, x, x); });
  row("an operator of 16 floats, new", {}, [&] { (void)(x + x); });
  const auto a = numbers<Matrix<float>>(mesh, {16, 16});
  row("a product of 16^3, new", {}, [&] { (void)einsum<"ik,kj->ij">(a, a); });
}

}  // namespace

int main(int argc, char** argv) {
  Environment env(argc, argv);
  tessera_bench::start(argc, argv);
  tessera_bench::print_context();
  const auto mesh = make_mesh<Grid>(env, 1);
  std::printf("copy\t%.1f GB/s\n", copy_rate() * 1e-9);
  overhead(mesh);
  products<float>(mesh, "float");
  products<double>(mesh, "double");
  products<bfloat16>(mesh, "bfloat16");
  products<tessera::half>(mesh, "half");
  rows<float>(mesh, "float");
  rows<bfloat16>(mesh, "bfloat16");
  indexed(mesh);
  convolutions<float>(mesh, "float");
  convolutions<bfloat16>(mesh, "bfloat16");
  return tessera_bench::finish();
}
