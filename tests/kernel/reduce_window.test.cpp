// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_windows
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <tessera/kernel/reduce.hpp>
#include <tessera/kernel/window/reduce_window.hpp>

#include "kernel/window_cases.hpp"

using namespace tessera;
using namespace test;

namespace {

/// Calls f(element's offset) for all that a result's window reads, in row-major order.
template <class F> void under(const detail::LocalReduceWindow& work, const Extents& result, F f) {
  Extents taps;
  for (const Window& w : work.windows) taps.push_back(w.size);
  for_each_index(taps, [&](const Extents& tap) {
    Index offset = 0;
    for (int d = 0; d < taps.size(); ++d) {
      const Index element = element_under(work.windows[d], work.input[d], result[d], tap[d]);
      if (element < 0) return;
      offset += element * work.input_strides[d];
    }
    f(static_cast<std::size_t>(offset));
  });
}

/// The definition, in the type that long sums are kept in.
template <class T>
std::vector<T> plain(Reduction reduction, const detail::LocalReduceWindow& work,
                     const std::vector<T>& in, double scale) {
  std::vector<T> out;
  detail::with_reduction<T>(reduction, [&](auto r) {
    using Bits = detail::Stored<T>;
    using Total = typename detail::Fold<decltype(r)::value, Bits>::Total;
    using F = detail::Fold<decltype(r)::value, Total>;
    for_each_index(work.result, [&](const Extents& result) {
      Total total = F::start();
      under(work, result,
            [&](std::size_t at) { total = F::join(total, static_cast<Total>(Bits(in[at]))); });
      out.push_back(static_cast<T>(detail::scaled<Bits>(total, scale)));
    });
  });
  return out;
}

template <class T>
std::vector<T> run(Reduction reduction, const detail::LocalReduceWindow& work,
                   const std::vector<T>& in, double scale = 1) {
  static_cast<void>(&detail::registered_kernels<detail::ReduceWindowKernels, T>);
  const Buffer<T> x(in), y(std::vector<T>(static_cast<std::size_t>(volume(work.result)), T(1)));
  detail::reduce_window(dtype_of<T>, reduction, work, x.data(), y.data(), scale);
  return y.values();
}

template <class T> std::vector<T> elements(Random& random, Index n) {
  std::vector<T> values;
  for (Index i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<T, bool>)
      values.push_back(pick(random, 0, 2) == 0);
    else
      values.push_back(static_cast<T>(static_cast<float>(pick(random, -2, 2))));
  }
  return values;
}

template <class T> void check(Random& random, int turn, const detail::LocalReduceWindow& work) {
  for (int r = 1; r < reductions; ++r) {
    const Reduction reduction = static_cast<Reduction>(r);
    if (!defined(reduction, dtype_of<T>) || (turn + r) % 2 == 0) continue;
    CAPTURE(name_of(reduction));
    CAPTURE(name_of(dtype_of<T>));
    const std::vector<T> in = elements<T>(random, span(work.input, work.input_strides));
    const double scale = reduction == Reduction::sum && turn % 3 == 0 ? 0.5 : 1;
    const std::vector<T> out = run(reduction, work, in, scale),
                         expected = plain(reduction, work, in, scale);
    bool same = out.size() == expected.size();
    for (std::size_t i = 0; same && i < out.size(); ++i) same = out[i] == expected[i];
    CHECK(same);
  }
}

void any_type(Random& random, int turn, const detail::LocalReduceWindow& work) {
  detail::with_type(static_cast<DType>(turn % dtypes),
                    [&](auto element) { check<decltype(element)>(random, turn, work); });
}

detail::LocalReduceWindow some_work(Random& random, int rank, Index longest) {
  detail::LocalReduceWindow work;
  for (int d = 0; d < rank; ++d) {
    work.input.push_back(pick(random, 1, longest));
    work.windows.push_back(pick(random, 0, 2) == 0 ? Window{} : some_window(random, work.input[d]));
    work.result.push_back(detail::result_extent(work.input[d], work.windows[d]));
  }
  work.input_strides = some_strides(random, work.input);
  return work;
}
}  // namespace

