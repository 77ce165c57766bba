// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_elements
// The local parts of takes and scatters, by every way through their loops; and the order of tuples,
// however many threads wrote them down.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include <tessera/kernel/indexed/scatter.hpp>
#include <tessera/kernel/indexed/take.hpp>
#include <tessera/kernel/use_element.hpp>

#include "kernel/buffer.hpp"

using namespace tessera;
using namespace test;

namespace {

/// A table of n x row elements, tuples that lie as `strides` say, and a row of them.
detail::LocalIndexed rows_of(Index tuples, Index n, Interval held, const Extents& row,
                             const Extents& row_strides, const Extents& row_in_table,
                             Index tuple_stride, Index step, OutOfRange out_of_range) {
  detail::LocalIndexed work;
  work.tuples = {tuples};
  work.strides = {tuple_stride};
  work.in_table = {0};
  work.indices.push_back({n, held, step, {1}});
  work.row = row;
  work.row_strides = row_strides;
  work.row_in_table = row_in_table;
  work.out_of_range = out_of_range;
  return work;
}

Index volume_of(const Extents& e) { return volume(e); }

}  // namespace

TEST_CASE("rows are taken along memory and across it, whole, in part and not at all") {
  Random random(5);
  const Index n = 7, held_from = 2, held_to = 5, tuples = 40;
  std::vector<std::int32_t> narrow(tuples);
  std::vector<std::int64_t> wide(tuples);
  for (std::size_t i = 0; i < tuples; ++i)
    wide[i] = narrow[i] = static_cast<std::int32_t>(pick(random, -3, 9));
  const Buffer<std::int32_t> at32(narrow);
  const Buffer<std::int64_t> at64(wide);
  detail::use_indexed<float>();
  for (const OutOfRange out_of_range : {OutOfRange::clamp, OutOfRange::drop})
    for (const bool is_wide : {false, true})
      for (int shape = 0; shape < 4; ++shape) {
        // Rows of 6: contiguous; as 2 x 3 with a gap; across the result (tuples inside); and of one
        // element.
        const Extents row = shape == 3 ? Extents{} : shape == 0 ? Extents{6} : Extents{2, 3};
        const Index size = volume_of(row);
        const Extents in_table = shape == 3 ? Extents{} : shape == 0 ? Extents{1} : Extents{4, 1};
        const Extents in_result = shape == 3   ? Extents{}
                                  : shape == 0 ? Extents{1}
                                  : shape == 1 ? Extents{3, 1}
                                               : Extents{3 * tuples, tuples};
        const Index step = 8, tuple_stride = shape == 2 ? 1 : size;
        const detail::LocalIndexed work = rows_of(tuples, n, {held_from, held_to}, row, in_result,
                                                  in_table, tuple_stride, step, out_of_range);
        const Buffer<float> table(small_numbers<float>(random, (held_to - held_from) * step));
        const Buffer<float> out(std::vector<float>(static_cast<std::size_t>(tuples * size), 77));
        const void* indices = is_wide ? static_cast<const void*>(at64.data()) : at32.data();
        const DType type = is_wide ? DType::i64 : DType::i32;
        detail::take(DType::f32, work, table.data(), &indices, &type, Reduction::max, out.data());
        const std::vector<float> given = table.values(), made = out.values();
        long wrong = 0;
        for (Index t = 0; t < tuples; ++t)
          for (Index j = 0; j < size; ++j) {
            const Index r0 = row.size() == 2 ? j / 3 : 0, r1 = row.size() == 2 ? j % 3 : j;
            const Index to =
                t * tuple_stride + (row.size() == 2 ? r0 * in_result[0] + r1 * in_result[1] : r1);
            Index i = wide[static_cast<std::size_t>(t)];
            float expected = 0;
            if (out_of_range == OutOfRange::clamp)
              i = std::max<Index>(0, std::min<Index>(n - 1, i));
            if (i >= 0 && i < n)
              expected = i < held_from || i >= held_to
                             ? -std::numeric_limits<float>::infinity()
                             : given[static_cast<std::size_t>(
                                   (i - held_from) * step + (row.size() == 2 ? r0 * 4 + r1 : r1))];
            wrong += made[static_cast<std::size_t>(to)] != expected;
          }
        CHECK_MESSAGE(wrong == 0, shape);
      }
}

