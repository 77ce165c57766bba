// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Processes that have the same numbers in a plan. The blocks of one dimension are alike, except
/// for a short last one and empty ones after it, so a few processes stand for all.
///
///     detail::ProcessClasses classes(plan.mesh);
///     classes.add(plan);
///     Index all = 0;
///     classes.visit([&](int, const Coordinates&, Index alike) { all += alike; });
///     all == plan.mesh.processes();
///
/// Laws: every process is counted once; of processes that are alike the first is visited, in
/// ascending order. Along each dimension of a region, processes are alike that send and receive as
/// much, from the same places of their blocks. Where numbers depend on more than one dimension at a
/// time (an exchange of one sharding for another, a reshape of inner dimensions, a node's border),
/// every process is visited.
#include <tessera/plan/move/merge_split.hpp>
#include <tessera/plan/move/relocation.hpp>
#include <tessera/plan/numbers.hpp>

namespace tessera::detail {

class ProcessClasses {
 public:
  constexpr explicit ProcessClasses(const MeshShape& mesh) : mesh_(mesh) {
    for (int axis = 0; axis < mesh.rank(); ++axis) starts_.push_back({0});
  }

  /// Takes the communication of a plan's steps into account; `uncounted`: of those alone whose
  /// payload no RegionPayload counts.
  constexpr void add_calls(const Plan& plan, bool uncounted = false);
  /// Takes all numbers of a plan into account.
  constexpr void add(const Plan& plan) {
    for (const Slot& slot : plan.slots) {
      if (!slot.place.sharded()) return add_all();
      if (slot.region >= 0)
        add(plan.regions[slot.region]);
      else
        add(slot.desc);
    }
    for (const Step& step : plan.steps) {
      if (step.region >= 0) add_regions(plan, step);
      if (step.kind == StepKind::convolve) add_products(plan, step);
    }
    add_calls(plan);
  }
  /// Takes into account what processes have, need, send and receive of a region.
  constexpr void add(const Region& region) {
    AxisSet all;
    bool apart = !regroups(region);
    for (const RegionDim& d : region) {
      const AxisSet axes = d.source_axes.set() | d.used();
      apart = apart && (all & axes).empty();
      all = all | axes;
    }
    if (!apart) return add_all(all);
    for (const RegionDim& d : region) add(d);
  }
  /// Takes the sizes of a tensor's blocks into account.
  constexpr void add(const TensorDesc& desc) {
    for (int d = 0; d < desc.rank(); ++d) {
      FixedVector<Index, 1 << max_axes> sizes;  // of the pieces that the next axis divides
      sizes.push_back(desc.extents[d]);
      for (int i = 0; i < desc.sharding[d].size(); ++i) {
        const int axis = desc.sharding[d][i];
        FixedVector<Index, 1 << max_axes> pieces;
        for (const Index n : sizes) {
          const Index part = max_of(1, ceil_div(n, mesh_[axis]));
          add_start(axis, n / part);
          if (n % part != 0) add_start(axis, n / part + 1);
          for (const Index size : {n < part ? Index{0} : part, n % part})
            if (size > 0 && !pieces.contains(size) && pieces.size() < pieces.capacity)
              pieces.push_back(size);
        }
        sizes = pieces;
      }
    }
  }
  /// Takes numbers along some axes into account.
  constexpr void add(const NumberAlong& along) {
    Coordinates at(mesh_.rank(), 0);
    for (int axis = 0; axis < mesh_.rank(); ++axis) {
      if (!along.axes.contains(axis) || all_.contains(axis)) continue;
      std::vector<Index> differs(static_cast<std::size_t>(mesh_[axis]), 0);
      for_each_member(along.axes - AxisSet{axis}, 0, mesh_, at, [&] {
        Coordinates one = at;
        Index last = 0;
        for (int place = 0; place < mesh_[axis]; ++place) {
          one[axis] = place;
          const Index number = along.at(mesh_, one);
          if (place > 0) differs[static_cast<std::size_t>(place)] += number != last;
          last = number;
        }
      });
      for (int place = 1; place < mesh_[axis]; ++place)
        if (differs[static_cast<std::size_t>(place)] > 0) add_start(axis, place);
    }
  }
  /// Takes into account what tells processes of a part apart, whose axes are `axes` of the mesh.
  constexpr void add(const ProcessClasses& part, const AxisList& axes) {
    for (int a = 0; a < axes.size(); ++a) {
      if (part.all_.contains(a)) add_all(AxisSet{axes[a]});
      for (int i = 0; i < part.starts_[a].size(); ++i) add_start(axes[a], part.starts_[a][i]);
    }
  }
  /// Takes into account which processes are members of a part.
  constexpr void add_members(const std::vector<bool>& members) {
    for (int axis = 0; axis < mesh_.rank(); ++axis) {
      Index first = mesh_[axis], last = -1;
      for (int p = 0; p < mesh_.processes(); ++p)
        if (members[static_cast<std::size_t>(p)]) {
          first = min_of(first, mesh_.coordinates(p)[axis]);
          last = max_of(last, mesh_.coordinates(p)[axis]);
        }
      add_start(axis, first);
      add_start(axis, last + 1);
    }
  }
  constexpr void add_all() { add_all(mesh_.axes()); }

