// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The operator that splits and merges dimensions; elements keep their row-major order.
///
///     detail::groups_of({5, 6, 4}, {5, 3, 8}).groups.size() == 2
///     Plan p = detail::plan_reshape(x, result, mesh, process);
///
/// The planner of reshape: dimensions are split and merged, and elements keep their row-major order
/// (GShard, section 3.3.3 and figure 5c, with padding; here blocks stay ragged).
///
/// Dimensions of source and result that hold the same elements make a group: 6 x 4 and 3 x 8 in
/// 5x6x4 -> 5x3x8. One exchange leads from any blocks of the source to any blocks of the result,
/// and sends the least (plan/region/regroup.hpp). Where only the leading dimension of each group is
/// split, the group is one dimension of the exchange's region. Else other ways may take less time:
/// axes that split inner dimensions of the source are first gathered, moved to the leading
/// dimension, or moved to where the result has them; axes that split inner dimensions of the result
/// arrive at the end, by slicing, from the leading dimension, or from where the source has them.
/// In each way, axes that only the source uses may split the result until they are gathered at the
/// end. The cheapest way is chosen.
///
///     ops::Reshape{{8, 16, 4, 8}, out}
///
/// Laws: a reshape and its inverse give the original tensor; no communication where every process
/// keeps its elements; one exchange sends only what its receivers lack; a group with one dimension
/// on each side stays as it is.
#include <string>

#include <tessera/plan/check/shape_verdict.hpp>
#include <tessera/plan/operation.hpp>
#include <tessera/plan/region/shape.hpp>
#include <tessera/plan/search/moving_way.hpp>

namespace tessera::detail {

/// Dimensions that hold the same elements, in order, without those of extent 1.
struct ReshapeGroup {
  Dimensions from;
  Dimensions to;
};
struct Reshaping {
  FixedVector<ReshapeGroup, max_dims> groups;
  Dimensions from_ones, to_ones;  ///< the dimensions of extent 1
  bool empty = false;             ///< there are no elements
};

/// Returns the groups of a reshape's dimensions. Precondition: the volumes are equal.
constexpr Reshaping groups_of(const Extents& from, const Extents& to) {
  Reshaping result;
  result.empty = volume(from) == 0;
  Dimensions left, right;  // of other extents
  for (int d = 0; d < from.size(); ++d) (from[d] == 1 ? result.from_ones : left).push_back(d);
  for (int d = 0; d < to.size(); ++d) (to[d] == 1 ? result.to_ones : right).push_back(d);
  for (int i = 0, j = 0; !result.empty && i < left.size();) {
    ReshapeGroup& group = result.groups.push_back({});
    group.from.push_back(left[i]);
    group.to.push_back(right[j]);
    Index a = from[left[i++]], b = to[right[j++]];
    while (a != b)
      if (a < b) {
        group.from.push_back(left[i]);
        a *= from[left[i++]];
      } else {
        group.to.push_back(right[j]);
        b *= to[right[j++]];
      }
  }
  return result;
}

/// Returns all dimensions as one group: what contracts, which hold for all extents, know of a
/// reshape.
constexpr Reshaping in_one_group(const Extents& from, const Extents& to) {
  Reshaping result;
  result.empty = volume(from) == 0;
  ReshapeGroup& group = result.groups.push_back({});
  for (int d = 0; d < from.size(); ++d) group.from.push_back(d);
  for (int d = 0; d < to.size(); ++d) group.to.push_back(d);
  return result;
}

/// Returns the finished sharding of the other side, of `rank` dimensions: the result or (`back`)
/// the source. The leading dimension of each group is split like the one in `s`.
constexpr Sharding carried(const Reshaping& groups, const Sharding& s, int rank, bool back) {
  Sharding other = Sharding::replicated(rank);
  const auto carry = [&](const Dimensions& from, const Dimensions& to, int k) {
    (back ? other[from[k]] : other[to[k]]) = back ? s[to[k]] : s[from[k]];
  };
  for (const ReshapeGroup& group : groups.groups) carry(group.from, group.to, 0);
  for (int k = 0; k < min_of(groups.from_ones.size(), groups.to_ones.size()); ++k)
    carry(groups.from_ones, groups.to_ones, k);
  return other;
}

/// Returns the default sharding of the result: the leading dimension of a group is split like the
/// source's, and inner ones are whole.
constexpr Sharding reshaped_sharding(const TensorDesc& x, const Extents& to) {
  const Reshaping groups = groups_of(x.extents, to);
  const Sharding out = detail::carried(groups, x.sharding, to.size(), false);
  return out.with_partial(x.sharding.partial, x.sharding.reduction);
}

/// What happens to axes that split inner dimensions of a group: they are dropped, moved to the
/// group's leading dimension, or moved to where the other side has them. In the last case the
/// result, until the end, also keeps the source's axes that it does not use.
enum class Inner : std::uint8_t { dropped, leading, across };

/// One side of a reshape.
struct ReshapeSide {
  const Reshaping& groups;
  const Extents& extents;
  bool result;

