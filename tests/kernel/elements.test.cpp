// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_elements
// Every kernel on every element type, against plain loops over exact values. This file has the
// kernels of all element types compiled into the program.
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <limits>
#include <vector>

#include <tessera/kernel/copy/copy.hpp>
#include <tessera/kernel/fill.hpp>
#include <tessera/kernel/functions.hpp>
#include <tessera/kernel/join.hpp>
#include <tessera/kernel/map/map.hpp>
#include <tessera/kernel/product/gemm.hpp>
#include <tessera/kernel/reduce.hpp>
#include <tessera/kernel/use_element.hpp>

#include "kernel/buffer.hpp"

using namespace tessera;
using namespace test;

namespace {

using Exact = std::complex<double>;  // holds every value that these tests meet

template <class T> Exact exact(T x) {
  if constexpr (ComplexElement<T>)
    return {x.re, x.im};
  else
    return static_cast<double>(x);
}
/// The element nearest to an exact value; integers modulo their range.
template <class T> T element(Exact x) {
  if constexpr (ComplexElement<T>)
    return T(static_cast<typename T::value_type>(x.real()),
             static_cast<typename T::value_type>(x.imag()));
  else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return static_cast<T>(static_cast<std::int64_t>(x.real()));
  else
    return static_cast<T>(x.real());
}
template <class T> bool same(T a, T b) {
  if constexpr (RealElement<T>)
    return a == b || (a != a && b != b);
  else
    return a == b;
}

/// Elements whose sums (and, with `product`, products) of a few thousand are exact before they are
/// rounded.
template <class T> std::vector<T> elements(Random& random, Index n, bool product = false) {
  std::vector<T> values;
  for (Index i = 0; i < n; ++i) {
    const auto small = [&] {
      return static_cast<double>(product
                                     ? (pick(random, 0, 60) == 0 ? 2 : 2 * pick(random, 0, 1) - 1)
                                     : pick(random, -3, 3));
    };
    if constexpr (std::is_same_v<T, bool>) {
      values.push_back(pick(random, 0, 2) == 0);
    } else if constexpr (ComplexElement<T>) {
      const double x = small();
      values.push_back(product ? (pick(random, 0, 1) == 0 ? element<T>({x, 0}) : element<T>({0, x}))
                               : element<T>({x, small()}));
    } else {
      values.push_back(element<T>(std::abs(small()) *
                                  (std::is_unsigned_v<T> || pick(random, 0, 1) == 0 ? 1 : -1)));
    }
  }
  return values;
}
/// Bytes of them, since std::vector<bool> has none; bool has its own layout of one byte each.
template <class T> Buffer<T> buffer(const std::vector<T>& values) { return Buffer<T>(values); }

template <class T> T joined(Reduction reduction, const std::vector<T>& values) {
  Exact total = reduction == Reduction::product || reduction == Reduction::all ? 1 : 0;
  if (reduction == Reduction::max || reduction == Reduction::min) {
    T best = detail::identity<T>(reduction);
    if constexpr (OrderedElement<T>)
      for (const T x : values)
        best = reduction == Reduction::max ? (best < x ? x : best) : (x < best ? x : best);
    return best;
  }
  std::uint64_t whole = static_cast<std::uint64_t>(total.real());  // integers wrap
  for (const T x : values) {
    const Exact e = exact(x);
    if (reduction == Reduction::sum) total += e;
    if (reduction == Reduction::product) total *= e;
    if (reduction == Reduction::any) total = total.real() + e.real() > 0 ? 1 : 0;
    if (reduction == Reduction::all) total = total.real() * e.real();
    const auto w = static_cast<std::uint64_t>(static_cast<std::int64_t>(e.real()));
    whole = reduction == Reduction::product ? whole * w : whole + w;
  }
  if constexpr (IntegerElement<T>) return static_cast<T>(whole);
  return element<T>(total);
}

template <class F> void for_all_types(F f) {
  for (int i = 0; i < dtypes; ++i) {
    CAPTURE(name_of(static_cast<DType>(i)));
    detail::with_type(static_cast<DType>(i), f);
  }
}
constexpr Reduction all_reductions[] = {Reduction::sum, Reduction::product, Reduction::max,
                                        Reduction::min, Reduction::any,     Reduction::all};

}  // namespace

