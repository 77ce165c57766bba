// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_windows
// What cuDNN would be asked for, without cuDNN: the calls' numbers, and their results by the
// documented meaning of its descriptors.
#include <doctest/doctest.h>

#include <tessera/kernel/convolve/convolve.hpp>
#include <tessera/kernel/device/cudnn/shape.hpp>
#include <tessera/kernel/device/cudnn/way.hpp>

#include "kernel/window_cases.hpp"

using namespace tessera;
using namespace test;
using detail::CudnnCall;
using detail::CudnnFunction;
using detail::CudnnShape;
using detail::CudnnTensor;
using detail::CudnnWork;

namespace {

std::vector<CudnnCall> cudnn_calls(Index bytes, const detail::LocalConvolve& work, bool dense,
                                   CudnnFunction function = CudnnFunction::forward) {
  return detail::cudnn_work(bytes, work, function, dense).calls;
}

using Dims = CudnnShape::Dims;
using Spatial = CudnnShape::Spatial;
using Floats = std::vector<float>;

/// Carries out a copy, every element within both.
void copy_plainly(const detail::StridedCopy& copy, const Floats& from, Floats& to) {
  for_each_index(copy.extents, [&](const Extents& i) {
    to.at(at(i, copy.to_strides, copy.to_offset)) =
        from.at(at(i, copy.from_strides, copy.from_offset));
  });
}

Index product(const Dims& dims) {
  Index all = 1;
  for (const int extent : dims) all *= extent;
  return all;
}

/// What cudnnConvolutionForward and -BackwardFilter document, of descriptors that
/// they accept.
void convolve_as_cudnn(const CudnnShape& s, float* x, float* w, float* y) {
  const int spatial = s.padding.size(), rank = spatial + 2;
  REQUIRE((rank == 4 || rank == 5));
  for (const Dims* dims : {&s.in, &s.in_strides, &s.kernel, &s.out, &s.out_strides}) {
    REQUIRE(dims->size() == rank);
    for (const int value : *dims) REQUIRE(value > 0);
  }
  REQUIRE(s.in[0] == s.out[0]);
  REQUIRE(s.in[1] == s.groups * s.kernel[1]);
  REQUIRE(s.out[1] == s.kernel[0]);
  REQUIRE(s.kernel[0] % s.groups == 0);
  Extents results{s.out[0], s.out[1]}, taps{s.kernel[1]}, strides(rank, 1);
  Index next = s.features_last ? s.kernel[1] : 1;
  for (int d = rank - 1; d > 1; next *= s.kernel[d--]) strides[d] = next;
  if (!s.features_last) strides[1] = next;
  strides[0] = product(s.kernel) / s.kernel[0];
  for (int d = 0; d < spatial; ++d) {
    const int reach = 1 + (s.kernel[d + 2] - 1) * s.dilations[d];
    REQUIRE(s.padding[d] >= 0);
    REQUIRE(s.in[d + 2] + 2 * s.padding[d] >= reach);
    REQUIRE(s.out[d + 2] == 1 + (s.in[d + 2] + 2 * s.padding[d] - reach) / s.strides[d]);
    results.push_back(s.out[d + 2]);
    taps.push_back(s.kernel[d + 2]);
  }
  const auto offset_of = [](const Extents& i, const Dims& by) {
    Index offset = 0;
    for (int d = 0; d < i.size(); ++d) offset += i[d] * by[d];
    return offset;
  };
  const auto fill = [&](const Dims& dims, const Dims& by, float* to) {
    Extents extents;
    for (const int extent : dims) extents.push_back(extent);
    for_each_index(extents, [&](const Extents& i) { to[offset_of(i, by)] = 0; });
  };
  if (s.written() == CudnnTensor::out) fill(s.out, s.out_strides, y);
  if (s.written() == CudnnTensor::kernel) std::fill_n(w, product(s.kernel), 0.0f);
  for_each_index(results, [&](const Extents& i) {
    const Index group = i[1] / (s.kernel[0] / s.groups);
    const Index to = offset_of(i, s.out_strides);
    for_each_index(taps, [&](const Extents& t) {
      Index from = i[0] * s.in_strides[0] + (group * s.kernel[1] + t[0]) * s.in_strides[1];
      Index tap = i[1] * strides[0] + t[0] * strides[1];
      for (int d = 0; d < spatial; ++d) {
        const Index e = i[d + 2] * s.strides[d] + t[d + 1] * s.dilations[d] - s.padding[d];
        if (e < 0 || e >= s.in[d + 2]) return;
        from += e * s.in_strides[d + 2];
        tap += (s.reversed ? taps[d + 1] - 1 - t[d + 1] : t[d + 1]) * strides[d + 2];
      }
      if (s.function == CudnnFunction::forward) y[to] += w[tap] * x[from];
      if (s.function == CudnnFunction::by_kernel) w[tap] += x[from] * y[to];
    });
  });
}

Index span_of(const Dims& dims, const Dims& strides) {
  Index last = 0;
  for (int d = 0; d < dims.size(); ++d) last += Index{dims[d] - 1} * strides[d];
  return last + 1;
}

/// Carries out a call, in memory that is aligned.
void run(const CudnnCall& call, Floats& in, Floats& kernel, Floats& out) {
  const CudnnShape& s = call.shape;
  const auto user = detail::cudnn_operands<Floats*>(s.function, &in, &kernel, &out);
  const auto filled = [&](const Dims& dims) {
    return Floats(static_cast<std::size_t>(product(dims)), -7);
  };
  Floats x = filled(s.in), w = filled(s.kernel), y = filled(s.out);
  const CudnnTensor written = s.written();
  if (call.in_copy) copy_plainly(*call.in_copy, *user.in, x);
  if (call.kernel_copy && written != CudnnTensor::kernel)
    copy_plainly(*call.kernel_copy, *user.kernel, w);
  if (call.out_copy && written != CudnnTensor::out) copy_plainly(*call.out_copy, *user.out, y);
  const auto place = [](bool copied, Floats& own, Floats& of_user, Index offset, Index spans) {
    if (copied) return own.data();
    CHECK(offset * 4 % detail::cudnn_alignment == 0);
    REQUIRE(offset + spans <= static_cast<Index>(of_user.size()));
    return of_user.data() + offset;
  };
  convolve_as_cudnn(
      s, place(call.in_copy.has_value(), x, *user.in, call.in, span_of(s.in, s.in_strides)),
      place(call.kernel_copy.has_value(), w, *user.kernel, call.kernel, product(s.kernel)),
      place(call.out_copy.has_value(), y, *user.out, call.out, span_of(s.out, s.out_strides)));
  if (const auto& back = call.copy_of_written())
    copy_plainly(*back, written == CudnnTensor::out ? y : w, out);
}

/// Compares a way to make a convolution with the portable kernel; returns whether it has any calls.
bool agrees(Random& random, const detail::LocalConvolve& work, const CudnnWork& made, Index in,
            Index kernel, Index out) {
  if (made.calls.empty()) return false;
  Floats x = small_numbers<float>(random, in), k = small_numbers<float>(random, kernel);
  Floats y(static_cast<std::size_t>(out), 55), expected = y;
  if (made.zeros) copy_plainly(*made.zeros, {0}, y);
  for (const CudnnCall& call : made.calls) run(call, x, k, y);
  if constexpr (kernels_on_host) {
    detail::convolve(DType::f32, work, x.data(), k.data(), expected.data(),
                     detail::Convolver::portable);
    CHECK(y == expected);
  }
  return true;
}

/// Compares every function, and each of the ways that would be tried; returns whether there is one.
bool agrees(Random& random, const detail::LocalConvolve& work, Index in, Index kernel, Index out,
            bool dense, int (&used)[2]) {
  for (const CudnnFunction function : {CudnnFunction::forward, CudnnFunction::by_kernel})
    if (agrees(random, work, detail::cudnn_work(4, work, function, dense), in, kernel, out))
      ++used[static_cast<int>(function)];
  const std::vector<CudnnWork> ways = detail::cudnn_ways(4, work);
  for (const CudnnWork& way : ways) CHECK(agrees(random, work, way, in, kernel, out));
  return !ways.empty();
}

/// Returns whether a result reads an element.
bool reads_anything(const detail::LocalConvolve& work) {
  bool all = true;
  for (int d = 0; d < work.windows.size(); ++d) {
    bool any = false;
    for (Index y = 0; y < work.result[d]; ++y)
      for (Index t = 0; t < work.windows[d].size; ++t)
        any = any || element_under(work.windows[d], work.input[d], y, t) >= 0;
    all = all && any;
  }
  return all;
}

/// Lays out a convolution: features first, last, or any order of dimensions with gaps.
bool agrees(Random& random, detail::LocalConvolve work, int layout, bool dense, int (&used)[2]) {
  const auto lay = [&](Index first, Index second, const auto& spatial, detail::ConvolveLayout& to) {
    Extents extents{first, second};
    for (const Index extent : spatial) extents.push_back(extent);
    Extents strides = some_strides(random, extents);
    if (layout < 2) {
      strides = detail::row_major_strides(extents);
      if (layout == 1) {
        Index next = second;
        strides[1] = 1;
        for (int d = extents.size() - 1; d > 1; next *= extents[d--]) strides[d] = next;
        strides[0] = next;
      }
    }
    to = {.offset = 4 * pick(random, 0, 2) + pick(random, 0, 3) / 3};
    to.first = strides[0];
    to.second = strides[1];
    for (int d = 2; d < extents.size(); ++d) to.spatial.push_back(strides[d]);
    return to.offset + span(extents, strides);
  };
  FixedVector<Index, detail::max_spatial> taps;
  for (const Window& w : work.windows) taps.push_back(w.size);
  const Index in = lay(work.batch, work.groups * work.in_features, work.input, work.in);
  const Index out = lay(work.batch, work.groups * work.out_features, work.result, work.out);
  // A kernel's output features are those that lie first, in cuDNN's order.
  const Index kernel = lay(work.groups * work.out_features, work.in_features, taps, work.kernel);
  std::swap(work.kernel.first, work.kernel.second);
  work.in.group = work.in_features * work.in.second;
  work.out.group = work.out_features * work.out.second;
  work.kernel.group = work.out_features * work.kernel.second;
  return agrees(random, work, in, kernel, out, dense, used);
}

/// 8 images of 16 x 32 elements with 4 features to 6, by 3 x 3 taps; features first.
detail::LocalConvolve pictures(Window y, Window x) {
  detail::LocalConvolve w{.batch = 8, .in_features = 4, .out_features = 6, .input = {16, 32}};
  w.windows = {y, x};
  w.result = {detail::result_extent(16, y), detail::result_extent(32, x)};
  w.in = {.first = 4 * 512, .second = 512, .spatial = {32, 1}};
  w.kernel = {.first = 9, .second = 36, .spatial = {3, 1}};
  const Index plane = w.result[0] * w.result[1];
  w.out = {.first = 6 * plane, .second = plane, .spatial = {w.result[1], 1}};
  return w;
}
constexpr Window same_size{.size = 3, .low = 1, .high = 1};

/// A convolution of square images, and its gradients as the planner asks for them.
struct Layer {
  Index images = 8, side = 32, in = 16, out = 24;
  Window window = same_size;
  bool last = false;  ///< features

