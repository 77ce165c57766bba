// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The adjoint of layer norm and RMS norm. The call brings the functions of its gradients
/// (op/rows/normalize.hpp), which are compiled for its own elements alone.
///
///     // by x: inverse (dy scale - a / n - h b / n), h = (x - mean) inverse, a and b the row's sums
///     // of dy scale and of dy scale h; by the scale the sum over rows of dy h, by the bias of dy
///
/// Laws: the gradient by x of a layer norm sums to zero along each row.
#include <tessera/grad/adjoint/parts.hpp>
#include <tessera/grad/functions.hpp>
#include <tessera/plan/op/rows/normalize.hpp>

namespace tessera::detail {

inline void adjoint_of(const ops::Normalize& op, AdjointBuilder& build) {
  const AdjointCall& call = build.call();
  const PullBack by_x = pull_back(call.kernel, NormPull::by_x);
  const PullBack scale_terms = pull_back(call.kernel, NormPull::scale_terms);
  if (!by_x.known || !scale_terms.known)
    return build.miss(
        "the call does not bring the functions of its gradient; call layer_norm or "
        "rms_norm, not the operator");
  const Term &letters = op.terms.result, &last = op.terms.operands[1];
  const Terms rows = norm_rows(op.terms);
  const TensorDesc dy = build.desc(build.cotangent());
  const DType computed = facts_of(dy.type).compute;
  const Sharding to_rows = sharding_of(rows.result, letters, dy.sharding);
  const AdjointValue x = build.operand(0), inverse = build.result(1), mean = build.result(2);
  const auto wide = [&] { return converted(build, build.cotangent(), computed); };
  const auto by_row = [&](int operand, AdjointValue of) {
    TensorDesc to = build.gradient_of(operand);
    to.type = computed;
    const int open = dy.type == computed ? operand : -1;  // parts of a sum are not rounded
    build.set(operand, converted(build, summed(build, of, letters, last, to, open), dy.type));
  };
  AdjointValue g;
  if (op.terms.operands.size() > 2 && build.wants(2)) by_row(2, g = wide());
  if (!build.wants(0) && !build.wants(1)) return;

  Terms terms{{letters, letters, rows.result}, letters};
  FixedVector<AdjointValue, max_operands> values{build.cotangent(), x, inverse};
  if (op.centred) {
    terms.operands.push_back(rows.result);
    values.push_back(mean);
  }
  const AdjointValue product =
      mapped(build, terms, values, computed, dy.sharding, scale_terms.function);
  if (build.wants(1)) by_row(1, product);
  if (!build.wants(0)) return;

  const AdjointValue scale = converted(build, build.operand(1), computed);
  const auto sum = [&](AdjointValue of) {
    return build.add(ops::Einsum{{{letters, last}, rows.result}, to_rows}, {of, scale});
  };
  // The gradients of the inverse and of the mean, where there are any, change b and a.
  const auto joined = [&](int k, AdjointValue own, double sign, const auto& with_inverse) {
    const int first = build.next_step();
    const AdjointValue of_row =
        mapped(build, {build.cotangent(k), inverse}, function_of<2>(computed, with_inverse));
    const AdjointValue all =
        mapped(build, {own, scaled(build, of_row, sign)}, function_of<2>(computed, fn::Add{}));
    build.only_with(k, first, own);
    return all;
  };
  const AdjointValue b = joined(1, sum(product), 1, fn::Multiply{});
  terms.operands = {letters, letters, rows.result, last, rows.result};
  values = {build.cotangent(), x, inverse, build.operand(1), b};
  if (op.centred) {
    const AdjointValue a = joined(2, sum(g.known() ? g : wide()), -1, fn::Divide{});
    for (const AdjointValue v : {mean, a}) {
      terms.operands.push_back(rows.result);
      values.push_back(v);
    }
  }
  build.set(0, mapped(build, terms, values, dy.type, dy.sharding, by_x.function));
}

inline const bool normalize_has_adjoint = have_adjoints<ops::Normalize>();

}  // namespace tessera::detail