TEST_CASE("every reduction that an element type has equals plain loops; the others are refused") {
  use_all_elements();
  Random random(5);
  const detail::LocalReduce works[] = {
      {.kept = {}, .kept_strides = {}, .reduced = {0}, .reduced_strides = {1}},
      {.kept = {}, .kept_strides = {}, .reduced = {1}, .reduced_strides = {1}},
      {.kept = {3}, .kept_strides = {7}, .reduced = {7}, .reduced_strides = {1}},
      {.kept = {2}, .kept_strides = {1200}, .reduced = {1200}, .reduced_strides = {1}},
      {.kept = {19}, .kept_strides = {1}, .reduced = {37}, .reduced_strides = {19}},  // strips
      {.kept = {21},
       .kept_strides = {2},
       .reduced = {5, 3},
       .reduced_strides = {50, 7}},  // strips with gaps
      {.kept = {4, 2}, .kept_strides = {1, 60}, .reduced = {15}, .reduced_strides = {4}},
  };
  for_all_types([&](auto zero) {
    using T = decltype(zero);
    for (const Reduction reduction : all_reductions) {
      CAPTURE(name_of(reduction));
      if (!defined(reduction, dtype_of<T>)) {
        CHECK_THROWS_AS(detail::reduce(dtype_of<T>, reduction, works[2], nullptr, nullptr),
                        UsageError);
        continue;
      }
      for (const detail::LocalReduce& work : works) {
        const std::vector<T> from = elements<T>(
            random, span(work.kept, work.kept_strides) + span(work.reduced, work.reduced_strides),
            reduction == Reduction::product);
        std::vector<T> expected;
        for_each_index(work.kept, [&](const Extents& kept) {
          std::vector<T> values;
          for_each_index(work.reduced, [&](const Extents& reduced) {
            values.push_back(from[at(reduced, work.reduced_strides,
                                     static_cast<Index>(at(kept, work.kept_strides)))]);
          });
          expected.push_back(joined(reduction, values));
        });
        const Buffer<T> in(from), out(std::vector<T>(expected.size()));
        detail::reduce(dtype_of<T>, reduction, work, in.data(), out.data());
        const std::vector<T> result = out.values();
        long wrong = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) wrong += !same<T>(result[i], expected[i]);
        CHECK(wrong == 0);
        if constexpr (std::is_same_v<T, bool>) {  // a bool is a byte of 0 or 1, even if nothing was
                                                  // reduced
          std::vector<unsigned char> bytes(expected.size());
          std::memcpy(bytes.data(), out.data(), bytes.size());
          for (const unsigned char byte : bytes) CHECK(byte <= 1);
        }
      }
    }
  });
}

TEST_CASE("a long sum of half types is not lost in their few digits; a mean is rounded once") {
  use_all_elements();
  for (const DType type : {DType::f16, DType::bf16})
    detail::with_real_type(type, [](auto zero) {
      using T = decltype(zero);
      const Index n = 30000;
      const Buffer<T> in(std::vector<T>(static_cast<std::size_t>(n), T(1))), out(std::vector<T>(1));
      const detail::LocalReduce work{
          .kept = {}, .kept_strides = {}, .reduced = {n}, .reduced_strides = {1}};
      detail::reduce(dtype_of<T>, Reduction::sum, work, in.data(), out.data());
      CHECK(out.values()[0] == T(n));
      detail::reduce(dtype_of<T>, Reduction::sum, work, in.data(), out.data(),
                     1.0 / static_cast<double>(n));
      CHECK(out.values()[0] == T(1));
    });
}

