// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Batch norm over all dimensions but the last, any of which may be split: the statistics are those
/// of the whole batch, on every mesh, or of its places that are valid.
///
///     auto norm = BatchNorm<Here>::like(make, 6);
///     auto [y, mean, variance] = batch_norm(norm, x);         // while training
///     auto z = batch_norm(norm, BatchStatistics<Here>{mean, variance}, x);
///     auto ragged = batch_norm(norm, x, valid);               // valid is (batch, sequence), bool
///
/// Laws: a channel of y with scale 1 and bias 0 has mean 0 and variance v / (v + epsilon); no
/// gradient passes through the statistics that are returned; places that are not valid may be
/// anything, NaN too, and more of them change nothing. Errors: those of the operators that it
/// is made of.
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

#include <tessera/grad/custom_gradient.hpp>
#include <tessera/nn/detail/letters.hpp>
#include <tessera/nn/detail/where_valid.hpp>
#include <tessera/nn/parameters.hpp>
#include <tessera/nn/under.hpp>
#include <tessera/op/elements/arithmetic.hpp>
#include <tessera/op/elements/cast.hpp>
#include <tessera/op/elements/functions.hpp>
#include <tessera/op/elements/map.hpp>
#include <tessera/op/reduce.hpp>
#include <tessera/op/reshard.hpp>
#include <tessera/op/rows/normalize.hpp>
#include <tessera/op/rows/statistics.hpp>
#include <tessera/op/rows/variance.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {

namespace fn {
/// keep x + (1 - keep) y; half types are computed in float.
struct MovedAverage {
  static constexpr std::string_view name = "moved average";
  double keep;
  template <class T, class C = ComputeType<T>>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(T x, T y) const {
    return static_cast<T>(static_cast<C>(keep) * C(x) + static_cast<C>(1 - keep) * C(y));
  }
  template <int I, class T, class C = ComputeType<T>>
  KOKKOS_FORCEINLINE_FUNCTION C derivative(T, T) const {
    return static_cast<C>(I == 0 ? keep : 1 - keep);
  }
};
}  // namespace fn

template <class U, class Channel = logical::channels> struct BatchNorm {
  typename U::template Tensor<Channel> scale, bias;
  static constexpr auto fields = Fields<&BatchNorm::scale, &BatchNorm::bias>{};

  static BatchNorm like(Parameters<typename U::mesh_type>& make, Index channels) {
    using Row = typename U::template Tensor<Channel>;
    return {make.template tensor<Row>({channels}, Initializer::ones()),
            make.template tensor<Row>({channels}, Initializer::zeros())};
  }
};
/// Means and variances of channels.
template <class U, class Channel = logical::channels> struct BatchStatistics {
  typename U::template Tensor<Channel> mean, variance;
  static constexpr auto fields = Fields<&BatchStatistics::mean, &BatchStatistics::variance>{};
  static constexpr auto untrained = fields;

  /// Returns the running statistics after a batch: this one's share is 1 - keep.
  BatchStatistics moved(const BatchStatistics& batch, double keep = 0.9) const {
    return map_tensors(
        [&](const auto& a, const auto& b) { return map(fn::MovedAverage{keep}, a, b); }, *this,
        batch);
  }
};
/// What batch_norm returns while training.
template <class X, class Row> struct BatchNormed {
  X y;
  Row mean, variance;
  static constexpr auto fields =
      Fields<&BatchNormed::y, &BatchNormed::mean, &BatchNormed::variance>{};
};

