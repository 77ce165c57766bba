// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Rows of benchmarks of kernels on one process's memory: a kernel's time beside its roofline, the
/// time that its bytes take at the rate of a copy, or its products at the rate of a large one, both
/// measured first, with as many threads. Times are medians, with one thread of the processor's.
/// benchmarks/peers.py reads them.
///
///     row("exp, float", {.bytes = 8.0 * n}, [&] { detail::map<float>(fn::Exp{}, work, y, x); });
#include <algorithm>
#include <cstdio>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include <mpi.h>

#include <tessera/kernel/use_element.hpp>

#include "support/mpi_benchmark.hpp"
#include "support/products.hpp"
#include "support/turns.hpp"

namespace tessera_bench {
using namespace tessera;
using detail::LocalMap, detail::LocalReduce, detail::LocalScan, detail::StridedCopy;

constexpr Index side = 2048, many = Index{1} << 20;

/// What a kernel must move or multiply, and in which type it multiplies.
struct Needs {
  double bytes = 0;
  double flops = 0;
  DType type = DType::f32;
};

struct Rates {
  double copy = 0;     // bytes a second, those read and those written
  double products[2];  // flops a second, of float and double
};

/// With one thread the processor's time, which other programs on the machine prolong less.
inline double now() {
  static const bool alone = Kokkos::DefaultHostExecutionSpace().concurrency() == 1;
  return alone ? processor_seconds() : MPI_Wtime();
}
inline double median_time(const std::function<void()>& body) {
  return in_turns({body}, {.seconds = 0.3, .least = 5, .most = 1'000'000, .clock = &now})[0];
}
/// Begins at a cache line, as tensors and the arrays of the peers do.
template <class T> struct OfLines {
  using value_type = T;
  static constexpr std::align_val_t line{64};
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), line)); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, line); }
  bool operator==(const OfLines&) const = default;
};
template <class T> using Buffer = std::vector<T, OfLines<T>>;

template <class T> Buffer<T> numbers(Index n) {
  Buffer<T> x;
  for (Index i = 0; i < n; ++i)
    x.push_back(static_cast<T>(static_cast<float>(i * 2654435761 % 1000) * 0.008f - 4));
  return x;
}

template <class T> double product_rate() {
  constexpr Index n = 1024;
  const Buffer<T> a = numbers<T>(n * n), b = a;
  Buffer<T> c = a;
  const detail::Gemm work{.m = n, .n = n, .k = n, .lda = n, .ldb = n, .ldc = n};
  return static_cast<double>(work.flops()) / median_time([&] {
           detail::gemm(dtype_of<T>, work, a.data(), b.data(), c.data(), 0, false,
                        &product_table());
         });
}
inline const Rates& rates() {
  static const Rates measured = [] {
    constexpr Index n = Index{1} << 24;  // 64 MiB
    const Buffer<float> x(n);
    Buffer<float> y(n);
    const StridedCopy whole{.extents = {n}, .from_strides = {1}, .to_strides = {1}};
    const double copy =
        median_time([&] { detail::copy(DType::f32, x.data(), y.data(), &whole, 1); });
    return Rates{8.0 * n / copy, {product_rate<float>(), product_rate<double>()}};
  }();
  return measured;
}

inline void row(const std::string& name, const Needs& needs, const std::function<void()>& kernel) {
  const std::string whole = "kernel/" + name;
  if (!wanted(whole)) return;
  const double time = median_time(kernel);
  const double roof = std::max(needs.bytes / rates().copy,
                               needs.flops / rates().products[needs.type == DType::f64]);
  note(whole, {{"tessera", time}, {"roofline", roof}});
  std::printf("%-36s %9.3f ms, %.2f of the roofline\n", name.c_str(), time * 1e3, roof / time);
}

inline void print_rates() {
  print_context();
  std::printf("copy %.1f GB/s, products %.0f GFLOP/s of float and %.0f of double\n",
              rates().copy * 1e-9, rates().products[0] * 1e-9, rates().products[1] * 1e-9);
}

/// A program's main: `measure` calls row().
template <class Measure> int measure_rows(int argc, char** argv, const Measure& measure) {
  MPI_Init(&argc, &argv);
  {
    const Kokkos::ScopeGuard kokkos(argc, argv);
    start(argc, argv);
    print_rates();
    measure();
    finish();
  }
  MPI_Finalize();
  return 0;
}

}  // namespace tessera_bench
