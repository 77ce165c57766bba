// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_rows
#include <doctest/doctest.h>

#include <cmath>

#include <tessera/kernel/fill.hpp>

#include "kernel/buffer.hpp"

using namespace tessera;
using namespace test;

namespace {
struct Digits {
  KOKKOS_FUNCTION std::int64_t operator()(const GlobalIndex& index) const {
    std::int64_t value = index.linear();
    for (int d = 0; d < index.size(); ++d) value = value * 100 + index[d];
    return value;
  }
};

/// Fills the parts of a 7 x 5 x 4 tensor, cut in two along each dimension, by write(out, extents,
/// offset), and puts them together.
template <class T, class Write> std::vector<T> in_blocks(const Extents& global, Write write) {
  std::vector<T> whole_tensor(static_cast<std::size_t>(volume(global)));
  const Extents strides = detail::row_major_strides(global);
  for (int corner = 0; corner < 8; ++corner) {
    Extents extents, offset;
    for (int d = 0; d < 3; ++d) {
      const Index cut = (global[d] + 1) / 2;
      offset.push_back((corner >> d & 1) != 0 ? cut : 0);
      extents.push_back((corner >> d & 1) != 0 ? global[d] - cut : cut);
    }
    const Buffer<T> out(std::vector<T>(static_cast<std::size_t>(volume(extents))));
    write(out.data(), extents, offset);
    const std::vector<T> values = out.values();
    const Extents own = detail::row_major_strides(extents);
    for_each_index(extents, [&](const Extents& i) {
      Index to = 0;
      for (int d = 0; d < 3; ++d) to += (i[d] + offset[d]) * strides[d];
      whole_tensor[static_cast<std::size_t>(to)] = values[at(i, own)];
    });
  }
  return whole_tensor;
}

template <class T, class Write> std::vector<T> at_once(const Extents& global, Write write) {
  const Buffer<T> out(std::vector<T>(static_cast<std::size_t>(volume(global))));
  write(out.data(), global, Extents(global.size(), 0));
  return out.values();
}

template <class T> void check_blocks(const Extents& global) {
  const auto index = [&](T* out, const Extents& e, const Extents& o) {
    detail::fill_index<T>(Digits{}, out, e, o, global);
  };
  const auto uniform = [&](T* out, const Extents& e, const Extents& o) {
    detail::random_uniform(dtype_of<T>, out, e, o, global, 17, -5, 5);
  };
  const auto normal = [&](T* out, const Extents& e, const Extents& o) {
    detail::random_normal(dtype_of<T>, out, e, o, global, 17, 3, 20);
  };
  CHECK(in_blocks<T>(global, index) == at_once<T>(global, index));
  CHECK(in_blocks<T>(global, uniform) == at_once<T>(global, uniform));
  CHECK(in_blocks<T>(global, normal) == at_once<T>(global, normal));
}
}  // namespace

TEST_CASE("fill writes n elements and no more") {
  const Buffer<float> x(std::vector<float>(5, 1.0f));
  detail::fill(DType::f32, x.data(), 3, 0.5);
  detail::fill(DType::f32, x.data(), 0, 9);
  CHECK(x.values() == std::vector<float>{0.5f, 0.5f, 0.5f, 1, 1});
  const Buffer<std::int32_t> i({0});
  detail::fill(DType::i32, i.data(), 1, 1e30);
  CHECK(i.values()[0] == 2147483647);
  const Buffer<std::int64_t> many(std::vector<std::int64_t>(100000));
  detail::fill(DType::i64, many.data(), 100000, -7);
  CHECK(many.values() == std::vector<std::int64_t>(100000, -7));
}

TEST_CASE("an element knows its place in the whole tensor") {
  const Buffer<std::int64_t> x(std::vector<std::int64_t>(4));
  detail::fill_index<std::int64_t>(Digits{}, x.data(), {2, 2}, {4, 1}, {8, 3});
  CHECK(x.values() == std::vector<std::int64_t>{130401, 140402, 160501, 170502});
  const Buffer<std::int64_t> scalar({5});
  detail::fill_index<std::int64_t>(Digits{}, scalar.data(), {}, {}, {});
  CHECK(scalar.values()[0] == 0);
  detail::fill_index<std::int64_t>(Digits{}, scalar.data(), {0, 3}, {4, 0}, {4, 3});
  CHECK(scalar.values()[0] == 0);
}

TEST_CASE("blocks equal the same blocks of the whole") {
  const Extents global{7, 5, 4};
  check_blocks<float>(global);
  check_blocks<double>(global);
  check_blocks<std::int32_t>(global);
  check_blocks<std::int64_t>(global);
  check_blocks<double>({40, 30, 31});  // several threads
}