TEST_CASE("a maximum of half types is NaN where one of them is, and that of nothing loses") {
  use_all_elements();
  const Buffer<half> in({half(1), std::numeric_limits<half>::quiet_NaN(), half(2)}), out({half(0)});
  const detail::LocalReduce work{
      .kept = {}, .kept_strides = {}, .reduced = {3}, .reduced_strides = {1}};
  detail::reduce(DType::f16, Reduction::max, work, in.data(), out.data());
  CHECK(out.values()[0] != out.values()[0]);
  CHECK(detail::identity<half>(Reduction::max) == -std::numeric_limits<half>::infinity());
  CHECK(detail::identity<std::uint8_t>(Reduction::min) == 255);
  CHECK(detail::identity<std::uint64_t>(Reduction::min) == ~std::uint64_t{0});
  CHECK(detail::identity<std::uint64_t>(Reduction::max) == 0);
  CHECK(detail::identity<complex<float>>(Reduction::product) == complex<float>(1));
  CHECK(detail::identity<bool>(Reduction::all));
  CHECK_FALSE(detail::identity<bool>(Reduction::any));
}

TEST_CASE("joining ranges of several processes equals plain loops") {
  use_all_elements();
  Random random(6);
  for_all_types([&](auto zero) {
    using T = decltype(zero);
    for (const Reduction reduction : all_reductions) {
      if (!defined(reduction, dtype_of<T>)) continue;
      CAPTURE(name_of(reduction));
      for (const Index n : {Index{0}, Index{1}, Index{13}, Index{8192}, Index{20001}})
        for (const int members : {1, 2, 5}) {
          std::vector<std::vector<T>> values;
          std::vector<Buffer<T>> ranges;
          std::vector<const void*> sources;
          for (int m = 0; m < members; ++m) {
            values.push_back(elements<T>(random, n, reduction == Reduction::product));
            ranges.emplace_back(values.back());
            sources.push_back(ranges.back().data());
          }
          const Buffer<T> to(std::vector<T>(static_cast<std::size_t>(n)));
          detail::join(dtype_of<T>, reduction, sources.data(), members, n, to.data(),
                       ranges.back().data());  // also into a source
          const std::vector<T> result = to.values(), also = ranges.back().values();
          long wrong = 0;
          for (std::size_t i = 0; i < result.size(); ++i) {
            std::vector<T> column;
            for (const std::vector<T>& one : values) column.push_back(one[i]);
            wrong += !same<T>(result[i], joined(reduction, column)) || !same<T>(also[i], result[i]);
          }
          CHECK(wrong == 0);
        }
    }
  });
}

TEST_CASE("a product equals plain loops for every number type, whatever its strides") {
  use_all_elements();
  Random random(7);
  for_all_types([&](auto zero) {
    using T = decltype(zero);
    if constexpr (NumberElement<T>) {
      for (int round = 0; round < 60; ++round) {
        const bool large = round % 20 == 0;
        detail::Gemm g{.m = large ? 530 : pick(random, 0, 9),
                       .n = large ? 521 : pick(random, 1, 40),
                       .k = pick(random, 0, large ? 30 : 70)};
        if (round % 30 == 10) g = detail::Gemm{.m = 3, .n = 5, .k = 1100};
        g.transpose_a = pick(random, 0, 1) == 0;
        g.transpose_b = pick(random, 0, 1) == 0;
        g.lda = max_of(1, g.transpose_a ? g.m : g.k) + pick(random, 0, 2);
        g.ldb = max_of(1, g.transpose_b ? g.k : g.n) + pick(random, 0, 2);
        g.ldc = g.n + pick(random, 0, 2);
        const Index a_size = max_of(1, (g.transpose_a ? g.k : g.m) * g.lda),
                    b_size = max_of(1, (g.transpose_b ? g.n : g.k) * g.ldb),
                    c_size = max_of(1, g.m * g.ldc);
        if (!large) {
          g.batch = {2};
          g.batch_a = {a_size};
          g.batch_b = {0};
          g.batch_c = {c_size};
        }
        const Index batches = large ? 1 : 2;
        const bool add = pick(random, 0, 1) == 0;
        const std::vector<T> a = elements<T>(random, a_size * batches),
                             b = elements<T>(random, b_size);
        std::vector<T> c = elements<T>(random, c_size * batches);
        const Buffer<T> on_a(a), on_b(b), on_c(c);
        detail::gemm(dtype_of<T>, g, on_a.data(), on_b.data(), on_c.data(), add ? 1 : 0);
        const std::vector<T> result = on_c.values();
        for (Index p = 0; p < batches; ++p)
          for (Index i = 0; i < g.m; ++i)
            for (Index j = 0; j < g.n; ++j) {
              T& to = c[static_cast<std::size_t>(p * c_size + i * g.ldc + j)];
              Exact sum = add ? exact(to) : Exact{};
              for (Index k = 0; k < g.k; ++k)
                sum +=
                    exact(a[static_cast<std::size_t>(
                        p * a_size + (g.transpose_a ? k * g.lda + i : i * g.lda + k))]) *
                    exact(
                        b[static_cast<std::size_t>(g.transpose_b ? j * g.ldb + k : k * g.ldb + j)]);
              to = element<T>(sum);
            }
        CAPTURE(round);
        long wrong = 0;
        for (std::size_t i = 0; i < c.size(); ++i) wrong += !same<T>(result[i], c[i]);
        CHECK(wrong == 0);
      }
    } else {
      CHECK_THROWS_AS(detail::gemm(dtype_of<T>, detail::Gemm{}, nullptr, nullptr, nullptr),
                      UsageError);
    }
  });
}

