// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operators between tensors and the application's memory: whole on one process's host, or in
/// boxes, one for each process.
///
///     ops::FromMemory{ops::Memory::on_root(0, mesh.processes()), out}
///     ops::ToMemory{ops::Memory::in_boxes(boxes, mesh.processes())}
///
/// Laws: an operator with boxes views the caller's list, which lives as long as the call; its plan
/// views Planning::boxes, which lives as long as the plan. An operator that is kept is only
/// compared.
///
///     Plan p = detail::plan_from_root({DType::f32, {1000, 600}, Sharding{{0}, {1}}}, 0, mesh, process);
///     Plan q = detail::plan_to_boxes(desc, boxes, mesh, process);        // boxes[r] is process r's
///
/// Laws: to_root moves each element at most once, from_root sends it to every process that needs it
/// or, where that costs more, once, and the receivers pass it on; what one process has and all need
/// may be broadcast; boxes that already are the blocks cost nothing. The root's staging is at most
/// a slab (plan/move/relocation.hpp). The plan is a function of the global shardings and boxes, so
/// all processes decide alike.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tessera/plan/builder.hpp>
#include <tessera/plan/check/check_boxes.hpp>
#include <tessera/plan/move/relocation.hpp>
#include <tessera/plan/op/move/reshard.hpp>
#include <tessera/spec/verdict.hpp>

