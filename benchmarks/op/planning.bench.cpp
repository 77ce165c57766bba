// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 1
// What planning costs: a new plan of a product of two tensors on a mesh of three axes, from the
// planner alone; products, convolutions and scatters between random shardings, beside the same
// without letters that an axis splits in no tensor; a layer on 4096 processes, each one's numbers
// told from one plan and all calls compared, beside planning anew for each process; finding a plan
// that is known; and a whole operator on tiny tensors beside the bare BLAS call on the same data.
#include <cblas.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/mpi_benchmark.hpp"

namespace {
using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
struct expert : Axis<> {};
}  // namespace grid
using grid::data, grid::model, grid::expert;
using Grid = Mesh<data, model, expert>;

void uncached(benchmark::State& state) {
  const MeshShape mesh{2, 2, 2};
  const Terms terms = parse("bsm,mh->bsh");
  TensorDesc x{DType::f32, {64, 64, 64}, Sharding{{0}, {2}, {1}}};
  const TensorDesc w{DType::f32, {64, 64}, Sharding{{0, 2}, {1}}};
  const Sharding out = detail::deduce(terms, {x.sharding, w.sharding});
  for (auto unused : state) {
    (void)unused;
    x.extents[0] = 64 + (x.extents[0] & 7);
    benchmark::DoNotOptimize(detail::plan_einsum(terms, x, w, out, mesh, 0, {}));
  }
}
BENCHMARK(uncached)->Name("plan/einsum of 3 axes, uncached/tessera");

/// The shardings that take longest of all that use each axis at most once.
void dearest(benchmark::State& state) {
  const MeshShape mesh{2, 2, 2};
  const Terms terms = parse("bsm,mh->bsh");
  TensorDesc x{DType::f32, {64, 64, 64}, Sharding{{0, 2}, {}, {1}}};
  const TensorDesc w{DType::f32, {64, 64}, Sharding{{0, 2}, {1}}};
  for (auto unused : state) {
    (void)unused;
    x.extents[0] = 64 + (x.extents[0] & 7);
    benchmark::DoNotOptimize(
        detail::plan_einsum(terms, x, w, Sharding{{1}, {}, {0, 2}}, mesh, 0, {}));
  }
}
BENCHMARK(dearest)->Name("plan/einsum of 3 axes, a dear case/tessera");

using Planned = std::function<void(const PlanOptions&)>;

/// Operators on tensors each of whose shardings is random: an axis splits one of the dimensions, or
/// none.
struct RandomShardings {
  MeshShape mesh;
  std::mt19937 bits{20};

  int below(int n) { return static_cast<int>(bits() % static_cast<unsigned>(n)); }
  TensorDesc tensor(const Extents& extents) {
    Sharding sharding = Sharding::replicated(extents.size());
    for (int axis = 0; axis < mesh.rank(); ++axis)
      if (const int d = below(extents.size() + 1); d < extents.size()) sharding[d].push_back(axis);
    return {DType::f32, extents, sharding};
  }
  Planned product() {
    const TensorDesc x = tensor({64, 128, 96}), w = tensor({96, 80}), y = tensor({64, 128, 80});
    return [=, on = mesh](const PlanOptions& options) {
      benchmark::DoNotOptimize(
          detail::plan_einsum(parse("bsm,mh->bsh"), x, w, y.sharding, on, 0, options));
    };
  }
  Planned convolution() {
    const TensorDesc x = tensor({8, 40, 40, 16}), k = tensor({3, 3, 16, 32}),
                     y = tensor({8, 40, 40, 32});
    return [=, on = mesh](const PlanOptions& options) {
      const Terms terms = parse("bhwi,hwio->bhwo");
      const auto shape = detail::shape_of(Convolution{}, detail::parts_of(terms), k.extents);
      benchmark::DoNotOptimize(
          detail::plan_convolve(terms, shape, x, k, y.sharding, on, 0, options));
    };
  }
  Planned scatter() {
    TensorDesc rows = tensor({64, 32});
    rows.type = DType::i64;
    const TensorDesc table = tensor({500, 96}), updates = tensor({64, 32, 96}),
                     y = tensor({500, 96});
    return [=, on = mesh](const PlanOptions& options) {
      benchmark::DoNotOptimize(detail::plan_scatter(parse("vm,bs,bsm->vm"), Reduction::sum,
                                                    {table, rows, updates}, {}, OutOfRange::drop,
                                                    y.sharding, on, 0, options, false));
    };
  }
};

void between_random_shardings(const std::string& kind, Planned (RandomShardings::*made)()) {
  for (const MeshShape& mesh : {MeshShape{2, 4}, {64, 64}, {2, 2, 2}, {4096}})
    for (const bool freed : {true, false}) {
      RandomShardings random{mesh};
      std::vector<Planned> all;
      for (int i = 0; i < 256; ++i) all.push_back((random.*made)());
      std::string name = "plan/" + kind + " between random shardings, ";
      for (int axis = 0; axis < mesh.rank(); ++axis)
        name += (axis > 0 ? " x " : "") + std::to_string(mesh[axis]);
      name += freed ? "/tessera" : "/without free letters";
      benchmark::RegisterBenchmark(name.c_str(), [all, freed](benchmark::State& state) {
        PlanOptions options;
        options.free_choice = freed;
        std::size_t next = 0;
        for (auto unused : state) {
          (void)unused;
          all[next++ % all.size()](options);
        }
      });
    }
}

