// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_windows
#include <doctest/doctest.h>

#include <limits>
#include <thread>

#include <tessera/kernel/product/gemm.hpp>

#include "kernel/buffer.hpp"

using namespace tessera;
using namespace test;

namespace {
/// Plain loops; the values are small whole numbers, so every type is exact.
template <class T>
void multiply(const detail::Gemm& g, const std::vector<T>& a, const std::vector<T>& b,
              std::vector<T>& c, bool add) {
  for_each_index(g.batch, [&](const Extents& at_batch) {
    const std::size_t oa = at(at_batch, g.batch_a), ob = at(at_batch, g.batch_b),
                      oc = at(at_batch, g.batch_c);
    for (Index i = 0; i < g.m; ++i)
      for (Index j = 0; j < g.n; ++j) {
        T& to = c[oc + static_cast<std::size_t>(i * g.ldc + j)];
        T sum = add ? to : T{};
        for (Index k = 0; k < g.k; ++k)
          sum = static_cast<T>(
              sum +
              a[oa + static_cast<std::size_t>(g.transpose_a ? k * g.lda + i : i * g.lda + k)] *
                  b[ob + static_cast<std::size_t>(g.transpose_b ? j * g.ldb + k : k * g.ldb + j)]);
        to = sum;
      }
  });
}

template <class T> void check(Random& random, const detail::Gemm& g, bool add) {
  CAPTURE(g.m);
  CAPTURE(g.n);
  CAPTURE(g.k);
  CAPTURE(g.transpose_a);
  CAPTURE(g.transpose_b);
  const Index a_size = span(g.batch, g.batch_a) + (g.transpose_a ? g.k : g.m) * g.lda + g.m + g.k;
  const Index b_size = span(g.batch, g.batch_b) + (g.transpose_b ? g.n : g.k) * g.ldb + g.n + g.k;
  const Index c_size = span(g.batch, g.batch_c) + g.m * g.ldc + g.n;
  const std::vector<T> a = small_numbers<T>(random, a_size), b = small_numbers<T>(random, b_size);
  std::vector<T> c = small_numbers<T>(random, c_size);
  const Buffer<T> on_a(a), on_b(b), on_c(c);
  multiply(g, a, b, c, add);
  detail::gemm(dtype_of<T>, g, on_a.data(), on_b.data(), on_c.data(), add ? 1 : 0);
  CHECK(on_c.values() == c);
}

/// One product of dense matrices.
detail::Gemm dense(Index m, Index n, Index k, bool transpose_a = false, bool transpose_b = false) {
  detail::Gemm g;
  g.m = m;
  g.n = n;
  g.k = k;
  g.transpose_a = transpose_a;
  g.transpose_b = transpose_b;
  g.lda = max_of(1, transpose_a ? m : k);
  g.ldb = max_of(1, transpose_b ? k : n);
  g.ldc = max_of(1, n);
  return g;
}

/// Parts of sums of a half type, in float.
template <class T> void check_parts(Random& random, const detail::Gemm& g, bool add) {
  const std::vector<T> a = small_numbers<T>(random,
                                            span(g.batch, g.batch_a) + (g.m + g.k) * (g.lda + 1)),
                       b = small_numbers<T>(random,
                                            span(g.batch, g.batch_b) + (g.n + g.k) * (g.ldb + 1));
  std::vector<float> c = small_numbers<float>(random, span(g.batch, g.batch_c) + g.m * g.ldc + g.n);
  const Buffer<T> on_a(a), on_b(b);
  const Buffer<float> on_c(c);
  multiply(g, std::vector<float>(a.begin(), a.end()), std::vector<float>(b.begin(), b.end()), c,
           add);
  detail::gemm(dtype_of<T>, g, on_a.data(), on_b.data(), on_c.data(), add ? 1 : 0, true);
  CHECK(on_c.values() == c);
}

/// With gaps and transposes.
detail::Gemm some_gemm(Random& random, Index m, Index n, Index k) {
  detail::Gemm g = dense(m, n, k, pick(random, 0, 1) == 1, pick(random, 0, 1) == 1);
  g.lda += pick(random, 0, 2);
  g.ldb += pick(random, 0, 2);
  g.ldc += pick(random, 0, 2);
  return g;
}

void any_type(Random& random, int turn, const detail::Gemm& g, bool add) {
  switch (turn % 4) {
    case 0:
      return check<float>(random, g, add);
    case 1:
      return check<double>(random, g, add);
    case 2:
      return check<std::int32_t>(random, g, add);
    default:
      return check<std::int64_t>(random, g, add);
  }
}
}  // namespace

