// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operators that move elements across the borders of blocks and compute nothing: slice, pad,
/// reverse, roll, shift, concatenate, update. Each is a struct of its numbers that says which parts
/// of its operands it takes (plan/region/shape.hpp); ops::Moving does the rest for all.
///
///     ops::Roll{{2, 0}, out}.plan({x}, {mesh, process, options})
///     ops::Slice{{{part, other}}, out}.results({x}).size() == 2       // several, by one exchange
///     const detail::Taking rows{OperatorKind::slice, {{detail::slice_dim(100, 3, 2, 40), detail::same_dim(8)}}, {40, 8}};
///     Plan p = detail::plan_regions(rows, {x}, out, mesh, process);
///
/// Laws: an element goes from its owner only to processes that have it in their block of the
/// result; no communication where every process has what it needs.
#include <string>

#include <tessera/plan/check/shape_verdict.hpp>
#include <tessera/plan/op/move/together.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/search/moving_way.hpp>

namespace tessera::detail {
/// Plans how a result under `target` is made from the parts taken of the operands; later operands
/// overwrite earlier ones. All are finished, or all are unfinished alike.
constexpr Plan plan_regions(const Taking& taken, const TensorDescs& operands,
                            const Sharding& target, const MeshShape& mesh, int process = 0,
                            const PlanOptions& options = {}) {
  const Sharding out = without_unit_axes(target, mesh);
  const Resting rests(shardings_of(operands), target, taken.extents, mesh, options.contract);
  AxisSet moving;
  // The operands as they are, or gathered over some of the axes along which they would move.
  const auto make = [&](const MovingWay& way, int at) {
    moving = {};
    PlanBuilder build(taken.kind, mesh, at, options);
    const Sharding made_so = rests.at(way, taken.extents);
    FixedVector<int, max_operands> slots;
    Regions split;
    for (int k = 0; k < operands.size(); ++k)
      slots.push_back(build.operand(operands[k], default_labels(operands[k].rank())));
    for (int k = 0; k < operands.size(); ++k) {
      Sharding source = without_unit_axes(operands[k].sharding, mesh);
      Region region = split_so(taken.regions[k], source, made_so);
      const AxisSet over = moving_axes(region, mesh);
      moving = moving | over;
      if (!(over & way.gathered).empty()) {
        source = without_axes(source, over & way.gathered);
        slots[k] = build.reshard(slots[k], source);
        region = split_so(taken.regions[k], source, made_so);
      }
      split.push_back(region);
    }
    const int slot = build.take(slots, split, {operands[0].type, taken.extents, made_so},
                                default_labels(made_so.rank()), taken.fills);
    return build.finish(build.reshard(slot, out), target);
  };
  return best_moving(make, rests.list(), moving, process, options);
}

/// Plans several takings of one operand by one exchange; the results are all under the sharding
/// `out`, the first being the plan's, the others its further ones.
constexpr Plan plan_regions_each(const FixedVector<Taking, max_operands>& takings,
                                 const TensorDesc& x, const Sharding& out, const MeshShape& mesh,
                                 int process = 0, const PlanOptions& options = {}) {
  const Sharding source = without_unit_axes(x.sharding, mesh);
  const Sharding target = without_unit_axes(out, mesh);
  const Resting rests({x.sharding}, out, takings[0].extents, mesh, options.contract);
  AxisSet moving;
  const auto make = [&](const MovingWay& way, int at) {
    moving = {};
    PlanBuilder build(takings[0].kind, mesh, at, options);
    const Sharding from = without_axes(source, way.gathered);
    const int slot = build.reshard(build.operand(x, default_labels(x.rank())), from);
    FixedVector<int, max_operands> slots, made;
    FixedVector<std::int8_t, max_operands> regions;
    bool fills = false;
    for (const Taking& one : takings) {
      const Sharding made_so = rests.at(way, one.extents);
      const Region region = split_so(one.regions[0], from, made_so);
      moving = moving | moving_axes(region, mesh);
      fills = fills || one.fills;
      slots.push_back(slot);
      regions.push_back(build.region(region));
      made.push_back(build.shaped({x.type, one.extents, made_so}, default_labels(x.rank()), -1));
    }
    build.take_each(slots, regions, made, fills);
    move_together(build, made, Shardings(made.size(), target));
    for (int k = 1; k < made.size(); ++k)
      build.plan().also.push_back(static_cast<std::int8_t>(made[k]));
    return build.finish(made[0], out);
  };
  return best_moving(make, rests.list(), moving, process, options);
}
}  // namespace tessera::detail

