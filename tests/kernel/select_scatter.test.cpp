// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_windows
#include <doctest/doctest.h>

#include <limits>

#include <tessera/kernel/window/select_scatter.hpp>

#include "kernel/window_cases.hpp"

using namespace tessera;
using namespace test;

namespace {

/// The definition, for the whole input: each window in row-major order.
template <class T>
std::vector<T> plain(bool greatest, const detail::LocalSelectScatter& work,
                     const std::vector<T>& input, const std::vector<T>& source,
                     std::vector<Index>* selected = nullptr) {
  const Extents strides = detail::row_major_strides(work.input);
  std::vector<TotalType<T>> sums(input.size());
  Extents taps;
  for (const Window& w : work.windows) taps.push_back(w.size);
  std::size_t o = 0;
  for_each_index(work.source, [&](const Extents& window) {
    bool found = false;
    std::size_t best = 0;
    for_each_index(taps, [&](const Extents& tap) {
      Extents element(taps.size(), 0);
      for (int d = 0; d < taps.size(); ++d) {
        element[d] = element_under(work.windows[d], work.input[d], window[d], tap[d]);
        if (element[d] < 0) return;
      }
      const std::size_t here = at(element, strides);
      const T x = input[here], y = input[best];
      if (!found || (y == y && (x != x || (greatest ? x > y : x < y)))) best = here;
      found = true;
    });
    if (selected != nullptr) selected->push_back(found ? static_cast<Index>(best) : -1);
    if (found)
      sums[best] = detail::Fold<Reduction::sum, TotalType<T>>::join(
          sums[best], static_cast<TotalType<T>>(source[o]));
    ++o;
  });
  std::vector<T> result;
  for (const auto& sum : sums) result.push_back(static_cast<T>(sum));
  return result;
}

template <class T>
std::vector<T> run(bool greatest, const detail::LocalSelectScatter& work,
                   const std::vector<T>& input, const std::vector<T>& source) {
  static_cast<void>(&detail::registered_kernels<detail::SelectScatterKernels, T>);
  const Buffer<T> x(input), s(source),
      y(std::vector<T>(static_cast<std::size_t>(volume(work.result)), T(99)));
  const Buffer<Index> scratch(std::vector<Index>(source.size(), 7));
  detail::select_and_scatter(dtype_of<T>, greatest, work, x.data(), s.data(), scratch.data(),
                             y.data());
  return y.values();
}

template <class T>
void check(Random& random, bool greatest, const detail::LocalSelectScatter& work) {
  CAPTURE(name_of(dtype_of<T>));
  const std::vector<T> input = small_numbers<T>(random, volume(work.input)),
                       source = small_numbers<T>(random, volume(work.source));
  std::vector<Index> selected;
  CHECK(run(greatest, work, input, source) == plain(greatest, work, input, source, &selected));
  // Other values, where they were selected.
  const std::vector<T> values = small_numbers<T>(random, volume(work.input));
  std::vector<T> expected;
  for (const Index at : selected)
    expected.push_back(at < 0 ? T{} : values[static_cast<std::size_t>(at)]);
  const Buffer<T> x(input), v(values), y(std::vector<T>(expected.size(), T(99)));
  detail::select_and_gather(
      dtype_of<T>, greatest,
      {work.input, detail::row_major_strides(work.input), work.source, work.windows}, x.data(),
      v.data(), y.data());
  CHECK(y.values() == expected);
}

void any_type(Random& random, int turn, const detail::LocalSelectScatter& work) {
  DType type = static_cast<DType>(turn % dtypes);
  if (!is_ordered(type)) type = DType::f32;
  detail::with_ordered_type(
      type, [&](auto element) { check<decltype(element)>(random, turn % 2 == 0, work); });
}

detail::LocalSelectScatter some_work(Random& random, int rank, Index longest) {
  detail::LocalSelectScatter work;
  for (int d = 0; d < rank; ++d) {
    work.input.push_back(pick(random, 1, longest));
    work.windows.push_back(some_window(random, work.input[d]));
    work.windows[d].reversed = false;
    work.source.push_back(detail::result_extent(work.input[d], work.windows[d]));
    work.first.push_back(0);
  }
  work.result = work.input;
  return work;
}
}  // namespace

TEST_CASE("every small window in one dimension selects and scatters") {
  Random random(41);
  int turn = 0;
  for_each_window(9, [&](Index n, const Window& window) {
    const std::string text = text_of(n, window);
    CAPTURE(text);
    any_type(random, ++turn, {{n}, {detail::result_extent(n, window)}, {n}, {0}, {window}});
  });
}

