// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_rows
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include <tessera/kernel/reduce.hpp>
#include <tessera/kernel/rows/bins.hpp>
#include <tessera/kernel/rows/find.hpp>
#include <tessera/kernel/rows/scan.hpp>
#include <tessera/kernel/use_element.hpp>
#include <tessera/plan/op/rows/deterministic.hpp>

#include "kernel/buffer.hpp"

using namespace tessera;
using namespace test;

namespace {

__extension__ typedef __int128 Wide;

/// Returns the work on one row, of whose `count` elements these lie side by side.
detail::LocalBins row_work(DType type, Index n, Index count) {
  const detail::BinFormat format = detail::bin_format(type, count);
  return {{{}, {}, {n}, {1}}, format.bits, format.limbs, count};
}

/// Sums a row that is cut in `pieces`, as several processes do.
template <class T> T sum_of(const std::vector<T>& row, int pieces, bool mean = false) {
  use_element<T>();
  constexpr int parts = ComplexElement<T> ? 2 : 1;
  const Index n = static_cast<Index>(row.size());
  const detail::LocalBins whole = row_work(dtype_of<T>, n, n);
  const std::size_t limbs = static_cast<std::size_t>(whole.limbs * parts);
  std::vector<std::int64_t> top(parts, std::numeric_limits<std::int64_t>::min()), total(limbs, 0);
  std::vector<test::Buffer<T>> cut;
  for (int p = 0; p < pieces; ++p)
    cut.emplace_back(
        std::vector<T>(row.begin() + n * p / pieces, row.begin() + n * (p + 1) / pieces));
  const auto work_of = [&](int p) {
    return row_work(dtype_of<T>, n * (p + 1) / pieces - n * p / pieces, n);
  };
  for (int p = 0; p < pieces; ++p) {
    const test::Buffer<std::int64_t> e(std::vector<std::int64_t>(parts, 77));
    detail::exponents(dtype_of<T>, work_of(p), cut[static_cast<std::size_t>(p)].data(), e.data());
    for (std::size_t k = 0; k < parts; ++k) top[k] = std::max(top[k], e.values()[k]);
  }
  const test::Buffer<std::int64_t> exponent(top);
  for (int p = 0; p < pieces; ++p) {
    const test::Buffer<std::int64_t> own(std::vector<std::int64_t>(limbs, 77));
    detail::bins(dtype_of<T>, work_of(p), cut[static_cast<std::size_t>(p)].data(), exponent.data(),
                 own.data());
    for (std::size_t l = 0; l < limbs; ++l) total[l] += own.values()[l];
  }
  const test::Buffer<std::int64_t> all(total);
  const test::Buffer<T> out(std::vector<T>(1, T(77)));
  detail::unbin(dtype_of<T>, whole, mean, all.data(), exponent.data(), out.data());
  return out.values()[0];
}

template <class T> bool same(T a, T b) { return std::memcmp(&a, &b, sizeof(T)) == 0; }

/// Integers times 2^scale, whose sum is known exactly; some of them nearly cancel.
struct Exact {
  std::vector<double> row;
  Wide sum = 0;
  Exact(Random& random, Index n, int spread, int scale) {
    Index number = 0;
    int up = 0;
    for (Index i = 0; i < n; ++i) {
      if (i % 3 == 1) {  // against the one before, but for the last bit
        number = 1 - number;
      } else {
        number = pick(random, -(Index{1} << 52), Index{1} << 52);
        up = spread > 0 ? static_cast<int>(pick(random, 0, spread - 1)) : 0;
      }
      row.push_back(std::ldexp(static_cast<double>(number), up + scale));
      sum += Wide{number} * (Wide{1} << up);
    }
  }
};

}  // namespace

TEST_CASE("a sum in limbs is the exact sum, rounded once, however the row is cut") {
  Random random(3);
  long plain_differs = 0;
  for (const int scale : {0, -30, 300, -1022, -1074, 900})
    for (const Index n : {1, 2, 3, 10, 1000, 8192, 20011})
      for (const int spread : {0, 10, 30}) {
        const Exact exact(random, n, scale == -1074 ? 0 : spread, scale);
        const double wanted = std::ldexp(static_cast<double>(exact.sum), scale);
        const double sum = sum_of(exact.row, 1);
        CHECK(sum == wanted);  // all their bits are within the limbs
        for (int pieces : {2, 3, 7, 8}) CHECK(same(sum_of(exact.row, pieces), sum));
        double plain = 0;
        for (double x : exact.row) plain += x;
        plain_differs += plain != sum;
      }
  CHECK(plain_differs > 50);
}