namespace tessera::detail {
/// Returns whether every block is a run of the whole tensor's elements.
constexpr bool blocks_are_runs(const Extents& extents, const Sharding& s, const MeshShape& mesh) {
  for (int d = 0; d < extents.size(); ++d)
    if (mesh.parts(s[d]) > 1 && !leading(extents, d)) return false;
  return true;
}
/// Returns whether all processes hold the same boxes in both.
inline bool same_boxes(const Holding& a, const Holding& b, int processes) {
  for (int p = 0; p < processes; ++p)
    if (a.holds(p) != b.holds(p) || !(a.box(p) == b.box(p))) return false;
  return true;
}
/// Returns the process that has all elements, where the others have none and every process needs
/// all; else -1.
inline int owner_of_all(const Holding& from, const Holding& to, int processes) {
  const Box all = whole(from.extents());
  int owner = -1;
  for (int p = 0; p < processes; ++p) {
    if (!to.holds(p) || !(to.box(p) == all)) return -1;
    if (from.size(p) == 0) continue;
    if (owner >= 0 || !(from.box(p) == all)) return -1;
    owner = p;
  }
  return owner;
}
/// Returns `s` with its unused axes (those of `free`) appended, each to the first dimension that is
/// still long enough.
constexpr Sharding split_further(const Extents& extents, const Sharding& s, AxisSet free,
                                 const MeshShape& mesh) {
  Sharding result = s;
  for (int axis = 0; axis < mesh.rank(); ++axis)
    for (int d = 0; d < extents.size() && free.contains(axis); ++d)
      if (extents[d] >= static_cast<Index>(mesh.parts(result[d])) * mesh[axis]) {
        result[d].push_back(axis);
        free.erase(axis);
      }
  return result;
}
/// Returns the plan that keeps the contract, where only one does; else the cheaper one.
inline const Plan& better(const Plan& plain, const Plan& other, const PlanOptions& options) {
  const bool kept = options.contract.covers(plain.needs);
  if (kept != options.contract.covers(other.needs)) return kept ? plain : other;
  return other.cost < plain.cost ? other : plain;
}

inline int PlanBuilder::relocate(int slot, const Sharding& sharding, const Placement& place) {
  const Slot from = plan_.slots[slot];
  TensorDesc desc = from.desc;
  desc.sharding = sharding;
  const MeshShape& mesh = plan_.mesh;
  const AxisSet group = mesh.axes() - mesh.unit_axes();
  const bool gaps = detail::has_gaps(plan_, from);
  Step& step = add_step(StepKind::copy, slot);
  step.out = static_cast<std::int8_t>(add_slot(desc, from.labels, SlotRole::temporary, place));
  const Holding before(from.desc, from.place, mesh), after(desc, place, mesh);
  const Index unit = static_cast<Index>(size_of(desc.type));
  if (group.empty() || detail::same_boxes(before, after, mesh.processes())) {
    step.cost = options_.machine.copy(saturating_mul(before.size(0), unit));
    return step.out;
  }
  step.kind = StepKind::communicate;
  step.collective = Collective::exchange;
  step.group = group;
  plan_.needs.accept(Collective::exchange, group);
  step.level = levels(group, mesh, options_.machine).level();
  step.node = levels(group, mesh, options_.machine).node;
  const bool root_sends = from.place.kind == Placement::Kind::root;
  const bool root_receives = place.kind == Placement::Kind::root;
  step.direct_receive = root_sends;  // a slab's part of a block is a run of the block
  step.direct_send = root_receives && !gaps;
  if (root_sends) step.direct_send = detail::blocks_are_runs(desc.extents, sharding, mesh);
  if (root_receives)
    step.direct_receive = detail::blocks_are_runs(desc.extents, from.desc.sharding, mesh);
  if ((root_sends || root_receives) && !(step.direct_send && step.direct_receive)) {
    step.slab = slab_bytes(options_.workspace_limit);
    step.rounds = Slabs(desc.extents, max_of(1, step.slab / unit)).count();
  }
  detail::number_relocation(plan_, step, plan_.process);
  const detail::Relocation moves = detail::relocation_of(plan_, step);
  // Priced on the process that has everything, or that has or gets most, whichever costs more.
  const auto most_of = [&](const Holding& all) {
    int most = 0;
    for (int p = 1; p < mesh.processes(); ++p)
      if (all.size(p) > all.size(most)) most = p;
    return most;
  };
  const int owner = gaps ? -1 : detail::owner_of_all(before, after, mesh.processes());
  const int first = owner >= 0 ? owner : most_of(before);
  for (const int process : {first, root_sends ? first : most_of(after)}) {
    std::int64_t cost = 0;
    for (Index round = 0; round < step.rounds; ++round) {
      const MoveWork work = moves.work(process, round);
      Index arriving = 0, messages = 0;
      for (const Piece& piece : work.call.receive) {
        arriving = saturating_add(arriving, saturating_mul(piece.count, unit));
        messages += piece.count > 0;
      }
      const Index leaving = payload_bytes(work.call);
      messages = max_of(messages, message_count(work.call));
      cost = saturating_add(
          cost,
          saturating_add(
              options_.machine.transfer(max_of(leaving, arriving), max_of(1, messages), step.level),
              options_.machine.copy(saturating_add(work.send_bytes, work.receive_bytes))));
    }
    step.cost = max_of(step.cost, cost);
  }
  if (owner >= 0) {
    const std::int64_t cost =
        price_of_broadcast(saturating_mul(volume(desc.extents), unit), mesh.group_size(group),
                           step.level, options_.machine);
    if (cost < step.cost) {
      step.collective = Collective::broadcast;
      step.direct_send = step.direct_receive = true;  // each side is one run
      step.rounds = 1;
      step.slab = 0;
      step.cost = cost;
      detail::number_relocation(plan_, step, plan_.process);
    }
  }
  return step.out;
}

/// Plans how `result` (finished) is made from the whole tensor in host memory of process `root`.
inline Plan plan_from_root(const TensorDesc& result, int root, const MeshShape& mesh,
                           int process = 0, const PlanOptions& options = {}) {
  const Sharding& to = result.sharding;
  const auto by_way_of = [&](const Sharding& first) {
    PlanBuilder build(OperatorKind::from_root, mesh, process, options);
    const int given = build.operand({result.type, result.extents, Sharding::replicated(to.rank())},
                                    default_labels(to.rank()), Placement::on_root(root));
    const int sent = build.relocate(given, first, {});
    return build.finish(build.reshard(sent, to), to);
  };
  const Plan direct = by_way_of(to);
  const Sharding finer =
      detail::split_further(result.extents, to, mesh.axes() - mesh.unit_axes() - to.used(), mesh);
  return finer == to ? direct : detail::better(direct, by_way_of(finer), options);
}

/// Plans how x gets to `place`, in memory that is given, by way of sharding `last`.
inline Plan plan_out_by_way_of(const Sharding& last, OperatorKind kind, const TensorDesc& x,
                               const Placement& place, const MeshShape& mesh, int process,
                               const PlanOptions& options) {
  PlanBuilder build(kind, mesh, process, options);
  build.plan().destination = Destination::given;
  const int slot = build.reshard(build.operand(x, default_labels(x.rank())), last);
  const Sharding everywhere = Sharding::replicated(x.rank());
  return build.finish(build.relocate(slot, everywhere, place), everywhere);
}
/// Plans by the better way: an unfinished x is finished, or scattered where that is cheaper.
inline Plan plan_out(OperatorKind kind, const TensorDesc& x, const Placement& place,
                     const MeshShape& mesh, int process, const PlanOptions& options) {
  const Sharding finished = x.sharding.finished();
  const Plan plain = plan_out_by_way_of(finished, kind, x, place, mesh, process, options);
  const Sharding scattered =
      split_further(x.extents, finished, x.sharding.partial - mesh.unit_axes(), mesh);
  if (scattered == finished) return plain;
  return better(plain, plan_out_by_way_of(scattered, kind, x, place, mesh, process, options),
                options);
}

/// Plans how process `root` gets all of x in its host memory.
inline Plan plan_to_root(const TensorDesc& x, int root, const MeshShape& mesh, int process = 0,
                         const PlanOptions& options = {}) {
  return detail::plan_out(OperatorKind::to_root, x, Placement::on_root(root), mesh, process,
                          options);
}

/// Plans how `result` (finished) is made from boxes[r] on each process r; the boxes are equal or
/// disjoint and cover the tensor. The plan views `boxes`.
inline Plan plan_from_boxes(const TensorDesc& result, std::span<const Box> boxes,
                            const MeshShape& mesh, int process = 0,
                            const PlanOptions& options = {}) {
  PlanBuilder build(OperatorKind::from_boxes, mesh, process, options);
  const Placement place = Placement::in_boxes(boxes.data(), static_cast<int>(boxes.size()));
  int slot = build.operand({result.type, result.extents, Sharding::replicated(result.rank())},
                           default_labels(result.rank()), place);
  if (options.destination == Destination::given ||
      !detail::same_boxes(Holding(result, place, mesh), Holding(result, {}, mesh),
                          mesh.processes()))
    slot = build.relocate(slot, result.sharding, {});
  return build.finish(slot, result.sharding);
}

/// Plans how each process r gets boxes[r] of x, in memory that the caller gives. The boxes lie
/// within the tensor and are otherwise free. The plan views `boxes`.
inline Plan plan_to_boxes(const TensorDesc& x, std::span<const Box> boxes, const MeshShape& mesh,
                          int process = 0, const PlanOptions& options = {}) {
  const Placement place = Placement::in_boxes(boxes.data(), static_cast<int>(boxes.size()));
  return detail::plan_out_by_way_of(x.sharding.finished(), OperatorKind::to_boxes, x, place, mesh,
                                    process, options);
}
}  // namespace tessera::detail

