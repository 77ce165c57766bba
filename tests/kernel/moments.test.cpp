// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_rows
// Means and variances against loops in long double: of lines, strips and boxes, with digits that
// would cancel, drifts, NaNs and infinities.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include <tessera/kernel/rows/moments.hpp>
#include <tessera/kernel/use_element.hpp>

#include "kernel/buffer.hpp"
#include "kernel/ulps.hpp"

using namespace tessera;
using test::Buffer;

namespace {
using Wide = long double;
template <class T> Wide part(T x, int k) {
  if constexpr (ComplexElement<T>)
    return k == 0 ? x.re : x.im;
  else
    return k == 0 ? static_cast<Wide>(static_cast<ComputeType<T>>(x)) : 0;
}
template <class T> T number(Wide re, Wide im) {
  if constexpr (ComplexElement<T>)
    return {static_cast<typename T::value_type>(re), static_cast<typename T::value_type>(im)};
  else
    return static_cast<T>(static_cast<ComputeType<T>>(re));
}

/// Calls f(offset of an output's first element, offsets from there) for each output.
void each_row(const detail::LocalReduce& work,
              const std::function<void(Index, const std::vector<Index>&)>& f) {
  const auto offsets = [](const Extents& extents, const Extents& strides) {
    std::vector<Index> all{0};
    for (int d = 0; d < extents.size(); ++d) {
      std::vector<Index> next;
      for (const Index at : all)
        for (Index i = 0; i < extents[d]; ++i) next.push_back(at + i * strides[d]);
      all = next;
    }
    return all;
  };
  const std::vector<Index> reduced = offsets(work.reduced, work.reduced_strides);
  for (const Index first : offsets(work.kept, work.kept_strides)) f(first, reduced);
}

template <class T> struct Made {
  using C = ComputeType<T>;
  using Square = typename detail::MomentsMemory<T>::Square;
  std::vector<C> mean;
  std::vector<Square> variance;
};
/// Calls the kernel; `about`: with the means that it has found itself.
template <class T>
Made<T> moments_of(const detail::LocalReduce& work, const std::vector<T>& x, bool about) {
  using C = ComputeType<T>;
  using Square = typename Made<T>::Square;
  detail::use_kernels<detail::MomentsKernels, T>();
  const auto outputs = static_cast<std::size_t>(volume(work.kept));
  const Index n = volume(work.reduced);
  const double scale = n > 0 ? 1 / static_cast<double>(n) : std::nan("");
  const Buffer<T> from(x);
  const Buffer<C> mean(std::vector<C>(outputs, C(77)));
  const Buffer<Square> variance(std::vector<Square>(outputs, Square(77)));
  detail::moments(dtype_of<T>, work, from.data(), nullptr, scale, mean.data(), variance.data());
  if (about) {
    const Buffer<Square> again(std::vector<Square>(outputs, Square(77)));
    detail::moments(dtype_of<T>, work, from.data(), mean.data(), scale, nullptr, again.data());
    return {mean.values(), again.values()};
  }
  return {mean.values(), variance.values()};
}

/// Compares with sums in long double. `steps`: roundings that are allowed, of the mean beside the
/// largest magnitude, and of the variance beside itself.
template <class T>
void check(const detail::LocalReduce& work, const std::vector<T>& x, double steps = 4) {
  using Square = typename Made<T>::Square;
  const double eps = static_cast<double>(std::numeric_limits<Square>::epsilon());
  for (const bool about : {false, true}) {
    const Made<T> made = moments_of(work, x, about);
    std::size_t output = 0;
    each_row(work, [&](Index first, const std::vector<Index>& row) {
      const auto n = static_cast<Wide>(row.size());
      Wide mean[2] = {}, squares = 0, most = 0;
      for (const Index at : row)
        for (const int k : {0, 1}) {
          const Wide v = part(x[static_cast<std::size_t>(first + at)], k);
          mean[k] += v / n;
          most = std::max(most, std::abs(v));
        }
      for (const Index at : row)
        for (const int k : {0, 1}) {
          const Wide d = part(x[static_cast<std::size_t>(first + at)], k) - mean[k];
          squares += d * d / n;
        }
      for (const int k : {0, 1})
        CHECK(std::abs(part(made.mean[output], k) - mean[k]) <= steps * eps * most);
      // The mean itself is rounded, which moves each distance.
      const Wide moved = steps * eps * most;
      CHECK(std::abs(static_cast<Wide>(made.variance[output]) - squares) <=
            4 * steps * eps * squares + moved * moved);
      ++output;
    });
  }
}

template <class T> std::vector<T> numbers(test::Random& random, Index count, Wide centre) {
  std::normal_distribution<double> any(0, 1);
  std::vector<T> x;
  for (Index i = 0; i < count; ++i) {
    const double re = any(random), im = any(random);
    x.push_back(number<T>(centre + static_cast<Wide>(re), static_cast<Wide>(im) - centre));
  }
  return x;
}

template <class T> void shapes(test::Random& random, Wide centre) {
  const auto lines = [](Index outputs, Index n) {
    return detail::LocalReduce{{outputs}, {n}, {n}, {1}};
  };
  const auto strips = [](Index rows, Index width) {
    return detail::LocalReduce{{width}, {1}, {rows}, {width}};
  };
  for (const Index n : {1, 2, 3, 15, 16, 63, 100, 255, 256, 300, 2047, 2048, 2049, 5000})
    check<T>(lines(3, n), numbers<T>(random, 3 * n, centre));
  check<T>(lines(2, 150000), numbers<T>(random, 300000, centre));  // several chunks
  for (const Index rows : {1, 2, 7, 8, 9, 20, 100})
    for (const Index width : {8, 33, 520})
      check<T>(strips(rows, width), numbers<T>(random, rows * width, centre));
  check<T>(strips(9000, 9), numbers<T>(random, 81000, centre));
  // "abcd->bd", "abcd->ac" with rows of memory that are longer than the block, one element apart.
  const std::vector<T> x = numbers<T>(random, 4 * 5 * 6 * 11, centre);
  check<T>({{5, 9}, {66, 1}, {4, 6}, {330, 11}}, x);
  check<T>({{4, 6}, {330, 11}, {5, 9}, {66, 1}}, x);
  check<T>({{3}, {1}, {4, 5, 6, 3}, {330, 66, 11, 3}}, x);
  check<T>({{}, {}, {4, 5, 6, 11}, {330, 66, 11, 1}}, x);
}
}  // namespace