TEST_CASE("the order of a row's elements does not matter") {
  Random random(4);
  std::vector<float> row;
  for (int i = 0; i < 5000; ++i)
    row.push_back(std::ldexp(static_cast<float>(pick(random, -1000, 1000)),
                             static_cast<int>(pick(random, -20, 20))));
  const float sum = sum_of(row, 1), average = sum_of(row, 1, true);
  long double wide = 0;
  for (float x : row) wide += static_cast<long double>(x);
  CHECK(std::fabs(static_cast<double>(sum) - static_cast<double>(wide)) <=
        std::fabs(static_cast<double>(wide)) * 0x1p-24);
  CHECK(std::fabs(static_cast<double>(average) - static_cast<double>(wide / 5000)) <=
        std::fabs(static_cast<double>(wide / 5000)) * 0x1.1p-24);
  for (int round = 0; round < 20; ++round) {
    for (std::size_t i = row.size() - 1; i > 0; --i)
      std::swap(row[i], row[static_cast<std::size_t>(pick(random, 0, static_cast<Index>(i)))]);
    CHECK(same(sum_of(row, 1 + round % 5), sum));
    CHECK(same(sum_of(row, 1 + round % 5, true), average));
  }
}

TEST_CASE("ends of the range, zeros, infinities and NaN") {
  constexpr double most = std::numeric_limits<double>::max(),
                   infinity = std::numeric_limits<double>::infinity();
  constexpr double least = std::numeric_limits<double>::denorm_min(),
                   nan = std::numeric_limits<double>::quiet_NaN();
  using Row = std::vector<double>;
  CHECK(sum_of(Row{most, -most}, 1) == 0);
  CHECK(sum_of(Row{most, most, -most}, 1) == most);  // though the first two overflow
  CHECK(sum_of(Row{most, most}, 1) == infinity);
  CHECK(sum_of(Row{most, most}, 2, true) == most);
  CHECK(sum_of(Row{-most, -most, 1}, 3) == -infinity);
  CHECK(sum_of(Row{least, least, least}, 2) == 3 * least);
  CHECK(sum_of(Row{least, -least}, 2) == 0);
  CHECK(sum_of(Row{1, least, -1}, 3) == 0);  // far below what 1 leaves exact
  CHECK(sum_of(Row{0x1p60, 1, -0x1p60}, 3) == 1);
  CHECK(sum_of(Row{0, -0.0}, 1) == 0);
  CHECK(sum_of(Row{}, 1) == 0);
  CHECK(std::isnan(sum_of(Row{}, 1, true)));
  CHECK(sum_of(Row{1, infinity, -most}, 2) == infinity);
  CHECK(sum_of(Row{1, -infinity}, 2) == -infinity);
  CHECK(std::isnan(sum_of(Row{infinity, -infinity}, 2)));
  CHECK(std::isnan(sum_of(Row{1, nan}, 2)));
  CHECK(std::isnan(sum_of(Row{nan, infinity, 2}, 1)));
  CHECK(static_cast<float>(
            sum_of(std::vector<half>{half(60000.0f), half(60000.0f), half(-60000.0f)}, 2)) ==
        static_cast<float>(half(60000.0f)));
  CHECK(static_cast<float>(sum_of(
            std::vector<bfloat16>{bfloat16(256.0f), bfloat16(1.0f), bfloat16(-256.0f)}, 3)) == 1);
  using Z = complex<double>;
  const Z z = sum_of(std::vector<Z>{Z(1, infinity), Z(0x1p60, 2), Z(-0x1p60, 3)}, 3);
  CHECK(z.re == 1);  // an infinite part leaves the other as it is
  CHECK(z.im == infinity);
}

