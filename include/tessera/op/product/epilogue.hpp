// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Elementwise work that is part of a product: it runs on the finished product before it is
/// delivered, in place, in one kernel, so that no intermediate tensor is made.
///
///     auto h = einsum<"bsm,mh->bsh">(x, w, epilogue(fn::Gelu{}).bias(b));        // gelu(x w + b)
///     auto y = einsum<"bsh,hm->bsm">(h, v, epilogue().scale(0.5f).residual(x));  // x + h v / 2
///     auto z = einsum<"ik,kj->ij">(a, c, then(Clip{}, limit));                   // any functor
///
/// Laws: equals the same functions applied to the product one after the other, to rounding; the
/// communication is the product's, and that of extras whose sharding differs from the result's. A
/// product of half types is float until the function has acted, for 4 bytes of workspace an
/// element, and what gathers it sends floats; the result is rounded once. Differentiated, the
/// product is a tensor of its own, rounded to its type.
#include <tuple>

#include <tessera/kernel/functions/arithmetic.hpp>
#include <tessera/op/call/scalar.hpp>
#include <tessera/op/elements/map.hpp>
#include <tessera/op/product/einsum.hpp>

namespace tessera {
namespace detail {

/// A function and the tensors that it takes beside the product.
template <class F, class... Extra> struct ProductEpilogue {
  F function;
  std::tuple<const Extra&...> extras;
};
}  // namespace detail

/// Returns the epilogue f(product, extras...): the extras line up with the result's dimensions from
/// the right, and an extent of 1 stretches. Throws nothing of its own.
template <class F, TypedTensor... Extra>
detail::ProductEpilogue<F, Extra...> then(const F& f, const Extra&... extras) {
  return {f, std::tuple<const Extra&...>(extras...)};
}

namespace detail {
struct Nothing {};  // stands for a tensor or a number that is not given
template <class Activation, class T>
concept Activates = std::is_same_v<Activation, Nothing> ||
    requires(const Activation& f, const T& value) {
  f(value);
};

/// scale * product, plus a bias, under an activation, plus a residual: those that are given, in
/// this order.
template <class Activation, class Scale, bool HasBias, bool HasResidual> struct AffineEpilogue {
  Activation activation;
  Scale factor;  ///< an element of the type in which the product's elements are computed

  template <class T, std::same_as<T>... Extra>
    requires(Activates<Activation, T> && sizeof...(Extra) == HasBias + HasResidual)
  KOKKOS_FUNCTION T operator()(T product, Extra... extra) const {
    const T value = before(product, extra...);
    if constexpr (std::is_same_v<Activation, Nothing>)
      return after(value, extra...);
    else
      return after(static_cast<T>(activation(value)), extra...);
  }
  // The ways of the activation (kernel/functions/number.hpp).
  template <class W, class T, std::same_as<T>... Extra>
  requires HasWay<Activation, W, T> KOKKOS_FORCEINLINE_FUNCTION bool fits(W way, T product,
                                                                          Extra... extra) const {
    return activation.fits(way, before(product, extra...));
  }
  template <class W, class T, std::same_as<T>... Extra>
    requires HasWay<Activation, W, T> KOKKOS_FORCEINLINE_FUNCTION T by(W way, T product,
                                                                       Extra... extra)
  const { return after(static_cast<T>(activation.by(way, before(product, extra...))), extra...); }

 private:
  /// The argument of the activation.
  template <class T, class... Extra>
  KOKKOS_FORCEINLINE_FUNCTION T before(T product, [[maybe_unused]] const Extra&... extra) const {
    T value = product;
    if constexpr (!std::is_same_v<Scale, Nothing>)
      value = fn::Multiply{}(value, static_cast<T>(factor));
    if constexpr (HasBias) value = fn::Add{}(value, first(extra...));
    return value;
  }
  template <class T, class... Extra>
  KOKKOS_FORCEINLINE_FUNCTION T after(T value, [[maybe_unused]] const Extra&... extra) const {
    if constexpr (HasResidual)
      return fn::Add{}(last(extra...), value);
    else
      return value;
  }
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T first(T x, T = T{}) { return x; }
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T last(T x) { return x; }
  template <class T> KOKKOS_FORCEINLINE_FUNCTION static T last(T, T y) { return y; }
};

/// residual + activation(scale * product + bias), or some of these. Made by epilogue().
template <class Activation, class Scale, class Bias, class Residual> class EpilogueBuilder {
 public:
  static constexpr bool has_bias = !std::is_same_v<Bias, detail::Nothing>;
  static constexpr bool has_residual = !std::is_same_v<Residual, detail::Nothing>;

  EpilogueBuilder(const Activation& activation, Scale scale, const Bias& bias,
                  const Residual& residual)
      : activation_(activation), scale_(scale), bias_(bias), residual_(residual) {}

  /// Multiplies the product by a number, an element of its type, before the bias.
  template <class T> EpilogueBuilder<Activation, T, Bias, Residual> scale(T factor) const {
    return {activation_, factor, bias_, residual_};
  }
  /// Adds a tensor before the activation; it lines up with the result from the right.
  template <TypedTensor B> EpilogueBuilder<Activation, Scale, B, Residual> bias(const B& b) const {
    return {activation_, scale_, b, residual_};
  }
  /// Adds a tensor after the activation; it lines up with the result from the right.
  template <TypedTensor R> EpilogueBuilder<Activation, Scale, Bias, R> residual(const R& r) const {
    return {activation_, scale_, bias_, r};
  }
  /// Returns the function and its tensors, for products of elements T. Throws UsageError when the
  /// number is no such element.
  template <class T> auto make(CallSite site) const {
    const auto factor = [&] {
      if constexpr (std::is_same_v<Scale, detail::Nothing>)
        return scale_;
      else
        return detail::scalar_as<ComputeType<T>>(scale_, site);
    }();
    const detail::AffineEpilogue<Activation, std::decay_t<decltype(factor)>, has_bias, has_residual>
        f{activation_, factor};
    if constexpr (has_bias && has_residual)
      return then(f, bias_, residual_);
    else if constexpr (has_bias)
      return then(f, bias_);
    else if constexpr (has_residual)
      return then(f, residual_);
    else
      return then(f);
  }

 private:
  Activation activation_;
  Scale scale_;
  const Bias& bias_;
  const Residual& residual_;
};

inline constexpr Nothing nothing{};
}  // namespace detail

/// Returns an epilogue to be built up: epilogue(fn::Gelu{}).scale(0.5f).bias(b).residual(x). It
/// refers to the tensors, so use it in the call of the product. Throws nothing of its own.
template <class Activation = detail::Nothing>
detail::EpilogueBuilder<Activation, detail::Nothing, detail::Nothing, detail::Nothing> epilogue(
    const Activation& activation = {}) {
  return {activation, {}, detail::nothing, detail::nothing};
}

namespace detail {
/// How a product with the epilogue f(product, extras...) is made; T is the element type of the
/// product.
template <Equation E, class F, class T, class... Extra> struct EpilogueBy {
  using function = FunctionResult<F, InEpilogue, T, typename Extra::value_type...>;
  using type = typename function::type;
  static consteval bool said() {
    static_assert(sizeof...(Extra) + 2 <= max_operands,
                  "[tessera] a product with an epilogue has more than eight operands; give fewer");
    return true;
  }
  static_assert(said());
  static constexpr ops::Einsum make(const TensorDescs&) {
    return {parse(E.view()), {}, true, dtype_of<type>};
  }
};
template <Equation E, class Out, class F, class A, class B, class... Extra>
using TypedEpilogue =
    Typed<EpilogueBy<E, F, typename A::value_type, Extra...>, Out, A, B, Extra...>;
}  // namespace detail

/// Returns the product of a and b with an epilogue: f(product, extras...) elementwise. The product
/// is finished before the function acts. Communication: the product's, and a reshard of each extra
/// whose sharding differs from the result's. Collective over the mesh. Throws ShapeError when
/// extents disagree.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor B,
          class F, class... Extra>
auto einsum(const A& a, const B& b, const detail::ProductEpilogue<F, Extra...>& last,
            const CallOptions& call = Where::here()) {
  using Typed = detail::TypedEpilogue<E, Out, F, A, B, Extra...>;
  if constexpr (!Typed::by::function::callable) {
    return typename Typed::result();
  } else {
    detail::OperandList operands{&a.core(), &b.core()};
    std::apply([&](const auto&... extra) { (operands.push_back(&extra.core()), ...); },
               last.extras);
    using Runner = detail::EpilogueRunner<typename Typed::type, F, typename A::value_type,
                                          typename Extra::value_type...>;
    return typename Typed::result(
        detail::run({Typed::operation,
                     operands,
                     detail::typed_site<Typed, Bound>(E.view(), call, a.core()),
                     {.kernel = Runner::kernel(last.function)}}));
  }
}
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor B,
          class... Parts>
auto einsum(const A& a, const B& b, const detail::EpilogueBuilder<Parts...>& last,
            const CallOptions& call = Where::here()) {
  using T = typename A::value_type;
  return einsum<E, Out, Bound>(a, b, last.template make<T>({E.view(), call.where()}), call);
}
}  // namespace tessera
