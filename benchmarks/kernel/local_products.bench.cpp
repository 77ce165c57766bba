// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 1
// threads: 1 2
// Products of one process's memory with all threads of Kokkos, in turns with the libraries bare:
// BLAS with the threads that it takes, BLIS on one thread, oneDNN with all of them. Times are the
// least of many, on one thread of the processor's; the last column is how many times Tessera is as
// fast as the best library on one thread, which would be the number of threads.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <mpi.h>

#include <tessera/kernel/use_element.hpp>

#include "support/mpi_benchmark.hpp"
#include "support/products.hpp"
#include "support/turns.hpp"

namespace {
using namespace tessera;

double seconds_now() { return detail::product_clock(detail::host_threads()); }

struct Product {
  Index m, n, k, batches = 1;
};

detail::Gemm work_of(const Product& p) {
  detail::Gemm g{.m = p.m, .n = p.n, .k = p.k, .lda = p.k, .ldb = p.n, .ldc = p.n};
  if (p.batches > 1) {
    g.batch = {p.batches};
    g.batch_a = {p.m * p.k};
    g.batch_b = {p.k * p.n};
    g.batch_c = {p.m * p.n};
  }
  return g;
}

template <class T> void measure(const char* type, const Product& p) {
  std::string name = std::to_string(p.m) + "x" + std::to_string(p.n) + "x" + std::to_string(p.k);
  if (p.batches > 1) name = std::to_string(p.batches) + " of " + name;
  std::string row = "local product/";
  row += type;
  row += ", " + name;
  if (!tessera_bench::wanted(row)) return;
  const detail::Gemm work = work_of(p);
  const detail::GemmShape g = detail::gemm_shape(work);
  const auto numbers = [&p](Index rows, Index columns) {
    return std::vector<T>(static_cast<std::size_t>(p.batches * rows * columns), T(0.5));
  };
  const std::vector<T> a = numbers(p.m, p.k), b = numbers(p.k, p.n);
  std::vector<T> c = numbers(p.m, p.n);
  const auto each = [&](const auto& product) {
    for (Index i = 0; i < g.batches; ++i)
      product(a.data() + g.a_offset(i), b.data() + g.b_offset(i), c.data() + g.c_offset(i));
  };
  std::vector<std::pair<std::string, std::function<void()>>> ways;
  ways.emplace_back("tessera", [&] {
    detail::gemm(dtype_of<T>, work, a.data(), b.data(), c.data(), 0, false,
                 &tessera_bench::product_table());
  });
  ways.emplace_back("BLAS", [&] {
    each([&](const T* x, const T* y, T* z) {
      detail::split_gemm(false, false, g.m, g.n, g.k, x, g.lda, y, g.ldb, T{}, z, g.ldc);
    });
  });
  if (detail::blis_is_ready())
    ways.emplace_back("BLIS, one thread", [&] {
      each([&](const T* x, const T* y, T* z) {
        detail::blis_gemm(g.m, g.n, g.k, x, g.lda, Index{1}, y, g.ldb, Index{1}, T{}, z, g.ldc);
      });
    });
  if (detail::use_dnnl(T{}, max_int64))
    ways.emplace_back("oneDNN", [&] {
      each([&](const T* x, const T* y, T* z) { detail::dnnl_gemm(g, g.m, g.n, T{}, x, y, z); });
    });
  std::vector<std::function<void()>> bodies;
  for (const auto& way : ways) bodies.push_back(way.second);
  const std::vector<double> times = tessera_bench::in_turns(
      bodies,
      {.seconds = 1.5, .least = 7, .most = 1001, .take_least = true, .clock = &seconds_now});
  const Index threads = detail::host_threads();
  double best = 1e9;  // on one thread
  std::vector<std::pair<std::string, double>> noted;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    noted.emplace_back(ways[i].first, times[i]);
    const bool all = ways[i].first == "oneDNN";
    if (i > 0) best = std::min(best, times[i] * (all ? static_cast<double>(threads) : 1.0));
  }
  tessera_bench::note(row, noted);
  const double flops =
      static_cast<double>(work.flops()) * (ComplexElement<T> ? 4 : 1);  // as LAPACK counts
  std::printf("%-8s %-22s", type, name.c_str());
  for (std::size_t i = 0; i < 4; ++i)
    if (i < times.size())
      std::printf(" %10.3f ms %6.1f", times[i] * 1e3, flops / times[i] * 1e-9);
    else
      std::printf(" %20s", "");
  std::printf("  %5.2f of %d\n", best / times[0], static_cast<int>(threads));
}

void measure_all() {
  tessera_bench::print_context();
  std::printf("%-31s %20s %20s %20s %20s   (GFLOP/s beside each)\n", "", "tessera", "BLAS",
              "BLIS, one thread", "oneDNN");
  for (const Product& p :
       {Product{2048, 2048, 2048}, Product{512, 512, 512}, Product{128, 128, 128},
        Product{64, 64, 64}, Product{32, 32, 32}, Product{4096, 64, 512}, Product{64, 4096, 512},
        Product{64, 64, 16384}, Product{1, 4096, 4096}, Product{4096, 1, 4096},
        Product{2048, 2048, 8}, Product{128, 128, 128, 64}, Product{32, 32, 32, 1024},
        Product{8, 8, 8, 16384}}) {
    measure<float>("float", p);
    measure<double>("double", p);
    measure<complex<float>>("c. float", p);
    measure<complex<double>>("c. double", p);
  }
}
}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    const Kokkos::ScopeGuard kokkos(argc, argv);
    detail::use_element<float>();
    detail::use_element<double>();
    detail::use_element<complex<float>>();
    detail::use_element<complex<double>>();
    tessera_bench::start(argc, argv);
    measure_all();
    tessera_bench::finish();
  }
  MPI_Finalize();
  return 0;
}
