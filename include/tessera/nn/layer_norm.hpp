// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Layer norm and RMS norm over the last dimension, which may be split.
///
///     auto norm = LayerNorm<Here>::like(make, 6);
///     auto y = layer_norm(norm, x);
///     auto z = rms_norm(RmsNorm<Here>::like(make, 6), x);
///
/// Laws: a row of layer_norm with scale 1 and bias 0 has mean 0 and variance v / (v + epsilon);
/// half types are computed in float and rounded once; both have second derivatives.
#include <tuple>
#include <type_traits>

#include <tessera/grad/custom_gradient.hpp>
#include <tessera/nn/detail/letters.hpp>
#include <tessera/nn/detail/normalize.hpp>
#include <tessera/nn/parameters.hpp>
#include <tessera/nn/under.hpp>
#include <tessera/op/arithmetic.hpp>
#include <tessera/op/cast.hpp>
#include <tessera/op/create_like.hpp>
#include <tessera/op/einsum.hpp>
#include <tessera/op/functions.hpp>
#include <tessera/op/map.hpp>
#include <tessera/op/reduce.hpp>
#include <tessera/op/statistics.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {

template <class U, class Name = logical::norm> struct LayerNorm {
  typename U::template Tensor<Name> scale, bias;
  static constexpr auto fields = Fields<&LayerNorm::scale, &LayerNorm::bias>{};

  /// Returns a norm of rows of `size` elements, of scale 1 and bias 0.
  static LayerNorm like(Parameters<typename U::mesh_type>& make, Index size) {
    using Row = typename U::template Tensor<Name>;
    return {make.template tensor<Row>({size}, Initializer::ones()),
            make.template tensor<Row>({size}, Initializer::zeros())};
  }
};
template <class U, class Name = logical::norm> struct RmsNorm {
  typename U::template Tensor<Name> scale;
  static constexpr auto fields = Fields<&RmsNorm::scale>{};

  static RmsNorm like(Parameters<typename U::mesh_type>& make, Index size) {
    return {make.template tensor<typename U::template Tensor<Name>>({size}, Initializer::ones())};
  }
};

namespace detail {
/// Returns x with elements of type T.
template <class T, class A> auto as_elements(const A& x) {
  if constexpr (std::is_same_v<T, typename A::value_type>)
    return x;
  else
    return cast<T>(x);
}

/// The gradients by x, scale and bias, from dy and what the norm's rows have.
template <bool Centred, class X, class Row, class S>
std::tuple<X, S, S> norm_gradients(const X& dy, const X& x, const Row& mean, const Row& inverse,
                                   const S& scale) {
  using T = typename X::value_type;
  constexpr int lead = X::rank - 1;
  static constexpr Equation to_row = equation_of(lead, "*y,y->*");
  const auto product = map<equation_of(lead, "*y,*y,*,*->*y"), typename X::spec>(
      fn::ScaleGradient{}, dy, x, mean, inverse);
  const auto wide = widened(dy, Where{});
  const auto wide_scale = widened(scale, Where{});
  const auto b = einsum<to_row, typename Row::spec>(product, wide_scale);
  const auto a = [&] {
    if constexpr (Centred)
      return einsum<to_row, typename Row::spec>(wide, wide_scale);
    else
      return mean;  // zeros
  }();
  const Index n = x.extent(lead);
  return {map<equation_of(lead, "*y,*y,*,*,y,*,*->*y"), typename X::spec>(
              fn::NormGradient{n > 0 ? 1.0 / static_cast<double>(n) : 0}, dy, x, mean, inverse,
              scale, a, b),
          as_elements<T>(sum<last_alone(X::rank), typename S::spec>(product)),
          as_elements<T>(sum<last_alone(X::rank), typename S::spec>(wide))};
}
template <class X, class Row, class S>
X normalized(const X& x, const Row& mean, const Row& inverse, const S& scale, const S& bias) {
  return map<equation_of(X::rank - 1, "*y,*,*,y,y->*y"), typename X::spec>(
      fn::Normalized{}, x, mean, inverse, scale, bias);
}
}  // namespace detail

/// Returns (x - mean) / sqrt(variance + epsilon) scale + bias, mean and variance over the last
/// dimension: x is (..., size), the result like x. Communication: none where the last dimension is
/// whole; else two all-reduces of a row's number each way, and one more for scale and bias where
/// x's other dimensions are split: by their specs. Collective over the mesh. Source: Ba, Kiros and
/// Hinton, "Layer normalization" (2016).
template <class U, class Name, TypedTensor A>
auto layer_norm(const LayerNorm<U, Name>& layer, const A& x, double epsilon = 1e-5,
                Where where = Where::here()) {
  using S = typename U::template Tensor<Name>;
  using C = ComputeType<typename A::value_type>;
  static constexpr Equation to_row = detail::without_last(A::rank);
  const auto norm = custom_gradient(
      [epsilon](const A& v, const S& scale, const S& bias) {
        const auto [centre, variance] =
            detail::mean_and_spread<to_row, Deduced, NoContract>(v, Where{});
        const auto inverse = rsqrt(variance + static_cast<C>(epsilon));
        return with_saved(detail::normalized(v, centre, inverse, scale, bias), v, centre, inverse,
                          scale);
      },
      [](const A& dy, const A& v, const auto& centre, const auto& inverse, const S& scale) {
        return detail::norm_gradients<true>(dy, v, centre, inverse, scale);
      },
      where);
  return norm(x, layer.scale, layer.bias);
}

/// Returns x / sqrt(mean of x^2 + epsilon) scale: x is (..., size), the result like x.
/// Communication: as layer_norm, one all-reduce of a row's number each way. Collective over the
/// mesh. Source: Zhang and Sennrich, "Root mean square layer normalization" (2019).
template <class U, class Name, TypedTensor A>
auto rms_norm(const RmsNorm<U, Name>& layer, const A& x, double epsilon = 1e-6,
              Where where = Where::here()) {
  using S = typename U::template Tensor<Name>;
  using C = ComputeType<typename A::value_type>;
  static constexpr Equation to_row = detail::without_last(A::rank);
  const auto norm = custom_gradient(
      [epsilon](const A& v, const S& scale) {
        const auto inverse =
            rsqrt(mean<to_row>(map(detail::SquaredSize{}, v)) + static_cast<C>(epsilon));
        const auto centre = zeros_like(inverse);
        return with_saved(detail::normalized(v, centre, inverse, scale, zeros_like(scale)), v,
                          centre, inverse, scale);
      },
      [](const A& dy, const A& v, const auto& centre, const auto& inverse, const S& scale) {
        const auto all = detail::norm_gradients<false>(dy, v, centre, inverse, scale);
        return std::tuple(std::get<0>(all), std::get<1>(all));
      },
      where);
  return norm(x, layer.scale);
}

}  // namespace tessera