  Index results() const { return detail::result_extent(side, window); }
  detail::ConvolveLayout layout(Index extent, Index features) const {
    const Index plane = extent * extent, step = last ? features : 1;
    return {
        .first = plane * features, .second = last ? 1 : plane, .spatial = {extent * step, step}};
  }
  detail::LocalConvolve forward() const {
    detail::LocalConvolve w{.batch = images, .in_features = in, .out_features = out};
    w.input = {side, side};
    w.result = {results(), results()};
    w.windows = {window, window};
    w.in = layout(side, in);
    w.out = layout(results(), out);
    const Index taps = window.size;
    if (last)
      w.kernel = {.first = out, .second = 1, .spatial = {taps * in * out, in * out}};
    else
      w.kernel = {.first = taps * taps, .second = taps * taps * in, .spatial = {taps, 1}};
    return w;
  }
  detail::LocalConvolve by_data() const {
    detail::LocalConvolve w = forward();
    std::swap(w.in_features, w.out_features);
    std::swap(w.in, w.out);
    std::swap(w.input, w.result);
    std::swap(w.kernel.first, w.kernel.second);
    const Window back{.size = window.size,
                      .low = window.size - 1 - window.low,
                      .base_dilation = window.stride,
                      .reversed = true};
    w.windows = {back, back};
    return w;
  }
  detail::LocalConvolve by_kernel() const {
    detail::LocalConvolve w = forward();
    w.batch = in;
    w.in_features = images;
    std::swap(w.in.first, w.in.second);
    std::swap(w.kernel, w.out);
    const Window back{.size = results(), .low = window.low, .window_dilation = window.stride};
    w.windows = {back, back};
    w.result = {window.size, window.size};
    return w;
  }
};

}  // namespace