TEST_CASE("products of every small shape, type and transpose") {
  Random random(2);
  int turn = 0;
  for (const Index m : {0, 1, 2, 5, 19})
    for (const Index n : {0, 1, 3, 17})
      for (const Index k : {0, 1, 4, 23})
        for (int repeat = 0; repeat < 4; ++repeat, ++turn)
          any_type(random, turn, some_gemm(random, m, n, k), pick(random, 0, 1) == 1);
}

TEST_CASE("products beyond a block, and large enough for oneDNN and for threads") {
  Random random(3);
  for (int turn = 0; turn < 12; ++turn)
    any_type(random, turn, some_gemm(random, 90, 70 + 8 * turn, 131), turn % 3 == 0);
  for (int turn = 0; turn < 2; ++turn)
    any_type(random, turn, some_gemm(random, 161, 150, 90), false);
  check<std::int32_t>(random, dense(3, 1100, 70, false, true), true);
}

TEST_CASE("products large enough for BLIS, with gaps and transposes, in pieces for threads") {
  Random random(10);
  for (int turn = 0; turn < 4; ++turn) {
    const bool add = turn % 2 == 0;
    detail::Gemm g = some_gemm(random, turn == 2 ? 391 : 130 + 7 * turn, 140, 131);
    if (turn == 3) {
      g.batch = {2};
      g.batch_a = {0};
      g.batch_b = {(g.transpose_b ? g.n : g.k) * g.ldb};
      g.batch_c = {g.m * g.ldc};
    }
    check<float>(random, g, add);
    check<double>(random, g, add);
    check<complex<float>>(random, g, add);
    check<complex<double>>(random, g, add);
    if (!kernels_on_host || !detail::blis_is_ready()) continue;
    // What launch does with several threads: each piece by itself.
    const detail::GemmShape shape = detail::gemm_shape(g);
    const auto size = [](Index rows, Index pitch) { return 2 * rows * pitch; };
    const std::vector<double> a = small_numbers<double>(random, size(300, g.lda)),
                              b = small_numbers<double>(random, size(300, g.ldb));
    std::vector<double> c = small_numbers<double>(random, size(g.m, g.ldc)), expected = c;
    multiply(g, a, b, expected, add);
    const detail::GemmPieces pieces = detail::gemm_pieces(shape, 6);
    REQUIRE(pieces.count(shape) == 6);
    const std::vector<double> before = c;
    for (const detail::ProductWay way :
         {detail::ProductWay::blis, detail::ProductWay::blas_pieces}) {
      c = before;
      const detail::GemmBatch<double> body{shape,    way,      pieces,  add ? 1.0 : 0.0,
                                           a.data(), b.data(), c.data()};
      for (Index i = 5; i >= 0; --i) body.run(i, i + 1);
      CHECK(c == expected);
    }
  }
}