TEST_CASE("rows across memory, several reduced dimensions, long rows") {
  use_element<double>();
  Random random(5);
  for (const detail::LocalReduce& rows :
       {detail::LocalReduce{{3, 37}, {37 * 5, 1}, {5}, {37}},
        detail::LocalReduce{{4}, {1}, {7, 9}, {36, 4}},
        detail::LocalReduce{{2}, {20000}, {20000}, {1}},
        detail::LocalReduce{{20}, {1}, {10000}, {20}}, detail::LocalReduce{{6, 2}, {2, 1}, {}, {}},
        detail::LocalReduce{{0, 2}, {2, 1}, {3}, {1}}}) {
    const Index rows_count = volume(rows.kept), n = volume(rows.reduced);
    const std::vector<double> x = small_numbers<double>(
        random, span(rows.kept, rows.kept_strides) + span(rows.reduced, rows.reduced_strides));
    const test::Buffer<double> in(x);
    const detail::BinFormat format = detail::bin_format(DType::f64, n);
    const detail::LocalBins work{rows, format.bits, format.limbs, n};
    const auto size = static_cast<std::size_t>(rows_count);
    const test::Buffer<std::int64_t> top(std::vector<std::int64_t>(size, 7)),
        limbs(std::vector<std::int64_t>(size * static_cast<std::size_t>(format.limbs), 7));
    const test::Buffer<double> out(std::vector<double>(size, 77));
    detail::exponents(DType::f64, work, in.data(), top.data());
    detail::bins(DType::f64, work, in.data(), top.data(), limbs.data());
    detail::unbin(DType::f64, work, false, limbs.data(), top.data(), out.data());
    // Where each row has its largest element: places are counted as the reduced box is.
    std::vector<double> wanted, best;
    std::vector<std::int64_t> where;
    for_each_index(rows.kept, [&](const Extents& kept) {
      double sum = 0, largest = -std::numeric_limits<double>::infinity();
      std::int64_t place = 0, found = std::numeric_limits<std::int64_t>::max();
      for_each_index(rows.reduced, [&](const Extents& reduced) {
        const double value =
            x[at(reduced, rows.reduced_strides, static_cast<Index>(at(kept, rows.kept_strides)))];
        sum += value;
        if (value > largest) found = 1000 + 10 * place, largest = value;
        ++place;
      });
      wanted.push_back(sum);
      best.push_back(largest);
      where.push_back(found);
    });
    CHECK(out.values() == wanted);  // small integers
    detail::LocalFind find_work{rows, 1000, {}};
    Extents steps = detail::row_major_strides(rows.reduced);
    for (Index& step : steps) step *= 10;
    find_work.steps = steps;
    const test::Buffer<double> top_values(best);
    const test::Buffer<std::int64_t> places(std::vector<std::int64_t>(size, 7));
    detail::find(DType::f64, find_work, in.data(), top_values.data(), places.data());
    CHECK(places.values() == where);
    const test::Buffer<double> values(std::vector<double>(size, 77));
    const test::Buffer<std::int64_t> again(std::vector<std::int64_t>(size, 7));
    detail::find_extreme(DType::f64, Reduction::max, find_work, in.data(), values.data(),
                         again.data());
    CHECK(values.values() == best);
    CHECK(again.values() == where);
  }
}

TEST_CASE_TEMPLATE("find: the first place of a value in rows of any length", T, float, double, half,
                   bfloat16, std::int8_t, std::int16_t, std::int64_t) {
  use_element<T>();
  const auto found = [](const std::vector<T>& x, T value) {
    const test::Buffer<T> in(x), best({value});
    const test::Buffer<std::int64_t> place({7});
    const Index n = static_cast<Index>(x.size());
    detail::find(dtype_of<T>, {{{1}, {1}, {n}, {1}}, 0, {1}}, in.data(), best.data(), place.data());
    return place.values()[0];
  };
  for (const Index n : {1, 15, 16, 17, 255, 256, 257, 512, 1000})
    for (const Index place : {Index{0}, n / 3, n / 2, n - 1}) {
      CAPTURE(n);
      CAPTURE(place);
      std::vector<T> x(static_cast<std::size_t>(n), static_cast<T>(3));
      const auto set = [&](T value) {
        x[static_cast<std::size_t>(place)] = value;
        if (place + 3 < n) x[static_cast<std::size_t>(place + 3)] = value;
      };
      set(static_cast<T>(5));
      CHECK(found(x, static_cast<T>(5)) == place);
      CHECK(found(x, static_cast<T>(4)) == detail::not_found);
      if constexpr (!std::is_integral_v<T>) {
        set(static_cast<T>(-0.0f));
        CHECK(found(x, static_cast<T>(0.0f)) == place);
        set(static_cast<T>(std::numeric_limits<float>::quiet_NaN()));
        CHECK(found(x, static_cast<T>(std::numeric_limits<float>::quiet_NaN())) == place);
        CHECK(found(x, static_cast<T>(5)) == detail::not_found);
      }
    }
}

