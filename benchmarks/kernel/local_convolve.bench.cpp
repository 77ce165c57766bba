// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 1
// Convolutions of one process's memory, in turns: the portable kernel, what is chosen (oneDNN in
// bands), and oneDNN bare, on data that lie in its own layouts already, and with whole-tensor
// copies to and from them. The last column is the time of what is chosen over that of the bare one.
#include <cstdio>
#include <cstring>
#include <functional>
#include <vector>

#include <mpi.h>

#include <tessera/kernel/use_element.hpp>

#include "support/mpi_benchmark.hpp"
#include "support/turns.hpp"

namespace {
using namespace tessera;

/// A square window over square images, padded so that the result is as large (over the stride).
struct Layer {
  const char* name;
  Index batch, groups, in_features, extent, out_features, taps, stride = 1;
  bool features_last = false;
  bool transposed = false;  // a base dilated by 2, stride 1
};

detail::LocalConvolve work_of(const Layer& l) {
  Window w{.size = l.taps, .stride = l.stride, .low = l.taps / 2, .high = (l.taps - 1) / 2};
  if (l.transposed) w.base_dilation = 2, w.high += 1;
  const Index n = l.extent, m = detail::result_extent(n, w);
  const Index c = l.groups * l.in_features, o = l.groups * l.out_features, k = l.taps;
  detail::LocalConvolve work{.groups = l.groups,
                             .batch = l.batch,
                             .in_features = l.in_features,
                             .out_features = l.out_features,
                             .input = {n, n},
                             .result = {m, m},
                             .windows = {w, w}};
  if (l.features_last) {
    work.in = {.first = n * n * c, .second = 1, .spatial = {n * c, c}};
    work.out = {.first = m * m * o, .second = 1, .spatial = {m * o, o}};
    work.kernel = {.first = o, .second = 1, .spatial = {k * l.in_features * o, l.in_features * o}};
  } else {
    work.in = {.first = c * n * n, .second = n * n, .spatial = {n, 1}};
    work.out = {.first = o * m * m, .second = m * m, .spatial = {m, 1}};
    work.kernel = {.first = k * k, .second = l.in_features * k * k, .spatial = {k, 1}};
  }
  work.in.group = work.in_features * work.in.second;
  work.kernel.group = work.out_features * work.kernel.second;
  work.out.group = work.out_features * work.out.second;
  return work;
}

#if defined(TESSERA_HAVE_DNNL)
/// oneDNN as one uses it by hand.
struct Bare {
  detail::DnnlLayout user_in, user_kernel, user_out, in, kernel, out;
  detail::DnnlPrimitive convolution, read, pack, write;
  detail::DnnlMemory in_memory, kernel_memory, out_memory;
  void *x = nullptr, *k = nullptr, *y = nullptr;

