// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What the type of a tensor says by itself, for dry plans: no need for
/// tensor/sharded_tensor.hpp, with its memory and Kokkos.
///
///     template <class... Dims> using Tensor = ShardedTensor<float, Grid, P<Dims...>>;
///     detail::TensorFacts<Tensor<data, _, model>>::sharding() == Sharding{{0}, {}, {1}};
#include <type_traits>

#include <tessera/base/dtype.hpp>
#include <tessera/spec/partition_spec.hpp>

namespace tessera {

template <class T, class M, class S> class ShardedTensor;

namespace detail {
/// Instantiated only for a T that is no element type; T is the fact of the message. Here and in all
/// such messages the assertion stands in a function and not in the class itself, since clang
/// discards a class whose assertion fails, and more messages would follow.
template <class T> struct NoElement {
  static consteval bool said() {
    static_assert(
        Element<T>,
        "[tessera] a tensor cannot hold elements of this type; the element types are half, "
        "bfloat16, float, double, tessera::complex<float>, tessera::complex<double>, "
        "std::int8_t to std::int64_t, std::uint8_t to std::uint64_t and bool; "
        "name one of them");
    return true;
  }
};
/// The element type of a tensor of T: where T is no element type, which has been reported, another
/// type replaces it, so that no further message follows.
template <class T> struct ElementsOf {
  using type = float;
  static constexpr bool known = NoElement<T>::said();
};
template <Element T> struct ElementsOf<T> {
  using type = T;
  static constexpr bool known = true;
};

template <class X> struct IsShardedTensor : std::false_type {};
template <class T, class M, class S>
struct IsShardedTensor<ShardedTensor<T, M, S>> : std::true_type {};

template <class S> inline constexpr bool unfounded_spec = false;
template <class S> inline constexpr bool unfounded_spec<Unfounded<S>> = true;
/// False for a tensor's type that was made up for a call with a mistake.
template <class X> inline constexpr bool founded = true;
template <class T, class M, class S>
inline constexpr bool founded<ShardedTensor<T, M, Unfounded<S>>> = false;

template <class Tensor> struct TensorFacts;
template <class X> inline constexpr bool founded<TensorFacts<X>> = founded<X>;
template <class T, class M, class S> struct TensorFacts<ShardedTensor<T, M, S>> {
  static_assert(ElementsOf<T>::known);
  static_assert(demand_spec<M, S>());
  using value_type = typename ElementsOf<T>::type;  // T
  using mesh_type = M;
  /// Returns what the type says; a dimension that it leaves open is {open_axis}.
  static constexpr const Sharding& sharding() { return lower<M, S>(); }
  static constexpr bool open = has_open(lower<M, S>());
  static constexpr int rank = lower<M, S>().rank();
};
}  // namespace detail

/// X is a ShardedTensor, or one stored with its halo (op/halo/halo_tensor.hpp).
template <class X>
concept TypedTensor = detail::IsShardedTensor<X>::value;

/// X is a ShardedTensor of which some dimensions are Open.
template <class X>
concept OpenTensor = TypedTensor<X> && detail::TensorFacts<X>::open;

template <TypedTensor A> class HaloTensor;

namespace detail {
template <class A> struct IsShardedTensor<HaloTensor<A>> : IsShardedTensor<A> {};
template <class A> struct TensorFacts<HaloTensor<A>> : TensorFacts<A> {};

template <class X> struct TensorOf { using type = X; };
template <class A> struct TensorOf<HaloTensor<A>> { using type = A; };
}  // namespace detail

/// The ShardedTensor that X holds, however it is stored.
template <TypedTensor X> using TensorOf = typename detail::TensorOf<X>::type;

}  // namespace tessera