TEST_CASE("windows in no to four dimensions select and scatter") {
  Random random(42);
  for (int turn = 0; turn < 1000; ++turn) {
    CAPTURE(turn);
    any_type(random, turn, some_work(random, turn % 5, turn % 5 < 3 ? 10 : 5));
  }
  for (int turn = 0; turn < 12; ++turn) {  // rows in pieces
    detail::LocalSelectScatter work = some_work(random, 2, 4);
    work.input[1] = work.result[1] = pick(random, 400, 900);
    work.source[1] = detail::result_extent(work.input[1], work.windows[1]);
    any_type(random, turn, work);
  }
}

TEST_CASE("the first of equals is selected, and NaN before all others") {
  const detail::LocalSelectScatter fours{
      {2, 4}, {1, 1}, {2, 4}, {0, 0}, {{.size = 2}, {.size = 4}}};
  const auto place = [&](bool greatest, const std::vector<float>& x) {
    const std::vector<float> y = run(greatest, fours, x, {1.0f});
    return std::find(y.begin(), y.end(), 1.0f) - y.begin();
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(place(true, {1, 3, 3, 1, 1, 3, 3, 1}) == 1);
  CHECK(place(false, {1, 3, 3, 1, 1, 3, 3, 1}) == 0);
  CHECK(place(true, {1, 3, 3, 1, nan, 9, nan, 1}) == 4);
  CHECK(place(false, {1, 3, 3, 1, nan, 9, nan, -1}) == 4);
  CHECK(place(true, {-0.0f, 0, -0.0f, 0, 0, 0, 0, 0}) == 0);
  const float least = -std::numeric_limits<float>::infinity();
  CHECK(place(true, std::vector<float>(8, least)) == 0);
}

TEST_CASE("padding is never selected, and complex numbers have no order") {
  const detail::LocalSelectScatter padded{{3}, {5}, {3}, {0}, {{.size = 3, .low = 2, .high = 2}}};
  CHECK(run(true, padded, std::vector<float>{-5, -6, -7}, {1, 10, 100, 1000, 10000}) ==
        std::vector<float>{111, 1000, 10000});
  for (const DType type : {DType::c64, DType::c128, DType::boolean})
    CHECK_THROWS_AS(
        detail::select_and_scatter(type, true, padded, nullptr, nullptr, nullptr, nullptr),
        UsageError);
}

TEST_CASE("a part of the result has the bits of the whole") {
  // The part has the sources that can reach it, and the elements that decide where they go.
  Random random(43);
  for (int turn = 0; turn < 400; ++turn) {
    CAPTURE(turn);
    const int rank = 1 + turn % 3;
    const detail::LocalSelectScatter whole = some_work(random, rank, rank == 1 ? 60 : 12);
    std::vector<float> input(static_cast<std::size_t>(volume(whole.input))),
        source(static_cast<std::size_t>(volume(whole.source)));
    for (float& x : input) x = static_cast<float>(pick(random, 0, 9));
    for (float& x : source) x = static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f;
    const std::vector<float> all = run(true, whole, input, source);
    detail::LocalSelectScatter part = whole;
    Extents begin, sources, elements;
    for (int d = 0; d < rank; ++d) {
      const Index a = pick(random, 0, whole.result[d] - 1),
                  b = pick(random, a + 1, whole.result[d]);
      const Interval windows = detail::read_by({a, b}, whole.source[d], whole.windows[d]);
      Interval read = detail::reach(windows, whole.input[d], whole.windows[d]);
      if (windows.size() == 0) read = {a, b};
      part.windows[d] =
          detail::local_window(whole.windows[d], windows.lo, read.lo, {0, whole.windows[d].size});
      part.input[d] = read.size();
      part.source[d] = windows.size();
      part.result[d] = b - a;
      part.first[d] = a - read.lo;
      begin.push_back(a);
      sources.push_back(windows.lo);
      elements.push_back(read.lo);
    }
    const auto cut = [](const std::vector<float>& from, const Extents& extents,
                        const Extents& first, const Extents& of) {
      std::vector<float> piece;
      for_each_index(extents, [&](const Extents& i) {
        Extents global = i;
        for (int d = 0; d < i.size(); ++d) global[d] += first[d];
        piece.push_back(from[at(global, detail::row_major_strides(of))]);
      });
      return piece;
    };
    CHECK(run(true, part, cut(input, part.input, elements, whole.input),
              cut(source, part.source, sources, whole.source)) ==
          cut(all, part.result, begin, whole.result));
  }
}