  explicit Bare(const detail::LocalConvolve& w) {
    using detail::DnnlLayout;
    const Index n = w.input[0], m = w.result[0], taps = w.windows[0].size;
    const detail::DnnlDims xs{w.batch, w.groups * w.in_features, n, n};
    const detail::DnnlDims ys{w.batch, w.groups * w.out_features, m, m};
    detail::DnnlDims ks, k_strides;
    if (w.groups > 1) {
      ks.push_back(w.groups);
      k_strides.push_back(w.kernel.group);
    }
    for (const Index extent : {w.out_features, w.in_features, taps, taps}) ks.push_back(extent);
    for (const Index stride :
         {w.kernel.second, w.kernel.first, w.kernel.spatial[0], w.kernel.spatial[1]})
      k_strides.push_back(stride);
    const Window& v = w.windows[0];
    const Index high = (m - 1) * v.stride + taps - n - v.low;
    convolution = detail::make_dnnl_convolution(
        DnnlLayout::any(dnnl_f32, xs), DnnlLayout::any(dnnl_f32, ks), DnnlLayout::any(dnnl_f32, ys),
        {{v.stride, v.stride}, {1, 1}, {v.low, v.low}, {high, high}});
    if (!convolution) return;
    user_in = DnnlLayout::strided(dnnl_f32, xs,
                                  {w.in.first, w.in.second, w.in.spatial[0], w.in.spatial[1]});
    user_out = DnnlLayout::strided(dnnl_f32, ys,
                                   {w.out.first, w.out.second, w.out.spatial[0], w.out.spatial[1]});
    user_kernel = DnnlLayout::strided(dnnl_f32, ks, k_strides);
    in = convolution.layout(dnnl_query_src_md);
    kernel = convolution.layout(dnnl_query_weights_md);
    out = convolution.layout(dnnl_query_dst_md);
    read = detail::make_dnnl_reorder(user_in, in);
    pack = detail::make_dnnl_reorder(user_kernel, kernel);
    write = detail::make_dnnl_reorder(out, user_out);
    x = in_memory.get(in.bytes());
    k = kernel_memory.get(kernel.bytes());
    y = out_memory.get(out.bytes());
    std::memset(x, 0, in.bytes());
    std::memset(k, 0, kernel.bytes());
  }
  void run() {
    convolution.run(
        {{DNNL_ARG_SRC, &in, x}, {DNNL_ARG_WEIGHTS, &kernel, k}, {DNNL_ARG_DST, &out, y}});
  }
  void run_from(const float* from, const float* weights, float* to) {
    read.run({{DNNL_ARG_FROM, &user_in, from}, {DNNL_ARG_TO, &in, x}});
    pack.run({{DNNL_ARG_FROM, &user_kernel, weights}, {DNNL_ARG_TO, &kernel, k}});
    run();
    write.run({{DNNL_ARG_FROM, &out, y}, {DNNL_ARG_TO, &user_out, to}});
  }
};
#endif

void measure(const Layer& layer) {
  const std::string row = std::string("local convolution/") + layer.name;
  if (!tessera_bench::wanted(row)) return;
  const detail::LocalConvolve work = work_of(layer);
  const auto size = [](Index a, Index b, Index c, Index d) {
    return static_cast<std::size_t>(a * b * c * d);
  };
  const std::vector<float> in(
      size(work.batch, work.groups * work.in_features, work.input[0], work.input[1]), 0.5f);
  const std::vector<float> kernel(
      size(work.groups * work.out_features, work.in_features, layer.taps, layer.taps), 0.25f);
  std::vector<float> out(
      size(work.batch, work.groups * work.out_features, work.result[0], work.result[1]));
  const auto by = [&](detail::Convolver convolver) {
    return [&, convolver] {
      detail::convolve(DType::f32, work, in.data(), kernel.data(), out.data(), convolver);
    };
  };
  std::vector<std::function<void()>> bodies{by(detail::Convolver::portable),
                                            by(detail::Convolver::fastest)};
#if defined(TESSERA_HAVE_DNNL)
  Bare bare(work);
  if (bare.convolution && !layer.transposed) {
    bodies.push_back([&] { bare.run(); });
    bodies.push_back([&] { bare.run_from(in.data(), kernel.data(), out.data()); });
  }
#endif
  const std::vector<double> times =
      tessera_bench::in_turns(bodies, {.seconds = 3, .least = 7, .most = 201});
  std::vector<std::pair<std::string, double>> ways{{"tessera", times[1]},
                                                   {"tessera, portable", times[0]}};
  if (times.size() > 2) {
    ways.emplace_back("bare oneDNN", times[2]);
    ways.emplace_back("bare oneDNN and whole copies", times[3]);
  }
  tessera_bench::note(row, ways);
  std::printf("%-30s", layer.name);
  for (const double t : times)
    std::printf(" %9.3f ms %6.1f", t * 1e3, static_cast<double>(work.flops()) / t * 1e-9);
  if (times.size() > 2) std::printf("  %5.2f", times[1] / times[2]);
  std::printf("\n");
}

void measure_all() {
  tessera_bench::print_context();
  std::printf("%-30s %19s %19s %19s %19s  ratio   (GFLOP/s beside each)\n", "", "portable",
              "chosen", "bare oneDNN", "and whole copies");
  for (const Layer& layer : {
           Layer{"3x3 32-32, 4x256x256, NCHW", 4, 1, 32, 256, 32, 3},
           Layer{"3x3 32-32, 4x256x256, NHWC", 4, 1, 32, 256, 32, 3, 1, true},
           Layer{"3x3 64-64, 4x112x112, NCHW", 4, 1, 64, 112, 64, 3},
           Layer{"7x7/2 3-64, 4x224x224, NCHW", 4, 1, 3, 224, 64, 7, 2},
           Layer{"3x3 256-256, 8x14x14, NCHW", 8, 1, 256, 14, 256, 3},
           Layer{"3x3 512-512, 8x7x7, NCHW", 8, 1, 512, 7, 512, 3},
           Layer{"1x1 256-256, 4x28x28, NCHW", 4, 1, 256, 28, 256, 1},
           Layer{"3x3 depthwise 128, 4x112, NCHW", 4, 128, 1, 112, 1, 3},
           Layer{"3x3 depthwise 128, 4x112, NHWC", 4, 128, 1, 112, 1, 3, 1, true},
           Layer{"5x5 1-1, 1x1024x1024", 1, 1, 1, 1024, 1, 5},
           Layer{"3x3 8-8, 1x16x16, NCHW", 1, 1, 8, 16, 8, 3},
           Layer{"4x4 x2 32-32, 4x64x64, NCHW", 4, 1, 32, 64, 32, 4, 1, false, true},
       })
    measure(layer);
}
}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    const Kokkos::ScopeGuard kokkos(argc, argv);
    detail::use_element<float>();
    tessera_bench::start(argc, argv);
    measure_all();
    tessera_bench::finish();
  }
  MPI_Finalize();
  return 0;
}
