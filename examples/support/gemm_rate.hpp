// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How much of a step is products, and how fast products are here.
///
///     const double seconds = support::gemm_flops(step) / support::gemm_rate<float>(mesh, {{512, 1024, 256}});
#include <algorithm>
#include <chrono>
#include <vector>

#include <tessera/kernel/product/gemm.hpp>
#include <tessera/tessera.hpp>

namespace support {

/// Returns the flops of the products among the operators of a step.
inline double gemm_flops(const tessera::Program& step) {
  tessera::Index flops = 0;
  for (const tessera::ProgramEntry& entry : step.entries())
    for (const tessera::Step& s : entry.plan->steps)
      if (s.kind == tessera::StepKind::contract) flops += s.flops;
  return static_cast<double>(flops);
}

/// A product of (rows, inner) and (inner, columns).
struct Product {
  tessera::Index rows, columns, inner;
};

/// Returns flops a second of products on one process, all processes at work at once. Collective
/// over the mesh.
template <class T, class Mesh>
double gemm_rate(const Mesh& mesh, const std::vector<Product>& products) {
  std::size_t x_size = 0, w_size = 0, y_size = 0;
  double flops_of_all = 0;
  for (const Product& p : products) {
    x_size = std::max(x_size, static_cast<std::size_t>(p.rows * p.inner));
    w_size = std::max(w_size, static_cast<std::size_t>(p.inner * p.columns));
    y_size = std::max(y_size, static_cast<std::size_t>(p.rows * p.columns));
    flops_of_all += 2.0 * static_cast<double>(p.rows * p.columns * p.inner);
  }
  Kokkos::View<T*> x("x", x_size), w("w", w_size), y("y", y_size);
  const auto all = [&] {
    for (const Product& p : products) {
      tessera::detail::Gemm work;
      work.m = p.rows, work.n = work.ldb = work.ldc = p.columns, work.k = work.lda = p.inner;
      tessera::detail::gemm(tessera::dtype_of<T>, work, x.data(), w.data(), y.data());
    }
    tessera::detail::fence();
  };
  using Clock = std::chrono::steady_clock;
  all();
  mesh.core()->transport().barrier();
  const auto start = Clock::now();
  double seconds = 0, flops = 0;
  while (seconds < 0.2) {
    all();
    flops += flops_of_all;
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
  }
  return flops / seconds;
}

}  // namespace support