namespace tessera::ops {

/// An operator that takes the parts of its operands that `How` says.
template <class How> struct Moving : How {
  Sharding out = {};

  constexpr OperatorKind kind() const { return How::verb; }
  constexpr Verdict check(const TensorDescs& x) const {
    if (const Verdict v = How::check(x); !v.ok()) return v;
    return detail::check_shape(detail::shardings_of(x), x[0].rank(), out);
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames& names) const {
    const bool of_operand = v.operand >= 0 && v.operand < x.size();
    detail::FactNames facts{.operands = x.size()};
    facts.first = tessera::detail::in_dimension(v.dim, x[of_operand ? v.operand : 0].extents);
    if (v.rule == Rule::outside_joins) facts.first = to_string(x[0].sharding, names);
    if (v.rule == Rule::number_each) How::members(tessera::detail::NameEntries{v, facts.first});
    if constexpr (requires { How::say(v, x, facts); }) How::say(v, x, facts);
    const bool of_slice = v.rule == Rule::number_each || v.rule == Rule::slice_within ||
                          v.rule == Rule::stride_positive;
    const std::string text = tessera::explain(v, facts);
    return of_slice && of_operand ? "of operand " + std::to_string(v.operand + 1) + ", " + text
                                  : text;
  }
  /// Returns the default sharding of the results: the operand's; for a concatenation, that of the
  /// first operand that is split.
  constexpr Sharding deduced(const TensorDescs& x) const {
    return How::verb == OperatorKind::concatenate ? detail::taken_sharding(detail::shardings_of(x))
                                                  : x[0].sharding;
  }
  constexpr TensorDescs results(const TensorDescs& x) const {
    TensorDescs made;
    for (int k = 0; k < count(); ++k) made.push_back({x[0].type, taking(x, k).extents, out});
    return made;
  }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    if (count() == 1)
      return detail::plan_regions(taking(x, 0), x, out, on.mesh, on.process, on.options);
    FixedVector<detail::Taking, max_operands> takings;
    for (int k = 0; k < count(); ++k) takings.push_back(taking(x, k));
    return detail::plan_regions_each(takings, x[0], out, on.mesh, on.process, on.options);
  }
  /// Only the dimensions along which elements move matter, never the distance.
  constexpr Contract needs(const TensorDescs& x, const MeshShape& mesh, PlanOptions options) const {
    options.needs_alone = true;
    const TensorDescs any = tessera::detail::stand_ins(x);
    Contract all = Contract::nothing();
    for (int k = 0; k < count(); ++k)
      all = all.joined(
          detail::plan_regions(detail::stand_in(taking(x, k)), any, out, mesh, 0, options).needs);
    return all;
  }
  template <class V> constexpr void members(const V& visit) const {
    How::members(visit);
    visit("to", out);
  }
  constexpr bool operator==(const Moving&) const = default;

 private:
  /// The number of results.
  constexpr int count() const {
    if constexpr (requires(const How& how) { how.parts; }) return this->parts.size();
    return 1;
  }
  /// The parts that result k takes.
  constexpr detail::Taking taking(const TensorDescs& x, int k) const {
    if constexpr (requires(const How& how) { how.taking(x); }) {
      return How::taking(x);
    } else {
      detail::Region region;
      for (int d = 0; d < x[0].rank(); ++d) region.push_back(How::along(d, x[0].extents[d], k));
      return detail::taking_of(How::verb, region);
    }
  }
};

/// Elements start, start + stride, ... before limit: of one part, or of several, which may overlap.
struct Slicing {
  FixedVector<tessera::Slice, max_operands> parts = {};

