// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Extended blocks without their types, and the operators on them: what op/halo_tensor.hpp and
/// op/halo.hpp end in.
///
///     auto block = std::make_shared<HaloBlock>(halo_exchange(x, halo, nullptr, site), halo);
///     exchange(*block, false, site);
///
/// Laws: an exchange in place moves what plan_halo in place says, and writes nothing that is
/// neither in the halo nor within the tensor.
#include <memory>
#include <string>
#include <vector>

#include <tessera/op/detail/copy_block.hpp>
#include <tessera/op/detail/halo_link.hpp>
#include <tessera/op/operators.hpp>
#include <tessera/plan/halo.hpp>

namespace tessera::detail {

/// A process's extended block of a tensor. `core` has the tensor's description and the extended
/// block's memory, which says within which halo the tensor's block lies.
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
  Box own;                                       ///< what the process owns
  Box box;                                       ///< what the block covers
  std::unique_ptr<HaloLink> link, adjoint_link;  ///< made by the first exchange
};

inline void add_halo(PlanKey& key, const TensorDesc& desc, const Halo& halo) {
  key.add(desc);
  for (const HaloDim& d : halo) {
    key.add(static_cast<std::uint64_t>(d.low));
    key.add(static_cast<std::uint64_t>(d.high) << 8 | static_cast<std::uint64_t>(d.boundary));
  }
}

inline void require_halo(const TensorDesc& desc, const Halo& halo, const MeshCore& mesh,
                         CallSite site) {
  if (!desc.sharding.partial.empty())
    throw ShardingError(std::string(site.label) + ": " + to_string(desc.sharding, mesh.names()) +
                            " is unfinished, and a halo holds finished values; reshard to a spec "
                            "without Unreduced first",
                        site.where);
  if (const Verdict verdict = check_halo(desc.extents, halo); !verdict.ok())
    throw_broken(verdict.rule,
                 std::string(site.label) + " of " + to_string(desc, mesh.names()) + ": " +
                     explain(verdict, desc.extents),
                 site.where);
}

inline void require_alike(const TensorDescs& descs, CallSite site) {
  for (const TensorDesc& desc : descs)
    if (desc.type != descs[0].type)
      throw ShapeError(std::string(site.label) + ": the tensors are " +
                           std::string(name_of(descs[0].type)) + " and " +
                           std::string(name_of(desc.type)) +
                           "; one exchange takes one element type; cast, or make two exchanges",
                       site.where);
}

/// Returns the extended blocks' memory, in `also` of all tensors but the first.
inline TensorCore halo_exchange(const OperandList& x, const Halo& halo, const void* outside,
                                CallSite site, Extras extras = {}) {
  MeshCore& mesh = mesh_of(*x[0], site);
  extras.fill = outside;
  PlanKey key(OperatorKind::halo);
  key.add(static_cast<std::uint64_t>(x.size()));
  for (const TensorCore* each : x) add_halo(key, each->desc(), halo);
  return run_operator(key, x, site, extras, [&](const PlanOptions& options) {
    FixedVector<Halo, max_operands> halos;
    for (const TensorCore* each : x) {
      require_halo(each->desc(), halo, mesh, site);
      halos.push_back(halo);
    }
    require_alike(descs_of(x), site);
    return plan_halo_together(descs_of(x), halos, mesh.shape(), mesh.process(), options);
  });
}

/// Returns the tensor that an extended block's adjoint makes of it.
inline TensorCore halo_adjoint(const HaloBlock& block, CallSite site) {
  MeshCore& mesh = mesh_of(block.core, site);
  PlanKey key(OperatorKind::halo_adjoint);
  add_halo(key, block.core.desc(), block.halo);
  return run_operator(key, {&block.core}, site, {}, [&](const PlanOptions& options) {
    require_elements(check_product_type(block.core.type()), site);
    return plan_halo_adjoint(block.core.desc(), block.halo, mesh.shape(), mesh.process(), options);
  });
}

