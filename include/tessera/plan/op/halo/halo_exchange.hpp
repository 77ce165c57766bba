// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that extends the blocks of tensors by halos, and its adjoint, which adds halos to
/// their owners; from tensors, or in place in extended blocks.
///
///     const Halo halo{{1, 1, Boundary::periodic}, {2, 0, Boundary::none}};
///     ops::HaloExchange{{halo}}                     // of one tensor, or of each
///     ops::HaloExchange{{halo, other}, true, true}  // the adjoint in place, of two
///
/// Each process's block is extended by the elements that stencils read beyond it, from the blocks
/// of as many other processes as needed. program/deep_halo.hpp plans the halo of several steps at
/// once.
///
///     const Halo halo{{1, 1, Boundary::periodic}, {2, 0, Boundary::none}};   // one a dimension
///     Plan p = detail::plan_halo({DType::f64, {100, 60}, Sharding{{0}, {1}}}, halo, mesh, process);
///     Plan q = detail::plan_halo_adjoint(desc, halo, mesh, process);      // adds the halo to its owners
///
/// Outside the tensor lies its other end (periodic), its mirror image (reflected, symmetric) or one
/// value (constant). With Boundary::none there is nothing, and at the edge of the tensor the
/// extended block is narrower.
///
/// Laws: element v of an extended block is the element of the tensor that the boundary rule gives;
/// widths may exceed blocks, blocks may be ragged or empty, and an empty block stays empty.
/// Messages go to all neighbours at once, or dimension by dimension, the later ones carrying the
/// corners: whichever costs less. In place, a process's own elements are not copied, and elements
/// outside the tensor stay as they are.
#include <string>

#include <tessera/base/verdict.hpp>
#include <tessera/plan/builder.hpp>
#include <tessera/plan/check/type_rules.hpp>
#include <tessera/plan/elementwise.hpp>
#include <tessera/plan/op/shape/shape.hpp>
#include <tessera/plan/operation.hpp>

