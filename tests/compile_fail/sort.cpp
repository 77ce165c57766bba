// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CASE sort_of_complex: complex numbers have no largest and no smallest
// CASE top_k_of_complex: complex numbers have no largest and no smallest
// CASE sort_of_unfinished: an unfinished partial value is used as a value
// CASE sort_to_unfinished: an unfinished partial value is used as a value
// CASE carried_unfinished: an unfinished partial value is used as a value
// CASE sort_along_nothing: the operator runs along a letter that its operand does not have
// CASE sort_letters: the equation cannot be read
// CASE carried_rank: the equation gives a tensor another number of dimensions than it has
// CASE sort_contract: the call communicates more than its contract accepts
// CASE scan_by_what_joins_nothing: the function of an associative scan cannot join two elements
// CASE scan_of_unfinished: an unfinished partial value is used as a value
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

struct Join {
  KOKKOS_FUNCTION float operator()(float x, float y) const { return x < y ? y : x; }
};
struct Negate {
  KOKKOS_FUNCTION float operator()(float x) const { return -x; }
};

void use(const Tensor<float, data, model>& x, const Tensor<complex<float>, data, model>& z,
         const Tensor<float, data, _, Unreduced<Sum, model>>& open,
         const Tensor<float, data>& column) {
  (void)x, (void)z, (void)open, (void)column;
#if defined(CASE_sort_of_complex)
  (void)tessera::sort<"ij", 'j'>(z);
#elif defined(CASE_top_k_of_complex)
  top_k<"ij", 'j'>(z, 3);
#elif defined(CASE_sort_of_unfinished)
  (void)tessera::sort<"ij", 'j'>(open);
#elif defined(CASE_sort_to_unfinished)
  argsort<"ij", 'j', P<data, _, Unreduced<Sum, model>>>(x);
#elif defined(CASE_carried_unfinished)
  sort_by_key<"ij", 'j'>(x, open);
#elif defined(CASE_sort_along_nothing)
  (void)tessera::sort<"ij", 'k'>(x);
#elif defined(CASE_sort_letters)
  (void)tessera::sort<"ij->i", 'j'>(x);
#elif defined(CASE_carried_rank)
  sort_by_key<"ij", 'j'>(x, column);
#elif defined(CASE_sort_contract)
  (void)tessera::sort<"ij", 'j', Deduced, Only<all_to_alls<data>>>(x);
#elif defined(CASE_scan_by_what_joins_nothing)
  associative_scan<"ij", 'j'>(Negate{}, 0, x);
#elif defined(CASE_scan_of_unfinished)
  associative_scan<"ij", 'j'>(Join{}, 0, open);
#else
  (void)tessera::sort<"ij", 'j', P<_, data>>(x, {.descending = true});
  (void)argsort<"ij", 'i'>(x);
  (void)sort_by_key<"ij", 'j'>(x, z);
  (void)top_k<"ij", 'j'>(x, 3);
  (void)tessera::sort<"ij", 'j', Deduced, Only<all_to_alls<model>>>(x);
  (void)associative_scan<"ij", 'j'>(Join{}, 0, x, {.reverse = true});
#endif
}