  constexpr const Dimensions& dims(const ReshapeGroup& group) const {
    return result ? group.to : group.from;
  }
  /// Returns the axes that split inner dimensions.
  constexpr AxisSet inner(const Sharding& s) const {
    AxisSet axes;
    for (const ReshapeGroup& group : groups.groups)
      for (int k = 1; k < dims(group).size(); ++k) axes = axes | s[dims(group)[k]].set();
    return axes;
  }
  /// Returns the sharding with these axes dropped, or moved to the leading dimensions.
  constexpr Sharding without_inner(Sharding s, bool leading) const {
    for (const ReshapeGroup& group : groups.groups)
      for (int k = 1; k < dims(group).size(); ++k) {
        AxisList& axes = s[dims(group)[k]];
        for (int i = 0; leading && i < axes.size(); ++i) s[dims(group)[0]].push_back(axes[i]);
        axes = {};
      }
    return s;
  }
  /// Returns `s` (no inner dimension split) also split over `spare`: where `other`, the other
  /// side's sharding, has these axes, or along another leading dimension.
  constexpr Sharding across(const Sharding& s, const Sharding& other, AxisSet spare,
                            const MeshShape& mesh) const {
    Dimensions leading;
    for (const ReshapeGroup& group : groups.groups) leading.push_back(dims(group)[0]);
    return spread(extents, s, carried(groups, other, s.rank(), !result), spare, leading, mesh);
  }
};
/// Returns the dimensions of extent 1 that are split.
constexpr Region split_ones(const Reshaping& groups, const Sharding& source,
                            const Sharding& result) {
  Region region;
  const Index ones = max_of(groups.from_ones.size(), groups.to_ones.size());
  for (int k = 0; k < ones; ++k) {
    RegionDim d = same_dim(1);
    if (k < groups.from_ones.size()) d.source_axes = source[groups.from_ones[k]];
    if (k < groups.to_ones.size()) d.axes = result[groups.to_ones[k]];
    if (!d.source_axes.empty() || !d.axes.empty()) region.push_back(d);
  }
  return region;
}
/// Returns the region of a reshape between tensors of which only leading dimensions are split.
constexpr Region reshape_region(const Reshaping& groups, const Extents& from,
                                const Sharding& source, const Extents& to, const Sharding& result) {
  Region region;
  if (groups.empty) {
    region.push_back(same_dim(0));
    return region;
  }
  for (const ReshapeGroup& group : groups.groups) {
    RegionDim& d = region.push_back({});
    for (int k : group.from) d.source_unit *= from[k];
    d.unit = d.source_unit / to[group.to[0]];
    d.source_unit /= from[group.from[0]];
    d.source_extent = from[group.from[0]];
    d.source_axes = source[group.from[0]];
    d.extent = to[group.to[0]];
    d.axes = result[group.to[0]];
  }
  for (const RegionDim& d : split_ones(groups, source, result)) region.push_back(d);
  return region;
}

/// Returns the region of a reshape between tensors of which any dimensions are split; none where it
/// has too many dimensions, or more than 4096 runs that would be cut one by one.
constexpr Region regrouped_region(const Reshaping& groups, const Extents& from,
                                  const Sharding& source, const Extents& to, const Sharding& result,
                                  const MeshShape& mesh) {
  constexpr Index most_runs = 4096;
  Region region;
  for (const ReshapeGroup& group : groups.groups) {
    const int dims = static_cast<int>(max_of(group.from.size(), group.to.size()));
    if (region.size() + dims > max_dims) return {};
    for (int k = 0; k < dims; ++k) {
      RegionDim& d = region.push_back(same_dim(1));
      d.inner = k > 0;
      if (k < group.from.size()) {
        d.source_extent = from[group.from[k]];
        d.source_axes = source[group.from[k]];
      }
      if (k < group.to.size()) {
        d.extent = to[group.to[k]];
        d.axes = result[group.to[k]];
      }
    }
    if (runs_of_group(region, region.size() - dims, region.size(), mesh) > most_runs) return {};
  }
  for (const RegionDim& d : split_ones(groups, source, result)) {
    if (region.size() == max_dims) return {};
    region.push_back(d);
  }
  return region;
}

/// Plans a reshape of x into `result`, which has as many elements. A contract that no way between
/// the groups keeps may be kept by one that treats all dimensions as one group, no two blocks of
/// which hold the same elements: so it is in the stand-in call.
constexpr Plan plan_reshape(const TensorDesc& x, const TensorDesc& result, const MeshShape& mesh,
                            int process = 0, const PlanOptions& options = {}) {
  using detail::Inner;
  const Reshaping apart = groups_of(x.extents, result.extents);
  const Sharding source = without_unit_axes(x.sharding, mesh);
  const Sharding out = without_unit_axes(result.sharding, mesh);
  // An unfinished x is moved unfinished, and then finished or scattered.
  const Sharding wanted =
      detail::without_axes(out, source.partial).with_partial(source.partial, source.reduction);
  Term labels;  // other letters than the source's: they stand for other dimensions
  for (int d = 0; d < result.rank(); ++d) labels.push_back(static_cast<char>('a' + x.rank() + d));
  struct ReshapeWay {
    Inner before = Inner::dropped, after = Inner::dropped;
    AxisSet gathered;
    bool joined = false;    ///< all dimensions as one group, whose elements all move
    Region regrouped = {};  ///< where not empty: by one exchange from the source as it is,
    Sharding to = {};       ///< to this sharding
  };
  AxisSet moving;
  const auto take = [&](const Sharding& from, const Region& region, const Sharding& to, int at) {
    PlanBuilder build(OperatorKind::reshape, mesh, at, options);
    FixedVector<int, max_operands> slots;
    slots.push_back(build.reshard(build.operand(x, default_labels(x.rank())), from));
    TensorDesc made = result;
    made.sharding = to;
    const int slot = build.take(slots, {region}, made, labels, false);
    return build.finish(build.reshard(slot, out), result.sharding);
  };
  const auto make = [&](const ReshapeWay& way, int at) {
    if (!way.regrouped.empty()) return take(source, way.regrouped, way.to, at);
    const Reshaping groups = way.joined ? in_one_group(x.extents, result.extents) : apart;
    const detail::ReshapeSide before{groups, x.extents, false}, after{groups, result.extents, true};
    const AxisSet inner_source = before.inner(source);
    const Sharding outer = after.without_inner(wanted, way.after == Inner::leading);
    Sharding from = before.without_inner(source, way.before == Inner::leading);
    if (way.before == Inner::across) from = before.across(from, outer, inner_source, mesh);
    const Sharding to = way.after == Inner::across
                            ? after.across(outer, from, from.used() - outer.used(), mesh)
                            : outer;
    const auto region = [&] {
      return detail::reshape_region(groups, x.extents, from, result.extents, to);
    };
    moving = way.joined ? source_axes(region()) : moving_axes(region(), mesh);
    from = detail::without_axes(from, way.gathered);
    return take(from, region(), to, at);
  };
  detail::BestWay<ReshapeWay> best(options);
  const auto consider = [&](const Reshaping& groups, bool joined) {
    const AxisSet inner_source = detail::ReshapeSide{groups, x.extents, false}.inner(source);
    const AxisSet inner_result = detail::ReshapeSide{groups, result.extents, true}.inner(wanted);
    // Where contracts are checked, no dimension is known to correspond to another.
    const bool across = !options.contract.bounded();
    for (const Inner from : {Inner::dropped, Inner::leading, Inner::across}) {
      if (from != Inner::dropped && inner_source.empty()) break;
      if (from == Inner::across && !across) break;
      for (const Inner to : {Inner::dropped, Inner::leading, Inner::across}) {
        if (best.done()) return;
        if (to == Inner::leading && inner_result.empty()) continue;
        if (to == Inner::across &&
            (!across || (source.used() - (wanted.used() - inner_result)).empty()))
          continue;
        const ReshapeWay way{from, to, {}, joined};
        if (from == Inner::across || to == Inner::across)
          best.add(make(way, 0), way);
        else
          detail::add_gathered_too(best, way, make, moving, options);
      }
    }
  };
  const auto local = [&] { return best.keeps() && best.plan().communications() == 0; };
  // By one exchange: a result that uses fewer axes may also be split over the others, and gathered.
  const AxisSet inner = detail::ReshapeSide{apart, x.extents, false}.inner(source) |
                        detail::ReshapeSide{apart, result.extents, true}.inner(wanted);
  if (!inner.empty() && !options.needs_alone && !apart.empty) {
    Dimensions all;
    for (int d = 0; d < result.rank(); ++d) all.push_back(d);
    const Sharding split =
        spread(result.extents, wanted, carried(apart, source, result.rank(), false),
               source.used() - wanted.used(), all, mesh);
    const auto regroup = [&](const Sharding& to) {
      const Region region = regrouped_region(apart, x.extents, source, result.extents, to, mesh);
      const ReshapeWay way{Inner::dropped, Inner::dropped, {}, false, region, to};
      if (!region.empty()) best.add(make(way, 0), way);
    };
    regroup(wanted);
    if (!(split == wanted) && !local()) regroup(split);
  }
  if (!local()) consider(apart, false);
  if (!best.keeps() && !options.needs_alone && x.rank() > 0 && result.rank() > 0)
    consider(in_one_group(x.extents, result.extents), true);
  return process == 0 ? best.plan() : make(best.way(), process);
}
}  // namespace tessera::detail

