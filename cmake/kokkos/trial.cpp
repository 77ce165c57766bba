// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A program that links and runs only if a Kokkos prefix is whole: used before the prefix is put in place.
#include <Kokkos_Core.hpp>
#include <Kokkos_DualView.hpp>

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard guard(argc, argv);
  constexpr int n = 1000;
  const Kokkos::View<int*> x("x", n);
  Kokkos::parallel_for("fill", n, KOKKOS_LAMBDA(int i) { x(i) = i; });
  int sum = 0;
  Kokkos::parallel_reduce("sum", n, KOKKOS_LAMBDA(int i, int& s) { s += x(i); }, sum);
  return sum == n * (n - 1) / 2 ? 0 : 1;
}
