// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A mesh as a type: an ordered list of axes, each a type of the user's. tensor/process_mesh.hpp
/// fills it with processes.
///
///     namespace grid { struct data : Axis<> {}; struct model : Axis<4> {}; }
///     using Grid = Mesh<grid::data, grid::model>;
///     sizes<Grid>(2, 4)                                   // a MeshShape, checked against Axis<4>
///
/// Laws: an axis is its index in the mesh; its name is only for people.
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include <tessera/base/error.hpp>
#include <tessera/base/math.hpp>
#include <tessera/base/type_name.hpp>
#include <tessera/mesh/mesh_shape.hpp>

namespace tessera {

/// The size of an axis that is set when the program starts.
inline constexpr int dynamic = -1;

/// Base of every axis: `struct data : Axis<> {};` leaves the size to run time, `Axis<4>` fixes it.
/// A `static constexpr std::string_view name` in the axis replaces the printed name.
template <int Size = dynamic> struct Axis {
  static_assert(
      Size == dynamic || Size > 0,
      "[tessera] the size of a mesh axis must be positive; write Axis<N> with N >= 1, or Axis<>");
  static constexpr int size = Size;
};

template <class A>
concept MeshAxis = requires {
  requires std::is_same_v<decltype(A::size), const int>;
};

namespace detail {
/// Returns the printed name of an axis.
template <class A> constexpr std::string_view axis_name() {
  if constexpr (requires { std::string_view(A::name); })
    return A::name;
  else
    return type_name<A>();
}

template <class X, class... A> constexpr int index_in() {
  constexpr bool same[] = {std::is_same_v<X, A>..., false};
  for (int i = 0; i < static_cast<int>(sizeof...(A)); ++i)
    if (same[i]) return i;
  return -1;
}
template <class... A> constexpr bool all_different() {
  int first[] = {0, index_in<A, A...>()...};
  for (int i = 0; i < static_cast<int>(sizeof...(A)); ++i)
    if (first[i + 1] != i) return false;
  return true;
}
template <int I, class First, class... Rest> struct TypeAt : TypeAt<I - 1, Rest...> {};
template <class First, class... Rest> struct TypeAt<0, First, Rest...> { using type = First; };
}  // namespace detail

/// A grid of processes whose axes are the types A..., the last one fastest.
template <class... A> struct Mesh {
  static_assert(sizeof...(A) >= 1 && sizeof...(A) <= max_axes,
                "[tessera] a Mesh has 1 to 6 axes; join axes or split the mesh");
  static_assert((MeshAxis<A> && ...),
                "[tessera] every axis of a Mesh derives from tessera::Axis<>; write struct data : "
                "Axis<> {};");
  static_assert(detail::all_different<A...>(),
                "[tessera] a Mesh names an axis twice; each axis stands once");

  static constexpr int rank = sizeof...(A);
  template <class X> static constexpr int index = detail::index_in<X, A...>();
  template <int I> using axis = typename detail::TypeAt<I, A...>::type;

  static constexpr AxisNames names() { return AxisNames{detail::axis_name<A>()...}; }
  /// The sizes fixed by the axes' types; `dynamic` where they are left to run time.
  static constexpr FixedVector<int, max_axes> fixed_sizes() { return {A::size...}; }
};

/// A MeshShape whose type says which mesh it belongs to.
template <class M> struct MeshSizes { MeshShape shape; };

/// Returns the shape of M with the given sizes, one per axis; throws MeshError when an Axis<N>
/// disagrees.
template <class M, class... Size> constexpr MeshSizes<M> sizes(Size... size) {
  static_assert(sizeof...(Size) == M::rank,
                "[tessera] sizes<Mesh>(...) is given another number of sizes than the mesh has "
                "axes; give one for each axis");
  MeshShape shape;
  if (sizeof...(Size) != M::rank) {  // the error has been reported
    while (shape.rank() < M::rank) shape.push_back(1);
    return {shape};
  }
  const std::int64_t given[sizeof...(Size) + 1] = {static_cast<std::int64_t>(size)...};
  std::int64_t processes = 1;
  constexpr auto fixed = M::fixed_sizes();
  for (int a = 0; a < M::rank; ++a) {
    if (given[a] < 1)
      throw MeshError("axis " + std::string(M::names()[a]) + " has size " +
                      std::to_string(given[a]) + "; every mesh axis has at least one process");
    processes = saturating_mul(processes, given[a]);
    if (processes > 0x7fff'ffff)
      throw MeshError("a mesh with axis " + std::string(M::names()[a]) + " of size " +
                      std::to_string(given[a]) + " has " + std::to_string(processes) +
                      " processes or more; a mesh has fewer than 2^31");
    shape.push_back(static_cast<int>(given[a]));
    if (fixed[a] != dynamic && fixed[a] != shape[a])
      throw MeshError("axis " + std::string(M::names()[a]) + " is declared Axis<" +
                      std::to_string(fixed[a]) + "> but is given size " + std::to_string(shape[a]) +
                      "; give the declared size, or declare it Axis<>");
  }
  return {shape};
}
}  // namespace tessera