TEST_CASE("a padded convolution is one call, in place") {
  const std::vector<CudnnCall> calls = cudnn_calls(4, pictures(same_size, same_size), false);
  REQUIRE(calls.size() == 1);
  const CudnnCall& call = calls[0];
  CHECK(call.shape == CudnnShape{.in = {8, 4, 16, 32},
                                 .in_strides = {2048, 512, 32, 1},
                                 .kernel = {6, 4, 3, 3},
                                 .out = {8, 6, 16, 32},
                                 .out_strides = {3072, 512, 32, 1},
                                 .padding = {1, 1},
                                 .strides = {1, 1},
                                 .dilations = {1, 1}});
  CHECK_FALSE((call.in_copy || call.kernel_copy || call.out_copy));
  // Padding of which a stride leaves one end unread.
  const Window half{.size = 3, .stride = 2, .low = 1, .high = 1};
  const std::vector<CudnnCall> halves = cudnn_calls(4, pictures(half, half), false);
  REQUIRE(halves.size() == 1);
  CHECK(halves[0].shape.in == Dims{8, 4, 16, 32});
  CHECK(halves[0].shape.out == Dims{8, 6, 8, 16});
  CHECK(halves[0].shape.padding == Spatial{1, 1});
}

TEST_CASE("a block at the edge is a row without padding, and the rest") {
  // The upper half of 32 rows, with a row of the lower half below: 15 rows and that one.
  detail::LocalConvolve w = pictures(same_size, same_size);
  w.result[0] = 15;
  const std::vector<CudnnCall> calls = cudnn_calls(4, w, false);
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].shape.in == Dims{8, 4, 2, 32});
  CHECK(calls[0].shape.kernel == Dims{6, 4, 2, 3});
  CHECK(calls[0].shape.out == Dims{8, 6, 1, 32});
  CHECK(calls[0].shape.padding == Spatial{0, 1});
  CHECK(calls[0].out == 0);
  REQUIRE(calls[0].kernel_copy);
  CHECK(calls[0].kernel_copy->from_offset == 3);  // the first row of taps is over the padding
  CHECK(calls[0].kernel_copy->extents == Extents{1, 6, 4, 2, 3});
  CHECK(calls[0].kernel_copy->from_strides == Extents{0, 36, 9, 3, 1});
  CHECK(calls[0].kernel_copy->to_strides == Extents{144, 24, 6, 3, 1});
  CHECK(calls[1].shape.in == Dims{8, 4, 16, 32});
  CHECK(calls[1].shape.out == Dims{8, 6, 14, 32});
  CHECK(calls[1].shape.padding == Spatial{0, 1});
  CHECK(calls[1].in == 0);
  CHECK(calls[1].out == 32);
  CHECK_FALSE(calls[1].kernel_copy);
  // In its own dense layout, the result lies with gaps and is copied.
  const std::vector<CudnnCall> dense = cudnn_calls(4, w, true);
  REQUIRE(dense.size() == 2);
  REQUIRE(dense[1].out_copy);
  CHECK(dense[1].shape.out_strides == Dims{6 * 14 * 32, 14 * 32, 32, 1});
  CHECK(dense[1].out_copy->to_offset == 32);
  CHECK(dense[1].out_copy->to_strides == Extents{3072, 512, 32, 1});
  CHECK_FALSE(dense[1].in_copy);
}

