// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that sorts lines, or takes their first elements in order: keys, carried tensors,
/// positions.
///
///     ops::Sort{detail::same_terms("bv"), 'v', {.descending = true, .positions = true}, out}
#include <tessera/plan/check/row_verdict.hpp>
#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/sort.hpp>

namespace tessera::ops {

struct Sort {
  Terms terms = {};  ///< the letters of every operand are the results'
  char along = 0;
  SortTask task = {};
  Sharding out = {};

  constexpr OperatorKind kind() const { return task.kind; }
  constexpr std::string_view name() const {
    return !task.keys && terms.operands.size() == 1 ? std::string_view("arg-sort")
                                                    : name_of(task.kind);
  }
  constexpr Verdict check(const TensorDescs& x) const {
    if (const Verdict v = detail::check_sort_type(x[0].type); !v.ok()) return v;
    if (const Verdict v = detail::check_sort(terms, along, detail::shardings_of(x), out); !v.ok())
      return v;
    if (const Verdict v = detail::check_extents(terms, x, false); !v.ok()) return v;
    const int d = terms.result.find(along);
    if (task.kind == OperatorKind::top_k && (task.limit < 0 || task.limit > x[0].extents[d]))
      return {.rule = Rule::first_of_line, .left = task.limit, .right = x[0].extents[d], .dim = d};
    return {};
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames& names) const {
    if (v.rule == Rule::first_of_line)
      return tessera::explain(v, {.first = to_string(x[0].extents)});
    return tessera::detail::explain_terms(v, terms, x, names);
  }
  /// Returns the default sharding of the results: the keys'. Lines cut to their first elements are
  /// whole.
  constexpr Sharding deduced(const TensorDescs& x) const {
    Sharding s = x[0].sharding;
    const int d = terms.result.find(along);
    if (task.limit >= 0 && d >= 0 && d < s.rank()) s[d] = {};
    return s;
  }
  constexpr TensorDescs results(const TensorDescs& x) const {
    Extents extents = x[0].extents;
    if (task.limit >= 0) extents[terms.result.find(along)] = task.limit;
    TensorDescs made;
    for (int i = task.keys ? 0 : 1; i < x.size(); ++i) made.push_back({x[i].type, extents, out});
    if (task.positions) made.push_back({DType::i64, extents, out});
    return made;
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_sort(terms.result, terms.result.find(along), task, x, out, on.mesh,
                             on.process, on.options);
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("along", along);
    visit("descending", task.descending);
    visit("keys", task.keys);
    visit("positions", task.positions);
    if (task.limit >= 0) visit("first", task.limit);
    visit("kind", task.kind);
    visit("to", out);
  }
  constexpr bool operator==(const Sort&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Sort)
