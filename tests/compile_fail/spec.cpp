// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// target: plan
// CASE wrong_axis: the PartitionSpec names an axis that its Mesh does not have; .* check the spelling
// CASE used_twice: the PartitionSpec uses a mesh axis twice; an axis splits at most one dimension
// CASE used_twice_in_one: the PartitionSpec uses a mesh axis twice
// CASE split_and_partial: Unreduced over an axis that also splits a dimension; an axis does one or the other
// CASE axis_twice_in_mesh: a Mesh names an axis twice; each axis stands once
// CASE no_axis: every axis of a Mesh derives from tessera::Axis
// CASE size_of_axis: the size of a mesh axis must be positive
// CASE sizes_of_mesh: is given another number of sizes than the mesh has axes
// CASE unreduced_in_the_middle: Unreduced stands in the middle of a spec; .*; put it last
// CASE unreduced_twice: Unreduced stands in the middle of a spec
// CASE nine_dimensions: a PartitionSpec has more than 8 entries; a tensor has at most 8 dimensions; merge
// CASE open_result: an entry of this PartitionSpec is Open where nothing is left to choose; a result is open where an operand's type is
// CASE open_plan: an entry of this PartitionSpec is Open where nothing is left to choose; .* the plan of one operator nowhere
// CASE open_letter: the result has a letter that no operand has
// CASE long_equation: an equation has at most 95 characters
// ERRORS each: 1
#include <tessera/plan.hpp>

using namespace tessera;
namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
struct stage : Axis<> {};
struct plain {};
}  // namespace grid
using grid::data, grid::model, grid::stage;
using Grid = Mesh<data, model>;
using Closed = ShardedTensor<float, Grid, P<data, _>>;
using Partly = ShardedTensor<float, Grid, P<data, Open>>;

#if defined(CASE_wrong_axis)
static_assert(detail::demand_spec<Grid, P<data, stage>>());
#elif defined(CASE_used_twice)
static_assert(detail::demand_spec<Grid, P<data, data>>());
#elif defined(CASE_used_twice_in_one)
static_assert(detail::demand_spec<Grid, P<Axes<data, data>, _>>());
#elif defined(CASE_split_and_partial)
static_assert(detail::demand_spec<Grid, P<data, Unreduced<Sum, data>>>());
#elif defined(CASE_axis_twice_in_mesh)
static_assert(Mesh<data, data>::rank == 2);
#elif defined(CASE_no_axis)
static_assert(Mesh<data, grid::plain>::rank == 2);
#elif defined(CASE_size_of_axis)
struct nothing : Axis<0> {};
#elif defined(CASE_sizes_of_mesh)
constexpr auto shape = sizes<Grid>(2);
#elif defined(CASE_unreduced_in_the_middle)
using Middle = P<Unreduced<Sum, data>, _>;
#elif defined(CASE_unreduced_twice)
using Twice = P<_, Unreduced<Sum, data>, Unreduced<Max, model>>;
#elif defined(CASE_nine_dimensions)
static_assert(detail::demand_spec<Grid, P<data, _, _, _, _, _, _, _, _>>());
#elif defined(CASE_open_result)
constexpr auto opened =
    plan<"ik,kj->ij", P<data, Open>>(like<Closed>(8, 8), like<Closed>(8, 8), sizes<Grid>(2, 4));
#elif defined(CASE_open_plan)
constexpr auto opened =
    plan<"ik,kj->ij">(like<Partly>(8, 8), like<Closed>(8, 8), sizes<Grid>(2, 4));
#elif defined(CASE_open_letter)
using Made = detail::TypedEinsum<"ik,kj->iz", Deduced, Partly, Closed>::result;
#elif defined(CASE_long_equation)
constexpr Equation e =
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,"
    "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb->c";
#else
static_assert(detail::demand_spec<Grid, P<data, model>>());
static_assert(detail::demand_spec<Grid, P<Axes<model, data>, _>>());
static_assert(detail::demand_spec<Grid, P<data, Open>>());
using Made = detail::TypedEinsum<"ik,kj->ij", P<data, Open>, Closed, Partly>::result;
static_assert(detail::demand_spec<Grid, P<data, Unreduced<Sum, model>>>());
static_assert(detail::demand_spec<Grid, P<data, _, _, _, _, _, _, _, Unreduced<Sum, model>>>());
constexpr auto shape = sizes<Grid>(2, 4);
constexpr Equation e = "ik,kj->ij";
#endif