namespace tessera::ops {

struct Reshape {
  Extents extents = {};
  Sharding out = {};

  constexpr OperatorKind kind() const { return OperatorKind::reshape; }
  constexpr Verdict check(const TensorDescs& x) const {
    if (const Verdict v = check_extents(x[0].extents); !v.ok()) return v;
    return detail::check_shape(detail::shardings_of(x), extents.size(), out);
  }
  std::string explain(const Verdict& v, const TensorDescs& x, const AxisNames&) const {
    return tessera::explain(
        v, {.operands = 1, .first = to_string(x[0].extents), .second = to_string(extents)});
  }
  /// Returns the default sharding of the result: the leading dimension of each group that is split
  /// or merged keeps its axes, and inner ones are whole.
  constexpr Sharding deduced(const TensorDescs& x) const {
    return check_extents(x[0].extents).ok() ? detail::reshaped_sharding(x[0], extents)
                                            : Sharding::replicated(extents.size());
  }
  constexpr TensorDescs results(const TensorDescs& x) const { return {{x[0].type, extents, out}}; }
  constexpr Plan plan(const TensorDescs& x, const Planning& on) const {
    return detail::plan_reshape(x[0], results(x)[0], on.mesh, on.process, on.options);
  }
  /// The call that stands for all: no two dimensions, and no two blocks, hold the same elements.
  constexpr tessera::detail::StandIn<Reshape> stand_in(const TensorDescs& x) const {
    const int from_rank = x[0].sharding.rank(), to_rank = out.rank();
    const bool scalar = from_rank == 0 || to_rank == 0;
    Extents from(from_rank, scalar ? 1 : 11), to(to_rank, scalar ? 1 : 13);
    if (!scalar) {
      from.back() = to.back() = 17;
      for (int d = 1; d < to_rank; ++d) from.back() *= 13;
      for (int d = 1; d < from_rank; ++d) to.back() *= 11;
    }
    return {{to, out}, {{x[0].type, from, x[0].sharding}}};
  }
  constexpr Contract needs(const TensorDescs& x, const MeshShape& mesh, PlanOptions options) const {
    options.needs_alone = true;
    const auto call = stand_in(x);
    return call.operation.plan(call.operands, {mesh, 0, options}).needs;
  }
  template <class V> constexpr void members(const V& visit) const {
    visit("extents", extents);
    visit("to", out);
  }
  constexpr bool operator==(const Reshape&) const = default;

 private:
  constexpr Verdict check_extents(const Extents& from) const {
    for (int d = 0; d < extents.size(); ++d)
      if (extents[d] < 0) return {.rule = Rule::extents_not_negative, .left = extents[d], .dim = d};
    if (const Index n = volume(from), m = volume(extents); n != m)
      return {.rule = Rule::volume_stays, .left = n, .right = m};
    return {};
  }
};

}  // namespace tessera::ops

TESSERA_OPERATION(Reshape)
