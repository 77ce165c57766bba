// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CASE slice_axis: submesh names an axis that the mesh does not have
// CASE element_type: a reshard to another mesh keeps the element type
// CASE dimensions: a reshard to another mesh keeps the number of dimensions
// CASE unfinished_target: the spec of a reshard to another mesh is Unreduced
// CASE contract: the call communicates more than its contract accepts
// CASE strict: the call communicates, has no contract, and its mesh is Strict
// CASE other_mesh: the operands live on different Mesh types
// CASE no_such_coordinate: the Mesh has no such axis
// CASE part_axis: a part fixes an axis that the mesh does not have
// CASE part_twice: a part fixes an axis twice
// CASE part_coordinates: has one coordinate for each axis
// ERRORS each: 1
#include <tessera/tessera.hpp>

using namespace tessera;
namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
struct line : Axis<> {};
}  // namespace grid
using grid::data, grid::model, grid::line;
using Grid = Mesh<data, model>;
using Row = Mesh<line>;
template <class T, class... D> using InRow = ShardedTensor<T, Row, P<D...>>;

void use(const ProcessMesh<Grid>& mesh, const ProcessMesh<Row>& row,
         const ShardedTensor<float, Grid, P<data, model>>& x,
         const ShardedTensor<float, Strict<Grid>, P<data, model>>& guarded) {
  (void)mesh, (void)row, (void)x, (void)guarded;
#if defined(CASE_slice_axis)
  submesh<Mesh<model, line>>(mesh);
#elif defined(CASE_element_type)
  reshard<InRow<double, line, _>>(x, row);
#elif defined(CASE_dimensions)
  reshard<InRow<float, line>>(x, row);
#elif defined(CASE_unfinished_target)
  reshard<InRow<float, _, _, Unreduced<Sum, line>>>(x, row);
#elif defined(CASE_contract)
  reshard<InRow<float, line, _>, Only<gathers<>>>(x, row);
#elif defined(CASE_strict)
  reshard<InRow<float, line, _>>(guarded, row);
#elif defined(CASE_other_mesh)
  x + reshard<InRow<float, line, _>>(x, row);
#elif defined(CASE_no_such_coordinate)
  mesh.coordinate<line>();
#elif defined(CASE_part_axis)
  (void)sizeof(Without<Grid, line>);
#elif defined(CASE_part_twice)
  (void)sizeof(Without<Grid, model, model>);
#elif defined(CASE_part_coordinates)
  mesh.part<data, model>(1);
#else
  (void)submesh<Mesh<model>>(mesh);
  (void)reshard<InRow<float, line, _>>(x, row);
  (void)reshard<InRow<float, line, _>, Only<exchanges<data, model>>>(guarded, row);
  (void)mesh.coordinate<data>();
  (void)mesh.part<data, model>(1, 0);
#endif
}
