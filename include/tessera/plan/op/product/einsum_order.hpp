// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The order in which a product of many tensors is multiplied, two at a time: by the integer cost,
/// communication included, with which plan/op/product/product_of_two.hpp plans each product.
///
///     detail::EinsumOrder order = detail::einsum_order(parse("ij,jk,kl->il"), descs, out, mesh, options);
///     order.products[0].left;                 // which two tensors come first
///
/// Laws: carrying out the products in order gives the whole product; up to five operands the order
/// is the cheapest of all, with more, each next pair is the cheapest one from which an order goes
/// on; an order is found whatever the shardings are; all processes decide alike.
#include <tessera/plan/check/verdict.hpp>
#include <tessera/plan/op/product/product_of_two.hpp>

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
    keep_to_leave_open(tensors, product);
    return product;
  }
  /// Returns whether an axis is open in a tensor, or splits a letter of it that will be summed.
  constexpr bool may_be_open(const Term& labels, const Sharding& s, int axis) const {
    if (s.partial.contains(axis)) return true;
    for (int d = 0; d < s.rank(); ++d)
      if (s[d].set().contains(axis) && !result_.contains(labels[d])) return true;
    return false;
  }
  /// Keeps an axis that the whole result leaves open on a letter that a later product sums, where
  /// no other tensor has it so.
  constexpr void keep_to_leave_open(const Tensors& tensors, PairProduct& product) const {
    for (int axis = 0; axis < max_axes; ++axis) {
      if (!out_.partial.contains(axis) || may_be_open(product.terms.result, product.out, axis))
        continue;
      bool elsewhere = false;
      for (int i = 0; i < tensors.size(); ++i)
        elsewhere = elsewhere || (i != product.left && i != product.right && !tensors[i].used &&
                                  may_be_open(tensors[i].labels, tensors[i].desc.sharding, axis));
      for (const int side : {product.left, product.right}) {
        const Sharding& s = tensors[side].desc.sharding;
        for (int d = 0; d < s.rank() && !elsewhere; ++d) {
          const int at = product.terms.result.find(tensors[side].labels[d]);
          if (at < 0 || result_.contains(tensors[side].labels[d]) || !s[d].set().contains(axis))
            continue;
          for (int k = 0; k < product.out.rank(); ++k)
            if (k != at) product.out[k] = product.out[k].without(s[d].set());
          product.out[at] = s[d];
          elsewhere = true;
        }
      }
    }
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
  /// Returns whether a product may stand here: no second tensor becomes open, since no product
  /// takes two.
  constexpr bool possible(const Tensors& tensors, const PairProduct& product) const {
    bool open = !product.out.partial.empty();
    for (int i = 0; i < tensors.size(); ++i) {
      if (i == product.left || i == product.right || tensors[i].used) continue;
      if (tensors[i].desc.sharding.partial.empty()) continue;
      if (open) return false;
      open = true;
    }
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
  /// Carries a product out: the tensors after it.
  constexpr Tensors after(Tensors tensors, const PairProduct& product, const Plan& plan) const {
    tensors[product.left].used = tensors[product.right].used = true;
    tensors.push_back({product.terms.result, plan.result_desc(), false});
    return tensors;
  }
  constexpr void try_pair(const Tensors& tensors, int remaining, const EinsumOrder& done, bool all,
                          int left, int right) {
    const PairProduct product = pair(tensors, left, right, remaining == 2);
    const Plan plan = planned(tensors, product);
    EinsumOrder longer = done;
    longer.cost = saturating_add(longer.cost, cost_of(plan));
    longer.products.push_back(product);
    if (longer.cost < best_.cost || best_.products.empty())
      extend(after(tensors, product, plan), remaining - 1, longer, all);
  }
  /// Tries every next pair in turn, or the cheapest one, and the next cheapest where no order goes
  /// on from there: a product on the way would have too many dimensions.
  constexpr void extend(const Tensors& tensors, int remaining, const EinsumOrder& done, bool all) {
    if (remaining == 1) {
      if (done.cost < best_.cost || best_.products.empty()) best_ = done;
      return;
    }
    struct Next {
      int left = 0, right = 0;
      std::int64_t cost = 0;
    };
    FixedVector<Next, max_operands*(max_operands - 1) / 2> next;
    for (int left = 0; left < tensors.size(); ++left)
      for (int right = left + 1; right < tensors.size(); ++right) {
        if (tensors[left].used || tensors[right].used) continue;
        const PairProduct product = pair(tensors, left, right, remaining == 2);
        if (!possible(tensors, product)) continue;
        if (all)
          try_pair(tensors, remaining, done, all, left, right);
        else if (--plans_left_ >= 0)
          next.push_back({left, right, cost_of(planned(tensors, product))});
      }
    for (int tried = 0; tried < next.size() && best_.products.empty(); ++tried) {
      int cheapest = tried;
      for (int i = tried + 1; i < next.size(); ++i)
        if (next[i].cost < next[cheapest].cost) cheapest = i;
      const Next one = next[cheapest];
      for (int i = cheapest; i > tried; --i) next[i] = next[i - 1];  // ties stay in their order
      next[tried] = one;
      try_pair(tensors, remaining, done, all, one.left, one.right);
    }
  }

  Term result_;
  Sharding out_;
  MeshShape mesh_;
  PlanOptions options_;
  EinsumOrder best_;
  int plans_left_ = 4000;  ///< products that are priced in search of an order, where all fail
};

/// Returns the order for three or more operands; empty when every order has a product with more
/// than 8 dimensions. Preconditions: check_einsum found nothing wrong.
constexpr EinsumOrder einsum_order(const Terms& terms, const TensorDescs& operands,
                                   const Sharding& out, const MeshShape& mesh,
                                   const PlanOptions& options = {}) {
  detail::OrderSearch::Tensors tensors;
  for (int i = 0; i < operands.size(); ++i)
    tensors.push_back({terms.operands[i], operands[i], false});
  return detail::OrderSearch(terms, out, mesh, options).best(tensors);
}
}  // namespace tessera::detail
