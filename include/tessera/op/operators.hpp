// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operators on erased tensors: check, plan (or find the plan), carry out. The typed and the
/// dynamic surfaces both end here, so that there is one implementation.
///
///     TensorCore y = detail::einsum(parse("ik,kj->ij"), a, b, out, {"ik,kj->ij", where});
#include <initializer_list>
#include <stdexcept>
#include <vector>

#include <tessera/op/execute.hpp>
#include <tessera/op/request.hpp>
#include <tessera/plan/einsum_order.hpp>
#include <tessera/plan/extents_text.hpp>
#include <tessera/plan/map.hpp>
#include <tessera/plan/op/einsum.hpp>
#include <tessera/plan/op/map.hpp>
#include <tessera/plan/op/reshard.hpp>
#include <tessera/plan/op/transpose.hpp>
#include <tessera/plan/reduce.hpp>
#include <tessera/plan/type_rules.hpp>
#include <tessera/plan/verdict.hpp>
#include <tessera/tensor/sharded_tensor.hpp>

namespace tessera::detail {

inline Shardings shardings_of(const OperandList& operands) {
  Shardings shardings;
  for (const TensorCore* operand : operands) shardings.push_back(operand->sharding());
  return shardings;
}

/// Returns the operands of a call that is given a list of tensors, behind those that it has; there
/// are at least `least`.
inline OperandList operands_of(OperandList operands, std::initializer_list<DynamicTensor> tensors,
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

inline void require(const Verdict& verdict, int operands, CallSite site) {
  if (!verdict.ok())
    throw_broken(verdict.rule,
                 std::string(site.label) + ": " + explain(verdict, {.operands = operands}),
                 site.where);
}

inline void require_elements(const Verdict& verdict, CallSite site) {
  if (!verdict.ok())
    throw_broken(verdict.rule,
                 std::string(site.label) + " of " + std::string(name_of(verdict.type)) + ": " +
                     explain(verdict),
                 site.where);
}

inline void require_sharding(const Sharding& out, const MeshCore& mesh, CallSite site) {
  const Verdict verdict = check(out, mesh.shape().rank());
  if (!verdict.ok())
    throw_broken(verdict.rule, std::string(site.label) + ": " + explain(verdict, out, mesh.names()),
                 site.where);
}

/// The same of a tensor of elements `type`.
inline void require_sharding(const Sharding& out, DType type, const MeshCore& mesh, CallSite site) {
  require_sharding(out, mesh, site);
  const Verdict verdict = tessera::check(TensorDesc{type, {}, out}, mesh.shape().rank());
  if (!verdict.ok())
    throw_broken(verdict.rule,
                 std::string(site.label) + " to " + std::string(name_of(type)) + ": " +
                     explain(verdict, out, mesh.names()),
                 site.where);
}

inline PlanOptions plan_options(const MeshCore& mesh, const CallSite& site, const Extras& extras) {
  PlanOptions options = tessera::plan_options(mesh);
  options.destination = extras.destination;
  options.contract = contract_at(mesh, site);
  return options;
}

/// Takes the steps that all operators have in common; `make(options)` makes the plan when it is
/// new.
template <class MakePlan>
TensorCore run_operator(PlanKey& key, const OperandList& operands, CallSite site,
                        const Extras& extras, const MakePlan& make) {
  key.add(static_cast<std::uint64_t>(extras.destination));
  MeshCore& mesh = mesh_of(*operands[0], site);
  PlanOptions options = plan_options(mesh, site, extras);
  if (options.contract.bounded()) key.add(options.contract.bits());
  const StoredOperands stored(operands, extras.into);
  stored.tell(options, key);
  return on_process(mesh, site, [&] {
    require_one_mesh(operands, site);
    const PlanQuery query = query_of(key);
    Comparison comparison(operands, query, site, extras.starts);
    try {
      const Prepared& prepared = prepare(mesh, query, [&] {
        const Plan plan = make(options);
        require_contract(plan, options.contract, mesh, site);
        return plan;
      });
      if (extras.into != nullptr) require_destination(*prepared.plan, operands, *extras.into, site);
      comparison.begin(prepared);
      const std::uint64_t history = comparison.history();
      if (extras.started != nullptr) {
        extras.started->begin(prepared, operands, site, extras.scale, extras.kernel, extras.fill,
                              history);
        return TensorCore();
      }
      if (extras.also != nullptr) {
        Execution execution(prepared, operands, site, extras.scale, extras.kernel, nullptr,
                            extras.fill);
        TensorCore first = execution.run();
        remember(first, operands, history);
        for (int i = 1; i < extras.targets->size(); ++i) {
          extras.also->push_back(execution.also(i - 1, (*extras.targets)[i]));
          remember(extras.also->back(), operands,
                   history == 0 ? 0 : mix(history, static_cast<std::uint64_t>(i)));
        }
        return first;
      }
      TensorCore result = execute(prepared, operands, site, extras.scale, extras.kernel,
                                  extras.into, extras.fill, extras.portable, extras.starts);
      if (extras.into == nullptr)
        remember(result, operands, history);
      else if (history != 0 && result.storage() != nullptr)
        result.storage()->set_history(history);
      return result;
    } catch (const std::length_error&) {
      throw ShapeError(std::string(site.label) + ": the plan needs more than the " +
                       std::to_string(Plan::max_steps) +
                       " steps that a plan holds; reshard some of the operands first");
    }
  });
}

inline TensorCore reshard(const TensorCore& x, const Sharding& to, CallSite site,
                          const Extras& extras = {}) {
  const ops::Reshard operation{to};
  return run({operation, {&x}, site, extras});
}

/// The product of two tensors, and what an epilogue makes of it: `after` are its further operands,
/// extras.kernel its function, `type` what it returns.
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
                             " dimensions or two unfinished operands; multiply some of them first, "
                             "in an einsum of their own, or finish "
                             "one",
                         site.where);
      return found;
    });
  });
  FixedVector<TensorCore, 2 * max_operands> tensors;
  for (const TensorCore* operand : operands) tensors.push_back(*operand);
  for (const PairProduct& product : order->products) {
    TensorCore& left = tensors[product.left];
    TensorCore& right = tensors[product.right];
    const TensorCore made = einsum(product.terms, left, right, product.out, site);
    left = right = TensorCore();  // what was made on the way goes as soon as it has been used
    tensors.push_back(made);
  }
  return tensors.back();
}

}  // namespace tessera::detail
