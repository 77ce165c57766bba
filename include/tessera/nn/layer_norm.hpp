// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Layer norm and RMS norm over the last dimension, which may be split.
///
///     auto norm = LayerNorm<Here>::like(make, 6);
///     auto y = layer_norm(norm, x);
///     auto z = rms_norm(RmsNorm<Here>::like(make, 6), x);
///     auto w = normed(Norm<Here>::like(make, 6), x);        // either, by whether it has a bias
///
/// Laws: those of op/rows/normalize.hpp. Errors: those of the operators that it is made of.
#include <optional>

#include <tessera/nn/parameters.hpp>
#include <tessera/nn/under.hpp>
#include <tessera/op/rows/normalize.hpp>
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

/// Returns the layer norm of x over its last dimension (op/rows/normalize.hpp): x is (..., size),
/// the result like x. Communication: none where the last dimension is whole; else two all-reduces
/// of a row's number each way, and one more for scale and bias where x's other dimensions are
/// split: by their specs. Collective over the mesh.
template <class U, class Name, TypedTensor A>
A layer_norm(const LayerNorm<U, Name>& layer, const A& x, double epsilon = 1e-5,
             Where where = Where::here()) {
  return layer_norm<typename A::spec>(x, layer.scale, layer.bias, epsilon, where);
}

/// Returns the RMS norm of x: x is (..., size), the result like x. Communication: as layer_norm,
/// one all-reduce of a row's number each way. Collective over the mesh.
template <class U, class Name, TypedTensor A>
A rms_norm(const RmsNorm<U, Name>& layer, const A& x, double epsilon = 1e-6,
           Where where = Where::here()) {
  return rms_norm<typename A::spec>(x, layer.scale, epsilon, where);
}

/// A norm of either kind, for models that come in both: a layer norm where it has a bias, else an
/// RMS norm.
template <class U, class Name = logical::norm> struct Norm {
  typename U::template Tensor<Name> scale;
  std::optional<typename U::template Tensor<Name>> bias;
  static constexpr auto fields = Fields<&Norm::scale, &Norm::bias>{};

  static Norm like(Parameters<typename U::mesh_type>& make, Index size, bool with_bias = true) {
    using Row = typename U::template Tensor<Name>;
    Norm norm{make.template tensor<Row>({size}, Initializer::ones()), {}};
    if (with_bias) norm.bias = make.template tensor<Row>({size}, Initializer::zeros());
    return norm;
  }
};

/// Returns the layer norm or the RMS norm of x: x is (..., size), the result like x. Communication:
/// as layer_norm or rms_norm. Collective over the mesh.
template <class U, class Name, TypedTensor A>
A normed(const Norm<U, Name>& layer, const A& x, double epsilon = 1e-5,
         Where where = Where::here()) {
  return layer.bias ? layer_norm<typename A::spec>(x, layer.scale, *layer.bias, epsilon, where)
                    : rms_norm<typename A::spec>(x, layer.scale, epsilon, where);
}

}  // namespace tessera
