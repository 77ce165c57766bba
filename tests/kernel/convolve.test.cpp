// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_windows
#include <doctest/doctest.h>

#include <thread>

#include <tessera/kernel/convolve/convolve.hpp>

#include "kernel/window_cases.hpp"

using namespace tessera;
using namespace test;

namespace {

/// A convolution and how much memory its operands span.
struct Case {
  detail::LocalConvolve work;
  Index in = 0, kernel = 0, out = 0;
};

/// Small whole numbers, whose sums and products are exact in float.
template <class T> std::vector<T> numbers(Random& random, Index n) {
  std::vector<T> values(static_cast<std::size_t>(n));
  for (T& value : values) {
    if constexpr (ComplexElement<T>)
      value = T(static_cast<typename T::value_type>(pick(random, -3, 3)),
                static_cast<typename T::value_type>(pick(random, -3, 3)));
    else
      value = static_cast<T>(pick(random, -3, 3));
  }
  return values;
}

/// Numbers whose sums are rounded.
template <class T> std::vector<T> fractions(Random& random, Index n) {
  std::vector<T> values(static_cast<std::size_t>(n));
  for (T& value : values)
    value = static_cast<T>(static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f);
  return values;
}

/// The definition: taps and then input features in order, in the type that half types are summed
/// in.
template <class T>
std::vector<T> plain(const Case& c, const std::vector<T>& in, const std::vector<T>& kernel,
                     std::vector<T> out) {
  using Sum = detail::ProductSum<T>;
  const detail::LocalConvolve& w = c.work;
  const int spatial = w.windows.size();
  Extents results, taps;
  for (int d = 0; d < spatial; ++d) {
    results.push_back(w.result[d]);
    taps.push_back(w.windows[d].size);
  }
  for (Index n = 0; n < w.batch; ++n)
    for (Index g = 0; g < w.groups; ++g)
      for (Index o = 0; o < w.out_features; ++o)
        for_each_index(results, [&](const Extents& y) {
          Sum sum{};
          for_each_index(taps, [&](const Extents& t) {
            Index x = w.in.offset + g * w.in.group + n * w.in.first;
            Index k = w.kernel.offset + g * w.kernel.group + o * w.kernel.second;
            for (int d = 0; d < spatial; ++d) {
              const Window& window = w.windows[d];
              const Index element = element_under(window, w.input[d], y[d], t[d]);
              if (element < 0) return;
              x += element * w.in.spatial[d];
              k += (window.reversed ? window.size - 1 - t[d] : t[d]) * w.kernel.spatial[d];
            }
            for (Index f = 0; f < w.in_features; ++f)
              sum += static_cast<Sum>(kernel[static_cast<std::size_t>(k + f * w.kernel.first)]) *
                     static_cast<Sum>(in[static_cast<std::size_t>(x + f * w.in.second)]);
          });
          Index to = w.out.offset + g * w.out.group + n * w.out.first + o * w.out.second;
          for (int d = 0; d < spatial; ++d) to += y[d] * w.out.spatial[d];
          out[static_cast<std::size_t>(to)] = static_cast<T>(sum);
        });
  return out;
}

template <class T>
std::vector<T> run(const Case& c, const std::vector<T>& in, const std::vector<T>& kernel,
                   const std::vector<T>& before, detail::Convolver by) {
  const Buffer<T> x(in), k(kernel), y(before);
  detail::convolve(dtype_of<T>, c.work, x.data(), k.data(), y.data(), by);
  return y.values();
}

template <class T> void check(Random& random, const Case& c) {
  static_cast<void>(&detail::registered_kernels<detail::ConvolveKernels, T>);
  const std::vector<T> in = numbers<T>(random, c.in), kernel = numbers<T>(random, c.kernel);
  const std::vector<T> before(static_cast<std::size_t>(c.out), static_cast<T>(55));
  const std::vector<T> expected = plain(c, in, kernel, before);
  CHECK(run(c, in, kernel, before, detail::Convolver::portable) == expected);
  CHECK(run(c, in, kernel, before, detail::Convolver::fastest) == expected);
}

void any_type(Random& random, int turn, const Case& c) {
  constexpr int types = dtypes - 1;  // bool is the last
  detail::with_number_type(static_cast<DType>(turn % types),
                           [&](auto element) { check<decltype(element)>(random, c); });
}

enum class Layout { features_first, features_last, any };

/// Strides of a dense block whose first two dimensions are those of a ConvolveLayout.
detail::ConvolveLayout layout_of(Random& random, const Extents& extents, Layout kind,
                                 Index& span_of) {
  Extents strides = detail::row_major_strides(extents);
  const int rank = extents.size();
  if (kind == Layout::any) {
    strides = some_strides(random, extents);
  } else if (kind == Layout::features_last) {
    Index next = 1;
    strides[1] = next;
    next *= extents[1];
    for (int d = rank - 1; d >= 2; --d) {
      strides[d] = next;
      next *= extents[d];
    }
    strides[0] = next;
  }
  detail::ConvolveLayout layout{
      .offset = pick(random, 0, 2), .first = strides[0], .second = strides[1]};
  for (int d = 2; d < rank; ++d) layout.spatial.push_back(strides[d]);
  span_of = layout.offset + span(extents, strides);
  return layout;
}

/// Fills in the layouts of a convolution.
Case laid_out(Random& random, detail::LocalConvolve w, Layout kind, bool groups_of_batch = false) {
  Case c;
  Extents in{w.batch * (groups_of_batch ? w.groups : 1),
             w.in_features * (groups_of_batch ? 1 : w.groups)};
  Extents out{w.batch, w.groups * w.out_features}, kernel{w.in_features, w.groups * w.out_features};
  for (int d = 0; d < w.windows.size(); ++d) {
    in.push_back(w.input[d]);
    out.push_back(w.result[d]);
    kernel.push_back(w.windows[d].size);
  }
  w.in = layout_of(random, in, kind, c.in);
  w.out = layout_of(random, out, kind, c.out);
  // OIHW has the input features second, HWIO last but one.
  if (kind == Layout::any) {
    w.kernel = layout_of(random, kernel, kind, c.kernel);
  } else {
    const Index taps = volume(kernel) / max_of(1, kernel[0] * kernel[1]);
    w.kernel = {.first = kind == Layout::features_first ? taps : kernel[1],
                .second = kind == Layout::features_first ? taps * kernel[0] : 1};
    Index next = kind == Layout::features_first ? 1 : kernel[0] * kernel[1];
    w.kernel.spatial.resize(w.windows.size());
    for (int d = w.windows.size() - 1; d >= 0; --d) {
      w.kernel.spatial[d] = next;
      next *= kernel[d + 2];
    }
    c.kernel = volume(kernel);
  }
  w.in.group = groups_of_batch ? w.batch * w.in.first : w.in_features * w.in.second;
  w.kernel.group = w.out_features * w.kernel.second;
  w.out.group = w.out_features * w.out.second;
  c.work = w;
  return c;
}

Case some_case(Random& random, int spatial, Layout kind, Index features, Index longest) {
  detail::LocalConvolve w;
  w.batch = pick(random, 1, 3);
  w.groups = pick(random, 0, 2) == 0 ? pick(random, 2, 4) : 1;
  const bool groups_of_batch = pick(random, 0, 3) == 0;
  w.in_features = pick(random, 1, features);
  w.out_features = pick(random, 1, features);
  for (int d = 0; d < spatial; ++d) {
    w.input.push_back(pick(random, 1, longest));
    w.windows.push_back(some_window(random, w.input[d]));
    w.result.push_back(detail::result_extent(w.input[d], w.windows[d]));
  }
  return laid_out(random, w, kind, groups_of_batch);
}

}  // namespace

