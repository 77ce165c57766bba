// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 2 4
// Products of matrices under their usual shardings, in turns with the same by hand with MPI and
// BLAS, with ScaLAPACK where it was found, and with each process's local product alone: the best of
// BLAS, BLIS and oneDNN, while all processes compute. The last column is that product's time over
// Tessera's. Then ikjl,lakb->iajb of 48^4 floats, beside the matrix product that it comes to.
// On 2 processes: meshes 2 x 1 and 1 x 2; on 4: 2 x 2. Times are medians. products_peers.py
// measures JAX and PyTorch on the same.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/kernel/product/gemm.hpp>
#include <tessera/tessera.hpp>

#include "support/mpi_benchmark.hpp"
#include "support/product_by_hand.hpp"
#include "support/scalapack.hpp"
#include "support/turns.hpp"

namespace {
using namespace tessera;
using tessera_bench::Split;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

struct Shape {
  Index m, n, k;
  std::string text() const {
    return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k);
  }
};

/// A way to measure. Among ways with the same name the fastest counts.
struct Way {
  const char* name;
  std::function<void()> body;
};
using Ways = std::vector<Way>;

/// Adds the local product of this shape by each library.
template <class T> void add_local(Ways& ways, const Shape& s, const T* a, const T* b, T* c) {
  const detail::Gemm work{.m = s.m, .n = s.n, .k = s.k, .lda = s.k, .ldb = s.n, .ldc = s.n};
  const detail::GemmShape g = detail::gemm_shape(work);
  ways.push_back(Way{"BLAS", [=] {
                       detail::split_gemm(false, false, g.m, g.n, g.k, a, g.lda, b, g.ldb, T{}, c,
                                          g.ldc);
                     }});
  if (detail::blis_is_ready())
    ways.push_back(Way{"BLIS", [=] {
                         detail::blis_gemm(g.m, g.n, g.k, a, g.lda, Index{1}, b, g.ldb, Index{1},
                                           T{}, c, g.ldc);
                       }});
  if (detail::use_dnnl(T{}, max_int64))
    ways.push_back(Way{"oneDNN", [=] { detail::dnnl_gemm(g, g.m, g.n, T{}, a, b, c); }});
}

/// Measures all ways in turns, prints the row, and notes it. `flops`: of all processes.
void report(const std::string& row, const Ways& ways, double flops, int processes, bool prints) {
  std::vector<std::function<void()>> bodies;
  for (const Way& way : ways) bodies.push_back(way.body);
  const std::vector<double> all =
      tessera_bench::in_turns(bodies, {.seconds = 3, .least = 7, .most = 101});
  std::vector<std::pair<std::string, double>> times;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const auto known = std::find_if(times.begin(), times.end(),
                                    [&](const auto& t) { return t.first == ways[i].name; });
    if (known == times.end())
      times.emplace_back(ways[i].name, all[i]);
    else
      known->second = std::min(known->second, all[i]);
  }
  double hand = 0, scalapack = 0, local = 0;
  std::string library;
  std::vector<std::pair<std::string, double>> noted;
  for (const auto& [name, seconds] : times) {
    if (name == "by hand") hand = seconds;
    if (name == "ScaLAPACK") scalapack = seconds;
    const bool is_local = name == "BLAS" || name == "BLIS" || name == "oneDNN";
    if (!is_local) noted.emplace_back(name, seconds);
    if (is_local && (local == 0 || seconds < local)) local = seconds, library = name;
  }
  noted.emplace_back("roofline", local);  // a bound, which no way that communicates reaches
  tessera_bench::note(row, noted);
  if (!prints) return;
  const double ours = times[0].second;
  const auto print = [&](double seconds) {
    if (seconds > 0)
      std::printf(" %8.2f %5.2f", seconds * 1e3, ours / seconds);
    else
      std::printf(" %14s", "");
  };
  std::printf("%-52s %8.2f %6.1f", row.c_str() + row.find('/') + 1, ours * 1e3,
              flops / processes / ours * 1e-9);
  print(hand);
  print(scalapack);
  std::printf(" %8.2f %-6s %5.2f\n", local * 1e3, library.c_str(), local / ours);
  std::fflush(stdout);
}

