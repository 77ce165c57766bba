// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 1 4
// arguments: --size 16 --steps 4
//
// A small 3-D U-Net, forward and backward, whose volumes are split in space, as GSPMD does where a
// volume is too large for one device. It learns to find balls in noise. Convolutions, poolings and
// their gradients exchange the planes at the borders of blocks; every process has all weights.
//
//   mpiexec -n 4 unet --size 32 --steps 40 --rate 0.05
//
// It prints the memory that a step takes of a process on 1, 2, 4 and 8 of them, as planned,
// compares the gradients with those of one process alone, and trains.
#include <cmath>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/flags.hpp"
#include "support/progress.hpp"

using namespace tessera;

namespace grid {
struct depth : Axis<> {};
struct height : Axis<> {};
}  // namespace grid
using grid::depth, grid::height;
using Grid = Mesh<depth, height>;
using Loss = ShardedTensor<float, Grid, P<>>;
using Split = P<_, depth, height, _, _>;  // batch, depth, height, width, channels
using Whole = P<_, _, _, _, _>;           // depth, height, width, channels in and out
using Volume = ShardedTensor<float, Grid, Split>;
using Kernel = ShardedTensor<float, Grid, Whole>;
using Weights = std::vector<Kernel>;

constexpr Equation ndhwc{"bdhwi,dhwio->bdhwo"};

/// The kernels: down two levels, up again, and out.
enum : std::size_t { k_in, k_down, k_bottom, k_up_1, k_right_1, k_up_0, k_right_0, k_out };
const std::vector<Extents> kernel_extents{{3, 3, 3, 1, 8},   {3, 3, 3, 8, 16},  {3, 3, 3, 16, 32},
                                          {2, 2, 2, 32, 16}, {3, 3, 3, 16, 16}, {2, 2, 2, 16, 8},
                                          {3, 3, 3, 8, 8},   {1, 1, 1, 8, 1}};

/// The settings of a kernel: as large a result as the input, or, by a transposed convolution (the
/// input's elements with zeros between them), one twice as large.
Convolution settings_of(const Extents& kernel) {
  if (kernel[0] == 3) return {.low = {1, 1, 1}, .high = {1, 1, 1}};
  if (kernel[0] == 2) return {.low = {1, 1, 1}, .high = {1, 1, 1}, .base_dilation = {2, 2, 2}};
  return {};
}
Volume apply(const Volume& x, const Kernel& k) {
  return convolve<ndhwc, Split>(x, k, settings_of(k.extents()));
}
/// Returns the gradient by x of apply(x, k); sets that by k.
Volume back(const Volume& dy, const Volume& x, const Kernel& k, Kernel& dk) {
  const Convolution settings = settings_of(k.extents());
  dk = convolve_kernel_gradient<ndhwc, Whole>(x, dy, k.extents(), settings);
  return convolve_input_gradient<ndhwc, Split>(dy, k, x.extents(), settings);
}

/// What a gradient is before a relu, whose result is `y`.
struct Gate {
  static constexpr std::string_view name = "gate";
  KOKKOS_FUNCTION float operator()(float y, float dy) const { return y > 0 ? dy : 0; }
};
Volume gated(const Volume& y, const Volume& dy) { return map(Gate{}, y, dy); }

const WindowSettings halves{.size = {1, 2, 2, 2, 1}, .stride = {1, 2, 2, 2, 1}};

struct Outcome {
  Loss loss;
  Weights gradients;
};

/// Returns the mean square of what the net makes of x less `target`, and its gradients.
Outcome gradients(const Volume& x, const Volume& target, const Weights& w) {
  const Volume left_0 = relu(apply(x, w[k_in]));
  const Volume pooled_1 = reduce_window<Max>(left_0, halves);
  const Volume left_1 = relu(apply(pooled_1, w[k_down]));
  const Volume pooled_2 = reduce_window<Max>(left_1, halves);
  const Volume bottom = relu(apply(pooled_2, w[k_bottom]));
  const Volume joined_1 = apply(bottom, w[k_up_1]) + left_1;
  const Volume right_1 = relu(apply(joined_1, w[k_right_1]));
  const Volume joined_0 = apply(right_1, w[k_up_0]) + left_0;
  const Volume right_0 = relu(apply(joined_0, w[k_right_0]));
  const Volume error = apply(right_0, w[k_out]) - target;

  Weights g(w);
  const Volume d_error = error * (2.0f / static_cast<float>(error.size()));
  const Volume d_right_0 = gated(right_0, back(d_error, right_0, w[k_out], g[k_out]));
  const Volume d_joined_0 = back(d_right_0, joined_0, w[k_right_0], g[k_right_0]);
  const Volume d_right_1 = gated(right_1, back(d_joined_0, right_1, w[k_up_0], g[k_up_0]));
  const Volume d_joined_1 = back(d_right_1, joined_1, w[k_right_1], g[k_right_1]);
  const Volume d_bottom = gated(bottom, back(d_joined_1, bottom, w[k_up_1], g[k_up_1]));
  const Volume d_pooled_2 = back(d_bottom, pooled_2, w[k_bottom], g[k_bottom]);
  const Volume d_left_1 =
      gated(left_1, reduce_window_gradient<Max>(left_1, d_pooled_2, halves) + d_joined_1);
  const Volume d_pooled_1 = back(d_left_1, pooled_1, w[k_down], g[k_down]);
  const Volume d_left_0 =
      gated(left_0, reduce_window_gradient<Max>(left_0, d_pooled_1, halves) + d_joined_0);
  g[k_in] = convolve_kernel_gradient<ndhwc, Whole>(x, d_left_0, w[k_in].extents(),
                                                   settings_of(w[k_in].extents()));
  return {mean(error * error), g};
}

