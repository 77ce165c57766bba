// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The dense layer: a product with a matrix, a bias, a function of the elements.
///
///     auto layer = Dense<Here, logical::embed, logical::hidden>::like(make, 6, 8);
///     auto h = dense(layer, x, fn::Gelu{});       // gelu(x weight + bias)
///
/// Laws: dense(layer, x)[..., n] == sum over m of x[..., m] weight[m, n] + bias[n].
#include <optional>
#include <string_view>
#include <type_traits>

#include <tessera/nn/detail/letters.hpp>
#include <tessera/nn/parameters.hpp>
#include <tessera/nn/under.hpp>
#include <tessera/op/elements/functions.hpp>
#include <tessera/op/elements/map.hpp>
#include <tessera/op/product/einsum.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {

/// A matrix from dimension In to dimension Out, and a bias where there is one.
template <class U, class In, class Out> struct Dense {
  typename U::template Tensor<In, Out> weight;
  std::optional<typename U::template Tensor<Out>> bias;
  static constexpr auto fields = Fields<&Dense::weight, &Dense::bias>{};

  /// Returns a layer of `in` inputs and `out` outputs; the bias begins as zero.
  static Dense like(Parameters<typename U::mesh_type>& make, Index in, Index out,
                    bool with_bias = true, double gain = 1) {
    Dense layer;
    layer.weight = make.template tensor<typename U::template Tensor<In, Out>>(
        {in, out}, Initializer::fan_in(in, gain));
    if (with_bias)
      layer.bias =
          make.template tensor<typename U::template Tensor<Out>>({out}, Initializer::zeros());
    return layer;
  }
};

namespace detail {
/// Returns y plus a bias for its last dimensions, where there is one.
template <TypedTensor Y, TypedTensor B>
Y biased(const Y& y, const std::optional<B>& bias, Where where) {
  static constexpr std::string_view added[] = {"*z,z->*z", "*yz,yz->*yz", "*xyz,xyz->*xyz"};
  if (!bias) return y;
  return map<equation_of(Y::rank - B::rank, added[B::rank - 1]), typename Y::spec>(fn::Add{}, y,
                                                                                   *bias, where);
}
/// Stands for no function of the elements.
struct NoActivation {};
template <class F, TypedTensor A> auto activated(const F& f, const A& x, Where where) {
  if constexpr (std::is_same_v<F, NoActivation>)
    return x;
  else
    return map(f, x, where);
}
}  // namespace detail

/// Returns activation(x weight + bias): x is (..., in), the result (..., out) under the spec `Spec`
/// or the one that the product deduces. Communication: that of the einsum: none where the batch, or
/// the weight's output, is split; the weight gathered where its input dimension is; an all-reduce,
/// or a reduce-scatter by `Spec`, where x and weight are split along it. Collective over the mesh.
/// Throws ShapeError when extents disagree.
template <class Spec = Deduced, class U, class In, class Out, TypedTensor A,
          class F = detail::NoActivation>
auto dense(const Dense<U, In, Out>& layer, const A& x, const F& activation = {},
           Where where = Where::here()) {
  const auto y = einsum<detail::last_product(A::rank), Spec>(x, layer.weight, where);
  return detail::activated(activation, detail::biased(y, layer.bias, where), where);
}

}  // namespace tessera
