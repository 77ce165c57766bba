// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Checks the operands of a call and its destination, and adds to an error the process that finds
/// it.
///
///     MeshCore& mesh = mesh_of(x, site);
///     return on_process(mesh, site, [&] { … });
#include <string>

#include <tessera/base/error.hpp>
#include <tessera/program/explain.hpp>
#include <tessera/run/call_site.hpp>
#include <tessera/run/extras.hpp>
#include <tessera/run/plan_cache.hpp>
#include <tessera/run/recording.hpp>
#include <tessera/tensor/tensor_core.hpp>

namespace tessera::detail {

/// Returns the mesh of a tensor. Throws UsageError when the tensor is empty, or the mesh or Kokkos
/// has ended.
inline MeshCore& mesh_of(const TensorCore& x, CallSite site) {
  if (!x.defined())
    throw UsageError(std::string(site.label) +
                         ": an empty tensor is used; assign one made by zeros, random, "
                         "from_function or an operator first",
                     site.where);
  MeshCore& mesh = *x.mesh();
  mesh.require_usable(site.where);
  return mesh;
}

/// Returns the mesh of a call.
inline MeshCore& mesh_of(const Request& r) {
  if (!r.operands.empty()) return mesh_of(*r.operands[0], r.site);
  (*r.extras.mesh)->require_usable(r.site.where);
  return **r.extras.mesh;
}

/// Runs f; what it throws says where the operator was called, in which layer, and on which process.
template <class F> decltype(auto) on_process(const MeshCore& mesh, CallSite site, F&& f) {
  try {
    return f();
  } catch (MemoryError& error) {
    error.complete(site.label, site.where, mesh.process_text(), layer_text(mesh));
    throw;
  } catch (Error& error) {
    error.complete({}, site.where, mesh.process_text(), layer_text(mesh));
    throw;
  }
}

/// Throws MeshError unless all operands live on one mesh.
inline void require_one_mesh(const OperandList& operands, CallSite site) {
  for (int i = 1; i < operands.size(); ++i)
    if (&mesh_of(*operands[i], site) != &mesh_of(*operands[0], site))
      throw MeshError(std::string(site.label) + ": operand 1 lives on a mesh " +
                          text_of_mesh(*operands[0]->mesh()) + " and operand " +
                          std::to_string(i + 1) + " on another one, " +
                          text_of_mesh(*operands[i]->mesh()) +
                          ", made by another make_mesh or another part; operators take tensors of "
                          "one mesh object; make one mesh and all tensors on it, or reshard one "
                          "to the other's",
                      site.where);
}

/// Throws unless `into` can hold the result of a call's plan: it lies on the operands' mesh,
/// has the result's description, and shares no memory with an operand other than the last one of a
/// plan that adds to it, or one of a map that is the destination itself, in its order. Memory of an
/// application, or of another mesh, is not checked: the caller has made it for the plan.
inline void require_destination(const Plan& plan, const Request& r) {
  const OperandList& operands = r.operands;
  const TensorCore& into = *r.extras.into;
  const CallSite& site = r.site;
  if (!plan.slots[plan.result].place.sharded()) return;
  const auto label = [&] { return std::string(site.label); };
  if (into.mesh() != r.mesh())
    throw MeshError(label() +
                        ": the destination lives on another mesh than the operands; make it "
                        "on the mesh of the operands",
                    site.where);
  const AxisNames& names = into.mesh()->names();
  if (!(into.desc() == plan.result_desc()))
    throw ShapeError(label() + ": the result is " + to_string(plan.result_desc(), names) +
                         " and the destination " + to_string(into.desc(), names) +
                         "; give a tensor of the result's element type, extents and spec",
                     site.where);
  AxisSet differ;
  for (const TensorCore* operand : operands) differ = differ | operand->storage()->varies();
  if (into.storage() != nullptr && !(differ - into.storage()->varies()).empty())
    throw UsageError(label() +
                         ": within a manual function, the result differs over an axis over which "
                         "the destination is equal; give a tensor that varies over it, such as "
                         "varying<axis>(y)",
                     site.where);
  const auto begins = [](const TensorCore& t) { return static_cast<const char*>(t.memory()); };
  const auto ends = [&](const TensorCore& t, const Slot& slot) {
    return begins(t) +
           (slot.place.sharded() ? TensorCore::local_bytes(*t.mesh(), t.desc()) : slot.bytes);
  };
  if (into.storage() != nullptr && into.storage()->in_use())
    throw UsageError(label() + ": the destination is used by an operator that was started at " +
                         to_string(into.storage()->user()) +
                         " and has not been waited for; wait for it first",
                     site.where);
  const bool reads = plan.destination == Destination::accumulated;
  const bool elementwise = plan.kind == OperatorKind::map;
  const int read = operands.size() - (reads && !elementwise ? 1 : 0);
  // Elementwise, an operand that is the destination is read before it is written, unless it lies
  // there in another order.
  const auto lies_alike = [&](int i) {
    const TensorCore& t = *operands[i];
    return elementwise && reads && t.storage() == into.storage() && t.desc() == into.desc() &&
           plan.slots[i].labels == plan.slots[plan.result].labels;
  };
  for (int i = 0; i < read; ++i)
    if (!lies_alike(i) && (into.storage() == operands[i]->storage() ||
                           (!into.dry() && begins(into) < ends(*operands[i], plan.slots[i]) &&
                            begins(*operands[i]) < ends(into, plan.slots[plan.result]))))
      throw UsageError(label() + ": the destination shares its memory with operand " +
                           std::to_string(i + 1) +
                           ", which is read while the destination is written; give a tensor of "
                           "its own memory",
                       site.where);
}

/// Returns what a call accepts: its contract, or its mesh's.
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

}  // namespace tessera::detail
