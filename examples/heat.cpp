// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 4
// arguments: --levels 3
// libraries: png
//
// The heat and the wave equation in a cube, split over the processes in two dimensions, by explicit
// steps, each one convolution that exchanges the planes at the borders of blocks:
//
//   mpiexec -n 4 heat --levels 4
//
// It prints the errors against the analytic solutions on grids of 7, 15, 31, ... points a side,
// which fall by four each time, and writes frames of the plane in the middle on the finest grid,
// heat_0.png and wave_0.png and so on (PPM where libpng is not found).
#include <cmath>
#include <cstdlib>

#include <tessera/tessera.hpp>

#include "support/picture.hpp"
#include "support/progress.hpp"

using namespace tessera;

namespace grid {
struct depth : Axis<> {};
struct height : Axis<> {};
}  // namespace grid
using grid::depth, grid::height;
using Grid = Mesh<depth, height>;
template <class... Dims> using Tensor = ShardedTensor<double, Grid, P<Dims...>>;
using Field = Tensor<_, depth, height, _, _>;  // 1, depth, height, width, 1
using Stencil = Tensor<_, _, _, _, _>;         // depth, height, width, 1, 1

constexpr double pi = 3.14159265358979323846;
constexpr Equation letters{"bdhwi,dhwio->bdhwo"};

/// The solution at a time: two products of sines, of which each keeps its form.
struct Solution {
  double slow, fast;  // what is left of them
  double h;           // the distance of two points; 0 is on the cube's side
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const {
    const double x = pi * h * static_cast<double>(i[1] + 1), y = pi * h * (double(i[2]) + 1),
                 z = pi * h * static_cast<double>(i[3] + 1);
    return slow * Kokkos::sin(x) * Kokkos::sin(y) * Kokkos::sin(z) +
           fast * Kokkos::sin(x) * Kokkos::sin(2 * y) * Kokkos::sin(3 * z);
  }
};
/// Squares of their wave numbers.
constexpr double slow_square = 3 * pi * pi, fast_square = 14 * pi * pi;

/// u_t = u_xx + u_yy + u_zz, and 0 on the cube's sides.
struct Heat {
  static constexpr const char* name = "heat";
  static constexpr double end = 1.0 / 64;
  static double step(double h) { return h * h / 8; }
  static Solution at(double t, double h) {
    return {std::exp(-slow_square * t), 0.6 * std::exp(-fast_square * t), h};
  }
  /// u_next = u + dt Laplace u
  static double centre() { return 1; }
  static double weight(double dt, double h) { return dt / (h * h); }
};
/// u_tt = u_xx + u_yy + u_zz from rest, and 0 on the cube's sides.
struct Wave {
  static constexpr const char* name = "wave";
  static constexpr double end = 0.5;
  static double step(double h) { return h / 2; }
  static Solution at(double t, double h) {
    return {std::cos(std::sqrt(slow_square) * t), 0.6 * std::cos(std::sqrt(fast_square) * t), h};
  }
  /// u_next = 2 u + dt^2 Laplace u - u_before
  static double centre() { return 2; }
  static double weight(double dt, double h) { return dt * dt / (h * h); }
};

/// Returns centre * identity + weight * (the sum of the six neighbours - 6 times the middle).
Stencil make_stencil(const ProcessMesh<Grid>& mesh, double centre, double weight) {
  std::vector<double> taps(27, 0.0);
  for (const std::size_t neighbour : {4, 10, 12, 14, 16, 22}) taps[neighbour] = weight;
  taps[13] = centre - 6 * weight;
  return from_host<Stencil>(mesh, {3, 3, 3, 1, 1}, taps);
}
Field apply(const Field& u, const Stencil& stencil) {
  return convolve<letters, P<_, depth, height, _, _>>(u, stencil,
                                                      {.low = {1, 1, 1}, .high = {1, 1, 1}});
}

