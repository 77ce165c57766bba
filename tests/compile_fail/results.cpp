// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What is done with the result of a call that has a mistake gives no error of its own.
// CASE declared: the operands have different element types; elementwise functions do not convert
// CASE declared_comparison: complex ones have none; use real\(x\), imag\(x\) or abs\(x\) first
// CASE declared_rank: the equation gives a tensor another number of dimensions than it has
// CASE declared_letter: the result has a letter that no operand has
// CASE declared_equation: the equation cannot be read
// CASE declared_long_equation: an equation has at most 95 characters
// CASE declared_product: the operands have different element types; a product takes one
// CASE declared_maximum: complex numbers have no largest and no smallest
// CASE declared_transpose: an elementwise operator or transpose drops a dimension
// CASE declared_choice: the elements of the condition are not bool; a choice needs bool
// CASE declared_map: the function of a map returns a type that no tensor holds
// CASE declared_reshard: the spec of the result has another number of entries than the result has dimensions
// CASE declared_split: split names a dimension that the tensor does not have
// CASE declared_take: take names a dimension that the tensor does not have
// CASE declared_convolution: a convolution has a batch in input and result
// CASE declared_scan: the operator runs along a letter that its operand does not have
// CASE declared_epilogue: the result has a letter that no operand has
// CASE assigned: the result has a letter that no operand has
// CASE returned: the result has a letter that no operand has
// CASE used_by_functions: the result has a letter that no operand has
// CASE used_by_product: the result has a letter that no operand has
// CASE used_by_reshard: the result has a letter that no operand has
// CASE used_by_softmax: the result has a letter that no operand has
// CASE used_as_condition: the operands have different element types; elementwise functions do not convert
// CASE written: the equation gives a tensor another number of dimensions than it has
// CASE written_map: this function is for real numbers and its operand is not real
// CASE written_sum: the result has a letter that no operand has
// CASE softmax_of_int: this function is for real numbers and its operand is not real
// CASE layer_norm_of_int: this function is for real numbers and its operand is not real
// CASE layer_norm_of_scalar: the tensor has no dimensions; a norm is over the last one
// CASE log_softmax_of_int: this function is for real numbers and its operand is not real
// CASE log_sum_exp_of_int: log-sum-exp is for floating-point tensors
// CASE variance_of_int: variances are for floating-point and complex tensors
// CASE deviation_of_bool: variances are for floating-point and complex tensors
// CASE norm_of_bool: norms are for floating-point and complex tensors
// CASE dot_of_ranks: dot takes two tensors of one shape
// CASE matmul_of_scalar: matmul takes tensors of at least one dimension
// CASE complex_beside_real: the scalar cannot become an element of the tensor
// CASE activation_of_int: this function is for real numbers and its operand is not real
// CASE bias_of_double: the operands have different element types; elementwise functions do not convert
// ERRORS each: 1
#include <tessera/tessera.hpp>

using namespace tessera;
namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
template <class T, class... D> using Of = ShardedTensor<T, Grid, P<D...>>;
template <class... D> using Tensor = Of<float, D...>;

