// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How the bounds of products and moves are found.
///
///     payload_bound(plan)
///
/// Laws: those of program/payload_bound.hpp.
#include <algorithm>
#include <array>
#include <cmath>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/op/shape/reshape.hpp>
#include <tessera/plan/process_classes.hpp>
#include <tessera/program/payload_bound.hpp>

namespace tessera {

namespace detail {
/// Returns the least number of elements that F multiplications of an m x k by a k x n matrix touch.
inline double least_touched(double f, double m, double n, double k) {
  if (f <= 0) return 0;
  std::array<double, 3> least{f / n, f / m, f / k};
  std::sort(least.begin(), least.end());
  if (least[2] <= std::cbrt(f * f)) return 3 * std::cbrt(f * f);
  if (const double two = f / std::sqrt(least[2]); least[1] <= two) return least[2] + 2 * two;
  return least[2] + least[1] + std::max(least[0], f * f / least[2] / least[1]);
}

/// Returns the least of what a process receives to have c elements of the result, when its operands
/// are enough for `left` and for `right` of them and each further one takes more of the operands.
inline double least_received(double left, double right, double c, double each_left,
                             double each_right) {
  double least = c;
  for (const double made : {std::min(left, c), std::min(right, c), c})
    least = std::min(least, c - made + std::max(0.0, made - left) * each_left +
                                std::max(0.0, made - right) * each_right);
  return least;
}
/// Returns whether a region's elements are each read once, and its coordinates are those of blocks.
inline bool reads_once(const Region& region) {
  bool once = !regroups(region);
  for (const RegionDim& d : region)
    once = once && d.rule == RegionDim::Rule::block && d.unit == 1 && d.source_unit == 1 &&
           (d.boundary == Boundary::none || d.boundary == Boundary::constant ||
            (d.boundary == Boundary::periodic && d.extent <= d.source_extent));
  return once;
}
/// Returns the regions from the operands of a slice, pad, roll, shift, reversal or concatenation to
/// its result, where any dimensions may be split; none where an element is read twice.
inline Regions regions_of_step(const Plan& plan) {
  Regions regions;
  for (const Step& step : plan.steps) {
    if (step.region < 0 || step.adjoint || step.in.size() != plan.operands || !plan.also.empty())
      continue;
    for (int k = 0; k < plan.operands; ++k) {
      const TensorDesc& from = plan.slots[k].desc;
      Region region = plan.regions[step.region + k];
      if (!reads_once(region) || region.size() != from.rank() ||
          region.size() != plan.result_sharding.rank())
        return {};
      for (int d = 0; d < region.size(); ++d) {
        region[d].source_axes = without_unit_axes(from.sharding, plan.mesh)[d];
        region[d].axes = without_unit_axes(plan.result_sharding, plan.mesh)[d];
        region[d].turn = RegionDim::Turn::now;
      }
      regions.push_back(region);
    }
    return regions;
  }
  return regions;
}
/// Returns the region from the operand of a reshard, a transpose or a reshape to its result, where
/// any dimensions of both may be split; none where it is too large.
inline Region region_of_move(const Plan& plan) {
  const TensorDesc &from = plan.slots[0].desc, to = plan.result_desc();
  const Sharding source = without_unit_axes(from.sharding, plan.mesh),
                 result = without_unit_axes(to.sharding, plan.mesh);
  if (plan.kind == OperatorKind::reshape)
    return regrouped_region(groups_of(from.extents, to.extents), from.extents, source, to.extents,
                            result, plan.mesh);
  Region region;
  const Term& labels = plan.slots[plan.result].labels;
  for (int d = 0; d < labels.size(); ++d) {
    RegionDim& one = region.push_back(same_dim(to.extents[d]));
    one.source_axes = source[plan.slots[0].labels.find(labels[d])];
    one.axes = result[d];
  }
  return region;
}

/// The elements that a process has of the operand, needs of the result, and has already of these.
struct MovedShare {
  Index has = 1, needs = 1, kept = 1;
  MovedShare(const Region& region, const MeshShape& mesh, const Coordinates& at) {
    if (regroups(region)) {
      add_groups(region, mesh, at);
      return;
    }
    for (const RegionDim& d : region) {
      const Interval own = source_block(d, mesh, at), made = block(d.extent, d.axes, mesh, at);
      has = saturating_mul(has, read_by(d, own, {0, d.extent}));
      needs = saturating_mul(needs, read_by(d, {0, d.source_extent}, made));
      kept = saturating_mul(kept, read_by(d, own, made));
    }
  }