  static constexpr OperatorKind verb = OperatorKind::slice;
  constexpr Verdict check(const TensorDescs& x) const {
    if (parts.empty()) return {.rule = Rule::slice_named};
    for (const tessera::Slice& part : parts)
      if (const Verdict v = detail::check_slice(x[0].extents, part); !v.ok()) return v;
    return {};
  }
  constexpr detail::RegionDim along(int d, Index n, int k) const {
    return detail::slice_dim(n, parts[k].start[d], parts[k].step(d), parts[k].extents()[d]);
  }
  template <class V> constexpr void members(const V& visit) const {
    for (const tessera::Slice& part : parts) part.members(visit);
  }
  constexpr bool operator==(const Slicing&) const = default;
};
using Slice = Moving<Slicing>;

/// `low` elements before, `high` after and `interior` between any two; negative counts crop.
struct Padding {
  Extents low = {}, high = {}, interior = {};
  Outside outside = Outside::zero;  ///< the call gives the element itself

  static constexpr OperatorKind verb = OperatorKind::pad;
  constexpr Verdict check(const TensorDescs& x) const {
    if (const Verdict v = detail::check_outside(outside, x[0].sharding); !v.ok()) return v;
    for (const Extents* numbers : {&low, &high, &interior})
      if (const Verdict v = detail::check_number_each(*numbers, x[0].rank(), numbers == &interior);
          !v.ok())
        return v;
    constexpr Index most = max_int64 / 4;
    for (int d = 0; d < x[0].rank(); ++d) {
      const Index n = x[0].extents[d], more = between(d);
      if (more < 0) return {.rule = Rule::interior_not_negative, .left = more, .dim = d};
      if (more >= most || detail::saturating_mul(max_of(n, 1), more + 1) >= most ||
          max_of(low[d], high[d]) > most || min_of(low[d], high[d]) < -most)
        return {.rule = Rule::padding_countable, .dim = d};
      if (detail::dilated(n, more + 1) + low[d] + high[d] < 0)
        return {.rule = Rule::crop_within, .dim = d};
    }
    return {};
  }
  void say(const Verdict& v, const TensorDescs& x, detail::FactNames& facts) const {
    if (v.rule != Rule::padding_countable && v.rule != Rule::crop_within) return;
    const Index more = between(v.dim);
    const bool crops = v.rule == Rule::crop_within;
    facts.first = std::to_string(low[v.dim]) + "_" + std::to_string(high[v.dim]) +
                  (crops ? "" : "_" + std::to_string(more)) + facts.first;
    if (crops && more > 0)
      facts.first += " (" + std::to_string(detail::dilated(x[0].extents[v.dim], more + 1)) +
                     " with the interior padding)";
  }
  constexpr detail::RegionDim along(int d, Index n, int) const {
    return detail::pad_dim(n, low[d], high[d], between(d));
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("low", low);
    visit("high", high);
    visit("interior", interior);
    visit("outside", outside);
  }
  constexpr bool operator==(const Padding&) const = default;

 private:
  constexpr Index between(int d) const { return interior.empty() ? 0 : interior[d]; }
};
using Pad = Moving<Padding>;

/// Reverses dimensions.
struct Reversing {
  Dimensions dims = {};

  static constexpr OperatorKind verb = OperatorKind::reverse;
  constexpr Verdict check(const TensorDescs& x) const {
    return detail::check_dimensions(dims, x[0].rank());
  }
  constexpr detail::RegionDim along(int d, Index n, int) const {
    return dims.contains(d) ? detail::reverse_dim(n) : detail::same_dim(n);
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("dimensions", detail::as_numbers(dims));
  }
  constexpr bool operator==(const Reversing&) const = default;
};
using Reverse = Moving<Reversing>;

/// Element i is element i - by of the operand: modulo the extent (roll), or the outside element
/// where there is none (shift).
template <OperatorKind Verb> struct Stepping {
  Index by = 0;
  int dim = 0;
  Outside outside = Outside::zero;  ///< for a shift; the call gives the element itself

  static constexpr OperatorKind verb = Verb;
  constexpr Verdict check(const TensorDescs& x) const {
    if (const Verdict v = detail::check_outside(outside, x[0].sharding); !v.ok()) return v;
    return detail::check_dimensions({dim}, x[0].rank());
  }
  constexpr detail::RegionDim along(int d, Index n, int) const {
    if (d != dim) return detail::same_dim(n);
    return Verb == OperatorKind::roll ? detail::roll_dim(n, by) : detail::shift_dim(n, by);
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("by", by);
    visit("dimension", dim);
    visit("outside", outside);
  }
  constexpr bool operator==(const Stepping&) const = default;
};
using Rolling = Stepping<OperatorKind::roll>;
using Shifting = Stepping<OperatorKind::shift>;
using Roll = Moving<Rolling>;
using Shift = Moving<Shifting>;