  template <class Visit> constexpr void visit(const Visit& visit_one) const {
    Coordinates at(mesh_.rank(), 0);
    visit_from(0, 0, 1, at, visit_one);
  }

 private:
  static constexpr int most_starts = 32;

  /// What a process has, needs, sends and receives along a dimension.
  constexpr std::vector<Index> share_of(const RegionDim& d, const Coordinates& at) const {
    const Region alone{d};
    const Interval mine = owned(d, mesh_, at), wanted = needed(d, mesh_, at);
    std::vector<Index> share{mine.size(), wanted.size()};
    const auto add = [&](const Coordinates& peer, const RegionPiece& piece) {
      const Strand& strand = piece[0];
      for (const Index number : {Index{peer == at}, strand.count, strand.source - mine.lo,
                                 strand.source_step, strand.at - wanted.lo, strand.step})
        share.push_back(number);
    };
    share.reserve(32);
    for_each_piece_sent(alone, mesh_, at, add);
    share.push_back(-1);
    for_each_piece_received(alone, mesh_, at, add);
    return share;
  }
  constexpr void add(const RegionDim& d) {
    const AxisSet axes = d.source_axes.set() | d.used();
    if (axes.empty()) return;
    std::vector<std::vector<Index>> shares;
    Coordinates at(mesh_.rank(), 0);
    for_each_member(axes, 0, mesh_, at, [&] { shares.push_back(share_of(d, at)); });
    add_unlike(axes, shares);
  }
  /// Tells processes apart whose shares differ; there is one share for each member of `axes`.
  template <class Share> constexpr void add_unlike(AxisSet axes, const std::vector<Share>& shares) {
    Coordinates at(mesh_.rank(), 0);
    for (int axis = 0; axis < mesh_.rank(); ++axis) {
      if (!axes.contains(axis) || all_.contains(axis)) continue;
      for (int place = 1; place < mesh_[axis]; ++place) {
        bool alike = true;
        for_each_member(axes - AxisSet{axis}, 0, mesh_, at, [&] {
          Coordinates one = at, next = at;
          one[axis] = place - 1;
          next[axis] = place;
          alike = alike && shares[static_cast<std::size_t>(mesh_.place_in_group(axes, one))] ==
                               shares[static_cast<std::size_t>(mesh_.place_in_group(axes, next))];
        });
        if (!alike) add_start(axis, place);
      }
    }
  }
  /// The products of a convolution over a dilated base depend on where blocks begin.
  constexpr void add_products(const Plan& plan, const Step& step) {
    const Slot& kernel = plan.slots[step.in[1]];
    const Slot& out = plan.slots[step.out];
    const ConvolveParts parts = parts_of(plan.slots[step.in[0]].labels, kernel.labels, out.labels);
    for (int s = 0; s < plan.convolution.windows.size(); ++s) {
      const Window& w = plan.convolution.windows[s];
      const AxisList made = out.desc.sharding[parts.result_spatial[s]],
                     taps = kernel.desc.sharding[parts.kernel_spatial[s]];
      const AxisSet axes = made.set() | taps.set();
      if (w.base_dilation == 1 || axes.empty()) continue;
      std::vector<Index> shares;
      Coordinates at(mesh_.rank(), 0);
      for_each_member(axes, 0, mesh_, at, [&] {
        const Interval block_of_taps = kernel_taps(w, block(w.size, taps, mesh_, at));
        shares.push_back(products(block(out.desc.extents[parts.result_spatial[s]], made, mesh_, at),
                                  kernel.region >= 0 ? Interval{0, w.size} : block_of_taps, w));
      });
      add_unlike(axes, shares);
    }
  }
  constexpr void add_regions(const Plan& plan, const Step& step) {
    for (int k = 0; k < step.in.size(); ++k) add(region_of(plan, step, k));
  }
  constexpr void add_all(AxisSet axes) { all_ = all_ | axes; }
  constexpr void add_start(int axis, Index at) {
    if (at <= 0 || at >= mesh_[axis] || all_.contains(axis)) return;
    auto& starts = starts_[axis];
    const int start = static_cast<int>(at);
    if (starts.contains(start)) return;
    if (starts.size() == most_starts) return add_all(AxisSet{axis});
    starts.push_back(start);
    for (int i = starts.size() - 1; i > 0 && starts[i - 1] > starts[i]; --i) {
      starts[i] = starts[i - 1];
      starts[i - 1] = start;
    }
  }
  /// n elements are divided into one part for each member of a group, in order: the member with the
  /// short part comes between the members with full parts and the members with none.
  constexpr void add_parts(AxisSet group, Index n) {
    const int members = mesh_.group_size(group);
    const Index part = max_of(1, ceil_div(n, members));
    if (n % part == 0 && n / part >= members) return;
    const Coordinates short_one = mesh_.member(group, Coordinates(mesh_.rank(), 0),
                                               static_cast<int>(min_of(n / part, members - 1)));
    for (int axis = 0; axis < mesh_.rank(); ++axis)
      if (group.contains(axis)) {
        add_start(axis, short_one[axis]);
        add_start(axis, short_one[axis] + 1);
      }
  }
  template <class Visit>
  constexpr void visit_from(int axis, int process, Index alike, Coordinates& at,
                            const Visit& visit_one) const {
    if (axis == mesh_.rank()) return visit_one(process, at, alike);
    const auto& starts = starts_[axis];
    const bool each = all_.contains(axis);
    const int classes = each ? mesh_[axis] : starts.size();
    for (int i = 0; i < classes; ++i) {
      const int first = each ? i : starts[i];
      const int end = each ? i + 1 : i + 1 < classes ? starts[i + 1] : mesh_[axis];
      at[axis] = first;
      visit_from(axis + 1, process * mesh_[axis] + first, alike * (end - first), at, visit_one);
    }
  }

