// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Variance, standard deviation, norms and log-sum-exp over dimensions: reductions, products and
/// maps in a row.
///
///     auto v = variance<"bsm->bs">(x);               // ddof = 1 divides by n - 1
///     auto n = norm<2, "bsm->bs">(x);                // also 1, and infinite_norm
///     auto l = log_sum_exp<"bsv->bs">(logits);
///     DynamicTensor d = norm<2, float>("bsm->bs", DynamicTensor(x));
///
/// Laws: a variance is computed from distances to the mean, so that digits do not cancel;
/// log-sum-exp subtracts the largest element first, so that exp does not overflow, and is -infinity
/// for a row of -infinity. For half types all is computed, and sent, in float, and rounded once, at
/// the end.
#include <limits>
#include <optional>
#include <string>

#include <tessera/op/arithmetic.hpp>
#include <tessera/op/cast.hpp>
#include <tessera/op/dynamic_map.hpp>
#include <tessera/op/einsum.hpp>
#include <tessera/op/functions.hpp>
#include <tessera/op/reduce.hpp>
#include <tessera/op/reshard.hpp>
#include <tessera/op/to_host.hpp>

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

/// Half types, which are computed in float.
template <class T> inline constexpr bool short_type = tessera::is_short(dtype_of<T>);

/// |x - mean|^2; for half types, in float.
struct SquaredDistance {
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION typename RealPart<ComputeType<T>>::type operator()(
      T x, ComputeType<T> mean) const {
    const auto d = fn::Subtract{}(static_cast<ComputeType<T>>(x), mean);
    if constexpr (ComplexElement<T>)
      return d.re * d.re + d.im * d.im;
    else
      return fn::Multiply{}(d, d);
  }
};
/// |x|^2; for half types, in float.
struct SquaredSize {
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION typename RealPart<ComputeType<T>>::type operator()(T x) const {
    const auto wide = static_cast<ComputeType<T>>(x);
    if constexpr (ComplexElement<T>)
      return wide.re * wide.re + wide.im * wide.im;
    else
      return wide * wide;
  }
};
/// |x|; for half types, in float.
struct Size {
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION typename RealPart<ComputeType<T>>::type operator()(T x) const {
    return fn::Abs{}(static_cast<ComputeType<T>>(x));
  }
};
/// exp(x - largest); for half types, in float. Where largest is infinite or NaN, 1 for elements
/// equal to it, else 0.
struct ExpBelow {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION ComputeType<T> operator()(T x, T largest) const {
    using C = ComputeType<T>;
    const C most = static_cast<C>(largest), below = most - most;
    return choose(below == below, fn::Exp{}(static_cast<C>(x) - most), C(x == largest ? 1 : 0));
  }
};
struct LogPlus {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(ComputeType<T> sum, T largest) const {
    return static_cast<T>(fn::Log{}(sum) + static_cast<ComputeType<T>>(largest));
  }
};
/// factor x, and then T.
template <class T> struct ScaledAs {
  double factor;
  template <class S> KOKKOS_FORCEINLINE_FUNCTION T operator()(S x) const {
    return static_cast<T>(x * static_cast<S>(factor));
  }
};
struct Root {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const { return fn::Sqrt{}(x); }
};
/// Converts the root of a sum of squares, times a factor, to the tensor's own type.
template <class T> struct RootAs {
  double factor = 1;
  template <class S> KOKKOS_FORCEINLINE_FUNCTION T operator()(S x) const {
    return static_cast<T>(fn::Sqrt{}(x * static_cast<S>(factor)));
  }
};

/// On dynamic tensors of elements T: f by letters, with the sharding of `like`.
template <class T, class F, class... A>
DynamicTensor map_as(const std::string& equation, const F& f, const DynamicTensor& like,
                     const DynamicCall& call, const A&... x) {
  return map_dynamic<T>(equation, f, like.sharding(), call.site(function_name<F>()), x...);
}
/// Reduces to `out`, or to the deduced sharding.
template <class Kind>
DynamicTensor reduce_to(std::string_view equation, const DynamicTensor& x,
                        const std::optional<Sharding>& out, const DynamicCall& call) {
  return out ? reduce<Kind>(equation, x, *out, call) : reduce<Kind>(equation, x, call);
}
/// Returns "bsv,bs->bsv" of "bsv->bs", at run time.
inline std::string spread_text(std::string_view equation) {
  return std::string(paired_equation(Equation::from(equation), false).view());
}
/// Returns "bs->bs" of "bsv->bs".
inline std::string result_text(std::string_view equation) {
  const std::string kept = to_text(parse(equation).result);
  return kept + "->" + kept;
}

