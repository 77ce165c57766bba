// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operators on erased tensors: check, plan (or find the plan), carry out. The typed and the
/// dynamic surfaces both end here, so that there is one implementation.
///
///     TensorCore y = detail::einsum(parse("ik,kj->ij"), a, b, out, {"ik,kj->ij", where});
#include <limits>
#include <stdexcept>
#include <vector>

#include <tessera/op/execute.hpp>
#include <tessera/plan/einsum_order.hpp>
#include <tessera/plan/extents_text.hpp>
#include <tessera/plan/map.hpp>
#include <tessera/plan/reduce.hpp>
#include <tessera/plan/type_rules.hpp>
#include <tessera/plan/verdict.hpp>

namespace tessera::detail {

inline TensorDescs descs_of(const OperandList& operands) {
  TensorDescs descs;
  for (const TensorCore* operand : operands) descs.push_back(operand->desc());
  return descs;
}

inline Shardings shardings_of(const OperandList& operands) {
  Shardings shardings;
  for (const TensorCore* operand : operands) shardings.push_back(operand->sharding());
  return shardings;
}

inline void require(const Verdict& verdict, const Terms& terms, const MeshCore& mesh,
                    CallSite site) {
  if (verdict.ok()) return;
  const std::string facts = explain(verdict, terms, mesh.names());
  const std::string text =
      site.label == to_text(terms) ? facts : std::string(site.label) + ": " + facts;
  on_process(mesh, site, [&] { throw_broken(verdict.rule, text); });
}

inline void require_extents(const Terms& terms, const TensorDescs& operands, bool stretch,
                            const MeshCore& mesh, CallSite site) {
  if (check_extents(terms, operands, stretch).ok()) return;
  const std::string facts = extents_text(terms, operands, stretch, mesh.names());
  const bool said = site.label == to_text(terms);
  on_process(mesh, site,
             [&] { throw ShapeError(said ? facts : std::string(site.label) + ": " + facts); });
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

inline Contract contract_at(const MeshCore& mesh, const CallSite& site) {
  return site.contract.value_or(mesh.strict() ? Contract::nothing() : Contract{});
}
/// Throws ContractError, on all processes alike, when the best plan for these sizes breaks the
/// contract.
inline void require_contract(const Plan& plan, const Contract& contract, const MeshCore& mesh,
                             CallSite site) {
  if (contract.covers(plan.needs)) return;
  throw ContractError(std::string(site.label) + ": the call accepts " +
                          to_string(contract, mesh.names()) +
                          (site.contract ? "" : " (it has no contract, and the mesh is strict)") +
                          ", and with these sizes needs " + to_string(plan.needs, mesh.names()) +
                          "; widen the contract, or change the specs. The plan nearest to it:\n" +
                          tessera::explain(plan, mesh.names()),
                      site.where);
}

/// What an operator has beside its operands: the kernel of its elementwise step, the scale of its
/// sum, the tensor that it writes, and what lies outside a tensor.
struct Extras {
  double scale = 1;
  MapKernel kernel = {};
  const TensorCore* into = nullptr;
  bool portable = false;       ///< convolve by Tessera's own kernel
  const void* fill = nullptr;  ///< one element: what lies outside a tensor; null: zero
  Destination destination = Destination::fresh;
  Started* started = nullptr;  ///< where the operator is left under way, instead of being finished
  const Shardings* targets = nullptr;       ///< of an operator with several results, theirs
  std::vector<TensorCore>* also = nullptr;  ///< and where those after the first go
  const Extents* starts = nullptr;  ///< where a window begins in each dimension: no part of a plan
};
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
  const PlanOptions options = plan_options(mesh, site, extras);
  if (options.contract.bounded()) key.add(options.contract.bits());
  return on_process(mesh, site, [&] {
    require_one_mesh(operands, site);
    Comparison comparison(operands, key, site, extras.starts);
    try {
      const Prepared& prepared = prepare(mesh, key, [&] {
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

inline void require_reshard(const TensorCore& x, const Sharding& to, CallSite site) {
  const MeshCore& mesh = *x.mesh();
  require_sharding(to, mesh, site);
  if (to.rank() != x.rank())
    throw ShapeError("reshard: the tensor has " + std::to_string(x.rank()) + " dimensions and " +
                     to_string(to, mesh.names()) + " has " + std::to_string(to.rank()) +
                     "; give the spec one entry for each dimension");
  if (!can_reshard(x.sharding(), to))
    throw ShardingError("reshard: " + to_string(x.sharding(), mesh.names()) + " cannot become " +
                        to_string(to, mesh.names()) +
                        "; finished values do not become partial, nor one partial kind another; "
                        "drop Unreduced from the target");
}

inline TensorCore reshard(const TensorCore& x, const Sharding& to, CallSite site,
                          const Extras& extras = {}) {
  MeshCore& mesh = mesh_of(x, site);
  PlanKey key(OperatorKind::reshard);
  key.add(x.desc());
  key.add(to);
  return run_operator(key, {&x}, site, extras, [&](const PlanOptions& options) {
    require_reshard(x, to, site);
    return plan_reshard(x.desc(), to, mesh.shape(), mesh.process(), options);
  });
}

/// The product of two tensors, and what an epilogue makes of it: `after` are its further operands,
/// extras.kernel its function, `type` what it returns.
inline TensorCore einsum(const Terms& terms, const TensorCore& a, const TensorCore& b,
                         const Sharding& out, CallSite site, const Extras& extras = {},
                         const OperandList& after = {}, DType type = DType::f32) {
  MeshCore& mesh = mesh_of(a, site);
  const bool epilogue = extras.kernel.run != nullptr;
  OperandList operands{&a, &b};
  for (const TensorCore* extra : after) operands.push_back(extra);
  PlanKey key(OperatorKind::einsum, Reduction::sum, a.type());
  key.add(terms);
  for (const TensorCore* operand : operands) key.add(operand->desc());
  key.add(out);
  key.add(epilogue ? 1 + static_cast<std::uint64_t>(type) : 0);
  return run_operator(key, operands, site, extras, [&](const PlanOptions& options) {
    require(check_einsum(terms, {a.sharding(), b.sharding()}, out), terms, mesh, site);
    require_extents(terms, {a.desc(), b.desc()}, false, mesh, site);
    require_elements(check_product_type(a.type()), site);
    require_sharding(out, mesh, site);
    if (a.type() != b.type())
      throw ShapeError(std::string(site.label) + ": the operands are " +
                           std::string(name_of(a.type())) + " and " +
                           std::string(name_of(b.type())) +
                           "; a product takes one element type; cast one of them",
                       site.where);
    const Epilogue last{epilogue, descs_of(after), type};
    if (epilogue) {
      const Terms all = with_extras(terms, last.extras);
      const bool adds = options.destination == Destination::accumulated;
      require(check_epilogue(all, last.extras, out, adds), all, mesh, site);
      require(check_extras(all, {a.desc(), b.desc()}, last.extras), all, mesh, site);
    }
    return plan_einsum(terms, a.desc(), b.desc(), out, mesh.shape(), mesh.process(), options, last);
  });
}

/// Returns 1 / the number of elements that each result element is the mean of.
inline double mean_scale(const Terms& terms, const TensorCore& x) {
  Index count = 1;
  for (int d = 0; d < x.rank(); ++d)
    if (!terms.result.contains(terms.operands[0][d])) count *= x.extents()[d];
  return count > 0 ? 1.0 / static_cast<double>(count) : std::numeric_limits<double>::quiet_NaN();
}

/// To elements `type`.
inline TensorCore reduce(const Terms& terms, Reduction reduction, bool mean, const TensorCore& x,
                         const Sharding& out, CallSite site, Extras extras, DType type) {
  MeshCore& mesh = mesh_of(x, site);
  PlanKey key(OperatorKind::reduce, reduction, type);
  key.add(terms);
  key.add(x.desc());
  key.add(out);
  key.add(static_cast<std::uint64_t>(mean));
  if (mean) key.name("mean");
  extras.scale = mean ? mean_scale(terms, x) : 1;
  return run_operator(key, {&x}, site, extras, [&](const PlanOptions& options) {
    require(check_reduce(terms, {x.sharding()}, out, reduction, mean), terms, mesh, site);
    require_elements(check_reduce_type(reduction, mean, x.type()), site);
    require_elements(check_reduced_type(x.type(), type, x.sharding()), site);
    require_sharding(out, mesh, site);
    return plan_reduce_as(type, terms, reduction, x.desc(), out, mesh.shape(), mesh.process(),
                          options);
  });
}

/// The product of any number of tensors: one is reduced and reordered, two are multiplied, more are
/// multiplied two at a time in the order that costs least.
inline TensorCore einsum_of_many(const Terms& terms, const OperandList& operands,
                                 const Sharding& out, CallSite site) {
  if (operands.size() == 2) return einsum(terms, *operands[0], *operands[1], out, site);
  MeshCore& mesh = mesh_of(*operands[0], site);
  on_process(mesh, site, [&] { require_one_mesh(operands, site); });
  const TensorDescs descs = descs_of(operands);
  PlanKey key(OperatorKind::einsum, Reduction::sum, descs[0].type);
  key.add(terms);
  for (const TensorDesc& desc : descs) key.add(desc);
  key.add(out);
  const PlanOptions options = plan_options(mesh, site, {});
  if (options.contract.bounded()) key.add(options.contract.bits());
  const auto find_order = [&] {
    Shardings shardings;
    for (const TensorDesc& desc : descs) shardings.push_back(desc.sharding);
    require(check_einsum(terms, shardings, out), terms, mesh, site);
    require_extents(terms, descs, false, mesh, site);
    require_elements(check_product_type(descs[0].type), site);
    require_sharding(out, mesh, site);
    if (operands.size() < 3) return EinsumOrder{};
    EinsumOrder found = einsum_order(terms, descs, out, mesh.shape(), options);
    if (found.products.empty())
      throw ShapeError(std::string(site.label) +
                           ": in every order a product on the way has more than " +
                           std::to_string(max_dims) +
                           " dimensions or two unfinished operands; multiply some of them first, "
                           "in an einsum of their own, or finish one",
                       site.where);
    return found;
  };
  key.add(~std::uint64_t{0});  // an order, and no plan
  const std::shared_ptr<const EinsumOrder> order =
      on_process(mesh, site, [&] { return prepare_order(mesh, key, find_order); });
  if (operands.size() == 1)
    return reduce(terms, Reduction::sum, false, *operands[0], out, site, {}, descs[0].type);
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

inline TensorCore transpose(const Terms& terms, const TensorCore& x, const Sharding& out,
                            CallSite site, const Extras& extras = {}) {
  MeshCore& mesh = mesh_of(x, site);
  PlanKey key(OperatorKind::transpose);
  key.add(terms);
  key.add(x.desc());
  key.add(out);
  return run_operator(key, {&x}, site, extras, [&](const PlanOptions& options) {
    require(check_transpose(terms, {x.sharding()}, out), terms, mesh, site);
    require_sharding(out, mesh, site);
    return plan_transpose(terms, x.desc(), out, mesh.shape(), mesh.process(), options);
  });
}

inline TensorCore map(const Terms& terms, const OperandList& operands, DType type,
                      const Sharding& out, Linearity linearity, CallSite site,
                      const Extras& extras) {
  MeshCore& mesh = mesh_of(*operands[0], site);
  PlanKey key(OperatorKind::map, Reduction::none, type);
  key.add(terms);
  for (const TensorCore* operand : operands) key.add(operand->desc());
  key.add(out);
  key.add(static_cast<std::uint64_t>(linearity));  // the verdict depends on it
  return run_operator(key, operands, site, extras, [&](const PlanOptions& options) {
    const TensorDescs descs = descs_of(operands);
    Shardings shardings;
    for (const TensorDesc& desc : descs) shardings.push_back(desc.sharding);
    require(check_map(terms, shardings, out, linearity), terms, mesh, site);
    require_extents(terms, descs, true, mesh, site);
    require_sharding(out, type, mesh, site);
    return plan_map(terms, descs, type, out, mesh.shape(), mesh.process(), options);
  });
}

}  // namespace tessera::detail
