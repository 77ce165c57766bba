// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mixtures of experts of what is no group of tokens, and of unfinished tokens.
// CASE no_groups: a mixture of experts takes tokens .G, S, M., a gate .M, E. and weights
// CASE unfinished: the tokens of a mixture of experts are unfinished sums
// CASE no_reals: the logits of a gating are floating-point numbers
// ERRORS each: 1
#include <tessera/nn/mixture_of_experts.hpp>
using namespace tessera;

namespace grid {
struct data : Axis<> {};
struct model : Axis<> {};
}  // namespace grid
using grid::data, grid::model;
template <class... D> using Real = ShardedTensor<float, Mesh<data, model>, P<D...>>;
using Logits = ShardedTensor<int, Mesh<data, model>, P<data, _, _>>;

void f(const Real<data, _>& rows, const Real<data, _, _>& x,
       const Real<data, _, _, Unreduced<Sum, model>>& open, const Real<_, _>& gate,
       const Real<data, _, _>& w, const Logits& whole) {
#if defined(CASE_no_groups)
  mixture_of_experts(rows, gate, w, w);
#elif defined(CASE_unfinished)
  mixture_of_experts(open, gate, w, w);
#elif defined(CASE_no_reals)
  top2_gating(whole, 4);
#else
  mixture_of_experts(x, gate, w, w);
  (void)rows, (void)open, (void)whole;
#endif
}