TEST_CASE("convolutions of every small window in one dimension") {
  Random random(21);
  int turn = 0;
  for_each_window(9, [&](Index n, Window window) {
    window.reversed = ++turn % 2 == 0;
    detail::LocalConvolve w{
        .batch = 1 + turn % 2, .in_features = 1 + turn % 3, .out_features = 1 + turn % 5};
    w.input = {n};
    w.result = {detail::result_extent(n, window)};
    w.windows = {window};
    const std::string text = text_of(n, window);
    CAPTURE(text);
    any_type(random, turn, laid_out(random, w, static_cast<Layout>(turn % 3)));
  });
}

TEST_CASE("convolutions in no to three dimensions, in any layout, with groups") {
  Random random(22);
  for (int turn = 0; turn < 1500; ++turn) {
    const int spatial = turn % 4;
    const Layout kind = static_cast<Layout>(pick(random, 0, 2));
    CAPTURE(turn);
    any_type(random, turn, some_case(random, spatial, kind, 6, spatial == 3 ? 5 : 9));
  }
}

TEST_CASE("convolutions of many features, taps and results") {
  Random random(23);
  for (int turn = 0; turn < 66; ++turn) {
    CAPTURE(turn);
    const Layout kind = static_cast<Layout>(pick(random, 0, 2));
    any_type(random, turn, some_case(random, 1 + turn % 2, kind, turn % 3 == 0 ? 90 : 20, 40));
  }
  // Beyond what is gathered at once, in features and in taps.
  for (const Index features : {Index{300}, Index{3}}) {
    detail::LocalConvolve w{
        .in_features = features, .out_features = 5, .input = {150}, .result = {51}};
    w.windows = {{.size = 100}};
    any_type(random, 2, laid_out(random, w, Layout::features_first));
  }
}