/// Returns x in the type that it is computed in.
template <class A> auto widened(const A& x, Where where) {
  using T = typename A::value_type;
  if constexpr (detail::short_type<T>)
    return cast<ComputeType<T>>(x, where);
  else
    return x;
}
/// Returns the variance, in float for half types, before the factor n / (n - ddof).
template <Equation E, class Out, class Bound, class A> auto spread(const A& x, Where where) {
  const auto centre = mean<E, Deduced, Bound>(widened(x, where), where);
  return mean<E, Out, Bound>(
      map<spread_over<E>, Deduced, Bound>(SquaredDistance{}, x, centre, where), where);
}
/// Returns n / (n - ddof), or NaN.
inline double spread_factor(const Terms& terms, const Extents& extents, Index ddof) {
  const Index n = reduced_count(terms, extents);
  return n > ddof ? static_cast<double>(n) / static_cast<double>(n - ddof)
                  : std::numeric_limits<double>::quiet_NaN();
}

template <class A>
inline constexpr bool varies =
    RealElement<typename A::value_type> || ComplexElement<typename A::value_type>;

template <class S, class A> auto under_spec(const A& x, Where where) {
  if constexpr (std::is_same_v<S, Deduced>)
    return x;
  else
    return reshard<S>(x, where);
}
}  // namespace detail

/// Returns the mean of |x - mean|^2 over the n elements of the dimensions that E drops, times n /
/// (n - ddof); NaN where n <= ddof. Floating or complex elements. Communication: two reductions of
/// the result's size; a temporary of x's size. Collective over the mesh.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto variance(const A& x, Index ddof = 0, Where where = Where::here()) {
  using T = typename detail::RealPart<typename A::value_type>::type;
  static_assert(detail::varies<A>,
                "[tessera] variances are for floating-point and complex tensors, and this one is "
                "neither; use cast first");
  if constexpr (detail::varies<A>) {
    const auto spread = detail::spread<E, Out, Bound>(x, where);
    const double factor = detail::spread_factor(parse(E.view()), x.extents(), ddof);
    if constexpr (detail::short_type<T>)
      return map(detail::ScaledAs<T>{factor}, spread, where);
    else
      return factor == 1 ? spread : spread * static_cast<T>(factor);
  } else {
    return detail::Unknown<A>();
  }
}
/// Returns the square root of the variance.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto standard_deviation(const A& x, Index ddof = 0, Where where = Where::here()) {
  using T = typename A::value_type;
  if constexpr (detail::short_type<T>)
    return map(detail::RootAs<T>{detail::spread_factor(parse(E.view()), x.extents(), ddof)},
               detail::spread<E, Out, Bound>(x, where), where);
  else
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
                "[tessera] this norm is of another order; there are norms of order 1, 2 and "
                "infinite_norm; name one of them");
  static_assert(RealElement<T> || ComplexElement<T>,
                "[tessera] norms are for floating-point and complex tensors, and this one is "
                "neither; use cast first");
  if constexpr (!RealElement<T> && !ComplexElement<T>)
    return detail::Unknown<A>();
  else if constexpr (Order == 1 && detail::short_type<T>)
    return cast<T>(sum<E, Out, Bound>(map(detail::Size{}, x, where), where), where);
  else if constexpr (Order == 1)
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
  constexpr bool real = RealElement<typename A::value_type>;
  static_assert(
      real,
      "[tessera] log-sum-exp is for floating-point tensors, and this one is not; use cast first");
  if constexpr (real) {
    const auto largest = max<E, Deduced, Bound>(x, where);
    const auto total = sum<E, Out, Bound>(
        map<detail::spread_over<E>, Deduced, Bound>(detail::ExpBelow{}, x, largest, where), where);
    return map(detail::LogPlus{}, total, detail::under_spec<Out>(largest, where), where);
  } else {
    return detail::Unknown<A>();
  }
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

namespace detail {
template <class T>
DynamicTensor spread(std::string_view equation, const DynamicTensor& x,
                     const std::optional<Sharding>& out, const DynamicCall& call) {
  using C = ComputeType<T>;
  const std::string all = to_text(parse(equation).operands[0]);
  DynamicTensor centre;
  if constexpr (detail::short_type<T>)
    centre = reduce<Mean>(equation, map_as<T>(all + "->" + all, fn::Cast<C>{}, x, call, x), call);
  else
    centre = reduce<Mean>(equation, x, call);
  return reduce_to<Mean>(equation,
                         map_mixed<T, C>(spread_text(equation), SquaredDistance{}, x.sharding(),
                                         call.site(function_name<SquaredDistance>()), x, centre),
                         out, call);
}
}  // namespace detail