namespace tessera {
namespace detail {
/// The communication that finishes and exchanges x.
constexpr Contract needs_out(const TensorDesc& x, const MeshShape& mesh, const Contract& contract) {
  const ops::Reshard finish{x.sharding.finished()};
  Contract needed = needs(finish, TensorDescs{x}, mesh, contract);
  needed.accept(Collective::exchange, mesh.axes());
  return needed;
}
/// Returns boxes that live as long as the plan.
inline std::span<const Box> kept(std::vector<Box> boxes, const Planning& on) {
  if (on.boxes == nullptr)
    throw UsageError("a plan that views boxes needs a list that keeps them; give Planning::boxes");
  return *on.boxes = std::move(boxes);
}
}  // namespace detail

namespace ops {

/// The location of a tensor in the application. A fingerprint of 128 bits stands for the boxes.
struct Memory {
  detail::Placement place = {};
  int processes = 1;  ///< of the mesh
  detail::Fingerprint fingerprint = {};

  static constexpr Memory on_root(int root, int processes) {
    return {detail::Placement::on_root(root), processes};
  }
  static Memory in_boxes(std::span<const Box> list, int processes) {
    Memory memory{detail::Placement::in_boxes(list.data(), static_cast<int>(list.size())),
                  processes};
    for (const Box& box : list) {
      memory.fingerprint.add(static_cast<std::uint64_t>(box.rank()));
      for (const Interval& side : box.side)
        for (const Index end : {side.lo, side.hi})
          memory.fingerprint.add(static_cast<std::uint64_t>(end));
    }
    return memory;
  }
  constexpr bool whole() const { return place.kind == detail::Placement::Kind::root; }
  std::span<const Box> boxes() const {
    return {place.boxes, static_cast<std::size_t>(place.count)};
  }
  std::span<const Box> kept(const Planning& on) const {
    return tessera::detail::kept({boxes().begin(), boxes().end()}, on);
  }
  Verdict check(const TensorDesc& x, bool partition) const {
    if (!whole()) return detail::check_boxes(x.extents, boxes(), processes, partition);
    if (place.root >= 0 && place.root < processes) return {};
    return {.rule = Rule::root_known, .left = place.root, .right = processes, .type = x.type};
  }
  template <class V> constexpr void members(const V& visit) const {
    if (whole()) visit("root", place.root);
    fingerprint.members(visit);
  }
  constexpr bool operator==(const Memory& other) const {
    return place.kind == other.place.kind && place.root == other.place.root &&
           processes == other.processes && fingerprint == other.fingerprint;
  }
};

struct FromMemory {
  Memory from = {};
  Sharding out = {};

