// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 1
// What an elementwise operator costs beside the bare Kokkos::parallel_for on the same memory: from
// one element, where it is all overhead, to a million, where it is none.
#include <memory>
#include <string>

#include <tessera/tessera.hpp>

#include "support/mpi_benchmark.hpp"

namespace {
using namespace tessera;

namespace grid {
struct data : Axis<> {};
}  // namespace grid
using Grid = Mesh<grid::data>;
using Vector = ShardedTensor<float, Grid, P<grid::data>>;

struct MultiplyAdd {
  KOKKOS_FUNCTION float operator()(float a, float b, float c) const { return a * b + c; }
};
struct BareAdd {
  const float* a;
  const float* b;
  float* out;
  KOKKOS_FUNCTION void operator()(Index i) const { out[i] = a[i] + b[i]; }
};
struct BareMultiplyAdd {
  const float* a;
  const float* b;
  const float* c;
  float* out;
  KOKKOS_FUNCTION void operator()(Index i) const { out[i] = a[i] * b[i] + c[i]; }
};
using Range = Kokkos::RangePolicy<Kokkos::DefaultExecutionSpace, Kokkos::IndexType<Index>>;

struct Operands {
  Vector a, b, c, out;
  Operands(const ProcessMesh<Grid>& mesh, Index n)
      : a(random_normal<Vector>(mesh, {n}, 1)),
        b(random_normal<Vector>(mesh, {n}, 2)),
        c(random_normal<Vector>(mesh, {n}, 3)),
        out(zeros<Vector>(mesh, n)) {}
};

template <class Body> void row(const std::string& name, const Body& body) {
  benchmark::RegisterBenchmark(name.c_str(), [body](benchmark::State& state) {
    for (auto unused : state) {
      (void)unused;
      body();
    }
  });
}
}  // namespace

int main(int argc, char** argv) {
  Environment env(argc, argv);
  tessera_bench::start(argc, argv);
  const auto mesh = make_mesh<Grid>(env, 1);
  for (const Index n : {Index{1}, Index{64}, Index{1024}, Index{65536}, Index{1} << 20}) {
    const auto x = std::make_shared<Operands>(mesh, n);
    const std::string size = ", n = " + std::to_string(n);
    row("map/a + b" + size + "/tessera", [x] { benchmark::DoNotOptimize((x->a + x->b).data()); });
    row("map/a + b" + size + "/tessera, into a tensor",
        [x] { map_into(x->out, fn::Add{}, x->a, x->b); });
    row("map/a + b" + size + "/bare parallel_for", [x, n] {
      Kokkos::parallel_for("add", Range(0, n), BareAdd{x->a.data(), x->b.data(), x->out.data()});
      Kokkos::fence();
    });
    row("map/map(a * b + c)" + size + "/tessera",
        [x] { benchmark::DoNotOptimize(map(MultiplyAdd{}, x->a, x->b, x->c).data()); });
    row("map/map(a * b + c)" + size + "/bare parallel_for", [x, n] {
      Kokkos::parallel_for("multiply and add", Range(0, n),
                           BareMultiplyAdd{x->a.data(), x->b.data(), x->c.data(), x->out.data()});
      Kokkos::fence();
    });
  }
  return tessera_bench::finish();
}
