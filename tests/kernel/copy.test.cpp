// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_rows
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include <tessera/kernel/copy/copy.hpp>
#include <tessera/kernel/copy/stream_copy.hpp>

#include "kernel/buffer.hpp"

using namespace tessera;
using namespace test;

namespace {
struct Case {
  std::vector<detail::StridedCopy> copies;
  Index from_size = 0, to_size = 0;
};

void add(Case& c, const Extents& extents, const Extents& from, const Extents& to) {
  c.copies.push_back({extents, c.from_size, from, c.to_size, to});
  c.from_size += span(extents, from);
  c.to_size += span(extents, to);
}

template <class T> void check(const Case& c) {
  std::vector<T> source(static_cast<std::size_t>(c.from_size)),
      expected(static_cast<std::size_t>(c.to_size), T(-1));
  for (std::size_t i = 0; i < source.size(); ++i)
    if constexpr (std::is_same_v<T, tessera::complex<double>>)
      source[i] = T(static_cast<double>(i), 1);
    else
      source[i] = static_cast<T>(i);
  for (const detail::StridedCopy& copy : c.copies)
    for_each_index(copy.extents, [&](const Extents& i) {
      expected[at(i, copy.to_strides, copy.to_offset)] =
          source[at(i, copy.from_strides, copy.from_offset)];
    });
  const Buffer<T> from(source), to(std::vector<T>(expected.size(), T(-1)));
  detail::copy(dtype_of<T>, from.data(), to.data(), c.copies.data(),
               static_cast<int>(c.copies.size()));
  CHECK(to.values() == expected);
}
}  // namespace

TEST_CASE("parts of large results go past the caches, those of small ones do not: the same bytes") {
  for (const std::size_t bytes : {0, 1, 63, 64, 2047, 2048, 5003})
    for (const std::size_t offset : {0, 3, 64})
      for (const Index whole : {Index{1}, detail::stream_result_least}) {
        std::vector<char> from(6000), to(6000, 'x'), expected = to;
        for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i * 7);
        std::copy_n(from.begin() + 5, bytes,
                    expected.begin() + static_cast<std::ptrdiff_t>(offset));
        detail::put_bytes(to.data() + offset, from.data() + 5, static_cast<Index>(bytes), whole);
        CHECK(to == expected);
        detail::put_bytes(to.data(), to.data(), static_cast<Index>(bytes), whole);
        CHECK(to == expected);
      }
}

TEST_CASE("a transpose of a small matrix") {
  const detail::StridedCopy turned{.extents = {2, 3}, .from_strides = {3, 1}, .to_strides = {1, 2}};
  const Buffer<float> from({0, 1, 2, 3, 4, 5}), to(std::vector<float>(6));
  detail::copy(DType::f32, from.data(), to.data(), &turned, 1);
  CHECK(to.values() == std::vector<float>{0, 3, 1, 4, 2, 5});
}

TEST_CASE("runs whose source lies closer along another dimension, and rows read backward") {
  for (const Index run : {3, 40, 64, 130, 300, 700}) {
    CAPTURE(run);
    Case apart;
    add(apart, {3, 19, 20, run}, {19 * 20 * run, run, 19 * run, 1},
        {19 * 20 * run, 20 * run, run, 1});
    check<float>(apart);
    check<double>(apart);
    Case backward;
    backward.from_size = backward.to_size = 20 * 5 * run;
    backward.copies.push_back({.extents = {5, 20, run},
                               .from_offset = 19 * run,
                               .from_strides = {20 * run, -run, 1},
                               .to_strides = {run, 5 * run, 1}});
    check<float>(backward);
    backward.copies[0] = {.extents = {100, run},
                          .from_offset = 99 * run,
                          .from_strides = {-run, 1},
                          .to_strides = {run, 1}};
    check<double>(backward);
  }
}