TEST_CASE("reductions under every small window in one dimension") {
  Random random(31);
  int turn = 0;
  for_each_window(9, [&](Index n, const Window& window) {
    const std::string text = text_of(n, window);
    CAPTURE(text);
    ++turn;
    any_type(random, turn, {{n}, {1 + turn % 2}, {detail::result_extent(n, window)}, {window}});
  });
}

TEST_CASE("reductions under windows in no to five dimensions, of any layout") {
  Random random(32);
  for (int turn = 0; turn < 1200; ++turn) {
    CAPTURE(turn);
    any_type(random, turn, some_work(random, turn % 6, turn % 6 < 3 ? 9 : 4));
  }
}

TEST_CASE("long rows are reduced in pieces") {
  Random random(33);
  for (int turn = 0; turn < 24; ++turn) {
    CAPTURE(turn);
    detail::LocalReduceWindow work = some_work(random, 2, 3);
    work.input[1] = pick(random, 500, 1500);
    work.input_strides = detail::row_major_strides(work.input);
    work.result[1] = detail::result_extent(work.input[1], work.windows[1]);
    any_type(random, turn, work);
  }
}

TEST_CASE("windows of padding give the identity, and NaN is the greatest and the least") {
  const detail::LocalReduceWindow beyond{{3}, {1}, {9}, {{.size = 2, .low = 3, .high = 4}}};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x{1, nan, 2};
  for (const Reduction reduction : {Reduction::max, Reduction::min}) {
    const std::vector<float> y = run(reduction, beyond, x);
    CHECK(y[0] == detail::identity<float>(reduction));
    CHECK(y[2] == 1);
    CHECK(std::isnan(y[3]));
    CHECK(std::isnan(y[4]));
    CHECK(y[5] == 2);
    CHECK(y[8] == detail::identity<float>(reduction));
  }
  CHECK(run(Reduction::product, beyond, x)[1] == 1);
  CHECK_THROWS_AS(run(Reduction::max, beyond, std::vector<complex<float>>(3)), UsageError);
}

TEST_CASE("a mean is a scaled sum, rounded once") {
  const detail::LocalReduceWindow threes{{9}, {1}, {3}, {{.size = 3, .stride = 3}}};
  const std::vector<float> x{1, 2, 4, 1, 1, 2, 0.1f, 0.2f, 0.3f};
  CHECK(run(Reduction::sum, threes, x, 1.0 / 3) ==
        std::vector<float>{static_cast<float>(7 * (1.0 / 3)), static_cast<float>(4 * (1.0 / 3)),
                           static_cast<float>((0.0 + 0.1f + 0.2f + 0.3f) * (1.0 / 3))});
  CHECK(run(Reduction::max, threes, x, 1.0 / 3) == std::vector<float>{4, 2, 0.3f});
}

TEST_CASE("a part of the results has the bits of the whole") {
  Random random(34);
  for (int turn = 0; turn < 300; ++turn) {
    CAPTURE(turn);
    const detail::LocalReduceWindow whole =
        some_work(random, 1 + turn % 3, turn % 3 == 0 ? 700 : 12);
    std::vector<float> in(static_cast<std::size_t>(span(whole.input, whole.input_strides)));
    for (float& x : in) x = static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f;
    const std::vector<float> all = run(Reduction::sum, whole, in);
    detail::LocalReduceWindow part = whole;
    Extents first;
    Index offset = 0;
    for (int d = 0; d < whole.windows.size(); ++d) {
      const Index a = pick(random, 0, whole.result[d] - 1),
                  b = pick(random, a + 1, whole.result[d]);
      const Interval read = detail::reach({a, b}, whole.input[d], whole.windows[d]);
      part.windows[d] =
          detail::local_window(whole.windows[d], a, read.lo, {0, whole.windows[d].size});
      part.input[d] = read.size();
      part.result[d] = b - a;
      if (read.size() > 0) offset += read.lo * whole.input_strides[d];
      first.push_back(a);
    }
    in.erase(in.begin(), in.begin() + offset);
    const std::vector<float> some = run(Reduction::sum, part, in);
    const Extents strides = detail::row_major_strides(whole.result);
    std::size_t i = 0, wrong = 0;
    for_each_index(part.result, [&](const Extents& y) {
      Extents global = y;
      for (int d = 0; d < y.size(); ++d) global[d] += first[d];
      wrong += some[i++] != all[at(global, strides)];
    });
    CHECK(wrong == 0);
  }
}
