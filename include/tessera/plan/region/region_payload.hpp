// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How many elements each process sends when a region is taken: counted dimension by dimension,
/// since an axis splits one dimension of the source and one of the result, and without making the
/// pieces of plan/region/region_transfer.hpp.
///
///     detail::RegionPayload all(region, false, mesh);
///     all.elements(at)        // what the process at `at` sends to others
///
/// Laws: elements(at) is the volume of the pieces that the process sends to others; it is a product
/// of numbers for each dimension (or group), less the product of what the process keeps.
#include <vector>

#include <tessera/plan/region/region_transfer.hpp>

namespace tessera::detail {

/// A number for each place along some axes.
struct NumberAlong {
  AxisSet axes;
  std::vector<Index> numbers;
  constexpr Index at(const MeshShape& mesh, const Coordinates& at) const {
    return numbers[static_cast<std::size_t>(mesh.place_in_group(axes, at))];
  }
};
template <class Count>
constexpr NumberAlong number_along(AxisSet axes, const MeshShape& mesh, const Count& count) {
  NumberAlong along{axes, {}};
  along.numbers.reserve(static_cast<std::size_t>(mesh.group_size(axes)));
  Coordinates at(mesh.rank(), 0);
  for_each_member(axes, 0, mesh, at, [&] { along.numbers.push_back(count(at)); });
  return along;
}

class RegionPayload {
 public:
  /// `adjoint`: each process sends what it needs to the owners. Precondition: counts(region,
  /// adjoint).
  constexpr RegionPayload() = default;
  constexpr RegionPayload(const Region& region, bool adjoint, const MeshShape& mesh)
      : mesh_(mesh), free_(source_axes(region)) {
    if (!adjoint) copies_ = mesh.group_size(free_ - needing_axes(region));
    for (int first = 0, end = 0; first < region.size(); first = end) {
      for (end = first + 1; end < region.size() && region[end].inner;) ++end;
      if (end > first + 1)
        add_group(region, first, end);
      else
        add_dim(region[first], adjoint);
    }
  }
  /// Returns whether the elements of such a region can be counted so.
  static constexpr bool counts(const Region& region, bool adjoint) {
    for (const RegionDim& d : region)
      if ((d.inner && adjoint) ||
          (d.part != RegionDim::Part::all && !(d.source_axes.set() == d.used())))
        return false;
    return true;
  }
  constexpr Index elements(const Coordinates& at) const {
    Index sent = copies_, kept = 1;
    for (const NumberAlong& one : sent_) sent = saturating_mul(sent, one.at(mesh_, at));
    for (const NumberAlong& one : kept_) kept = saturating_mul(kept, one.at(mesh_, at));
    return sent - kept;
  }
  /// The numbers of which elements() is made.
  constexpr const FixedVector<NumberAlong, max_dims>& sent() const { return sent_; }
  constexpr const FixedVector<NumberAlong, max_dims>& kept() const { return kept_; }

 private:
  constexpr void add_dim(const RegionDim& d, bool adjoint) {
    const AxisSet all = d.source_axes.set() | d.used();
    const bool now = d.turn == RegionDim::Turn::now;  // else it is sent as it is held, and kept
    const auto held = [&](const Coordinates& at) {
      return (adjoint ? needed(d, mesh_, at) : owned(d, mesh_, at)).size();
    };
    kept_.push_back(number_along(all, mesh_, [&](const Coordinates& at) {
      if (!now) return held(at);
      const Interval mine = owned(d, mesh_, at);
      Index sum = 0;
      for_each_strand(d, {0, d.source_size()}, needed(d, mesh_, at),
                      [&](const Strand& strand) { sum += strand.of_elements(mine).count; });
      return sum;
    }));
    // Blocks of the result part its coordinates.
    const bool once = adjoint || (d.rule == RegionDim::Rule::block &&
                                  d.part == RegionDim::Part::all && (d.used() - free_).empty());
    const AxisSet others = adjoint || !now ? AxisSet{} : free_ - d.source_axes.set();
    sent_.push_back(number_along(all - (d.used() & others), mesh_, [&](const Coordinates& self) {
      if (!now) return held(self);
      Coordinates at = self;
      Index sum = 0;
      for_each_strand(d, adjoint ? Interval{0, d.source_size()} : owned(d, mesh_, self),
                      adjoint ? needed(d, mesh_, self) : needed_by_all(d),
                      [&](const Strand& strand) {
                        if (once)
                          sum += strand.count;
                        else
                          for_each_needing(d, strand, free_, mesh_, at,
                                           [&](const Strand& part) { sum += part.count; });
                      });
      return sum;
    }));
  }
  constexpr void add_group(const Region& region, int first, int end) {
    AxisSet sources, needers;
    for (int d = first; d < end; ++d) {
      sources = sources | region[d].source_axes.set();
      needers = needers | region[d].used();
    }
    const Index length = group_length(region, first, end);
    const auto shared = [&](const Coordinates& owner, const Coordinates& needer) {
      Index steps[2] = {1, 1};
      return shared_elements(row_major_block(region, first, end, true, mesh_, owner, steps[0]),
                             row_major_block(region, first, end, false, mesh_, needer, steps[1]),
                             length);
    };
    kept_.push_back(number_along(sources | needers, mesh_,
                                 [&](const Coordinates& at) { return shared(at, at); }));
    sent_.push_back(number_along(sources | (needers - free_), mesh_, [&](const Coordinates& self) {
      if ((needers - free_).empty()) {  // each element is needed, once
        Index size = 1;
        for (int d = first; d < end; ++d) size *= owned(region[d], mesh_, self).size();
        return size;
      }
      Coordinates at = self;
      Index sum = 0;
      for_each_member(needers & free_, 0, mesh_, at, [&] { sum += shared(self, at); });
      return sum;
    }));
  }

  MeshShape mesh_;
  AxisSet free_;
  Index copies_ = 1;
  FixedVector<NumberAlong, max_dims> sent_, kept_;  ///< for each dimension or group
};
}  // namespace tessera::detail
