// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that takes elements of a table at indices that are known only when the program
/// runs.
///
///     ops::Take{parse("vm,bs->bsm"), OutOfRange::clamp, out}.plan({table, ids}, planning)
#include <tessera/plan/operation.hpp>
#include <tessera/plan/take.hpp>

namespace tessera::ops {

struct Take {
  Terms terms = {};  ///< of the table, then of the indices
  OutOfRange out_of_range = OutOfRange::clamp;
  Sharding out = {};

  constexpr OperatorKind kind() const { return OperatorKind::take; }
  /// The indices are finished; the result is unfinished like the table.
  constexpr Verdict check(const TensorDescs& x) const {
    const Shardings shardings = shardings_of(x);
    if (const Verdict v = detail::check_terms(terms, shardings, out); !v.ok()) return v;
    const IndexTerms indices = indices_of_take(terms);
    if (const Verdict v = detail::check_indices(indices, x, 1); !v.ok()) return v;
    const Sharding& s = x[0].sharding;
    if (const Verdict v = detail::check_open_axes(terms, shardings, out,
                                                  s.partial.empty() ? out.reduction : s.reduction);
        !v.ok())
      return v;
    if (const Verdict v = check_extents(terms, x, false); !v.ok()) return v;
    if (const Verdict v = detail::check_columns(indices, x, 1); !v.ok()) return v;
    return detail::check_indexed(indices.indexed(), indices.table, x[0].extents,
                                 volume(results(x)[0].extents), out_of_range);
  }
  constexpr Sharding deduced(const TensorDescs& x) const { return deduce_finished(terms, x); }
  constexpr TensorDescs results(const TensorDescs& x) const {
    return {{x[0].type, extents_of(terms.result, terms, x), out}};
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return plan_take(terms, x, out_of_range, out, on.mesh, on.process, on.options);
  }
  constexpr detail::OnPaper<Take> on_paper(const TensorDescs& x) const {
    const TensorDescs any = detail::all_on_paper(x);
    if (!terms.well_formed) return {*this, any};
    return {*this, detail::with_columns(indices_of_take(terms), any, 1)};
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("out_of_range", out_of_range);
    visit("to", out);
  }
  constexpr bool operator==(const Take&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Take)
