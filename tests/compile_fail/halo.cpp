// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CASE no_dimension: halo_exchange names a dimension that its tensor does not have, or none
// CASE dimension_beyond: halo_exchange names a dimension that its tensor does not have
// CASE dimension_twice: halo_exchange names a dimension twice
// CASE contract: the call communicates more than its contract accepts
// CASE adjoint_of_bools: truth values have no sums
// CASE together_of_types: tensors that share a halo exchange have different element types
// CASE no_row_of_elements: the elements of a halo tensor that a process owns are not contiguous
// CASE too_few_indices: a GlobalView is called with another number of indices than the tensor has dimensions
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

void use(const Tensor<float, data, model>& x, const Tensor<double, data, model>& z,
         const Tensor<float, data, _, Unreduced<Sum, model>>& open,
         const Tensor<bool, data, model>& truths) {
  (void)x, (void)z, (void)open, (void)truths;
#if defined(CASE_no_dimension)
  halo_exchange<>(x, 1, 1, Boundary::none);
#elif defined(CASE_dimension_beyond)
  halo_exchange<0, 2>(x, 1, 1, Boundary::none);
#elif defined(CASE_dimension_twice)
  halo_exchange<1, 1>(x, 1, 1, Boundary::none);
#elif defined(CASE_contract)
  halo_exchange<Only<exchanges<data>>, 0, 1>(x, 1, 1, Boundary::none);
#elif defined(CASE_adjoint_of_bools)
  halo_adjoint(halo_exchange<0>(truths, 1, 1, Boundary::none));
#elif defined(CASE_together_of_types)
  halo_exchange_together<0>(1, 1, Boundary::none, x, z);
#elif defined(CASE_no_row_of_elements)
  (void)local_view(halo_exchange<0>(x, 1, 1, Boundary::none));
#elif defined(CASE_too_few_indices)
  halo_exchange<0>(x, 1, 1, Boundary::none).global()(1);
#else
  (void)halo_exchange<Only<exchanges<data>>, 0>(x, 1, {2}, Boundary::none);
  (void)halo_exchange_async<Only<exchanges<>>, 0, 1>(x, {1, 2}, 1,
                                                     {Boundary::none, Boundary::periodic}, 0.5f)
      .wait();
  (void)halo_exchange_together<1>(1, 1, Boundary::none, x, x);
  (void)halo_adjoint(halo_exchange<0, 1>(z, 1, 1, Boundary::symmetric)).size();
  halo_exchange<0>(truths, 1, 1, Boundary::none).exchange();
#endif
}