/// 1 within balls of which one lies about every corner of a coarse grid, else 0.
struct Balls {
  KOKKOS_FUNCTION float operator()(const GlobalIndex& i) const {
    double square = 0;
    for (int d = 1; d < 4; ++d) {
      const double from_centre = static_cast<double>((i[d] + 3 * d) % 16) - 7.5;
      square += from_centre * from_centre;
    }
    return square < 25 ? 1 : 0;
  }
};

/// What the net is given, and what it shall find.
struct Data {
  Volume target, x;
  Data(const ProcessMesh<Grid>& mesh, Index n)
      : target(from_function<Volume>(mesh, {1, n, n, n, 1}, Balls{})),
        x(target + random_normal<Volume>(mesh, {1, n, n, n, 1}, 11, 0, 0.7)) {}
};

Weights initial_weights(const ProcessMesh<Grid>& mesh) {
  Weights w;
  for (const Extents& e : kernel_extents) {
    const double inputs = static_cast<double>(e[0] == 2 ? e[3] : e[0] * e[1] * e[2] * e[3]);
    w.push_back(random_normal<Kernel>(mesh, e, 100 + w.size(), 0, std::sqrt(1 / inputs)));
  }
  return w;
}

/// Returns the largest difference of two tensors, as a part of the larger one's largest element;
/// infinity where an element is not finite.
template <class T> float difference(const HostTensor<T>& a, const HostTensor<T>& b) {
  float apart = 0, largest = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const float own = std::abs(a.values[i] - b.values[i]);
    if (!std::isfinite(own)) return INFINITY;
    apart = std::max(apart, own);
    largest = std::max({largest, std::abs(a.values[i]), std::abs(b.values[i])});
  }
  return largest > 0 ? apart / largest : 0;
}

/// Prints what a step needs of a process's memory on 1 to 8 processes, by dry runs.
void print_memory(Index n, bool speaks) {
  std::vector<Like<Kernel>> kernels;
  for (const Extents& e : kernel_extents) kernels.push_back(Like<Kernel>{e});
  const Like<Volume> volume{{1, n, n, n, 1}};
  Index before = 0;
  for (const auto& mesh :
       {sizes<Grid>(1, 1), sizes<Grid>(2, 1), sizes<Grid>(2, 2), sizes<Grid>(4, 2)}) {
    const Program step = plan(gradients)(volume, volume, kernels, mesh);
    if (speaks)
      fmt::print("a step on {}: {:6.2f} MiB of memory, {:6.3f} MiB sent, {:.3f} Gflop a process\n",
                 to_string(mesh.shape, Grid::names()),
                 static_cast<double>(step.peak_bytes()) / (1 << 20),
                 static_cast<double>(step.payload_bytes()) / (1 << 20),
                 static_cast<double>(step.flops()) / 1e9);
    if (before > 0 && step.peak_bytes() >= before)
      throw Error("more processes do not need less memory each");
    before = step.peak_bytes();
  }
}

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return run_main(1, argv, [&](Environment& env) {
    Index n = 32, steps = 40;
    double rate = 0.05;
    support::FlagTable table;
    table.count("--size", n).count("--steps", steps).positive("--rate", rate).read(words);
    if (n % 4 != 0)
      throw UsageError("unet: the size is " + std::to_string(n) + ", and takes a multiple of 4");
    const int down = env.size() % 2 == 0 ? 2 : 1;
    const auto mesh = make_mesh<Grid>(env, env.size() / down, down);
    const bool first = mesh.process() == 0;
    print_memory(n, first);

    const Data data(mesh, n);
    Weights weights = initial_weights(mesh);
    const Outcome start = gradients(data.x, data.target, weights);
    const float first_loss = value(start.loss);
    std::vector<HostTensor<float>> split;
    for (const Kernel& g : start.gradients) split.push_back(to_host(g));
    if (first) {  // alone
      const auto alone = make_mesh<Grid>(mesh.core()->transport().among({0}), 1, 1);
      const Data same(alone, n);
      const Outcome step = gradients(same.x, same.target, initial_weights(alone));
      float apart = std::abs(value(step.loss) - first_loss) / first_loss;
      for (std::size_t i = 0; i < split.size(); ++i)
        apart = std::max(apart, difference(split[i], to_host(step.gradients[i])));
      fmt::print("loss and gradients on {} and on one process differ by {:.1e} at most\n",
                 to_string(mesh.shape(), Grid::names()), apart);
      if (!(apart <= 1e-4f)) throw Error("the split net computes something else");
    }

    Weights speed;
    for (const Kernel& w : weights) speed.push_back(full<Kernel>(mesh, w.extents(), 0));
    support::Progress progress(steps, first);
    float loss = first_loss;
    for (Index i = 1; i <= steps; ++i) {
      const Outcome step = gradients(data.x, data.target, weights);
      for (std::size_t k = 0; k < weights.size(); ++k) {
        speed[k] = speed[k] * 0.9f + step.gradients[k];
        weights[k] = weights[k] - speed[k] * rate;
      }
      loss = value(step.loss);
      progress.show(i, fmt::format("loss {:.4f}", loss));
    }
    if (first) fmt::print("loss {:.4f} before, {:.4f} after\n", first_loss, loss);
    if (!(loss < first_loss)) throw Error("the net has not learned");
  });
}