TEST_CASE("tuples that threads have written down in any order are sorted by row") {
  Random random(6);
  const Index rows = 300;
  std::vector<Index> ends, places;
  for (Index r = 0; r < rows; ++r) {
    const Index n = r % 7 == 0 ? pick(random, 100, 400) : pick(random, 0, 3);
    for (Index i = 0; i < n; ++i) places.push_back(pick(random, 0, 1'000'000));
    ends.push_back(static_cast<Index>(places.size()));
  }
  ends.push_back(ends.back());
  std::vector<Index> expected = places;
  for (Index r = 0; r < rows; ++r)
    std::sort(expected.begin() + (r > 0 ? ends[static_cast<std::size_t>(r - 1)] : 0),
              expected.begin() + ends[static_cast<std::size_t>(r)]);
  const Buffer<Index> e(ends), p(places);
  detail::launch("sort", rows, 1, detail::SortTuples{{rows, e.data(), nullptr, p.data()}});
  CHECK(p.values() == expected);
}

TEST_CASE("counted by atomics or alone, rows have the same tuples, over several chunks of rows") {
  Random random(7);
  const Index rows = 3 * detail::LocalScatter::chunk + 5, tuples = 20'000;
  std::vector<std::int64_t> at(static_cast<std::size_t>(tuples));
  for (auto& i : at) i = pick(random, 0, 9) == 0 ? 17 : pick(random, -5, rows + 5);
  detail::LocalScatter work;
  work.rows = rows_of(tuples, rows, {0, rows}, {}, {}, {}, 1, 1, OutOfRange::drop);
  work.table = {rows};
  work.table_strides = {1};
  const Buffer<std::int64_t> indices(at);
  const void* data = indices.data();
  const DType type = DType::i64;
  const detail::IndexBox box = detail::index_box(work.rows, &data, &type);
  std::vector<Index> found[2];
  for (const bool alone : {false, true}) {
    const Buffer<Index> memory(std::vector<Index>(static_cast<std::size_t>(work.integers()), -1));
    const detail::RowOrder order = detail::row_order(work, memory.data());
    detail::fill(order.ends, rows + 1, Index{0});
    const Index chunks = ceil_div(rows, detail::LocalScatter::chunk);
    detail::launch("count", tuples, 100,
                   detail::CountTuples{
                       box, order, alone && kernels_on_host && detail::host_threads() == 1, false});
    for (int pass = 0; pass < 3; ++pass)
      detail::launch("sum", pass == 1 ? 1 : chunks, 1, detail::SumCounts{order, pass});
    detail::launch("place", tuples, 100,
                   detail::CountTuples{
                       box, order, alone && kernels_on_host && detail::host_threads() == 1, true});
    detail::launch("sort", rows, 100, detail::SortTuples{order});
    const std::vector<Index> all = memory.values();
    std::vector<std::vector<Index>> expected(static_cast<std::size_t>(rows));
    for (Index i = 0; i < tuples; ++i)
      if (at[static_cast<std::size_t>(i)] >= 0 && at[static_cast<std::size_t>(i)] < rows)
        expected[static_cast<std::size_t>(at[static_cast<std::size_t>(i)])].push_back(i);
    long wrong = 0;
    Index begin = 0;
    const std::size_t first = static_cast<std::size_t>(rows + 1 + chunks);
    for (Index r = 0; r < rows; ++r) {
      const Index end = all[static_cast<std::size_t>(r)];
      wrong += std::vector<Index>(all.begin() + static_cast<std::ptrdiff_t>(first) + begin,
                                  all.begin() + static_cast<std::ptrdiff_t>(first) + end) !=
               expected[static_cast<std::size_t>(r)];
      begin = end;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE(
    "long sums are kept in double, products and extremes by their kinds, and what is set stays") {
  const Index tuples = 5000;
  std::vector<std::int32_t> at(static_cast<std::size_t>(tuples), 1);
  std::vector<float> updates(static_cast<std::size_t>(tuples));
  for (std::size_t i = 0; i < updates.size(); ++i)
    updates[i] = i == 0 ? 16'777'216.0f : 1.0f;  // 2^24: adding one by one would stay there
  detail::LocalScatter work;
  work.rows = rows_of(tuples, 3, {0, 3}, {}, {}, {}, 1, 1, OutOfRange::drop);
  work.table = {3};
  work.table_strides = {1};
  const Buffer<std::int32_t> indices(at);
  const Buffer<float> from(updates), operand(std::vector<float>{5, 6, 7});
  detail::use_indexed<float>();
  const auto run = [&](Reduction kind, detail::ScatterStart start) {
    work.start = start;
    const Buffer<Index> memory(std::vector<Index>(static_cast<std::size_t>(work.integers()), -1));
    const Buffer<float> out(std::vector<float>(3, 77));
    const void* data = indices.data();
    const DType type = DType::i32;
    detail::scatter(DType::f32, kind, work, operand.data(), &data, &type, from.data(),
                    memory.data(), out.data());
    return out.values();
  };
  CHECK(run(Reduction::sum, detail::ScatterStart::operand) ==
        std::vector<float>{5, 16'777'216.0f + 5005.0f, 7});
  CHECK(run(Reduction::sum, detail::ScatterStart::identity) ==
        std::vector<float>{0, 16'777'216.0f + 4999.0f, 0});
  CHECK(std::signbit(run(Reduction::sum, detail::ScatterStart::nothing)[0]));
  CHECK(run(Reduction::max, detail::ScatterStart::operand) ==
        std::vector<float>{5, 16'777'216.0f, 7});
  CHECK(run(Reduction::min, detail::ScatterStart::operand) == std::vector<float>{5, 1, 7});
  CHECK(run(Reduction::product, detail::ScatterStart::nothing) ==
        std::vector<float>{1, 16'777'216.0f, 1});
  CHECK(run(Reduction::none, detail::ScatterStart::operand) == std::vector<float>{5, 1, 7});
}

TEST_CASE(
    "in place the bits are those of a new table, with fewer updates than rows and with more") {
  Random random(8);
  detail::use_indexed<float>();
  for (const Index width : {1, 7, 600})
    for (const Index tuples : {0, 1, 60, 230, 400}) {
      const Index rows = 300, held_from = 20, held_to = 280;
      std::vector<std::int64_t> at(static_cast<std::size_t>(tuples));
      for (auto& i : at) i = pick(random, 0, 3) == 0 ? 33 : pick(random, -5, rows + 5);
      detail::LocalScatter work;
      work.rows = rows_of(tuples, rows, {held_from, held_to}, {width}, {1}, {1}, width, 1,
                          OutOfRange::drop);
      work.table = {held_to - held_from};
      work.table_strides = {width};
      std::vector<float> table, more;  // sums that are rounded
      for (Index i = 0; i < (held_to - held_from) * width; ++i)
        table.push_back(static_cast<float>(pick(random, -1000, 1000)) * 0.1f);
      for (Index i = 0; i < tuples * width; ++i)
        more.push_back(static_cast<float>(pick(random, -1000, 1000)) * 1e-3f);
      const Buffer<std::int64_t> indices(at);
      const Buffer<Index> memory(std::vector<Index>(static_cast<std::size_t>(work.integers())));
      const Buffer<float> operand(table), updates(more), apart(table);
      const void* data = indices.data();
      const DType type = DType::i64;
      for (const Reduction kind : {Reduction::none, Reduction::product, Reduction::max}) {
        const Buffer<float> made(table), in_place(table);
        detail::scatter(DType::f32, kind, work, operand.data(), &data, &type, updates.data(),
                        memory.data(), made.data());
        detail::scatter(DType::f32, kind, work, in_place.data(), &data, &type, updates.data(),
                        memory.data(), in_place.data());
        CHECK(in_place.values() == made.values());
      }
      detail::scatter(DType::f32, Reduction::sum, work, operand.data(), &data, &type,
                      updates.data(), memory.data(), apart.data());
      const Buffer<float> again(table);
      detail::scatter(DType::f32, Reduction::sum, work, again.data(), &data, &type, updates.data(),
                      memory.data(), again.data());
      CHECK(again.values() == apart.values());
      std::vector<double> sums(table.begin(), table.end());
      for (std::size_t t = 0; t < at.size(); ++t)
        for (Index j = 0; j < width && at[t] >= held_from && at[t] < held_to; ++j)
          sums[static_cast<std::size_t>((at[t] - held_from) * width + j)] += static_cast<double>(
              more[t * static_cast<std::size_t>(width) + static_cast<std::size_t>(j)]);
      CHECK(again.values() == std::vector<float>(sums.begin(), sums.end()));
    }
}

TEST_CASE("what changes nothing in a join changes nothing, of every type") {
  for (int type = 0; type < dtypes; ++type)
    detail::with_type(static_cast<DType>(type), [&](auto element) {
      using T = decltype(element);
      using S = detail::Stored<T>;
      for (const Reduction kind : {Reduction::sum, Reduction::product, Reduction::max,
                                   Reduction::min, Reduction::any, Reduction::all}) {
        if (!defined(kind, dtype_of<T>)) continue;
        const S neutral = detail::neutral_element(dtype_of<T>, kind).template as<S>();
        for (const S value : {S{}, static_cast<S>(-S{}), static_cast<S>(1.0f)}) {
          const bool minus_zero =
              std::memcmp(&value, std::array<char, sizeof(S)>{}.data(), sizeof(S)) != 0 &&
              value == S{};
          if (ComplexElement<T> && minus_zero && kind == Reduction::product)
            continue;  // the product of complex numbers loses its sign
          detail::with_reduction<T>(kind, [&](auto r) {
            const S joined = detail::Fold<decltype(r)::value, S>::join(neutral, value);
            CHECK_MESSAGE(std::memcmp(&joined, &value, sizeof(S)) == 0,
                          name_of(dtype_of<T>) << " " << name_of(kind));
          });
        }
      }
    });
}
