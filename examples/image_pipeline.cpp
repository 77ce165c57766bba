// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 4
// libraries: png
//
// A picture, its rows split over the processes, is blurred, searched for edges and halved by
// sharded convolutions, which exchange the rows at the borders of blocks:
//
//   mpiexec -n 4 image_pipeline PICTURE.png PREFIX
//
// It writes PREFIX_picture.png, PREFIX_blur.png, PREFIX_edges.png and PREFIX_half.png (PPM where
// libpng is not found), prints what was sent, and that one process alone gets the same bits.
// Without a picture it draws a fractal; PREFIX is then image_pipeline.
#include <cmath>

#include <tessera/tessera.hpp>

#include "support/picture.hpp"

using namespace tessera;

namespace grid {
struct rows : Axis<> {};
}  // namespace grid
using grid::rows;
using Grid = Mesh<rows>;
template <class T>
using Pixels = ShardedTensor<T, Grid, P<rows, _, _, _>>;   // height, width, colour, 1
using Kernel = ShardedTensor<float, Grid, P<_, _, _, _>>;  // height, width, 1, 1
using Image = Pixels<float>;

/// Colours are filtered alike, as the batch of a convolution with one feature.
constexpr Equation each_colour{"hwci,hwio->hwco"};

/// The Mandelbrot set between -2.1 and 0.7, coloured by how soon a point escapes.
struct Fractal {
  KOKKOS_FUNCTION std::uint8_t operator()(const GlobalIndex& i) const {
    const double a = -2.1 + 2.8 * static_cast<double>(i[1]) / 767;
    const double b = -1.05 + 2.1 * static_cast<double>(i[0]) / 575;
    double x = 0, y = 0;
    int steps = 0;
    for (; steps < 128 && x * x + y * y < 64; ++steps) {
      const double next = x * x - y * y + a;
      y = 2 * x * y + b;
      x = next;
    }
    if (steps == 128) return 0;
    const double smooth = steps - Kokkos::log2(Kokkos::log2(x * x + y * y));
    const double phase = 0.25 * smooth + 0.9 * static_cast<double>(i[2]);
    return static_cast<std::uint8_t>(127.5 - 127.5 * Kokkos::cos(phase));
  }
};

struct Magnitude {
  static constexpr std::string_view name = "magnitude";
  KOKKOS_FUNCTION float operator()(float x, float y) const { return Kokkos::sqrt(x * x + y * y); }
};

/// Returns x filtered by a kernel of the given height, row by row, at every stride-th place.
Image filter(const Image& x, Index height, std::vector<float> taps, Index stride = 1,
             bool padded = true) {
  const ProcessMesh<Grid> mesh(x.core().mesh());
  const Index width = static_cast<Index>(taps.size()) / height;
  const auto kernel = from_host<Kernel>(mesh, {height, width, 1, 1}, taps);
  Convolution settings{.portable = true};  // the same bits however the rows are split
  settings.stride = {stride, stride};
  if (padded) settings.low = settings.high = {(height - 1) / 2, (width - 1) / 2};
  return convolve<each_colour>(x, kernel, settings);
}

/// Returns x under a Gaussian of deviation 3, first along columns, then along rows.
Image smooth(const Image& x) {
  std::vector<float> taps;
  for (int i = -9; i <= 9; ++i) taps.push_back(std::exp(-static_cast<float>(i * i) / 18));
  return filter(filter(x, 19, taps), 1, taps);
}

struct Results {
  Image blur, edges, half;
};

Results pipeline(const Image& x) {
  const ProcessMesh<Grid> mesh(x.core().mesh());
  const auto ones = full<Image>(mesh, {x.extents()[0], x.extents()[1], 1, 1}, 1.0f);
  // At the rim, the mean of what there is.
  const auto blur = smooth(x) / smooth(ones);
  const auto down = filter(x, 3, {-1, -2, -1, 0, 0, 0, 1, 2, 1}, 1, false);
  const auto right = filter(x, 3, {-1, 0, 1, -2, 0, 2, -1, 0, 1}, 1, false);
  const auto half = filter(x, 2, {0.25f, 0.25f, 0.25f, 0.25f}, 2);
  return {blur, map(Magnitude{}, down, right) / 4.0f, half};
}

/// Returns the picture in a file that process 0 reads, its rows split.
Pixels<std::uint8_t> read(const ProcessMesh<Grid>& mesh, const std::string& path) {
  support::Picture picture;
  const std::string complaint = complaint_of([&] {
    if (mesh.process() == 0) picture = support::read_picture(path);
  });
  fail_together(*mesh.core(), complaint, Where::here());
  const std::vector<std::int64_t> mine{picture.height, picture.width};
  const auto size = to_host(from_root<ShardedTensor<std::int64_t, Grid, P<_>>>(mesh, {2}, 0, mine));
  return from_root<Pixels<std::uint8_t>>(mesh, {size(0), size(1), 3, 1}, 0, picture.pixels);
}

void write(const ProcessMesh<Grid>& mesh, const Pixels<std::uint8_t>& x, const std::string& name) {
  const auto whole = to_root(x);
  const std::string complaint = complaint_of([&] {
    if (mesh.process() != 0) return;
    const auto& size = whole.extents;
    fmt::print("{} x {} pixels in {}\n", size[1], size[0],
               support::write_picture({size[0], size[1], whole.values}, name));
  });
  fail_together(*mesh.core(), complaint, Where::here());
}
void write(const ProcessMesh<Grid>& mesh, const Image& x, const std::string& name) {
  write(mesh, cast<std::uint8_t>(x * 255.0f + 0.5f), name);
}

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return run_main(1, argv, [&](Environment& env) {
    const auto mesh = make_mesh<Grid>(env, env.size());
    const bool first = mesh.process() == 0;
    const auto bytes = words.empty()
                           ? from_function<Pixels<std::uint8_t>>(mesh, {576, 768, 3, 1}, Fractal{})
                           : read(mesh, words[0]);
    const Image x = cast<float>(bytes) / 255.0f;

    mesh.ledger().reset();
    const Results results = pipeline(x);
    if (first)
      fmt::print("{} processes; process 0 sent {:.1f} KiB for its halos, and has {:.1f} KiB\n",
                 mesh.processes(), static_cast<double>(mesh.ledger().payload_bytes()) / 1024,
                 static_cast<double>(x.local_size()) * 4 / 1024);

    const std::string prefix = words.size() > 1 ? words[1] : "image_pipeline";
    write(mesh, bytes, prefix + "_picture");
    write(mesh, results.blur, prefix + "_blur");
    write(mesh, results.edges, prefix + "_edges");
    write(mesh, results.half, prefix + "_half");

    // Process 0 computes the results alone.
    const auto whole = to_root(x);
    const auto blur = to_root(results.blur), edges = to_root(results.edges),
               half = to_root(results.half);
    if (!first) return;
    const auto alone = make_mesh<Grid>(mesh.core()->transport().among({0}), 1);
    const Results same = pipeline(from_host<Image>(alone, whole.extents, whole.values));
    if (to_host(same.blur) != blur || to_host(same.edges) != edges || to_host(same.half) != half)
      throw Error("one process gets other bits");
    fmt::print("one process alone gets the same bits\n");
  });
}