TEST_CASE("Philox gives the known answers of Random123") {
  const auto words = [](detail::PhiloxWords w) {
    return std::vector<std::uint32_t>(w.word, w.word + 4);
  };
  CHECK(words(detail::philox({{0, 0, 0, 0}}, 0, 0)) ==
        std::vector<std::uint32_t>{0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u});
  const std::uint32_t ones = 0xffffffffu;
  CHECK(words(detail::philox({{ones, ones, ones, ones}}, ones, ones)) ==
        std::vector<std::uint32_t>{0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu});
  CHECK(words(detail::philox({{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u}}, 0xa4093822u,
                             0x299f31d0u)) ==
        std::vector<std::uint32_t>{0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u});
}

TEST_CASE("random numbers have their distribution") {
  const Index n = 100000;
  const auto moments = [&](const std::vector<double>& x) {
    double sum = 0, squares = 0;
    for (const double value : x) sum += value, squares += value * value;
    const double mean = sum / static_cast<double>(n);
    return std::vector<double>{mean, squares / static_cast<double>(n) - mean * mean};
  };
  const Buffer<double> x(std::vector<double>(static_cast<std::size_t>(n)));
  detail::random_uniform(DType::f64, x.data(), {n}, {0}, {n}, 3, 2, 5);
  const std::vector<double> uniform = x.values();
  for (const double value : uniform) REQUIRE((value >= 2 && value < 5));
  CHECK(moments(uniform)[0] == doctest::Approx(3.5).epsilon(0.01));
  CHECK(moments(uniform)[1] == doctest::Approx(0.75).epsilon(0.02));
  detail::random_normal(DType::f64, x.data(), {n}, {0}, {n}, 3, 1, 2);
  CHECK(moments(x.values())[0] == doctest::Approx(1).epsilon(0.03));
  CHECK(moments(x.values())[1] == doctest::Approx(4).epsilon(0.03));
  detail::random_normal(DType::f64, x.data(), {n}, {0}, {n}, 4, 1, 2);
  CHECK(x.values() != uniform);

  const Buffer<std::int32_t> die(std::vector<std::int32_t>(static_cast<std::size_t>(n)));
  detail::random_uniform(DType::i32, die.data(), {n}, {0}, {n}, 3, 1, 6);
  std::vector<int> seen(8, 0);
  for (const std::int32_t face : die.values()) ++seen[static_cast<std::size_t>(face)];
  CHECK(seen[0] == 0);
  CHECK(seen[7] == 0);
  for (std::size_t face = 1; face <= 6; ++face)
    CHECK(seen[face] == doctest::Approx(n / 6.0).epsilon(0.05));
  const Buffer<std::int64_t> wide({0, 0});
  detail::random_uniform(DType::i64, wide.data(), {2}, {0}, {2}, 3, -1e19,
                         1e19);  // all 2^64 numbers
  CHECK(wide.values()[0] != wide.values()[1]);
  const Buffer<std::uint64_t> natural(std::vector<std::uint64_t>(1000));
  detail::random_uniform(DType::u64, natural.data(), {1000}, {0}, {1000}, 3, 0x1p63, 1e30);
  for (const std::uint64_t v : natural.values()) REQUIRE(v >= std::uint64_t{1} << 63);
  detail::random_uniform(DType::u64, natural.data(), {1000}, {0}, {1000}, 3, -9,
                         0x1p64);  // all of them
  double total = 0;
  for (const std::uint64_t v : natural.values()) total += static_cast<double>(v) / 1000;
  CHECK(total == doctest::Approx(0x1p63).epsilon(0.05));
}

TEST_CASE("random floats are the doubles, rounded, and stay below the upper end") {
  const Index n = 1000;
  const Buffer<double> x(std::vector<double>(static_cast<std::size_t>(n)));
  const Buffer<float> y(std::vector<float>(static_cast<std::size_t>(n)));
  detail::random_normal(DType::f64, x.data(), {n}, {0}, {n}, 11);
  detail::random_normal(DType::f32, y.data(), {n}, {0}, {n}, 11);
  const std::vector<double> doubles = x.values();
  const std::vector<float> floats = y.values();
  for (std::size_t i = 0; i < doubles.size(); ++i)
    REQUIRE(floats[i] == static_cast<float>(doubles[i]));
  const GlobalIndex first{{}, 0, 0};
  const float below = 1.0f, above = std::nextafter(below, 2.0f);
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    REQUIRE(detail::Uniform<float>{seed, below, above}(first) < above);
}
