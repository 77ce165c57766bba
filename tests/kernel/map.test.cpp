// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_rows
#include <doctest/doctest.h>

#include <cstring>

#include <tessera/kernel/functions.hpp>
#include <tessera/kernel/map/map.hpp>
#include <tessera/kernel/map/map_with_index.hpp>

#include "kernel/buffer.hpp"

using namespace tessera;
using namespace test;

namespace {
/// Tells its operands apart, and counts them.
struct Weigh {
  template <class... T> KOKKOS_FUNCTION std::int64_t operator()(T... x) const {
    std::int64_t sum = 0, weight = 1;
    ((sum += weight * static_cast<std::int64_t>(x), weight *= 11), ...);
    return sum;
  }
};

/// Tells places and operands apart.
struct WeighPlace {
  template <class... T>
  KOKKOS_FUNCTION std::int64_t operator()(const GlobalIndex& i, T... x) const {
    std::int64_t sum = 1000 * i.linear() + 10000000 * i.size();
    for (int d = 0; d < i.size(); ++d) sum = 3 * sum + i[d];
    return 11 * sum + 7 * (i.size() > 0 ? i.back() : 0) + Weigh{}(x...);
  }
};

/// WeighPlace for a function that reads the linear index alone, so that rows may be joined.
struct WeighNumber {
  static constexpr bool reads_linear_index = true;
  template <class... T>
  KOKKOS_FUNCTION std::int64_t operator()(const GlobalIndex& i, T... x) const {
    return 1000 * i.linear() + Weigh{}(x...);
  }
};

detail::LocalMap some_map(Random& random, int operands, const Extents& extents) {
  detail::LocalMap work{extents, {}};
  for (int k = 0; k < operands; ++k) {
    Extents strides = pick(random, 0, 1) == 0 ? detail::row_major_strides(extents)
                                              : some_strides(random, extents);
    for (int d = 0; d < extents.size(); ++d)
      if (pick(random, 0, 4) == 0) strides[d] = 0;
    work.strides.push_back(strides);
  }
  if (extents.empty() || pick(random, 0, 2) > 0) return work;
  Extents wide = extents;  // the result lies within a larger block
  for (Index& extent : wide) extent += pick(random, 0, 1) * pick(random, 1, 3);
  work.result = detail::row_major_strides(wide);
  if (pick(random, 0, 3) == 0)
    for (Index& stride : work.result) stride *= 2;
  return work;
}

template <class... T> void check(Random& random, const Extents& extents) {
  const detail::LocalMap work = some_map(random, sizeof...(T), extents);
  const auto run = [&](const std::vector<T>&... in) {
    const Extents to = work.result.empty() ? detail::row_major_strides(extents) : work.result;
    const std::int64_t untouched = 77777;
    std::vector<std::int64_t> expected(static_cast<std::size_t>(span(extents, to)), untouched);
    const Buffer<std::int64_t> out(expected);
    for_each_index(extents, [&](const Extents& i) {
      int k = 0;
      const std::vector<std::int64_t> values{
          static_cast<std::int64_t>(in[at(i, work.strides[k++])])...};
      std::int64_t sum = 0, weight = 1;
      for (const std::int64_t value : values) sum += weight * value, weight *= 11;
      expected[at(i, to)] = sum;
    });
    const auto call = [&](const Buffer<T>&... on) {
      detail::map(Weigh{}, work, out.data(), static_cast<const T*>(on.data())...);
      tessera::detail::fence();  // the operands go
    };
    call(Buffer<T>(in)...);
    CHECK(out.values() == expected);
  };
  int k = 0;
  const auto values = [&](auto zero) {
    return small_numbers<decltype(zero)>(random, span(extents, work.strides[k++]));
  };
  // Braces, for the order of evaluation.
  struct Call {
    Call(decltype(run) r, const std::vector<T>&... in) { r(in...); }
  };
  Call{run, values(T{})...};
}
}  // namespace

TEST_CASE("a bias added to a matrix") {
  const Buffer<float> x({1, 2, 3, 4, 5, 6}), bias({10, 20, 30}), y(std::vector<float>(6));
  detail::map(fn::Add{}, detail::LocalMap{{2, 3}, {{3, 1}, {0, 1}}}, y.data(), x.data(),
              bias.data());
  CHECK(y.values() == std::vector<float>{11, 22, 33, 14, 25, 36});
}

TEST_CASE("random extents, strides and broadcasts equal plain loops") {
  Random random(7);
  for (int round = 0; round < 120; ++round) {
    CAPTURE(round);
    const int dims = static_cast<int>(pick(random, 0, 4));
    const Extents extents = some_extents(random, dims, dims == 1 ? 2000 : dims == 2 ? 90 : 9);
    check<float>(random, extents);
    check<std::int32_t, double>(random, extents);
    check<float, float, std::int64_t>(random, extents);
  }
  const Extents many{2, 1, 3, 2, 2, 1, 2, 3};
  check<float, float, std::int32_t, double, float, std::int64_t, float, float>(random, many);
  check<float, float>(random, {300, 400});  // several threads
  check<float>(random, {50000});
}

