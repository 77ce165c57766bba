// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The adjoints of windows that slide: of a sum the same windows turned round; of a largest or
/// least element select-and-scatter.
///
///     // y = reduce_window<Max>(x): dx = select_and_scatter<Max>(x, dy)
///     // z = select_and_scatter<Max>(x, s): ds = under each window dz where x is greatest
///
/// Laws: of equal elements in a window the first counts, as XLA's.
#include <tessera/grad/adjoint/parts.hpp>
#include <tessera/plan/op/window/reduce_window.hpp>

namespace tessera::detail {

inline void adjoint_of(const ops::ReduceWindow& op, AdjointBuilder& build) {
  const TensorDesc to = build.gradient_of(0);
  if (op.reduction == Reduction::sum) {
    ops::ReduceWindow back = op;
    back.gradient = !op.gradient;
    back.extents = back.gradient ? to.extents : Extents{};
    back.out = to.sharding;
    return build.set(0, build.add(back, {build.cotangent()}));
  }
  const bool greatest = op.reduction == Reduction::max;
  if (!greatest && op.reduction != Reduction::min)
    return build.miss(
        "windows by product have no gradient yet; use exp of a sum of logarithms, or keep the "
        "operand out of the gradient with stop_gradient");
  build.set(0, build.add(ops::SelectAndScatter{greatest, op.windows, to.sharding},
                         {build.finish(build.operand(0)), build.cotangent()}));
}
/// What is selected does not change with the operand that selects.
inline void adjoint_of(const ops::SelectAndScatter& op, AdjointBuilder& build) {
  if (!build.wants(1)) return;
  ops::SelectAndScatter back = op;
  back.gradient = !op.gradient;
  back.out = build.gradient_of(1).sharding;
  build.set(1, build.add(back, {build.finish(build.operand(0)), build.cotangent()}));
}

inline const bool reduce_window_has_adjoint =
    have_adjoints<ops::ReduceWindow, ops::SelectAndScatter>();

}  // namespace tessera::detail