  constexpr OperatorKind kind() const {
    return from.whole() ? OperatorKind::from_root : OperatorKind::from_boxes;
  }
  Verdict check(const TensorDescs& x) const {
    if (out.rank() != x[0].rank()) return {Rule::entry_each, 1, 0, -1, x[0].rank(), out.rank()};
    return out.partial.empty() ? from.check(x[0], true) : Verdict{Rule::made_finished, 1};
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames& names) const {
    if (v.rule == Rule::made_finished || v.rule == Rule::entry_each)
      return tessera::explain(v, out, names);
    return tessera::explain(v, x[0].extents, from.boxes());
  }
  constexpr TensorDescs results(const TensorDescs& x) const {
    return {{x[0].type, x[0].extents, out}};
  }
  Plan plan(const TensorDescs& x, const Planning& on) const {
    const TensorDesc made = results(x)[0];
    return from.whole()
               ? detail::plan_from_root(made, from.place.root, on.mesh, on.process, on.options)
               : detail::plan_from_boxes(made, from.kept(on), on.mesh, on.process, on.options);
  }
  /// The communication of a finished tensor; the result does not matter.
  constexpr Contract needs(const TensorDescs&, const MeshShape& mesh, const PlanOptions&) const {
    return tessera::detail::needs_out({DType::f32, {}, {}}, mesh, {});
  }
  template <class V> constexpr void members(const V& visit) const {
    from.members(visit);
    visit("to", out);
  }
  constexpr bool operator==(const FromMemory&) const = default;
};

struct ToMemory {
  Memory to = {};

  constexpr OperatorKind kind() const {
    return to.whole() ? OperatorKind::to_root : OperatorKind::to_boxes;
  }
  Verdict check(const TensorDescs& x) const { return to.check(x[0], false); }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames&) const {
    return tessera::explain(v, x[0].extents, to.boxes());
  }
  constexpr TensorDescs results(const TensorDescs& x) const {
    return {{x[0].type, x[0].extents, Sharding::replicated(x[0].rank())}};
  }
  Plan plan(const TensorDescs& x, const Planning& on) const {
    return to.whole() ? detail::plan_to_root(x[0], to.place.root, on.mesh, on.process, on.options)
                      : detail::plan_to_boxes(x[0], to.kept(on), on.mesh, on.process, on.options);
  }
  constexpr Contract needs(const TensorDescs& x, const MeshShape& mesh,
                           const PlanOptions& options) const {
    return tessera::detail::needs_out(x[0], mesh, options.contract);
  }
  template <class V> constexpr void members(const V& visit) const { to.members(visit); }
  constexpr bool operator==(const ToMemory&) const = default;
};

}  // namespace ops
}  // namespace tessera

TESSERA_OPERATION(FromMemory)
TESSERA_OPERATION(ToMemory)
