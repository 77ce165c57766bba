// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CASE fraction_beside_integers: a fraction stands beside a tensor of integers
// CASE number_beside_bool: a number stands beside a tensor of bool
// CASE two_choices: where chooses between numbers of two types
// CASE sum_of_bool: this function is for numbers and its operand is bool
// CASE complex_to_real: complex ones have none; use real\(x\), imag\(x\) or abs\(x\) first
// CASE triangle_of_line: the tensor has no matrices; a triangle is of matrices
// CASE types_for_operands: a map on dynamic tensors names another number of element types
// CASE floor_of_sum: an unfinished partial value is used as a value
// CASE rounding_cast_of_sum: an unfinished partial value is used as a value
// CASE log_of_maximum: an unfinished partial value is used as a value
// CASE open_condition: an unfinished partial value is used as a value
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

void use(const Tensor<float, data>& x, const Tensor<double, data>& wide,
         const Tensor<std::int32_t, data>& n, const Tensor<bool, data>& truth,
         const Tensor<complex<float>, data>& z,
         const Tensor<float, data, Unreduced<Sum, model>>& sum,
         const Tensor<double, data, Unreduced<Sum, model>>& sums,
         const Tensor<float, data, Unreduced<Max, model>>& top,
         const Tensor<bool, data, Unreduced<Any, model>>& any) {
  (void)x, (void)wide, (void)n, (void)truth, (void)z, (void)sum, (void)sums, (void)top, (void)any;
#if defined(CASE_fraction_beside_integers)
  n * 0.5;
#elif defined(CASE_number_beside_bool)
  equal(truth, 1);
#elif defined(CASE_two_choices)
  where(truth, 1.0f, 0);
#elif defined(CASE_sum_of_bool)
  truth + truth;
#elif defined(CASE_triangle_of_line)
  tril(x);
#elif defined(CASE_complex_to_real)
  cast<float>(z);
#elif defined(CASE_types_for_operands)
  (void)map_dynamic<float, double, bool>("i,i->i", fn::Add{}, Sharding{{0}}, DynamicTensor(x),
                                         DynamicTensor(wide));
#elif defined(CASE_floor_of_sum)
  floor(sum);
#elif defined(CASE_rounding_cast_of_sum)
  cast<std::int32_t>(sums);
#elif defined(CASE_log_of_maximum)
  log(top);
#elif defined(CASE_open_condition)
  where(any, x, x);
#else
  (void)(cast<double>(x) + wide);
  (void)(cast<double>(n) * 0.5 + 1);
  (void)where(logical_and(x > 0, truth), x, 0);
  (void)where(not_equal(n, 0), 1.0f, 0.0f);
  (void)sin(cast<float>(n));
  (void)(abs(z) + imag(z));
  (void)bitwise_xor(n, 3);
  (void)map([](float a, std::int32_t b) { return a > 0 ? static_cast<double>(b) : 0.0; }, x, n);
  (void)map_dynamic<float, double>(
      "i,i->i", [](float a, double b) { return b + a; }, Sharding{{0}}, DynamicTensor(x),
      DynamicTensor(wide));
  (void)floor(top);
  (void)cast<double>(sum);
  (void)cast<double>(top);
  (void)where(truth, sum, sum);
#endif
}