  MeshShape mesh_;
  AxisSet all_;  ///< the axes whose every coordinate is a class
  FixedVector<FixedVector<int, most_starts>, max_axes> starts_;  ///< else where classes begin
};

/// Returns whether the payload of a step is counted by the RegionPayload of each input.
constexpr bool counts_regions(const Plan& plan, const Step& step) {
  if (step.kind != StepKind::communicate || step.region < 0) return false;
  for (int k = 0; k < step.in.size(); ++k)
    if (!RegionPayload::counts(region_of(plan, step, k), step.adjoint)) return false;
  return true;
}

// After visit(), which clang must have seen to evaluate it as a constant.
constexpr void ProcessClasses::add_calls(const Plan& plan, bool uncounted) {
  for (const Step& step : plan.steps) {
    if (!step.communicates() || (uncounted && counts_regions(plan, step))) continue;
    if (step.merges || is_relocation(plan, step)) return add_all();
    if (step.region >= 0) {
      add_regions(plan, step);
      if (step.level == Level::network) add_all(step.group);
      continue;
    }
    AxisSet used = step.group;
    for (int k = 0; k < step.in.size(); ++k)
      for (const int slot : {static_cast<int>(step.in[k]), step.output(k)}) {
        add(plan.slots[slot].desc);
        used = used | plan.slots[slot].desc.sharding.used();
      }
    if (step.level == Level::network || !step.near.empty() ||
        step.collective == Collective::exchange ||
        step.collective == Collective::collective_permute)
      add_all(used);
  }
  for (const Step& step : plan.steps)  // the parts that an all-reduce's block is cut into
    if (step.kind == StepKind::communicate && step.collective == Collective::all_reduce) {
      const ProcessClasses known = *this;
      known.visit([&](int, const Coordinates& at, Index) {
        Index elements = 0;
        for (const int slot : step.in) {
          const TensorDesc& desc = plan.slots[slot].desc;
          elements = saturating_add(elements, block_volume(desc.extents, desc.sharding, mesh_, at));
        }
        add_parts(step.group, elements);
      });
    }
}

/// Returns a communicating step of the plan with its numbers on a process.
constexpr Step step_on(const Plan& plan, const Step& step, int process, const Coordinates& at) {
  Step there = step;
  if (step.region >= 0)
    number_region(plan, there, process);
  else if (is_relocation(plan, step))
    number_relocation(plan, there, process);
  else if (step.merges)
    number_merges(plan, there, at);
  else if (step.loop)
    number_loop(plan, there, at);
  else
    number_move(plan, there, at);
  return there;
}

/// Makes `plan` the plan of another process.
constexpr void move_to_process(Plan& plan, int process) {
  const Coordinates at = plan.mesh.coordinates(process);
  plan.process = process;
  for (Slot& slot : plan.slots) number_slot(plan, slot, process, at);
  for (Step& step : plan.steps) {
    if (step.kind != StepKind::communicate) number_work(plan, step, at);
    if (step.kind == StepKind::communicate || step.region >= 0)
      step = step_on(plan, step, process, at);
  }
  plan.peak_bytes = replayed_peak(plan);
}

/// Returns the most bytes that process 0 holds at once beside operands and result.
constexpr Index workspace_of_origin(Plan plan) {
  plan.slots[plan.result].given = true;
  for (int i = plan.steps.size() - 1; i >= 0; --i)
    if (const Step& step = plan.steps[i]; step.takes >= 0 && plan.slots[step.out].given)
      plan.slots[step.takes].given = true;
  move_to_process(plan, 0);
  return plan.peak_bytes;
}

/// Returns the most that one process sends by the steps for which `speaks_of` is true.
template <class SpeaksOf>
constexpr Index most_payload(const Plan& plan, const SpeaksOf& speaks_of) {
  // What the steps send of each region of the plan, or receive.
  struct Counted {
    int region;
    bool received;
    Index unit;  ///< bytes of an element, of all steps together
    RegionPayload elements;
  };
  FixedVector<Counted, 2 * max_regions> counted;
  ProcessClasses classes(plan.mesh);
  classes.add_calls(plan, true);
  const auto count = [&](int region, bool received, Index unit) {
    for (Counted& one : counted)
      if (one.region == region && one.received == received) {
        one.unit += unit;
        return;
      }
    counted.push_back(
        {region, received, unit, RegionPayload(plan.regions[region], received, plan.mesh)});
    for (const NumberAlong& numbers : counted.back().elements.sent()) classes.add(numbers);
    for (const NumberAlong& numbers : counted.back().elements.kept()) classes.add(numbers);
  };
  for (const Step& step : plan.steps)
    for (int k = 0; k < step.in.size() && speaks_of(step) && counts_regions(plan, step); ++k)
      count(number_of_region(step, k), step.adjoint || step.collective == Collective::broadcast,
            static_cast<Index>(size_of(plan.slots[step.in[0]].desc.type)));
  const auto payload_on = [&](int process, const Coordinates& at) {
    Index sum = 0;
    for (const Counted& one : counted)
      sum = saturating_add(sum, saturating_mul(one.elements.elements(at), one.unit));
    for (const Step& step : plan.steps)
      if (step.communicates() && speaks_of(step) && !counts_regions(plan, step))
        sum = saturating_add(
            sum, process == plan.process ? step.payload : step_on(plan, step, process, at).payload);
    return sum;
  };
  Index most = 0;
  classes.visit([&](int process, const Coordinates& at, Index) {
    most = max_of(most, payload_on(process, at));
  });
  return most;
}

}  // namespace tessera::detail

namespace tessera {

constexpr Index Plan::payload_bytes() const {
  return detail::most_payload(*this, [](const Step&) { return true; });
}
constexpr Index Plan::payload_bytes(Collective kind_) const {
  return detail::most_payload(*this, [&](const Step& step) { return step.collective == kind_; });
}
constexpr Index Plan::payload_bytes_on(int process_) const {
  const Coordinates at = mesh.coordinates(process_);
  Index sum = 0;
  for (const Step& step : steps)
    if (step.communicates())
      sum = detail::saturating_add(sum, detail::step_on(*this, step, process_, at).payload);
  return sum;
}

}  // namespace tessera