TEST_CASE("reversed windows are a convolution, some of them a copy of the kernel") {
  Window turned = same_size;
  turned.reversed = true;
  const CudnnCall all = cudnn_calls(4, pictures(turned, turned), false).at(0);
  CHECK(all.shape.reversed);
  CHECK(all.kernel == 0);
  CHECK_FALSE(all.kernel_copy);
  const CudnnCall one = cudnn_calls(4, pictures(same_size, turned), false).at(0);
  CHECK_FALSE(one.shape.reversed);
  REQUIRE(one.kernel_copy);
  CHECK(one.kernel_copy->from_offset == 2);
  CHECK(one.kernel_copy->from_strides == Extents{0, 36, 9, 3, -1});
}

TEST_CASE("a dilated base is a call for each residue") {
  // 3 elements at 0, 2 and 4 of 7 positions with padding; 2 taps read 1 element.
  detail::LocalConvolve w{
      .input = {3}, .result = {6}, .windows = {{.size = 2, .low = 1, .high = 1}}};
  w.windows[0].base_dilation = 2;
  w.in = w.kernel = w.out = {.spatial = {1}};
  const std::vector<CudnnCall> calls = cudnn_calls(4, w, false);
  REQUIRE(calls.size() == 2);
  for (int residue = 0; residue < 2; ++residue) {
    const CudnnCall& call = calls[static_cast<std::size_t>(residue)];
    CHECK(call.shape.in == Dims{1, 1, 1, 3});
    CHECK(call.shape.kernel == Dims{1, 1, 1, 1});
    CHECK(call.shape.out == Dims{1, 1, 1, 3});
  }
  CHECK_FALSE(calls[0].out_copy);
  CHECK(calls[0].shape.out_strides[3] == 2);
  REQUIRE(calls[1].out_copy);  // at 4 bytes, which are not aligned
  CHECK(calls[1].out_copy->to_offset == 1);
  CHECK(calls[1].out_copy->to_strides == Extents{0, 0, 0, 2});
}

