// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that changes how a tensor is split.
///
///     ops::Reshard{Sharding{{0}, {}}}.plan({x}, {mesh, process, options})
#include <string>

#include <tessera/plan/operation.hpp>

namespace tessera::ops {

struct Reshard {
  Sharding out = {};

  constexpr OperatorKind kind() const { return OperatorKind::reshard; }
  constexpr Verdict check(const TensorDescs& x) const {
    if (out.rank() != x[0].rank()) return {Rule::entry_each, 1, 0, -1, x[0].rank(), out.rank()};
    if (!detail::can_reshard(x[0].sharding, out)) return {Rule::reshardable, 1};
    return {};
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames& names) const {
    const std::string to = to_string(out, names);
    if (v.rule == Rule::reshardable)
      return to_string(x[0].sharding, names) + " cannot become " + to + "; " +
             std::string(sentence(v.rule));
    return "the tensor has " + std::to_string(v.left) + " dimensions and " + to + " has " +
           std::to_string(v.right) + "; give the spec one entry for each dimension";
  }
  constexpr Sharding deduced(const TensorDescs& x) const { return x[0].sharding; }
  constexpr TensorDescs results(const TensorDescs& x) const {
    return {{x[0].type, x[0].extents, out}};
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_reshard(x[0], out, on.mesh, on.process, on.options);
  }
  template <class V> constexpr void members(const V& visit) const { visit("to", out); }
  constexpr bool operator==(const Reshard&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Reshard)
