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
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tessera/plan/check/check_boxes.hpp>
#include <tessera/plan/move/place.hpp>
#include <tessera/plan/op/reshard.hpp>
#include <tessera/spec/verdict.hpp>

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
