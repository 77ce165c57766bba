// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that finds the position of a row's largest or least element.
///
///     ops::Arg{parse("bsv->bs"), Reduction::max, out}
#include <tessera/plan/arg.hpp>
#include <tessera/plan/check/row_verdict.hpp>
#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/operation.hpp>

namespace tessera::ops {

struct Arg {
  Terms terms = {};
  Reduction reduction = Reduction::max;
  Sharding out = {};

  constexpr OperatorKind kind() const { return OperatorKind::arg; }
  constexpr Verdict check(const TensorDescs& x) const {
    if (const Verdict v = detail::check_arg_type(x[0].type); !v.ok()) return v;
    if (const Verdict v = detail::check_arg(terms, detail::shardings_of(x), out); !v.ok()) return v;
    if (volume(detail::extents_of(terms.result, terms, x)) > 0 &&
        detail::reduced_count(terms, x[0].extents) == 0)
      return {.rule = Rule::row_not_empty};
    return {};
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames& names) const {
    if (v.rule == Rule::row_not_empty)
      return tessera::explain(v, {.first = to_string(x[0].extents)});
    return tessera::explain(v, terms, names);
  }
  constexpr Sharding deduced(const TensorDescs& x) const {
    return detail::deduce_finished(terms, x);
  }
  constexpr TensorDescs results(const TensorDescs& x) const {
    return {{DType::i64, detail::extents_of(terms.result, terms, x), out}};
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_arg(terms, reduction, x[0], out, on.mesh, on.process, on.options);
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("reduction", reduction);
    visit("to", out);
  }
  constexpr bool operator==(const Arg&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Arg)
