// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CASE float_indices: the indices are of another element type; indices are int32 or int64
// CASE too_few_indices: a take has one tensor of indices for each letter of its table that the result drops
// CASE dropped_index_letter: a letter of the indices is missing in the result of a take
// CASE unknown_letter: the result has a letter that no operand has
// CASE unfinished_indices: an unfinished partial value is used as a value
// CASE take_open_axis: the result is Unreduced over an axis that splits no reduced dimension
// CASE take_rank: the equation gives a tensor another number of dimensions than it has
// CASE take_dimension: take names a dimension that the tensor does not have
// CASE take_lines_along: the operator runs along a letter that its operand does not have
// CASE take_contract: the call communicates more than its contract accepts
// CASE scatter_other_element: the tensor and its updates have different element types
// CASE scatter_mean: there is no scatter by mean
// CASE scatter_sum_of_truth: truth values have no products and sums|the sum and the product of truth values
// CASE scatter_max_of_complex: complex numbers have no largest and no smallest
// CASE scatter_lost_letter: an elementwise operator or transpose drops a dimension
// CASE scatter_too_few_indices: a scatter for each letter of its result that the updates lack
// CASE scatter_index_letter: a letter of the indices is missing in the result of a take, or in the updates of a scatter
// CASE set_unfinished: an unfinished partial value is used as a value
// CASE one_hot_along: the operator runs along a letter that its operand does not have
// CASE iota_of_truth: truth values do not count
// CASE window_along: the operator runs along a letter that its operand does not have
// CASE window_element: the tensor and its updates have different element types
// CASE window_unfinished: an unfinished partial value is used as a value
// CASE other_mesh: the operands live on different Mesh types
// ERRORS each: 1
#include <tessera/tessera.hpp>

using namespace tessera;
namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
template <class T, class... D> using Tensor = ShardedTensor<T, Grid, P<D...>>;
using Ids = Tensor<std::int32_t, data, _>;

void use(const ProcessMesh<Grid>& mesh, const Tensor<float, model, _>& table, const Ids& ids,
         const Tensor<std::int32_t, data, _, Unreduced<Sum, model>>& open_ids,
         const Tensor<float, data, _, _>& updates,
         const Tensor<float, data, _, Unreduced<Sum, model>>& open,
         const Tensor<bool, data, _>& truth, const Tensor<complex<float>, data, _>& z,
         const ShardedTensor<std::int64_t, Mesh<model, data>, P<data, _>>& elsewhere) {
  (void)mesh, (void)table, (void)ids, (void)open_ids, (void)updates, (void)open, (void)truth,
      (void)z, (void)elsewhere;
#if defined(CASE_float_indices)
  take<"vm,bs->bsm">(table, table);
#elif defined(CASE_too_few_indices)
  take<"vm,bs->bs">(table, ids);
#elif defined(CASE_dropped_index_letter)
  take<"vm,bs->bm">(table, ids);
#elif defined(CASE_unknown_letter)
  take<"vm,bs->bsmx">(table, ids);
#elif defined(CASE_unfinished_indices)
  take<"vm,bs->bsm">(table, open_ids);
#elif defined(CASE_take_open_axis)
  take<"vm,bs->bsm", P<_, _, _, Unreduced<Sum, data>>>(table, ids);
#elif defined(CASE_take_rank)
  take<"vm,b->bm">(table, ids);
#elif defined(CASE_take_dimension)
  take<2>(table, ids);
#elif defined(CASE_take_lines_along)
  take_along_axis<"vm", 'x'>(table, ids);
#elif defined(CASE_take_contract)
  take<"vm,bs->bsm", Deduced, Only<gathers<data>>>(table, ids);
#elif defined(CASE_scatter_other_element)
  scatter<Sum, "vm,bs,bsm->vm">(table, ids, cast<double>(updates));
#elif defined(CASE_scatter_mean)
  scatter<Mean, "vm,bs,bsm->vm">(table, ids, updates);
#elif defined(CASE_scatter_sum_of_truth)
  scatter<Sum, "bs,bs->v">(ids, truth, {3});
#elif defined(CASE_scatter_max_of_complex)
  scatter<Max, "bs,bs->v">(ids, z, {3});
#elif defined(CASE_scatter_lost_letter)
  scatter<Sum, "vm,bs,bsm->v">(table, ids, updates);
#elif defined(CASE_scatter_too_few_indices)
  scatter<Sum, "vm,bs,sbx->vm">(table, ids, updates);
#elif defined(CASE_scatter_index_letter)
  scatter<Sum, "vm,bs,bmx->vm">(table, ids, updates);
#elif defined(CASE_set_unfinished)
  scatter<Set, "bs,bs->v">(ids, open, {3});
#elif defined(CASE_one_hot_along)
  one_hot<float, "bsv", 'x'>(ids, 3);
#elif defined(CASE_iota_of_truth)
  iota<Tensor<bool, data>>(mesh, {3});
#elif defined(CASE_window_along)
  dynamic_slice<"bs", 'x'>(ids, {0}, {1});
#elif defined(CASE_window_element)
  dynamic_update_slice<"bs", 's'>(ids, truth, {0});
#elif defined(CASE_window_unfinished)
  dynamic_update_slice<"bs", 's'>(open, cast<float>(ids), {0});
#elif defined(CASE_other_mesh)
  take<"vm,bs->bsm">(table, elsewhere);
#else
  (void)take_along_axis<"vm", 'v'>(table, ids);
  (void)take<"vm,bs->bsm">(table, ids);
  (void)take<"vm,bs->bsm", P<data, _, _, Unreduced<Sum, model>>>(table, ids, OutOfRange::drop);
  (void)take<"vm,bs->bsm", Deduced, Only<all_reduces<model>>>(table, ids);
  (void)take<0>(open, ids);
  (void)take<"vm,bk->b">(table, ids);
  (void)scatter<Sum, "vm,bs,bsm->vm", P<model, _, Unreduced<Sum, data>>>(table, ids, updates);
  (void)scatter<Set, "bs,bs->v">(ids, truth, {3});
  (void)scatter<Sum, "bs,bs->v">(ids, z, {3});
  (void)one_hot<float, "bvs", 'v', P<data, model, _>>(ids, 3);
  (void)dynamic_slice<"bs", 's'>(open, {0}, {1});
  (void)dynamic_update_slice<"bs", "bs">(ids, ids, {0, 0});
#endif
}
