// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Variances and standard deviations over dimensions, and means with them.
///
///     auto v = variance<"bsm->bs">(x);       // ddof = 1 divides by n - 1
///     auto [m, w] = mean_and_variance<"bsm->bs">(x);
///     DynamicTensor d = standard_deviation<float>("bsm->bs", DynamicTensor(x));
///
/// Laws: a variance is computed from distances to means, so that digits do not cancel; for half
/// types all is computed, and sent, in float, and rounded once, at the end.
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <tessera/kernel/rows/moments.hpp>
#include <tessera/op/elements/arithmetic.hpp>
#include <tessera/op/elements/cast.hpp>
#include <tessera/op/elements/dynamic_map.hpp>
#include <tessera/op/elements/functions.hpp>
#include <tessera/op/reduce.hpp>
#include <tessera/op/to_host.hpp>
#include <tessera/plan/op/rows/moments.hpp>

namespace tessera {
namespace detail {
/// Half types, which are computed in float.
template <class T> inline constexpr bool short_type = tessera::detail::is_short(dtype_of<T>);

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
                     const CallOptions& call, const A&... x) {
  return map_dynamic<T>(equation, f, like.sharding(), call.step().site(function_name<F>()), x...);
}
/// Returns "bs->bs" of "bsv->bs".
inline std::string result_text(std::string_view equation) {
  const std::string kept = to_text(parse(equation).result);
  return kept + "->" + kept;
}

/// Whether elements T have variances; where they have none, to ask is an error.
template <class T> struct Varies {
  static constexpr bool value = RealElement<T> || ComplexElement<T>;
  static_assert(value,
                "[tessera] variances are for floating-point and complex tensors, and this one is "
                "neither; use cast first");
};

/// How variances are made.
template <Equation E, bool WithMean> struct MomentsBy {
  static constexpr ops::Moments make(const TensorDescs&) { return {parse(E.view()), WithMean}; }
};
template <class T> void use_moments() {
  if constexpr (Varies<T>::value) {
    use_tensor_of<ComputeType<T>>();
    use_tensor_of<PartType<ComputeType<T>>>();
    use_kernels<MomentsKernels, T>();
  }
}
/// Returns the variance, in float for half types, before the factor n / (n - ddof).
template <Equation E, class Out, class Bound, class A>
auto spread(const A& x, const CallOptions& call) {
  using Call = Typed<MomentsBy<E, false>, Out, A>;
  use_moments<typename A::value_type>();
  return run_typed<Call, Bound>(E.view(), call, Call::operation, {&x.core()});
}
/// Returns the mean, and after it that variance.
template <Equation E, class Out, class Bound, class A>
auto mean_and_spread(const A& x, const CallOptions& call) {
  using Call = Typed<MomentsBy<E, true>, Out, A>;
  using Mean = typename ResultOf<Call, 1>::type;
  use_moments<typename A::value_type>();
  const auto made = run_all(Call::operation, {&x.core()},
                            fresh_typed_site<Call, Bound>(E.view(), call, x.core()));
  return std::tuple<Mean, typename Call::result>(Mean(made[1]), typename Call::result(made[0]));
}
/// Returns n / (n - ddof), or NaN.
inline double spread_factor(const Terms& terms, const Extents& extents, Index ddof) {
  const Index n = reduced_count(terms, extents);
  return n > ddof ? static_cast<double>(n) / static_cast<double>(n - ddof)
                  : std::numeric_limits<double>::quiet_NaN();
}

/// Gives a spread of x its factor, and the type of x's parts.
template <Equation E, class A, class S>
auto as_variance(const A& x, const S& spread, Index ddof, Where where) {
  using R = PartType<typename A::value_type>;
  const double factor = spread_factor(parse(E.view()), x.extents(), ddof);
  if constexpr (short_type<R>)
    return map(ScaledAs<R>{factor}, spread, where);
  else
    return factor == 1 ? spread : spread * static_cast<R>(factor);
}
}  // namespace detail

/// Returns the mean of |x - mean|^2 over the n elements of the dimensions that E drops, times n /
/// (n - ddof); NaN where n <= ddof. Floating or complex elements. Communication: two reductions of
/// the result's size over the axes that split these dimensions, and none where they are whole; no
/// temporary of x's size. Collective over the mesh.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto variance(const A& x, Index ddof = 0, const CallOptions& call = Where::here()) {
  if constexpr (detail::Varies<typename A::value_type>::value)
    return detail::of_several(call, [&](const CallOptions& each) {
      return detail::as_variance<E>(x, detail::spread<E, Out, Bound>(x, each), ddof, each.where());
    });
  else
    return detail::Unknown<A>();
}
/// Returns the mean over the n elements of the dimensions that E drops, and the variance, read in
/// one pass: a tuple. Communication, errors: as variance. Collective over the mesh.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto mean_and_variance(const A& x, Index ddof = 0, const CallOptions& call = Where::here()) {
  using T = typename A::value_type;
  if constexpr (detail::Varies<T>::value) {
    const auto [mean, spread] = detail::mean_and_spread<E, Out, Bound>(x, call);
    const auto variance = detail::as_variance<E>(x, spread, ddof, call.where());
    if constexpr (detail::short_type<T>)
      return std::tuple(cast<T>(mean, call.where()), variance);
    else
      return std::tuple(mean, variance);
  } else {
    return detail::Unknown<A>();
  }
}
/// Returns the square root of the variance. Communication, errors: as variance.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto standard_deviation(const A& x, Index ddof = 0, const CallOptions& call = Where::here()) {
  using T = typename A::value_type;
  return detail::of_several(call, [&](const CallOptions& each) {
    if constexpr (detail::short_type<T>)
      return map(detail::RootAs<T>{detail::spread_factor(parse(E.view()), x.extents(), ddof)},
                 detail::spread<E, Out, Bound>(x, each), each.where());
    else
      return map(detail::Root{}, variance<E, Out, Bound>(x, ddof, each), each.where());
  });
}

