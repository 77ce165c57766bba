// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 4
// arguments: --levels 3
// libraries: png
// headers: alone
//
// The heat and the wave equation in a cube, split over the processes in two dimensions, by explicit
// steps, in two ways: each step is a convolution, or a loop written out over tensors with halos,
// whose inner elements are computed while the halos travel.
//
//   mpiexec -n 4 heat --levels 4
//
// It prints the errors against the analytic solutions on grids of 7, 15, 31, ... points a side,
// which fall by four each time, what both ways take, and holds that they agree. It writes frames of
// the plane in the middle on the finest grid, heat_0.png and wave_0.png and so on (PPM where libpng
// is not found).
#include <chrono>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <tessera/op/halo/halo.hpp>
#include <tessera/tessera.hpp>

#include "support/flags.hpp"
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
  KOKKOS_FUNCTION double angle(Index at) const { return pi * h * static_cast<double>(at + 1); }
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const {
    const double x = angle(i[1]), y = angle(i[2]), z = angle(i[3]);
    return slow * Kokkos::sin(x) * Kokkos::sin(y) * Kokkos::sin(z) +
           fast * Kokkos::sin(x) * Kokkos::sin(2 * y) * Kokkos::sin(3 * z);
  }
};
/// Squares of their wave numbers.
constexpr double slow_square = 3 * pi * pi, fast_square = 14 * pi * pi;

/// One step: centre * u + weight * (the six neighbours - 6 u) - keep * (what u was before).
struct Update {
  double centre, weight, keep;
};

/// u_t = u_xx + u_yy + u_zz, and 0 on the cube's sides.
struct Heat {
  static constexpr const char* name = "heat";
  static constexpr double end = 1.0 / 64;
  static double step(double h) { return h * h / 8; }
  static Solution at(double t, double h) {
    return {std::exp(-slow_square * t), 0.6 * std::exp(-fast_square * t), h};
  }
  /// The next u is u + dt Laplace u.
  static Update update(double dt, double h, Index) { return {1, dt / (h * h), 0}; }
};
/// u_tt = u_xx + u_yy + u_zz from rest, and 0 on the cube's sides.
struct Wave {
  static constexpr const char* name = "wave";
  static constexpr double end = 0.5;
  static double step(double h) { return h / 2; }
  static Solution at(double t, double h) {
    return {std::cos(std::sqrt(slow_square) * t), 0.6 * std::cos(std::sqrt(fast_square) * t), h};
  }
  /// The next u is 2 u + dt^2 Laplace u less the one before; from rest, that before 0 is that
  /// behind it.
  static Update update(double dt, double h, Index step) {
    const double weight = dt * dt / (h * h);
    return step == 0 ? Update{1, weight / 2, 0} : Update{2, weight, 1};
  }
};

/// Each step a convolution by 3 x 3 x 3 numbers.
struct ByConvolution {
  static constexpr const char* name = "by convolution";
  Field u, before;

  explicit ByConvolution(const Field& start) : u(start), before(start) {}
  Field now() const { return u; }
  void step(const Update& update) {
    std::vector<double> taps(27, 0.0);
    for (const std::size_t neighbour : {4u, 10u, 12u, 14u, 16u, 22u})
      taps[neighbour] = update.weight;
    taps[13] = update.centre - 6 * update.weight;
    const ProcessMesh<Grid> mesh(u.core().mesh());
    const auto stencil = from_host<Stencil>(mesh, {3, 3, 3, 1, 1}, taps);
    Field next = convolve<letters, P<_, depth, height, _, _>>(
        u, stencil, {.low = {1, 1, 1}, .high = {1, 1, 1}});
    if (update.keep != 0) next = next - before * update.keep;
    before = std::exchange(u, next);
  }
};

/// Each step a loop over u, stored with its halo; the result takes the place of what was before.
struct ByHaloExchange {
  static constexpr const char* name = "by halo exchange";
  HaloTensor<Field> u, other;

  explicit ByHaloExchange(const Field& start)
      : u(make_halo<Field, 1, 2, 3>(ProcessMesh<Grid>(start.core().mesh()), start.extents(), 1, 1,
                                    Boundary::constant, 0.0)),
        other(make_halo<Field, 1, 2, 3>(ProcessMesh<Grid>(start.core().mesh()), start.extents(), 1,
                                        1, Boundary::constant, 0.0)) {
    u.assign(start);
    other.assign(start);
  }
  Field now() const { return u.tensor(); }
  void step(const Update& update) {
    auto travelling = u.exchange_async();
    compute(u.inner_box(), update);
    travelling.wait();
    for (const Box& box : u.border()) compute(box, update);
    std::swap(u, other);
  }
  void compute(const Box& box, const Update& by) const {
    if (box.empty()) return;
    const auto v = u.global();
    const auto w = other.global();
    using Range = Kokkos::MDRangePolicy<Kokkos::Rank<3>, Kokkos::IndexType<Index>>;
    Kokkos::parallel_for(
        "stencil", Range({box[1].lo, box[2].lo, box[3].lo}, {box[1].hi, box[2].hi, box[3].hi}),
        KOKKOS_LAMBDA(Index i, Index j, Index k) {
          const double middle = v(0, i, j, k, 0);
          const double around = v(0, i - 1, j, k, 0) + v(0, i + 1, j, k, 0) + v(0, i, j - 1, k, 0) +
                                v(0, i, j + 1, k, 0) + v(0, i, j, k - 1, 0) + v(0, i, j, k + 1, 0);
          double& next = w(0, i, j, k, 0);
          next = by.centre * middle + by.weight * (around - 6 * middle) - by.keep * next;
        });
    Kokkos::fence();
  }
};