TEST_CASE("random boxes, strides and lists equal plain loops") {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    Case c;
    const Index boxes = round % 50 == 0 ? 40 : pick(random, 0, 4);
    for (Index b = 0; b < boxes; ++b) {
      const int dims = static_cast<int>(pick(random, 0, 5));
      const Extents extents = some_extents(random, dims, dims <= 2 ? 70 : 7);
      Extents from = some_strides(random, extents);
      if (dims > 0 && pick(random, 0, 4) == 0)
        from[static_cast<int>(pick(random, 0, dims - 1))] = 0;  // broadcast
      add(c, extents, from, some_strides(random, extents));
    }
    if (round % 2 == 0)
      check<float>(c);
    else
      check<std::int64_t>(c);
  }
}

TEST_CASE("shapes with loops of their own") {
  SUBCASE("transposes around the edges of a tile") {
    for (const Index m : {1, 7, 8, 15, 16, 17, 33, 64})
      for (const Index n : {1, 3, 8, 16, 31, 32, 50}) {
        Case c;
        add(c, {m, n}, {n, 1}, {1, m});
        check<float>(c);
        check<double>(c);
      }
  }
  SUBCASE(
      "large transposes, which are written past the caches: from any place, to rows of whole cache "
      "lines and others") {
    for (const Index before : {0, 1, 4, 21})        // elements before the plane
      for (const Index row : {1024, 1030, 1056}) {  // elements between the result's rows
        Case c;
        c.to_size = before;
        add(c, {533, 1001}, {1, 533}, {row, 1});
        check<float>(c);
        check<double>(c);
        check<tessera::complex<double>>(c);
        check<std::int16_t>(c);
      }
    Case bytes;
    add(bytes, {1061, 1088}, {1, 1061}, {1088, 1});
    check<std::int8_t>(bytes);
  }
  SUBCASE("runs of every length") {
    for (Index n = 0; n < 80; ++n) {
      Case c;
      add(c, {5, n}, {n + 2, 1}, {n, 1});
      check<float>(c);
      check<double>(c);
    }
  }
  SUBCASE("eight dimensions, one element, no dimensions, nothing") {
    Case c;
    const Extents eight{2, 1, 3, 2, 1, 2, 2, 3};
    add(c, eight, detail::row_major_strides(eight), {1, 1, 2, 6, 1, 12, 24, 48});
    add(c, {1, 1}, {5, 5}, {1, 1});
    add(c, {}, {}, {});
    add(c, {3, 0}, {1, 1}, {1, 1});
    check<std::int32_t>(c);
  }
  SUBCASE("a reversed row") {
    const detail::StridedCopy reverse{
        .extents = {4}, .from_offset = 3, .from_strides = {-1}, .to_strides = {1}};
    const Buffer<double> from({1, 2, 3, 4}), to(std::vector<double>(4));
    detail::copy(DType::f64, from.data(), to.data(), &reverse, 1);
    CHECK(to.values() == std::vector<double>{4, 3, 2, 1});
  }
  SUBCASE("large enough for several threads") {
    Case c;
    add(c, {300, 400}, {400, 1}, {1, 300});
    add(c, {70000}, {1}, {1});
    add(c, {3, 5, 2000}, {10000, 2000, 1}, {2000, 6000, 1});
    add(c, {10}, {1}, {1});
    check<float>(c);
  }
}

TEST_CASE("unpacking what was packed restores it") {
  const detail::StridedCopy pack{
      .extents = {4, 5, 6}, .from_strides = {30, 6, 1}, .to_strides = {6, 24, 1}};
  const detail::StridedCopy unpack{
      .extents = {4, 5, 6}, .from_strides = {6, 24, 1}, .to_strides = {30, 6, 1}};
  std::vector<float> values(120);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Buffer<float> from(values), packed(std::vector<float>(120)), back(std::vector<float>(120));
  detail::copy(DType::f32, from.data(), packed.data(), &pack, 1);
  detail::copy(DType::f32, packed.data(), back.data(), &unpack, 1);
  CHECK(back.values() == values);
}
