// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CASE arg_of_unfinished: an unfinished partial value is used as a value
// CASE arg_open_axis: the result is Unreduced over an axis that splits no reduced dimension
// CASE arg_open_kind: partial values of one kind meet a reduction of another
// CASE along_nothing: the operator runs along a letter that its operand does not have
// CASE scan_letters: the equation cannot be read
// CASE scan_rank: the equation gives a tensor another number of dimensions than it has
// CASE scan_of_other_kind: an unfinished partial value is used as a value
// CASE running_max_of_complex: complex numbers have no largest and no smallest
// CASE running_mean: there is no running mean
// CASE running_log_of_ints: this function is for real numbers and its operand is not real
// CASE scan_contract: the call communicates more than its contract accepts
// CASE deterministic_product: products have no deterministic form
// CASE deterministic_of_unfinished: an unfinished partial value is used as a value
// CASE deterministic_open: an unfinished partial value is used as a value
// CASE deterministic_mean_of_ints: the mean of integers is not an integer
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

void use(const Tensor<float, data, model>& x, const Tensor<complex<float>, data, model>& z,
         const Tensor<float, data, _, Unreduced<Sum, model>>& open,
         const Tensor<std::int32_t, data, model>& ints) {
  (void)x, (void)z, (void)open, (void)ints;
#if defined(CASE_arg_of_unfinished)
  argmax<"ij->i">(open);
#elif defined(CASE_arg_open_axis)
  argmax<"ij->i", P<_, Unreduced<Min, data>>>(x);
#elif defined(CASE_arg_open_kind)
  argmax<"ij->i", P<data, Unreduced<Max, model>>>(x);
#elif defined(CASE_along_nothing)
  cumsum<"ij", 'k'>(x);
#elif defined(CASE_scan_letters)
  cumsum<"ij->i", 'j'>(x);
#elif defined(CASE_scan_rank)
  cumsum<"ijk", 'j'>(x);
#elif defined(CASE_scan_of_other_kind)
  cummax<"ij", 'j'>(open);
#elif defined(CASE_running_max_of_complex)
  cummax<"ij", 'j'>(z);
#elif defined(CASE_running_mean)
  cumulative<Mean, "ij", 'j'>(x);
#elif defined(CASE_running_log_of_ints)
  cumulative<LogSumExp, "ij", 'j'>(ints);
#elif defined(CASE_scan_contract)
  cumsum<"ij", 'j', Deduced, Only<gathers<data>>>(x);
#elif defined(CASE_deterministic_product)
  reduce<Deterministic<Product>, "ij->i">(x);
#elif defined(CASE_deterministic_of_unfinished)
  sum<"ij->i">(open, deterministic);
#elif defined(CASE_deterministic_open)
  sum<"ij->i", P<data, Unreduced<Sum, model>>>(x, deterministic);
#elif defined(CASE_deterministic_mean_of_ints)
  mean<"ij->i">(ints, deterministic);
#else
  (void)argmax<"ij->i">(x);
  (void)argmin<"ij->i", P<data, Unreduced<Min, model>>>(ints);
  (void)cumsum<"ij", 'j'>(z);
  (void)cumsum<"ij", 'j'>(open);
  (void)cumulative<LogSumExp, "ij", 'j'>(x);
  (void)cumsum<"ij", 'j', Deduced, Only<gathers<model>>>(x);
  (void)cummax<"ij", 'i', P<_, data>>(ints, {.reverse = true});
  (void)sum<"ij->i">(z, deterministic);
  (void)reduce<Deterministic<Max>, "ij->">(ints);
  (void)mean(x, deterministic);
#endif
}