TEST_CASE("the pieces of products cover them, and keep threads equally busy") {
  Random random(11);
  for (int turn = 0; turn < 300; ++turn) {
    const Index m = pick(random, 1, 200), n = pick(random, 1, 200), threads = pick(random, 1, 9);
    detail::Gemm g = dense(m, n, 40);
    if (turn % 3 == 0) {
      g.batch = {pick(random, 1, 20)};
      g.batch_a = {m * 40};
      g.batch_b = {n * 40};
      g.batch_c = {m * n};
    }
    const detail::GemmShape shape = detail::gemm_shape(g);
    const detail::GemmPieces pieces = detail::gemm_pieces(shape, threads, 4096);
    CAPTURE(m);
    CAPTURE(n);
    CAPTURE(threads);
    std::vector<int> covered(static_cast<std::size_t>(shape.batches * shape.m * shape.n));
    for (Index i = 0; i < pieces.count(shape); ++i) {
      const detail::GemmPiece p = pieces.piece(shape, i);
      CHECK(p.m > 0);
      CHECK(p.n > 0);
      for (Index row = p.row; row < p.row + p.m; ++row)
        for (Index column = p.column; column < p.column + p.n; ++column)
          ++covered[static_cast<std::size_t>((p.batch * shape.m + row) * shape.n + column)];
    }
    CHECK(covered == std::vector<int>(covered.size(), 1));
    CHECK(pieces.rows * pieces.columns <= threads);
  }
  for (const Index threads : {2, 3, 4, 8, 64}) {
    const detail::GemmShape one = detail::gemm_shape(dense(1024, 2048, 512));
    CHECK(detail::gemm_pieces(one, threads).count(one) == threads);
  }
  const detail::GemmShape square = detail::gemm_shape(dense(1024, 1024, 512));
  CHECK(detail::gemm_pieces(square, 16).rows == 4);
}

TEST_CASE("batches of any layout") {
  Random random(4);
  for (int turn = 0; turn < 120; ++turn) {
    detail::Gemm g = some_gemm(random, pick(random, 1, 6), pick(random, 1, 6), pick(random, 1, 6));
    const int dims = static_cast<int>(pick(random, 0, 3));
    g.batch = some_extents(random, dims, 4);
    // The batch lies within or around the matrices: as dense multiples of their sizes, or
    // broadcast.
    const Index a = (g.transpose_a ? g.k : g.m) * g.lda, b = (g.transpose_b ? g.n : g.k) * g.ldb,
                c = g.m * g.ldc;
    const Extents order_a = some_strides(random, g.batch), order_b = some_strides(random, g.batch);
    const Extents order_c = some_strides(random, g.batch);
    for (int d = 0; d < dims; ++d) {
      g.batch_a.push_back(pick(random, 0, 3) == 0 ? 0 : order_a[d] * a);
      g.batch_b.push_back(pick(random, 0, 3) == 0 ? 0 : order_b[d] * b);
      g.batch_c.push_back(order_c[d] * c);
    }
    any_type(random, turn, g, turn % 5 == 0);
  }
}

TEST_CASE("a batch that continues the matrix is one product") {
  const detail::Gemm rows{.m = 4,
                          .n = 5,
                          .k = 6,
                          .lda = 6,
                          .ldb = 5,
                          .ldc = 5,
                          .batch = {8},
                          .batch_a = {24},
                          .batch_b = {0},
                          .batch_c = {20}};
  CHECK(detail::gemm_shape(rows).m == 32);
  CHECK(detail::gemm_shape(rows).batches == 1);
  const detail::Gemm columns{.m = 4,
                             .n = 5,
                             .k = 6,
                             .lda = 6,
                             .ldb = 40,
                             .ldc = 40,
                             .batch = {8},
                             .batch_a = {0},
                             .batch_b = {5},
                             .batch_c = {5}};
  CHECK(detail::gemm_shape(columns).n == 40);
  const detail::Gemm vectors{.m = 1,
                             .n = 5,
                             .k = 6,
                             .lda = 1,
                             .ldb = 5,
                             .ldc = 1,
                             .batch = {8, 3},
                             .batch_a = {18, 6},
                             .batch_b = {0, 0},
                             .batch_c = {15, 5}};
  CHECK(detail::gemm_shape(vectors).m == 24);
  Random random(5);
  for (const detail::Gemm& g : {rows, columns, vectors}) {
    check<float>(random, g, false);
    check<std::int64_t>(random, g, true);
  }
}

TEST_CASE("with beta 0, what the result held does not matter") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Index k : {0, 3}) {
    const Buffer<double> a(std::vector<double>(6, 1)), b(std::vector<double>(6, 2)),
        c(std::vector<double>(4, nan));
    detail::gemm(DType::f64, dense(2, 2, k), a.data(), b.data(), c.data());
    CHECK(c.values() == std::vector<double>(4, static_cast<double>(2 * k)));
  }
}

