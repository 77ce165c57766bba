// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conjugate gradients on tensors whose sharding is known only when the program runs.
#include <cmath>

#include <tessera/tessera.hpp>

using namespace tessera;

/// A symmetric matrix whose diagonal outweighs its rows.
struct Entry {
  Index n;
  KOKKOS_FUNCTION double operator()(const GlobalIndex& at) const {
    const Index apart = at[0] < at[1] ? at[1] - at[0] : at[0] - at[1];
    return apart == 0 ? 4.0 : 1.0 / static_cast<double>(1 + apart * apart);
  }
};

/// Solves a x = b.
DynamicTensor solve(const DynamicTensor& a, const DynamicTensor& b, double tolerance, bool speaks) {
  DynamicTensor x = b * 0.0, r = b, p = b;
  double rr = value<double>(einsum("i,i->", r, r));
  const double stop = tolerance * tolerance * rr;
  for (int step = 1; rr > stop && step <= 1000; ++step) {
    const DynamicTensor ap = reshard(einsum("ij,j->i", a, p), b.sharding());
    const double alpha = rr / value<double>(einsum("i,i->", p, ap));
    x += p * alpha;
    r -= ap * alpha;
    const double next = value<double>(einsum("i,i->", r, r));
    p = r + p * (next / rr);
    rr = next;
    if (speaks) fmt::print("step {:>4}: residual {:.3e}\n", step, std::sqrt(rr));
  }
  return x;
}

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    const int rows = env.size() % 2 == 0 ? 2 : 1;
    const DynamicMesh mesh =
        make_mesh(env, MeshShape{rows, env.size() / rows}, {"rows", "columns"});
    const Index n = 1000;
    const Sharding matrix{{0}, {1}}, vector{{0}};
    const DynamicTensor a = from_function<double>(mesh, {n, n}, matrix, Entry{n});
    const DynamicTensor b = random_normal<double>(mesh, {n}, vector, 7);
    const DynamicTensor x = solve(a, b, 1e-10, env.process() == 0);
    const DynamicTensor left = reshard(einsum("ij,j->i", a, x), vector) - b;
    const double error = value<double>(reduce<Max>("i->", abs(left)));
    if (env.process() == 0) fmt::print("largest error {:.2e}\n", error);
  });
}
