// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that joins dimensions of a tensor into one value: sum, product, mean, max, min,
/// any, all.
///
///     Plan p = detail::plan_reduce(parse("bsv->bs"), Reduction::max, x, out, mesh, process);
///
/// Each process reduces its block; then the parts are joined over the axes that split the reduced
/// dimensions.
///
///     ops::Reduce sum{parse("bsv->bs"), Reduction::sum, false, DType::f32, out};
///
/// Laws: no communication when no reduced dimension is split; a scattered result costs only a
/// reduce-scatter. Sums of half types are sent in float and rounded once, when the last part is
/// added; sums left open are rounded on each process.
#include <tessera/plan/builder.hpp>
#include <tessera/plan/check/row_verdict.hpp>
#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/op/rows/deterministic.hpp>
#include <tessera/plan/operation.hpp>

namespace tessera::detail {

/// Plans the reduction of x (terms.operands[0]) to terms.result, with elements of `type`. `out` may
/// leave open the axes that split the reduced dimensions.
constexpr Plan plan_reduce_as(DType type, const Terms& terms, Reduction reduction,
                              const TensorDesc& x, const Sharding& out, const MeshShape& mesh,
                              int process = 0, const PlanOptions& options = {}) {
  PlanBuilder build(OperatorKind::reduce, mesh, process, options);
  build.plan().reduction = reduction;
  int slot = build.operand(x, terms.operands[0]);
  slot = build.diagonal(slot);
  const auto keep = [&](char label) { return terms.result.contains(label); };
  AxisSet sent = x.sharding.partial;  // the axes over which parts are added
  for (int d = 0; d < x.rank(); ++d)
    if (!keep(terms.operands[0][d])) sent = sent | x.sharding[d].set();
  sent = sent - out.partial - mesh.unit_axes();
  slot =
      build.reduce(slot, reduction, keep, sent.empty() ? type : options.parts_of(reduction, type));
  slot = build.permute(slot, terms.result);
  return build.finish(build.reshard(slot, out, type), out);
}

/// Plans with reduce's default element type (reduced_type).
constexpr Plan plan_reduce(const Terms& terms, Reduction reduction, const TensorDesc& x,
                           const Sharding& out, const MeshShape& mesh, int process = 0,
                           const PlanOptions& options = {}) {
  return plan_reduce_as(reduced_type(reduction, x.type), terms, reduction, x, out, mesh, process,
                        options);
}

}  // namespace tessera::detail

namespace tessera::ops {

struct Reduce {
  Terms terms = {};
  Reduction reduction = Reduction::sum;
  bool mean = false;
  bool deterministic = false;  ///< the same bits for any number of processes
  DType type = DType::f32;     ///< of the result
  Sharding out = {};

  constexpr OperatorKind kind() const { return OperatorKind::reduce; }
  constexpr std::string_view name() const { return mean ? "mean" : name_of(reduction); }
  constexpr Verdict check(const TensorDescs& x) const {
    if (in_limbs(x)) {
      if (const Verdict v = detail::check_deterministic(terms, detail::shardings_of(x), out);
          !v.ok())
        return v;
      const Index count = detail::reduced_count(terms, x[0].extents);
      if (detail::bin_format(x[0].type, count).limbs == 0)
        return {.rule = Rule::limbs_suffice, .operand = 0, .left = count};
      return {};
    }
    if (const Verdict v =
            detail::check_reduce(terms, detail::shardings_of(x), out, reduction, mean);
        !v.ok())
      return v;
    if (const Verdict v = detail::check_extents(terms, x, false); !v.ok())
      return v;  // for a diagonal
    return detail::check_reduced_type(reduction, mean, x[0].type, type, x[0].sharding);
  }
  constexpr Sharding deduced(const TensorDescs& x) const {
    return detail::deduce_finished(terms, x);
  }
  constexpr TensorDescs results(const TensorDescs& x) const {
    return {{type, detail::extents_of(terms.result, terms, x), out}};
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    if (in_limbs(x))
      return detail::plan_deterministic_sum(terms, x[0], out, on.mesh, on.process, on.options);
    return detail::plan_reduce_as(type, terms, reduction, x[0], out, on.mesh, on.process,
                                  on.options);
  }
  /// Returns 1 / the number of elements in each mean; 0 where the local work computes it.
  constexpr double scale(const TensorDescs& x) const {
    if (!mean) return 1;
    if (in_limbs(x)) return 0;
    return detail::mean_scale(terms, x[0].extents);
  }
  /// Integers and truth values, and maxima and minima of any numbers, are exact without limbs.
  constexpr bool in_limbs(const TensorDescs& x) const {
    return deterministic && reduction == Reduction::sum &&
           (is_real(x[0].type) || is_complex(x[0].type));
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("reduction", reduction);
    visit("mean", mean);
    visit("deterministic", deterministic);
    visit("type", type);
    visit("to", out);
  }
  constexpr bool operator==(const Reduce&) const = default;
};

}  // namespace tessera::ops

TESSERA_OPERATION(Reduce)

namespace tessera::detail {
/// Returns the reduction of operands `x` whose kind a type names.
template <class Kind> constexpr ops::Reduce reduction_of(const Terms& terms, const TensorDescs& x) {
  return {
      terms, Kind::reduction, is_mean<Kind>, is_deterministic<Kind>, KindType<Kind>::of(x[0].type),
      {}};
}
}  // namespace tessera::detail