/// Writes the plane in the middle of the cube, red where u is positive, blue where negative.
void write_frame(const Field& u, const std::string& name) {
  const ProcessMesh<Grid> mesh(u.core().mesh());
  const Index n = u.extents()[1];
  const auto middle = from_function<Tensor<depth>>(
      mesh, {n}, [n](const GlobalIndex& i) { return i[0] == n / 2 ? 1.0 : 0.0; });
  const auto plane = to_root(einsum<"bdhwc,d->hw">(u, middle));
  const std::string complaint = complaint_of([&] {
    if (mesh.process() != 0) return;
    constexpr Index side = 256;
    support::Picture picture{side, side, {}};
    const auto value = [&](Index i, Index j) {  // points on the sides are 0
      return i < 0 || j < 0 || i >= n || j >= n ? 0.0 : plane(i, j);
    };
    for (Index row = 0; row < side; ++row)
      for (Index column = 0; column < side; ++column) {
        const double y = static_cast<double>(row * (n + 1)) / (side - 1) - 1,
                     x = static_cast<double>(column * (n + 1)) / (side - 1) - 1;
        const auto i = static_cast<Index>(std::floor(y)), j = static_cast<Index>(std::floor(x));
        const double a = y - std::floor(y), b = x - std::floor(x);
        const double v = (1 - a) * ((1 - b) * value(i, j) + b * value(i, j + 1)) +
                         a * ((1 - b) * value(i + 1, j) + b * value(i + 1, j + 1));
        const double strength = std::min(1.0, std::abs(v) / 1.2);
        const auto faded = static_cast<std::uint8_t>(255 * (1 - strength));
        const std::uint8_t full = 255;
        for (const std::uint8_t colour : {v < 0 ? faded : full, faded, v > 0 ? faded : full})
          picture.pixels.push_back(colour);
      }
    support::write_picture(picture, name);
  });
  fail_together(*mesh.core(), complaint, Where::here());
}

struct Solved {
  Field u;
  double seconds = 0;
  Index sent = 0;  // bytes, by this process in the last step
};

/// Solves an equation from `start` on; draws frames, and a bar, where it is asked to.
template <class Problem, class Way>
Solved solve(const Field& start, double h, double dt, Index steps, bool frames, bool bar) {
  const ProcessMesh<Grid> mesh(start.core().mesh());
  Solved solved;
  Way way(start);
  support::Progress progress(steps, bar && mesh.process() == 0);
  const std::string title = std::string(Problem::name) + " " + Way::name;
  const Index between = steps / 8;  // steps from frame to frame
  for (Index i = 0;; ++i) {
    if (frames && i % between == 0)
      write_frame(way.now(), Problem::name + ("_" + std::to_string(i / between)));
    if (i == steps) break;
    mesh.ledger().reset();
    const auto begin = std::chrono::steady_clock::now();
    way.step(Problem::update(dt, h, i));
    solved.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    solved.sent = mesh.ledger().payload_bytes();
    progress.show(i + 1, title);
  }
  solved.u = way.now();
  return solved;
}

template <class Problem> void table(const ProcessMesh<Grid>& mesh, Index levels) {
  const bool first = mesh.process() == 0;
  if (first)
    fmt::print(
        "{} equation, t = {}\n                                       by convolution   by halo "
        "exchange\n"
        "  points  steps  largest error  order       s  KiB/step        s  KiB/step\n",
        Problem::name, Problem::end);
  double before = 0;
  for (Index level = 0; level < levels; ++level) {
    const Index n = (Index{8} << level) - 1;
    const bool last = level + 1 == levels;
    const Extents extents{1, n, n, n, 1};
    const double h = 1 / static_cast<double>(n + 1), dt = Problem::step(h);
    const auto steps = static_cast<Index>(std::lround(Problem::end / dt));
    const Field start = from_function<Field>(mesh, extents, Problem::at(0, h));
    const Field exact = from_function<Field>(mesh, extents, Problem::at(Problem::end, h));
    const Solved one = solve<Problem, ByConvolution>(start, h, dt, steps, false, last);
    const Solved two = solve<Problem, ByHaloExchange>(start, h, dt, steps, last, last);
    const double error = value(max(abs(two.u - exact)));
    const double order = before > 0 ? std::log2(before / error) : 0;
    if (first)
      fmt::print("  {:>4}^3  {:>5}  {:>13.3e}  {:>5}  {:>6.2f}  {:>8.2f}   {:>6.2f}  {:>8.2f}\n", n,
                 steps, error, before > 0 ? fmt::format("{:.2f}", order) : "", one.seconds,
                 static_cast<double>(one.sent) / 1024, two.seconds,
                 static_cast<double>(two.sent) / 1024);
    if (const double apart = value(max(abs(one.u - two.u))); !(apart <= 1e-12))
      throw Error(fmt::format("the two ways differ by {:.1e}", apart));
    if (level > 1 && !(std::abs(order - 2) <= 0.2))
      throw Error("the error does not fall with the square of the distance");
    before = error;
  }
}

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return run_main(1, argv, [&](Environment& env) {
    Index levels = 4;
    support::FlagTable flags;
    flags.count("--levels", levels).read(words);
    if (levels > 6)
      throw UsageError("heat: --levels " + std::to_string(levels) + "; there are 1 to 6");
    const int down = env.size() % 2 == 0 ? 2 : 1;
    const auto mesh = make_mesh<Grid>(env, env.size() / down, down);
    table<Heat>(mesh, levels);
    table<Wave>(mesh, levels);
  });
}
