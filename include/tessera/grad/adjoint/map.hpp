// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The adjoint of an elementwise operator: the cotangent times the function's derivative, summed
/// over the dimensions along which the operand was repeated.
///
///     // z = x * b, b a row: dx = dz * b, db = the sum over rows of dz * x
///
/// Laws: an operand whose derivative is zero gets no gradient; a function without a derivative is
/// named by the error.
#include <tessera/grad/adjoint/parts.hpp>
#include <tessera/grad/functions.hpp>

namespace tessera::detail {

inline std::string without_derivative(const AdjointCall& call) {
  return "the function " + std::string(call.label) +
         " has no derivative; give the functor a member derivative(x) (of several operands "
         "derivative<I>(x...)), or specialise tessera::Derivative for it";
}

inline void adjoint_of(const ops::Map& op, AdjointBuilder& build) {
  const AdjointCall& call = build.call();
  const Term& made = op.terms.result;
  for (int i = 0; i < op.terms.operands.size(); ++i) {
    if (!build.wants(i)) continue;
    const PullBack back = pull_back(call.kernel, i);
    if (!back.known) return build.miss(without_derivative(call));
    if (back.slope == Slope::zero) continue;
    const TensorDesc to = build.gradient_of(i);
    AdjointValue g = build.cotangent();
    if (back.slope == Slope::minus_one)
      g = mapped(build, {g}, function_of<1>(build.desc(g).type, fn::Negate{}));
    if (back.slope == Slope::function) {
      Terms terms{{made}, made};
      FixedVector<AdjointValue, max_operands> values{g};
      for (const int read : back.reads) {
        terms.operands.push_back(read == reads_result ? made : op.terms.operands[read]);
        values.push_back(build.finish(read == reads_result ? build.result() : build.operand(read)));
      }
      // Where nothing is summed, the product is made for the operand, and not for the cotangent.
      const TensorDesc from = build.desc(g);
      const bool whole = op.terms.operands[i] == made && to.extents == from.extents &&
                         from.sharding.partial.empty() && to.sharding.partial.empty();
      g = mapped(build, terms, values, to.type, whole ? to.sharding : from.sharding, back.function);
    }
    build.set(i, summed(build, g, made, op.terms.operands[i], to, i));
  }
}

inline const bool map_has_adjoint = have_adjoints<ops::Map>();

}  // namespace tessera::detail
