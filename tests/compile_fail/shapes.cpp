// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CASE no_such_dimension_of_update: a dimension is named that the tensor does not have
// CASE element_types: tensors that are put together have different element types
// CASE open_and_finished: tensors that are put together are not Unreduced alike
// CASE opened_reshape: the result is Unreduced where the operand is not
// CASE other_kind: the result is Unreduced where the operand is not
// CASE slice_contract: the call communicates more than its contract accepts
// CASE reshape_contract: the call communicates more than its contract accepts
// CASE strict: the call communicates, has no contract, and its mesh is Strict
// CASE fraction_beside_integers: a fraction stands beside a tensor of integers
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

void use(const Tensor<float, data, model>& x, const Tensor<float, data>& row,
         const Tensor<float, data, _, Unreduced<Sum, model>>& open,
         const Tensor<std::int32_t, data, model>& ints,
         const ShardedTensor<float, Strict<Grid>, P<data, _>>& strict) {
  (void)x, (void)row, (void)open, (void)ints, (void)strict;
#if defined(CASE_no_such_dimension_of_update)
  (void)update<2>(x, x, {0});
#elif defined(CASE_element_types)
  (void)concatenate<0>(x, ints);
#elif defined(CASE_open_and_finished)
  (void)concatenate<0>(x, open);
#elif defined(CASE_opened_reshape)
  (void)reshape<P<data, Unreduced<Sum, model>>>(x, {24});
#elif defined(CASE_other_kind)
  (void)shift<0, P<data, _, Unreduced<Max, model>>>(open, 1);
#elif defined(CASE_slice_contract)
  (void)slice<P<data, model>, Only<exchanges<data>>, 1>(x, {1}, {4});
#elif defined(CASE_reshape_contract)
  (void)reshape<P<data, model>, Only<exchanges<data>>>(x, {4, 6});
#elif defined(CASE_strict)
  (void)roll<0>(strict, 1);
#elif defined(CASE_fraction_beside_integers)
  (void)pad(ints, {1, 1}, {1, 1}, {}, 0.5);
#else
  (void)slice<P<_, data>>(x, {0, 0}, {4, 4});
  (void)slice<P<data, model>, Only<gathers<model>>, 1>(x, {1}, {4});
  (void)roll<1>(x, 1);
  (void)roll<1>(strict, 1);
  (void)roll<0, Deduced, Only<exchanges<data>>>(strict, 1);
  (void)reverse<1, 0>(x);
  (void)update<1>(x, x, {0});
  (void)concatenate<0>(x, x);
  (void)concatenate<0>(open, open);
  (void)pad<P<data, _, Unreduced<Sum, model>>>(open, {1, 1}, {1, 1});
  (void)pad(ints, {1, 1}, {1, 1}, {}, 5);
  (void)shift<0, P<data, _>>(open, 1);
  (void)reshape<P<data, Unreduced<Sum, model>>>(open, {24});
#endif
}
