// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that reorders dimensions.
///
///     ops::Transpose{parse("ij->ji"), out}
#include <tessera/plan/operation.hpp>

namespace tessera::detail {
/// Plans a reordering of dimensions, which is local, and a resharding where `out` requires one.
constexpr Plan plan_transpose(const Terms& terms, const TensorDesc& x, const Sharding& out,
                              const MeshShape& mesh, int process = 0,
                              const PlanOptions& options = {}) {
  PlanBuilder build(OperatorKind::transpose, mesh, process, options);
  int slot = build.operand(x, terms.operands[0]);
  slot = build.permute(slot, terms.result);
  return build.finish(build.reshard(slot, out), out);
}
}  // namespace tessera::detail

namespace tessera::ops {

struct Transpose {
  Terms terms = {};
  Sharding out = {};

  constexpr OperatorKind kind() const { return OperatorKind::transpose; }
  constexpr Verdict check(const TensorDescs& x) const {
    return detail::check_transpose(terms, detail::shardings_of(x), out);
  }
  /// Returns the default sharding of the result: each dimension keeps its axes, and unfinished
  /// values stay unfinished.
  constexpr Sharding deduced(const TensorDescs& x) const {
    return detail::deduce_finished(terms, x).with_partial(x[0].sharding.partial,
                                                          x[0].sharding.reduction);
  }
  constexpr TensorDescs results(const TensorDescs& x) const {
    return {{x[0].type, detail::extents_of(terms.result, terms, x), out}};
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_transpose(terms, x[0], out, on.mesh, on.process, on.options);
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("to", out);
  }
  constexpr bool operator==(const Transpose&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Transpose)