TEST_CASE("short integers wrap in products, and 16-bit ones do not overflow an int on the way") {
  use_all_elements();
  const Buffer<std::int16_t> a(std::vector<std::int16_t>{-32768, 32767, -1, 32767}),
      b(std::vector<std::int16_t>{-32768, 32767, 32767, -1}), c(std::vector<std::int16_t>{0});
  detail::gemm(DType::i16, detail::Gemm{.m = 1, .n = 1, .k = 4, .lda = 4, .ldb = 1, .ldc = 1},
               a.data(), b.data(), c.data());
  CHECK(c.values()[0] == static_cast<std::int16_t>(1 - 32767 - 32767));
  CHECK(fn::Multiply{}(std::int16_t{-32768}, std::int16_t{-1}) == -32768);
  CHECK(fn::Add{}(std::uint8_t{200}, std::uint8_t{100}) == 44);
  CHECK(fn::Divide{}(std::int8_t{-128}, std::int8_t{-1}) == -128);
  CHECK(fn::Divide{}(std::uint8_t{200}, std::uint8_t{255}) == 0);
}

TEST_CASE("copies move elements of every size, turned and in runs of every length") {
  use_all_elements();
  Random random(8);
  for_all_types([&](auto zero) {
    using T = decltype(zero);
    for (int round = 0; round < 40; ++round) {
      const Extents e = round == 0   ? Extents{70, 130}
                        : round == 1 ? Extents{130, 70}
                                     : some_extents(random, 3, 9);
      const Extents from_strides = some_strides(random, e), to_strides = some_strides(random, e);
      const detail::StridedCopy work{
          .extents = e, .from_strides = from_strides, .to_strides = to_strides};
      const std::vector<T> from = elements<T>(random, span(e, from_strides));
      std::vector<T> expected = elements<T>(random, span(e, to_strides));
      const Buffer<T> in(from), out(expected);
      detail::copy(dtype_of<T>, in.data(), out.data(), &work, 1);
      for_each_index(
          e, [&](const Extents& i) { expected[at(i, to_strides)] = from[at(i, from_strides)]; });
      const bool equal = out.values() == expected;
      CHECK(equal);
    }
    for (Index n = 0; n < 200; ++n) {
      const detail::StridedCopy run{.extents = {n}, .from_strides = {1}, .to_strides = {1}};
      std::vector<T> from = elements<T>(random, n + 1);
      const Buffer<T> in(from), out(std::vector<T>(static_cast<std::size_t>(n + 1)));
      detail::copy(dtype_of<T>, in.data(), out.data(), &run, 1);
      from[static_cast<std::size_t>(n)] = T{};  // not copied
      const bool equal = out.values() == from;
      CHECK(equal);
    }
  });
}