TEST_CASE("convolutions of nothing are zeros or nothing") {
  Random random(24);
  detail::LocalConvolve w{.in_features = 2, .out_features = 3, .input = {4}, .result = {6}};
  w.windows = {{.size = 3, .low = 2, .high = 2}};
  for (int turn = 0; turn < 8; ++turn) {
    detail::LocalConvolve empty = w;
    if (turn == 0) empty.batch = 0;
    if (turn == 1) empty.in_features = 0;
    if (turn == 2) empty.out_features = 0;
    if (turn == 3) empty.groups = 0;
    if (turn == 4) empty.input = {0};
    if (turn == 5) empty.result = {0};
    if (turn == 6) empty.windows[0].size = 0;
    if (turn == 7) empty.windows[0].low = 50;  // windows over padding only
    CAPTURE(turn);
    check<float>(random, laid_out(random, empty, Layout::features_first));
  }
}

TEST_CASE("bool has no convolution") {
  CHECK_THROWS_AS(detail::convolve(DType::boolean, {}, nullptr, nullptr, nullptr), UsageError);
}

TEST_CASE("the portable kernel's bits do not depend on what is convolved together") {
  // Any part of the results, with the part of the input that it reads, has the bits of the whole.
  Random random(25);
  for (int turn = 0; turn < 400; ++turn) {
    CAPTURE(turn);
    const int spatial = 1 + turn % 3;
    const Case whole = some_case(random, spatial, static_cast<Layout>(turn % 3), 20,
                                 spatial == 1   ? 200
                                 : spatial == 2 ? 30
                                                : 7);
    const detail::LocalConvolve& w = whole.work;
    const std::vector<float> in = fractions<float>(random, whole.in),
                             kernel = fractions<float>(random, whole.kernel),
                             before(static_cast<std::size_t>(whole.out), 77.0f);
    const std::vector<float> all = run(whole, in, kernel, before, detail::Convolver::portable);
    Case part = whole;
    detail::LocalConvolve& p = part.work;
    for (int d = 0; d < spatial; ++d) {
      const Index a = pick(random, 0, w.result[d] - 1), b = pick(random, a + 1, w.result[d]);
      const Interval read = detail::reach({a, b}, w.input[d], w.windows[d]);
      p.windows[d] = detail::local_window(w.windows[d], a, read.lo, {0, w.windows[d].size});
      p.input[d] = read.size();
      p.result[d] = b - a;
      p.in.offset += read.lo * w.in.spatial[d];
      p.out.offset += a * w.out.spatial[d];
    }
    if (w.groups == 1) {
      const Index a = pick(random, 0, w.out_features - 1);
      p.out_features = pick(random, 1, w.out_features - a);
      p.kernel.offset += a * w.kernel.second;
      p.out.offset += a * w.out.second;
      const Index n = pick(random, 0, w.batch - 1);
      p.batch = pick(random, 1, w.batch - n);
      p.in.offset += n * w.in.first;
      p.out.offset += n * w.out.first;
    }
    const std::vector<float> some = run(part, in, kernel, before, detail::Convolver::portable);
    std::size_t wrong = 0, written = 0;
    for (std::size_t i = 0; i < some.size(); ++i) {
      written += some[i] != 77.0f;
      wrong += some[i] != 77.0f && some[i] != all[i];
    }
    CHECK(wrong == 0);
    CHECK(written > 0);
#if !defined(__FMA__)
    if (kernels_on_host && turn % 10 == 0) CHECK(all == plain(whole, in, kernel, before));
#endif
  }
}

