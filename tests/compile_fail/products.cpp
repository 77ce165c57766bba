// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CASE max_of_diagonal: a letter stands twice in one tensor; only the operands of an einsum or a sum have diagonals
// CASE epilogue_of_unfinished: an unfinished partial value is used as a value
// CASE unfinished_bias: an unfinished partial value is used as a value
// CASE bias_rank: the equation gives a tensor another number of dimensions than it has
// CASE epilogue_type: the function of an epilogue returns a type that no tensor holds
// CASE epilogue_mesh: the operands live on different Mesh types
// CASE into_type: the destination holds another element type than the result
// CASE into_rank: the equation gives a tensor another number of dimensions than it has
// CASE reshard_into_rank: the spec of the result has another number of entries
// CASE reduce_into_type: the destination of a reduction has another element type, mesh or number of dimensions
// CASE map_into_type: the destination of a map has another element type, mesh or number of dimensions
// CASE async_unfinished: finished values do not become partial
// ERRORS each: 1
#include <tessera/tessera.hpp>

using namespace tessera;
namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
using Grid = Mesh<data, model>;
template <class... D> using Tensor = ShardedTensor<float, Grid, P<D...>>;

struct Text {
  const char* operator()(float) const { return ""; }
};

void use(const Tensor<data, model>& x, const Tensor<model, _>& w,
         const Tensor<_, Unreduced<Sum, model>>& open, const Tensor<_, _, _>& cube,
         const ShardedTensor<float, Mesh<model, data>, P<_>>& elsewhere, Tensor<data, _>& y,
         ShardedTensor<double, Grid, P<data, _>>& wide,
         ShardedTensor<double, Grid, P<data>>& wide_row, Tensor<data>& row) {
  (void)open, (void)cube, (void)elsewhere, (void)wide, (void)wide_row;
#if defined(CASE_max_of_diagonal)
  (void)max<"ii->i">(x);
#elif defined(CASE_epilogue_of_unfinished)
  (void)einsum<"ik,kj->ij", P<data, _, Unreduced<Sum, model>>>(x, w, epilogue(fn::Gelu{}));
#elif defined(CASE_unfinished_bias)
  (void)einsum<"ik,kj->ij">(x, w, epilogue().bias(open));
#elif defined(CASE_bias_rank)
  (void)einsum<"ik,kj->ij">(x, w, epilogue().bias(cube));
#elif defined(CASE_epilogue_type)
  (void)einsum<"ik,kj->ij">(x, w, then(Text{}));
#elif defined(CASE_epilogue_mesh)
  (void)einsum<"ik,kj->ij">(x, w, epilogue().bias(elsewhere));
#elif defined(CASE_into_type)
  einsum_into<"ik,kj->ij">(wide, x, w);
#elif defined(CASE_into_rank)
  einsum_into<"ik,kj->ij">(row, x, w);
#elif defined(CASE_reshard_into_rank)
  reshard_into(row, x);
#elif defined(CASE_reduce_into_type)
  reduce_into<Sum, "ij->i">(wide_row, x);
#elif defined(CASE_map_into_type)
  map_into(wide, fn::Exp{}, x);
#elif defined(CASE_async_unfinished)
  (void)async([&] { return reshard<P<data, _, Unreduced<Sum, model>>>(x); });
#else
  (void)einsum<"ik,kj->ij">(x, w, epilogue(fn::Gelu{}).bias(reshard<P<_>>(open)));
  einsum_into<"ik,kj->ij">(y, x, w);
  reshard_into(y, x);
  reduce_into<Sum, "ij->i">(row, x);
  map_into(y, fn::Exp{}, x);
  (void)sum<"ii->i">(x);
#endif
}
