// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Convolutions and their gradients on a device, each by the library (Convolver::fastest) and by the
// portable kernel, and then how long the library takes, by each of its algorithms. A program of its
// own, without a test framework: it is built where nvcc is, and run where a device is.
//
//     convolve_device [CASES [SEED]]          // 200 random cases; 0: only the times
//
// Prints a line for each case and for each time, and a summary; ends with 1 if a case differs.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <tessera/kernel/convolve/convolve.hpp>
#include <tessera/kernel/device/cudnn/way.hpp>
#include <tessera/kernel/fence.hpp>
#include <tessera/kernel/use_element.hpp>

#include "kernel/buffer.hpp"

namespace {
using namespace tessera;
using namespace test;
using detail::CudnnFunction;
using detail::CudnnWork;
using detail::LocalConvolve;
using Spatial = FixedVector<Index, detail::max_spatial>;
template <class T> using Values = Kokkos::View<T*, KernelMemory>;

enum Kind : int { forward, by_data, by_kernel };
const char* const kinds[] = {"forward", "by data", "by kernel"};

const char* name_of(CudnnFunction function) {
  return kinds[function == CudnnFunction::forward ? forward : by_kernel];
}

/// How an operand lies: strides of its two first dimensions, and of the spatial ones.
struct Layout {
  Index first, second, size;
  Spatial spatial;
};

/// A convolution of images in groups of features, from which its gradients follow.
struct Layer {
  Index images = 1, groups = 1, in = 1, out = 1;  ///< features are those of a group
  Spatial extents;
  FixedVector<Window, detail::max_spatial> windows;
  bool last = false;  ///< features

  Spatial results() const {
    Spatial all;
    for (int d = 0; d < extents.size(); ++d)
      all.push_back(detail::result_extent(extents[d], windows[d]));
    return all;
  }
  /// Returns the layout of first x second x spatial: so, or with `second` at the end.
  Layout lay(Index a, Index b, const Spatial& spatial) const {
    Layout l{.first = 0, .second = 1, .size = last ? b : 1, .spatial = spatial};
    for (int d = spatial.size() - 1; d >= 0; l.size *= spatial[d--]) l.spatial[d] = l.size;
    if (!last) {
      l.second = l.size;
      l.size *= b;
    }
    l.first = l.size;
    l.size *= a;
    return l;
  }
  /// Returns the layout of the kernel: output x input x taps, or taps x input x output.
  Layout lay_kernel() const {
    Spatial taps;
    for (const Window& w : windows) taps.push_back(w.size);
    if (!last) return lay(groups * out, in, taps);
    Layout l{.first = 1, .second = groups * out, .size = groups * out * in, .spatial = taps};
    for (int d = taps.size() - 1; d >= 0; l.size *= taps[d--]) l.spatial[d] = l.size;
    return l;
  }

