// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The elementwise operator with several results of equal extents and shardings: one pass over
/// memory makes all of them. The function itself belongs to the call.
///
///     ops::MapSeveral{detail::broadcast_terms({2, 2}), {DType::f32, DType::f32}, out}
#include <tessera/plan/op/elements/map.hpp>

namespace tessera::ops {

struct MapSeveral {
  Terms terms = {};
  FixedVector<DType, max_operands> types = {};  ///< of the results
  Sharding out = {};

  constexpr OperatorKind kind() const { return OperatorKind::map; }
  constexpr Verdict check(const TensorDescs& x) const { return first().check(x); }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames& names) const {
    return first().explain(v, x, names);
  }
  /// Returns the default sharding of the results, finished.
  constexpr Sharding deduced(const TensorDescs& x) const { return first().deduced(x).finished(); }
  constexpr TensorDescs results(const TensorDescs& x) const {
    TensorDescs made;
    for (const DType type : types) made.push_back({type, detail::broadcast_extents(terms, x), out});
    return made;
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_map_several(terms, x, types, out, on.mesh, on.process, on.options);
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    for (const DType type : types) visit("type", type);
    visit("to", out);
  }
  constexpr bool operator==(const MapSeveral&) const = default;

 private:
  constexpr Map first() const { return {terms, types[0], Linearity::pointwise, out}; }
};

}  // namespace tessera::ops

TESSERA_OPERATION(MapSeveral)
