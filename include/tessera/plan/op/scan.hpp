// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator of running sums and other joins: for each element the join of all elements up to
/// it.
///
///     ops::Scan{detail::same_terms("bij"), 'j', Reduction::sum, {}, DType::f32, out}
#include <tessera/plan/check/row_verdict.hpp>
#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/scan.hpp>

namespace tessera::ops {

struct Scan {
  Terms terms = {};  ///< the letters of the operand are the result's
  char along = 0;
  Reduction reduction = Reduction::sum;  ///< none: by the call's function
  ScanOptions options = {};
  DType type = DType::f32;  ///< of the result
  Sharding out = {};

  constexpr OperatorKind kind() const { return OperatorKind::scan; }
  constexpr Verdict check(const TensorDescs& x) const {
    if (reduction != Reduction::none)
      if (const Verdict v =
              detail::check_reduced_type(reduction, false, x[0].type, type, x[0].sharding);
          !v.ok())
        return v;
    return detail::check_scan(terms, along, reduction, detail::shardings_of(x), out);
  }
  constexpr Sharding deduced(const TensorDescs& x) const { return x[0].sharding; }
  constexpr TensorDescs results(const TensorDescs& x) const { return {{type, x[0].extents, out}}; }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_scan_as(type, terms.result, terms.result.find(along), reduction, options,
                                x[0], out, on.mesh, on.process, on.options);
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("along", along);
    visit("reduction", reduction);
    visit("reverse", options.reverse);
    visit("exclusive", options.exclusive);
    visit("type", type);
    visit("to", out);
  }
  constexpr bool operator==(const Scan&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Scan)
