// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 1 2
// What operators cost beside the same done in the plain way, in the same run, in turns: an epilogue
// beside separate operators, einsum_into beside einsum, gradients finished together beside one by
// one, a reshard under way beside one that is waited for at once, dot and axpy beside loops by hand
// and cblas_sdot. The figures are medians of
// alternating calls; ratios below 1 are in favour of the first.
#include <cblas.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/mpi_benchmark.hpp"

namespace {
using namespace tessera;

namespace grid {
struct data : Axis<> {};
}  // namespace grid
using grid::data;
using Line = Mesh<data>;
template <class... D> using Tensor = ShardedTensor<float, Line, P<D...>>;

/// Returns the medians of alternating calls, in microseconds; a call takes as long as it takes the
/// slowest process.
template <class First, class Second>
std::pair<double, double> medians(int rounds, const First& first, const Second& second) {
  std::vector<double> times[2];
  const auto clock = [](const auto& body) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    body();
    double seconds = MPI_Wtime() - start;
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds * 1e6;
  };
  if (tessera_bench::seconds_in_turns() >= 0) rounds = 3;
  first();
  second();
  for (int i = 0; i < rounds; ++i) {
    times[0].push_back(clock(first));
    times[1].push_back(clock(second));
  }
  for (auto& list : times) std::nth_element(list.begin(), list.begin() + rounds / 2, list.end());
  return {times[0][static_cast<std::size_t>(rounds / 2)],
          times[1][static_cast<std::size_t>(rounds / 2)]};
}

struct Report {
  int process;
  /// `what` is "first way / second way, case".
  template <class First, class Second>
  void operator()(const std::string& what, int rounds, const First& first,
                  const Second& second) const {
    const std::size_t over = what.find(" / "), comma = std::min(what.find(',', over), what.size());
    const std::string row = "products/" + what.substr(0, over) + what.substr(comma);
    if (!tessera_bench::wanted(row)) return;
    const auto times = medians(rounds, first, second);
    tessera_bench::note(row, {{"tessera", times.first * 1e-6},
                              {what.substr(over + 3, comma - over - 3), times.second * 1e-6}});
    if (process == 0)
      std::printf("%-58s %10.1f %10.1f us  %5.2f\n", what.c_str(), times.first, times.second,
                  times.first / times.second);
  }
};
}  // namespace

int main(int argc, char** argv) {
  return run_main(argc, argv, [&](Environment& env) {
    tessera_bench::start(argc, argv);
    const int n = env.world()->size();
    const auto mesh = make_mesh<Line>(env, n);
    const Report report{mesh.process()};
    if (mesh.process() == 0)
      std::printf("%-58s %10s %10s     ratio   (%d processes)\n", "first / second", "first",
                  "second", n);

    for (const Index m : {Index{64}, Index{512}, Index{2048}}) {
      const auto x = random_normal<Tensor<data, _>>(mesh, {m, 512}, 1);
      const auto w = random_normal<Tensor<_, _>>(mesh, {512, 1024}, 2, 0, 0.05);
      const auto b = random_normal<Tensor<_>>(mesh, {1024}, 3);
      const auto r = random_normal<Tensor<data, _>>(mesh, {m, 1024}, 4);
      auto y = zeros<Tensor<data, _>>(mesh, {m, 1024});
      const std::string size = " " + std::to_string(m) + "x512x1024";
      report(
          "epilogue bias+gelu+residual / operators," + size, 21,
          [&] { (void)einsum<"ik,kj->ij">(x, w, epilogue(fn::Gelu{}).bias(b).residual(r)); },
          [&] { (void)(r + gelu(einsum<"ik,kj->ij">(x, w) + b)); });
      report(
          "einsum_into / einsum," + size, 21, [&] { einsum_into<"ik,kj->ij">(y, x, w); },
          [&] { (void)einsum<"ik,kj->ij">(x, w); });
      report(
          "einsum_into with beta / einsum and an addition," + size, 21,
          [&] { einsum_into<"ik,kj->ij">(y, x, w, 1.0f, 0.5f); },
          [&] { (void)(einsum<"ik,kj->ij">(x, w) + y * 0.5f); });
    }
    for (const Index each : {Index{16}, Index{1024}, Index{65536}}) {
      std::vector<DynamicTensor> gradients;
      for (int i = 0; i < 24; ++i) {
        const auto x = random_normal<Tensor<data, _>>(mesh, {n, each}, 5);
        gradients.emplace_back(sum<"ij->j", P<_, Unreduced<Sum, data>>>(x));
      }
      report(
          "24 gradients of " + std::to_string(each) + " together / one by one", 101,
          [&] { (void)finish_together(gradients); },
          [&] {
            for (const DynamicTensor& g : gradients) (void)reshard(g, g.sharding().finished());
          });
    }
    for (const Index each : {Index{1} << 10, Index{1} << 16, Index{1} << 20, Index{1} << 23}) {
      const auto u = random_normal<Tensor<data>>(mesh, {each * n}, 9);
      const auto v = random_normal<Tensor<data>>(mesh, {each * n}, 10);
      const std::string size = " " + std::to_string(each) + " floats a process";
      volatile float sink = 0;
      const auto finish = [&](float sum) {  // as the all-reduce of a program by hand
        if (n > 1) MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        sink = sum;
      };
      const auto loop = [&] {
        const float *p = u.data(), *q = v.data();
        float sum = 0;
        for (Index i = 0; i < each; ++i) sum += p[i] * q[i];
        finish(sum);
      };
      const auto blas = [&] {
        finish(cblas_sdot(static_cast<int>(each), u.data(), 1, v.data(), 1));
      };
      report(
          "dot / a loop by hand," + size, 51, [&] { (void)dot(u, v); }, loop);
      report(
          "dot / cblas_sdot," + size, 51, [&] { (void)dot(u, v); }, blas);
      const Index rows = each / 32 * n;
      const auto a = random_normal<Tensor<data, _>>(mesh, {rows, 32}, 9);
      const auto b = random_normal<Tensor<data, _>>(mesh, {rows, 32}, 10);
      report(
          "einsum ij,ij-> / cblas_sdot," + size, 51, [&] { (void)einsum<"ij,ij->">(a, b); }, blas);
      auto y = random_normal<Tensor<data>>(mesh, {each * n}, 11);
      report(
          "axpy / a loop by hand," + size, 51, [&] { axpy(0.5f, u, y); },
          [&] {
            const float* p = u.data();
            float* q = y.data();
            for (Index i = 0; i < each; ++i) q[i] += 0.5f * p[i];
          });
    }
    const auto x = random_normal<Tensor<data, _>>(mesh, {1024, 1024}, 6);
    const auto a = random_normal<Tensor<data, _>>(mesh, {512, 512}, 7);
    const auto w = random_normal<Tensor<_, _>>(mesh, {512, 512}, 8);
    report(
        "reshard_async, a product, wait / reshard and a product", 51,
        [&] {
          auto pending = async([&] { return reshard<P<_, data>>(x); });
          (void)einsum<"ik,kj->ij">(a, w);
          (void)pending.wait();
        },
        [&] {
          (void)reshard<P<_, data>>(x);
          (void)einsum<"ik,kj->ij">(a, w);
        });
    return tessera_bench::finish();
  });
}