TEST_CASE("groups of features are one call, those of images one for each") {
  detail::LocalConvolve w = pictures(same_size, same_size);
  w.groups = 2;
  w.in_features = 2;
  w.out_features = 3;
  w.in.group = 2 * 512;
  w.out.group = 3 * 512;
  w.kernel = {.group = 3 * 18, .first = 9, .second = 18, .spatial = {3, 1}};
  const std::vector<CudnnCall> one = cudnn_calls(4, w, false);
  REQUIRE(one.size() == 1);
  CHECK(one[0].shape.groups == 2);
  CHECK(one[0].shape.in == Dims{8, 4, 16, 32});
  CHECK(one[0].shape.kernel == Dims{6, 2, 3, 3});
  CHECK_FALSE(one[0].kernel_copy);
  w.batch = 4;
  w.in.group = 4 * 2048;
  const std::vector<CudnnCall> two = cudnn_calls(4, w, false);
  REQUIRE(two.size() == 2);
  CHECK(two[1].shape.groups == 1);
  CHECK(two[1].shape.in == Dims{4, 2, 16, 32});
  CHECK(two[1].in == 4 * 2048);
  CHECK(two[1].out == 3 * 512);
  w.groups = 65;
  CHECK(cudnn_calls(4, w, false).empty());
}

TEST_CASE("what is not aligned is copied") {
  detail::LocalConvolve w = pictures(same_size, same_size);
  w.in.offset = 2;
  w.out.offset = 4;
  w.kernel.offset = 1;
  for (const Index bytes : {4, 8}) {
    const CudnnCall call = cudnn_calls(bytes, w, false).at(0);
    CHECK(call.in_copy.has_value() == (bytes == 4));
    CHECK_FALSE(call.out_copy);
    CHECK(call.kernel_copy.has_value());
  }
  CHECK(cudnn_calls(2, w, false).at(0).out_copy.has_value());
}

TEST_CASE("tensors beyond 2^31 elements are cut between images, or left alone") {
  const Index huge = Index{1} << 30;
  detail::LocalConvolve w{.batch = 5, .input = {huge}, .result = {huge}, .windows = {{}}};
  w.in = w.out = {.first = huge, .second = huge, .spatial = {1}};
  w.kernel = {.first = 1, .second = 1, .spatial = {1}};
  const std::vector<CudnnCall> calls = cudnn_calls(4, w, false);
  REQUIRE(calls.size() == 5);
  CHECK(calls[4].in == 4 * huge);
  CHECK(calls[4].shape.in == Dims{1, 1, 1, 1 << 30});
  w.in_features = 2;
  CHECK(cudnn_calls(4, w, false).empty());
  detail::LocalConvolve small = pictures(same_size, same_size);
  small.in.first = huge;  // gaps between images, which a copy does not have
  CHECK(cudnn_calls(4, small, false).size() == 4);
  CHECK(cudnn_calls(4, small, true).size() == 1);
  // A gradient by kernel adds over all images; beyond that it is a convolution, in several calls.
  const Layer layer{.images = 3000, .side = 64, .in = 256, .out = 8};
  for (const bool dense : {false, true})
    CHECK(cudnn_calls(2, layer.by_kernel(), dense, CudnnFunction::by_kernel).empty());
  CHECK(detail::cudnn_ways(2, layer.by_kernel()).at(0).calls.at(0).shape.function ==
        CudnnFunction::forward);
}

