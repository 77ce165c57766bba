// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator of layer norm, and of RMS norm, over the last dimension.
///
///     ops::Normalize{detail::norm_terms(3, 3), true, 1e-5, out}        // "abc,c,c->abc"
#include <tessera/plan/check/row_verdict.hpp>
#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/normalize.hpp>
#include <tessera/plan/operation.hpp>

namespace tessera::ops {

struct Normalize {
  Terms terms = {};
  bool centred = true;  ///< else it is an RMS norm
  double epsilon = 0;   ///< is added to the variance
  Sharding out = {};

  constexpr OperatorKind kind() const { return OperatorKind::normalize; }
  constexpr std::string_view name() const { return centred ? "layer norm" : "RMS norm"; }
  constexpr Verdict check(const TensorDescs& x) const {
    if (x[0].rank() == 0 || terms.result.empty()) return {Rule::norm_of_rows, 0};
    const Shardings shardings = detail::shardings_of(x);
    if (const Verdict v = detail::check_sort(terms, terms.result.back(), shardings, out); !v.ok())
      return v;
    if (!is_real(x[0].type)) return {.rule = Rule::function_of_reals, .type = x[0].type};
    for (int i = 1; i < x.size(); ++i)
      if (const Verdict v = detail::check_one_type(Rule::norm_types_alike, x[0].type, x[i].type, i);
          !v.ok())
        return v;
    if (!(epsilon >= 0)) return {.rule = Rule::epsilon_not_negative, .type = x[0].type};
    return detail::check_extents(terms, x, false);
  }
  constexpr Sharding deduced(const TensorDescs& x) const { return x[0].sharding; }
  /// The norm; and of each row, as x is split, one over its deviation, and the mean of centred
  /// ones.
  constexpr TensorDescs results(const TensorDescs& x) const {
    TensorDesc row = x[0];
    row.type = detail::facts_of(x[0].type).compute;
    if (x[0].rank() > 0) {
      row.extents.resize(x[0].rank() - 1);
      row.sharding.dims.resize(x[0].rank() - 1);
    }
    TensorDescs made{{x[0].type, x[0].extents, out}, row};
    if (centred) made.push_back(row);
    return made;
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_normalize(terms, centred, epsilon, x, out, on.mesh, on.process, on.options);
  }
  /// Returns 1 / the number of elements in each row.
  constexpr double scale(const TensorDescs& x) const {
    return detail::mean_scale(detail::norm_rows(terms), x[0].extents);
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("centred", centred);
    visit("epsilon", epsilon);
    visit("to", out);
  }
  constexpr bool operator==(const Normalize&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Normalize)
