// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The elementwise operator: a function of the elements at one position of all operands, with
/// broadcasting. The function itself belongs to the call.
///
///     ops::Map{detail::broadcast_terms({2, 1}), DType::f32, Linearity::pointwise, out, false}
#include <tessera/plan/map.hpp>
#include <tessera/plan/operation.hpp>

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