TEST_CASE("results of padding only are zeros before the calls") {
  Window w = same_size;
  w.low = 3;
  const detail::CudnnWork made =
      detail::cudnn_work(4, pictures(w, same_size), CudnnFunction::forward, false);
  REQUIRE(made.zeros);
  CHECK(made.zeros->extents == Extents{8, 1, 6, 1, 18, 32});
  CHECK(made.zeros->to_strides == Extents{6 * 576, 0, 576, 0, 32, 1});
  REQUIRE(made.calls.size() == 2);  // its second row reads one row of the input
  CHECK(made.calls[0].out == 32);
  CHECK(made.calls[1].shape.out == Dims{8, 6, 16, 32});
  CHECK_FALSE(
      detail::cudnn_work(4, pictures(same_size, same_size), CudnnFunction::forward, false).zeros);
}

TEST_CASE("nothing is not for cuDNN") {
  for (int turn = 0; turn < 7; ++turn) {
    detail::LocalConvolve w = pictures(same_size, same_size);
    if (turn == 0) w.batch = 0;
    if (turn == 1) w.in_features = 0;
    if (turn == 2) w.out_features = 0;
    if (turn == 3) w.groups = 0;
    if (turn == 4) w.input[1] = 0;
    if (turn == 5) w.windows[0].size = 0;
    if (turn == 6) w.windows[0].low = 50;
    CAPTURE(turn);
    CHECK(cudnn_calls(4, w, false).empty());
    CHECK(cudnn_calls(4, w, true).empty());
  }
}

TEST_CASE("cuDNN's calls for every small window convolve as the portable kernel does") {
  static_cast<void>(&detail::registered_kernels<detail::ConvolveKernels, float>);
  Random random(41);
  int turn = 0, used[2] = {};
  for_each_window(7, [&](Index n, Window window) {
    const Index results = detail::result_extent(n, window);
    if (n == 0 || results == 0) return;
    window.reversed = ++turn % 2 == 0;
    detail::LocalConvolve w{.batch = 1 + turn % 2, .in_features = 1 + turn % 3, .out_features = 2};
    w.input = {n};
    w.result = {results};
    w.windows = {window};
    const std::string text = text_of(n, window);
    CAPTURE(text);
    const bool taken = agrees(random, w, turn % 3, turn % 4 == 0, used);
    CHECK((taken || !reads_anything(w)));
  });
  for (const int count : used) CHECK(count > 500);
}

TEST_CASE("cuDNN's calls convolve as the portable kernel does in any layout, with groups") {
  static_cast<void>(&detail::registered_kernels<detail::ConvolveKernels, float>);
  Random random(42);
  int used[2] = {};
  for (int turn = 0; turn < 3000; ++turn) {
    CAPTURE(turn);
    detail::LocalConvolve w{.groups = pick(random, 0, 2) == 0 ? 2 : 1,
                            .batch = pick(random, 1, 3),
                            .in_features = pick(random, 1, 3),
                            .out_features = pick(random, 1, 3)};
    for (int d = 0; d < turn % 4; ++d) {
      w.input.push_back(pick(random, 1, turn % 4 == 3 ? 5 : 9));
      w.windows.push_back(some_window(random, w.input[d]));
      w.result.push_back(detail::result_extent(w.input[d], w.windows[d]));
    }
    const int layout = static_cast<int>(pick(random, 0, 2));
    const bool taken = agrees(random, w, layout, turn % 8 < 4, used);
    CHECK((taken || !reads_anything(w)));
  }
  for (const int count : used) CHECK(count > 100);
}