/// Returns the prepared exchange in place of one block or of several; it has been compared with
/// what the other processes call.
template <class Blocks>
const Prepared& prepare_exchange(const Blocks& blocks, bool adjoint, CallSite site,
                                 OperandList& operands, AgreedExchange* agreed = nullptr) {
  MeshCore& mesh = mesh_of(blocks[0]->core, site);
  return on_process(mesh, site, [&]() -> const Prepared& {
    PlanKey key(adjoint ? OperatorKind::halo_adjoint : OperatorKind::halo);
    key.add(~static_cast<std::uint64_t>(blocks.size()));  // in place
    TensorDescs descs;
    FixedVector<Halo, max_operands> halos;
    for (const HaloBlock* block : blocks) {
      add_halo(key, block->core.desc(), block->halo);
      operands.push_back(&block->core);
      descs.push_back(block->core.desc());
      halos.push_back(block->halo);
    }
    const PlanOptions options = plan_options(mesh, site, {});
    if (options.contract.bounded()) key.add(options.contract.bits());
    require_one_mesh(operands, site);
    const PlanQuery query = query_of(key);
    Comparison comparison(operands, query, site);
    const Prepared& prepared = prepare(mesh, key, [&] {
      require_alike(descs, site);
      if (adjoint) require_elements(check_product_type(descs[0].type), site);
      const Plan plan = plan_halo_of(descs, halos, adjoint, {Corners::cheaper, true}, mesh.shape(),
                                     mesh.process(), options);
      require_contract(plan, options.contract, mesh, site);
      return plan;
    });
    comparison.begin(prepared);
    if (agreed != nullptr)
      *agreed = {comparison.mark(), mesh.remembers() ? comparison.words() : std::string()};
    return prepared;
  });
}

/// Fills the halos of several blocks from what their owners have.
inline void exchange(const FixedVector<const HaloBlock*, max_operands>& blocks, CallSite site) {
  OperandList operands;
  const Prepared& prepared = prepare_exchange(blocks, false, site, operands);
  on_process(*blocks[0]->core.mesh(), site, [&] { (void)execute(prepared, operands, site); });
}

/// Starts the exchange of one block, or its adjoint; finish_exchange() ends it.
inline void start_exchange(HaloBlock& block, bool adjoint, CallSite site) {
  const MeshCore& mesh = mesh_of(block.core, site);
  std::unique_ptr<HaloLink>& link = adjoint ? block.adjoint_link : block.link;
  const bool agreed = mesh.check() < Check::communicating && !contract_at(mesh, site).bounded();
  if (link == nullptr || !agreed) {
    OperandList operands;
    AgreedExchange said;
    const Prepared& prepared = prepare_exchange(FixedVector<const HaloBlock*, 1>{&block}, adjoint,
                                                site, operands, link == nullptr ? &said : nullptr);
    if (block.core.dry())
      return on_process(mesh, site, [&] { (void)execute(prepared, operands, site); });
    if (link == nullptr) link = std::make_unique<HaloLink>(block.core, prepared, std::move(said));
  } else {
    on_process(mesh, site, [&] { link->compare(site); });
  }
  on_process(mesh, site, [&] { link->start(site); });
}
inline void finish_exchange(HaloBlock& block, bool adjoint, CallSite site) {
  if (block.core.dry()) return;
  on_process(*block.core.mesh(), site,
             [&] { (adjoint ? block.adjoint_link : block.link)->finish(); });
}
inline void exchange(HaloBlock& block, bool adjoint, CallSite site) {
  const ToolRegion region([&] { return "tessera::" + std::string(site.label); }, !block.core.dry());
  start_exchange(block, adjoint, site);
  finish_exchange(block, adjoint, site);
}

/// Returns an extended block of unspecified contents.
inline TensorCore make_halo_core(const std::shared_ptr<MeshCore>& mesh, const TensorDesc& desc,
                                 const Halo& halo, CallSite site) {
  TensorCore::check_desc(*mesh, desc, site.where);
  require_halo(desc, halo, *mesh, site);
  const Box box =
      needed(halo_region(desc.extents, desc.sharding, halo), mesh->shape(), mesh->coordinates());
  return TensorCore::born(
      {mesh, desc,
       make_storage(mesh, saturating_mul(box.size(), static_cast<Index>(size_of(desc.type))))});
}

}  // namespace tessera::detail