TEST_CASE("random numbers of every type: blocks equal the whole, bounds hold, means are right") {
  for_all_types([&](auto zero) {
    using T = decltype(zero);
    const Index n = 20000;
    const double lo = IntegerElement<T>         ? 1
                      : std::is_same_v<T, bool> ? 0
                                                : 0.25,
                 hi = IntegerElement<T> ? 6 : 1;
    const Buffer<T> whole(std::vector<T>(static_cast<std::size_t>(n))), block(std::vector<T>(50));
    detail::random_uniform(dtype_of<T>, whole.data(), {n}, {0}, {n}, 3, lo, hi);
    detail::random_uniform(dtype_of<T>, block.data(), {50}, {77}, {n}, 3, lo, hi);
    const std::vector<T> x = whole.values(), y = block.values();
    Exact sum{};
    long outside = 0, other = 0;
    for (const T v : x) {
      const Exact e = exact(v);
      sum += e;
      const bool closed = !RealElement<T> && !ComplexElement<T>;
      outside += e.real() < lo || e.real() > hi || (!closed && e.real() == hi);
      if (ComplexElement<T>) outside += e.imag() < lo || e.imag() >= hi;
    }
    for (std::size_t i = 0; i < 50; ++i) other += !(x[77 + i] == y[i]);
    CHECK(outside == 0);
    CHECK(other == 0);
    CHECK(std::abs(sum.real() / static_cast<double>(n) - (lo + hi) / 2) < 0.05);
    if (ComplexElement<T>)
      CHECK(std::abs(sum.imag() / static_cast<double>(n) - (lo + hi) / 2) < 0.05);
    if constexpr (NumberElement<T>) {
      detail::random_normal(dtype_of<T>, whole.data(), {n}, {0}, {n}, 3, 20, 4);
      Exact mean{};
      double square = 0;
      for (const T v : whole.values()) {
        mean += exact(v);
        square += std::norm(exact(v) - 20.0);
      }
      CHECK(std::abs(mean / static_cast<double>(n) - 20.0) < 0.15);
      CHECK(std::abs(std::sqrt(square / static_cast<double>(n)) - 4) < 0.15);
    } else {
      CHECK_THROWS_AS(detail::random_normal(dtype_of<T>, whole.data(), {n}, {0}, {n}, 3),
                      UsageError);
    }
  });
  // What is excluded stays so where rounding would reach it.
  const Buffer<half> x(std::vector<half>(20000));
  detail::random_uniform(DType::f16, x.data(), {20000}, {0}, {20000}, 3, -1, 0);
  for (const half v : x.values()) CHECK_FALSE(v >= half(0));
}

namespace {
struct Cubic {
  template <class T> KOKKOS_FUNCTION T operator()(T x) const {
    return T(1000.0) * x * x * x - T(999.0) * x;
  }
};
struct OfHalf {
  KOKKOS_FUNCTION half operator()(half x) const {
    return half::from_bits(static_cast<std::uint16_t>(x.bits() + 1));
  }
};
}  // namespace

TEST_CASE(
    "a generic function of half types is computed in float and rounded once; one of half itself "
    "gets half") {
  std::vector<half> values;
  for (int i = 0; i < 3000; ++i) values.push_back(half(static_cast<double>(i) * 0.001));
  const Buffer<half> in(values), out(values);
  const Index n = static_cast<Index>(values.size());
  detail::map(Cubic{}, detail::LocalMap{{n}, {Extents{1}}}, out.data(),
              static_cast<const half*>(in.data()));
  long wrong = 0, stepwise = 0;
  const std::vector<half> result = out.values();
  for (std::size_t i = 0; i < values.size(); ++i) {
    wrong += result[i].bits() != half(Cubic{}(static_cast<float>(values[i]))).bits();
    stepwise += result[i].bits() != Cubic{}(values[i]).bits();
  }
  CHECK(wrong == 0);
  CHECK(stepwise > 0);  // or the case says nothing
  detail::map(OfHalf{}, detail::LocalMap{{n}, {Extents{1}}}, out.data(),
              static_cast<const half*>(in.data()));
  CHECK(out.values()[5].bits() == values[5].bits() + 1);
}

