// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The adjoints of slices that begin where the call says: of one that is read, the same window
/// written into zeros; of one that is written, the window read.
///
///     // w = dynamic_slice(x, start): dx is dynamic_update_slice(zeros, dw, start)
///
/// Laws: the start is the call's, clamped as there.
#include <tessera/grad/adjoint/parts.hpp>
#include <tessera/plan/op/indexed/dynamic_slice.hpp>

namespace tessera::detail {

inline void adjoint_of(const ops::DynamicSlice& op, AdjointBuilder& build) {
  const TensorDesc to = build.gradient_of(0);
  const ops::DynamicUpdateSlice back{
      {{op.terms.result, op.terms.result}, op.terms.result}, op.along, false, to.sharding};
  build.set(0, build.add_window(back, {no_gradient(build, to), build.cotangent()}));
}
inline void adjoint_of(const ops::DynamicUpdateSlice& op, AdjointBuilder& build) {
  const int x = op.in_place ? 1 : 0, update = 1 - x;
  const AdjointValue g = build.cotangent();
  if (build.wants(update)) {
    const TensorDesc to = build.gradient_of(update);
    ops::DynamicSlice back{{{op.terms.result}, op.terms.result}, op.along, {}, to.sharding};
    for (const char letter : op.along.result)
      back.size.push_back(to.extents[op.terms.result.find(letter)]);
    build.set(update, build.add_window(back, {g}));
  }
  if (!build.wants(x)) return;
  ops::DynamicUpdateSlice rest = op;
  rest.in_place = false;
  rest.out = build.desc(g).sharding;
  build.set(x, build.add_window(rest, {g, no_gradient(build, build.gradient_of(update))}));
}

inline const bool dynamic_slice_has_adjoint =
    have_adjoints<ops::DynamicSlice, ops::DynamicUpdateSlice>();

}  // namespace tessera::detail
