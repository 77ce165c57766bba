// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The mesh types of manual mode: their axes, what they say of them, and how two are joined.
#include <tessera/mesh/manual.hpp>

using namespace tessera;
namespace {
struct a : Axis<> {};
struct b : Axis<> {};
struct c : Axis<> {};
using Cube = Mesh<a, b, c>;
template <class A, class B> using Joined = detail::JoinedMesh<A, B>;

using Inner = ManualMesh<Cube, c, a>;
static_assert(std::is_same_v<Inner, Manual<Cube, ManualAxes<a, c>>>);  // in the mesh's order
static_assert(std::is_same_v<ManualMesh<ManualMesh<Cube, c>, a>, Inner>);
static_assert(Inner::rank == 1 && Inner::index<b> == 0 && Inner::index<a> == -1);
static_assert(std::is_base_of_v<Without<Cube, a, c>, Inner>);
static_assert(std::is_base_of_v<Mesh<alone>, ManualMesh<Cube, a, b, c>>);
static_assert(detail::is_manual<Inner> && !detail::is_manual<Cube>);
static_assert(detail::is_strict<ManualMesh<Strict<Cube>, a>> && !detail::is_strict<Inner>);
static_assert(detail::free_axes<Inner>() == AxisList{1});
static_assert(detail::free_axes<Cube>() == AxisList{0, 1, 2});

using OverA = Manual<Cube, ManualAxes<a, c>, Varies<a>>;
using OverC = Manual<Cube, ManualAxes<a, c>, Varies<c>>;
using Both = Manual<Cube, ManualAxes<a, c>, Varies<a, c>>;
using Part = Manual<Cube, ManualAxes<a, c>, Varies<>, Unfinished<c>>;
static_assert(std::is_same_v<Joined<OverA, Inner>::type, OverA>);
static_assert(std::is_same_v<Joined<Inner, OverA>::type, OverA>);
static_assert(std::is_same_v<Joined<OverC, OverA>::type, Both>);
static_assert(detail::is_part_of_sum<Joined<OverA, Part>::type>);
static_assert(!detail::is_part_of_sum<Both> && !detail::is_part_of_sum<Cube>);
static_assert(detail::varying_axes<Part>() == AxisSet{2});
static_assert(Joined<Cube, Cube>::joins && Joined<Both, Both>::joins);
static_assert(!Joined<Cube, Inner>::joins && !Joined<Inner, ManualMesh<Cube, a>>::joins);
static_assert(!Joined<Inner, ManualMesh<Mesh<a, c>, a>>::joins);
}  // namespace
