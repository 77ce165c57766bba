// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that reshards several tensors; calls of one kind become one.
///
///     ops::Together{{to_a, to_b}}.results({a, b})
#include <string>

#include <tessera/plan/move/together.hpp>
#include <tessera/plan/op/reshard.hpp>

namespace tessera::ops {

struct Together {
  Shardings targets = {};  ///< one for each operand

  constexpr OperatorKind kind() const { return OperatorKind::reshard; }
  /// Checks each tensor as a separate reshard; the verdict names the operand.
  constexpr Verdict check(const TensorDescs& x) const {
    for (int i = 0; i < x.size(); ++i)
      if (Verdict v = Reshard{targets[i]}.check({x[i]}); !v.ok()) {
        v.operand = i;
        return v;
      }
    return {};
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames& names) const {
    return Reshard{targets[v.operand]}.explain(v, {x[v.operand]}, names);
  }
  constexpr TensorDescs results(const TensorDescs& x) const {
    TensorDescs made;
    for (int i = 0; i < x.size(); ++i) made.push_back({x[i].type, x[i].extents, targets[i]});
    return made;
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return tessera::detail::plan_together(x, targets, on.mesh, on.process, on.options);
  }
  template <class V> constexpr void members(const V& visit) const {
    for (const Sharding& target : targets) visit("to", target);
  }
  constexpr bool operator==(const Together&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Together)