#if defined(TESSERA_HAVE_DNNL)
namespace {
/// Compares oneDNN with the portable kernel; returns whether oneDNN has the convolution.
template <class T> bool library_agrees(Random& random, const Case& c) {
  const std::vector<T> in = numbers<T>(random, c.in), kernel = numbers<T>(random, c.kernel);
  std::vector<T> out(static_cast<std::size_t>(c.out), static_cast<T>(55));
  const std::vector<T> expected = run(c, in, kernel, out, detail::Convolver::portable);
  if (!detail::dnnl_convolve(dtype_of<T>, c.work, in.data(), kernel.data(), out.data()))
    return false;
  CHECK(out == expected);
  return true;
}
}  // namespace

TEST_CASE("oneDNN convolves as the portable kernel does") {
  if constexpr (kernels_on_host) {
    Random random(26);
    int taken = 0, turns = 0;
    for (; turns < 600; ++turns) {
      CAPTURE(turns);
      const int spatial = 1 + turns % 3;
      const Layout kind = static_cast<Layout>(pick(random, 0, 2));
      const Case c = some_case(random, spatial, kind, 20, spatial == 3 ? 5 : 12);
      taken +=
          turns % 5 == 0 ? library_agrees<bfloat16>(random, c) : library_agrees<float>(random, c);
    }
    CHECK(taken > turns / 2);
  }
}

TEST_CASE("oneDNN convolves groups one by one where it does not have them together") {
  if constexpr (kernels_on_host) {
    Random random(30);
    const Window wide{.size = 31, .low = 15, .high = 15};
    for (const Layout kind : {Layout::features_first, Layout::features_last}) {
      detail::LocalConvolve w{.groups = 4, .batch = 2, .input = {600}, .result = {600}};
      w.windows = {wide};  // of a depthwise convolution along a text
      CHECK(library_agrees<float>(random, laid_out(random, w, kind)));
    }
  }
}

TEST_CASE("oneDNN convolves every small window in one dimension") {
  if constexpr (kernels_on_host) {
    Random random(27);
    int taken = 0, turns = 0;
    for_each_window(5, [&](Index n, Window window) {
      window.reversed = turns % 2 == 0;
      const Index results = detail::result_extent(n, window);
      if (n == 0 || results == 0 || ++turns % 11 != 0) return;
      detail::LocalConvolve w{
          .in_features = 3, .out_features = 2, .input = {n}, .result = {results}};
      w.windows = {window};
      const std::string text = text_of(n, window);
      CAPTURE(text);
      taken += library_agrees<float>(random, laid_out(random, w, static_cast<Layout>(turns % 3)));
    });
    CHECK(taken > 100);
  }
}

