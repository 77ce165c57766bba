// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_elements
// Sorting lines, positions, carried values and merges against std::stable_sort, all element types.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include <tessera/kernel/sort/arrange.hpp>
#include <tessera/kernel/sort/merge.hpp>
#include <tessera/kernel/sort/sort.hpp>
#include <tessera/kernel/use_element.hpp>

#include "kernel/buffer.hpp"

using namespace tessera;
using namespace test;

namespace {

/// Whether x comes before y, as the laws say.
template <class T> bool before(T x, T y, bool descending) {
  if constexpr (!std::is_integral_v<T>) {
    if (x != x || y != y) return x == x && y != y;
  }
  return descending ? y < x : x < y;
}
/// Returns whether key x comes before y: -0 comes before 0, and NaNs are in the order of their
/// bits.
template <class T> bool before_alone(T x, T y, bool descending) {
  if (before(x, y, descending) || before(y, x, descending)) return before(x, y, descending);
  if constexpr (!std::is_integral_v<T>) {
    tessera::detail::SortKey<T> a{}, b{};
    std::memcpy(&a, &x, sizeof(T));
    std::memcpy(&b, &y, sizeof(T));
    if (x != x) return a < b;
    return descending ? a < b : b < a;
  }
  return false;
}

/// The kernels with just the memory that they state.
Buffer<std::int64_t> words_of(DType type, const detail::LocalSort& work, bool placed) {
  const Index bytes = work.scratch_bytes(static_cast<Index>(size_of(type)), placed);
  return Buffer<std::int64_t>(std::vector<std::int64_t>(static_cast<std::size_t>(bytes / 8)));
}
void sort_with_words(DType type, const detail::LocalSort& work, const void* from, void* to) {
  tessera::detail::sort(type, work, from, to, words_of(type, work, false).data());
}
void order_with_words(DType type, const detail::LocalSort& work, const void* from,
                      const void* places, void* to) {
  detail::order(type, work, from, places, to, words_of(type, work, places != nullptr).data());
}

template <class T> bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// Numbers of which many are equal; floats have -0, NaN and infinities.
template <class T> std::vector<T> some_numbers(Random& random, Index n, bool wide) {
  std::vector<T> values(static_cast<std::size_t>(n));
  for (T& x : values) {
    if constexpr (std::is_same_v<T, std::uint64_t>)
      x = static_cast<T>(
          wide ? pick(random, std::numeric_limits<Index>::min(), std::numeric_limits<Index>::max())
               : pick(random, 0, 3));
    else if constexpr (std::is_unsigned_v<T> && !std::is_same_v<T, bool>)
      x = static_cast<T>(pick(random, 0, wide ? std::numeric_limits<T>::max() : 3));
    else if constexpr (std::is_integral_v<T>)
      x = static_cast<T>(
          wide ? pick(random, std::numeric_limits<T>::min(), std::numeric_limits<T>::max())
               : pick(random, -3, 3));
    else
      x = static_cast<T>(static_cast<float>(pick(random, -1000, 1000)) * (wide ? 0x1p-7f : 0.0f) +
                         static_cast<float>(pick(random, -2, 2)));
    if constexpr (!std::is_integral_v<T>) {
      const Index special = pick(random, 0, 19);
      if (special == 0) x = std::numeric_limits<T>::quiet_NaN();
      if (special == 1) x = -std::numeric_limits<T>::infinity();
      if (special == 2) x = T(-0.0f);
      if (special == 3) x = T(0.0f);
      if (special == 4) x = -std::numeric_limits<T>::quiet_NaN();
    }
  }
  return values;
}

/// Returns the places of each line in order, outer x n x inner.
template <class T>
std::vector<Index> places_in_order(const detail::LocalSort& work, const std::vector<T>& x,
                                   bool alone = false) {
  std::vector<Index> all(x.size());
  for (Index o = 0; o < work.outer; ++o)
    for (Index i = 0; i < work.inner; ++i) {
      const auto at = [&](Index place) {
        return static_cast<std::size_t>((o * work.n + place) * work.inner + i);
      };
      std::vector<Index> line(static_cast<std::size_t>(work.n));
      std::iota(line.begin(), line.end(), Index{0});
      std::stable_sort(line.begin(), line.end(), [&](Index a, Index b) {
        return alone ? before_alone(x[at(a)], x[at(b)], work.descending)
                     : before(x[at(a)], x[at(b)], work.descending);
      });
      for (Index r = 0; r < work.n; ++r) all[at(r)] = line[static_cast<std::size_t>(r)];
    }
  return all;
}

template <class T> void sort_like_the_oracle(Random& random) {
  use_element<T>();
  using Stored = tessera::detail::Stored<T>;
  const DType type = dtype_of<T>;
  for (int round = 0; round < 60; ++round) {
    detail::LocalSort work;
    work.outer = pick(random, 0, 4);
    work.n = round % 6 == 0 ? pick(random, 300, 900) : pick(random, 0, 20);
    work.inner = pick(random, 1, 3);
    work.limit = round % 3 == 0 ? pick(random, 0, work.n) : work.n;
    if (round % 10 == 9) work.limit = work.n + pick(random, 1, 3);
    work.first = pick(random, 0, 5);
    work.descending = pick(random, 0, 1) == 1;
    std::vector<Stored> x =
        some_numbers<Stored>(random, work.outer * work.n * work.inner, pick(random, 0, 1) == 1);
    if constexpr (std::is_same_v<T, bool>)
      for (Stored& value : x) value = value > 1;
    const std::vector<Index> places = places_in_order(work, x),
                             places_alone = places_in_order(work, x, true);
    const std::size_t results = static_cast<std::size_t>(work.outer * work.limit * work.inner);
    std::vector<Stored> sorted(results, Stored{}), alone(results, Stored{});
    std::vector<std::int64_t> positions(results, detail::no_position);
    std::vector<std::int32_t> narrow(results, std::numeric_limits<std::int32_t>::max());
    for (Index o = 0; o < work.outer; ++o)
      for (Index r = 0; r < std::min(work.limit, work.n); ++r)
        for (Index i = 0; i < work.inner; ++i) {
          const auto from = static_cast<std::size_t>((o * work.n + r) * work.inner + i);
          const auto to = static_cast<std::size_t>((o * work.limit + r) * work.inner + i);
          const auto value = [&](Index place) {
            return x[static_cast<std::size_t>((o * work.n + place) * work.inner + i)];
          };
          sorted[to] = value(places[from]);
          alone[to] = value(places_alone[from]);
          positions[to] = work.first + places[from];
          narrow[to] = static_cast<std::int32_t>(positions[to]);
        }
    const Buffer<Stored> from(x), to(std::vector<Stored>(results, Stored(77))),
        arranged(std::vector<Stored>(results, Stored(77)));
    const Buffer<std::int64_t> where(std::vector<std::int64_t>(results, 77));
    const Buffer<std::int32_t> near(std::vector<std::int32_t>(results, 77));
    sort_with_words(type, work, from.data(), to.data());
    order_with_words(type, work, from.data(), nullptr, where.data());
    detail::arrange(type, work, from.data(), where.data(), arranged.data());
    CHECK(same_bits(to.values(), alone));
    CHECK(where.values() == positions);
    CHECK(same_bits(arranged.values(), sorted));
    detail::LocalSort less = work;
    less.narrow = true;
    order_with_words(type, less, from.data(), nullptr, near.data());
    detail::arrange(type, less, from.data(), near.data(), arranged.data());
    CHECK(near.values() == narrow);
    CHECK(same_bits(arranged.values(), sorted));
    // What a device does.
    if (work.n > 0 && results > 0) {
      const Buffer<std::int64_t> network(std::vector<std::int64_t>(x.size(), 77)),
          taken(std::vector<std::int64_t>(results, 77));
      const Buffer<Stored> values(std::vector<Stored>(results, Stored(77)));
      for (const bool total : {false, true}) {
        tessera::detail::sort_places<Stored>(work, from.data(), {}, total, network.data());
        tessera::detail::fence();
        tessera::detail::TakePlaces<Stored>{work,           from.data(),   {},
                                            network.data(), values.data(), {taken.data(), false}}
            .run(0, static_cast<Index>(results));
        if (!total) CHECK(taken.values() == positions);
        CHECK(same_bits(values.values(), total ? alone : sorted));
      }
    }
  }
}

/// Sorts lines that are cut in parts, by merges between pairs of parts, with positions and what is
/// carried.
template <class T> void merge_like_the_oracle(Random& random, bool with_positions) {
  use_element<T>();
  const DType type = dtype_of<T>;
  for (int round = 0; round < 40; ++round) {
    const Index outer = pick(random, 1, 3), inner = pick(random, 1, 3), n = pick(random, 0, 40),
                parts = pick(random, 1, 6);
    const bool descending = pick(random, 0, 1) == 1;
    const detail::LocalSort whole{outer, n, inner, n, 0, descending};
    const std::vector<T> x = some_numbers<T>(random, outer * n * inner, pick(random, 0, 1) == 1);
    const std::vector<Index> places = places_in_order(whole, x, !with_positions);
    const bool narrow = round % 2 == 1;
    struct Part {
      Index size;
      std::vector<T> keys;
      std::vector<std::int64_t> positions;
      std::vector<std::int16_t> carried;
    };
    std::vector<Part> all;
    const Index block = ceil_div(n, parts);
    const auto carried_of = [](Index o, Index place, Index i) {
      return static_cast<std::int16_t>(1000 * o + 7 * place + i);
    };
    for (Index p = 0; p < parts; ++p) {
      const Index lo = std::min(n, p * block), size = std::min(n, lo + block) - lo;
      Part part{size, {}, {}, {}};
      std::vector<T> keys;
      std::vector<std::int16_t> carried;
      for (Index o = 0; o < outer; ++o)
        for (Index k = lo; k < lo + size; ++k)
          for (Index i = 0; i < inner; ++i) {
            keys.push_back(x[static_cast<std::size_t>((o * n + k) * inner + i)]);
            carried.push_back(carried_of(o, k, i));
          }
      const detail::LocalSort own{outer, size, inner, size, lo, descending};
      const Buffer<T> from(keys), to(keys);
      const Buffer<std::int16_t> moved(carried), arranged(carried);
      const Buffer<std::int64_t> order_of(std::vector<std::int64_t>(keys.size(), 77));
      use_element<std::int16_t>();
      order_with_words(type, own, from.data(), nullptr, order_of.data());
      if (with_positions)
        detail::arrange(type, own, from.data(), order_of.data(), to.data());
      else
        sort_with_words(type, own, from.data(), to.data());
      detail::arrange(DType::i16, own, moved.data(), order_of.data(), arranged.data());
      all.push_back({size, to.values(), order_of.values(), arranged.values()});
    }
    const auto merged = [&](const Part& mine, const Part& theirs, bool last) {
      Part result = mine;
      const Buffer<T> own(mine.keys), other(theirs.keys), to(mine.keys);
      const Buffer<std::int64_t> own_at(mine.positions), other_at(theirs.positions),
          to_at(mine.positions);
      const Buffer<std::int16_t> own_with(mine.carried), other_with(theirs.carried),
          to_with(mine.carried);
      tessera::detail::MergeRuns runs;
      runs.add(own.data(), other.data(), to.data(), sizeof(T));
      const auto less = [](const std::vector<std::int64_t>& wide) {
        return std::vector<std::int32_t>(wide.begin(), wide.end());
      };
      const Buffer<std::int32_t> own_near(less(mine.positions)), other_near(less(theirs.positions)),
          to_near(less(mine.positions));
      if (with_positions && narrow)
        runs.add(own_near.data(), other_near.data(), to_near.data(), 4);
      else if (with_positions)
        runs.add(own_at.data(), other_at.data(), to_at.data(), 8);
      if (with_positions) runs.add(own_with.data(), other_with.data(), to_with.data(), 2);
      detail::merge(
          type, {outer, mine.size, theirs.size, inner, last, descending, with_positions, narrow},
          runs);
      result.keys = to.values();
      result.positions = to_at.values();
      if (const std::vector<std::int32_t> made = to_near.values(); narrow)
        result.positions.assign(made.begin(), made.end());
      result.carried = to_with.values();
      return result;
    };
    for (int r = 0; r < detail::merge_exchange_rounds(parts); ++r)
      for (Index p = 0; p < parts; ++p) {
        const Index q = detail::merge_exchange_round(parts, r).partner(p, parts);
        if (q <= p) continue;
        Part& low = all[static_cast<std::size_t>(p)];
        Part& high = all[static_cast<std::size_t>(q)];
        const Part first = merged(low, high, false);
        high = merged(high, low, true);
        low = first;
      }
    long wrong = 0;
    for (Index p = 0; p < parts; ++p) {
      const Part& part = all[static_cast<std::size_t>(p)];
      std::size_t next = 0;
      for (Index o = 0; o < outer; ++o)
        for (Index k = 0; k < part.size; ++k)
          for (Index i = 0; i < inner; ++i, ++next) {
            const Index place =
                places[static_cast<std::size_t>((o * n + p * block + k) * inner + i)];
            const T value = x[static_cast<std::size_t>((o * n + place) * inner + i)];
            wrong += std::memcmp(&value, &part.keys[next], sizeof(T)) != 0;
            if (with_positions)
              wrong +=
                  part.positions[next] != place || part.carried[next] != carried_of(o, place, i);
          }
    }
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE(
    "lines are sorted as std::stable_sort sorts them, whole or the first few, values and "
    "positions") {
  Random random(11);
  sort_like_the_oracle<float>(random);
  sort_like_the_oracle<double>(random);
  sort_like_the_oracle<half>(random);
  sort_like_the_oracle<bfloat16>(random);
  sort_like_the_oracle<std::int8_t>(random);
  sort_like_the_oracle<std::int16_t>(random);
  sort_like_the_oracle<std::int32_t>(random);
  sort_like_the_oracle<std::int64_t>(random);
  sort_like_the_oracle<std::uint8_t>(random);
  sort_like_the_oracle<std::uint16_t>(random);
  sort_like_the_oracle<std::uint32_t>(random);
  sort_like_the_oracle<std::uint64_t>(random);
  sort_like_the_oracle<bool>(random);
}

TEST_CASE("the words of lines take no more than the block, unless one line's do") {
  const auto bytes = [](detail::LocalSort work, Index unit) {
    return work.scratch_bytes(unit, false);
  };
  CHECK(bytes({.n = 1 << 20, .limit = 1 << 20}, 4) == 16 << 20);  // a key and a place, twice
  CHECK(bytes({.n = 1 << 20, .limit = 1 << 20}, 8) == 32 << 20);
  CHECK(bytes({.n = 1 << 20, .limit = 10}, 8) == 160);
  CHECK(bytes({.outer = 64, .n = 1 << 20, .limit = 1 << 20}, 4) == 256 << 20);  // 16 lines at once
  CHECK(bytes({.outer = 1000, .n = 100, .limit = 100}, 4) == 256 * 800);
  CHECK(bytes({.outer = 0, .n = 100, .limit = 100}, 4) == 0);
  CHECK(bytes({.outer = 3, .n = 0, .limit = 2}, 4) == 0);
  CHECK(bytes({.n = 5'000'000'000, .limit = 5'000'000'000}, 4) == 160'000'000'000);
}

TEST_CASE("elements that are not there come last") {
  use_element<float>();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Buffer<float> x(std::vector<float>{3, nan, 0, 9, 0, 5});
  const Buffer<std::int64_t> places(
      std::vector<std::int64_t>{10, 11, detail::no_position, 20, detail::no_position, 21});
  const Buffer<std::int64_t> to(std::vector<std::int64_t>(5, 77));
  order_with_words(DType::f32, {.n = 6, .limit = 5, .descending = true}, x.data(), places.data(),
                   to.data());
  CHECK(to.values() == std::vector<std::int64_t>{3, 5, 0, 1, detail::no_position});
  const Buffer<std::int64_t> network(std::vector<std::int64_t>(6, 77)),
      taken(std::vector<std::int64_t>(5, 77));
  const detail::LocalSort work{.n = 6, .limit = 5, .descending = true};
  const auto some = tessera::detail::PositionArray::read(places.data(), false);
  tessera::detail::sort_places<float>(work, x.data(), some, false, network.data());
  tessera::detail::fence();
  tessera::detail::TakePlaces<float>{work,           x.data(), some,
                                     network.data(), nullptr,  {taken.data(), false}}
      .run(0, 5);
  CHECK(taken.values() == std::vector<std::int64_t>{3, 5, 0, 1, detail::no_position});
  const Buffer<float> arranged(std::vector<float>(5, 77));
  detail::arrange(DType::f32, work, x.data(), to.data(), arranged.data());
  CHECK(arranged.values()[0] == 9);
  CHECK(arranged.values()[4] == 0);
}

TEST_CASE("carried elements of every size, complex ones too") {
  use_element<complex<double>>();
  use_element<complex<float>>();
  const Buffer<std::int64_t> positions(std::vector<std::int64_t>{2, 0, 1});
  const Buffer<complex<double>> x(std::vector<complex<double>>{{1, 2}, {3, 4}, {5, 6}}),
      y(std::vector<complex<double>>(3));
  detail::arrange(DType::c128, {.n = 3, .limit = 3}, x.data(), positions.data(), y.data());
  CHECK(y.values()[0].re == 5);
  CHECK(y.values()[1].im == 2);
  CHECK(y.values()[2].im == 4);
}

TEST_CASE(
    "a line in parts is sorted by merges between pairs of them, the last parts short or empty") {
  Random random(12);
  merge_like_the_oracle<std::int32_t>(random, false);
  merge_like_the_oracle<std::int32_t>(random, true);
  merge_like_the_oracle<double>(random, true);
  merge_like_the_oracle<half>(random, true);
  merge_like_the_oracle<std::uint8_t>(random, true);
  merge_like_the_oracle<std::uint64_t>(random, true);
}