/// Over all dimensions: scalar tensors, the same on every process.
template <TypedTensor A>
auto variance(const A& x, Index ddof = 0, const CallOptions& call = Where::here()) {
  return variance<detail::total_equation(A::rank)>(x, ddof, call);
}
template <TypedTensor A>
auto mean_and_variance(const A& x, Index ddof = 0, const CallOptions& call = Where::here()) {
  return mean_and_variance<detail::total_equation(A::rank)>(x, ddof, call);
}
template <TypedTensor A>
auto standard_deviation(const A& x, Index ddof = 0, const CallOptions& call = Where::here()) {
  return standard_deviation<detail::total_equation(A::rank)>(x, ddof, call);
}

namespace detail {
/// The variance before its factor and, `with_mean`, the mean; without a sharding theirs is deduced.
template <class T>
std::vector<TensorCore> spread(std::string_view equation, bool with_mean, const DynamicTensor& x,
                               const CallOptions& call) {
  use_moments<T>();
  ops::Moments operation{parse(equation), with_mean};
  operation.out = call.out() != nullptr ? *call.out() : operation.deduced({x.desc()});
  return run_all(operation, {&x.core()}, call.sharded_site(equation));
}
/// Gives a variance its factor and its type, R.
template <class R>
DynamicTensor as_variance(std::string_view equation, const DynamicTensor& x,
                          const DynamicTensor& spread, Index ddof, const CallOptions& call) {
  if (!short_type<R> && ddof == 0) return spread;
  const double factor = spread_factor(parse(equation), x.extents(), ddof);
  const std::string row = result_text(equation);
  if constexpr (short_type<R>) {
    return map_as<ComputeType<R>>(row, ScaledAs<R>{factor}, spread, call, spread);
  } else {
    const fn::Fixed<fn::Multiply, 1, R> scale{{}, static_cast<R>(factor)};
    return map_as<R>(row, scale, spread, call, spread);
  }
}
}  // namespace detail

/// These overloads take everything but the element type T at run time; without a sharding the
/// result's is deduced. They throw UsageError when x has other elements.
template <Element T>
DynamicTensor variance(std::string_view equation, const DynamicTensor& x, Index ddof = 0,
                       const CallOptions& call = Where::here()) {
  using R = PartType<T>;
  detail::require_type<T>(x, call.sharded_site("variance"));
  return detail::of_several(call, [&](const CallOptions& each) {
    const DynamicTensor spread(detail::spread<T>(equation, false, x, each)[0]);
    return detail::as_variance<R>(equation, x, spread, ddof, each);
  });
}
template <Element T>
std::tuple<DynamicTensor, DynamicTensor> mean_and_variance(
    std::string_view equation, const DynamicTensor& x, Index ddof = 0,
    const CallOptions& call = Where::here()) {
  detail::require_type<T>(x, call.fresh_sharded_site("mean_and_variance"));
  const auto made = detail::spread<T>(equation, true, x, call);
  DynamicTensor mean(made[1]);
  if constexpr (detail::short_type<T>)
    mean = detail::map_as<ComputeType<T>>(detail::result_text(equation), fn::Cast<T>{}, mean, call,
                                          mean);
  return {mean, detail::as_variance<PartType<T>>(equation, x, DynamicTensor(made[0]), ddof, call)};
}
template <Element T>
DynamicTensor standard_deviation(std::string_view equation, const DynamicTensor& x, Index ddof = 0,
                                 const CallOptions& call = Where::here()) {
  using R = PartType<T>;
  detail::require_type<T>(x, call.sharded_site("standard_deviation"));
  const std::string row = detail::result_text(equation);
  return detail::of_several(call, [&](const CallOptions& each) {
    if constexpr (detail::short_type<R>) {
      const DynamicTensor spread(detail::spread<T>(equation, false, x, each)[0]);
      const double factor = detail::spread_factor(parse(equation), x.extents(), ddof);
      return detail::map_as<ComputeType<R>>(row, detail::RootAs<R>{factor}, spread, each, spread);
    } else {
      const DynamicTensor v = variance<T>(equation, x, ddof, each);
      return detail::map_as<R>(row, detail::Root{}, v, each, v);
    }
  });
}

}  // namespace tessera
