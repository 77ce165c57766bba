// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The first element that is no finite number, against a plain loop over every position.
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include <tessera/base/complex.hpp>
#include <tessera/base/short_float.hpp>
#include <tessera/kernel/not_finite.hpp>

using namespace tessera;

TEST_CASE_TEMPLATE("NaN and infinities are found where they are", T, half, bfloat16, float, double,
                   complex<float>, complex<double>) {
  const auto of = [](double value) {
    if constexpr (is_complex(dtype_of<T>))
      return T(1, static_cast<decltype(T{}.real())>(value));
    else
      return static_cast<T>(static_cast<float>(value));
  };
  const std::vector<T> finite(9000, of(-0.5));
  const auto found = [](const std::vector<T>& values) {
    return detail::first_not_finite(dtype_of<T>, values.data(), static_cast<Index>(values.size()));
  };
  CHECK(found(finite).nan == -1);
  CHECK(found(finite).infinite == -1);
  CHECK(found({}).nan == -1);
  for (const std::size_t at : {0u, 1u, 4095u, 4096u, 8999u}) {
    std::vector<T> values = finite;
    values[at] = of(at % 2 == 0 ? NAN : -NAN);
    CHECK(found(values).nan == static_cast<Index>(at));
    CHECK(found(values).infinite == -1);
    values[at] = of(at % 2 == 0 ? INFINITY : -INFINITY);
    values.back() = at == 8999 ? values.back() : of(NAN);
    CHECK(found(values).infinite == static_cast<Index>(at));
    CHECK(found(values).nan == (at == 8999 ? -1 : 8999));
  }
}

TEST_CASE("the largest finite numbers and denormals are finite, and so are integers") {
  const double doubles[] = {std::numeric_limits<double>::max(), 5e-324, -0.0};
  CHECK(detail::first_not_finite(DType::f64, doubles, 3).infinite == -1);
  CHECK(detail::first_not_finite(DType::f64, doubles, 3).nan == -1);
  const std::int32_t integers[] = {0x7fc0'0000, -1};
  CHECK(detail::first_not_finite(DType::i32, integers, 2).nan == -1);
}
