// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The adjoint of a product. The gradient of each factor is the product of the cotangent and the
/// other factor, made under the factor's own sharding.
///
///     // "bsm,mh->bsh" of x, w: dx is "bsh,mh->bsm" of dy, w; dw is "bsh,bsm->mh" of dy, x
///
/// Laws: a letter of a factor that no other tensor has is a repetition; a diagonal is put back on
/// the diagonal.
#include <tessera/grad/adjoint/reduce.hpp>

namespace tessera::detail {

inline void adjoint_of(const ops::Einsum& op, AdjointBuilder& build) {
  if (op.terms.operands.size() == 1) return adjoint_of(op.as_sum(build.call().operands), build);
  for (int i = 0; i < 2; ++i) {
    if (!build.wants(i)) continue;
    const Term &own = op.terms.operands[i], &other = op.terms.operands[1 - i];
    const TensorDesc to = build.gradient_of(i);
    const Term once = distinct(own);
    Terms terms{{op.terms.result, other}, {}};
    for (char letter : once)
      if (op.terms.result.contains(letter) || other.contains(letter))
        terms.result.push_back(letter);
    const AdjointValue factor = build.finish(build.operand(1 - i));
    const ops::Einsum product{terms, sharding_of(terms.result, own, to.sharding)};
    if (terms.result == own) {
      build.set(i, build.add_open(i, product, {build.cotangent(), factor}));
      continue;
    }
    const AdjointValue v = build.add(product, {build.cotangent(), factor});
    build.set(i, on_diagonal(build, v, terms.result, own, to));
  }
}

inline const bool einsum_has_adjoint = have_adjoints<ops::Einsum>();

}  // namespace tessera::detail