TEST_CASE("oneDNN makes gradients by the kernel as gradients") {
  if constexpr (kernels_on_host) {
    Random random(29);
    int taken = 0;
    for (int turn = 0; turn < 36; ++turn) {
      CAPTURE(turn);
      // Features in, images and features out of the convolution; its result is the window.
      const bool in_groups = turn % 4 == 3;
      detail::LocalConvolve w{.groups = in_groups ? 3 : 1,
                              .batch = turn % 5 == 0 ? 16 : pick(random, 1, 20),
                              .in_features = pick(random, 1, 3),
                              .out_features = turn % 5 == 0 ? 32 : pick(random, 1, 20)};
      const int spatial = 1 + turn % 3;
      for (int d = 0; d < spatial; ++d) {
        const Index n = spatial == 1 ? pick(random, 150, 180) : pick(random, 19, 25);
        const Window forward{.size = 3, .stride = 1 + turn % 2, .low = 1, .high = 1};
        const Index m = detail::result_extent(n, forward);
        w.input.push_back(n);
        w.windows.push_back({.size = m,
                             .low = 1,
                             .high = (m - 1) * forward.stride + 2 - n,
                             .window_dilation = forward.stride,
                             .reversed = turn % 9 == 8});
        w.result.push_back(3);
        CHECK(detail::result_extent(n, w.windows[d]) >= 2);
      }
      const Case c = laid_out(random, w, static_cast<Layout>(turn % 3), in_groups);
      const detail::ConvolveShape s = detail::convolve_shape(c.work);
      CHECK(detail::DnnlGradient::is_one(s));
      CHECK(detail::DnnlGradient::groups_are_features(s));
      bool covered = true;
      detail::DnnlGradient gradient;
      taken += gradient.make(
          dnnl_f32, s, false,
          {{detail::sides_of(s.dim[0], covered)[0], detail::sides_of(s.dim[1], covered)[0],
            detail::sides_of(s.dim[2], covered)[0]}});
      CHECK(library_agrees<float>(random, c));
    }
    CHECK(taken > 18);
  }
}

TEST_CASE("oneDNN convolves in bands, by several threads at once") {
  if constexpr (kernels_on_host) {
    Random random(28);
    std::vector<Case> cases;
    std::vector<std::vector<float>> in, kernel, expected;
    for (int turn = 0; turn < 6; ++turn) {
      detail::LocalConvolve w{.batch = 1 + turn % 3, .in_features = 19, .out_features = 18};
      const Window y{.size = 3, .stride = 1 + turn % 2, .low = 1, .high = 2, .reversed = turn == 3};
      const Window x{.size = 5, .low = 2, .high = 2, .base_dilation = turn == 4 ? 2 : 1};
      w.input = {turn == 2 ? 7 : 83, turn == 5 ? 8 : 131};
      w.windows = {y, x};
      w.result = {detail::result_extent(w.input[0], y), detail::result_extent(w.input[1], x)};
      cases.push_back(laid_out(random, w, static_cast<Layout>(turn % 3)));
      in.push_back(numbers<float>(random, cases.back().in));
      kernel.push_back(numbers<float>(random, cases.back().kernel));
      const std::vector<float> before(static_cast<std::size_t>(cases.back().out), 5.0f);
      expected.push_back(
          run(cases.back(), in.back(), kernel.back(), before, detail::Convolver::portable));
    }
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (std::size_t t = 0; t < wrong.size(); ++t)
      threads.emplace_back([&, t] {
        for (std::size_t i = 0; i < 2 * cases.size(); ++i) {
          const std::size_t c = (i + t) % cases.size();
          std::vector<float> out(expected[c].size(), 5.0f);
          if (!detail::dnnl_convolve(DType::f32, cases[c].work, in[c].data(), kernel[c].data(),
                                     out.data()) ||
              out != expected[c])
            ++wrong[t];
        }
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == std::vector<int>(4, 0));
  }
}
#endif