  /// Returns the work and how many elements its operands have.
  LocalConvolve work(Kind kind, Index (&sizes)[3]) const {
    const Layout x = lay(images, groups * in, extents), y = lay(images, groups * out, results()),
                 k = lay_kernel();
    LocalConvolve w{.groups = groups};
    detail::ConvolveLayout in_x{.group = in * x.second, .first = x.first, .second = x.second};
    detail::ConvolveLayout in_y{.group = out * y.second, .first = y.first, .second = y.second};
    detail::ConvolveLayout in_k{.group = out * k.first, .first = k.second, .second = k.first};
    in_x.spatial = x.spatial;
    in_y.spatial = y.spatial;
    in_k.spatial = k.spatial;
    w.batch = kind == by_kernel ? in : images;
    w.in_features = kind == forward ? in : kind == by_data ? out : images;
    w.out_features = kind == by_data ? in : out;
    w.input = kind == by_data ? results() : extents;
    w.in = kind == by_data ? in_y : in_x;
    w.kernel = kind == by_kernel ? in_y : in_k;
    w.out = kind == forward ? in_y : kind == by_data ? in_x : in_k;
    if (kind == by_kernel) std::swap(w.in.first, w.in.second);
    if (kind == by_data) std::swap(w.kernel.first, w.kernel.second);
    for (int d = 0; d < extents.size(); ++d) {
      const Window& a = windows[d];
      Window b = a;
      if (kind == by_data)
        b = {.size = a.size,
             .low = (a.size - 1) * a.window_dilation - a.low,
             .base_dilation = a.stride,
             .window_dilation = a.window_dilation,
             .reversed = !a.reversed};
      if (kind == by_kernel)
        b = {.size = results()[d],
             .stride = a.window_dilation,
             .low = a.low,
             .window_dilation = a.stride};
      w.windows.push_back(b);
      w.result.push_back(kind == forward ? results()[d] : kind == by_data ? extents[d] : a.size);
    }
    sizes[0] = kind == by_data ? y.size : x.size;
    sizes[1] = kind == by_kernel ? y.size : k.size;
    sizes[2] = kind == forward ? y.size : kind == by_data ? x.size : k.size;
    return w;
  }
};

Layer some_layer(Random& random, Kind kind) {
  for (;;) {
    Layer l;
    l.images = pick(random, 1, 6);
    l.in = pick(random, 1, 20);
    l.out = pick(random, 1, 20);
    if (pick(random, 0, 2) == 0) l.groups = pick(random, 2, 4);
    if (pick(random, 0, 1) == 0) l.in = 8 * ((l.in + 7) / 8), l.out = 8 * ((l.out + 7) / 8);
    l.last = pick(random, 0, 1) == 0;
    const int dims = pick(random, 0, 2) == 0 ? 3 : 2;
    bool have = true;
    for (int d = 0; d < dims; ++d) {
      l.extents.push_back(pick(random, 3, dims == 3 ? 12 : 32));
      Window w{.size = pick(random, 1, 4)};
      const bool plain = pick(random, 0, 2) > 0;
      w.low = w.high = plain ? (w.size - 1) / 2 : 0;
      if (!plain) {
        w.low = pick(random, 0, 2);
        w.high = pick(random, 0, 2);
      }
      if (pick(random, 0, 2) == 0) w.stride = pick(random, 2, 3);
      if (pick(random, 0, 4) == 0) w.window_dilation = 2;
      w.reversed = kind != by_kernel && pick(random, 0, 4) == 0;
      l.windows.push_back(w);
      have = have && detail::result_extent(l.extents[d], w) > 0;
    }
    if (!have) continue;
    Index sizes[3];
    const Index flops = l.work(kind, sizes).flops();
    if (flops >= Index{1} << 20 && flops <= Index{1} << 28) return l;
  }
}

std::string text_of(const Layer& l) {
  std::string text = std::to_string(l.images) + " x " + std::to_string(l.groups) + "g x " +
                     std::to_string(l.in) + "->" + std::to_string(l.out) + ", ";
  for (int d = 0; d < l.extents.size(); ++d) {
    const Window& w = l.windows[d];
    text += std::to_string(l.extents[d]) + "(" + std::to_string(w.size) + " s" +
            std::to_string(w.stride) + " p" + std::to_string(w.low) + "_" + std::to_string(w.high) +
            " d" + std::to_string(w.window_dilation) + (w.reversed ? "r) " : ") ");
  }
  return text + (l.last ? "last" : "first");
}

struct Counts {
  int cases = 0, wrong = 0, refused = 0, differ = 0, beyond = 0;
};

/// Returns how far two sums of `terms` products of numbers up to 1 may lie apart.
template <class T> double tolerance(double value, double terms) {
  const double unit = std::ldexp(1.0, sizeof(T) == 8                     ? -52
                                      : sizeof(T) == 4                   ? -23
                                      : std::is_same_v<T, tessera::half> ? -10
                                                                         : -7);
  const double sum = std::ldexp(terms, sizeof(T) == 8 ? -52 : -23);
  return sum + (sizeof(T) == 2 ? std::fabs(value) * unit : 0);
}

template <class T> bool same(T a, T b) {
  return a == b || (std::isnan(static_cast<double>(a)) && std::isnan(static_cast<double>(b)));
}

template <class T> void compare(Random& random, int number, Counts& counts) {
  const Kind kind = static_cast<Kind>(number % 3);
  const Layer layer = some_layer(random, kind);
  Index sizes[3];
  LocalConvolve work = layer.work(kind, sizes);
  const bool moved = pick(random, 0, 5) == 0;  // to addresses that are not cuDNN's
  if (moved) work.in.offset = 1, work.kernel.offset = 3, work.out.offset = 1;
  const bool whole = pick(random, 0, 1) == 0;  // whole numbers, which are exact
  const int nans = pick(random, 0, 3) == 0 ? static_cast<int>(pick(random, 1, 3)) : 0;
  std::vector<T> host[3];
  for (int o = 0; o < 3; ++o) {
    host[o].resize(static_cast<std::size_t>(sizes[o] + 3));
    for (T& value : host[o])
      value = static_cast<T>(o == 2  ? 77.0f
                             : whole ? static_cast<float>(pick(random, -3, 3))
                                     : static_cast<float>(pick(random, -512, 512)) / 512.0f);
    if (o < 2 && (nans >> o & 1) != 0)
      host[o][static_cast<std::size_t>(pick(random, 0, sizes[o] - 1))] =
          static_cast<T>(std::numeric_limits<float>::quiet_NaN());
  }
  const Buffer<T> in(host[0]), kernel(host[1]), fast(host[2]), plain(host[2]), again(host[2]);
  detail::convolve(dtype_of<T>, work, in.data(), kernel.data(), plain.data(),
                   detail::Convolver::portable);
  detail::convolve(dtype_of<T>, work, in.data(), kernel.data(), fast.data());
  bool made = true;
#if defined(KOKKOS_ENABLE_CUDA) && defined(TESSERA_HAVE_CUDNN)
  made = detail::cudnn_convolve(dtype_of<T>, work, in.data(), kernel.data(), again.data());
#else
  detail::convolve(dtype_of<T>, work, in.data(), kernel.data(), again.data());
#endif
  const std::vector<T> a = fast.values(), b = plain.values(), c = again.values();
  const double terms = static_cast<double>(work.in_features * work.taps());
  double worst = 0;
  int wrong = 0, differ = 0, beyond = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    if (made && !same(a[i], c[i])) ++differ;
    if (std::isnan(x) && !std::isnan(y) && (nans & 2) != 0) {
      ++beyond;  // the kernel's NaN over padding
    } else if (std::isnan(x) != std::isnan(y)) {
      ++wrong;
    } else if (!std::isnan(x)) {
      worst = std::max(worst, std::fabs(x - y));
      if (!(std::fabs(x - y) <= (whole ? 0 : tolerance<T>(y, terms)))) ++wrong;
    }
  }
  const std::vector<CudnnWork> ways = detail::cudnn_ways(sizeof(T), work);
  std::printf(
      "%-6s %3d %-9s %-8s %s%s%s: %zu results, worst %.2e, %d wrong, %d beyond, %d differ; ",
      wrong + differ > 0 ? "WRONG"
      : made             ? "ok"
                         : "REFUSED",
      number, kinds[kind], std::string(name_of(dtype_of<T>)).c_str(), text_of(layer).c_str(),
      moved ? ", moved" : "", whole ? ", whole" : "", b.size(), worst, wrong, beyond, differ);
  if (ways.empty())
    std::printf("no way\n");
  else
    std::printf("%zu call(s) of %s%s\n", ways[0].calls.size(),
                name_of(ways[0].calls[0].shape.function),
                ways[0].calls[0].shape.features_last ? ", last" : "");
  std::fflush(stdout);
  ++counts.cases;
  counts.wrong += wrong > 0;
  counts.differ += differ > 0;
  counts.refused += !made;
  counts.beyond += beyond > 0;
}

