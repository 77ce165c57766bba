// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: kernel_rows
// Running joins by functions that do not commute, cut in parts, against plain loops.
#include <doctest/doctest.h>

#include <tessera/kernel/rows/scan.hpp>

#include "kernel/buffer.hpp"

using namespace tessera;
using namespace test;

namespace {

/// First x -> a x + b, then x -> c x + d.
struct Compose {
  KOKKOS_FUNCTION complex<double> operator()(complex<double> f, complex<double> g) const {
    return {f.re * g.re, f.im * g.re + g.im};
  }
};
/// The last that is not 0.
struct Last {
  template <class T> KOKKOS_FUNCTION T operator()(T a, T b) const { return b != T{} ? b : a; }
};

template <class T> std::vector<T> numbers(Random& random, Index n) {
  std::vector<T> values;
  for (Index i = 0; i < n; ++i)
    if constexpr (ComplexElement<T>)
      values.push_back(
          T(static_cast<double>(pick(random, -1, 1)), static_cast<double>(pick(random, -3, 3))));
    else
      values.push_back(static_cast<T>(static_cast<float>(pick(random, 0, 3))));
  return values;
}
bool same(complex<double> a, complex<double> b) { return a.re == b.re && a.im == b.im; }
template <class T> bool same(T a, T b) { return a == b; }

/// Scans lines in parts: each part's totals first, then each part from those before it.
template <class T, class F> void in_parts(const F& f, T identity) {
  Random random(21);
  long wrong = 0;
  for (int round = 0; round < 60; ++round) {
    const Index outer = pick(random, 0, 3), n = pick(random, 0, 20), parts = pick(random, 1, 5);
    const Index inner = round % 5 == 0 ? 70 : pick(random, 1, 3);
    const bool reverse = pick(random, 0, 1) == 1, exclusive = pick(random, 0, 1) == 1;
    const std::vector<T> x = numbers<T>(random, outer * n * inner);
    const auto at = [&](Index o, Index k, Index i) {
      return static_cast<std::size_t>((o * n + k) * inner + i);
    };
    std::vector<T> expected(x.size());
    for (Index o = 0; o < outer; ++o)
      for (Index i = 0; i < inner; ++i) {
        T total = identity;
        for (Index j = 0; j < n; ++j) {
          const std::size_t here = at(o, reverse ? n - 1 - j : j, i);
          const T joined = f(total, x[here]);
          expected[here] = exclusive ? total : joined;
          total = joined;
        }
      }
    const Index block = ceil_div(n, parts);
    const auto part_of = [&](Index p) {
      return Interval{min_of(n, p * block), min_of(n, (p + 1) * block)};
    };
    std::vector<T> totals(static_cast<std::size_t>(outer * parts * inner));
    std::vector<std::vector<T>> cut;
    for (Index p = 0; p < parts; ++p) {
      std::vector<T> own;
      for (Index o = 0; o < outer; ++o)
        for (Index k = part_of(p).lo; k < part_of(p).hi; ++k)
          for (Index i = 0; i < inner; ++i) own.push_back(x[at(o, k, i)]);
      detail::LocalScan work{outer, part_of(p).size(), inner, reverse};
      const Buffer<T> from(own),
          to(std::vector<T>(static_cast<std::size_t>(outer * inner), T(77.0f)));
      detail::fold<T>(f, identity, work, from.data(), to.data());
      for (Index o = 0; o < outer; ++o)
        for (Index i = 0; i < inner; ++i)
          totals[static_cast<std::size_t>((o * parts + p) * inner + i)] =
              to.values()[static_cast<std::size_t>(o * inner + i)];
      cut.push_back(own);
    }
    const Buffer<T> all(totals);
    for (Index p = 0; p < parts; ++p) {
      detail::LocalScan work{outer,
                             part_of(p).size(),
                             inner,
                             reverse,
                             exclusive,
                             parts,
                             reverse ? Interval{p + 1, parts} : Interval{0, p}};
      const Buffer<T> from(cut[static_cast<std::size_t>(p)]), to(cut[static_cast<std::size_t>(p)]);
      detail::scan<T>(f, identity, work, from.data(), all.data(), to.data());
      std::size_t next = 0;
      for (Index o = 0; o < outer; ++o)
        for (Index k = part_of(p).lo; k < part_of(p).hi; ++k)
          for (Index i = 0; i < inner; ++i)
            wrong += !same(to.values()[next++], expected[at(o, k, i)]);
    }
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("running joins by functions, forward and reverse, exclusive, in parts") {
  in_parts(Compose{}, complex<double>(1, 0));
  in_parts(Last{}, std::int32_t{0});
  in_parts(Last{}, half(0.0f));
  in_parts(Last{}, 0.0);
}

TEST_CASE("long lines are run in pieces, side by side") {
  Random random(22);
  long wrong = 0;
  for (int round = 0; round < 16; ++round) {
    const Index outer = round % 4 == 0 ? 70 : pick(random, 1, 5);
    const Index n = round % 4 == 0 ? 300 : pick(random, 16384, 21000), parts = 2;
    const bool reverse = round % 2 == 1, exclusive = round % 3 == 0;
    using T = complex<double>;
    const std::vector<T> x = numbers<T>(random, outer * n), before = numbers<T>(random, outer * 2);
    const detail::LocalScan work{outer, n, 1, reverse, exclusive, parts, {0, parts}};
    std::vector<T> expected(x.size());
    for (Index o = 0; o < outer; ++o) {
      const auto part = [&](Index p) { return before[static_cast<std::size_t>(o * parts + p)]; };
      T total = Compose{}(part(reverse ? 1 : 0), part(reverse ? 0 : 1));
      for (Index j = 0; j < n; ++j) {
        const auto here = static_cast<std::size_t>(o * n + (reverse ? n - 1 - j : j));
        const T joined = Compose{}(total, x[here]);
        expected[here] = exclusive ? total : joined;
        total = joined;
      }
    }
    const Buffer<T> from(x), earlier(before), to(std::vector<T>(x.size()));
    detail::scan<T>(Compose{}, T(1), work, from.data(), earlier.data(), to.data());
    const std::vector<T> values = to.values();
    for (std::size_t i = 0; i < values.size(); ++i) wrong += !same(values[i], expected[i]);
  }
  CHECK(wrong == 0);
}
