// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Norms and log-sum-exp over dimensions: reductions, products and maps in a row.
/// op/rows/variance.hpp, which this includes, has variances.
///
///     auto n = norm<2, "bsm->bs">(x);                // also 1, and infinite_norm
///     auto l = logsumexp<"bsv->bs">(logits);
///     DynamicTensor d = norm<2, float>("bsm->bs", DynamicTensor(x));
///
/// Laws: log-sum-exp subtracts the largest element first, so that exp does not overflow, and is
/// -infinity for a row of -infinity. For half types all is computed, and sent, in float, and
/// rounded once, at the end.
#include <limits>
#include <string>

#include <tessera/kernel/functions/complex.hpp>
#include <tessera/op/product/einsum.hpp>
#include <tessera/op/reshard.hpp>
#include <tessera/op/rows/variance.hpp>

namespace tessera {

/// Names the largest magnitude: norm<infinite_norm, E>(x). No number stands for it, and none but 1
/// and 2 is an order; NumPy's order 0 counts the elements that are not 0.
inline constexpr int infinite_norm = std::numeric_limits<int>::max();

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

/// |x|^2; for half types, in float.
struct SquaredSize {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION PartType<ComputeType<T>> operator()(T x) const {
    return squared_size(static_cast<ComputeType<T>>(x));
  }
};
/// |x|; for half types, in float.
struct Size {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION PartType<ComputeType<T>> operator()(T x) const {
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
/// Returns "bsv,bs->bsv" of "bsv->bs", at run time.
inline std::string spread_text(std::string_view equation) {
  return std::string(paired_equation(Equation::from(equation), false).view());
}
/// Returns x in the type that it is computed in.
template <class A> auto widened(const A& x, Where where) {
  using T = typename A::value_type;
  if constexpr (detail::short_type<T>)
    return cast<ComputeType<T>>(x, where);
  else
    return x;
}
template <class S, class A> auto under_spec(const A& x, Where where) {
  if constexpr (std::is_same_v<S, Deduced>)
    return x;
  else
    return reshard<S>(x, where);
}
}  // namespace detail

/// Returns the norm of x over the dimensions that E drops: the sum of magnitudes (Order 1), the
/// root of the sum of their squares (2), or the largest magnitude (infinite_norm). The squares of
/// order 2 are to be within the range of the elements, or of float for half types: scaling them
/// would take another pass over x and another reduction. Where they are not, divide by the largest
/// magnitude m, which is not 0: m * norm<2, E>(x / m). Communication: one reduction
/// of the result's size. No temporary of x's size for Order 2 and float or double. Collective over
/// the mesh.
template <int Order, Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto norm(const A& x, const CallOptions& call = Where::here()) {
  using T = typename A::value_type;
  static_assert(Order == 1 || Order == 2 || Order == infinite_norm,
                "[tessera] this norm is of another order; there are norms of order 1, 2 and "
                "infinite_norm; name one of them");
  static_assert(RealElement<T> || ComplexElement<T>,
                "[tessera] norms are for floating-point and complex tensors, and this one is "
                "neither; use cast first");
  if constexpr (!RealElement<T> && !ComplexElement<T>)
    return detail::Unknown<A>();
  else
    return detail::of_several(call, [&](const CallOptions& each) {
      const Where where = each.where();
      if constexpr (Order == 1 && detail::short_type<T>)
        return cast<T>(sum<E, Out, Bound>(map(detail::Size{}, x, where), each), where);
      else if constexpr (Order == 1)
        return sum<E, Out, Bound>(abs(x, where), each);
      else if constexpr (Order == infinite_norm)
        return max<E, Out, Bound>(abs(x, where), each);
      else if constexpr (std::is_floating_point_v<T>)
        return map(detail::Root{}, einsum<detail::with_itself<E>, Out, Bound>(x, x, each), where);
      else
        return map(detail::RootAs<PartType<T>>{},
                   sum<E, Out, Bound>(map(detail::SquaredSize{}, x, where), each), where);
    });
}

/// Returns log(sum of exp(x)) over the dimensions that E drops. Communication: two reductions of
/// the result's size; a temporary of x's size. Collective over the mesh.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto logsumexp(const A& x, const CallOptions& call = Where::here()) {
  constexpr bool real = RealElement<typename A::value_type>;
  static_assert(
      real,
      "[tessera] log-sum-exp is for floating-point tensors, and this one is not; use cast first");
  if constexpr (real) {
    return detail::of_several(call, [&](const CallOptions& each) {
      const Where where = each.where();
      const auto largest = max<E, Deduced, Bound>(x, each.step());
      const auto total = sum<E, Out, Bound>(
          map<detail::spread_over<E>, Deduced, Bound>(detail::ExpBelow{}, x, largest, where), each);
      return map(detail::LogPlus{}, total, detail::under_spec<Out>(largest, where), where);
    });
  } else {
    return detail::Unknown<A>();
  }
}

/// Over all dimensions: scalar tensors, the same on every process.
template <int Order = 2, TypedTensor A>
auto norm(const A& x, const CallOptions& call = Where::here()) {
  return norm<Order, detail::total_equation(A::rank)>(x, call);
}
template <TypedTensor A> auto logsumexp(const A& x, const CallOptions& call = Where::here()) {
  return logsumexp<detail::total_equation(A::rank)>(x, call);
}

/// These overloads take everything but the element type T at run time; without a sharding the
/// result's is deduced. They throw UsageError when x has other elements.
template <int Order, Element T>
DynamicTensor norm(std::string_view equation, const DynamicTensor& x,
                   const CallOptions& call = Where::here()) {
  static_assert(Order == 1 || Order == 2 || Order == infinite_norm,
                "[tessera] this norm is of another order; there are norms of order 1, 2 and "
                "infinite_norm; name one of them");
  static_assert(RealElement<T> || ComplexElement<T>,
                "[tessera] norms are for floating-point and complex tensors, and this one is "
                "neither; use cast first");
  detail::require_type<T>(x, call.sharded_site("norm"));
  const std::string all = to_text(parse(equation).operands[0]);
  const std::string row = detail::result_text(equation);
  return detail::of_several(call, [&](const CallOptions& to) {
    const auto each = [&](const auto& f) {
      return detail::map_as<T>(all + "->" + all, f, x, to, x);
    };
    if constexpr (Order == 1 && detail::short_type<T>) {
      const DynamicTensor sum = reduce<Sum>(equation, each(detail::Size{}), to);
      return detail::map_as<ComputeType<T>>(row, fn::Cast<T>{}, sum, to, sum);
    } else if constexpr (Order == 1) {
      return reduce<Sum>(equation, each(fn::Abs{}), to);
    } else if constexpr (Order == infinite_norm) {
      return reduce<Max>(equation, each(fn::Abs{}), to);
    } else if constexpr (std::is_floating_point_v<T>) {
      const std::string squares = all + "," + std::string(equation);
      const DynamicTensor sum = einsum(squares, x, x, to);
      return detail::map_as<T>(row, detail::Root{}, sum, to, sum);
    } else {
      using R = PartType<T>;
      using Wide = PartType<ComputeType<T>>;
      const DynamicTensor sum = reduce<Sum>(equation, each(detail::SquaredSize{}), to);
      return detail::map_as<Wide>(row, detail::RootAs<R>{}, sum, to, sum);
    }
  });
}
template <Element T>
DynamicTensor logsumexp(std::string_view equation, const DynamicTensor& x,
                        const CallOptions& call = Where::here()) {
  static_assert(
      RealElement<T>,
      "[tessera] log-sum-exp is for floating-point tensors, and this one is not; use cast first");
  detail::require_type<T>(x, call.sharded_site("logsumexp"));
  return detail::of_several(call, [&](const CallOptions& each) {
    const DynamicTensor largest = reduce<Max>(equation, x, each.step());
    const DynamicTensor below =
        detail::map_as<T>(detail::spread_text(equation), detail::ExpBelow{}, x, each, x, largest);
    const DynamicTensor total = reduce<Sum>(equation, below, each);
    const std::string kept = to_text(parse(equation).result);
    return detail::map_mixed<ComputeType<T>, T>(
        kept + "," + kept + "->" + kept, detail::LogPlus{}, total.sharding(),
        each.step().site(detail::function_name<detail::LogPlus>()), total, largest);
  });
}

}  // namespace tessera