TEST_CASE_TEMPLATE("an extreme and its place at once are those of a reduction and a search", T,
                   float, double, half, bfloat16, std::int8_t, std::int64_t) {
  use_element<T>();
  Random random(9);
  for (const Index n : {1, 15, 16, 31, 32, 33, 100, 257, 2050, 9000})
    for (const Index rows : {1, 3, 40})
      for (const Reduction reduction : {Reduction::max, Reduction::min})
        for (const bool nan : {false, true}) {
          CAPTURE(n);
          CAPTURE(rows);
          std::vector<T> x;
          for (Index i = 0; i < rows * (n + 2); ++i) {  // few values, so that many are equal
            float value = static_cast<float>(pick(random, i / (n + 2) % 3 == 0 ? 0 : -3, 3));
            if (i / (n + 2) % 3 == 1) value = -std::abs(value);  // zeros of both signs win
            if (value == 0 && pick(random, 0, 1) == 0) value = -0.0f;
            x.push_back(static_cast<T>(value));
          }
          if constexpr (!std::is_integral_v<T>)
            for (Index r = 0; nan && r < rows; r += 2) {
              x[static_cast<std::size_t>(r * (n + 2) + n - 1)] = static_cast<T>(std::nanf(""));
              x[static_cast<std::size_t>(r * (n + 2) + n / 2)] = static_cast<T>(std::nanf(""));
            }
          const detail::LocalFind work{{{rows}, {n + 2}, {n}, {1}}, 1000, {3}};
          const std::vector<T> sevens(static_cast<std::size_t>(rows), static_cast<T>(7));
          const test::Buffer<T> in(x), best(sevens), value(sevens);
          const test::Buffer<std::int64_t> places(
              std::vector<std::int64_t>(static_cast<std::size_t>(rows), 7)),
              found(places.values());
          detail::reduce(dtype_of<T>, reduction, work.rows, in.data(), best.data());
          detail::find(dtype_of<T>, work, in.data(), best.data(), places.data());
          detail::find_extreme(dtype_of<T>, reduction, work, in.data(), value.data(), found.data());
          CHECK(found.values() == places.values());
          CHECK(std::memcmp(value.values().data(), best.values().data(),
                            static_cast<std::size_t>(rows) * sizeof(T)) == 0);
        }
}

TEST_CASE("scan: lines in memory and across it, from both ends, with what comes before") {
  use_element<std::int32_t>();
  use_element<bool>();
  Random random(6);
  for (const bool reverse : {false, true})
    for (const bool exclusive : {false, true})
      for (const Index outer : {1, 3})
        for (const Index n : {0, 1, 7, 300})
          for (const Index inner : {0, 1, 5, 64, 65, 200})
            for (const Interval earlier : {Interval{0, 0}, Interval{1, 3}}) {
              const detail::LocalScan work{outer, n, inner, reverse, exclusive, 4, earlier};
              const std::vector<std::int32_t> x = small_numbers<std::int32_t>(random,
                                                                              outer * n * inner),
                                              before = small_numbers<std::int32_t>(
                                                  random, outer * 4 * inner);
              const test::Buffer<std::int32_t> in(x), first(before),
                  out(std::vector<std::int32_t>(x.size(), 77));
              detail::scan(DType::i32, Reduction::sum, work, in.data(), first.data(), out.data());
              std::vector<std::int32_t> wanted(x.size());
              for (Index o = 0; o < outer; ++o)
                for (Index i = 0; i < inner; ++i) {
                  std::int32_t total = 0;
                  for (Index p = earlier.lo; p < earlier.hi; ++p)
                    total += before[static_cast<std::size_t>((o * 4 + p) * inner + i)];
                  for (Index k = 0; k < n; ++k) {
                    const auto j =
                        static_cast<std::size_t>((o * n + (reverse ? n - 1 - k : k)) * inner + i);
                    if (exclusive) wanted[j] = total;
                    total += x[j];
                    if (!exclusive) wanted[j] = total;
                  }
                }
              CHECK(out.values() == wanted);
            }
}
