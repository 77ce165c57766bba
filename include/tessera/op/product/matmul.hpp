// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// NumPy's matmul: products of the last two dimensions, with the ones before them as a batch that
/// broadcasts.
///
///     auto c = matmul(a, b);         // (8, 4) of a (8, 6), b (6, 4)
///     auto y = matmul(a, v);         // (8) of v (6): one dimension is a row or a column
///
/// Laws: matmul(a, b) == einsum<"zik,zkj->zij">(a, b), with as many batch letters as there are.
#include <string>

#include <tessera/op/product/einsum.hpp>
#include <tessera/op/shape/dimensions.hpp>

namespace tessera {
namespace detail {

/// "abik,bkj->abij" for the numbers of dimensions given.
constexpr Equation matmul_equation(int a, int b) {
  const int batch_a = a > 2 ? a - 2 : 0, batch_b = b > 2 ? b - 2 : 0;
  const int batch = batch_a > batch_b ? batch_a : batch_b;
  Equation e;
  const auto put = [&](char c) { e.text[e.length++] = c; };
  const auto put_batch = [&](int count) {
    for (int d = batch - count; d < batch; ++d) put(static_cast<char>('a' + d));
  };
  put_batch(batch_a);
  if (a > 1) put('i');
  put('k');
  put(',');
  put_batch(batch_b);
  put('k');
  if (b > 1) put('j');
  put('-');
  put('>');
  put_batch(batch);
  if (a > 1) put('i');
  if (b > 1) put('j');
  return e;
}

/// Removes letter `c`, of extent 1, from an operand and its term.
inline TensorCore without_letter(const TensorCore& x, Term& term, char c, CallSite site) {
  const int d = term.find(c);
  TensorCore whole = x;
  if (!x.sharding()[d].empty() || x.halo() != nullptr) {
    Sharding s = x.sharding();
    s[d] = AxisList{};
    whole = reshard(x, s, site);
  }
  Dimensions dims;
  dims.push_back(d);
  term = without_dims(term, dims);
  return seen_without(whole, dims);
}

inline TensorCore matmul(Terms terms, TensorCore a, TensorCore b, const Sharding& out,
                         CallSite site) {
  mesh_of(a, site);
  mesh_of(b, site);
  for (char c : Term(terms.result)) {
    const int da = terms.operands[0].find(c), db = terms.operands[1].find(c);
    if (da < 0 || db < 0 || a.extents()[da] == b.extents()[db]) continue;
    if (a.extents()[da] == 1)
      a = without_letter(a, terms.operands[0], c, site);
    else if (b.extents()[db] == 1)
      b = without_letter(b, terms.operands[1], c, site);
  }
  return einsum(terms, a, b, out, site);
}

template <class A, class B> consteval bool demand_matmul() {
  static_assert(A::rank > 0 && B::rank > 0,
                "[tessera] matmul takes tensors of at least one dimension; a scalar multiplies "
                "with *");
  return true;
}
}  // namespace detail

/// Returns the matrix products of a (..., i, k) and b (..., k, j): (..., i, j), where the
/// dimensions before the last two broadcast; an operand of one dimension has k alone, and the
/// result then lacks i or j. `Out` and `Bound` as einsum's. Communication: as einsum's; a batch
/// dimension of extent 1 that stretches and is split is gathered first. Collective over the mesh.
/// Throws ShapeError when extents disagree.
template <class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor B>
  requires(detail::demand_matmul<A, B>())
auto matmul(const A& a, const B& b, const CallOptions& call = Where::here()) {
  if constexpr (A::rank > 0 && B::rank > 0) {
    using Typed =
        detail::Typed<detail::EinsumBy<detail::matmul_equation(A::rank, B::rank)>, Out, A, B>;
    return typename Typed::result(
        detail::matmul(Typed::operation.terms, a.core(), b.core(),
                       detail::result_sharding<Typed>({&a.core(), &b.core()}),
                       detail::typed_site<Typed, Bound>("matmul", call, a.core())));
  } else {
    return detail::Unknown<A>();
  }
}

/// This overload takes everything at run time; without a sharding the result's is deduced. Typed
/// calls check ranks while compiling.
inline DynamicTensor matmul(const DynamicTensor& a, const DynamicTensor& b,
                            const CallOptions& call = Where::here()) {
  const detail::CallSite site = call.sharded_site("matmul");
  detail::mesh_of(a.core(), site);
  detail::mesh_of(b.core(), site);
  if (a.core().rank() == 0 || b.core().rank() == 0)
    throw ShapeError(
        "matmul: an operand is a scalar; matmul takes tensors of at least one dimension; a scalar "
        "multiplies with *=",
        site.where);
  const Terms terms = parse(detail::matmul_equation(a.core().rank(), b.core().rank()).view());
  if (call.out() != nullptr)
    return DynamicTensor(detail::matmul(terms, a.core(), b.core(), *call.out(), site));
  const Shardings operands{a.sharding(), b.sharding()};
  detail::require(detail::check_einsum(terms, operands, Sharding::replicated(terms.result.size())),
                  terms, *a.core().mesh(), site);
  return DynamicTensor(
      detail::matmul(terms, a.core(), b.core(), detail::deduce(terms, operands), site));
}

}  // namespace tessera
