// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_windows
// Classes of products, their tables and files; and that every way of every class multiplies right.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <tessera/kernel/product/gemm.hpp>
#include <tessera/kernel/product/product_timing.hpp>

#include "kernel/buffer.hpp"

using namespace tessera;
using namespace test;

namespace {
/// A row with every way in it.
detail::ProductRow some_row(int first) {
  detail::ProductRow row{};
  for (int i = 0; i < detail::product_classes; ++i)
    row[i] = static_cast<detail::ProductWay>((first + i) % detail::product_ways);
  return row;
}

constexpr detail::ProductWay some_ways[] = {
    detail::ProductWay::fixed, detail::ProductWay::blas,        detail::ProductWay::onednn,
    detail::ProductWay::blis,  detail::ProductWay::blas_pieces, detail::ProductWay::onednn_pieces};

template <class T> bool alike(T a, T b) { return a == b || (std::isnan(a) && std::isnan(b)); }
template <class T> bool alike(complex<T> a, complex<T> b) {
  return alike(a.real(), b.real()) && alike(a.imag(), b.imag());
}

/// Plain loops over whole numbers, some of which are NaN or infinite: what is finite is exact.
template <class T>
void check_way(Random& random, detail::ProductWay way, Index m, Index n, Index k, Index batches,
               bool add) {
  CAPTURE(detail::name_of(way));
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  CAPTURE(batches);
  const bool ta = pick(random, 0, 1) == 1, tb = pick(random, 0, 1) == 1;
  detail::Gemm g{.m = m,
                 .n = n,
                 .k = k,
                 .transpose_a = ta,
                 .transpose_b = tb,
                 .lda = (ta ? m : k) + pick(random, 0, 2),
                 .ldb = (tb ? k : n) + pick(random, 0, 2),
                 .ldc = n + pick(random, 0, 2)};
  const Index a_size = (ta ? k : m) * g.lda, b_size = (tb ? n : k) * g.ldb, c_size = m * g.ldc;
  if (batches > 1) {
    g.batch = {batches};
    g.batch_a = {a_size};
    g.batch_b = {b_size};
    g.batch_c = {c_size};
  }
  std::vector<T> a = small_numbers<T>(random, a_size * batches),
                 b = small_numbers<T>(random, b_size * batches),
                 c = small_numbers<T>(random, c_size * batches);
  using Real = std::conditional_t<is_complex(dtype_of<T>) ? size_of(dtype_of<T>) == 8
                                                          : std::is_same_v<T, float>,
                                  float, double>;
  const T nan{std::numeric_limits<Real>::quiet_NaN()};
  // (Products of complex infinities have no law.)
  const T special[] = {nan, ComplexElement<T> ? nan : T{std::numeric_limits<Real>::infinity()}};
  a[static_cast<std::size_t>(pick(random, 0, a_size - 1))] = special[pick(random, 0, 1)];
  b[static_cast<std::size_t>(pick(random, 0, b_size - 1))] = special[pick(random, 0, 1)];
  if (!add) std::fill(c.begin(), c.end(), special[0]);
  std::vector<T> expected = c;
  for (Index batch = 0; batch < batches; ++batch)
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < n; ++j) {
        T& to = expected[static_cast<std::size_t>(batch * c_size + i * g.ldc + j)];
        T sum = add ? to : T{};
        for (Index l = 0; l < k; ++l)
          sum +=
              a[static_cast<std::size_t>(batch * a_size + (ta ? l * g.lda + i : i * g.lda + l))] *
              b[static_cast<std::size_t>(batch * b_size + (tb ? j * g.ldb + l : l * g.ldb + j))];
        to = sum;
      }
  const detail::ProductTable all(way);
  const Buffer<T> on_a(a), on_b(b), on_c(c);
  detail::gemm(dtype_of<T>, g, on_a.data(), on_b.data(), on_c.data(), add ? 1 : 0, false, &all);
  const std::vector<T> made = on_c.values();
  Index wrong = 0;
  for (std::size_t i = 0; i < made.size(); ++i) wrong += alike(made[i], expected[i]) ? 0 : 1;
  CHECK(wrong == 0);
}
}  // namespace

TEST_CASE("a sample is of its own class, and every product of one") {
  for (int i = 0; i < detail::product_classes; ++i) {
    const detail::ProductSample& s = detail::product_samples[i];
    CHECK(detail::product_class(detail::product_level(s.m), detail::product_level(s.n),
                                detail::product_level(s.k), s.many()) == i);
  }
  CHECK(detail::product_level(0) == 0);
  CHECK(detail::product_level(max_int64) == 7);
  // A table answers for a shape what its row says for the shape's class.
  detail::ProductTable table;
  table.set(1, some_row(3));
  for (const bool many : {false, true})
    for (Index m = 1; m < 5000; m = m * 3 + 1)
      for (Index n = 1; n < 5000; n = n * 3 + 1)
        for (Index k = 1; k < 5000; k = k * 3 + 1) {
          const int of = detail::product_class(detail::product_level(m), detail::product_level(n),
                                               detail::product_level(k), many);
          REQUIRE(of >= 0);
          CHECK(detail::product_samples[of].many() == many);
          CHECK(table.way(1, m, n, k, many) == some_row(3)[of]);
          CHECK(table.way(0, m, n, k, many) == detail::ProductWay::fixed);
        }
}

