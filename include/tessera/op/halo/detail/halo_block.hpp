// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Type-erased extended blocks, and the operators on them, for op/halo/halo_tensor.hpp and
/// op/halo/halo.hpp.
///
///     auto block = std::make_shared<HaloBlock>(halo_exchange(x, halo, nullptr, site), halo);
///     exchange(*block, false, site);
///
/// Laws: an exchange in place moves the elements that plan_halo in place says, and writes only in
/// the halo and within the tensor.
#include <memory>
#include <string>
#include <utility>

#include <tessera/op/call/operators.hpp>
#include <tessera/op/halo/detail/repeated_exchange.hpp>
#include <tessera/plan/op/halo/halo_exchange.hpp>
#include <tessera/run/copy_block.hpp>

namespace tessera::detail {

/// A process's extended block of a tensor. `core` has the tensor's description and the extended
/// block's memory, which knows the halo around the tensor's block.
struct HaloBlock {
  HaloBlock(TensorCore extended, const Halo& widths)
      : core(std::move(extended)),
        halo(widths),
        own(core.box()),
        box(needed(halo_region(core.extents(), core.sharding(), halo), core.mesh()->shape(),
                   core.mesh()->coordinates())) {
    if (core.storage() != nullptr) core.storage()->set_halo(halo);
  }
  TensorCore core;
  Halo halo;
  Box own;                                                       ///< what the process owns
  Box box;                                                       ///< what the block covers
  std::unique_ptr<RepeatedExchange> repeated, adjoint_repeated;  ///< made by the first exchange
};

/// Returns the extended blocks' memory, in extras.also of all tensors but the first.
inline TensorCore halo_exchange(const OperandList& x, const Halo& halo, const void* outside,
                                CallSite site, Extras extras = {}) {
  extras.fill = outside;
  return run({ops::HaloExchange{{halo}}, x, site, extras});
}

/// Returns the tensor that the adjoint makes from an extended block.
inline TensorCore halo_adjoint(const HaloBlock& block, CallSite site) {
  return run({ops::HaloExchange{{block.halo}, true}, {&block.core}, site});
}

/// Fills the halos of several blocks with their owners' elements.
inline void exchange(const FixedVector<const HaloBlock*, max_operands>& blocks, CallSite site) {
  ops::HaloExchange operation{{}, false, true};
  OperandList operands;
  for (const HaloBlock* block : blocks) {
    operation.halos.push_back(block->halo);
    operands.push_back(&block->core);
  }
  (void)run({operation, operands, site});
}

/// Starts the exchange of one block, or its adjoint; finish_exchange() ends it.
inline void start_exchange(HaloBlock& block, bool adjoint, CallSite site) {
  if (taker_of_thread != nullptr) taker_of_thread->refuse(site);
  const MeshCore& mesh = mesh_of(block.core, site);
  std::unique_ptr<RepeatedExchange>& repeated = adjoint ? block.adjoint_repeated : block.repeated;
  on_process(mesh, site, [&] {
    if (repeated != nullptr && mesh.check() < Check::communicating &&
        !contract_at(mesh, site).bounded()) {
      repeated->compare(site);
    } else {
      const ops::HaloExchange operation{{block.halo}, adjoint, true};
      const OperandList operands{&block.core};
      const Agreed call = agree_on({operation, operands, site});
      if (block.core.dry()) return (void)execute(call.prepared, operands, site);
      // The plan is the same under every contract that it keeps.
      if (repeated == nullptr)
        repeated = std::make_unique<RepeatedExchange>(block.core, operation, call);
    }
    repeated->start(site);
  });
}
inline void finish_exchange(HaloBlock& block, bool adjoint, CallSite site) {
  if (block.core.dry()) return;
  on_process(*block.core.mesh(), site,
             [&] { (adjoint ? block.adjoint_repeated : block.repeated)->finish(); });
}
inline void exchange(HaloBlock& block, bool adjoint, CallSite site) {
  const ToolRegion region([&] { return "tessera::" + std::string(site.label); }, !block.core.dry());
  start_exchange(block, adjoint, site);
  finish_exchange(block, adjoint, site);
}

/// Returns an extended block of unspecified contents; `value`, which its maker then gives every
/// element, is compared between processes by the next operator.
inline TensorCore make_halo_core(const std::shared_ptr<MeshCore>& mesh, const TensorDesc& desc,
                                 const Halo& halo, CallSite site, const void* value = nullptr) {
  TensorCore::check_desc(*mesh, desc, site.where);
  require(ops::HaloExchange{{halo}}, {desc}, *mesh, site);
  const Box box =
      needed(halo_region(desc.extents, desc.sharding, halo), mesh->shape(), mesh->coordinates());
  ToldNumbers told;
  if (value != nullptr) told.add_bytes(value, size_of(desc.type), false);
  return TensorCore::born(
      {mesh, desc,
       make_storage(mesh, saturating_mul(box.size(), static_cast<Index>(size_of(desc.type))))},
      told.any() ? told.digest() : 0);
}

}  // namespace tessera::detail
