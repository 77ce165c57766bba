// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The elementwise operator: a function of the elements at one position of all operands, with
/// broadcasting. The function itself belongs to the call.
///
///     Plan p = detail::plan_map(detail::broadcast_terms({2, 2}), operands, DType::f32, out, mesh, process);
///
/// Every operand is brought to the result's sharding, then one local kernel runs; or the kernel
/// runs where an operand lies and the result is moved, where that is cheaper.
///
///     ops::Map{detail::broadcast_terms({2, 1}), DType::f32, Linearity::pointwise, out, false}
///
/// Laws: no communication when the operands' shardings agree; a function that reads the index runs
/// where the result lies.
#include <tessera/plan/elementwise.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/search/best_way.hpp>

namespace tessera::detail {

/// Returns the sharding of a result that is made where operand i lies.
constexpr Sharding sharding_beside(int i, const Terms& terms, const TensorDescs& operands,
                                   const Extents& extents, const MeshShape& mesh) {
  const Sharding own = without_unit_axes(operands[i].sharding, mesh);
  Sharding s = Sharding::replicated(terms.result.size());
  for (int d = 0; d < own.rank(); ++d) {
    const int at = terms.result.find(terms.operands[i][d]);
    if (operands[i].extents[d] == extents[at]) s[at] = own[d];
  }
  return s;
}

/// Plans f(operands...) -> tensors of these element types, which one kernel makes; where there are
/// several, it is bound by memory, and priced so. A partial `out` says that f is linear (or
/// monotone) and acts on unfinished values; the verdict has checked that it may. One result of
/// finished operands, in memory of its own, may be made where an operand lies, and then moved,
/// unless f `reads_index`: such a function knows the place of the result's block alone.
constexpr Plan plan_map_several(const Terms& terms, const TensorDescs& operands,
                                const FixedVector<DType, max_operands>& types, const Sharding& out,
                                const MeshShape& mesh, int process = 0,
                                const PlanOptions& options = {}, bool reads_index = false) {
  const Extents extents = broadcast_extents(terms, operands);
  const auto make = [&](const Sharding& made, int at) {
    PlanBuilder build(OperatorKind::map, mesh, at, options);
    FixedVector<int, max_operands> inputs;
    for (int i = 0; i < operands.size(); ++i)
      inputs.push_back(build.operand(operands[i], terms.operands[i]));
    const int slot = add_map(build, inputs, terms, {types[0], extents, made});
    if (types.size() > 1) build.several_results(types, extents, made, terms.result);
    return build.finish(build.reshard(slot, out), out);
  };
  const Plan there = make(out, process);
  bool may_move = !reads_index && types.size() == 1 && out.partial.empty() &&
                  there.communications() > 0 && options.destination == Destination::fresh &&
                  !options.needs_alone;
  for (const TensorDesc& x : operands) may_move = may_move && x.sharding.partial.empty();
  if (!may_move) return there;
  BestWay<Sharding> best(options);
  best.add(process == 0 ? there : make(out, 0), out);
  FixedVector<Sharding, max_operands> tried{without_unit_axes(out, mesh)};
  for (int i = 0; i < operands.size(); ++i) {
    const Sharding made = sharding_beside(i, terms, operands, extents, mesh);
    if (tried.contains(made)) continue;
    tried.push_back(made);
    best.add(make(made, 0), made);
  }
  if (process == 0) return best.plan();
  return best.way() == out ? there : make(best.way(), process);
}

/// Plans a map with one result.
constexpr Plan plan_map(const Terms& terms, const TensorDescs& operands, DType type,
                        const Sharding& out, const MeshShape& mesh, int process = 0,
                        const PlanOptions& options = {}, bool reads_index = false) {
  return plan_map_several(terms, operands, {type}, out, mesh, process, options, reads_index);
}
}  // namespace tessera::detail

namespace tessera::ops {

struct Map {
  Terms terms = {};
  DType type = DType::f32;  ///< of the result
  Linearity linearity = Linearity::pointwise;
  Sharding out = {};
  /// Whether the function may read the index of its element: such a function runs where the result
  /// lies, since the call tells it the place of that block.
  bool reads_index = true;

  constexpr OperatorKind kind() const { return OperatorKind::map; }
  constexpr Verdict check(const TensorDescs& x) const {
    if (const Verdict v = detail::check_map(terms, detail::shardings_of(x), out, linearity);
        !v.ok())
      return v;
    return detail::check_extents(terms, x, true);
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames& names) const {
    return tessera::detail::explain_terms(v, terms, x, names, true);
  }
  /// Returns the default sharding of the result: unfinished like the operands.
  constexpr Sharding deduced(const TensorDescs& x) const {
    Sharding s = detail::deduce_finished(terms, x);
    AxisSet open;
    Reduction kind = Reduction::sum;
    for (const TensorDesc& operand : x) {
      open = open | operand.sharding.partial;
      if (!operand.sharding.partial.empty()) kind = operand.sharding.reduction;
    }
    if (open.empty()) return s;
    for (int d = 0; d < s.rank(); ++d) s[d] = s[d].without(open);
    return s.with_partial(open, kind);
  }
  constexpr TensorDescs results(const TensorDescs& x) const {
    return {{type, detail::broadcast_extents(terms, x), out}};
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_map(terms, x, type, out, on.mesh, on.process, on.options, reads_index);
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("type", type);
    visit("linearity", linearity);
    visit("to", out);
    visit("reads_index", reads_index);
  }
  constexpr bool operator==(const Map&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Map)