/// Writes the plane in the middle of the cube, red where u is positive, blue where negative.
void write_frame(const Field& u, const std::string& name) {
  const ProcessMesh<Grid> mesh(u.core().mesh());
  const Index n = u.extents()[1];
  const auto middle = from_function<Tensor<depth>>(
      mesh, {n}, [n](const GlobalIndex& i) { return i[0] == n / 2 ? 1.0 : 0.0; });
  const auto plane = to_root(einsum<"bdhwc,d->hw">(u, middle));
  fail_together(*mesh.core(), complaint_of([&] {
    if (mesh.process() != 0) return;
    constexpr Index side = 256;
    support::Picture picture{side, side, {}};
    const auto value = [&](Index i, Index j) {  // points on the sides are 0
      return i < 0 || j < 0 || i >= n || j >= n ? 0.0 : plane(i, j);
    };
    for (Index row = 0; row < side; ++row)
      for (Index column = 0; column < side; ++column) {
        const double y = double(row) * double(n + 1) / (side - 1) - 1,
                     x = double(column) * double(n + 1) / (side - 1) - 1;
        const auto i = static_cast<Index>(std::floor(y)), j = static_cast<Index>(std::floor(x));
        const double a = y - double(i), b = x - double(j);
        const double v = (1 - a) * ((1 - b) * value(i, j) + b * value(i, j + 1)) +
                         a * ((1 - b) * value(i + 1, j) + b * value(i + 1, j + 1));
        const double strength = std::min(1.0, std::abs(v) / 1.2);
        const auto faded = static_cast<std::uint8_t>(255 * (1 - strength));
        const std::uint8_t full = 255;
        for (const std::uint8_t colour : {v < 0 ? faded : full, faded, v > 0 ? faded : full})
          picture.pixels.push_back(colour);
      }
    support::write_picture(picture, name);
  }),
                Where::here());
}

/// Solves an equation on n points a side and returns the largest error; draws on the last grid.
template <class Problem>
double solve(const ProcessMesh<Grid>& mesh, Index n, bool last, Index& steps) {
  const Extents extents{1, n, n, n, 1};
  const double h = 1 / static_cast<double>(n + 1), dt = Problem::step(h);
  steps = static_cast<Index>(std::lround(Problem::end / dt));
  const auto stencil = make_stencil(mesh, Problem::centre(), Problem::weight(dt, h));
  Field u = from_function<Field>(mesh, extents, Problem::at(0, h));
  Field before = u;  // of the wave
  support::Progress progress(steps, last && mesh.process() == 0);
  constexpr Index frames = 8;
  for (Index i = 0;; ++i) {
    if (last && i % (steps / frames) == 0)
      write_frame(u, Problem::name + ("_" + std::to_string(i / (steps / frames))));
    if (i == steps) break;
    if constexpr (std::is_same_v<Problem, Heat>) {
      u = apply(u, stencil);
    } else {
      // From rest: what was a step before 0 is what is a step behind it.
      const Field next = i == 0 ? apply(u, stencil) * 0.5 : apply(u, stencil) - before;
      before = std::exchange(u, next);
    }
    progress.show(i + 1, Problem::name);
  }
  const Field exact = from_function<Field>(mesh, extents, Problem::at(Problem::end, h));
  return value(max(abs(u - exact)));
}

template <class Problem> void table(const ProcessMesh<Grid>& mesh, Index levels) {
  const bool first = mesh.process() == 0;
  if (first)
    fmt::print("{} equation, t = {}\n  points  steps  largest error  order  KiB sent a step\n",
               Problem::name, Problem::end);
  double before = 0;
  for (Index level = 0; level < levels; ++level) {
    const Index n = (Index{8} << level) - 1;
    mesh.ledger().reset();
    Index steps = 0;
    const double error = solve<Problem>(mesh, n, level + 1 == levels, steps);
    const double order = before > 0 ? std::log2(before / error) : 0;
    if (first)
      fmt::print(
          "  {:>4}^3  {:>5}  {:>13.3e}  {:>5}  {:>15.2f}\n", n, steps, error,
          before > 0 ? fmt::format("{:.2f}", order) : "",
          static_cast<double>(mesh.ledger().payload_bytes()) / 1024 / static_cast<double>(steps));
    if (level + 1 == levels && level > 1 && std::abs(order - 2) > 0.2)
      throw Error("the error does not fall with the square of the distance");
    before = error;
  }
}

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return run_main(1, argv, [&](Environment& env) {
    Index levels = 4;
    if (words.size() == 2 && words[0] == "--levels")
      levels = std::atoi(words[1].c_str());
    else if (!words.empty())
      throw UsageError("heat takes --levels N only, not " + words[0]);
    if (levels < 1 || levels > 6) throw UsageError("heat: the levels are 1 to 6");
    const int down = env.size() % 2 == 0 ? 2 : 1;
    const auto mesh = make_mesh<Grid>(env, env.size() / down, down);
    table<Heat>(mesh, levels);
    table<Wave>(mesh, levels);
  });
}
