// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// target: plan
// CASE unknown_name: Logical names a logical axis for which there is no rule; .* add AxisRule<name, _> to the Rules
// CASE mesh_axis: Logical names a logical axis for which there is no rule
// CASE unknown_unreduced: Logical names a logical axis for which there is no rule
// CASE name_twice: Logical names two dimensions by the same logical axis
// CASE other_mesh: the PartitionSpec names an axis that its Mesh does not have
// ERRORS each: 1
#include <tessera/plan.hpp>

using namespace tessera;
namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
namespace name {
struct batch;
struct embed;
struct width;
}  // namespace name
using grid::data, grid::model, name::batch, name::embed, name::width;
using TwoD = Rules<AxisRule<batch, data>, AxisRule<embed, model>>;

#if defined(CASE_unknown_name)
using Spec = Logical<TwoD, batch, width>;
#elif defined(CASE_mesh_axis)
using Spec = Logical<TwoD, batch, model>;
#elif defined(CASE_unknown_unreduced)
using Spec = Logical<TwoD, batch, Unreduced<Sum, width>>;
#elif defined(CASE_name_twice)
using Spec = Logical<TwoD, embed, embed>;
#elif defined(CASE_other_mesh)
static_assert(detail::demand_spec<Mesh<data>, Logical<TwoD, batch, embed>>());
#else
static_assert(detail::demand_spec<Mesh<data, model>, Logical<TwoD, batch, _, embed>>());
#endif