/// The same with everything known at run time, of elements T; without `out` its sharding is
/// deduced. Throw UsageError when x has other elements.
template <Element T>
DynamicTensor variance(std::string_view equation, const DynamicTensor& x,
                       const std::optional<Sharding>& out = std::nullopt, Index ddof = 0,
                       const DynamicCall& call = Where::here()) {
  static_assert(RealElement<T> || ComplexElement<T>,
                "[tessera] variances are for floating-point and complex tensors, and this one is "
                "neither; use cast first");
  using R = typename detail::RealPart<T>::type;
  detail::require_type<T>(x, call.fresh_site("variance"));
  const DynamicTensor spread = detail::spread<T>(equation, x, out, call);
  const double factor = detail::spread_factor(parse(equation), x.extents(), ddof);
  const std::string row = detail::result_text(equation);
  if constexpr (detail::short_type<R>) {
    return detail::map_as<ComputeType<R>>(row, detail::ScaledAs<R>{factor}, spread, call, spread);
  } else {
    if (factor == 1) return spread;
    const fn::Fixed<fn::Multiply, 1, R> scale{{}, static_cast<R>(factor)};
    return detail::map_as<R>(row, scale, spread, call, spread);
  }
}
template <Element T>
DynamicTensor standard_deviation(std::string_view equation, const DynamicTensor& x,
                                 const std::optional<Sharding>& out = std::nullopt, Index ddof = 0,
                                 const DynamicCall& call = Where::here()) {
  using R = typename detail::RealPart<T>::type;
  [[maybe_unused]] const detail::CallSite site = call.fresh_site("standard_deviation");
  const std::string row = detail::result_text(equation);
  if constexpr (detail::short_type<R>) {
    detail::require_type<T>(x, site);
    const DynamicTensor spread = detail::spread<T>(equation, x, out, call);
    const double factor = detail::spread_factor(parse(equation), x.extents(), ddof);
    return detail::map_as<ComputeType<R>>(row, detail::RootAs<R>{factor}, spread, call, spread);
  } else {
    const DynamicTensor v = variance<T>(equation, x, out, ddof, call);
    return detail::map_as<R>(row, detail::Root{}, v, call, v);
  }
}
template <int Order, Element T>
DynamicTensor norm(std::string_view equation, const DynamicTensor& x,
                   const std::optional<Sharding>& out = std::nullopt,
                   const DynamicCall& call = Where::here()) {
  static_assert(Order == 1 || Order == 2 || Order == infinite_norm,
                "[tessera] this norm is of another order; there are norms of order 1, 2 and "
                "infinite_norm; name one of them");
  static_assert(RealElement<T> || ComplexElement<T>,
                "[tessera] norms are for floating-point and complex tensors, and this one is "
                "neither; use cast first");
  detail::require_type<T>(x, call.fresh_site("norm"));
  const std::string all = to_text(parse(equation).operands[0]);
  const std::string row = detail::result_text(equation);
  const auto each = [&](const auto& f) {
    return detail::map_as<T>(all + "->" + all, f, x, call, x);
  };
  if constexpr (Order == 1 && detail::short_type<T>) {
    const DynamicTensor sum = detail::reduce_to<Sum>(equation, each(detail::Size{}), out, call);
    return detail::map_as<ComputeType<T>>(row, fn::Cast<T>{}, sum, call, sum);
  } else if constexpr (Order == 1) {
    return detail::reduce_to<Sum>(equation, each(fn::Abs{}), out, call);
  } else if constexpr (Order == infinite_norm) {
    return detail::reduce_to<Max>(equation, each(fn::Abs{}), out, call);
  } else if constexpr (std::is_floating_point_v<T>) {
    const std::string squares = all + "," + std::string(equation);
    const DynamicTensor sum = out ? einsum(squares, x, x, *out, call) : einsum(squares, x, x, call);
    return detail::map_as<T>(row, detail::Root{}, sum, call, sum);
  } else {
    using R = typename detail::RealPart<T>::type;
    using Wide = typename detail::RealPart<ComputeType<T>>::type;
    const DynamicTensor sum =
        detail::reduce_to<Sum>(equation, each(detail::SquaredSize{}), out, call);
    return detail::map_as<Wide>(row, detail::RootAs<R>{}, sum, call, sum);
  }
}
template <Element T>
DynamicTensor log_sum_exp(std::string_view equation, const DynamicTensor& x,
                          const std::optional<Sharding>& out = std::nullopt,
                          const DynamicCall& call = Where::here()) {
  static_assert(
      RealElement<T>,
      "[tessera] log-sum-exp is for floating-point tensors, and this one is not; use cast first");
  detail::require_type<T>(x, call.fresh_site("log_sum_exp"));
  const DynamicTensor largest = reduce<Max>(equation, x, call);
  const DynamicTensor total = detail::reduce_to<Sum>(
      equation,
      detail::map_as<T>(detail::spread_text(equation), detail::ExpBelow{}, x, call, x, largest),
      out, call);
  const std::string kept = to_text(parse(equation).result);
  return detail::map_mixed<ComputeType<T>, T>(
      kept + "," + kept + "->" + kept, detail::LogPlus{}, total.sharding(),
      call.site(detail::function_name<detail::LogPlus>()), total, largest);
}

}  // namespace tessera
