// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What the type of a tensor says by itself, for plans on paper: tensor/sharded_tensor.hpp, with
/// memory and Kokkos, need not be there.
///
///     template <class... Dims> using Tensor = ShardedTensor<float, Grid, P<Dims...>>;
///     detail::TensorFacts<Tensor<data, _, model>>::sharding() == Sharding{{0}, {}, {1}};
#include <type_traits>

#include <tessera/base/dtype.hpp>
#include <tessera/spec/partition_spec.hpp>

namespace tessera {

template <Element T, class M, class S> class ShardedTensor;

namespace detail {
template <class X> struct IsShardedTensor : std::false_type {};
template <class T, class M, class S>
struct IsShardedTensor<ShardedTensor<T, M, S>> : std::true_type {};

template <class Tensor> struct TensorFacts;
template <class T, class M, class S> struct TensorFacts<ShardedTensor<T, M, S>> {
  static_assert(demand_spec<M, S>());
  using value_type = T;
  using mesh_type = M;
  static constexpr const Sharding& sharding() { return lower<M, S>(); }
  static constexpr int rank = lower<M, S>().rank();
};
}  // namespace detail

/// X is some ShardedTensor.
template <class X>
concept TypedTensor = detail::IsShardedTensor<X>::value;

}  // namespace tessera