namespace fn {
/// (x - mean) inverse scale + bias; half types are computed in float.
struct Normalized {
  static constexpr std::string_view name = "normalized";
  template <class T, class C = ComputeType<T>>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(T x, ComputeType<T> mean, ComputeType<T> inverse,
                                           T scale, T bias) const {
    return static_cast<T>((C(x) - mean) * inverse * C(scale) + C(bias));
  }
  template <int I, class T, class C = ComputeType<T>>
  KOKKOS_FORCEINLINE_FUNCTION C derivative(T x, ComputeType<T> mean, ComputeType<T> inverse,
                                           T scale, T) const {
    if constexpr (I == 0) return inverse * C(scale);
    if constexpr (I == 1) return -inverse * C(scale);
    if constexpr (I == 2) return (C(x) - mean) * C(scale);
    if constexpr (I == 3) return (C(x) - mean) * inverse;
    return C(1);
  }
};
/// (x - mean)^2.
struct SquaredApart {
  static constexpr std::string_view name = "square of the distance";
  template <class T, class C = ComputeType<T>>
  KOKKOS_FORCEINLINE_FUNCTION C operator()(T x, ComputeType<T> mean) const {
    return (C(x) - mean) * (C(x) - mean);
  }
  template <int I, class T, class C = ComputeType<T>>
  KOKKOS_FORCEINLINE_FUNCTION C derivative(T x, ComputeType<T> mean) const {
    return C(I == 0 ? 2 : -2) * (C(x) - mean);
  }
};
/// 1 / n, and 0 of none.
template <class C> struct OneOver {
  static constexpr std::string_view name = "one over";
  static constexpr Slope slope = Slope::zero;
  KOKKOS_FORCEINLINE_FUNCTION C operator()(std::int64_t n) const {
    return n > 0 ? C(1) / static_cast<C>(n) : C(0);
  }
};
}  // namespace fn

namespace detail {
/// Returns x with elements of type T.
template <class T, class A> auto as_elements(const A& x) {
  if constexpr (std::is_same_v<T, typename A::value_type>)
    return x;
  else
    return cast<T>(x);
}
/// The letters of batch norm's maps: a row for all places.
constexpr Equation by_channel(int rank, std::string_view pattern) {
  return equation_of(rank - 1, pattern);
}
template <class X, class Row, class S>
X channels_normalized(const X& x, const Row& mean, const Row& inverse, const S& scale,
                      const S& bias) {
  return map<by_channel(X::rank, "*y,y,y,y,y->*y"), typename X::spec>(fn::Normalized{}, x, mean,
                                                                      inverse, scale, bias);
}
/// Returns the gradients of v, scale and bias; `weight` times `over_n` is the scale over the number
/// of places, in float for half types.
template <TypedTensor A, class Row, class S, class W>
std::tuple<A, S, S> batch_norm_gradients(const A& dy, const A& v, const Row& centre,
                                         const Row& inverse, const S& scale, const W& weight,
                                         double over_n) {
  using T = typename A::value_type;
  static constexpr Equation to_row = last_alone(A::rank);
  const auto by_scale =
      sum<to_row, typename S::spec>(map<by_channel(A::rank, "*y,*y,y,y->*y"), typename A::spec>(
          fn::ScaleGradient{}, dy, v, inverse, centre));
  const auto by_bias = sum<to_row, typename S::spec>(widened(dy, Where{}));
  const A by_v = map<by_channel(A::rank, "*y,*y,y,y,y,y,y->*y"), typename A::spec>(
      fn::NormGradient{over_n}, dy, v, inverse, scale, by_scale * weight, centre, by_bias * weight);
  return {by_v, as_elements<T>(by_scale), as_elements<T>(by_bias)};
}
}  // namespace detail

/// Returns (x - mean) / sqrt(variance + epsilon) scale + bias, mean and variance over all
/// dimensions but the last, and these two: x is (..., channels). Communication: two all-reduces of
/// a row of channels over the axes that split the other dimensions, and two on the way back.
/// Collective over the mesh. Source: Ioffe and Szegedy, "Batch normalization" (2015).
template <class U, class Channel, TypedTensor A>
auto batch_norm(const BatchNorm<U, Channel>& layer, const A& x, double epsilon = 1e-5,
                Where where = Where::here()) {
  using S = typename U::template Tensor<Channel>;
  using T = typename A::value_type;
  using C = ComputeType<T>;
  static constexpr Equation to_row = detail::last_alone(A::rank);
  const auto norm = custom_gradient(
      [epsilon](const A& v, const S& scale, const S& bias) {
        const auto [centre, variance] =
            detail::mean_and_spread<to_row, typename S::spec, NoContract>(v, Where{});
        const auto inverse = rsqrt(variance + static_cast<C>(epsilon));
        return with_saved(
            BatchNormed<A, S>{detail::channels_normalized(v, centre, inverse, scale, bias),
                              detail::as_elements<T>(centre), detail::as_elements<T>(variance)},
            v, centre, inverse, scale);
      },
      [](const auto& d, const A& v, const auto& centre, const auto& inverse, const S& scale) {
        const Index n = v.size() / (v.extent(A::rank - 1) > 0 ? v.extent(A::rank - 1) : 1);
        return detail::batch_norm_gradients(d.y, v, centre, inverse, scale,
                                            detail::widened(scale, Where{}),
                                            n > 0 ? 1.0 / static_cast<double>(n) : 0);
      },
      where);
  return norm(x, layer.scale, layer.bias);
}