void use(const Tensor<data, _>& x, const Tensor<_, model>& w, const Of<double, data, _>& wide,
         const Of<std::int32_t, data, _>& n, const Of<bool, data, _>& truth,
         const Of<complex<float>, data, _>& z, const Tensor<>& scalar, Tensor<data, _>& y,
         Tensor<data, model>& out, const Of<std::int32_t, _>& rows) {
  (void)x, (void)w, (void)wide, (void)n, (void)truth, (void)z, (void)scalar, (void)y, (void)out;
  (void)rows;
#if defined(CASE_declared)
  const Of<double, data, _> r = x + wide;
#elif defined(CASE_declared_comparison)
  const Of<bool, data, _> r = z < z;
#elif defined(CASE_declared_rank)
  const Tensor<data, _> r = einsum<"i,ij->ij">(x, w);
#elif defined(CASE_declared_letter)
  const Tensor<data, model> r = einsum<"ik,kj->iz">(x, w);
#elif defined(CASE_declared_equation)
  const Tensor<data, model> r = einsum<"ik,kj=ij">(x, w);
#elif defined(CASE_declared_long_equation)
  const Tensor<data, model> r = einsum<
      "iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiiik,"
      "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkj->ij">(x, w);
#elif defined(CASE_declared_product)
  const Of<double, data, _> r = einsum<"ik,kj->ij">(x, wide);
#elif defined(CASE_declared_maximum)
  const Tensor<data> r = max<"ij->i">(z);
#elif defined(CASE_declared_transpose)
  const Tensor<_, data> r = transpose<"ij->j">(x);
#elif defined(CASE_declared_choice)
  const Tensor<data, _> r = where(n, x, x);
#elif defined(CASE_declared_map)
  const Tensor<data, _> r = map([](std::int32_t) { return "text"; }, n);
#elif defined(CASE_declared_reshard)
  const Tensor<data, model> r = reshard<P<data>>(x);
#elif defined(CASE_declared_split)
  const Tensor<_, data> r = split<2, data>(x);
#elif defined(CASE_declared_take)
  const Tensor<data> r = take<0>(scalar, rows);
#elif defined(CASE_declared_convolution)
  const Tensor<data, _, _> r = convolve<"ij,jk->ik">(x, w);
#elif defined(CASE_declared_scan)
  const Of<double, data, _> r = cumsum<"ij", 'k'>(x);
#elif defined(CASE_declared_epilogue)
  const Tensor<data, model> r = einsum<"ik,kj->ih">(x, w, epilogue(fn::Gelu{}));
#elif defined(CASE_assigned)
  out = einsum<"ik,kj->ia">(x, w);
#elif defined(CASE_returned)
  const auto f = [&]() -> Tensor<data, model> { return einsum<"ik,kj->ib">(x, w); };
#elif defined(CASE_used_by_functions)
  const auto h = einsum<"ik,kj->ic">(x, w);
  const Tensor<data, model> r = gelu(h) * h + 1;
#elif defined(CASE_used_by_product)
  const auto h = einsum<"ik,kj->id">(x, w);
  const Tensor<data, model> r = einsum<"ik,kj->ij">(gelu(h), w);
#elif defined(CASE_used_by_reshard)
  const auto h = einsum<"ik,kj->e">(x, w);
  const Tensor<_, model> r = reshard<P<_, model>>(h);
#elif defined(CASE_used_by_softmax)
  const auto h = einsum<"ik,kj->f">(x, w);
  const Tensor<data, _> r = softmax<"ij", 'j'>(h);
#elif defined(CASE_used_as_condition)
  const Tensor<data, _> r = where(x < n, x, x);
#elif defined(CASE_written)
  einsum_into<"i,kj->ij">(y, x, w);
#elif defined(CASE_written_map)
  map_into(y, fn::Sin{}, n);
#elif defined(CASE_written_sum)
  reduce_into<Sum, "ij->iz">(y, x);
#elif defined(CASE_softmax_of_int)
  const Tensor<data, _> r = softmax<"ij", 'j'>(n);
#elif defined(CASE_layer_norm_of_int)
  const Tensor<data, _> r = layer_norm(n, sum<"ij->j">(n), sum<"ij->j">(n));
#elif defined(CASE_layer_norm_of_scalar)
  const auto r = rms_norm(sum<"ij->">(x), sum<"ij->">(x));
#elif defined(CASE_log_softmax_of_int)
  const Tensor<data, _> r = log_softmax<"ij", 'j'>(n);
#elif defined(CASE_log_sum_exp_of_int)
  const Tensor<data> r = logsumexp<"ij->i">(n);
#elif defined(CASE_variance_of_int)
  const Tensor<data> r = variance<"ij->i">(n);
#elif defined(CASE_deviation_of_bool)
  const Tensor<data> r = standard_deviation<"ij->i">(truth);
#elif defined(CASE_norm_of_bool)
  const Tensor<> r = norm(truth);
#elif defined(CASE_dot_of_ranks)
  const Tensor<> r = dot(x, scalar);
#elif defined(CASE_matmul_of_scalar)
  const Tensor<data, _> r = matmul(x, scalar);
#elif defined(CASE_complex_beside_real)
  const Tensor<data, _> r = x + complex<float>(1, 2);
#elif defined(CASE_activation_of_int)
  const Tensor<data, _> r = einsum<"ik,jk->ij">(n, n, epilogue(fn::Gelu{}));
#elif defined(CASE_bias_of_double)
  const Tensor<data, model> r = einsum<"ik,kj->ij">(x, w, epilogue().bias(wide));
#else
  out = einsum<"ik,kj->ij">(x, w);
  const Tensor<data, model> r = gelu(out) * out + 1;
  const Tensor<data> s = variance<"ij->i">(x);
  const Tensor<> d = dot(x, x);
  const Tensor<data, _> p = softmax<"ij", 'j'>(x);
#endif
}