/// The products of GSPMD's "2D finalized" feed-forward layer, forward and backward.
Program layer(const MeshShape& mesh, int process) {
  const TensorDesc x{DType::f32, {512, 512, 5120}, Sharding{{0}, {}, {1}}};
  const TensorDesc h{DType::f32, {512, 512, 20480}, Sharding{{0}, {}, {1}}};
  const TensorDesc w_in{DType::f32, {5120, 20480}, Sharding{{0}, {1}}};
  const TensorDesc w_out{DType::f32, {20480, 5120}, Sharding{{1}, {0}}};
  Program p;
  p.mesh = mesh;
  p.process = process;
  const auto run = [&](const char* equation, const TensorDesc& a, const TensorDesc& b,
                       const TensorDesc& out) {
    p.record({std::make_shared<const Plan>(
                  detail::plan_einsum(parse(equation), a, b, out.sharding, mesh, process)),
              equation,
              {},
              0});
  };
  run("bsm,mh->bsh", x, w_in, h);
  run("bsh,hm->bsm", h, w_out, x);
  run("bsm,hm->bsh", x, w_out, h);
  run("bsh,bsm->hm", h, x, w_out);
  run("bsh,mh->bsm", h, w_in, x);
  run("bsm,bsh->mh", x, h, w_in);
  return p;
}
void simulated(benchmark::State& state) {
  for (auto unused : state) {
    (void)unused;
    const Simulation s = simulate(layer(MeshShape{64, 64}, 0));
    if (!s.fault.empty()) throw Error(s.fault);
  }
}
BENCHMARK(simulated)
    ->Name("plan/feed-forward layer on 64 x 64, simulated with all calls/tessera")
    ->Unit(benchmark::kMillisecond);
void told(benchmark::State& state) {
  for (auto unused : state) {
    (void)unused;
    const Program p = layer(MeshShape{64, 64}, 0);
    for (const ProgramEntry& e : p.entries()) benchmark::DoNotOptimize(over_processes(*e.plan));
  }
}
BENCHMARK(told)
    ->Name("plan/feed-forward layer on 64 x 64, told from one/tessera")
    ->Unit(benchmark::kMillisecond);
void planned_anew(benchmark::State& state) {
  for (auto unused : state) {
    (void)unused;
    for (int process = 0; process < 4096; ++process)
      benchmark::DoNotOptimize(layer(MeshShape{64, 64}, process));
  }
}
BENCHMARK(planned_anew)
    ->Name("plan/feed-forward layer on 64 x 64, planned on each/tessera")
    ->Unit(benchmark::kMillisecond);

/// One process is enough: the mesh is one of 1 x 1 x 1.
struct Tiny {
  ProcessMesh<Grid> mesh;
  ShardedTensor<float, Grid, P<data, _>> a;
  ShardedTensor<float, Grid, P<_, model>> b;
  explicit Tiny(Environment& env)
      : mesh(make_mesh<Grid>(env, 1, 1, 1)),
        a(random_normal<decltype(a)>(mesh, {8, 8}, 1)),
        b(random_normal<decltype(b)>(mesh, {8, 8}, 2)) {}
};
}  // namespace

int main(int argc, char** argv) {
  Environment env(argc, argv);
  tessera_bench::start(argc, argv);
  between_random_shardings("a product", &RandomShardings::product);
  between_random_shardings("a convolution", &RandomShardings::convolution);
  between_random_shardings("a scatter", &RandomShardings::scatter);
  const auto tiny = std::make_shared<Tiny>(env);
  benchmark::RegisterBenchmark(
      "plan/einsum, found in the cache/tessera", [tiny](benchmark::State& state) {
        const ops::Einsum product{parse("ik,kj->ij"), decltype(tiny->a)::sharding()};
        MeshCore& mesh = *tiny->mesh.core();
        const detail::OperandList operands{&tiny->a.core(), &tiny->b.core()};
        const PlanOptions options;
        for (auto unused : state) {
          (void)unused;
          const detail::PlanQuery query(product, operands, Destination::fresh, Contract{});
          benchmark::DoNotOptimize(&detail::prepare(mesh, query, [&] {
            return std::make_shared<const Plan>(
                product.plan(detail::descs_of(operands), {mesh.shape(), 0, options}));
          }));
        }
      });
  benchmark::RegisterBenchmark("plan/einsum 8x8x8/tessera", [tiny](benchmark::State& state) {
    for (auto unused : state) {
      (void)unused;
      benchmark::DoNotOptimize(einsum<"ik,kj->ij">(tiny->a, tiny->b));
    }
  });
  benchmark::RegisterBenchmark(
      "plan/einsum 8x8x8/bare cblas_sgemm", [tiny](benchmark::State& state) {
        float c[64];
        for (auto unused : state) {
          (void)unused;
          cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 8, 8, 8, 1.0F, tiny->a.data(), 8,
                      tiny->b.data(), 8, 0.0F, c, 8);
          benchmark::DoNotOptimize(c);
        }
      });
  return tessera_bench::finish();
}
