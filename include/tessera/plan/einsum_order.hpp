// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The order in which a product of many tensors is multiplied, two at a time: by the integer cost,
/// communication included, with which plan/einsum.hpp plans each product.
///
///     detail::EinsumOrder order = detail::einsum_order(parse("ij,jk,kl->il"), descs, out, mesh, options);
///     order.products[0].left;                 // which two tensors come first
///
/// Laws: carrying out the products in order gives the whole product; up to five operands the order
/// is the cheapest of all, with more, each next pair is the cheapest one; all processes decide
/// alike.
#include <tessera/plan/check/verdict.hpp>
#include <tessera/plan/einsum.hpp>

namespace tessera::detail {

/// One product of two tensors. Tensors count from the operands on; each product adds one at the
/// end.
struct PairProduct {
  int left = 0;
  int right = 0;
  Terms terms;
  Sharding out;
};

struct EinsumOrder {
  FixedVector<PairProduct, max_operands> products;
  std::int64_t cost = max_int64;
};

class OrderSearch {
 public:
  constexpr OrderSearch(const Terms& terms, const Sharding& out, const MeshShape& mesh,
                        const PlanOptions& options)
      : result_(terms.result), out_(out), mesh_(mesh), options_(options) {}

  struct Tensor {
    Term labels;
    TensorDesc desc;
    bool used = false;
  };
  using Tensors = FixedVector<Tensor, 2 * max_operands>;

  constexpr EinsumOrder best(const Tensors& tensors) {
    EinsumOrder start;
    start.cost = 0;
    extend(tensors, tensors.size(), start, tensors.size() <= 5);
    if (options_.contract.bounded() && breaches(best_.cost) > 0 && tensors.size() > 5)
      if (const EinsumOrder written = in_order(tensors).order; written.cost < best_.cost)
        best_ = written;
    return best_;
  }

  /// The products from left to right, as written, with all their communication; empty when one of
  /// them is impossible.
  struct InOrder {
    EinsumOrder order;
    Contract needs = Contract::nothing();
  };
  constexpr InOrder in_order(Tensors tensors) const {
    InOrder result;
    result.order.cost = 0;
    const int count = tensors.size();
    for (int next = 1; next < count; ++next) {
      const int done = next == 1 ? 0 : tensors.size() - 1;
      const PairProduct product = pair(tensors, done, next, next + 1 == count);
      if (!possible(tensors, product)) return {};
      const Plan plan = planned(tensors, product);
      result.order.cost = saturating_add(result.order.cost, cost_of(plan));
      result.order.products.push_back(product);
      result.needs = result.needs.joined(plan.needs);
      tensors[done].used = tensors[next].used = true;
      tensors.push_back({product.terms.result, plan.result_desc(), false});
    }
    return result;
  }

 private:
  constexpr PairProduct pair(const Tensors& tensors, int left, int right, bool last) const {
    PairProduct product;
    product.left = left;
    product.right = right;
    product.terms.operands = {tensors[left].labels, tensors[right].labels};
    if (last) {
      product.terms.result = result_;
      product.out = out_;
      return product;
    }
    for (int side : {left, right})
      for (char label : tensors[side].labels)
        if (!product.terms.result.contains(label) && wanted(tensors, label, left, right)) {
          if (product.terms.result.size() == max_dims) {
            product.terms.well_formed =
                false;  // more than a tensor may have: another order may work
            return product;
          }
          product.terms.result.push_back(label);
        }
    const Shardings shardings{tensors[left].desc.sharding, tensors[right].desc.sharding};
    product.out = deduce(product.terms, shardings);
    leave_open(tensors, product);
    return product;
  }
  /// Keeps open the axes that the whole result leaves open, where this product would finish them.
  constexpr void leave_open(const Tensors& tensors, PairProduct& product) const {
    AxisSet open;
    for (int side : {product.left, product.right}) {
      const Sharding& s = tensors[side].desc.sharding;
      open = open | s.partial;
      for (int d = 0; d < s.rank(); ++d)
        if (!product.terms.result.contains(tensors[side].labels[d])) open = open | s[d].set();
    }
    open = open & out_.partial;
    for (int d = 0; d < product.out.rank(); ++d) product.out[d] = product.out[d].without(open);
    product.out = product.out.with_partial(open, Reduction::sum);
  }
  constexpr bool wanted(const Tensors& tensors, char label, int left, int right) const {
    if (result_.contains(label)) return true;
    for (int i = 0; i < tensors.size(); ++i)
      if (i != left && i != right && !tensors[i].used && tensors[i].labels.contains(label))
        return true;
    return false;
  }
  constexpr bool possible(const Tensors& tensors, const PairProduct& product) const {
    return product.terms.well_formed &&
           check_einsum(product.terms,
                        {tensors[product.left].desc.sharding, tensors[product.right].desc.sharding},
                        product.out)
               .ok();
  }
  constexpr Plan planned(const Tensors& tensors, const PairProduct& product) const {
    return plan_einsum(product.terms, tensors[product.left].desc, tensors[product.right].desc,
                       product.out, mesh_, 0, options_);
  }
  constexpr std::int64_t cost_of(const Plan& plan) const {
    return options_.contract.covers(plan.needs) ? plan.cost
                                                : saturating_add(plan.cost, breach_cost);
  }
  /// Tries every next pair in turn, or only the cheapest one.
  constexpr void extend(const Tensors& tensors, int remaining, const EinsumOrder& done, bool all) {
    if (remaining == 1) {
      if (done.cost < best_.cost || best_.products.empty()) best_ = done;
      return;
    }
    EinsumOrder cheapest;
    Tensors after_cheapest;
    for (int left = 0; left < tensors.size(); ++left)
      for (int right = left + 1; right < tensors.size(); ++right) {
        if (tensors[left].used || tensors[right].used) continue;
        const PairProduct product = pair(tensors, left, right, remaining == 2);
        if (!possible(tensors, product)) continue;
        const Plan plan = planned(tensors, product);
        EinsumOrder longer = done;
        longer.cost = saturating_add(longer.cost, cost_of(plan));
        longer.products.push_back(product);
        Tensors after = tensors;
        after[left].used = after[right].used = true;
        after.push_back({product.terms.result, plan.result_desc(), false});
        if (all) {
          if (longer.cost < best_.cost || best_.products.empty())
            extend(after, remaining - 1, longer, all);
        } else if (longer.cost < cheapest.cost || cheapest.products.empty()) {
          cheapest = longer;
          after_cheapest = after;
        }
      }
    if (!all && !cheapest.products.empty()) extend(after_cheapest, remaining - 1, cheapest, all);
  }

  Term result_;
  Sharding out_;
  MeshShape mesh_;
  PlanOptions options_;
  EinsumOrder best_;
};

/// Returns the order for three or more operands; empty when every order has a product with more
/// than 8 dimensions, or with two open operands. Preconditions: check_einsum found nothing wrong.
constexpr EinsumOrder einsum_order(const Terms& terms, const TensorDescs& operands,
                                   const Sharding& out, const MeshShape& mesh,
                                   const PlanOptions& options = {}) {
  detail::OrderSearch::Tensors tensors;
  for (int i = 0; i < operands.size(); ++i)
    tensors.push_back({terms.operands[i], operands[i], false});
  return detail::OrderSearch(terms, out, mesh, options).best(tensors);
}
}  // namespace tessera::detail