/// Returns the median seconds of 20 calls, each with fences around it.
template <class F> double time_of(F call) {
  std::vector<double> times;
  for (int i = 0; i < 23; ++i) {
    detail::fence();
    const Kokkos::Timer timer;
    call();
    detail::fence();
    if (i >= 3) times.push_back(timer.seconds());
  }
  std::sort(times.begin(), times.end());
  return (times[9] + times[10]) / 2;
}

/// Numbers from -1 to 1, or whole ones from -3 to 3.
template <class T> struct Fill {
  T* to;
  bool whole;
  KOKKOS_FUNCTION void operator()(Index i) const {
    std::uint64_t bits = static_cast<std::uint64_t>(i + 1) * 0x9e37'79b9'7f4a'7c15u;
    bits = (bits ^ (bits >> 29)) * 0xbf58'476d'1ce4'e5b9u;
    bits ^= bits >> 32;
    to[i] = static_cast<T>(whole ? static_cast<float>(bits % 7) - 3
                                 : static_cast<float>(bits % 65536) / 32768.0f - 1);
  }
};
template <class T> Values<T> filled(Index size, bool whole) {
  Values<T> made("values", static_cast<std::size_t>(size));
  Kokkos::parallel_for("fill", Kokkos::RangePolicy<KernelSpace, Kokkos::IndexType<Index>>(0, size),
                       Fill<T>{made.data(), whole});
  return made;
}

