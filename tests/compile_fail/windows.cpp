// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CASE letters: a convolution has a batch in input and result
// CASE no_spatial: a convolution has a batch in input and result
// CASE unfinished_kernel: an unfinished partial value is used as a value
// CASE both_unfinished: both operands of a product are unfinished sums
// CASE open_axis: the result is Unreduced over an axis that splits no reduced dimension
// CASE types: the operands have different element types
// CASE gradient_letters: the equation gives a tensor another number of dimensions than it has
// CASE bool_window: the sum and the product of truth values are not truth values
// CASE unfinished_window: an unfinished partial value is used as a value
// CASE window_out_rank: the spec of the result has another number of entries
// CASE select_sum: select_and_scatter selects the greatest
// CASE gradient_of_product: this windowed reduction has no gradient; Sum, Mean, Max and Min have one
// CASE unfinished_gradient: an unfinished partial value is used as a value
// CASE source_rank: tensors that are put together have different numbers of dimensions
// CASE source_type: the tensor and its updates have different element types
// CASE dynamic_spec: a call with a dynamic tensor names a spec or a contract as a template argument
// CASE strict: the call communicates, has no contract, and its mesh is Strict
// ERRORS each: 1
#include <tessera/tessera.hpp>

using namespace tessera;
namespace grid {
struct rows : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::rows, grid::model;
using Grid = Mesh<rows, model>;
template <class... D> using Tensor = ShardedTensor<float, Grid, P<D...>>;
template <class... D> using Careful = ShardedTensor<float, Strict<Grid>, P<D...>>;

void use(const Tensor<_, rows, _, model>& x, const Tensor<_, _, model, _>& k,
         const Tensor<_, _, _, _, Unreduced<Sum, model>>& open,
         const Tensor<_, _, _, _, Unreduced<Max, model>>& largest,
         const ShardedTensor<double, Grid, P<_, _, _, _>>& wide,
         const ShardedTensor<bool, Grid, P<rows, _>>& truth, const Tensor<rows, _>& plane,
         const Tensor<_, _, _>& cube, const Careful<_, rows, _, _>& careful,
         const Careful<_, _, _, _>& weights, const Tensor<_, rows, _, _>& cut,
         const Tensor<_, _, _, _>& weight) {
  (void)cut, (void)weight;
  (void)x, (void)k, (void)open, (void)largest, (void)wide, (void)truth, (void)plane, (void)cube,
      (void)careful, (void)weights;
  const WindowSettings pairs{.size = {2, 2}};
#if defined(CASE_letters)
  (void)convolve<"bhwi,hwio->hwio">(x, k);
#elif defined(CASE_no_spatial)
  (void)convolve<"bi,io->bo">(plane, plane);
#elif defined(CASE_unfinished_kernel)
  (void)convolve<nhwc>(x, largest);
#elif defined(CASE_both_unfinished)
  (void)convolve<nhwc>(open, open);
#elif defined(CASE_open_axis)
  (void)convolve<nhwc, P<_, _, _, _, Unreduced<Sum, rows>>>(x, k);
#elif defined(CASE_types)
  (void)convolve<nhwc>(x, wide);
#elif defined(CASE_gradient_letters)
  (void)convolve_kernel_gradient<nhwc>(x, cube, {3, 3, 4, 4});
#elif defined(CASE_bool_window)
  (void)reduce_window<Sum>(truth, pairs);
#elif defined(CASE_unfinished_window)
  (void)reduce_window<Sum>(open, {.size = {2, 2, 1, 1}});
#elif defined(CASE_window_out_rank)
  (void)reduce_window<Sum, P<rows>>(plane, pairs);
#elif defined(CASE_select_sum)
  (void)select_and_scatter<Sum>(plane, plane, pairs);
#elif defined(CASE_gradient_of_product)
  (void)reduce_window_gradient<Product>(plane, plane, pairs);
#elif defined(CASE_unfinished_gradient)
  (void)reduce_window_gradient<Mean>(weight, open, {.size = {2, 1, 1, 1}});
#elif defined(CASE_source_rank)
  (void)select_and_scatter<Max>(plane, cube, pairs);
#elif defined(CASE_source_type)
  (void)select_and_scatter<Min>(weight, wide, {.size = {2, 1, 1, 1}});
#elif defined(CASE_dynamic_spec)
  (void)reduce_window<Sum, P<rows, _>>(DynamicTensor(plane), pairs);
#elif defined(CASE_strict)
  (void)convolve<nhwc>(careful, weights);
#else
  (void)convolve<nhwc, P<_, rows, _, _, Unreduced<Sum, model>>>(x, k);
  const Tensor<_, rows, _, _> done = convolve<nhwc>(cut, open);
  const Tensor<_, rows, _, _, Unreduced<Sum, model>> left =
      convolve<nhwc, P<_, rows, _, _, Unreduced<Sum, model>>>(cut, open);
  (void)convolve_input_gradient<nhwc, P<_, rows, _, _, Unreduced<Sum, model>>>(left, weight, {});
  (void)convolve_kernel_gradient<nhwc, P<_, _, _, _, Unreduced<Sum, model>>>(cut, left, {});
  (void)done;
  (void)convolve<nhwc, Deduced, Only<exchanges<rows>>>(careful, weights);
  (void)reduce_window<Any>(truth, pairs);
  (void)reduce_window_gradient<Mean>(plane, plane, pairs);
  (void)reduce_window<Sum>(DynamicTensor(plane), pairs, Sharding{{0}, {}});
#endif
}
