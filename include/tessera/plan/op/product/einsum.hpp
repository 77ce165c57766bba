// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that multiplies tensors by an equation. The last operands may belong to an
/// epilogue: elementwise work on the product.
///
///     ops::Einsum{parse("ik,kj->ij"), out}.plan({a, b}, {mesh, process, options})
///
/// Laws: with one operand it is a sum over the letters that the result drops; three and more
/// operands are multiplied two at a time (order()), each product with its own plan.
#include <tessera/plan/op/product/einsum_order.hpp>
#include <tessera/plan/op/product/product_of_two.hpp>
#include <tessera/plan/op/rows/reduce.hpp>

namespace tessera::ops {

struct Einsum {
  Terms terms = {};
  Sharding out = {};
  bool epilogue = false;    ///< operands beyond `terms` belong to an epilogue
  DType type = DType::f32;  ///< of an epilogue's result
  bool adds =
      false;  ///< the epilogue adds to its last operand, which may be unfinished like the product

  /// With one factor the operator is a reduce: a sum.
  constexpr OperatorKind kind() const {
    return terms.operands.size() == 1 ? OperatorKind::reduce : OperatorKind::einsum;
  }
  constexpr std::string_view name() const {
    return terms.operands.size() == 1 ? name_of(Reduction::sum) : name_of(OperatorKind::einsum);
  }
  constexpr Verdict check(const TensorDescs& operands) const {
    const TensorDescs x = factors_of(operands);
    if (const Verdict v = detail::check_einsum(terms, detail::shardings_of(x), out); !v.ok())
      return v;
    for (int i = 1; i < x.size(); ++i)
      if (const Verdict v =
              detail::check_one_type(Rule::factor_types_alike, x[0].type, x[i].type, i);
          !v.ok())
        return v;
    if (const Verdict v = detail::check_product_type(x[0].type); !v.ok()) return v;
    if (const Verdict v = detail::check_extents(terms, x, false); !v.ok()) return v;
    if (!epilogue) return {};
    const TensorDescs last = extras_of(operands);
    const Terms all = detail::with_extras(terms, last);
    if (const Verdict v = detail::check_epilogue(all, last, out, adds); !v.ok()) return v;
    return detail::check_extras(all, x, last);
  }
  std::string explain(const Verdict& v, const TensorDescs& operands, const AxisNames& names) const {
    const TensorDescs x = factors_of(operands);
    if (!epilogue || !detail::check_extents(terms, x, false).ok())
      return tessera::detail::explain_terms(v, terms, x, names);
    return tessera::explain(v, detail::with_extras(terms, extras_of(operands)), names);
  }
  /// Returns the default sharding of the result: finished, like its operands'.
  constexpr Sharding deduced(const TensorDescs& operands) const {
    return detail::deduce_finished(terms, factors_of(operands));
  }
  constexpr TensorDescs results(const TensorDescs& operands) const {
    return {{epilogue ? type : operands[0].type,
             detail::extents_of(terms.result, terms, factors_of(operands)), out}};
  }
  /// For one or two factors.
  constexpr Plan plan(const TensorDescs& operands, const Planning& on) const {
    if (terms.operands.size() == 1) return as_sum(operands).plan(operands, on);
    return detail::plan_einsum(terms, operands[0], operands[1], out, on.mesh, on.process,
                               on.options, {epilogue, extras_of(operands), type});
  }
  /// For three and more: the pairs to multiply, in order; empty where no order is possible.
  constexpr detail::EinsumOrder order(const TensorDescs& operands, const Planning& on) const {
    return detail::einsum_order(terms, operands, out, on.mesh, on.options);
  }
  constexpr Contract needs(const TensorDescs& operands, const MeshShape& mesh,
                           const PlanOptions& options) const {
    const TensorDescs any = detail::stand_ins(operands);
    if (terms.operands.size() < 3) return plan(any, {mesh, 0, options}).needs;
    tessera::detail::OrderSearch::Tensors tensors;
    for (int i = 0; i < any.size(); ++i) tensors.push_back({terms.operands[i], any[i], false});
    const auto written = tessera::detail::OrderSearch(terms, out, mesh, options).in_order(tensors);
    return written.order.products.empty() ? Contract{} : written.needs;
  }
  /// For one factor.
  constexpr Reduce as_sum(const TensorDescs& x) const {
    return {terms, Reduction::sum, false, false, x[0].type, out};
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("terms", terms);
    visit("to", out);
    visit("epilogue", epilogue);
    visit("type", type);
    visit("adds", adds);
  }
  constexpr bool operator==(const Einsum&) const = default;

 private:
  constexpr TensorDescs factors_of(const TensorDescs& operands) const {
    TensorDescs x = operands;
    if (epilogue) x.resize(terms.operands.size());
    return x;
  }
  constexpr TensorDescs extras_of(const TensorDescs& operands) const {
    TensorDescs x;
    for (int i = terms.operands.size(); epilogue && i < operands.size(); ++i)
      x.push_back(operands[i]);
    return x;
  }
};

}  // namespace tessera::ops

TESSERA_OPERATION(Einsum)