void print_time(const std::string& what, double seconds, double flops) {
  std::printf("  %-64s %9.4f ms %8.1f TFLOP/s\n", what.c_str(), seconds * 1e3,
              flops / seconds * 1e-12);
  std::fflush(stdout);
}

#if defined(KOKKOS_ENABLE_CUDA) && defined(TESSERA_HAVE_CUDNN)
/// Times a way's calls by each algorithm, and its copies.
template <class T>
void time_way(const CudnnWork& way, bool chosen, const T* in, const T* kernel, T* out) {
  if (way.calls.empty()) return;
  const detail::CudnnCall& call = way.calls[0];
  const std::string name = (chosen ? "* " : "  ") + std::string(name_of(call.shape.function)) +
                           (call.shape.features_last ? ", last" : ", first");
  const auto user = detail::cudnn_operands<const T*>(call.shape.function, in, kernel, out);
  const detail::CudnnTensor written = call.shape.written();
  double copies = 0;
  const auto place = [&](const std::optional<detail::StridedCopy>& copy, const T* of_user,
                         Index offset, bool result, Values<T>& memory) -> const T* {
    if (!copy) return of_user + offset;
    memory = Values<T>("copy", static_cast<std::size_t>(volume(copy->extents)));
    T* const own = memory.data();
    const double time = time_of([&] {
      detail::copy_elements<sizeof(T)>(result ? own : of_user,
                                       result ? const_cast<T*>(of_user) : own, &*copy, 1);
    });
    copies += time;
    return own;
  };
  Values<T> of_in, of_kernel, of_out;
  using detail::CudnnTensor;
  const T* x = place(call.in_copy, user.in, call.in, false, of_in);
  const T* w =
      place(call.kernel_copy, user.kernel, call.kernel, written == CudnnTensor::kernel, of_kernel);
  const T* y = place(call.out_copy, user.out, call.out, written == CudnnTensor::out, of_out);
  const std::string calls = std::to_string(way.calls.size()) + " call(s), copies of the first " +
                            std::to_string(copies * 1e3) + " ms";
  std::printf("  %s: %s\n", name.c_str(), calls.c_str());
  detail::CudnnDevice& device = detail::cudnn_device();
  for (std::size_t n = 0;; ++n) {
    const std::lock_guard lock(device.mutex);
    device.begin();
    const detail::CudnnConvolution made(device, dtype_of<T>, call.shape, n);
    if (!made.usable()) {
      if (n == 0) std::printf("      not supported\n");
      return;
    }
    const detail::CudnnChoice& c = made.choice();
    const std::string text = "    " + std::to_string(n) + ": algorithm " +
                             std::to_string(c.algorithm) + ", math " + std::to_string(c.math) +
                             ", " + std::to_string(c.workspace >> 20) + " MiB, the first call";
    if (!made.run(device, x, w, y)) {
      std::printf("  %s is refused\n", text.c_str());
      continue;
    }
    print_time(text, time_of([&] { made.run(device, x, w, y); }), call.shape.flops());
  }
}
#endif

/// Compares a large convolution with the portable kernel, and times it.
template <class T>
void large(const std::string& name, const Layer& layer, Kind kind, bool check, Counts& counts) {
  Index sizes[3];
  const LocalConvolve work = layer.work(kind, sizes);
  const std::string title =
      name + " " + kinds[kind] + ", " + std::string(name_of(dtype_of<T>)) + ": ";
  try {
    Values<T> out = filled<T>(sizes[2], false);
    if (check) {
      const Values<T> in = filled<T>(sizes[0], true), kernel = filled<T>(sizes[1], true);
      Values<T> plain = filled<T>(sizes[2], false);
      detail::convolve(dtype_of<T>, work, in.data(), kernel.data(), out.data());
      detail::fence();
      const Kokkos::Timer timer;
      detail::convolve(dtype_of<T>, work, in.data(), kernel.data(), plain.data(),
                       detail::Convolver::portable);
      detail::fence();
      const double portable = timer.seconds();
      const auto a = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), out);
      const auto b = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), plain);
      Index wrong = 0;
      for (std::size_t i = 0; i < a.size(); ++i) wrong += !same(a(i), b(i));
      ++counts.cases;
      counts.wrong += wrong > 0;
      std::printf("%-6s %s%lld of %zu whole numbers differ (portable: %.1f ms)\n",
                  wrong > 0 ? "WRONG" : "ok", title.c_str(), static_cast<long long>(wrong),
                  a.size(), portable * 1e3);
    }
    const Values<T> in = filled<T>(sizes[0], false), kernel = filled<T>(sizes[1], false);
    print_time(title, time_of([&] {
                 detail::convolve(dtype_of<T>, work, in.data(), kernel.data(), out.data());
               }),
               static_cast<double>(work.flops()));
