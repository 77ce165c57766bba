// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operators on erased tensors: check, plan (or find the plan), carry out. The typed and the
/// dynamic surfaces both end here, so that there is one implementation.
///
///     TensorCore y = detail::einsum(parse("ik,kj->ij"), a, b, out, {"ik,kj->ij", where});
#include <initializer_list>
#include <iterator>
#include <vector>

#include <tessera/plan/check/verdict.hpp>
#include <tessera/plan/op/elements/map.hpp>
#include <tessera/plan/op/move/reshard.hpp>
#include <tessera/plan/op/product/einsum.hpp>
#include <tessera/plan/op/product/einsum_order.hpp>
#include <tessera/plan/op/shape/transpose.hpp>
#include <tessera/run/request.hpp>
#include <tessera/run/require_operands.hpp>
#include <tessera/tensor/sharded_tensor.hpp>

namespace tessera::detail {

/// One dynamic tensor, or several in braces, as an argument; it refers to them, which outlive the
/// call.
class DynamicTensors {
 public:
  DynamicTensors(const DynamicTensor& x) : first_(&x), size_(1) {}  // NOLINT: one is a list of one
  template <TypedTensor A>
  DynamicTensors(const A& x)  // NOLINT: and a typed one is dynamic
      : one_(x), first_(&one_), size_(1) {}
  DynamicTensors(std::initializer_list<DynamicTensor> list)
      : first_(std::data(list)), size_(list.size()) {}
  DynamicTensors(const DynamicTensors&) = delete;
  const DynamicTensor* begin() const { return first_; }
  const DynamicTensor* end() const { return first_ + size_; }
  std::size_t size() const { return size_; }

 private:
  DynamicTensor one_;
  const DynamicTensor* first_;
  std::size_t size_;
};

/// Returns the operands of a call, with a list of tensors behind them; there are at least `least`.
inline OperandList operands_of(OperandList operands, const DynamicTensors& tensors,
                               std::size_t least, CallSite site) {
  const std::size_t given = static_cast<std::size_t>(operands.size()) + tensors.size();
  if (given < least || given > max_operands)
    throw UsageError(std::string(site.label) + ": " + std::to_string(given) +
                         " tensors are given; it takes " + std::to_string(least) + " to " +
                         std::to_string(max_operands),
                     site.where);
  for (const DynamicTensor& tensor : tensors) operands.push_back(&tensor.core());
  return operands;
}

inline void require(const Verdict& verdict, const Terms& terms, const MeshCore& mesh,
                    CallSite site) {
  if (verdict.ok()) return;
  const std::string facts = explain(verdict, terms, mesh.names());
  const std::string text =
      site.label == to_text(terms) ? facts : std::string(site.label) + ": " + facts;
  on_process(mesh, site, [&] { throw_broken(verdict.rule, text); });
}

inline TensorCore reshard(const TensorCore& x, const Sharding& to, CallSite site,
                          const Extras& extras = {}) {
  const ops::Reshard operation{to};
  return run({operation, {&x}, site, extras});
}
/// Returns x under a sharding. A move that is none is not called: where shardings are chosen, it
/// would state one.
inline TensorCore moved_to(const TensorCore& x, const Sharding& to, CallSite site) {
  return x.sharding() == to ? x : reshard(x, to, site);
}

/// The product of two tensors, with an epilogue: `after` are its further operands, extras.kernel
/// its function, `type` what it returns.
inline TensorCore einsum(const Terms& terms, const TensorCore& a, const TensorCore& b,
                         const Sharding& out, CallSite site, const Extras& extras = {},
                         const OperandList& after = {}, DType type = DType::f32) {
  const bool epilogue = extras.kernel.run != nullptr;
  const ops::Einsum operation{terms, out, epilogue, epilogue ? type : DType::f32,
                              extras.destination == Destination::accumulated};
  OperandList operands{&a, &b};
  for (const TensorCore* extra : after) operands.push_back(extra);
  return run({operation, operands, site, extras});
}

/// To elements `type`.
inline TensorCore reduce(const Terms& terms, Reduction reduction, bool mean, const TensorCore& x,
                         const Sharding& out, CallSite site, const Extras& extras, DType type) {
  const ops::Reduce operation{terms, reduction, mean, false, type, out};
  return run({operation, {&x}, site, extras});
}

/// The product of any number of tensors: one is reduced and reordered, two are multiplied, more are
/// multiplied two at a time in the order that costs least.
inline TensorCore einsum_of_many(const ops::Einsum& operation, const OperandList& operands,
                                 CallSite site) {
  if (operands.size() <= 2) return run({operation, operands, site});
  if (has_open(operation.out)) {
    ops::Einsum known = operation;
    known.out = filled(operation.out, operation.deduced(descs_of(operands)));
    return einsum_of_many(known, operands, site);
  }
  MeshCore& mesh = mesh_of(*operands[0], site);
  const Contract contract = contract_at(mesh, site);
  const PlanQuery query(operation, operands, Destination::fresh, contract);
  const std::shared_ptr<const EinsumOrder> order = on_process(mesh, site, [&] {
    require_one_mesh(operands, site);
    return prepare_order(mesh, query, [&] {
      const TensorDescs descs = descs_of(operands);
      require(operation, descs, mesh, site);
      PlanOptions options = plan_options(mesh);
      options.contract = contract;
      EinsumOrder found = operation.order(descs, {mesh.shape(), mesh.process(), options});
      if (found.products.empty())
        throw ShapeError(std::string(site.label) +
                             ": in every order a product on the way has more than " +
                             std::to_string(max_dims) +
                             " dimensions; multiply some of them first, in an einsum of their own",
                         site.where);
      return found;
    });
  });
  FixedVector<TensorCore, 2 * max_operands> tensors;
  for (const TensorCore* operand : operands) tensors.push_back(*operand);
  for (const PairProduct& product : order->products) {
    TensorCore& left = tensors[product.left];
    TensorCore& right = tensors[product.right];
    CallSite of_this = site;
    if (&product != &order->products.back()) of_this.into = nullptr;  // the last makes the result
    const TensorCore made = einsum(product.terms, left, right, product.out, of_this);
    left = right = TensorCore();  // intermediate products are freed as soon as they have been used
    tensors.push_back(made);
  }
  return tensors.back();
}

}  // namespace tessera::detail