namespace tessera {

/// How the corners travel.
enum class Corners : std::uint8_t {
  cheaper,      ///< whichever of the other two costs less
  direct,       ///< one exchange, with all neighbours
  by_dimension  ///< one exchange for each dimension that moves data
};

namespace detail {
/// Checks a halo of a tensor of these extents.
constexpr Verdict check_halo(const Extents& extents, const Halo& halo) {
  if (halo.size() != extents.size())
    return {.rule = Rule::halo_width_each, .left = halo.size(), .right = extents.size()};
  for (int d = 0; d < halo.size(); ++d) {
    const HaloDim& h = halo[d];
    if (h.low < 0 || h.high < 0)
      return {.rule = Rule::halo_not_negative, .left = h.low, .right = h.high, .dim = d};
    const Index widest = max_of(h.low, h.high);
    const Index most = extents[d] - (h.boundary == Boundary::reflected ? 1 : 0);
    if ((h.boundary == Boundary::reflected || h.boundary == Boundary::symmetric) &&
        extents[d] > 0 && widest > most)
      return {.rule = Rule::halo_within_image, .left = widest, .right = most, .dim = d};
  }
  return {};
}
}  // namespace detail

/// Returns the error as text, with the numbers, the rule and the way out.
inline std::string explain(const Verdict& v, const Extents& extents) {
  return explain(v, {.first = v.dim < 0 ? "" : std::to_string(extents[v.dim])});
}

/// The settings of a halo's plan besides its widths.
struct HaloOptions {
  Corners corners = Corners::cheaper;
  bool in_place = false;  ///< the operands are extended blocks, and only their halos move
};

namespace detail {
/// The region of a halo along one dimension of n elements.
constexpr RegionDim halo_dim(Index n, AxisList axes, const HaloDim& halo) {
  RegionDim d = same_dim(n);
  d.axes = d.source_axes = axes;
  if (halo.low == 0 && halo.high == 0) return d;
  d.boundary = halo.boundary;
  d.rule = RegionDim::Rule::extended;
  d.window.low = halo.low;
  d.window.high = halo.high;
  if (halo.boundary == Boundary::none) {  // a window that reads only existing elements
    d.rule = RegionDim::Rule::window;
    d.window.size = 1 + halo.low + halo.high;
  }
  return d;
}
constexpr Region halo_region(const Extents& extents, const Sharding& sharding, const Halo& halo) {
  Region region;
  for (int d = 0; d < extents.size(); ++d)
    region.push_back(halo_dim(extents[d], sharding[d], halo[d]));
  return region;
}

constexpr Plan plan_halo_so(const TensorDescs& x, const FixedVector<Halo, max_operands>& halos,
                            bool adjoint, bool direct, bool in_place, const MeshShape& mesh,
                            int process, const PlanOptions& options) {
  PlanBuilder build(adjoint ? OperatorKind::halo_adjoint : OperatorKind::halo, mesh, process,
                    options);
  FixedVector<int, max_operands> slots;
  LazyVector<LazyVector<Region, max_regions>, max_operands> steps;
  bool fills = false;
  int most = 1;
  for (int k = 0; k < x.size(); ++k) {
    const Sharding sharding = without_unit_axes(x[k].sharding, mesh);
    const Region whole = halo_region(x[k].extents, sharding, halos[k]);
    fills = fills || needs_filling(whole);
    steps.push_back(direct ? LazyVector<Region, max_regions>{whole} : in_turn(whole, mesh));
    if (steps[k].size() > most) most = steps[k].size();
  }
  // Operands first: extended blocks, or plain ones.
  for (int k = 0; k < x.size(); ++k) {
    const Term labels = default_labels(x[k].rank());
    slots.push_back(adjoint || in_place
                        ? build.shaped_operand(x[k], labels, build.region(steps[k].back()))
                        : build.operand(x[k], labels));
  }
  for (int turn = 0; turn < most; ++turn) {
    FixedVector<int, max_operands> from, to;
    FixedVector<std::int8_t, max_operands> regions;
    for (int k = 0; k < x.size(); ++k) {
      if (turn >= steps[k].size()) continue;
      const int i = adjoint ? steps[k].size() - 1 - turn : turn;
      const Term labels = default_labels(x[k].rank());
      int target = slots[k];
      if (!in_place && adjoint)
        target = i > 0 ? build.shaped(x[k], labels, build.region(steps[k][i - 1]))
                       : build.shaped(x[k], labels, -1);
      else if (!in_place && turn == 0)
        target = build.shaped(x[k], labels, build.region(steps[k].back()));
      regions.push_back(build.region(steps[k][i]));
      from.push_back(slots[k]);
      to.push_back(target);
      slots[k] = target;
    }
    build.take_each(from, regions, to, !in_place && (adjoint || (turn == 0 && fills)), adjoint);
  }
  for (int k = 1; k < x.size(); ++k)
    build.plan().also.push_back(static_cast<std::int8_t>(slots[k]));
  return build.finish(slots[0], x[0].sharding);
}

constexpr Plan plan_halo_of(const TensorDescs& x, const FixedVector<Halo, max_operands>& halos,
                            bool adjoint, const HaloOptions& how, const MeshShape& mesh,
                            int process, const PlanOptions& options) {
  // Regions that a plan has no room for travel directly.
  int regions = 0;
  bool choice = false;
  for (int k = 0; k < x.size(); ++k) {
    const Region whole =
        halo_region(x[k].extents, without_unit_axes(x[k].sharding, mesh), halos[k]);
    const int count = in_turn(whole, mesh).size();
    bool known = false;
    for (int j = 0; j < k; ++j) known = known || (x[j] == x[k] && halos[j] == halos[k]);
    if (!known) regions += count;
    choice = choice || count > 1;
  }
  const auto plan = [&](bool direct) {
    return plan_halo_so(x, halos, adjoint, direct, how.in_place, mesh, process, options);
  };
  // Sums of half types are rounded once, by their owner.
  const bool once = adjoint && options.parts_of(Reduction::sum, x[0].type) != x[0].type;
  if (!choice || once || how.corners == Corners::direct || regions > max_operands)
    return plan(true);
  if (how.corners == Corners::by_dimension) return plan(false);
  const Plan at_once = plan(true), in_turn = plan(false);
  return in_turn.cost < at_once.cost ? in_turn : at_once;
}

/// Returns the elements of the block `own` whose stencils read only `own`, when `box` is all that
/// the block's stencils read. They can be computed while the halo travels.
constexpr Box inner_box(const Box& own, const Box& box) {
  Box inner;
  for (int d = 0; d < own.rank(); ++d) {
    const Index lo = own[d].lo + (own[d].lo - box[d].lo), hi = own[d].hi - (box[d].hi - own[d].hi);
    inner.side.push_back({min_of(lo, own[d].hi), max_of(min_of(lo, own[d].hi), hi)});
  }
  return inner;
}
/// Returns the elements of `own` that are not in `inner`, as disjoint boxes, none of them empty.
constexpr FixedVector<Box, 2 * max_dims> border_boxes(const Box& own, const Box& inner) {
  FixedVector<Box, 2 * max_dims> boxes;
  Box rest = own;
  for (int d = 0; d < own.rank(); ++d) {
    for (const Interval side :
         {Interval{own[d].lo, inner[d].lo}, Interval{inner[d].hi, own[d].hi}}) {
      Box box = rest;
      box[d] = side;
      if (!box.empty()) boxes.push_back(box);
    }
    rest[d] = inner[d];
  }
  return boxes;
}

/// Plans the extended block of x. Preconditions: check_halo() is ok; x is finished.
constexpr Plan plan_halo(const TensorDesc& x, const Halo& halo, const MeshShape& mesh,
                         int process = 0, const PlanOptions& options = {},
                         const HaloOptions& how = {}) {
  return detail::plan_halo_of({x}, {halo}, false, how, mesh, process, options);
}
/// Plans the extended blocks of several tensors of one element type in one exchange: one message
/// for each neighbour, for any number of tensors. The first is the plan's result, the others are
/// plan.also.
constexpr Plan plan_halo_together(const TensorDescs& x,
                                  const FixedVector<Halo, max_operands>& halos,
                                  const MeshShape& mesh, int process = 0,
                                  const PlanOptions& options = {}, const HaloOptions& how = {}) {
  return detail::plan_halo_of(x, halos, false, how, mesh, process, options);
}
/// Plans the adjoint of plan_halo(): each element of the result is the sum over all its positions
/// in extended blocks like those that plan_halo() makes from x. Positions outside that are no
/// element's image are dropped. In place, the halos are added to their owners' elements, and stay.
constexpr Plan plan_halo_adjoint(const TensorDesc& x, const Halo& halo, const MeshShape& mesh,
                                 int process = 0, const PlanOptions& options = {},
                                 const HaloOptions& how = {}) {
  return detail::plan_halo_of({x}, {halo}, true, how, mesh, process, options);
}
}  // namespace detail
}  // namespace tessera