#if defined(KOKKOS_ENABLE_CUDA) && defined(TESSERA_HAVE_CUDNN)
    const std::vector<CudnnWork> ways = detail::cudnn_ways(sizeof(T), work);
    for (const CudnnFunction function : {CudnnFunction::forward, CudnnFunction::by_kernel})
      for (const bool dense : {false, true}) {
        const CudnnWork way = detail::cudnn_work(sizeof(T), work, function, dense);
        if (way.calls.empty()) continue;
        const bool chosen = !ways.empty() && ways[0].calls.at(0).shape == way.calls[0].shape;
        time_way<T>(way, chosen, in.data(), kernel.data(), out.data());
      }
#endif
  } catch (const std::exception& error) {
    ++counts.wrong;
    std::printf("WRONG  %sfails: %s\n", title.c_str(), error.what());
  }
}

int run(int cases, int seed) {
  detail::use_convolve_of<float>();
  detail::use_convolve_of<double>();
  detail::use_convolve_of<tessera::half>();
  detail::use_convolve_of<bfloat16>();
  Counts counts;
  for (int i = 0; i < cases; ++i) {
    Random random(static_cast<unsigned>(seed * 100'000 + i));
    try {
      if (i / 3 % 4 == 0) compare<float>(random, i, counts);
      if (i / 3 % 4 == 1) compare<bfloat16>(random, i, counts);
      if (i / 3 % 4 == 2) compare<tessera::half>(random, i, counts);
      if (i / 3 % 4 == 3) compare<double>(random, i, counts);
    } catch (const std::exception& error) {
      ++counts.wrong;
      std::printf("WRONG  %3d fails: %s\n", i, error.what());
    }
  }
  std::printf(
      "cases: %d, of them %d wrong, %d not the same twice, %d refused by cuDNN; in %d a NaN of the "
      "kernel reached results that have it over padding\n",
      counts.cases, counts.wrong, counts.differ, counts.refused, counts.beyond);
  std::printf("times: median of 20; * is the way that is chosen, and 0 its algorithm\n");
  const Index side = kernels_on_host ? 8 : 64, features = kernels_on_host ? 16 : 256;
  Layer plain;
  plain.images = 32;
  plain.in = plain.out = features;
  plain.extents = {side, side};
  const Window same_size{.size = 3, .low = 1, .high = 1};
  plain.windows = {same_size, same_size};
  plain.last = true;
  Layer strided = plain, first = plain;
  strided.windows[0].stride = strided.windows[1].stride = 2;
  first.last = false;
  for (const Kind kind : {forward, by_data, by_kernel})
    large<float>("3x3", plain, kind, true, counts);
  for (const Kind kind : {forward, by_data, by_kernel})
    large<bfloat16>("3x3", plain, kind, true, counts);
  for (const Kind kind : {by_data, by_kernel}) {
    large<float>("3x3 stride 2", strided, kind, true, counts);
    large<bfloat16>("3x3 stride 2", strided, kind, true, counts);
  }
  for (const Kind kind : {forward, by_data, by_kernel})
    large<float>("3x3 features first", first, kind, false, counts);
  const bool good = counts.wrong + counts.differ == 0;
  std::printf("summary: %d cases, %d wrong, %d not the same twice, %d refused: %s\n", counts.cases,
              counts.wrong, counts.differ, counts.refused, good ? "PASSED" : "FAILED");
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  return run(argc > 1 ? std::atoi(argv[1]) : 200, argc > 2 ? std::atoi(argv[2]) : 1);
}