namespace {
/// Bits of every kind: signalling NaNs, infinities, denormals and zeros among them.
template <class T> std::vector<T> any_bits(Random& random, Index n) {
  std::vector<T> x;
  for (Index i = 0; i < n; ++i)
    x.push_back(T::from_bits(static_cast<std::uint16_t>(pick(random, 0, 0xffff))));
  return x;
}
/// Whether a map of f has the bits of f of each pair of elements.
template <class R, class T, class F>
bool same_bits(Random& random, const Extents& extents, const Extents& left, const Extents& right,
               const Extents& result, F f) {
  const detail::LocalMap work{extents, {left, right}, result};
  const Extents to = result.empty() ? detail::row_major_strides(extents) : result;
  const std::vector<T> a = any_bits<T>(random, span(extents, left)),
                       b = any_bits<T>(random, span(extents, right));
  std::vector<R> expected(static_cast<std::size_t>(span(extents, to)), R(7));
  const Buffer<T> x(a), y(b);
  const Buffer<R> z(expected);
  for_each_index(extents, [&](const Extents& i) {
    expected[at(i, to)] =
        static_cast<R>(f(static_cast<float>(a[at(i, left)]), static_cast<float>(b[at(i, right)])));
  });
  detail::map(f, work, z.data(), static_cast<const T*>(x.data()), static_cast<const T*>(y.data()));
  tessera::detail::fence();
  const std::vector<R> made = z.values();
  bool same = true;
  for (std::size_t i = 0; i < made.size(); ++i)
    same = same && (std::memcmp(&made[i], &expected[i], sizeof(R)) == 0 ||
                    (made[i] != made[i] && expected[i] != expected[i]));
  return same;
}
}  // namespace

TEST_CASE_TEMPLATE("maps of half types have the bits of each element, in rows of any length", T,
                   half, bfloat16) {
  Random random(11);
  const auto add = [](auto a, auto b) { return a + b; };
  const auto second = [](auto, auto b) { return b < 0 ? 0 * b : b; };
  for (const Index row : {1, 15, 16, 17, 63, 64, 79, 130, 513, 1100}) {
    CAPTURE(row);
    const Extents extents{5, row}, whole{row, 1}, column{1, 0}, line{0, 1}, one{0, 0}, odd{2, 10};
    for (const Extents& other : {whole, column, line, one, odd})
      for (const Extents& result : {Extents{}, Extents{row + 3, 1}, Extents{2 * row, 2}}) {
        CHECK(same_bits<T, T>(random, extents, whole, other, result, add));
        CHECK(same_bits<float, T>(random, extents, other, whole, result, add));
        CHECK(same_bits<T, T>(random, extents, other, other, result, second));
        CHECK(same_bits<T, T>(random, extents, other, whole, result,
                              [](auto a, auto b) { return fn::Exp{}(a * b); }));
      }
  }
}

TEST_CASE("the result may be an operand") {
  const Buffer<double> x({1, 2, 3, 4}), factor({10, 100});
  detail::map(fn::Multiply{}, detail::LocalMap{{2, 2}, {{2, 1}, {1, 0}}}, x.data(), x.data(),
              factor.data());
  CHECK(x.values() == std::vector<double>{10, 20, 300, 400});
}

TEST_CASE("a lambda and a result of another type") {
  const Buffer<double> x({0.5, 1.5, 2.5});
  const Buffer<std::int32_t> y(std::vector<std::int32_t>(3));
  detail::map(
      KOKKOS_LAMBDA(double value) { return value > 1.0; }, detail::LocalMap{{3}, {{1}}}, y.data(),
      x.data());
  CHECK(y.values() == std::vector<std::int32_t>{0, 1, 1});
}

/// Checks f of blocks: some reach over the whole of some dimensions, or all.
template <class F> void check_places(const F& f, std::uint64_t seed) {
  Random random(seed);
  const auto check_block = [&](const Extents& extents) {
    const detail::LocalMap work = some_map(random, 2, extents);
    Extents offset, whole;
    for (const Index extent : extents) {
      const bool all = pick(random, 0, 1) == 1;
      offset.push_back(all ? 0 : pick(random, 0, 5));
      whole.push_back(offset.back() + extent + (all ? 0 : pick(random, 0, 3)));
    }
    const auto x = small_numbers<float>(random, span(extents, work.strides[0]));
    const auto y = small_numbers<std::int32_t>(random, span(extents, work.strides[1]));
    const Extents to = work.result.empty() ? detail::row_major_strides(extents) : work.result;
    std::vector<std::int64_t> expected(static_cast<std::size_t>(span(extents, to)), 77777);
    const Buffer<std::int64_t> out(expected);
    for_each_index(extents, [&](const Extents& i) {
      GlobalIndex place{{}, 0, extents.size()};
      for (int d = 0; d < extents.size(); ++d) {
        place.coordinate[d] = offset[d] + i[d];
        place.row_major += place.coordinate[d] * detail::row_major_strides(whole)[d];
      }
      expected[at(i, to)] = f(place, x[at(i, work.strides[0])], y[at(i, work.strides[1])]);
    });
    const Buffer<float> first(x);
    const Buffer<std::int32_t> second(y);
    detail::map_with_index<std::int64_t>(f, work, offset, whole, out.data(),
                                         static_cast<const float*>(first.data()),
                                         static_cast<const std::int32_t*>(second.data()));
    tessera::detail::fence();
    CHECK(out.values() == expected);
  };
  for (int round = 0; round < 120; ++round) {
    CAPTURE(round);
    const int dims = static_cast<int>(pick(random, 0, 4));
    check_block(some_extents(random, dims, dims == 1 ? 2000 : dims == 2 ? 90 : 9));
  }
  check_block({2, 1, 3, 2, 2, 1, 2, 3});
  check_block({30, 700});  // several threads, rows longer than a tile
}

TEST_CASE("a function is told where each element lies in the whole") {
  check_places(WeighPlace{}, 8);
}

TEST_CASE("a function of the linear index gets that of each element in the whole") {
  check_places(WeighNumber{}, 9);
}