namespace tessera {
namespace detail {

constexpr void add_to(Digest& digest, const HaloDim& d) {
  add_to(digest, d.low);
  add_to(digest, d.high);
  add_to(digest, d.boundary);
}
}  // namespace detail

namespace ops {
struct HaloExchange {
  FixedVector<Halo, max_operands> halos = {};  ///< one for all tensors, or one for each
  bool adjoint = false;
  bool in_place = false;  ///< the operands are extended blocks, and only their halos move

  constexpr OperatorKind kind() const {
    return adjoint ? OperatorKind::halo_adjoint : OperatorKind::halo;
  }
  constexpr Verdict check(const TensorDescs& x) const {
    for (int i = 0; i < x.size(); ++i) {
      if (!x[i].sharding.partial.empty()) return {Rule::halo_of_finished, i};
      Verdict v = detail::check_halo(x[i].extents, halo(i));
      v.operand = i;
      if (!v.ok()) return v;
      v = detail::check_one_type(Rule::halo_types_alike, x[0].type, x[i].type, i);
      if (!v.ok()) return v;
    }
    return adjoint ? detail::check_product_type(x[0].type) : Verdict{};
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames& names) const {
    const TensorDesc& one = x[v.operand];
    if (v.rule == Rule::halo_of_finished || v.rule == Rule::halo_types_alike)
      return tessera::explain(v, {.operands = x.size(), .first = to_string(one.sharding, names)});
    return tessera::explain(v, one.extents) + " (" + to_string(one, names) + ")";
  }
  constexpr TensorDescs results(const TensorDescs& x) const { return x; }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    FixedVector<Halo, max_operands> each;
    for (int i = 0; i < x.size(); ++i) each.push_back(halo(i));
    return tessera::detail::plan_halo_of(x, each, adjoint, {Corners::cheaper, in_place}, on.mesh,
                                         on.process, on.options);
  }
  /// Widths of 1 stand for all.
  constexpr tessera::detail::StandIn<HaloExchange> stand_in(const TensorDescs& x) const {
    tessera::detail::StandIn<HaloExchange> call{*this, tessera::detail::stand_ins(x)};
    for (Halo& one : call.operation.halos)
      for (HaloDim& d : one)
        if (d.low > 0 || d.high > 0) d = {1, 1, Boundary::periodic};
    return call;
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("halos", halos);
    visit("adjoint", adjoint);
    visit("in place", in_place);
  }
  constexpr bool operator==(const HaloExchange&) const = default;

 private:
  constexpr Halo halo(int i) const {
    if (halos.size() == 1) return halos[0];
    return i < halos.size() ? halos[i] : Halo{};
  }
};
}  // namespace ops
}  // namespace tessera

TESSERA_OPERATION(HaloExchange)
