// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CASE gather_needed: the call communicates more than its contract accepts; Needs<...> in this message is what it would do
// CASE nothing_accepted: the call communicates more than its contract accepts
// CASE wrong_axis: the call communicates more than its contract accepts
// CASE reduce: the call communicates more than its contract accepts
// CASE reshard: the call communicates more than its contract accepts
// CASE permutes_of_open_sizes: the call communicates more than its contract accepts
// CASE map: the call communicates more than its contract accepts
// CASE of_three: the call communicates more than its contract accepts
// CASE with_epilogue: the call communicates more than its contract accepts
// CASE into: the call communicates more than its contract accepts
// CASE together: the call communicates more than its contract accepts
// CASE strict_together: the call communicates, has no contract, and its mesh is Strict
// CASE axis_of_another_mesh: a contract names an axis that the mesh of the call does not have
// CASE no_clause: Only<...> holds something that is not a clause
// CASE not_wrapped: a contract is written Only<clauses...>
// CASE strict_einsum: the call communicates, has no contract, and its mesh is Strict; .* give the call that contract
// CASE strict_plus: the call communicates, has no contract, and its mesh is Strict
// CASE strict_reshard: the call communicates, has no contract, and its mesh is Strict
// CASE strict_sum: the call communicates, has no contract, and its mesh is Strict
// CASE strict_softmax: the call communicates, has no contract, and its mesh is Strict
// ERRORS each: 1
#include <tessera/tessera.hpp>

using namespace tessera;
namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
struct stage : Axis<> {};
}  // namespace grid
using grid::data, grid::model, grid::stage;
using Grid = Mesh<data, model>;
template <class... D> using Tensor = ShardedTensor<float, Grid, P<D...>>;
template <class... D> using Guarded = ShardedTensor<float, Strict<Grid>, P<D...>>;

using Contracted = P<data, _>;

void use(const Tensor<data, model>& x, const Tensor<model, _>& w, const Tensor<data, _>& y,
         Tensor<data, _>& out, const Guarded<data, model>& gx, const Guarded<model, _>& gw,
         const Guarded<data, _>& gy) {
  (void)x, (void)w, (void)y, (void)out, (void)gx, (void)gw, (void)gy;
#if defined(CASE_gather_needed)
  einsum<"ik,kj->ij", Deduced, Only<gathers<data>>>(x, w);
#elif defined(CASE_nothing_accepted)
  einsum<"ik,kj->ij", Deduced, Only<>>(x, w);
#elif defined(CASE_wrong_axis)
  einsum<"ik,kj->ij", Deduced, Only<all_reduces<data>>>(x, w);
#elif defined(CASE_reduce)
  sum<"ij->i", Deduced, Only<gathers<data>>>(x);
#elif defined(CASE_reshard)
  reshard<P<data, _>, Only<all_to_alls<model>>>(x);
#elif defined(CASE_permutes_of_open_sizes)
  reshard<P<model, data>, Only<permutes<>>>(x);
#elif defined(CASE_map)
  map<Only<>>(fn::Add{}, x, w);
#elif defined(CASE_of_three)
  einsum<"ik,kj,jl->il", Deduced, Only<gathers<data>, permutes<>>>(x, w, w);
#elif defined(CASE_with_epilogue)
  einsum<"ij,jk->ik", P<_, _>, Only<gathers<data>>>(y, reshard<P<_, _>>(w),
                                                    epilogue().residual(reshard<P<_, model>>(w)));
#elif defined(CASE_into)
  einsum_into<"ik,kj->ij", Only<>>(out, x, w);
#elif defined(CASE_together)
  reshard_together<Only<gathers<data>>, P<_, model>, P<_, _>>(x, w);
#elif defined(CASE_strict_together)
  reshard_together<P<_, model>, P<_, _>>(gx, gw);
#elif defined(CASE_axis_of_another_mesh)
  reshard<P<data, _>, Only<gathers<stage>>>(x);
#elif defined(CASE_no_clause)
  reshard<P<data, _>, Only<model>>(x);
#elif defined(CASE_not_wrapped)
  reshard<P<data, _>, gathers<model>>(x);
#elif defined(CASE_strict_einsum)
  einsum<"ik,kj->ij">(gx, gw);
#elif defined(CASE_strict_plus)
  gx + gw;
#elif defined(CASE_strict_reshard)
  replicate(gx);
#elif defined(CASE_strict_sum)
  sum(gx);
#elif defined(CASE_strict_softmax)
  softmax<"ij", 'j'>(gx);
#else
  (void)einsum<"ik,kj->ij", Deduced, Only<all_reduces<model>>>(x, w);
  (void)einsum<"ik,kj->ij", P<data, model>, Only<reduce_scatters<model>, gathers<data>>>(x, w);
  (void)einsum<"ik,kj->ij", P<data, _, Unreduced<Sum, model>>, Only<>>(x, w);
  (void)sum<"ij->i", Deduced, Only<all_reduces<>>>(x);
  (void)reshard<P<data, _>, Only<gathers<model>>>(x);
  (void)reshard<P<model, data>, Only<exchanges<data, model>>>(x);
  (void)map<Only<exchanges<>>>(fn::Add{}, x, w);
  (void)map<"ij,ij->ij", P<data, _>, Only<gathers<model>>>(fn::Add{}, x, y);
  (void)einsum<"ik,kj,jl->il", Deduced, Only<all_reduces<model>, gathers<model>>>(
      x, w, reshard<P<_, _>>(w));
  (void)transpose<"ij->ji", Deduced, Only<>>(x);
  (void)softmax<"ij", 'j', Deduced, Only<all_reduces<model>>>(gx);
  einsum_into<"ik,kj->ij", Only<all_reduces<model>>>(out, x, w);
  (void)einsum<"ik,kj->ij", Deduced, Only<all_reduces<model>>>(gx, gw);
  (void)(gx + gy * 2.0f);  // gy is sliced
  (void)gelu(gx);
  (void)einsum<"ij,kj->ik", P<data, _, Unreduced<Sum, model>>>(
      gx, reshard<P<_, model>>(reshard<P<_, _>, Only<gathers<data, model>>>(gx)));
  (void)to_host(gx);
  (void)reshard_together<Only<gathers<data, model>>, P<_, model>, P<_, _>>(gx, gw);
#endif
}
