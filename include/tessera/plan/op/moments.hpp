// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator of variances over dimensions of a tensor, and of means with them.
///
///     ops::Moments{parse("bsv->bs"), true, out}         // the variance, then the mean
#include <tessera/plan/check/row_verdict.hpp>
#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/moments.hpp>
#include <tessera/plan/operation.hpp>

namespace tessera::ops {

struct Moments {
  Terms terms = {};
  bool with_mean = false;  ///< a further result
  Sharding out = {};

  constexpr OperatorKind kind() const { return OperatorKind::moments; }
  constexpr std::string_view name() const { return with_mean ? "mean and variance" : "variance"; }
  constexpr Verdict check(const TensorDescs& x) const {
    if (const Verdict v = detail::check_deterministic(terms, detail::shardings_of(x), out); !v.ok())
      return v;
    return detail::check_reduce_type(Reduction::sum, true, x[0].type);
  }
  constexpr Sharding deduced(const TensorDescs& x) const {
    return detail::deduce_finished(terms, x);
  }
  /// In the type that elements are computed in; a variance is real.
  constexpr TensorDescs results(const TensorDescs& x) const {
    const DType computed = detail::facts_of(x[0].type).compute;
    const Extents extents = detail::extents_of(terms.result, terms, x);
    TensorDescs made{{part_type(computed), extents, out}};
    if (with_mean) made.push_back({computed, extents, out});
    return made;
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_moments(terms, with_mean, x[0], out, on.mesh, on.process, on.options);
  }
  /// Returns 1 / the number of elements in each mean.
  constexpr double scale(const TensorDescs& x) const {
    return detail::mean_scale(terms, x[0].extents);
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("mean", with_mean);
    visit("to", out);
  }
  constexpr bool operator==(const Moments&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Moments)