/// One product under one sharding, as einsum<"ik,kj->ij", C>(A, B).
template <class T, class A, class B, class C>
void measure(Environment& env, const std::string& how, Split split, int d, int m, const Shape& s) {
  const std::string row =
      std::string("matmul/") + (sizeof(T) == 4 ? "float " : "double ") + s.text() + ", " + how;
  if (!tessera_bench::wanted(row)) return;
  const auto mesh = make_mesh<Grid>(env.world(), d, m);
  const auto a = random_normal<ShardedTensor<T, Grid, A>>(mesh, {s.m, s.k}, 1);
  const auto b = random_normal<ShardedTensor<T, Grid, B>>(mesh, {s.k, s.n}, 2);
  tessera_bench::ProductByHand<T> hand(split, d, m, s.m, s.n, s.k);
  std::unique_ptr<tessera_bench::ScalapackProduct<T>> blocks, dealt;
  if (tessera_bench::have_scalapack && split == Split::blocks) {
    blocks = std::make_unique<tessera_bench::ScalapackProduct<T>>(d, m, s.m, s.n, s.k, 0);
    dealt = std::make_unique<tessera_bench::ScalapackProduct<T>>(d, m, s.m, s.n, s.k, 64);
  }
  const Shape part{hand.rows(), hand.columns(), hand.depth()};
  const auto numbers = [](Index rows, Index columns) {
    return std::vector<T>(static_cast<std::size_t>(rows * columns), T(0.5));
  };
  const std::vector<T> left = numbers(part.m, part.k), right = numbers(part.k, part.n);
  std::vector<T> out = numbers(part.m, part.n);

  const auto run = [&] { return einsum<"ik,kj->ij", C>(a, b); };
  {  // the ways agree
    const auto y = run();
    const auto apart = [&](const T* other) {
      return tessera_bench::most_apart(y.data(), other, y.local_size());
    };
    hand.run(a.data(), b.data());
    double most = apart(hand.result());
    if (blocks) {
      blocks->run(a.data(), b.data(), out.data());
      most = std::max(most, apart(out.data()));
    }
    if (most > 16.0 * static_cast<double>(s.k) * double(std::numeric_limits<T>::epsilon())) {
      std::fprintf(stderr, "%s: the ways differ by %g\n", row.c_str(), most);
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
  }
  Ways ways;
  ways.push_back(Way{"tessera", [&] { (void)run(); }});
  ways.push_back(Way{"by hand", [&] { hand.run(a.data(), b.data()); }});
  for (const auto* one : {&blocks, &dealt})
    if (*one)
      ways.push_back(Way{"ScaLAPACK", [&, one] { (*one)->run(a.data(), b.data(), out.data()); }});
  add_local(ways, part, left.data(), right.data(), out.data());
  const double flops =
      2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  report(row, ways, flops, d * m, mesh.process() == 0);
}

template <class T> void measure_all(Environment& env) {
  const int n = env.world()->size();
  const Shape shapes[] = {
      {2048, 2048, 2048}, {8192, 8192, 128}, {512, 512, 16384}, {128, 8192, 8192}};
  for (const Shape& s : shapes) {
    const auto in_blocks = [&](const std::string& how, int d, int m) {
      measure<T, P<data, model>, P<data, model>, P<data, model>>(env, how, Split::blocks, d, m, s);
    };
    if (n == 4) in_blocks("all in blocks of 2 x 2", 2, 2);
    if (n != 2) continue;
    measure<T, P<data, _>, P<_, _>, P<data, _>>(env, "A by rows, B whole", Split::left_rows, 2, 1,
                                                s);
    in_blocks("all by rows", 2, 1);
    in_blocks("all by columns", 1, 2);
    measure<T, P<data, _>, P<_, data>, P<data, _>>(env, "A by rows, B by columns", Split::opposite,
                                                   2, 1, s);
    if (std::max(s.m, s.n) > 2048) continue;  // the sums would be far larger than the operands
    measure<T, P<_, data>, P<data, _>, P<data, _>>(env, "sum split, result by rows",
                                                   Split::sum_scattered, 2, 1, s);
    measure<T, P<_, data>, P<data, _>, P<_, _>>(env, "sum split, result whole", Split::sum_reduced,
                                                2, 1, s);
  }
}

/// ikjl,lakb->iajb, all split by their first two dimensions.
void measure_contraction(Environment& env, int d, int m) {
  constexpr Index n = 48;
  const std::string row =
      "matmul/float ikjl,lakb->iajb of 48^4 on " + std::to_string(d) + "x" + std::to_string(m);
  if (!tessera_bench::wanted(row)) return;
  const auto mesh = make_mesh<Grid>(env.world(), d, m);
  using Block = Tensor<float, data, model, _, _>;
  const auto a = random_normal<Block>(mesh, {n, n, n, n}, 1);
  const auto b = random_normal<Block>(mesh, {n, n, n, n}, 2);
  const Shape part{n * n / d, n * n / m, n * n};
  const std::vector<float> left(static_cast<std::size_t>(part.m * part.k), 0.5F),
      right(static_cast<std::size_t>(part.k * part.n), 0.5F);
  std::vector<float> out(static_cast<std::size_t>(part.m * part.n));
  Ways ways;
  ways.push_back(
      Way{"tessera", [&] { (void)einsum<"ikjl,lakb->iajb", P<data, model, _, _>>(a, b); }});
  add_local(ways, part, left.data(), right.data(), out.data());
  const double flops = 2 * std::pow(double(n), 6);
  report(row, ways, flops, d * m, mesh.process() == 0);
}
}  // namespace

int main(int argc, char** argv) {
  return run_main(argc, argv, [&](Environment& env) {
    tessera_bench::start(argc, argv);
    const int n = env.world()->size();
    if (env.world()->process() == 0) {
      tessera_bench::print_context();
      std::printf("%-52s %8s %6s %8s %5s %8s %5s %8s %-6s %5s\n", "ms; ratios: tessera over it",
                  "tessera", "GF/s", "by hand", "ratio", "ScaLA.", "ratio", "local", "by", "of it");
    }
    measure_all<float>(env);
    measure_all<double>(env);
    if (n == 2) measure_contraction(env, 2, 1), measure_contraction(env, 1, 2);
    if (n == 4) measure_contraction(env, 2, 2);
    return tessera_bench::finish();
  });
}
