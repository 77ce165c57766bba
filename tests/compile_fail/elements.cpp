// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CASE mean_of_truths: the mean of integers is not an integer, nor that of truth values a truth value
// CASE max_of_complex: complex numbers have no largest and no smallest; use abs
// CASE mean_of_bytes: the mean of integers is not an integer, nor that of truth values a truth value; convert to float or double
// CASE any_of_floats_open: the spec is Unreduced by a kind that its elements do not have
// CASE sum_of_truths_open: the spec is Unreduced by a kind that its elements do not have
// CASE exp_of_product: an unfinished partial value is used as a value; .*multiplicative ones on Unreduced<Product>
// CASE sum_of_products: an unfinished partial value is used as a value
// CASE or_of_all: an unfinished partial value is used as a value
// CASE sum_of_max: partial values of one kind meet a reduction of another
// CASE wide_sum_of_open_bytes: the tensor is an unfinished sum of narrow integers, which wraps in their own type
// CASE wide_product_of_open_bytes: the tensor is an unfinished product of narrow integers, which wraps in their own type
// CASE running_sum_of_open_bytes: the tensor is an unfinished sum of narrow integers, which wraps in their own type
// CASE sum_as_short: sums and products have the tensor's own element type, or of integers and truth values int64 or uint64
// CASE max_as_int64: only the element type of sums and products is a choice
// CASE no_element: a tensor cannot hold elements of this type; the element types are half, bfloat16, float, double, .* std::uint8_t to std::uint64_t and bool; name one of them
// CASE text: a tensor cannot hold elements of this type
// CASE result_of_no_element: a tensor cannot hold elements of this type
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

void use(const Tensor<bool, data, model>& truths, const Tensor<complex<float>, data, model>& waves,
         const Tensor<float, data, model>& x, const Tensor<std::uint8_t, data, model>& bytes,
         const Tensor<float, data, Unreduced<Product, model>>& product,
         const Tensor<float, data, Unreduced<Max, model>>& largest,
         const Tensor<bool, data, Unreduced<All, model>>& all,
         const Tensor<std::uint8_t, data, Unreduced<Sum, model>>& open_bytes,
         const Tensor<std::int8_t, data, Unreduced<Product, model>>& open_factors) {
  (void)open_bytes, (void)open_factors, (void)truths, (void)waves, (void)x, (void)bytes,
      (void)product, (void)largest, (void)all;
#if defined(CASE_mean_of_truths)
  mean<"ij->i">(truths);
#elif defined(CASE_max_of_complex)
  max<"ij->i">(waves);
#elif defined(CASE_mean_of_bytes)
  mean<"ij->i">(bytes);
#elif defined(CASE_any_of_floats_open)
  Tensor<float, data, Unreduced<Any, model>> t;
#elif defined(CASE_sum_of_truths_open)
  Tensor<bool, data, Unreduced<Sum, model>> t;
#elif defined(CASE_exp_of_product)
  exp(product);
#elif defined(CASE_sum_of_products)
  product + product;
#elif defined(CASE_or_of_all)
  logical_or(all, all);
#elif defined(CASE_sum_of_max)
  sum<"i->">(largest);
#elif defined(CASE_wide_sum_of_open_bytes)
  sum<"i->">(open_bytes);
#elif defined(CASE_wide_product_of_open_bytes)
  tessera::product<"i->">(open_factors);
#elif defined(CASE_running_sum_of_open_bytes)
  cumsum<"i", 'i'>(open_bytes);
#elif defined(CASE_sum_as_short)
  reduce<As<Sum, std::int16_t>, "ij->i">(bytes);
#elif defined(CASE_max_as_int64)
  reduce<As<Max, std::int64_t>, "ij->i">(bytes);
#elif defined(CASE_no_element)
  Tensor<long double, data> t;
#elif defined(CASE_text)
  Tensor<std::string, data, _> t;
  (void)(t + t), (void)sum<"ij->">(t), (void)t.data();  // and nothing else is said
#elif defined(CASE_result_of_no_element)
  const Tensor<std::complex<float>, data, model> t =
      exp(Tensor<std::complex<float>, data, model>());
#else
  einsum<"ij,ij->i">(waves, waves);
  reduce<Any, "ij->i">(truths);
  reduce<All, "ij->i", P<data, Unreduced<All, model>>>(truths);
  const Tensor<float, data, Unreduced<Product, model>> both = product * product;
  const Tensor<bool, data, Unreduced<All, model>> alike = logical_and(all, all);
  max<"i->">(largest);
  reduce<Product, "i->">(abs(both));
  mean<"ij->i">(waves);
  const Tensor<std::uint64_t, data> total = sum<"ij->i">(bytes);
  const Tensor<std::int64_t, data> count = sum<"ij->i">(truths);
  (void)count;
  const Tensor<std::uint8_t, _> wrapped = reduce<As<Sum, std::uint8_t>, "i->i", P<_>>(open_bytes);
  (void)total, (void)wrapped;
  (void)alike;
#endif
}