 private:
  /// Returns how many of these elements of the source these results read.
  static Index read_by(const RegionDim& d, Interval elements, Interval results) {
    Index count = 0;
    for_each_strand(d, elements, results, [&](const Strand& strand) { count += strand.count; });
    return count;
  }
  void add_groups(const Region& region, const MeshShape& mesh, const Coordinates& at) {
    for (int end = region.size(); end > 0;) {
      const int first = group_before(region, end);
      const RowMajorBlock source = row_major_block(region, first, end, true, mesh, at, has);
      const RowMajorBlock result = row_major_block(region, first, end, false, mesh, at, needs);
      if (source.empty()) has = 0;
      if (result.empty()) needs = 0;
      kept =
          saturating_mul(kept, shared_elements(source, result, group_length(region, first, end)));
      end = first;
    }
  }
};

/// Returns whether all blocks are of one size.
inline bool even_blocks(const TensorDesc& desc, const MeshShape& mesh) {
  for (int d = 0; d < desc.rank(); ++d)
    if (desc.extents[d] % mesh.parts(desc.sharding[d]) != 0) return false;
  return true;
}

/// Returns the least bytes that the process with most sends in a move of finished elements. (What a
/// process sends to an all-gather counts as others' payload, which may be less where blocks
/// differ.)
inline Index least_of_move(const Plan& plan) {
  const AxisSet all = plan.mesh.axes() - plan.mesh.unit_axes();
  bool sent = plan.count(Collective::all_gather) == 0 || even_blocks(plan.result_desc(), plan.mesh);
  for (int k = 0; k < plan.operands; ++k) {
    const Slot& from = plan.slots[k];
    if (!((from.desc.sharding.partial | plan.result_sharding.partial) & all).empty() ||
        !from.place.sharded() || from.region >= 0 || volume(from.desc.extents) == 0)
      return 0;
    sent = sent && (plan.count(Collective::all_gather) == 0 || even_blocks(from.desc, plan.mesh));
  }
  const bool reshapes = plan.kind == OperatorKind::reshard ||
                        plan.kind == OperatorKind::transpose || plan.kind == OperatorKind::reshape;
  const Regions regions = reshapes ? Regions{region_of_move(plan)} : regions_of_step(plan);
  if (regions.empty() || regions[0].empty()) return 0;
  const bool for_one = (all - plan.result_sharding.used()).empty();
  ProcessClasses classes(plan.mesh);
  for (const Region& region : regions) classes.add(region);
  Index missing = 0, least = 0;
  classes.visit([&](int, const Coordinates& at, Index alike) {
    Index alone = 0;
    for (int k = 0; k < regions.size(); ++k) {
      const MovedShare share(regions[k], plan.mesh, at);
      missing = saturating_add(missing, saturating_mul(alike, share.needs - share.kept));
      if (sent && (all - plan.slots[k].desc.sharding.used()).empty())
        alone = saturating_add(alone, share.has - (for_one ? share.kept : 0));
    }
    least = max_of(least, alone);
  });
  least = max_of(least, ceil_div(missing, plan.mesh.processes()));
  return saturating_mul(least, static_cast<Index>(size_of(plan.slots[0].desc.type)));
}
}  // namespace detail

TESSERA_FUNCTION Index payload_bound(const Plan& plan) {
  for (const OperatorKind moving :
       {OperatorKind::reshard, OperatorKind::transpose, OperatorKind::reshape, OperatorKind::slice,
        OperatorKind::pad, OperatorKind::roll, OperatorKind::shift, OperatorKind::reverse,
        OperatorKind::concatenate})
    if (plan.kind == moving) return detail::least_of_move(plan);
  const Step* product = nullptr;
  for (const Step& step : plan.steps)
    if (step.kind == StepKind::contract) product = &step;
  if (plan.kind != OperatorKind::einsum || product == nullptr) return 0;
  const Slot &a = plan.slots[product->in[0]], &b = plan.slots[product->in[1]],
             &c = plan.slots[product->out];
  double batch = 1, m = 1, n = 1, k = 1;
  for (int d = 0; d < a.labels.size(); ++d) {
    const bool right = b.labels.contains(a.labels[d]), made = c.labels.contains(a.labels[d]);
    (right && made ? batch : right ? k : m) *= static_cast<double>(a.desc.extents[d]);
  }
  for (int d = 0; d < b.labels.size(); ++d)
    if (!a.labels.contains(b.labels[d])) n *= static_cast<double>(b.desc.extents[d]);

  if (!(batch * m * n * k > 0)) return 0;

  TensorDesc result = c.desc;
  for (int d = 0; d < c.labels.size(); ++d)
    result.sharding[d] = plan.result_sharding[plan.slots[plan.result].labels.find(c.labels[d])];
  const TensorDesc* const given[3] = {&plan.slots[0].desc, &plan.slots[1].desc, &result};
  bool even = true;
  detail::ProcessClasses classes(plan.mesh);
  for (const TensorDesc* desc : given) {
    classes.add(*desc);
    even = even && detail::even_blocks(*desc, plan.mesh);
  }
  const auto owned = [&](int t, const Coordinates& at) {
    return static_cast<double>(
        detail::block_volume(given[t]->extents, given[t]->sharding, plan.mesh, at));
  };
  double words = 0;
  if (plan.result_sharding.partial.empty())
    classes.visit([&](int, const Coordinates& at, Index alike) {
      words += static_cast<double>(alike) / plan.mesh.processes() *
               detail::least_received(owned(0, at) * n / k, owned(1, at) * m / k, owned(2, at),
                                      k / n, k / m);
    });
  const auto unit = static_cast<double>(size_of(given[0]->type));  // parts may be wider
  if (even) {
    const Coordinates origin(plan.mesh.rank(), 0);
    const double own = owned(0, origin) + owned(1, origin) + owned(2, origin);
    const double one = m * n * k, f = batch * one / plan.mesh.processes();
    const double whole = std::floor(f / one);
    const double touched =
        whole * (m * k + k * n + m * n) + detail::least_touched(f - whole * one, m, n, k);
    const double memory = own + static_cast<double>(detail::workspace_of_origin(plan)) / unit;
    words = std::max({words, touched - own, f / std::sqrt(8 * memory) - memory});
  }
  return words * unit >= static_cast<double>(max_int64) ? max_int64
                                                        : static_cast<Index>(words * unit);
}

}  // namespace tessera
