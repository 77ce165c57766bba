// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The adjoint of a variance, and of a mean with it.
///
///     // v = variance "bm->b" of x, c its mean over n: dx = 2 / n dv (x - c) + 1 / n dc
///
/// Laws: the gradient of a variance sums to zero along each row.
#include <tessera/grad/adjoint/reduce.hpp>
#include <tessera/grad/derivatives/statistics.hpp>
#include <tessera/plan/op/rows/moments.hpp>

namespace tessera::detail {

/// 2 g (x - mean)
using VarianceBack = fn::Times<fn::TwiceDistance, 2>;

inline void adjoint_of(const ops::Moments& op, AdjointBuilder& build) {
  if (!build.wants(0)) return;
  const TensorDesc x = build.call().operands[0], to = build.gradient_of(0);
  if (is_complex(x.type))
    return build.miss(
        "the variance of complex numbers has no gradient yet; add the variances of their real and "
        "imaginary parts");
  const Term &own = op.terms.operands[0], &made = op.terms.result;
  const double over_n = share_of_mean(op.terms, x.extents);
  const AdjointValue g = scaled(build, build.cotangent(), over_n);
  const AdjointValue mean =
      op.with_mean ? build.result(1)
                   : build.add(ops::Reduce{op.terms, Reduction::sum, true, false,
                                           facts_of(x.type).compute, op.out},
                               {converted(build, build.operand(0), facts_of(x.type).compute)});
  const auto back = with_real_type(x.type, [](auto zero) {
    using T = decltype(zero);
    using C = ComputeType<T>;
    return std::make_shared<const OwnedFunction>(
        LoopRunner<T, VarianceBack, C, T, C>::kernel(VarianceBack{}));
  });
  const AdjointValue by_variance = mapped(build, {{made, own, made}, own},
                                          {g, build.operand(0), mean}, x.type, to.sharding, back);
  if (!op.with_mean) return build.set(0, by_variance);
  const int first = build.next_step();
  const AdjointValue by_mean = repeated(
      build, converted(build, scaled(build, build.cotangent(1), over_n), x.type), made, own, to);
  const AdjointValue both =
      mapped(build, {by_variance, by_mean}, function_of<2>(x.type, fn::Add{}));
  build.only_with(1, first, by_variance);
  build.set(0, both);
}

inline const bool moments_has_adjoint = have_adjoints<ops::Moments>();

}  // namespace tessera::detail
