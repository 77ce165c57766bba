// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The norms of tensors, as the sums of squares that make them.
///
///     const auto sums = detail::finish_scalars(detail::squares_of(x, site), site);
///     detail::Squares{.plain = 25}.norm();       // 5
///
/// Laws: sums are made in double, of doubles in two units, so that no square overflows, and none of
/// an element from 2^-900 on vanishes; those of several tensors may be finished together.
#include <cstddef>
#include <vector>

#include <tessera/nn/optimizer/update.hpp>

namespace tessera::detail {

/// The square of an element, in double: no float's overflows.
struct WideSquare {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION double operator()(T x) const {
    const auto wide = static_cast<double>(static_cast<ComputeType<T>>(x));
    return wide * wide;
  }
};
/// Squares of doubles, in two sums that neither overflow nor vanish: of elements from `large` on,
/// and of the others, each in a unit of its own. Source: Blue, "A portable Fortran program to find
/// the Euclidean norm of a vector" (1978), which has a third sum; it is not needed down to 2^-900.
struct SquareInUnit {
  static constexpr double large = 0x1p49, large_unit = 0x1p533, small_unit = 0x1p-442;
  bool of_large;
  KOKKOS_FORCEINLINE_FUNCTION double operator()(double x) const {
    if ((Kokkos::fabs(x) >= large) != of_large) return 0;  // a NaN is not large
    const double scaled = x * (of_large ? 1 / large_unit : 1 / small_unit);
    return scaled * scaled;
  }
};

/// The sums of the squares of some elements: of those as they are, and of doubles in the units of
/// SquareInUnit.
struct Squares {
  static constexpr double most = 1.7976931348623157e308;
  double plain = 0, small = 0, large = 0;

  /// Returns whether all elements are finite.
  KOKKOS_INLINE_FUNCTION bool finite() const {
    return plain <= most && small <= most && large <= most;
  }
  /// Returns the norm times `by`: a norm that is too large for a double has a product that is one.
  KOKKOS_INLINE_FUNCTION double norm(double by = 1.0) const {
    const double less = by < 1.0 ? by : 1.0, more = by < 1.0 ? 1.0 : by;
    const double root = Kokkos::sqrt(plain) * by,
                 near = Kokkos::sqrt(small) * SquareInUnit::small_unit * by,
                 far = Kokkos::sqrt(large) * (SquareInUnit::large_unit * less) * more;
    if (far == 0.0 && near == 0.0) return root;
    if (far == 0.0 && root == 0.0) return near;
    return Kokkos::hypot(Kokkos::hypot(root, near), far);
  }
};

/// Returns the sum of f of a tensor's elements, in double: a scalar, unfinished over the axes that
/// split the tensor.
template <class F> TensorCore sum_of(const F& f, const TensorCore& x, CallSite site) {
  const Sharding own = x.sharding();
  const Term all = letters_of(x.desc());
  const TensorCore squares = with_real_type(x.type(), [&](auto zero) -> TensorCore {
    using T = decltype(zero);
    if constexpr (std::is_invocable_v<const F&, const T&>)
      return map_letters<T>({{all}, all}, f, {&x}, own, site);
    else
      return {};
  });
  if (x.rank() == 0) return squares;
  const Sharding open = Sharding::replicated(0).with_partial(own.used(), Reduction::sum);
  const ops::Reduce sum{{{all}, {}}, Reduction::sum, false, false, DType::f64, open};
  return run({sum, {&squares}, site});
}
inline TensorCore square_sum(const TensorCore& x, CallSite site) {
  return sum_of(WideSquare{}, x, site);
}

/// Returns the sums of squares of a tensor's elements, unfinished scalars: one, or of doubles the
/// small ones' and the large ones'.
inline std::vector<TensorCore> squares_of(const TensorCore& x, CallSite site) {
  if (x.type() != DType::f64) return {square_sum(x, site)};
  return {sum_of(SquareInUnit{false}, x, site), sum_of(SquareInUnit{true}, x, site)};
}

/// f(squares of a, squares of b, x), as a function of the sums that make the squares: of one each,
/// or of doubles, `in_units`, of two. There is one function for both, since each is compiled for a
/// row, a line and a device.
template <class F> struct OfSquares {
  F f;
  bool in_units;
  KOKKOS_FUNCTION double operator()(double a, double large_a, double b, double large_b,
                                    double x) const {
    return f(squares(a, large_a), squares(b, large_b), x);
  }
  KOKKOS_FUNCTION Squares squares(double sum, double large) const {
    return in_units ? Squares{0, sum, large} : Squares{sum, 0, 0};
  }
};
/// Returns f(squares of a, squares of b, x), a scalar, from the finished sums of both, those of a
/// first: two, or four. Communication: none.
template <class F>
TensorCore map_squares(const F& f, const std::vector<TensorCore>& sums, const TensorCore& x,
                       CallSite site) {
  const bool in_units = sums.size() == 4;
  const std::size_t b = sums.size() / 2, large = in_units ? 1 : 0;
  return map_scalars(OfSquares<F>{f, in_units}, site, sums[0], sums[large], sums[b],
                     sums[b + large], x);
}

}  // namespace tessera::detail
