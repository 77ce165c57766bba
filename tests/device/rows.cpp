// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Cases for devices whose rows are long enough for teams of threads, for packs of elements and for
/// sorts by blocks, of elements of several sizes.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <numeric>

#include "check.hpp"

namespace device_test {
namespace {

constexpr Index lines = 130;  // as many on each of two processes as sorts by blocks want

/// What rounding a result to T may cost.
template <class T> constexpr double digits = sizeof(T) == 2 ? 8e-3 : sizeof(T) == 4 ? 2e-6 : 1e-12;

/// Calls f(the elements of row i) for each row.
template <class F> Values each_row(Index n, const F& f) {
  Values made;
  for (Index i = 0; i < lines; ++i) f(waves(n, i * n), made);
  return made;
}

template <class T> void rows_of(Cases& c, Index n) {
  using Matrix = Of<T, data, _>;
  const auto x = wave_of<Matrix>(c.mesh, {lines, n});
  const double near = digits<T>;
  const auto by_row = [&](const auto& f) {
    return each_row(n, [&](const Values& row, Values& made) { made.push_back(f(row)); });
  };
  const auto total = [](const Values& row) { return std::accumulate(row.begin(), row.end(), 0.0); };
  c.near(sum<"ij->i">(x), by_row(total), near, "the sum");
  c.near(max<"ij->i">(x),
         by_row([](const Values& r) { return *std::max_element(r.begin(), r.end()); }), 0,
         "the maximum");
  c.near(argmax<"ij->i">(x), by_row([](const Values& r) {
           return double(std::max_element(r.begin(), r.end()) - r.begin());
         }),
         0, "its place");
  const auto spread = [&](const Values& row) {
    const double mean = total(row) / double(n);
    double sum = 0;
    for (const double e : row) sum += (e - mean) * (e - mean);
    return sum / double(n);
  };
  c.near(variance<"ij->i">(x), by_row(spread), near, "the variance");
  c.near(cumsum<"ij", 'j'>(x),
         each_row(n,
                  [](const Values& row, Values& made) {
                    double sum = 0;
                    for (const double e : row) made.push_back(sum += e);
                  }),
         near, "the running sum");
  c.near(softmax<"ij", 'j'>(x),
         each_row(n,
                  [](const Values& row, Values& made) {
                    double sum = 0;
                    for (const double e : row) sum += std::exp(e);
                    for (const double e : row) made.push_back(std::exp(e) / sum);
                  }),
         near, "the softmax");
  const auto one = full<Of<T, _>>(c.mesh, {n}, T(1)), none = zeros<Of<T, _>>(c.mesh, {n});
  c.near(layer_norm(x, one, none, 1e-5),
         each_row(n,
                  [&](const Values& row, Values& made) {
                    const double mean = total(row) / double(n),
                                 by = 1 / std::sqrt(spread(row) + 1e-5);
                    for (const double e : row) made.push_back((e - mean) * by);
                  }),
         near, "the norm");
}

void sorts_of(Cases& c, Index n) {
  const auto x = wave_of<Of<float, data, _>>(c.mesh, {lines, n});
  const auto ordered = [&](Index kept, bool down, bool places) {
    return each_row(n, [&](const Values& row, Values& made) {
      std::vector<Index> order(row.size());
      std::iota(order.begin(), order.end(), Index{0});
      std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) {
        return down ? at(row, a) > at(row, b) : at(row, a) < at(row, b);
      });
      for (Index k = 0; k < kept; ++k)
        made.push_back(places ? double(order[std::size_t(k)]) : at(row, order[std::size_t(k)]));
    });
  };
  c.near(tessera::sort<"ij", 'j'>(x), ordered(n, false, false), 0, "the sort");
  c.near(argsort<"ij", 'j'>(x), ordered(n, false, true), 0, "the order");
  const auto [most, where] = top_k<"ij", 'j'>(x, 5);
  c.near(most, ordered(5, true, false), 0, "the largest");
  c.near(where, ordered(5, true, true), 0, "their places");
}

