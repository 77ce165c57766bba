// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Variance, standard deviation, norms and log-sum-exp over dimensions: reductions, products and
/// maps in a row.
///
///     auto v = variance<"bsm->bs">(x);               // ddof = 1 divides by n - 1
///     auto n = norm<2, "bsm->bs">(x);                // also 1, and infinite_norm
///     auto l = log_sum_exp<"bsv->bs">(logits);
///
/// Laws: a variance is taken about the mean, so that it does not cancel; log-sum-exp subtracts the
/// largest element first, so that exp does not overflow, and of a row of -infinity it is -infinity.
#include <limits>

#include <tessera/op/arithmetic.hpp>
#include <tessera/op/einsum.hpp>
#include <tessera/op/functions.hpp>
#include <tessera/op/reduce.hpp>
#include <tessera/op/reshard.hpp>

namespace tessera {

/// Names the largest magnitude: norm<infinite_norm, E>(x).
inline constexpr int infinite_norm = 0;

namespace detail {
/// Returns "bsv,bs->bsv" (or, `twice`, "bsv,bsv->bs") of "bsv->bs".
constexpr Equation paired_equation(const Equation& e, bool twice) {
  Equation pair;
  int arrow = 0;
  while (arrow < e.length && e.text[arrow] != '-') ++arrow;
  const auto put = [&](int from, int to) {
    for (int i = from; i < to && pair.length < Equation::capacity; ++i)
      pair.text[pair.length++] = e.text[i];
  };
  put(0, arrow);
  pair.text[pair.length++] = ',';
  put(twice ? 0 : arrow + 2, e.length);
  if (twice) return pair;
  pair.text[pair.length++] = '-';
  pair.text[pair.length++] = '>';
  put(0, arrow);
  return pair;
}
template <Equation E> inline constexpr Equation spread_over = paired_equation(E, false);
template <Equation E> inline constexpr Equation with_itself = paired_equation(E, true);

template <class T> struct RealPart { using type = T; };
template <class T> struct RealPart<complex<T>> { using type = T; };

/// |x - mean|^2
struct SquaredDistance {
  template <class T> KOKKOS_FUNCTION typename RealPart<T>::type operator()(T x, T mean) const {
    const T d = fn::Subtract{}(x, mean);
    if constexpr (ComplexElement<T>)
      return d.re * d.re + d.im * d.im;
    else
      return fn::Multiply{}(d, d);
  }
};
/// |x|^2, of half types in float.
struct SquaredSize {
  template <class T> KOKKOS_FUNCTION typename RealPart<ComputeType<T>>::type operator()(T x) const {
    const auto wide = static_cast<ComputeType<T>>(x);
    if constexpr (ComplexElement<T>)
      return wide.re * wide.re + wide.im * wide.im;
    else
      return wide * wide;
  }
};
/// exp(x - largest). Where that is infinite or NaN, how often it stands in the row is counted.
struct ExpBelow {
  template <class T> KOKKOS_FUNCTION T operator()(T x, T largest) const {
    const T below = fn::Subtract{}(largest, largest);
    if (below == below) return fn::Exp{}(fn::Subtract{}(x, largest));
    return x == largest ? T(1) : T(0);
  }
};
struct LogPlus {
  template <class T> KOKKOS_FUNCTION T operator()(T sum, T largest) const {
    return fn::Add{}(fn::Log{}(sum), largest);
  }
};
struct Root {
  template <class T> KOKKOS_FUNCTION T operator()(T x) const { return fn::Sqrt{}(x); }
};
/// Converts the root of a sum of squares to the tensor's own type.
template <class T> struct RootAs {
  template <class S> KOKKOS_FUNCTION T operator()(S x) const {
    return static_cast<T>(fn::Sqrt{}(x));
  }
};

template <class S, class A> auto under_spec(const A& x, Where where) {
  if constexpr (std::is_same_v<S, Deduced>)
    return x;
  else
    return reshard<S>(x, where);
}
}  // namespace detail

/// Returns the mean of |x - mean|^2 over the n elements of the dimensions that E drops, times n /
/// (n - ddof); NaN where n <= ddof. Floating or complex elements. Communication: that of two means,
/// of the result's size; a temporary of x's size. Collective over the mesh.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto variance(const A& x, Index ddof = 0, Where where = Where::here()) {
  const auto centre = mean<E, Deduced, Bound>(x, where);
  const auto spread = mean<E, Out, Bound>(
      map<detail::spread_over<E>, Deduced, Bound>(detail::SquaredDistance{}, x, centre, where),
      where);
  using T = typename std::remove_cvref_t<decltype(spread)>::value_type;
  const Index n = reduced_count(parse(E.view()), x.extents());
  const double factor = n > ddof ? static_cast<double>(n) / static_cast<double>(n - ddof)
                                 : std::numeric_limits<double>::quiet_NaN();
  return factor == 1 ? spread : spread * static_cast<T>(factor);
}
/// Returns the square root of the variance.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto standard_deviation(const A& x, Index ddof = 0, Where where = Where::here()) {
  return map(detail::Root{}, variance<E, Out, Bound>(x, ddof, where), where);
}

