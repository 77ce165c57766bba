// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The mesh type of tensors within a function of manual mode (manual/manual.hpp): what is left of a
/// mesh where some axes are the caller's business, and over which of these a tensor varies, or is a
/// part of a sum. It is part of the type, so that a wrong claim does not compile.
///
///     using Inner = ManualMesh<Grid, model>;                 // equal over model
///     static_assert(std::is_same_v<Inner, Manual<Grid, ManualAxes<model>, Varies<>, Unfinished<>>>);
///     static_assert(Inner::index<data> == 0 && Inner::index<model> == -1);
///
/// Laws: it has the axes of Without<M, named...>; an operator's result varies where any of its
/// operands does; what is unfinished is an operand of collectives alone.
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <tessera/mesh/axis_list.hpp>
#include <tessera/mesh/contract.hpp>
#include <tessera/mesh/part.hpp>

namespace tessera {

// Axes of a mesh, in its order: those that a manual function names,
template <class... A> struct ManualAxes {};
// those over which a tensor within it has a value of its own at each coordinate,
template <class... A> struct Varies {};
// and those over which it is a part of a sum.
template <class... A> struct Unfinished {};

template <class M, class N, class V = Varies<>, class U = Unfinished<>> struct Manual;
template <class M, class... N, class V, class U>
struct Manual<M, ManualAxes<N...>, V, U> : Without<M, N...> {
  using whole = M;
};
namespace detail {
template <class M, class N, class V, class U>
inline constexpr bool is_strict<Manual<M, N, V, U>> = is_strict<M>;

template <class M, template <class...> class List, std::uint32_t Bits, class Is> struct AxesOfBits;
template <class M, template <class...> class List, std::uint32_t Bits, std::size_t... I>
struct AxesOfBits<M, List, Bits, std::index_sequence<I...>> {
  using type = List<typename M::template axis<nth_in(Bits, static_cast<int>(I))>...>;
};
template <class M, template <class...> class List, std::uint32_t Bits>
using axes_of_bits = typename AxesOfBits<
    M, List, Bits,
    std::make_index_sequence<static_cast<std::size_t>(AxisSet::from_bits(Bits).size())>>::type;

/// What a mesh type says of manual mode, by the numbers of the axes of the whole mesh.
template <class M> struct ManualFacts {
  static constexpr bool manual = false;
  using whole = M;
  static constexpr AxisSet named = {}, varies = {}, unfinished = {};
};
template <class M, class... N, class... V, class... U>
struct ManualFacts<Manual<M, ManualAxes<N...>, Varies<V...>, Unfinished<U...>>> {
  static constexpr bool manual = true;
  using whole = M;
  static constexpr AxisSet named{M::template index<N>...}, varies{M::template index<V>...},
      unfinished{M::template index<U>...};
};
// Variables, which instantiate no class on other meshes.
template <class M> inline constexpr bool is_manual = false;
template <class M, class N, class V, class U>
inline constexpr bool is_manual<Manual<M, N, V, U>> = true;
/// Whether a tensor of this mesh type is a part of a sum.
template <class M> inline constexpr bool is_part_of_sum = false;
template <class M, class N, class V, class U, class... More>
inline constexpr bool is_part_of_sum<Manual<M, N, V, Unfinished<U, More...>>> = true;

/// The manual mesh type of these axes of M, in its order.
template <class M, std::uint32_t N, std::uint32_t V, std::uint32_t U>
using ManualOf = Manual<M, axes_of_bits<M, ManualAxes, N>, axes_of_bits<M, Varies, V>,
                        axes_of_bits<M, Unfinished, U>>;

/// Returns the axes of the whole mesh over which a tensor of this mesh type may differ.
template <class M> constexpr AxisSet varying_axes() {
  return ManualFacts<M>::varies | ManualFacts<M>::unfinished;
}
/// Returns for each axis of a mesh type its number in the whole mesh; empty where none is left.
template <class M> constexpr AxisList free_axes() {
  AxisList axes;
  for (int a = 0; a < ManualFacts<M>::whole::rank; ++a)
    if (!ManualFacts<M>::named.contains(a)) axes.push_back(a);
  return axes;
}

/// The mesh type of the result of an operator on tensors of A and B; `joins`: there is one.
template <class A, class B> struct JoinedMesh {
  static constexpr bool joins = false;
  using type = A;
};
template <class A> struct JoinedMesh<A, A> {
  static constexpr bool joins = true;
  using type = A;
};
template <class M, class N, class V, class U, class W, class X>
  requires(!std::is_same_v<Manual<M, N, V, U>, Manual<M, N, W, X>>)  //
struct JoinedMesh<Manual<M, N, V, U>, Manual<M, N, W, X>> {
  using A = ManualFacts<Manual<M, N, V, U>>;
  using B = ManualFacts<Manual<M, N, W, X>>;
  static constexpr bool joins = true;
  using type = ManualOf<M, A::named.bits, (A::varies | B::varies).bits,
                        (A::unfinished | B::unfinished).bits>;
};

template <class M, class... X> struct ManualMeshOf {
  using Facts = ManualFacts<M>;
  using W = typename Facts::whole;
  static consteval bool said() {
    static_assert(
        ((M::template index<X> >= 0) && ...),
        "[tessera] manual names an axis that the mesh does not have, or that a manual function "
        "around it names already; name axes of the mesh that are still automatic");
    static_assert(sizeof...(X) > 0 && all_different<X...>(),
                  "[tessera] manual names an axis twice, or none; each axis stands once");
    return ((M::template index<X> >= 0) && ...);
  }
  template <bool Known> static constexpr std::uint32_t bits() {
    AxisSet axes = Facts::named;
    if constexpr (Known) (axes.insert(W::template index<X>), ...);
    return axes.bits;
  }
  using type = ManualOf<W, bits<said()>(), 0, 0>;
};
}  // namespace detail

/// The mesh type, within manual<X...>, of a tensor that is equal over these axes.
template <class M, class... X> using ManualMesh = typename detail::ManualMeshOf<M, X...>::type;

}  // namespace tessera
