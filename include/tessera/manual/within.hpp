// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What a layer is written against within a manual function, when it is written against U outside:
/// each of its tensors has the type that it has there as an argument.
///
///     using Inside = Within<Here, model>;  // a layer Dense<Here, In, Out> enters as a Dense<Inside, In, Out>
///     using Matrix = Inside::Tensor<logical::embed, logical::hidden>;  // outside it is P<_, model>
///     static_assert(std::is_same_v<Matrix::spec, P<_, _>>);
///
/// Laws: Within<U, X...>::Tensor<names...> is what a U::Tensor<names...> enters manual<X...> as.
#include <tessera/manual/detail/entered.hpp>

namespace tessera {

/// U is an Under<...> (nn/under.hpp), or another type with its members.
template <class U, class... X> struct Within {
  using value_type = typename U::value_type;
  using mesh_type = ManualMesh<typename U::mesh_type, X...>;
  using outside = U;
  template <class E, class... Names>
  using Of = typename detail::Entered<typename U::template Of<E, Names...>, X...>::type;
  template <class... Names>
  using Tensor = typename detail::Entered<typename U::template Tensor<Names...>, X...>::type;
  template <class... Names> using Spec = typename Tensor<Names...>::spec;
};

namespace detail {
/// A layer's first parameter, and the same layer of another one.
template <class Layer> struct LayerTypes {
  static constexpr bool known = false;
  using under = void;
};
template <template <class, class...> class Layer, class U, class... More>
  requires(!TypedTensor<U>)
&&requires { typename U::mesh_type; }
struct LayerTypes<Layer<U, More...>> {
  static constexpr bool known = true;
  using under = U;
  template <class V> using of = Layer<V, More...>;
};
template <class A> inline constexpr bool is_layer = LayerTypes<A>::known;

/// Converts to the type of any member.
struct AnyMember {
  template <class T> operator T() const;  // NOLINT: never called
};
template <class A, std::size_t... I> constexpr bool takes_members(std::index_sequence<I...>) {
  return requires { A{(static_cast<void>(I), AnyMember{})...}; };
}
/// Whether a struct has members that are none of its fields, as far as its initialization tells.
template <class A>
inline constexpr bool has_other_members = std::is_aggregate_v<A>&& takes_members<A>(
    std::make_index_sequence<std::remove_cvref_t<decltype(A::fields)>::size + 1>{});
template <class A> using UnderOf = typename LayerTypes<A>::under;
template <class A, class V> using LayerUnder = typename LayerTypes<A>::template of<V>;
}  // namespace detail

}  // namespace tessera