void scatters(Cases& c, Index n) {
  const Index words = 40, tuples = 90;
  const auto id = [](Index i) { return i * i % 37; };
  std::vector<std::int32_t> host;
  for (Index i = 0; i < tuples; ++i) host.push_back(static_cast<std::int32_t>(id(i)));
  const auto ids = from_host<Of<std::int32_t, data>>(c.mesh, {tuples}, host);
  const auto rows = wave_of<Of<float, data, _>>(c.mesh, {tuples, n});
  Values sums(static_cast<std::size_t>(words * n));
  for (Index i = 0; i < tuples * n; ++i)
    sums[static_cast<std::size_t>(id(i / n) * n + i % n)] += wave(i);
  c.near(scatter<Sum, "b,bm->vm">(ids, rows, {words}), sums, 1e-6, "the scatter");
  auto table = full<Of<float, _, _>>(c.mesh, {words, n}, 2.0f);
  const auto few = from_host<Of<std::int32_t, _>>(c.mesh, {20}, {host.begin(), host.begin() + 20});
  scatter_into<Sum, "vm,b,bm->vm">(table, few, wave_of<Of<float, _, _>>(c.mesh, {20, n}));
  Values want(sums.size(), 2.0);
  for (Index i = 0; i < 20 * n; ++i)
    want[static_cast<std::size_t>(id(i / n) * n + i % n)] += wave(i);
  c.near(table, want, 1e-6, "the scatter in place");
}

/// Elements are compared by their bits.
template <class S> void roundings(Cases& c, const char* name) {
  std::vector<float> wide;
  std::vector<S> narrow;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    wide.push_back(std::bit_cast<float>(i * 65521u + (i % 7 == 0 ? 0x8000u : 0u)));
    narrow.push_back(S::from_bits(static_cast<std::uint16_t>(i)));
  }
  Values rounded, widened;
  for (const float x : wide) rounded.push_back(S(x).bits());
  for (const S x : narrow) widened.push_back(std::bit_cast<std::uint32_t>(float(x)));
  const auto r = to_host(cast<S>(from_host<Of<float, data>>(c.mesh, {65536}, wide))).values;
  const auto w = to_host(cast<float>(from_host<Of<S, data>>(c.mesh, {65536}, narrow))).values;
  Values got_rounded, got_widened;
  for (const S x : r) got_rounded.push_back(x.bits());
  for (const float x : w) got_widened.push_back(std::bit_cast<std::uint32_t>(x));
  c.near(got_rounded, rounded, 0, name);
  c.near(got_widened, widened, 0, name);
}

template <class T> void transposes(Cases& c, const char* name) {
  const auto x = cast<T>(wave_of<Real<data, _>>(c.mesh, {70, 37}) * 64.0);
  const Values want = each(70 * 37, [](Index i) { return 64 * wave(i % 70 * 37 + i / 70); });
  const auto y = einsum<"ij->ji">(x);
  if constexpr (ComplexElement<T>)
    c.near(real(y), want, 0, name);
  else
    c.near(y, want, 0, name);
}
}  // namespace

void long_rows(Cases& c) {
  for (const Index n : {300, 2052, 4096})
    c.run("long rows", [&] {
      rows_of<float>(c, n);
      rows_of<bfloat16>(c, n);
      rows_of<double>(c, n);
    });
  c.run("sorts of rows", [&] {
    sorts_of(c, 300);
    sorts_of(c, 2052);
  });
  c.run("scatters of rows", [&] {
    scatters(c, 257);
    scatters(c, 1024);
  });
  c.run("roundings", [&] {
    roundings<bfloat16>(c, "bfloat16");
    roundings<tessera::half>(c, "half");
  });
  c.run("transposes", [&] {
    transposes<std::int8_t>(c, "int8");
    transposes<bfloat16>(c, "bfloat16");
    transposes<float>(c, "float");
    transposes<double>(c, "double");
    transposes<complex<double>>(c, "complex double");
  });
}
}  // namespace device_test
