// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that makes a tensor of none: each process writes its own block. What it writes
/// belongs to the call.
///
///     ops::Create{{DType::f32, {8, 512}, out}}.plan({}, {mesh, process, options})
#include <tessera/plan/operation.hpp>
#include <tessera/plan/step/create.hpp>

namespace tessera::ops {

struct Create {
  TensorDesc made = {};

  constexpr OperatorKind kind() const { return OperatorKind::create; }
  constexpr Verdict check(const TensorDescs&) const {
    if (!made.sharding.partial.empty()) return {Rule::made_finished};
    return {};
  }
  constexpr TensorDescs results(const TensorDescs&) const { return {made}; }
  constexpr Plan plan(const TensorDescs&, const Planning& on) const {
    detail::PlanBuilder build(kind(), on.mesh, on.process, on.options);
    const Term labels = detail::default_labels(made.rank());
    const int slot = build.compute(step::Create{}, FixedVector<int, 1>{}, made, labels);
    build.price_copies(1);
    return build.finish(slot, made.sharding);
  }
  template <class V> constexpr void members(const V& visit) const { visit("of", made); }
  constexpr bool operator==(const Create&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Create)
