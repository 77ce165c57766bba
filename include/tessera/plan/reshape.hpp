// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The planner of reshape: dimensions are split and merged, and elements keep their row-major order
/// (GShard, section 3.3.3 and figure 5c, there with padding; blocks here are ragged as they are).
///
/// Dimensions of source and result that hold the same elements make a group: 6 x 4 and 3 x 8 in
/// 5x6x4 -> 5x3x8. Where in each group only the leading dimensions are split, the group is one
/// dimension of a region, and one exchange does it. Axes that split inner dimensions are gathered
/// or moved to the leading one first (of the result: cut or moved from there at the end), whichever
/// is cheapest.
///
///     groups_of({5, 6, 4}, {5, 3, 8}).groups.size() == 2
///     Plan p = plan_reshape(x, result, mesh, process);
///
/// Laws: reshape there and back gives the tensor; nothing is communicated where every process keeps
/// its elements; a group of one and one dimension stays as it is.
#include <tessera/plan/shape.hpp>

namespace tessera {

/// Dimensions that hold the same elements, in order, without those of extent 1.
struct ReshapeGroup {
  Dimensions from;
  Dimensions to;
};
struct Reshaping {
  FixedVector<ReshapeGroup, max_dims> groups;
  Dimensions from_ones, to_ones;  ///< the dimensions of extent 1
  bool empty = false;             ///< there is no element, and no group
};

/// Returns how the dimensions of a reshape belong together. Precondition: the volumes are equal.
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

/// Returns the sharding that the result has where none is asked for: the leading dimension of a
/// group is split as that of the source is, and inner ones are whole.
constexpr Sharding reshaped_sharding(const TensorDesc& x, const Extents& to) {
  const Reshaping groups = groups_of(x.extents, to);
  Sharding out = Sharding::replicated(to.size());
  for (const ReshapeGroup& group : groups.groups) out[group.to[0]] = x.sharding[group.from[0]];
  for (int k = 0; k < min_of(groups.from_ones.size(), groups.to_ones.size()); ++k)
    out[groups.to_ones[k]] = x.sharding[groups.from_ones[k]];
  return out.with_partial(x.sharding.partial, x.sharding.reduction);
}

namespace detail {
/// What becomes of axes that split inner dimensions of a group.
enum class Inner : std::uint8_t { kept, dropped, leading };

/// Returns the sharding with no inner dimension split, by dropping or by moving axes; `side` gives
/// the group's dimensions. `changed`: whether it is another one.
template <class Side>
constexpr Sharding leading_only(Sharding s, const Reshaping& groups, Inner inner, const Side& side,
                                bool& changed) {
  for (const ReshapeGroup& group : groups.groups) {
    const Dimensions& dims = side(group);
    for (int k = 1; k < dims.size(); ++k) {
      for (int i = 0; inner == Inner::leading && i < s[dims[k]].size(); ++i)
        s[dims[0]].push_back(s[dims[k]][i]);
      changed = changed || !s[dims[k]].empty();
      s[dims[k]] = {};
    }
  }
  return s;
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
  const int ones = groups.from_ones.size() > groups.to_ones.size() ? groups.from_ones.size()
                                                                   : groups.to_ones.size();
  for (int k = 0; k < ones; ++k) {
    RegionDim d = same_dim(1);
    if (k < groups.from_ones.size()) d.source_axes = source[groups.from_ones[k]];
    if (k < groups.to_ones.size()) d.axes = result[groups.to_ones[k]];
    if (!d.source_axes.empty() || !d.axes.empty()) region.push_back(d);
  }
  return region;
}
}  // namespace detail

/// Plans a reshape of x into `result`, which has as many elements.
constexpr Plan plan_reshape(const TensorDesc& x, const TensorDesc& result, const MeshShape& mesh,
                            int process = 0, const PlanOptions& options = {}) {
  using detail::Inner;
  const Reshaping groups = groups_of(x.extents, result.extents);
  const Sharding source = without_unit_axes(x.sharding, mesh);
  const Sharding out = without_unit_axes(result.sharding, mesh);
  // What is unfinished is moved unfinished, and finished or scattered then.
  const Sharding wanted =
      detail::without_axes(out, source.partial).with_partial(source.partial, source.reduction);
  Term labels;  // other letters than the source's: they stand for other dimensions
  for (int d = 0; d < result.rank(); ++d) labels.push_back(static_cast<char>('a' + x.rank() + d));
  struct Way {
    Inner before = Inner::dropped, after = Inner::dropped;
    AxisSet gathered;
  };
  AxisSet moving;
  bool inner_source = false, inner_result = false;
  const auto make = [&](const Way& way, int at) {
    const Sharding to = detail::leading_only(
        wanted, groups, way.after, [](const ReshapeGroup& g) { return g.to; }, inner_result);
    Sharding from = detail::leading_only(
        source, groups, way.before, [](const ReshapeGroup& g) { return g.from; }, inner_source);
    const auto region = [&] {
      return detail::reshape_region(groups, x.extents, from, result.extents, to);
    };
    moving = moving_axes(region(), mesh);
    from = detail::without_axes(from, way.gathered);
    PlanBuilder build(OperatorKind::reshape, mesh, at, options);
    FixedVector<int, max_operands> slots;
    slots.push_back(build.reshard(build.operand(x, default_labels(x.rank())), from));
    FixedVector<Region, max_operands> regions;
    regions.push_back(region());
    TensorDesc made = result;
    made.sharding = to;
    const int slot = build.take(slots, regions, made, labels, false);
    return build.finish(build.reshard(slot, out), result.sharding);
  };
  detail::BestWay<Way> best(options);
  for (const Inner before : {Inner::dropped, Inner::leading}) {
    for (const Inner after : {Inner::dropped, Inner::leading}) {
      const Plan direct = make({before, after, {}}, 0);
      best.add(direct, {before, after, {}});
      // To gather what an exchange would bring must not move more. Then all that is left is local;
      // or all but what may be exchanged.
      const Index most = detail::bytes_moved(direct);
      const AxisSet all = moving, barred = moving - options.contract.axes(Collective::exchange);
      if (!all.empty()) best.add(make({before, after, all}, 0), {before, after, all}, most);
      if (!barred.empty() && barred != all)
        best.add(make({before, after, barred}, 0), {before, after, barred}, most);
      if (!inner_result) break;
    }
    if (!inner_source) break;
  }
  return process == 0 ? best.plan() : make(best.way(), process);
}

}  // namespace tessera
