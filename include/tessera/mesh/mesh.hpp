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
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/base/math.hpp>
#include <tessera/base/text/type_name.hpp>
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

namespace detail {
/// Throws MeshError unless an axis of this size has processes, and with it the mesh, of `processes`
/// until here, fewer than 2^31.
constexpr void require_size(std::string_view axis, std::int64_t size, std::int64_t& processes,
                            Where where = {}) {
  if (size < 1)
    throw MeshError("axis " + std::string(axis) + " has size " + std::to_string(size) +
                        "; every mesh axis has at least one process; give 1 or more",
                    where);
  processes = saturating_mul(processes, size);
  if (processes > 0x7fff'ffff)
    throw MeshError("a mesh with axis " + std::string(axis) + " of size " + std::to_string(size) +
                        " has " + std::to_string(processes) +
                        " processes or more; a mesh has fewer than 2^31; give smaller sizes",
                    where);
}
/// Returns the shape of M with the given sizes, one per axis.
template <class M> constexpr MeshShape shape_of(const std::int64_t* given) {
  MeshShape shape;
  std::int64_t processes = 1;
  constexpr auto fixed = M::fixed_sizes();
  for (int a = 0; a < M::rank; ++a) {
    require_size(M::names()[a], given[a], processes);
    shape.push_back(static_cast<int>(given[a]));
    if (fixed[a] != dynamic && fixed[a] != shape[a])
      throw MeshError("axis " + std::string(M::names()[a]) + " is declared Axis<" +
                      std::to_string(fixed[a]) + "> but is given size " + std::to_string(shape[a]) +
                      "; give the declared size, or declare it Axis<>");
  }
  return shape;
}
}  // namespace detail

/// A MeshShape whose type says which mesh it belongs to.
template <class M> struct MeshSizes {
  MeshShape shape;

  constexpr MeshSizes() = default;
  constexpr MeshSizes(const MeshShape& of_mesh) : shape(of_mesh) {}  // NOLINT: it is one
  /// Takes sizes that are known when the program runs, one per axis; throws MeshError as sizes<M>.
  MeshSizes(const std::vector<int>& sizes) {  // NOLINT: make_mesh<M>(env, sizes)
    if (static_cast<int>(sizes.size()) != M::rank)
      throw MeshError("a mesh of " + std::to_string(M::rank) + " axes is given " +
                      std::to_string(sizes.size()) + " sizes; give one for each axis");
    std::int64_t given[M::rank];
    for (int a = 0; a < M::rank; ++a) given[a] = sizes[static_cast<std::size_t>(a)];
    shape = detail::shape_of<M>(given);
  }
};

/// Returns the shape of M with the given sizes, one per axis; throws MeshError when an Axis<N>
/// disagrees.
template <class M, class... Size>
  requires(std::is_convertible_v<Size, std::int64_t>&&...)
constexpr MeshSizes<M> sizes(Size... size) {
  static_assert(sizeof...(Size) == M::rank,
                "[tessera] sizes<Mesh>(...) is given another number of sizes than the mesh has "
                "axes; give one for each axis");
  if constexpr (sizeof...(Size) == M::rank) {
    const std::int64_t given[] = {static_cast<std::int64_t>(size)...};
    return detail::shape_of<M>(given);
  } else {  // the error has been reported
    MeshShape shape;
    while (shape.rank() < M::rank) shape.push_back(1);
    return shape;
  }
}
/// Returns sizes that are known when the program runs.
template <class M> MeshSizes<M> sizes(const std::vector<int>& given) { return given; }
}  // namespace tessera
