// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Moving a tensor to another mesh over the same processes: other axes, another order of them,
/// another device assignment.
///
///     auto wide = make_mesh<Mesh<all>>(env, 4);
///     auto y = reshard<ShardedTensor<float, Mesh<all>, P<_, all>>>(x, wide);
///
/// Laws: gather(reshard<Y>(x, mesh)) equals gather(x); what a process has already it does not
/// receive.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <tessera/op/irregular.hpp>
#include <tessera/op/result.hpp>
#include <tessera/plan/between.hpp>

namespace tessera {
namespace detail {

/// For each other mesh that a mesh's tensors have gone to: where its processes stand there.
struct Neighbours {
  struct Entry {
    std::weak_ptr<MeshCore> mesh;
    MeshShape shape;
    std::vector<int> places;
    std::uint64_t digest = 0;
  };
  std::vector<Entry> entries;
};

inline std::string processes_text(const std::vector<int>& processes) {
  std::string text;
  for (std::size_t i = 0; i < processes.size() && i < 8; ++i)
    text += (i > 0 ? ", " : "") + std::to_string(processes[i]);
  return text + (processes.size() > 8 ? ", ..." : "");
}

/// Returns where the processes of `from` stand in `to`, worked out once for two meshes. Throws
/// MeshError unless they are over the same processes.
inline const Neighbours::Entry& places_between(MeshCore& from, const std::shared_ptr<MeshCore>& to,
                                               Where where) {
  std::vector<Neighbours::Entry>& known = from.attachment<Neighbours>().entries;
  for (const Neighbours::Entry& entry : known)
    if (entry.mesh.lock() == to) return entry;
  std::erase_if(known, [](const Neighbours::Entry& entry) { return entry.mesh.expired(); });
  std::vector<std::pair<int, int>> there;
  for (const int process : to->processes())
    there.emplace_back(process, static_cast<int>(there.size()));
  std::sort(there.begin(), there.end());
  Neighbours::Entry entry{to, to->shape(), {}, 0};
  for (const int process : from.processes()) {
    const auto found = std::lower_bound(there.begin(), there.end(), std::pair(process, 0));
    if (found != there.end() && found->first == process) entry.places.push_back(found->second);
  }
  if (entry.places.size() != from.processes().size() || there.size() != from.processes().size() ||
      from.transport().name() != to->transport().name())
    throw MeshError("reshard: the tensor's mesh " + from.to_string() + " is over the processes " +
                        processes_text(from.processes()) + " (" + from.transport().name() +
                        ") and the mesh " + to->to_string() + " over " +
                        processes_text(to->processes()) + " (" + to->transport().name() +
                        "); a tensor moves between meshes over the same processes; make one of "
                        "them over the processes of the other",
                    where);
  if (from.dry() && from.processes()[static_cast<std::size_t>(from.process())] !=
                        to->processes()[static_cast<std::size_t>(to->process())])
    throw MeshError(
        "reshard: this program plays another process on the one dry mesh than on the other; make "
        "both with the same process",
        where);
  for (int a = 0; a < entry.shape.rank(); ++a)
    entry.digest = mix(entry.digest, static_cast<std::uint64_t>(entry.shape[a]));
  for (const int place : entry.places)
    entry.digest = mix(entry.digest, static_cast<std::uint64_t>(place));
  return known.emplace_back(std::move(entry));
}

inline TensorCore reshard_between(const TensorCore& x, const Sharding& to,
                                  const std::shared_ptr<MeshCore>& other, CallSite site) {
  MeshCore& mesh = mesh_of(x, site);
  if (other == nullptr)
    throw MeshError("reshard: the mesh to go to is empty; make it with make_mesh first",
                    site.where);
  if (other == x.mesh()) return reshard(x, to, site);
  const TensorDesc target{x.type(), x.extents(), to};
  TensorCore::check_desc(*other, target, site.where);
  if (!to.partial.empty())
    throw ShardingError("reshard: " + to_string(to, other->names()) +
                            " is unfinished; a tensor arrives on another mesh finished; drop "
                            "Unreduced from the target",
                        site.where);
  const Neighbours::Entry& between = places_between(mesh, other, site.where);
  PlanOptions options = plan_options(mesh, site, {});
  PlanKey key(OperatorKind::reshard);
  key.add(x.desc());
  key.add(target);
  key.add(between.digest);
  if (options.contract.bounded()) key.add(options.contract.bits());
  const OperandList operands{&x};
  const StoredOperands stored(operands, nullptr);
  stored.tell(options, key);
  return on_process(mesh, site, [&] {
    const PlanQuery query = query_of(key);
    Comparison comparison(operands, query, site);
    const Prepared& prepared = prepare(mesh, key, [&]() -> std::shared_ptr<const Plan> {
      const auto boxes = std::make_shared<const std::vector<Box>>(
          boxes_between(target.extents, to, between.shape, between.places));
      const auto whole = std::make_shared<PlanWithBoxes>(PlanWithBoxes{
          boxes, plan_reshard_between(x.desc(), *boxes, mesh.shape(), mesh.process(), options)});
      require_contract(whole->plan, options.contract, mesh, site);
      return {whole, &whole->plan};
    });
    comparison.begin(prepared);
    TensorCore result = TensorCore::make(other, target, site.where);
    const TensorCore destination(x.mesh(), prepared.plan->result_desc(), result.storage());
    execute(prepared, operands, site, 1, {}, &destination);
    if (!mesh.dry()) tessera::fence();  // the other mesh need not know of this one's work
    return result;
  });
}

template <class Y, class X> struct BetweenCall {
  using mesh = typename X::mesh_type;
  static consteval bool said() {
    static_assert(
        std::is_same_v<typename X::value_type, typename Y::value_type>,
        "[tessera] a reshard to another mesh keeps the element type; cast with map first");
    static_assert(X::rank == Y::rank,
                  "[tessera] a reshard to another mesh keeps the number of dimensions; write one "
                  "entry of the spec for each dimension");
    static_assert(!Y::unfinished,
                  "[tessera] a tensor arrives on another mesh finished; drop Unreduced from the "
                  "target's spec");
    return true;
  }
  static_assert(said());
  static constexpr Contract needs(const MeshShape& on, const Contract& contract) {
    Contract result = tessera::needs(ops::Reshard{X::sharding().finished()},
                                     Shardings{X::sharding()}, on, contract);
    result.accept(Collective::exchange, on.axes());
    return result;
  }
};
}  // namespace detail

/// Returns x as a tensor Y of another mesh over the same processes. Communication: one exchange, as
/// plan_reshard_between says, within the contract `Bound`; before it what finishes x. Collective
/// over the processes of the meshes. Throws MeshError when they are over different processes.
template <TypedTensor Y, class Bound = NoContract, TypedTensor X>
Y reshard(const X& x, const ProcessMesh<typename Y::mesh_type>& mesh, Where where = Where::here()) {
  using Typed = detail::BetweenCall<Y, X>;
  return Y(detail::reshard_between(x.core(), Y::sharding(), mesh.core(),
                                   {"reshard", where, detail::bound<Typed, Bound>()}));
}
inline DynamicTensor reshard(const DynamicTensor& x, const Sharding& to,
                             const std::shared_ptr<MeshCore>& mesh,
                             const DynamicCall& call = Where::here()) {
  return DynamicTensor(detail::reshard_between(x.core(), to, mesh, call.site("reshard")));
}

}  // namespace tessera
