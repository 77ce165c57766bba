// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_rows
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <tessera/kernel/join.hpp>
#include <tessera/kernel/reduce.hpp>
#include <tessera/kernel/use_element.hpp>

#include "kernel/buffer.hpp"

using namespace tessera;
using namespace test;

namespace {
template <class T> T plain(Reduction reduction, T a, T b) {
  return reduction == Reduction::sum   ? static_cast<T>(a + b)
         : reduction == Reduction::max ? std::max(a, b)
                                       : std::min(a, b);
}

template <class T>
std::vector<T> run(Reduction reduction, const detail::LocalReduce& work, const std::vector<T>& from,
                   double scale = 1) {
  const Buffer<T> in(from), out(std::vector<T>(static_cast<std::size_t>(volume(work.kept)), T(77)));
  detail::reduce(dtype_of<T>, reduction, work, in.data(), out.data(), scale);
  return out.values();
}

template <class T>
void check(Random& random, Reduction reduction, const detail::LocalReduce& work) {
  const Index size = span(work.kept, work.kept_strides) + span(work.reduced, work.reduced_strides);
  const std::vector<T> from = small_numbers<T>(random, size);
  std::vector<T> expected;
  for_each_index(work.kept, [&](const Extents& kept) {
    T value = detail::identity<T>(reduction);
    for_each_index(work.reduced, [&](const Extents& reduced) {
      value = plain(
          reduction, value,
          from[at(reduced, work.reduced_strides, static_cast<Index>(at(kept, work.kept_strides)))]);
    });
    expected.push_back(value);
  });
  CHECK(run(reduction, work, from) == expected);
}

void any_type(Random& random, const detail::LocalReduce& work) {
  for (const Reduction reduction : {Reduction::sum, Reduction::max, Reduction::min}) {
    CAPTURE(name_of(reduction));
    switch (pick(random, 0, 3)) {
      case 0:
        check<float>(random, reduction, work);
        break;
      case 1:
        check<double>(random, reduction, work);
        break;
      case 2:
        check<std::int32_t>(random, reduction, work);
        break;
      default:
        check<std::int64_t>(random, reduction, work);
    }
  }
}

detail::LocalReduce rows(Index m, Index n) { return {{m}, {n}, {n}, {1}}; }
detail::LocalReduce columns(Index m, Index n) { return {{n}, {1}, {m}, {n}}; }
detail::LocalReduce everything(Index n) { return {{}, {}, {n}, {1}}; }
}  // namespace

TEST_CASE("row and column sums of a small matrix") {
  const std::vector<float> x{1, 2, 3, 4, 5, 6};
  CHECK(run(Reduction::sum, rows(2, 3), x) == std::vector<float>{6, 15});
  CHECK(run(Reduction::max, columns(2, 3), x) == std::vector<float>{4, 5, 6});
  CHECK(run(Reduction::sum, rows(2, 3), x, 1.0 / 3) == std::vector<float>{2, 5});
  CHECK(run(Reduction::sum, rows(2, 3), std::vector<std::int32_t>{1, 2, 3, 4, 5, 7}, 1.0 / 3) ==
        std::vector<std::int32_t>{2, 5});
}

TEST_CASE("random extents and strides equal plain loops") {
  Random random(8);
  for (int round = 0; round < 250; ++round) {
    CAPTURE(round);
    const int dims = static_cast<int>(pick(random, 0, 5));
    const Extents extents = some_extents(random, dims, dims <= 2 ? 100 : 8);
    Extents strides = some_strides(random, extents);
    if (dims > 0 && pick(random, 0, 5) == 0)
      strides[static_cast<int>(pick(random, 0, dims - 1))] = 0;
    detail::LocalReduce work;
    for (int d = 0; d < dims; ++d) {
      const bool keep = pick(random, 0, 1) == 0;
      (keep ? work.kept : work.reduced).push_back(extents[d]);
      (keep ? work.kept_strides : work.reduced_strides).push_back(strides[d]);
    }
    any_type(random, work);
  }
}

