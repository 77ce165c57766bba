// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that takes elements of a table at indices that are known only when the program
/// runs.
///
///     ops::Take{parse("vm,bs->bsm"), OutOfRange::clamp, out}.plan({table, ids}, planning)
///     ops::Take{parse("vm,b->bVm"), OutOfRange::clamp, out, {3}}   // windows of 3 rows
#include <tessera/plan/operation.hpp>
#include <tessera/plan/take.hpp>

namespace tessera::ops {

struct Take {
  Terms terms = {};  ///< of the table, then of the indices
  OutOfRange out_of_range = OutOfRange::clamp;
  Sharding out = {};
  Extents windows = {};  ///< of the result's letters of windows, in its order

  constexpr OperatorKind kind() const { return OperatorKind::take; }
  /// The indices are finished; the result is unfinished like the table.
  constexpr Verdict check(const TensorDescs& x) const {
    if (const Verdict v = detail::check_take_terms(terms, x, out); !v.ok()) return v;
    const Shardings shardings = detail::shardings_of(x);
    const detail::IndexTerms indices = detail::indices_of_take(terms);
    if (const Verdict v = detail::check_indices(indices, x, 1); !v.ok()) return v;
    const Sharding& s = x[0].sharding;
    if (const Verdict v = detail::check_open_axes(terms, shardings, out,
                                                  s.partial.empty() ? out.reduction : s.reduction);
        !v.ok())
      return v;
    if (const Verdict v = detail::check_extents(terms, x, false); !v.ok()) return v;
    if (const Verdict v = detail::check_columns(indices, x, 1); !v.ok()) return v;
    if (const int letters = indices.windows().size(); letters != windows.size())
      return {.rule = Rule::indexed_window_each, .left = letters, .right = windows.size()};
    for (const Index extent : windows)
      if (extent < 0) return {.rule = Rule::extent_not_negative, .left = extent};
    return detail::check_indexed(indices, x[0].extents, results(x)[0].extents, out_of_range);
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames& names) const {
    if (v.rule == Rule::indexed_window_each)
      return tessera::explain(v, {.first = to_text(detail::indices_of_take(terms).windows())});
    return detail::explain_terms(v, terms, x, names);
  }
  /// Returns the default sharding of the result; its windows are whole.
  constexpr Sharding deduced(const TensorDescs& x) const {
    const detail::WithWindows all = detail::with_windows(terms, x);
    return detail::deduce_finished(all.terms, all.operands);
  }
  constexpr TensorDescs results(const TensorDescs& x) const {
    return {{x[0].type, detail::extents_of(terms.result, terms, x, windows), out}};
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_take(terms, x, out_of_range, out, on.mesh, on.process, on.options, windows);
  }
  constexpr detail::StandIn<Take> stand_in(const TensorDescs& x) const {
    const TensorDescs any = detail::stand_ins(x);
    if (!terms.well_formed) return {*this, any};
    Take operation = *this;
    const detail::IndexTerms indices = detail::indices_of_take(terms);
    operation.windows = Extents(indices.windows().size(), 5040);
    return {operation, detail::with_columns(indices, any, 1)};
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("out_of_range", out_of_range);
    visit("windows", windows);
    visit("to", out);
  }
  constexpr bool operator==(const Take&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Take)