/// Returns the norm of x over the dimensions that E drops: the sum of magnitudes (Order 1), the
/// root of the sum of their squares (2; the squares are to be within the range of the elements, or
/// of float for half types), or the largest magnitude (infinite_norm). Communication: one reduction
/// of the result's size. No temporary of x's size for Order 2 and float or double. Collective over
/// the mesh.
template <int Order, Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto norm(const A& x, Where where = Where::here()) {
  using T = typename A::value_type;
  static_assert(Order == 1 || Order == 2 || Order == infinite_norm,
                "[tessera] norms are of order 1, 2 or infinite_norm");
  static_assert(RealElement<T> || ComplexElement<T>,
                "[tessera] norms are of floating-point or complex tensors; convert with map first");
  if constexpr (Order == 1)
    return sum<E, Out, Bound>(abs(x, where), where);
  else if constexpr (Order == infinite_norm)
    return max<E, Out, Bound>(abs(x, where), where);
  else if constexpr (std::is_floating_point_v<T>)
    return map(detail::Root{}, einsum<detail::with_itself<E>, Out, Bound>(x, x, where), where);
  else
    return map(detail::RootAs<typename detail::RealPart<T>::type>{},
               sum<E, Out, Bound>(map(detail::SquaredSize{}, x, where), where), where);
}

/// Returns log(sum of exp(x)) over the dimensions that E drops. Communication: two reductions of
/// the result's size; a temporary of x's size. Collective over the mesh.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto log_sum_exp(const A& x, Where where = Where::here()) {
  const auto largest = max<E, Deduced, Bound>(x, where);
  const auto total = sum<E, Out, Bound>(
      map<detail::spread_over<E>, Deduced, Bound>(detail::ExpBelow{}, x, largest, where), where);
  return map(detail::LogPlus{}, total, detail::under_spec<Out>(largest, where), where);
}

/// Over all dimensions: scalar tensors, the same on every process.
template <TypedTensor A> auto variance(const A& x, Index ddof = 0, Where where = Where::here()) {
  return variance<detail::total_equation(A::rank)>(x, ddof, where);
}
template <TypedTensor A>
auto standard_deviation(const A& x, Index ddof = 0, Where where = Where::here()) {
  return standard_deviation<detail::total_equation(A::rank)>(x, ddof, where);
}
template <int Order = 2, TypedTensor A> auto norm(const A& x, Where where = Where::here()) {
  return norm<Order, detail::total_equation(A::rank)>(x, where);
}
template <TypedTensor A> auto log_sum_exp(const A& x, Where where = Where::here()) {
  return log_sum_exp<detail::total_equation(A::rank)>(x, where);
}

}  // namespace tessera
