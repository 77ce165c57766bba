// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Moving a tensor to another mesh over the same processes: other axes, another order of them,
/// another device assignment; and between the parts of a mesh (ProcessMesh::part).
///
///     auto wide = make_mesh<Mesh<all>>(env, 4);
///     auto y = reshard<ShardedTensor<float, Mesh<all>, P<_, all>>>(x, wide);
///
/// Laws: to_host(reshard<Y>(x, mesh)) equals to_host(x); a process receives no element that it has
/// already. Between parts, a process of neither sends and receives nothing. The gradient goes back
/// in the same way.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <tessera/op/reshard.hpp>
#include <tessera/plan/op/move/between.hpp>
#include <tessera/plan/op/move/between_parts.hpp>
#include <tessera/run/whole_view.hpp>
#include <tessera/tensor/part_core.hpp>

namespace tessera {
namespace detail {

/// For each other mesh that a mesh's tensors have gone to: the places of its processes there.
struct Neighbours {
  struct Entry {
    std::weak_ptr<MeshCore> mesh;
    MeshShape shape;
    std::vector<int> places;
    Fingerprint fingerprint = {};  ///< of both
  };
  std::vector<Entry> entries;
};

inline std::string processes_text(const std::vector<int>& processes) {
  std::string text;
  for (std::size_t i = 0; i < processes.size() && i < 8; ++i)
    text += (i > 0 ? ", " : "") + std::to_string(processes[i]);
  return text + (processes.size() > 8 ? ", ..." : "");
}

/// Returns the places of the processes of `from` in `to`, worked out once for two meshes. Throws
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
  Neighbours::Entry entry{to, to->shape(), {}};
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
  if (from.dry()) {
    const auto plays = [](const MeshCore& core) {
      return core.processes()[static_cast<std::size_t>(core.process())];
    };
    if (plays(from) != plays(*to))
      throw MeshError("reshard: this program plays process " + std::to_string(plays(from)) +
                          " on the dry mesh " + from.to_string() + " and process " +
                          std::to_string(plays(*to)) + " on " + to->to_string() +
                          "; one process is on both meshes; make both with the same process",
                      where);
  }
  for (int a = 0; a < entry.shape.rank(); ++a)
    entry.fingerprint.add(static_cast<std::uint64_t>(entry.shape[a]));
  for (const int place : entry.places) entry.fingerprint.add(static_cast<std::uint64_t>(place));
  return known.emplace_back(std::move(entry));
}

/// Throws unless a destination is a tensor of the other mesh, described so, that nobody uses.
inline void require_there(const TensorCore& into, const std::shared_ptr<MeshCore>& mesh,
                          const TensorDesc& desc, CallSite site) {
  if (into.mesh() != mesh)
    throw MeshError(std::string(site.label) +
                        ": the destination lies on another mesh than the one to go to; make it on "
                        "that mesh",
                    site.where);
  if (!(into.desc() == desc))
    throw ShapeError(std::string(site.label) + ": the result is " + to_string(desc, mesh->names()) +
                         " and the destination " + to_string(into.desc(), mesh->names()) +
                         "; give a tensor of the result's element type, extents and spec",
                     site.where);
  if (into.storage()->in_use())
    throw UsageError(
        std::string(site.label) + ": the destination is used by an operator that was started at " +
            to_string(into.storage()->user()) + " and has not been waited for; wait for it first",
        site.where);
}

/// Returns the boxes of a tensor on each process of the mesh `whole`, in which its own lies.
inline std::vector<Box> boxes_in_whole(const TensorCore& x, const MeshCore& whole) {
  const Extents extents = x.rank() > 0 ? x.extents() : Extents{1};
  const Sharding sharding = x.rank() > 0 ? x.sharding() : Sharding::replicated(1);
  return boxes_in_part(extents, sharding, x.mesh()->shape(), members_in(*x.mesh(), whole),
                       whole.shape().processes());
}

/// Moves x into `result`, a tensor of another part of the mesh `whole`, or of that mesh. The
/// smallest such mesh: processes that are not in it have nothing to do with the move.
inline void reshard_between_parts(const TensorCore& x, const TensorCore& result,
                                  const std::shared_ptr<MeshCore>& whole, CallSite site) {
  if (site.contract && site.contract->bounded())
    throw UsageError("reshard: a contract is given that names axes of the tensor's part " +
                         x.mesh()->to_string() +
                         ", and a move between parts communicates over the axes of " +
                         whole->to_string() + "; call it without a contract",
                     site.where);
  require_by_itself(result, site.where);
  const TensorCore finished = x.sharding().partial.empty() && x.halo() == nullptr
                                  ? x
                                  : reshard(x, x.sharding().finished(), site);
  // The whole mesh sees the blocks as memory that each of its processes has, or has not.
  const auto seen = [&](const TensorCore& one) {
    const Extents extents = one.rank() > 0 ? one.extents() : Extents{1};
    const TensorDesc desc{one.type(), extents, Sharding::replicated(extents.size())};
    const TensorCore there = seen_on(one, whole, desc, one.storage()->varies(), site);
    there.storage()->forget();  // processes of other parts have none
    return there;
  };
  const std::vector<Box> before = boxes_in_whole(finished, *whole),
                         after = boxes_in_whole(result, *whole);
  const int processes = whole->shape().processes();
  const ops::BetweenParts operation{ops::Memory::in_boxes(before, processes),
                                    ops::Memory::in_boxes(after, processes)};
  const TensorCore source = seen(finished), target = seen(result);
  run({operation, {&source}, site, {.into = &target}});
}

/// Throws MeshError where one of two meshes is what a manual function leaves of its mesh: each
/// process has its own, and the others know nothing of a move to it.
inline void require_outside_manual(const MeshCore& from, const MeshCore& to, CallSite site) {
  for (const MeshCore* mesh : {&from, &to})
    if (const PartHome* const home = mesh->attached<PartHome>(); home != nullptr && home->own)
      throw MeshError("reshard: a tensor within a manual function is moved to another mesh, from " +
                          text_of_mesh(from) + " to " + text_of_mesh(to) +
                          "; it leaves the function as its result",
                      site.where);
}

inline TensorCore reshard_between(const TensorCore& x, const Sharding& to,
                                  const DynamicMesh& goes_to, CallSite site);

/// Reshards in a function that is differentiated: the gradient goes the way back.
inline TensorCore reshard_between_taped(const TensorCore& x, const Sharding& to,
                                        const DynamicMesh& goes_to, CallSite site) {
  if (site.into != nullptr)
    throw UsageError(
        "reshard: a tensor is moved into a tensor of another mesh, within a function that is "
        "differentiated; move it without a destination there",
        site.where);
  const Sharding own = x.sharding().finished();
  const TensorCore finished = own == x.sharding() ? x : reshard(x, own, site);
  const auto back = [own, home = DynamicMesh(x.mesh()),
                     where = site.where](const std::vector<TensorCore>& gradients) {
    return std::vector<TensorCore>{
        reshard_between(gradients[0], own, home, {"reshard", where, Contract{}})};
  };
  return beside_tapes(finished, back, site,
                      [&] { return reshard_between(finished, to, goes_to, site); });
}

inline TensorCore reshard_between(const TensorCore& x, const Sharding& to,
                                  const DynamicMesh& goes_to, CallSite site) {
  MeshCore& mesh = mesh_of(x, site);
  if (!goes_to.defined())
    throw MeshError("reshard: the mesh to go to is empty; make it with make_mesh first",
                    site.where);
  const std::shared_ptr<MeshCore>& other = goes_to.core();
  if (other == x.mesh()) return reshard(x, to, site);
  require_outside_manual(mesh, *other, site);
  if (is_taped()) return reshard_between_taped(x, to, goes_to, site);
  const std::shared_ptr<MeshCore> whole = mesh_of_both(x.mesh(), other, site.where);
  const TensorDesc desc{x.type(), x.extents(), to};
  if (site.into != nullptr) require_there(*site.into, other, desc, site);
  const auto destination = [&] {
    const TensorCore result =
        site.into != nullptr ? *site.into
                             : on_process(*other, site, [&] { return landing(other, desc, site); });
    site.into = nullptr;
    return result;
  };
  if (whole != nullptr) {
    const TensorCore result = destination();
    reshard_between_parts(x, result, whole, site);
    return result;
  }
  const Neighbours::Entry& between = places_between(mesh, other, site.where);
  const ops::Between operation{{to, between.shape, between.places, between.fingerprint}};
  const TensorCore result = destination();
  run({operation, {&x}, site, {.into = &result}});
  return result;
}

template <class Y, class X> struct TypedBetween {
  static_assert(!is_manual<typename X::mesh_type> && !is_manual<typename Y::mesh_type>,
                "[tessera] a tensor within a manual function is moved to another mesh; it leaves "
                "the function as its result");
  using mesh = typename X::mesh_type;
  static_assert(std::is_same_v<typename X::value_type, typename Y::value_type>,
                "[tessera] a reshard to another mesh keeps the element type; use cast first");
  static constexpr TensorDescs operands{desc_of_type<X>()};
  static constexpr ops::Between operation{{detail::closed_sharding<Y>()}};
  static constexpr Verdict verdict = operation.check(operands);
  static_assert(demand<TypedBetween, X>());
};
}  // namespace detail

/// Returns x as a tensor Y of another mesh over the same processes. Communication: one exchange of
/// the elements with a new owner, within the contract `Bound`; before it, the calls that finish x.
/// Collective over the processes of the meshes. Throws MeshError when they are over different
/// processes.
template <TypedTensor Y, class Bound = NoContract, TypedTensor X>
Y reshard(const X& x, const ProcessMesh<typename Y::mesh_type>& mesh, Where where = Where::here()) {
  using Typed = detail::TypedBetween<Y, X>;
  return Y(detail::reshard_between(x.core(), detail::closed_sharding<Y>(), mesh,
                                   {"reshard", where, detail::bound<Typed, Bound>()}));
}
inline DynamicTensor reshard(const DynamicTensor& x, const Sharding& to, const DynamicMesh& mesh,
                             const CallOptions& call = Where::here()) {
  return DynamicTensor(detail::reshard_between(x.core(), to, mesh, call.site("reshard")));
}

}  // namespace tessera