/// The operands, or slices of them, one after another along `dim`.
struct Concatenating {
  int dim = 0;
  Slices slices = {};

  static constexpr OperatorKind verb = OperatorKind::concatenate;
  constexpr Verdict check(const TensorDescs& x) const {
    if (const Verdict v = detail::check_dimensions({dim}, x[0].rank()); !v.ok()) return v;
    if (const Verdict v = detail::check_parts(x, slices); !v.ok()) return v;
    const detail::ExtentsList parts = detail::parts_of(detail::extents_of(x), slices);
    for (int k = 1; k < x.size(); ++k)
      for (int d = 0; d < x[0].rank(); ++d)
        if (const Index n = parts[0][d], m = parts[k][d]; d != dim && m != n)
          return {.rule = Rule::extents_beside, .operand = k, .left = n, .right = m, .dim = d};
    return {};
  }
  void say(const Verdict& v, const TensorDescs& x, detail::FactNames& facts) const {
    if (v.rule != Rule::extents_beside) return;
    const detail::ExtentsList parts = detail::parts_of(detail::extents_of(x), slices);
    facts.first = to_string(parts[0]) + " and operand " + std::to_string(v.operand + 1) + " is " +
                  to_string(parts[v.operand]);
    facts.second = std::to_string(dim);
  }
  constexpr detail::Taking taking(const TensorDescs& x) const {
    const detail::ExtentsList parts = detail::parts_of(detail::extents_of(x), slices);
    detail::Taking taken{verb, {}, parts[0]};
    for (int k = 1; k < x.size(); ++k) taken.extents[dim] += parts[k][dim];
    Extents start(x[0].rank(), 0);
    for (int k = 0; k < x.size(); start[dim] += parts[k++][dim])
      taken.regions.push_back(detail::placed_region(x[k].extents, slices, k, start, taken.extents));
    return taken;
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("dimension", dim);
    detail::visit_slices(slices, visit);
  }
  constexpr bool operator==(const Concatenating&) const = default;
};
using Concatenate = Moving<Concatenating>;

/// The first operand with the elements of the second, a block, in place of its own from `start` on;
/// or slices of either.
struct Updating {
  Extents start = {};
  Slices slices = {};

  static constexpr OperatorKind verb = OperatorKind::update;
  constexpr Verdict check(const TensorDescs& x) const {
    if (const Verdict v = detail::check_parts(x, slices); !v.ok()) return v;
    if (const Verdict v = detail::check_number_each(start, x[0].rank()); !v.ok()) return v;
    const detail::ExtentsList parts = detail::parts_of(detail::extents_of(x), slices);
    for (int d = 0; d < x[0].rank(); ++d)
      if (const Index n = parts[1][d]; start[d] < 0 || start[d] > parts[0][d] - n)
        return {.rule = Rule::block_within, .left = start[d], .right = n, .dim = d};
    return {};
  }
  void say(const Verdict& v, const TensorDescs& x, detail::FactNames& facts) const {
    if (v.rule != Rule::block_within) return;
    facts.first = tessera::detail::counted(v.right, "element");
    facts.second =
        tessera::detail::in_dimension(v.dim, detail::parts_of(detail::extents_of(x), slices)[0]);
  }
  constexpr detail::Taking taking(const TensorDescs& x) const {
    const Extents all = detail::parts_of(detail::extents_of(x), slices)[0];
    return {verb,
            {detail::placed_region(x[0].extents, slices, 0, Extents(all.size(), 0), all),
             detail::placed_region(x[1].extents, slices, 1, start, all)},
            all};
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("start", start);
    detail::visit_slices(slices, visit);
  }
  constexpr bool operator==(const Updating&) const = default;
};
using Update = Moving<Updating>;

}  // namespace tessera::ops

TESSERA_OPERATION(Slice)
TESSERA_OPERATION(Pad)
TESSERA_OPERATION(Reverse)
TESSERA_OPERATION(Roll)
TESSERA_OPERATION(Shift)
TESSERA_OPERATION(Concatenate)
TESSERA_OPERATION(Update)
