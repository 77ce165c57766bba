// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What elementwise functions require of element types, and how numbers become elements.
///
///     detail::from_double<std::int32_t>(3e9) == 2147483647
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <tessera/base/dtype.hpp>
#include <tessera/base/linearity.hpp>
#include <tessera/base/math.hpp>
#include <tessera/kernel/detail/reduce_op.hpp>

namespace tessera {
namespace fn {
/// The ways that a function may have beside its operator(), for some arguments each: cheap, and
/// without branches. Maps ask for a tile of arguments at a time whether all fit a way, in this
/// order. A function with another way has the common one.
struct SimpleWay {};  ///< shorter than the common one, with the same results
struct CommonWay {};
struct ModerateWay {};  ///< longer, for more arguments
}  // namespace fn

namespace detail {

template <class T>
concept Boolean = std::is_same_v<T, bool>;

/// Elements of type T can become elements of type U, except complex ones that would lose a part.
template <class T, class U>
concept Castable = !ComplexElement<T> || ComplexElement<U> || Boolean<U>;

/// Float, and the types that are computed in float.
template <class T>
concept FloatElement = RealElement<T> && std::is_same_v < ComputeType<T>,
float > ;

/// A function with a cheaper way for results of half types, of_short(float): with as many digits as
/// they keep.
template <class F>
concept HasShortWay = requires {
  F::of_short(0.0F);
};

/// A function of one real number, Self::of: the base of fn::Sin, fn::Exp and similar functions.
template <class Self> struct OfReal {
  template <RealElement T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    if constexpr (HasShortWay<Self> && sizeof(T) == 2)
      return static_cast<T>(Self::of_short(static_cast<float>(x)));
    else
      return static_cast<T>(Self::of(static_cast<ComputeType<T>>(x)));
  }
};

/// A function that computes much for an element of type T, by its own word.
template <class F, class T>
concept ComputesMuchOf = F::template computes_much<T>;
/// A function that computes much for an element: of the kind above, or of elements of such a type.
template <class F, class... T>
concept ComputesMuch = requires {
  F::of(0.0F);
}
|| (ComputesMuchOf<F, T> || ...);

/// F has the way W: where f.fits(W{}, x...), f.by(W{}, x...), rounded to the type of f(x...), is
/// f(x...).
template <class F, class W, class... T>
concept HasWay = requires(const F& f, const T&... x) {
  f.fits(W{}, x...) ? f.by(W{}, x...) : f(x...);
};

/// What bounds of a row of arguments say of a way: that all fit it, that one does not (or hardly),
/// or neither.
enum class Fit : std::uint8_t { all, not_all, unsure };
/// F has bounds for the way W, cheaper than a look at each argument: where f.bounds(W{}, n, x...)
/// is Fit::all, f.fits(W{}, x[i]...) for all i < n.
template <class F, class W, class... T>
concept HasBounds = requires(const F& f, Index n, const T*... x) {
  f.bounds(W{}, n, x...) == Fit::all;
};
/// A row of one number, again and again.
template <class T> struct Alike {
  T value;
  KOKKOS_FORCEINLINE_FUNCTION T operator[](Index) const { return value; }
};

/// The power of two above T's integers: a double even where the largest of them is not one.
template <class T>
inline constexpr double beyond = 2.0 * static_cast<double>(std::uint64_t{1}
                                                           << (std::numeric_limits<T>::digits - 1));

/// Converts a double to an element type; integers are truncated and saturate, NaN gives 0; bool is
/// whether it is not 0.
template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T from_double(double x) {
  if constexpr (RealElement<T>) {
    return static_cast<T>(x);
  } else if constexpr (ComplexElement<T>) {
    return T(static_cast<typename T::value_type>(x));
  } else if constexpr (Boolean<T>) {
    return !(x == 0);
  } else {
    using Limits = std::numeric_limits<T>;
    if (x >= beyond<T>) return Limits::max();
    if (x < static_cast<double>(Limits::lowest())) return Limits::lowest();
    return x == x ? static_cast<T>(x) : T{};
  }
}

template <class T> KOKKOS_FORCEINLINE_FUNCTION constexpr T wrap(Wrapping<T> x) {
  return static_cast<T>(x);
}

}  // namespace detail
}  // namespace tessera