TEST_CASE("elementwise functions take every type that they are for") {
  CHECK(fn::Multiply{}(complex<float>{1, 2}, complex<float>{3, -1}) == complex<float>{5, 5});
  CHECK(fn::Negate{}(complex<double>{1, 2}) == complex<double>{-1, -2});
  CHECK(fn::Scale{0.5}(complex<float>{2, 4}) == complex<float>{1, 2});
  CHECK(fn::Scale{0.1}(half(1000)) == half(100));  // 0.1 is not rounded to a half first
  CHECK(fn::Scale{3}(std::uint8_t{100}) == 44);
  CHECK(fn::Scale{0.5}(std::int8_t{-7}) == -3);
  CHECK(fn::Exp{}(bfloat16(0)) == bfloat16(1));
  CHECK(fn::Abs{}(half(-2)) == half(2));
  CHECK(fn::Abs{}(std::int8_t{-128}) == -128);
  CHECK(fn::Sqrt{}(half(9)) == half(3));
  CHECK(detail::from_double<std::uint8_t>(-3) == 0);
  CHECK(detail::from_double<std::uint8_t>(300) == 255);
  CHECK(detail::from_double<std::uint64_t>(-0.5) == 0);
  CHECK(detail::from_double<std::uint64_t>(-1e30) == 0);
  CHECK(detail::from_double<std::uint64_t>(NAN) == 0);
  CHECK(detail::from_double<std::uint64_t>(0x1p63) == std::uint64_t{1} << 63);
  CHECK(detail::from_double<std::uint64_t>(0x1p64) == ~std::uint64_t{0});
  // The powers of two above the range are no whole factors and offsets within it.
  CHECK(fn::Scale{0x1p64}(std::uint64_t{3}) == ~std::uint64_t{0});
  CHECK(fn::Scale{0x1p63}(std::int64_t{-2}) == std::numeric_limits<std::int64_t>::min());
  CHECK(fn::Scale{0x1p63}(std::uint64_t{3}) == std::uint64_t{1} << 63);
  CHECK(fn::Shift{0x1p64}(std::uint64_t{3}) == ~std::uint64_t{0});
  CHECK(fn::Shift{-1}(std::uint64_t{0}) == 0);
  CHECK(fn::Divide{}(~std::uint64_t{0}, std::uint64_t{2}) == ~std::uint64_t{0} >> 1);
  CHECK(fn::Remainder{}(~std::uint64_t{0}, std::uint64_t{10}) == 5);
  CHECK(fn::Cast<half>{}(std::uint64_t{1} << 63) == std::numeric_limits<half>::infinity());
  CHECK(fn::Cast<double>{}(~std::uint64_t{0}) == 0x1p64);
  CHECK(fn::Cast<std::int64_t>{}(~std::uint64_t{0}) == -1);
  CHECK(detail::from_double<std::int64_t>(1e30) == std::numeric_limits<std::int64_t>::max());
  CHECK(detail::from_double<std::int16_t>(-1e30) == -32768);
  CHECK(detail::from_double<std::int8_t>(NAN) == 0);
  CHECK(detail::from_double<bool>(0.25));
}

TEST_CASE("an element type without kernels is named in the error, with the way out") {
  use_all_elements();
  const detail::CopyKernels*& entry =
      detail::kernel_table<detail::CopyKernels>[static_cast<int>(DType::i8)];
  const detail::CopyKernels* const kept = entry;
  entry = nullptr;
  std::string text;
  try {
    detail::copy(DType::i8, nullptr, nullptr, nullptr, 0);
  } catch (const UsageError& error) {
    text = error.what();
  }
  entry = kept;
  CHECK(text.find("no kernels for elements of int8") != std::string::npos);
  CHECK(text.find("tessera::use_element<std::int8_t>()") != std::string::npos);
}