/// Returns that of the places that are valid, whose mean and variance these are: x is (...,
/// channels), valid (...), bool; y is 0 at all other places. Communication: also one all-reduce of
/// the number of valid places, where they are split; where x and valid are split differently, valid
/// is moved once. Collective over the mesh.
template <class U, class Channel, TypedTensor A, TypedTensor V>
auto batch_norm(const BatchNorm<U, Channel>& layer, const A& x, const V& valid,
                double epsilon = 1e-5, Where where = Where::here()) {
  static_assert(std::is_same_v<typename V::value_type, bool> && V::rank == A::rank - 1,
                "[tessera] batch_norm's mask has another type than bool, or another number of "
                "dimensions; it says of each place of x, all dimensions but the last, whether it "
                "counts; give a tensor of these dimensions");
  using S = typename U::template Tensor<Channel>;
  using T = typename A::value_type;
  using C = ComputeType<T>;
  using Places = typename decltype(max<detail::without_last(A::rank)>(x))::spec;
  using Mask = ShardedTensor<bool, typename A::mesh_type, Places>;
  static constexpr Equation to_row = detail::last_alone(A::rank);
  const auto norm = custom_gradient(
      [epsilon](const A& v, const Mask& mask, const S& scale, const S& bias) {
        const auto over_n = map(fn::OneOver<C>{}, sum(cast<std::int64_t>(mask)));
        const auto mean_of = [&](const auto& each) {
          return map<"y,->y">(fn::Multiply{}, sum<to_row, typename S::spec>(each), over_n);
        };
        const A seen = detail::where_valid(v, mask, Where{});
        const auto centre = mean_of(detail::widened(seen, Where{}));
        const auto variance = mean_of(
            detail::where_valid(map<detail::by_channel(A::rank, "*y,y->*y"), typename A::spec>(
                                    fn::SquaredApart{}, seen, centre),
                                mask, Where{}));
        const auto inverse = rsqrt(variance + static_cast<C>(epsilon));
        const A y = detail::where_valid(
            detail::channels_normalized(seen, centre, inverse, scale, bias), mask, Where{});
        return with_saved(
            BatchNormed<A, S>{y, detail::as_elements<T>(centre), detail::as_elements<T>(variance)},
            seen, mask, centre, inverse, scale, over_n);
      },
      [](const auto& d, const A& seen, const Mask& mask, const auto& centre, const auto& inverse,
         const S& scale, const auto& over_n) {
        const A dy = detail::where_valid(d.y, mask, Where{});
        const auto wide = map<"y,->y">(fn::Multiply{}, detail::widened(scale, Where{}), over_n);
        const auto [by_x, by_scale, by_bias] =
            detail::batch_norm_gradients(dy, seen, centre, inverse, scale, wide, 1);
        return std::tuple(detail::where_valid(by_x, mask, Where{}), zero_gradient, by_scale,
                          by_bias);
      },
      where);
  return norm(x, reshard<typename Mask::spec>(valid, where), layer.scale, layer.bias);
}

/// Returns the same by given statistics: after training. Communication: none. Collective over the
/// mesh.
template <class U, class Channel, TypedTensor A>
A batch_norm(const BatchNorm<U, Channel>& layer, const BatchStatistics<U, Channel>& statistics,
             const A& x, double epsilon = 1e-5, Where where = Where::here()) {
  using C = ComputeType<typename A::value_type>;
  const auto inverse =
      rsqrt(detail::widened(statistics.variance, where) + static_cast<C>(epsilon), where);
  return detail::channels_normalized(x, detail::widened(statistics.mean, where), inverse,
                                     layer.scale, layer.bias);
}

}  // namespace tessera
