// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_rows
// Rows of half types against conversions of one element: every pattern of 16 bits, every 10007th
// float, and rows of every short length; maps of half types; and the joins of reductions.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <tessera/kernel/detail/convert_row.hpp>
#include <tessera/kernel/detail/reduce_loops.hpp>
#include <tessera/kernel/functions.hpp>
#include <tessera/kernel/map/map.hpp>
#include <tessera/kernel/rows/scan.hpp>
#include <tessera/kernel/use_element.hpp>

using namespace tessera;

namespace {
template <class T> std::vector<T> all_patterns() {
  std::vector<T> all;
  for (std::uint32_t bits = 0; bits < 65536; ++bits)
    all.push_back(T::from_bits(static_cast<std::uint16_t>(bits)));
  return all;
}
}  // namespace

TEST_CASE_TEMPLATE("rows are converted as single elements are, to the bit", T, half, bfloat16) {
  const std::vector<T> all = all_patterns<T>();
  std::vector<float> wide(all.size());
  detail::convert_row(all.data(), Index{65536}, wide.data());
  int wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    wrong += std::bit_cast<std::uint32_t>(wide[i]) !=
             std::bit_cast<std::uint32_t>(static_cast<float>(all[i]));
  CHECK(wrong == 0);

  std::vector<float> floats;
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 10007)
    floats.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  for (const float x : wide)  // halfway between two of them, and a bit to either side
    for (const int step : {0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001})
      floats.push_back(
          std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) + static_cast<std::uint32_t>(step)));
  std::vector<T> narrow(floats.size());
  detail::convert_row(floats.data(), static_cast<Index>(floats.size()), narrow.data());
  for (std::size_t i = 0; i < floats.size(); ++i) wrong += narrow[i].bits() != T(floats[i]).bits();
  CHECK(wrong == 0);

  for (Index n = 0; n < 40; ++n) {  // no element beyond the row is written
    std::vector<T> few(41, T(7.0f));
    std::vector<float> back(41, 7.0f);
    detail::convert_row(floats.data() + 1000, n, few.data());
    detail::convert_row(all.data() + 15000, n, back.data());
    for (std::size_t i = 0; i < few.size(); ++i) {
      const bool within = i < static_cast<std::size_t>(n);
      wrong += few[i].bits() != (within ? T(floats[1000 + i]) : T(7.0f)).bits();
      wrong += !(back[i] == (within ? static_cast<float>(all[15000 + i]) : 7.0f));
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("maps of half types round once what floats give, for every pattern", T, half,
                   bfloat16) {
  const std::vector<T> x = all_patterns<T>();
  std::vector<T> y(x.size());
  std::vector<float> wide(x.size());
  const auto same = [](T a, T b) { return a.bits() == b.bits() || (a != a && b != b); };
  const detail::LocalMap flat{.extents = {65536}, .strides = {{1}}, .flat = true};
  const auto check = [&](auto f, Index length) {
    detail::map<T>(f, {.extents = {length}, .strides = {{1}}}, y.data(), x.data());
    int wrong = 0;
    for (Index i = 0; i < length; ++i) {
      const auto k = static_cast<std::size_t>(i);
      wrong += !same(y[k], static_cast<T>(f(static_cast<float>(x[k]))));
    }
    CHECK(wrong == 0);
  };
  for (const Index length : {1, 7, 513, 65536}) {
    check(fn::Tanh{}, length);
    check(fn::Relu{}, length);
    check(fn::Tan{}, length);
    check(fn::Negate{}, length);
  }
  detail::map<float>(fn::Cast<float>{}, flat, wide.data(), x.data());
  detail::map<T>(fn::Cast<T>{}, flat, y.data(), wide.data());
  int wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) wrong += !same(x[i], y[i]);
  CHECK(wrong == 0);
  // A column and a broadcast row, to every second element of the result.
  const Index rows = 31, columns = 700;
  detail::map<T>(fn::Add{}, {.extents = {rows, columns}, .strides = {{1, 0}, {0, 2}}}, y.data(),
                 x.data() + 14000, x.data() + 16000);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j)
      wrong += !same(y[static_cast<std::size_t>(i * columns + j)],
                     fn::Add{}(x[static_cast<std::size_t>(14000 + i)],
                               x[static_cast<std::size_t>(16000 + 2 * j)]));
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("blocks of every length are joined whole, with NaN and both zeros", T, float,
                   double) {
  std::vector<T> x(256);
  const T nan = std::numeric_limits<T>::quiet_NaN();
  for (Index n = 1; n <= 256; ++n) {
    T sum = 0;
    for (Index i = 0; i < n; ++i) sum += x[static_cast<std::size_t>(i)] = T(i * 37 % 101 - 50);
    const auto block = [&]<Reduction R>(std::integral_constant<Reduction, R>) {
      return static_cast<T>(detail::line_chunk<R, T, T>({1, n, {n}, {1}}, x.data(), 0));
    };
    constexpr std::integral_constant<Reduction, Reduction::sum> sums;
    constexpr std::integral_constant<Reduction, Reduction::max> greatest;
    constexpr std::integral_constant<Reduction, Reduction::min> least;
    CHECK(block(sums) == sum);
    CHECK(block(greatest) == *std::max_element(x.begin(), x.begin() + n));
    CHECK(block(least) == *std::min_element(x.begin(), x.begin() + n));
    const auto place = static_cast<std::size_t>(n * 7 % 13) % static_cast<std::size_t>(n);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i == place ? T(0) : -T(0);
    CHECK(!std::signbit(block(greatest)));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i == place ? -T(0) : T(0);
    CHECK(std::signbit(block(least)));
    x[static_cast<std::size_t>(n * 11 % 17) % static_cast<std::size_t>(n)] =
        n % 2 == 0 ? nan : -nan;
    CHECK(std::isnan(block(greatest)));
    CHECK(std::isnan(block(least)));
  }
}

TEST_CASE_TEMPLATE("doubles are rounded once to half types, and so are running sums", T, half,
                   bfloat16) {
  const auto same = [](T a, T b) { return a.bits() == b.bits() || (a != a && b != b); };
  std::vector<double> x;
  for (int i = -700; i < 700; ++i)  // around ties that a float would hide
    for (const double off : {0.0, 1e-13, -1e-13})
      x.push_back((1 + i / 512.0) * (1 + off) * std::exp2(static_cast<double>(i % 60 - 30)));
  for (const double edge :
       {0.0, -0.0, 1e-60, -1e-60, 1e60, -1e60, 65519.999, 65520.0, 3.4e38, 3.41e38,
        std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    x.push_back(edge);
  const Index n = static_cast<Index>(x.size());
  std::vector<float> floats(x.size());
  std::vector<T> y(x.size());
  detail::round_row(x.data(), n, floats.data(), y.data());
  int wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) wrong += !same(y[i], static_cast<T>(x[i]));
  CHECK(wrong == 0);

  detail::use_rows_of<T>();
  constexpr std::size_t lines = 6, length = 700;
  std::vector<T> from;
  for (std::size_t i = 0; i < lines * length; ++i)
    from.push_back(static_cast<T>(static_cast<float>(i * 37 % 101) * 0.013f - 0.6f));
  std::vector<T> to(from.size());
  for (const bool reverse : {false, true})
    for (const bool exclusive : {false, true}) {
      const detail::LocalScan work{
          .outer = lines, .n = length, .reverse = reverse, .exclusive = exclusive};
      detail::scan(dtype_of<T>, Reduction::sum, work, from.data(), nullptr, to.data());
      for (std::size_t line = 0; line < lines; ++line) {
        double sum = 0;
        for (std::size_t k = 0; k < length; ++k) {
          const std::size_t i = line * length + (reverse ? length - 1 - k : k);
          const double before = sum;
          sum += static_cast<double>(static_cast<float>(from[i]));
          wrong += !same(to[i], static_cast<T>(exclusive ? before : sum));
        }
      }
    }
  CHECK(wrong == 0);
}