TEST_CASE("integers wrap") {
  const std::int32_t most = std::numeric_limits<std::int32_t>::max();
  const Buffer<std::int32_t> a({most, most}), b({2, 2}), c({0});
  detail::gemm(DType::i32, dense(1, 1, 2), a.data(), b.data(), c.data());
  CHECK(c.values()[0] == -4);
}

TEST_CASE("extents beyond BLAS's integers are split") {
  if constexpr (kernels_on_host) {
    Random random(6);
    for (const bool turned : {false, true}) {
      const detail::Gemm g = dense(7, 8, 9, turned, turned);
      const std::vector<double> a = small_numbers<double>(random, 63),
                                b = small_numbers<double>(random, 72);
      std::vector<double> expected(56), c(56, 5.0);
      multiply(g, a, b, expected, false);
      detail::split_gemm(turned, turned, g.m, g.n, g.k, a.data(), g.lda, b.data(), g.ldb, 0.0,
                         c.data(), g.ldc, 4);
      CHECK(c == expected);
    }
  }
}

TEST_CASE("several threads may multiply at once") {
  if constexpr (kernels_on_host) {
    std::vector<std::thread> threads;
    std::vector<int> wrong(4, 0);
    for (std::size_t t = 0; t < wrong.size(); ++t)
      threads.emplace_back([&wrong, t] {
        for (int round = 0; round < 50; ++round) {
          // From 384 rows on BLIS multiplies doubles, where it is.
          const Index n = (t == 3 ? 390 : 20 + 40 * static_cast<Index>(t)) + round % 3;
          const detail::Gemm g = dense(n, n, n);
          const std::vector<double> a(static_cast<std::size_t>(n * n), 1.0);
          std::vector<double> c(a.size());
          detail::gemm(DType::f64, g, a.data(), a.data(), c.data());
          for (const double x : c) wrong[t] += x == static_cast<double>(n) ? 0 : 1;
          const std::vector<float> f(a.size(), 1.0f);
          std::vector<float> h(a.size());
          detail::gemm(DType::f32, g, f.data(), f.data(), h.data());
          for (const float x : h) wrong[t] += x == static_cast<float>(n) ? 0 : 1;
        }
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(wrong == std::vector<int>(4, 0));
  }
}

namespace {
/// A row times a column at strides, with and without what was there.
template <class T> void check_dot(Random& random, Index k) {
  for (const bool transpose_a : {false, true})
    for (const bool transpose_b : {false, true}) {
      detail::Gemm g = dense(1, 1, k, transpose_a, transpose_b);
      if (transpose_a) g.lda += 2;
      if (!transpose_b) g.ldb += pick(random, 0, 1);
      g.batch = {3};
      g.batch_a = {transpose_a ? g.lda * max_of(1, k) : g.lda};
      g.batch_b = {transpose_b ? g.ldb : g.ldb * max_of(1, k)};
      g.batch_c = {2};
      check<T>(random, g, false);
      check<T>(random, g, true);
    }
}
}  // namespace

TEST_CASE("a row times a column, of every type, length and stride") {
  Random random(8);
  for (const Index k : {0, 1, 2, 15, 16, 31, 33, 64, 255, 257, 2047, 2049, 4100}) {
    check_dot<float>(random, k);
    check_dot<double>(random, k);
    check_dot<complex<float>>(random, k);
    check_dot<complex<double>>(random, k);
    check_dot<std::int8_t>(random, k);
    check_dot<std::int16_t>(random, k);
    check_dot<std::int32_t>(random, k);
    check_dot<std::int64_t>(random, k);
    check_dot<std::uint8_t>(random, k);
    check_dot<std::uint16_t>(random, k);
    check_dot<std::uint32_t>(random, k);
    check_dot<std::uint64_t>(random, k);
  }
}

TEST_CASE("a row times a large matrix, with gaps, at strides and in batches") {
  Random random(12);
  for (const Index k : {1, 7, 64, 517})
    for (const Index n : {255, 256, 300, 2100})
      for (const bool transpose_a : {false, true}) {
        detail::Gemm g = dense(1, n, k, transpose_a);
        if (transpose_a) g.lda += 2;
        g.ldb += n % 2;
        g.batch = {2};
        g.batch_a = {g.lda * (transpose_a ? k : 1)};
        g.batch_b = {g.ldb * k};
        g.batch_c = {g.ldc + 1};
        check<double>(random, g, false);
        check<double>(random, g, true);
        check<float>(random, g, true);
      }
  // A sum that is rounded has the same bits in strips of any width.
  const Index n = 1300, k = 300;
  std::vector<double> x(static_cast<std::size_t>(k)), y(static_cast<std::size_t>(n * k));
  for (double& v : x) v = static_cast<double>(pick(random, -1000, 1000)) * 0.1;
  for (double& v : y) v = static_cast<double>(pick(random, -1000, 1000)) * 1e-3;
  const Buffer<double> a(x), b(y), c(std::vector<double>(static_cast<std::size_t>(n))),
      strip(c.values());
  detail::gemm(DType::f64, dense(1, n, k), a.data(), b.data(), c.data());
  detail::Gemm cut = dense(1, 650, k);
  cut.ldb = n;
  for (const Index first : {0, 650})
    detail::gemm(DType::f64, cut, a.data(), b.data() + first, strip.data() + first);
  CHECK(strip.values() == c.values());
}

TEST_CASE("products of half types to floats") {
  Random random(11);
  for (const bool add : {false, true}) {
    for (int i = 0; i < 10; ++i) {
      check_parts<tessera::half>(random, some_gemm(random, 1 + i % 4, 5, 1 + 3 * i), add);
      check_parts<bfloat16>(random, some_gemm(random, 1, 1 + i % 2, 7 * i), add);
    }
    check_parts<tessera::half>(random, some_gemm(random, 520, 515, 3), add);
    check_parts<bfloat16>(random, some_gemm(random, 2, 3, 2100), add);
  }
}

TEST_CASE("long sums of products are kept wide, and in the same order by any number of threads") {
  // 300000 products 1 are 300000 in every type that has it: a half is 65504 at most, and a sum in
  // bfloat16 or float would stay at 256 or 2^24.
  const auto total = [](auto one, Index k) {
    using T = decltype(one);
    const std::vector<T> ones(static_cast<std::size_t>(k), one);
    const Buffer<T> a(ones), b(ones), c(std::vector<T>(1));
    detail::gemm(dtype_of<T>, dense(1, 1, k), a.data(), b.data(), c.data());
    return c.values()[0];
  };
  CHECK(static_cast<float>(total(tessera::half(0.25f), 300000)) == 18752.0f);  // 18750, rounded
  CHECK(static_cast<float>(total(bfloat16(1.0f), 300000)) ==
        static_cast<float>(bfloat16(300000.0f)));
  CHECK(total(1.0f, (Index{1} << 24) + 65536) == 16842752.0f);
  CHECK(total(1.0, 300001) == 300001);
  CHECK(total(std::int8_t{1}, 300001) == static_cast<std::int8_t>(300001));
  CHECK(total(std::int64_t{3}, 300001) == 2700009);

  Random random(9);
  const Index k = 700001;
  std::vector<float> x, y;
  double exact = 0;
  for (Index i = 0; i < k; ++i) {
    x.push_back(static_cast<float>(pick(random, -1000, 1000)) / 7);
    y.push_back(static_cast<float>(pick(random, -1000, 1000)) / 3);
    exact += static_cast<double>(x.back()) * static_cast<double>(y.back());
  }
  const Buffer<float> a(x), b(y), c(std::vector<float>(1));
  detail::gemm(DType::f32, dense(1, 1, k), a.data(), b.data(), c.data());
  CHECK(c.values()[0] == doctest::Approx(exact).epsilon(1e-5));
  // What launch does with several threads: each chunk by itself.
  const detail::GemmShape g = detail::gemm_shape(dense(1, 1, k));
  const detail::DotBatch<float> batch{g, false, x.data(), y.data(), nullptr};
  std::vector<double> totals(11);
  const detail::DotChunks<float> chunks{batch.at(0), k, 65536, totals.data()};
  for (Index i = 10; i >= 0; --i) chunks.run(i, i + 1);
  double in_order = 0;
  for (const double each : totals) in_order += each;
  CHECK(c.values()[0] == static_cast<float>(in_order));
}