TEST_CASE("every length around a lane, a block and a chunk") {
  Random random(9);
  for (const Index n : {1, 15, 16, 17, 255, 256, 257, 272, 513, 65535, 65537, 140000}) {
    CAPTURE(n);
    any_type(random, everything(n));
    any_type(random, {{2}, {1}, {n}, {2}});
    any_type(random, {{20}, {1}, {min_of(n, 9000)}, {20}});
    any_type(random, {{3}, {n}, {n}, {1}});
  }
  any_type(random, columns(5, 1100));
  any_type(random, {{2, 9}, {9, 1}, {300, 40}, {720, 18}});
  any_type(random, {{}, {}, {300, 700}, {800, 1}});
  any_type(random, {{40}, {3}, {3}, {1}});
}

TEST_CASE("reducing nothing gives the identity") {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> none{5};
  for (const detail::LocalReduce& work :
       {detail::LocalReduce{{2}, {0}, {0}, {1}}, detail::LocalReduce{{2}, {0}, {3, 0}, {1, 1}}}) {
    CHECK(run(Reduction::sum, work, none) == std::vector<float>{0, 0});
    CHECK(run(Reduction::max, work, none) == std::vector<float>{-infinity, -infinity});
    CHECK(run(Reduction::min, work, none) == std::vector<float>{infinity, infinity});
  }
  CHECK(run(Reduction::sum, {{0, 3}, {3, 1}, {4}, {0}}, none).empty());
  CHECK(run(Reduction::sum, {{100}, {0}, {0}, {1}}, none) == std::vector<float>(100, 0.0f));
  CHECK(detail::identity<std::int32_t>(Reduction::max) ==
        std::numeric_limits<std::int32_t>::lowest());
  CHECK(detail::identity<std::int64_t>(Reduction::min) == std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("NaN wins, wherever it stands") {
  for (const Index n : {1, 3, 16, 40, 300}) {
    for (Index place = 0; place < n; ++place) {
      std::vector<double> x(static_cast<std::size_t>(n), 2.0);
      x[static_cast<std::size_t>(place)] = std::numeric_limits<double>::quiet_NaN();
      CHECK(std::isnan(run(Reduction::max, everything(n), x)[0]));
      CHECK(std::isnan(run(Reduction::min, {{8}, {0}, {n}, {1}}, x)[7]));
      if (place > 20) place += 50;
    }
  }
}

TEST_CASE_TEMPLATE("NaN wins in whole blocks, and the signs of zeros count", T, float, double,
                   half) {
  const auto with_sign = [](Reduction reduction, const std::vector<T>& x) {
    use_element<T>();
    const Index n = static_cast<Index>(x.size());
    const double found = static_cast<double>(run(reduction, {{1}, {1}, {n}, {1}}, x)[0]);
    return std::pair(found, std::signbit(found));
  };
  using Found = std::pair<double, bool>;
  for (const std::size_t n : {16u, 31u, 32u, 33u, 255u, 256u, 257u, 512u, 700u})
    for (const std::size_t place : {std::size_t{0}, std::size_t{1}, n / 2, n - 1}) {
      CAPTURE(n);
      CAPTURE(place);
      for (const float other : {-3.0f, -0.0f}) {
        std::vector<T> x(n, T(other));
        x[place] = T(0.0f);
        CHECK(with_sign(Reduction::max, x) == Found(0.0, false));
        x[place] = T(-0.0f);
        CHECK(with_sign(Reduction::max, x) == Found(0.0, true));
      }
      for (const float other : {3.0f, 0.0f}) {
        std::vector<T> x(n, T(other));
        x[place] = T(-0.0f);
        CHECK(with_sign(Reduction::min, x) == Found(0.0, true));
        x[place] = T(0.0f);
        CHECK(with_sign(Reduction::min, x) == Found(0.0, false));
      }
      for (const float nan : {std::nanf(""), -std::nanf("")}) {
        std::vector<T> x(n, T(std::numeric_limits<float>::infinity()));
        x[place] = T(nan);
        CHECK(std::isnan(with_sign(Reduction::max, x).first));
        CHECK(std::isnan(with_sign(Reduction::min, x).first));
      }
      std::vector<T> x(n, T(-2.0f));
      x[place] = T(5e-8f);  // a denormal half
      CHECK(with_sign(Reduction::max, x) == Found(static_cast<double>(x[place]), false));
      x[place] = T(-std::numeric_limits<float>::infinity());
      CHECK(std::isinf(with_sign(Reduction::min, x).first));
    }
}

TEST_CASE_TEMPLATE("NaN and the signs of zeros count in columns too, whichever comes first", T,
                   float, double, half, bfloat16) {
  use_element<T>();
  Random random(5);
  for (const Index columns : {9, 40, 2100})
    for (const Index rows : {3, 16, 37, 70})
      for (const Reduction reduction : {Reduction::max, Reduction::min})
        for (const Index nan : {Index{-1}, Index{1}, rows / 2, rows - 1}) {
          CAPTURE(columns);
          CAPTURE(rows);
          CAPTURE(nan);
          const float side = reduction == Reduction::max ? -1.0f : 1.0f;  // zeros win over it
          std::vector<T> x;
          std::vector<std::pair<double, bool>> expected;
          for (Index r = 0; r < rows; ++r)
            for (Index c = 0; c < columns; ++c) {
              float value = side * static_cast<float>(pick(random, 1, 5));
              if (c % 3 != 0 && r >= rows / 3 && pick(random, 0, 5) == 0) value = 0;
              if (pick(random, 0, 1) == 0 && !(value < 0) && !(value > 0)) value = -value;
              if (r == nan && c % 7 == 2) value = std::nanf("");
              x.push_back(T(value));
            }
          for (Index c = 0; c < columns; ++c) {
            double best = -side * -std::numeric_limits<double>::infinity();
            for (Index r = 0; r < rows; ++r) {
              const double value =
                  static_cast<double>(x[static_cast<std::size_t>(r * columns + c)]);
              const bool greater = value > best || (value == best && std::signbit(best));
              const bool less = value < best || (value == best && std::signbit(value));
              if (std::isnan(value) || (reduction == Reduction::max ? greater : less)) best = value;
              if (std::isnan(best)) break;
            }
            expected.push_back({best, std::signbit(best)});
          }
          const std::vector<T> found = run(reduction, {{columns}, {1}, {rows}, {columns}}, x);
          bool same = true;
          for (std::size_t c = 0; c < found.size(); ++c) {
            const double value = static_cast<double>(found[c]);
            same = same && (std::isnan(expected[c].first)
                                ? std::isnan(value)
                                : std::pair(value, std::signbit(value)) == expected[c]);
          }
          CHECK(same);
        }
}

TEST_CASE_TEMPLATE("sums of complex numbers of every length around a block", T, float, double) {
  use_element<complex<T>>();
  for (const Index n : {1, 31, 255, 256, 257, 511, 512, 1000})
    for (const Index stride : {1, 3}) {
      CAPTURE(n);
      std::vector<complex<T>> x, expected(2);
      for (Index i = 0; i < 2 * n * stride; ++i) {
        x.push_back({static_cast<T>(i % 7 - 3), static_cast<T>(i % 5)});
        if (i % stride == 0) {
          auto& sum = expected[static_cast<std::size_t>(i / (n * stride))];
          sum = sum + x.back();
        }
      }
      CHECK(run(Reduction::sum, {{2}, {n * stride}, {n}, {stride}}, x) == expected);
    }
}

TEST_CASE_TEMPLATE("an infinite part of complex numbers leaves the other one a number", T, float,
                   double) {
  use_element<complex<T>>();
  const T inf = std::numeric_limits<T>::infinity();
  for (const Index n : {2, 300}) {
    std::vector<complex<T>> x(static_cast<std::size_t>(n), complex<T>{1, -1});
    x[1] = {inf, 0};
    const std::vector<complex<T>> sum = run(Reduction::sum, {{}, {}, {n}, {1}}, x);
    CHECK(sum == std::vector<complex<T>>{{inf, static_cast<T>(1 - n)}});
  }
  CHECK(detail::scaled<complex<T>>(complex<T>{2, -inf}, 0.5) == complex<T>{1, -inf});
}

TEST_CASE("long float sums stay accurate") {
  Random random(10);
  const Index n = 10'000'000;
  std::vector<float> x(static_cast<std::size_t>(n));
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(random() >> 8) * 0x1p-24f;
    sum += static_cast<double>(x[i]);
  }
  const auto error = [&](const detail::LocalReduce& work) {
    double total = 0;
    for (const float value : run(Reduction::sum, work, x)) total += static_cast<double>(value);
    return std::abs(total / sum - 1);
  };
  CHECK(error(everything(n)) < 1e-6);
  CHECK(error(columns(n / 10, 10)) < 1e-6);
  CHECK(error(rows(10, n / 10)) < 1e-6);
  CHECK(error({{}, {}, {n / 4, 3}, {4, 1}}) < 1);
}

TEST_CASE("the bits do not depend on how the work is split") {
  // One output reduced alone, beside others, and by chunks: the same sum.
  if constexpr (kernels_on_host) {
    Random random(11);
    const Index n = 300'000;
    std::vector<float> x(static_cast<std::size_t>(n));
    for (float& value : x) value = static_cast<float>(random() >> 8) * 0x1p-20f - 7.3f;
    const float alone = run(Reduction::sum, everything(n), x)[0];
    const detail::LocalReduce beside{{50}, {0}, {n}, {1}};
    for (const float value : run(Reduction::sum, beside, x)) CHECK(value == alone);
    const std::vector<float> wide = run(Reduction::sum, columns(n / 30, 30), x);
    const detail::LocalReduce repeated{{40, 30}, {0, 1}, {n / 30}, {30}};
    const std::vector<float> many = run(Reduction::sum, repeated, x);
    for (std::size_t i = 0; i < many.size(); ++i) CHECK(many[i] == wide[i % 30]);
  }
}

TEST_CASE_TEMPLATE("sums of elements that lie apart have the bits of those side by side", T, float,
                   double, half, bfloat16) {
  use_element<T>();
  Random random(13);
  const Index n = 1300;
  std::vector<T> x(static_cast<std::size_t>(n)), apart(static_cast<std::size_t>(2 * n));
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = apart[2 * i] = static_cast<T>(static_cast<float>(random() >> 8) * 0x1p-20f - 7.3f);
  for (const Index count : {1, 255, 256, 257, 512, 1300}) {
    CAPTURE(count);
    CHECK(run(Reduction::sum, {{1}, {1}, {count}, {1}}, x) ==
          run(Reduction::sum, {{1}, {1}, {count}, {2}}, apart));
  }
}

TEST_CASE("join joins element by element") {
  use_element<float>();
  use_element<std::int64_t>();
  Random random(12);
  for (const Index n : {0, 1, 17, 70000}) {
    for (const Reduction reduction : {Reduction::sum, Reduction::max, Reduction::min}) {
      const std::vector<std::int64_t> a = small_numbers<std::int64_t>(random, n);
      std::vector<std::int64_t> b = small_numbers<std::int64_t>(random, n);
      const Buffer<std::int64_t> from(a), into(b);
      const void* const both[] = {into.data(), from.data()};
      detail::join(DType::i64, reduction, both, 2, n, into.data());
      for (std::size_t i = 0; i < b.size(); ++i) b[i] = plain(reduction, b[i], a[i]);
      CHECK(into.values() == b);
    }
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Buffer<float> from({nan, 1}), into({1, nan});
  const void* const both[] = {into.data(), from.data()};
  detail::join(DType::f32, Reduction::max, both, 2, 2, into.data());
  for (const float value : into.values()) CHECK(std::isnan(value));
  CHECK_THROWS_AS(detail::join(DType::f32, Reduction::none, both, 2, 2, into.data()), UsageError);
}
