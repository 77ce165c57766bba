// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator of softmax, and of its logarithm.
///
///     ops::Softmax{detail::same_terms("bsv"), 'v', false, out}
#include <tessera/plan/check/row_verdict.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/softmax.hpp>

namespace tessera::ops {

struct Softmax {
  Terms terms = {};  ///< the letters of the operand are the result's
  char along = 0;
  bool logarithm = false;
  Sharding out = {};

  constexpr OperatorKind kind() const { return OperatorKind::softmax; }
  constexpr std::string_view name() const { return logarithm ? "log-softmax" : "softmax"; }
  constexpr Verdict check(const TensorDescs& x) const {
    if (!is_real(x[0].type)) return {.rule = Rule::function_of_reals, .type = x[0].type};
    return detail::check_sort(terms, along, detail::shardings_of(x), out);
  }
  constexpr Sharding deduced(const TensorDescs& x) const { return x[0].sharding; }
  constexpr TensorDescs results(const TensorDescs& x) const {
    return {{x[0].type, x[0].extents, out}};
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_softmax(terms.result, terms.result.find(along), logarithm, x[0], out,
                                on.mesh, on.process, on.options);
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("along", along);
    visit("logarithm", logarithm);
    visit("to", out);
  }
  constexpr bool operator==(const Softmax&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Softmax)
