// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A part of a mesh: what is left of it where the coordinates of some axes are fixed. The parts of
/// one set of axes divide the mesh, one for each of their coordinates.
///
///     using Grid = Mesh<stage, data, model>;
///     static_assert(std::is_same_v<Without<Grid, stage>, Mesh<data, model>>);
///     MeshPart{{2, 3}, {1, -1}}.members();   // of 2x3, where the first coordinate is 1: 3, 4, 5
///
/// Laws: a part has the axes that are left in the mesh's order, with their sizes; members() are in
/// the part's order, row-major; the parts of all coordinates have each process once.
#include <type_traits>
#include <vector>

#include <tessera/mesh/axis_list.hpp>
#include <tessera/mesh/contract.hpp>
#include <tessera/mesh/mesh.hpp>
#include <tessera/mesh/mesh_shape.hpp>

namespace tessera {

/// The one axis, of size 1, of a part in which every axis of the mesh is fixed.
struct alone : Axis<1> {};

namespace detail {
/// Meshes of axes K... and of those of A... that are not among F....
template <class Fixed, class Kept, class... A> struct WithoutAxes;
template <class... F, class... K> struct WithoutAxes<void(F...), void(K...)> {
  using type = Mesh<K...>;
};
template <class... F> struct WithoutAxes<void(F...), void()> { using type = Mesh<alone>; };
template <class... F, class... K, class A, class... Rest>
struct WithoutAxes<void(F...), void(K...), A, Rest...>
    : std::conditional_t<index_in<A, F...>() >= 0, WithoutAxes<void(F...), void(K...), Rest...>,
                         WithoutAxes<void(F...), void(K..., A), Rest...>> {};

template <class M, class... F> struct WithoutOf;
template <class... A, class... F> struct WithoutOf<Mesh<A...>, F...> {
  static_assert(
      ((index_in<F, A...>() >= 0) && ...),
      "[tessera] a part fixes an axis that the mesh does not have; name axes of the mesh");
  static_assert(all_different<F...>(),
                "[tessera] a part fixes an axis twice; each axis stands once");
  using type = typename WithoutAxes<void(F...), void(), A...>::type;
};
template <class M, class... F> struct WithoutOf<Strict<M>, F...> {
  using type = Strict<typename WithoutOf<M, F...>::type>;
};
}  // namespace detail

/// The mesh type that is left of M where the axes `Fixed` are fixed; Mesh<alone> where none is.
template <class M, class... Fixed> using Without = typename detail::WithoutOf<M, Fixed...>::type;

/// The processes of a mesh of shape `whole` whose coordinates along some axes are those of `at`;
/// `at` is -1 along the others.
struct MeshPart {
  MeshShape whole;
  Coordinates at;

  constexpr bool fixes(int axis) const { return at[axis] >= 0; }
  /// Returns the sizes of the axes that are left; a size of 1 where there are none.
  constexpr MeshShape shape() const {
    MeshShape left;
    for (int a = 0; a < whole.rank(); ++a)
      if (!fixes(a)) left.push_back(whole[a]);
    if (left.rank() == 0) left.push_back(1);
    return left;
  }
  /// Returns whether a process of the whole mesh is in the part.
  constexpr bool has(const Coordinates& process) const {
    for (int a = 0; a < whole.rank(); ++a)
      if (fixes(a) && process[a] != at[a]) return false;
    return true;
  }
  /// Returns the number in the whole mesh of the part's process `p`.
  constexpr int process(int p) const {
    const Coordinates within = shape().coordinates(p);
    Coordinates all = at;
    for (int a = 0, k = 0; a < whole.rank(); ++a)
      if (!fixes(a)) all[a] = within[k++];
    return whole.process(all);
  }
  /// Returns the same of all its processes, in the part's order.
  constexpr std::vector<int> members() const {
    std::vector<int> all;
    for (int p = 0; p < shape().processes(); ++p) all.push_back(process(p));
    return all;
  }
};

}  // namespace tessera
