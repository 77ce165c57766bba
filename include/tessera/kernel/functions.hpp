// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Elementwise functions as types, for map() on host and device. Floats use the fast functions of
/// detail/float_math.hpp on the host and the device's own on a device; doubles use libm.
///
///     map(fn::Gelu{}, LocalMap{{n}, {{1}}}, y, x);
///     fn::Scale{0.5}(3.0f) == 1.5f
///
/// Integers wrap instead of overflowing; division by zero gives 0 (and the least integer over -1
/// gives itself).
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <tessera/kernel/detail/float_math.hpp>
#include <tessera/kernel/detail/reduce_op.hpp>

namespace tessera {
namespace detail {

KOKKOS_FORCEINLINE_FUNCTION double exp_of(double x) { return Kokkos::exp(x); }
KOKKOS_FORCEINLINE_FUNCTION double tanh_of(double x) { return Kokkos::tanh(x); }
KOKKOS_FORCEINLINE_FUNCTION double erf_of(double x) { return Kokkos::erf(x); }
KOKKOS_FORCEINLINE_FUNCTION double log_of(double x) { return Kokkos::log(x); }
KOKKOS_FORCEINLINE_FUNCTION float exp_of(float x) {
  KOKKOS_IF_ON_HOST((return fast_exp(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::exp(x);))
}
KOKKOS_FORCEINLINE_FUNCTION float tanh_of(float x) {
  KOKKOS_IF_ON_HOST((return fast_tanh(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::tanh(x);))
}
KOKKOS_FORCEINLINE_FUNCTION float erf_of(float x) {
  KOKKOS_IF_ON_HOST((return fast_erf(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::erf(x);))
}
KOKKOS_FORCEINLINE_FUNCTION float log_of(float x) {
  KOKKOS_IF_ON_HOST((return fast_log(x);))
  KOKKOS_IF_ON_DEVICE((return Kokkos::log(x);))
}

template <class T> inline constexpr bool is_real = std::is_floating_point_v<T>;

/// Converts a double to an element type; integers are truncated and saturate, NaN gives 0.
template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T from_double(double x) {
  if constexpr (is_real<T>) {
    return static_cast<T>(x);
  } else {
    constexpr double limit = sizeof(T) == 4 ? 2147483648.0 : 9223372036854775808.0;
    if (x >= limit) return std::numeric_limits<T>::max();
    if (x < -limit) return std::numeric_limits<T>::lowest();
    return x == x ? static_cast<T>(x) : T{};
  }
}

template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T wrap(Wrapping<T> x) {
  return static_cast<T>(x);
}
}  // namespace detail

namespace fn {

/// a + b
struct Add {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T a, T b) const {
    using W = detail::Wrapping<T>;
    return detail::wrap<T>(static_cast<W>(a) + static_cast<W>(b));
  }
};
/// a - b
struct Subtract {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T a, T b) const {
    using W = detail::Wrapping<T>;
    return detail::wrap<T>(static_cast<W>(a) - static_cast<W>(b));
  }
};
/// a b
struct Multiply {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T a, T b) const {
    using W = detail::Wrapping<T>;
    return detail::wrap<T>(static_cast<W>(a) * static_cast<W>(b));
  }
};
/// a / b; integers are truncated, and a / 0 is 0
struct Divide {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T a, T b) const {
    if constexpr (detail::is_real<T>) {
      return a / b;
    } else {
      if (b == 0) return 0;
      if (b == -1) return Subtract{}(T{}, a);
      return a / b;
    }
  }
};
/// The larger; NaN if either is (as NumPy's maximum).
struct Maximum {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T a, T b) const {
    return detail::Fold<Reduction::max, T>::join(a, b);
  }
};
/// The smaller; NaN if either is.
struct Minimum {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T a, T b) const {
    return detail::Fold<Reduction::min, T>::join(a, b);
  }
};
/// -x
struct Negate {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T x) const {
    if constexpr (detail::is_real<T>)
      return -x;
    else
      return Subtract{}(T{}, x);
  }
};
/// |x|
struct Abs {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    if constexpr (detail::is_real<T>)
      return Kokkos::fabs(x);
    else
      return x < 0 ? Negate{}(x) : x;
  }
};
/// x^2
struct Square {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T x) const {
    return Multiply{}(x, x);
  }
};
/// 1 / x
struct Reciprocal {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T x) const {
    return Divide{}(T{1}, x);
  }
};
/// factor x; integers by a whole factor exactly (wrapping), by another in double, truncated and
/// saturating
struct Scale {
  double factor = 1;
  template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T x) const {
    if constexpr (detail::is_real<T>) {
      return x * static_cast<T>(factor);
    } else {
      const T whole = detail::from_double<T>(factor);
      if (static_cast<double>(whole) == factor) return Multiply{}(x, whole);
      return detail::from_double<T>(static_cast<double>(x) * factor);
    }
  }
};
/// x + offset; integers as in Scale
struct Shift {
  double offset = 0;
  template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T x) const {
    if constexpr (detail::is_real<T>) {
      return x + static_cast<T>(offset);
    } else {
      const T whole = detail::from_double<T>(offset);
      if (static_cast<double>(whole) == offset) return Add{}(x, whole);
      return detail::from_double<T>(static_cast<double>(x) + offset);
    }
  }
};
/// e^x
struct Exp {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    static_assert(detail::is_real<T>, "[tessera] exp is for float and double.");
    return detail::exp_of(x);
  }
};
/// The natural logarithm.
struct Log {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    static_assert(detail::is_real<T>, "[tessera] log is for float and double.");
    return detail::log_of(x);
  }
};
/// The hyperbolic tangent.
struct Tanh {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    static_assert(detail::is_real<T>, "[tessera] tanh is for float and double.");
    return detail::tanh_of(x);
  }
};
/// The error function, 2/sqrt(pi) times the integral of e^(-t^2) from 0 to x.
struct Erf {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    static_assert(detail::is_real<T>, "[tessera] erf is for float and double.");
    return detail::erf_of(x);
  }
};
/// The square root.
struct Sqrt {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    static_assert(detail::is_real<T>, "[tessera] sqrt is for float and double.");
    return Kokkos::sqrt(x);
  }
};
/// max(x, 0); NaN stays
struct Relu {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T x) const {
    return x < T{} ? T{} : x;
  }
};
/// The derivative of relu: 1 where x > 0, else 0.
struct ReluGradient {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T operator()(T x) const {
    return x > T{} ? T{1} : T{};
  }
};
/// x (1 + erf(x / sqrt 2)) / 2, Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016); JAX's
/// approximate=False.
struct Gelu {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    static_assert(detail::is_real<T>, "[tessera] gelu is for float and double.");
    return T(0.5) * x * (T{1} + detail::erf_of(x * T(0.70710678118654752440)));
  }
};
/// The derivative of gelu: (1 + erf(x / sqrt 2)) / 2 + x e^(-x^2/2) / sqrt(2 pi)
struct GeluGradient {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    static_assert(detail::is_real<T>, "[tessera] gelu is for float and double.");
    const T density = T(0.39894228040143267794) * detail::exp_of(T(-0.5) * x * x);
    return T(0.5) * (T{1} + detail::erf_of(x * T(0.70710678118654752440))) + x * density;
  }
};
/// x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2, the same paper's approximation; JAX's
/// approximate=True.
struct GeluTanh {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    static_assert(detail::is_real<T>, "[tessera] gelu is for float and double.");
    return T(0.5) * x *
           (T{1} + detail::tanh_of(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
  }
};

}  // namespace fn
}  // namespace tessera