TEST_CASE("the gradients of a layer are functions of cuDNN's own") {
  for (const bool last : {false, true}) {
    for (const Window& window :
         {same_size, Window{.size = 3, .stride = 2, .low = 1, .high = 1}, Window{.size = 1}}) {
      Layer layer{.window = window, .last = last};
      CAPTURE(last);
      CAPTURE(text_of(layer.side, window));
      const detail::LocalConvolve forward = layer.forward();
      CHECK(detail::cudnn_function(forward) == CudnnFunction::forward);
      CHECK(detail::cudnn_ways(2, forward).at(0).calls.size() == 1);
      const detail::LocalConvolve by_kernel = layer.by_kernel();
      CHECK(detail::cudnn_function(by_kernel) == CudnnFunction::by_kernel);
      const std::vector<CudnnCall> gradient = detail::cudnn_ways(2, by_kernel).at(0).calls;
      REQUIRE(gradient.size() == 1);
      const std::vector<CudnnCall> calls = cudnn_calls(2, forward, false);
      CudnnShape same = gradient[0].shape;  // the descriptors are those of the convolution
      same.function = CudnnFunction::forward;
      CHECK(same == calls.at(0).shape);
      CHECK(gradient[0].kernel_copy.has_value() == last);
      CHECK_FALSE((gradient[0].in_copy || gradient[0].out_copy));
      const detail::LocalConvolve by_data = layer.by_data();
      CHECK(detail::cudnn_function(by_data) == CudnnFunction::forward);
    }
  }
}

TEST_CASE("a large window is not yet a gradient by kernel") {
  // A picture in patches: 16 x 16 taps, and 14 x 14 results.
  Layer patches{.side = 224, .in = 3, .window = {.size = 16, .stride = 16}};
  for (const bool last : {false, true}) {
    patches.last = last;
    CHECK(detail::cudnn_function(patches.forward()) == CudnnFunction::forward);
    CHECK(detail::cudnn_function(patches.by_kernel()) == CudnnFunction::by_kernel);
    CHECK(detail::cudnn_ways(4, patches.by_kernel()).at(0).calls.size() == 1);
  }
  // Each feature for itself: the groups are features of the images.
  detail::LocalConvolve apart = Layer{}.by_kernel();
  apart.groups = apart.batch;
  apart.in.group = apart.in.first;
  apart.batch = 1;
  apart.out_features = 2;
  apart.kernel.group = 2 * apart.kernel.second;
  apart.out = {.group = 18, .first = 9, .second = 9, .spatial = {3, 1}};
  CHECK(detail::cudnn_function(apart) == CudnnFunction::by_kernel);
  const std::vector<CudnnCall> calls = detail::cudnn_ways(4, apart).at(0).calls;
  REQUIRE(calls.size() == 1);
  CHECK(calls[0].shape.groups == 16);
  CHECK(calls[0].shape.kernel == Dims{32, 1, 3, 3});
}

TEST_CASE("wide elements are convolved with features first where the copies are worth it") {
  const auto is_dense = [](Index bytes, const detail::LocalConvolve& work) {
    return !detail::cudnn_ways(bytes, work).at(0).calls.at(0).shape.features_last;
  };
  const Layer large{.images = 32, .side = 64, .in = 256, .out = 256, .last = true};
  Layer thin = large, huge = large;
  thin.in = thin.out = 4;
  huge.images = 256;
  for (const Index bytes : {4, 8}) {
    CHECK(is_dense(bytes, large.forward()));
    CHECK(is_dense(bytes, large.by_data()));
    CHECK(is_dense(bytes, large.by_kernel()));
    CHECK_FALSE(is_dense(bytes, thin.forward()));
  }
  CHECK_FALSE(is_dense(2, large.forward()));
  // No copy is larger than a part of the images that is worth a call.
  const CudnnWork way = detail::cudnn_ways(4, huge.forward()).at(0);
  REQUIRE(way.calls.size() == 4);
  CHECK(way.calls[1].shape.in == Dims{64, 256, 64, 64});
  REQUIRE(way.calls[1].in_copy);
  CHECK(way.calls[1].in_copy->from_offset == 64 * 64 * 64 * 256);
  CHECK(way.calls[1].out_copy->to_offset == 64 * 64 * 64 * 256);
  // A gradient by kernel adds over all images at once; a copy would be as large as they are.
  huge.images = 512;
  CHECK_FALSE(is_dense(4, huge.by_kernel()));
}