TEST_CASE("a class that was not measured takes the way of the nearest that was") {
  for (const int measured : {0, 1, 9, 10, 16, detail::product_classes}) {
    detail::ProductRow row = some_row(1);
    detail::follow_nearest(row, measured);
    for (int i = 0; i < measured; ++i) CHECK(row[i] == some_row(1)[i]);
    if (measured == 0) CHECK(row == detail::ProductRow{});
    if (measured == 9) CHECK(row[12] == some_row(1)[3]);             // 256^3 as 128^3
    if (measured == 9) CHECK(row[15] == detail::ProductWay::fixed);  // no batch was measured
    if (measured == 10) CHECK(row[15] == some_row(1)[9]);
  }
  CHECK(detail::measure_products(DType::f64, 0.0) == detail::ProductRow{});
}

TEST_CASE("a table and its integers are the same") {
  detail::ProductTable table;
  for (int type = 0; type < 4; ++type) table.set(type, some_row(type));
  CHECK(detail::table_of(detail::words_of(table)) == table);
  CHECK(detail::table_of(detail::words_of({})) == detail::ProductTable());
  CHECK(detail::to_string(table).find("many 64 x 64 x 64") != std::string::npos);
}

TEST_CASE("a file of ways is read as it was written, and not when it is damaged") {
  const std::string key = "processor: of some kind\nthreads 2\n";
  const std::string text = detail::product_text(key, some_row(2));
  detail::ProductRow row{};
  CHECK(detail::read_products(text, key, row));
  CHECK(row == some_row(2));
  row = some_row(1);
  CHECK_FALSE(detail::read_products(text, "processor: of some kind\nthreads 1\n", row));
  CHECK_FALSE(detail::read_products("", key, row));
  for (std::size_t i = 0; i < text.size(); ++i) {
    CHECK_FALSE(detail::read_products(text.substr(0, i), key, row));
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 8);
    CHECK_FALSE(detail::read_products(damaged, key, row));
    damaged = text;
    damaged.insert(i, "\n");
    CHECK_FALSE(detail::read_products(damaged, key, row));
  }
  CHECK_FALSE(detail::read_products(text + text, key, row));
  // A whole file that a program with other words wrote.
  std::string other = text;
  other.replace(other.find("blas\n"), 4, "blos");
  CHECK_FALSE(detail::read_products(other, key, row));
  CHECK(row == some_row(1));
}

TEST_CASE("every way multiplies right, NaN and infinities too") {
  if constexpr (kernels_on_host) {
    Random random(17);
    for (const detail::ProductWay way : some_ways)
      for (int turn = 0; turn < 12; ++turn) {
        const auto extent = [&] {
          const Index most[] = {4, 17, 40, 150};
          return pick(random, 1, most[pick(random, 0, 3)]);
        };
        const Index m = extent(), n = extent(), k = extent(), batches = pick(random, 1, 5);
        check_way<float>(random, way, m, n, k, batches, turn % 2 == 0);
        check_way<double>(random, way, m, n, k, batches, turn % 2 == 1);
        if (turn % 3 != 0) continue;
        check_way<complex<float>>(random, way, m, n, k, batches, turn % 2 == 0);
        check_way<complex<double>>(random, way, m, n, k, batches, turn % 2 == 1);
      }
  }
}

TEST_CASE("no way skips a product of NaN and zero in a last row or column") {
  if constexpr (kernels_on_host)
    for (const detail::ProductWay way : some_ways)
      for (const bool ta : {false, true})
        for (const bool tb : {false, true})
          for (const Index n : {65, 14, 9}) {
            const Index m = n == 65 ? 401 : n == 14 ? 33 : 27, k = 87;
            detail::Gemm g{.m = m, .n = n, .k = k, .transpose_a = ta, .transpose_b = tb};
            g.lda = ta ? m : k;
            g.ldb = tb ? k : n;
            g.ldc = n;
            std::vector<double> a(static_cast<std::size_t>(m * k), 1.0),
                b(static_cast<std::size_t>(k * n), 1.0);
            // NaN in A's last row meets zero in every column of B.
            a[static_cast<std::size_t>(ta ? (k - 1) * m + m - 1 : (m - 1) * k + k - 1)] =
                std::numeric_limits<double>::quiet_NaN();
            for (Index j = 0; j < n; ++j)
              b[static_cast<std::size_t>(tb ? j * k + k - 1 : (k - 1) * n + j)] = 0;
            const detail::ProductTable all(way);
            const Buffer<double> on_a(a), on_b(b),
                on_c(std::vector<double>(static_cast<std::size_t>(m * n)));
            detail::gemm(DType::f64, g, on_a.data(), on_b.data(), on_c.data(), 0, false, &all);
            const std::vector<double> made = on_c.values();
            Index found = 0;
            for (const double x : made) found += std::isnan(x) ? 1 : 0;
            CAPTURE(detail::name_of(way));
            CAPTURE(ta);
            CAPTURE(n);
            CHECK(found == n);
          }
}

TEST_CASE("measuring finds a way that this program has, for each class") {
  if constexpr (kernels_on_host) {
    std::vector<std::int64_t> memory;
    const Index threads = detail::host_threads();
    for (const DType type : detail::product_types)
      for (int i = 0; i < 3; ++i) {
        const detail::ProductWay way =
            detail::fastest_way(type, detail::product_samples[i], threads, memory);
        bool candidate = false;
        for (const auto& c : detail::ProductCandidates(type, threads, false))
          candidate = candidate || c.way == way;
        CHECK(candidate);
      }
    CHECK(detail::product_libraries() == detail::product_libraries());
  }
}
