// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Jacobi's method for Poisson's equation on a square, by a loop over fields with halos.
#include <tessera/tessera.hpp>

using namespace tessera;

namespace grid {
struct row : Axis<> {};
struct column : Axis<> {};
}  // namespace grid
using Grid = Mesh<grid::row, grid::column>;
using Field = ShardedTensor<double, Grid, P<grid::row, grid::column>>;
using WithHalo = HaloTensor<Field>;

/// Charges of both signs.
struct Charges {
  Index n;
  KOKKOS_FUNCTION double operator()(const GlobalIndex& at) const {
    if (at[0] == n / 4 && at[1] == n / 4) return 1;
    if (at[0] == 3 * n / 4 && at[1] == n / 2) return -1;
    return 0;
  }
};

using Range = Kokkos::MDRangePolicy<Kokkos::Rank<2>, Kokkos::IndexType<Index>>;
Range over(const Box& box) { return Range({box[0].lo, box[1].lo}, {box[0].hi, box[1].hi}); }

/// The next field: each point is the mean of its four neighbours and the charge.
void relax(const WithHalo& u, const WithHalo& next, const Field& charge, const Box& box) {
  if (box.empty()) return;
  const auto from = u.global(), to = next.global();
  const auto q = local_view(charge);
  const Index i0 = charge.box()[0].lo, j0 = charge.box()[1].lo;
  Kokkos::parallel_for(
      "relax", over(box), KOKKOS_LAMBDA(Index i, Index j) {
        to(i, j) = 0.25 * (from(i - 1, j) + from(i + 1, j) + from(i, j - 1) + from(i, j + 1) +
                           q(i - i0, j - j0));
      });
}

void solve(const ProcessMesh<Grid>& mesh, Index n, int steps) {
  const auto charge = from_function<Field>(mesh, {n, n}, Charges{n});
  auto u = make_halo<Field, 0, 1>(mesh, {n, n}, 1, 1, Boundary::constant, 0.0);
  auto next = make_halo<Field, 0, 1>(mesh, {n, n}, 1, 1, Boundary::constant, 0.0);
  u.assign(zeros<Field>(mesh, n, n));
  for (int step = 0; step < steps; ++step) {
    auto halo = u.exchange_async();
    relax(u, next, charge, u.inner_box());  // while the halos travel
    halo.wait();
    for (const Box& box : u.border()) relax(u, next, charge, box);
    std::swap(u, next);
    if (step % 100 == 99) {
      const double change = value(max(abs(u.tensor() - next.tensor())));
      if (mesh.process() == 0) fmt::print("step {:>5}: changes by {:.2e}\n", step + 1, change);
      if (change < 1e-8) break;
    }
  }
  write_npy(u.tensor(), "potential.npy");
}

int main(int argc, char** argv) {
  return run_main(argc, argv, [](Environment& env) {
    const int rows = env.size() % 2 == 0 ? 2 : 1;
    solve(make_mesh<Grid>(env, rows, env.size() / rows), 256, 20000);
  });
}