TEST_CASE("moments equal loops in long double, for every type and shape") {
  test::Random random(5);
  for (const Wide centre : {0.0L, 100.0L}) {
    shapes<float>(random, centre);
    shapes<double>(random, centre);
    shapes<half>(random, centre);
    shapes<bfloat16>(random, centre);
    shapes<complex<float>>(random, centre);
    shapes<complex<double>>(random, centre);
  }
}

TEST_CASE("digits do not cancel, wherever the mean lies, and while it drifts") {
  test::Random random(6);
  for (const Index n : {100, 3000, 70000}) {
    for (const Wide centre : {1e4L, -3e5L}) {
      check<float>({{2}, {n}, {n}, {1}}, numbers<float>(random, 2 * n, centre));
      check<float>({{16}, {1}, {n / 16}, {16}}, numbers<float>(random, n, centre));
    }
    check<double>({{2}, {n}, {n}, {1}}, numbers<double>(random, 2 * n, 1e12L));
    check<double>({{16}, {1}, {n / 16}, {16}}, numbers<double>(random, n, 1e12L));
    std::vector<float> drift = numbers<float>(random, n, 0), stair = drift;
    for (Index i = 0; i < n; ++i) {
      drift[static_cast<std::size_t>(i)] += static_cast<float>(i);
      stair[static_cast<std::size_t>(i)] += i < n / 2 ? 0.0f : 1e6f;
    }
    check<float>({{1}, {n}, {n}, {1}}, drift);
    check<float>({{1}, {n}, {n}, {1}}, stair);
  }
  // Equal elements have no variance, whether or not floats have their mean exactly.
  const std::vector<float> equal(5000, 0.1f);
  CHECK(moments_of<float>({{1}, {5000}, {5000}, {1}}, equal, false).variance[0] < 1e-15f);
  CHECK(moments_of<float>({{10}, {1}, {500}, {10}}, equal, false).variance[3] < 1e-15f);
}

TEST_CASE("moments of nothing, of NaN and of infinities") {
  const double inf = std::numeric_limits<double>::infinity();
  const auto none = moments_of<double>({{2}, {0}, {0}, {1}}, {}, false);
  CHECK(std::isnan(none.mean[1]));
  CHECK(std::isnan(none.variance[0]));
  for (const bool about : {false, true}) {  // of lines side by side, two dimensions reduced
    const auto strip = moments_of<float>({{20}, {1}, {0, 3}, {60, 20}}, {}, about);
    CHECK(std::isnan(strip.mean[19]));
    CHECK(std::isnan(strip.variance[19]));
  }
  for (const Index n : {3, 200, 5000})
    for (const Index place : {Index{0}, n / 2, n - 1}) {
      std::vector<double> x(static_cast<std::size_t>(n), 2.0);
      x[static_cast<std::size_t>(place)] = -inf;
      for (const bool strip : {false, true}) {
        std::vector<double> all = x;
        if (strip)  // the same for eight lines
          for (std::size_t i = 0; i < x.size(); ++i)
            for (int k = 0; k < 8; ++k) {
              all.resize(8 * x.size());
              all[8 * i + static_cast<std::size_t>(k)] = x[i];
            }
        const detail::LocalReduce work = strip ? detail::LocalReduce{{8}, {1}, {n}, {8}}
                                               : detail::LocalReduce{{1}, {n}, {n}, {1}};
        const auto infinite = moments_of<double>(work, all, false);
        CHECK(infinite.mean[0] == -inf);
        CHECK(std::isnan(infinite.variance[0]));
        for (double& v : all)
          if (v == -inf) v = std::nan("");
        const auto nan = moments_of<double>(work, all, false);
        CHECK(std::isnan(nan.mean[0]));
        CHECK(std::isnan(nan.variance[0]));
      }
    }
}
