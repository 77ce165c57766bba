// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Whether a sharding is legal on a mesh, as a value: the first broken rule and the facts that
/// broke it.
///
///     check(Sharding{{0}, {0}}, 2).rule == SpecRule::axis_used_once
///
/// Laws: a legal sharding has verdict SpecRule::ok; tests compare verdicts, types turn them into
/// messages.
#include <cstdint>
#include <string>

#include <tessera/spec/sharding.hpp>

namespace tessera {

enum class SpecRule : std::uint8_t {
  ok,
  axis_in_mesh,
  axis_used_once,
  partial_axis_used_once,
  reduction_named,
  reduction_defined
};

struct SpecVerdict {
  SpecRule rule = SpecRule::ok;
  int dimension = -1;  ///< where the rule is broken
  int axis = -1;       ///< which axis breaks it
  constexpr bool ok() const { return rule == SpecRule::ok; }
  constexpr bool operator==(const SpecVerdict&) const = default;
};

/// Returns the first rule that `s` breaks on a mesh of `axes` axes. An axis that lowering did not
/// find stands as 15.
constexpr SpecVerdict check(const Sharding& s, int axes) {
  AxisSet used;
  for (int d = 0; d < s.rank(); ++d)
    for (int i = 0; i < s[d].size(); ++i) {
      const int axis = s[d][i];
      if (axis >= axes) return {SpecRule::axis_in_mesh, d, axis};
      if (used.contains(axis)) return {SpecRule::axis_used_once, d, axis};
      used.insert(axis);
    }
  for (int axis = 0; axis < 16; ++axis)
    if (s.partial.contains(axis)) {
      if (axis >= axes) return {SpecRule::axis_in_mesh, s.rank(), axis};
      if (used.contains(axis)) return {SpecRule::partial_axis_used_once, s.rank(), axis};
    }
  if (!s.partial.empty() && s.reduction == Reduction::none)
    return {SpecRule::reduction_named, s.rank(), -1};
  return {};
}

/// Returns the first rule that a tensor breaks: values are unfinished only by a kind that their
/// element type has.
constexpr SpecVerdict check(const TensorDesc& t, int axes) {
  const SpecVerdict verdict = check(t.sharding, axes);
  if (verdict.ok() && !defined(t.sharding.reduction, t.type))
    return {SpecRule::reduction_defined, t.sharding.rank(), -1};
  return verdict;
}

/// Returns the sentence for a verdict on a sharding made at run time.
inline std::string explain(const SpecVerdict& verdict, const Sharding& s, const AxisNames& names) {
  const std::string axis = verdict.axis >= 0 && verdict.axis < names.size()
                               ? std::string(names[verdict.axis])
                               : "number " + std::to_string(verdict.axis);
  switch (verdict.rule) {
    case SpecRule::ok:
      return "the sharding is legal";
    case SpecRule::axis_in_mesh:
      return "dimension " + std::to_string(verdict.dimension) + " is split over axis " + axis +
             ", but the mesh has only " + std::to_string(names.size()) +
             " axes; name an axis of the mesh";
    case SpecRule::axis_used_once:
      return to_string(s, names) + " uses axis " + axis +
             " twice; a mesh axis splits at most one dimension; drop one use";
    case SpecRule::partial_axis_used_once:
      return to_string(s, names) + " is partial over axis " + axis +
             " and also splits a dimension over it; an axis does one or the other";
    case SpecRule::reduction_named:
      return "a sharding is partial but names no reduction; say Sum, Product, Max, Min, Any or All";
    case SpecRule::reduction_defined:
      return to_string(s, names) +
             " is unfinished by a kind that the elements do not have; numbers have Sum and "
             "Product, ordered ones Max and Min, bool Any and All; name one of these";
  }
  return "";
}

}  // namespace tessera
