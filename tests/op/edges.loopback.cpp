// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: types
// Zeros with a sign, numbers at the ends of the exponents, and factors of 0.
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <limits>

#include <tessera/tessera.hpp>

#include "support/few_meshes.hpp"
#include "support/grid.hpp"

using namespace tessera;

namespace {
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;

bool negative(complex<double> z) { return std::signbit(z.re) && std::signbit(z.im); }
template <class T> bool negative(T x) { return std::signbit(static_cast<float>(x)); }

template <class T> void signed_sums(const ProcessMesh<Grid>& mesh) {
  const T zero(-0.0);
  std::vector<T> x(9, zero == zero ? -T(0.0) : zero);  // numpy.cumsum: -0 until another is added
  for (const std::size_t last : {9, 7, 4, 1}) {
    if (last < 9) x[last] = T(0.0);
    const auto c = to_host(cumsum<"i", 'i'>(from_host<Tensor<T, data>>(mesh, {9}, x)));
    const auto d = to_host(cumsum<"ji", 'i'>(from_host<Tensor<T, _, data>>(mesh, {1, 9}, x)));
    for (std::size_t i = 0; i < 9; ++i) {
      CHECK(negative(c.values[i]) == (i < last));
      CHECK(negative(d.values[i]) == (i < last));
      CHECK(c.values[i] == T(0.0));
    }
  }
  const std::vector<T> both{-T(0.0), T(1.0), T(-1.0), -T(0.0)};
  const auto c = to_host(cumsum<"i", 'i'>(from_host<Tensor<T, data>>(mesh, {4}, both)));
  CHECK((negative(c.values[0]) && !negative(c.values[2]) && !negative(c.values[3])));
  const auto e = cumsum<"i", 'i'>(from_host<Tensor<T, data>>(mesh, {4}, both), {.exclusive = true});
  CHECK(!negative(to_host(e).values[0]));
}
TEST_CASE("a running sum of -0 is -0, on every mesh") {
  support::on_few_meshes([](const ProcessMesh<Grid>& mesh) {
    signed_sums<float>(mesh);
    signed_sums<double>(mesh);
    signed_sums<half>(mesh);
    signed_sums<complex<double>>(mesh);
  });
}

/// (a + ib) / (c + id) in a type with a wider exponent, component by component to a few ulp of the
/// quotient's size.
template <class T> void quotients() {
  const T most = std::numeric_limits<T>::max(), least = std::numeric_limits<T>::min(),
          tiny = std::numeric_limits<T>::denorm_min();
  const T sizes[] = {0,
                     T(1),
                     T(3),
                     most,
                     most / 3,
                     least,
                     least * 5,
                     3 * tiny,
                     tiny,
                     std::sqrt(most),
                     std::sqrt(least)};
  int wrong = 0;
  for (const T a : sizes)
    for (const T b : sizes)
      for (const T c : sizes)
        for (const T d : sizes)
          for (const T sign : {T(1), T(-1)}) {
            if (c == 0 && d == 0) continue;
            const complex<T> q = complex<T>(a, sign * b) / complex<T>(c, d);
            // The numbers are at most 1 in size, so that long double's exponents are enough.
            const std::complex<long double> x(a, sign * b), y(c, d);
            const long double norm = std::hypot(y.real(), y.imag());
            const auto u = std::complex<long double>(y.real() / norm, y.imag() / norm);
            const std::complex<long double> v((x.real() * u.real() + x.imag() * u.imag()) / norm,
                                              (x.imag() * u.real() - x.real() * u.imag()) / norm);
            const long double size = std::hypot(v.real(), v.imag());
            const long double error =
                std::fmax(size * 4 * std::numeric_limits<T>::epsilon(), 2.0L * tiny);
            const auto close = [&](T got, long double wanted) {
              if (std::fabs(wanted) > most)
                return std::isinf(got) || std::fabs(wanted) - most < error;
              return std::fabs(got - wanted) <= error;
            };
            if (!close(q.re, v.real()) || !close(q.im, v.imag())) {
              if (++wrong < 5)
                MESSAGE(a << " + i " << sign * b << " over " << c << " + i " << d << ": " << q.re
                          << " + i " << q.im);
            }
          }
  CHECK(wrong == 0);
}
TEST_CASE("complex quotients of the largest and the smallest numbers") {
  quotients<float>();
  quotients<double>();
}

TEST_CASE("with alpha 0 a product does not matter") {
  support::on_few_meshes([](const ProcessMesh<Grid>& mesh) {
    const double nan = std::nan(""), infinite = std::numeric_limits<double>::infinity();
    for (const double bad : {nan, infinite}) {
      const auto a = full<Tensor<double, data, model>>(mesh, {5, 7}, bad);
      const auto b = full<Tensor<double, _, model>>(mesh, {7, 3}, 1.0);
      auto c = full<Tensor<double, data, _>>(mesh, {5, 3}, 2.0);
      einsum_into<"ik,kj->ij">(c, a, b, 0.0, 3.0);
      CHECK(to_host(c).values == std::vector<double>(15, 6.0));
      c = full<Tensor<double, data, _>>(mesh, {5, 3}, nan);
      einsum_into("ik,kj->ij", DynamicTensor(c), DynamicTensor(a), DynamicTensor(b), 0.0, 0.0);
      CHECK(to_host(c).values == std::vector<double>(15, 0.0));
    }
  });
}
}  // namespace
