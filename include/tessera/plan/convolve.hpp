// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The planner of convolutions. For every mesh axis it asks what the axis should split while the
/// convolution runs: the batch, the groups, the input or output features, a spatial dimension of
/// the result (whose processes then need a halo of the input), or the taps of the kernel (as in
/// filter gradients, where the partial sums are combined); an axis over which an operand is
/// unfinished may also pass through. The cheapest combination wins; the settings, base dilation
/// too, are arithmetic (base/window.hpp), so that GShard's three cases (Appendix A.4) are one.
///
///     Plan p = plan_convolve(parse("bhwi,hwio->bhwo"), shape, x, k, out, mesh, process);
///
/// Laws: an operand that is split as the convolution wants it is not moved; of the input, only what
/// a window reaches beyond a process's block travels, corners directly or dimension by dimension;
/// partial sums over input features or taps cost one reduction of the result, scattered where the
/// result is.
#include <tessera/plan/builder.hpp>
#include <tessera/plan/convolution.hpp>

namespace tessera {
namespace detail {

/// What a mesh axis splits while a convolution runs.
struct ConvolveRole {
  /// through: nothing, but an operand is unfinished over it, and the result is
  enum class Part : std::uint8_t { nothing, batch, group, in, out, spatial, taps, through };
  Part part = Part::nothing;
  int dim = 0;  ///< which spatial dimension
  constexpr bool operator==(const ConvolveRole&) const = default;
};

class ConvolveSearch {
 public:
  using Part = ConvolveRole::Part;

  constexpr ConvolveSearch(const Terms& terms, const ConvolveWindows& shape,
                           const TensorDesc& input, const TensorDesc& kernel,
                           const TensorDesc& result, const MeshShape& mesh, int process,
                           const PlanOptions& options)
      : terms_(terms),
        parts_(parts_of(terms)),
        shape_(shape),
        input_(input),
        kernel_(kernel),
        result_(result),
        x_(without_unit_axes(input.sharding, mesh)),
        k_(without_unit_axes(kernel.sharding, mesh)),
        y_(without_unit_axes(result.sharding, mesh)),
        mesh_(mesh),
        process_(process),
        options_(options) {
    candidates_.resize(mesh.rank());
    for (int axis = 0; axis < mesh.rank(); ++axis) collect(axis);
  }

  /// Returns the best plan, chosen by the numbers of process 0, as every process does.
  constexpr Plan best() {
    search();
    if (process_ == 0) return best_;
    PlanBuilder build(OperatorKind::convolve, mesh_, process_, options_);
    make(build, split_of(best_pick_), best_way_);
    return build.plan();
  }

 private:
  using Roles = FixedVector<ConvolveRole, max_axes>;
  static constexpr int exhaustive_limit = 40;

  constexpr void search() {
    Roles pick(mesh_.rank(), ConvolveRole{});
    int combinations = 1;
    for (int axis = 0; axis < mesh_.rank(); ++axis) {
      pick[axis] = candidates_[axis][0];
      if (combinations <= exhaustive_limit) combinations *= candidates_[axis].size();
    }
    if (combinations <= exhaustive_limit) {
      for (int i = 0; i < combinations; ++i) {
        int rest = i;
        for (int axis = 0; axis < mesh_.rank(); ++axis) {
          pick[axis] = candidates_[axis][rest % candidates_[axis].size()];
          rest /= candidates_[axis].size();
        }
        evaluate(pick);
      }
      return;
    }
    evaluate(pick);
    for (int axis = 0; axis < mesh_.rank(); ++axis) pick[axis] = always_possible(axis);
    evaluate(pick);
    for (int sweep = 0; sweep < 2; ++sweep)
      for (int axis = 0; axis < mesh_.rank(); ++axis) {
        Roles trial = best_pick_;
        for (const ConvolveRole& role : candidates_[axis]) {
          trial[axis] = role;
          evaluate(trial);
        }
      }
  }

  constexpr void collect(int axis) {
    FixedVector<ConvolveRole, 12>& list = candidates_[axis];
    const auto add = [&](ConvolveRole role) {
      if (!list.contains(role)) list.push_back(role);
    };
    if (mesh_[axis] == 1) return add({});
    const auto features = [&](Part plain) {
      if (shape_.groups > 1) add({Part::group});
      add({plain});
    };
    const bool open = y_.partial.contains(axis);  // it stays open: it splits what is summed
    if (unfinished().contains(axis)) add({Part::through});
    if (!open) {
      if (y_[parts_.result_batch].contains(axis)) features(Part::batch);
      if (y_[parts_.result_feature].contains(axis)) features(Part::out);
      for (int s = 0; s < parts_.result_spatial.size(); ++s)
        if (y_[parts_.result_spatial[s]].contains(axis)) add({Part::spatial, s});
      if (x_[parts_.input_batch].contains(axis)) features(Part::batch);
    }
    if (x_[parts_.input_feature].contains(axis)) features(Part::in);
    if (!open)
      for (int s = 0; s < parts_.input_spatial.size(); ++s)
        if (x_[parts_.input_spatial[s]].contains(axis)) add({Part::spatial, s});
    if (k_[parts_.kernel_in].contains(axis)) features(Part::in);
    if (k_[parts_.kernel_out].contains(axis) && !open) features(Part::out);
    for (int s = 0; s < parts_.kernel_spatial.size(); ++s)
      if (k_[parts_.kernel_spatial[s]].contains(axis)) add({Part::taps, s});
    // An input that is split in space may make its part of every result where few taps reach far.
    for (int s = 0; s < parts_.input_spatial.size(); ++s)
      if (open || x_[parts_.input_spatial[s]].contains(axis)) add({Part::taps, s});
    if (open)
      add({Part::in});
    else
      add({});
  }

  /// What an axis can split whatever the groups are.
  constexpr ConvolveRole always_possible(int axis) const {
    if (unfinished().contains(axis)) return {Part::through};
    return y_.partial.contains(axis) ? ConvolveRole{Part::taps, 0} : ConvolveRole{};
  }
  /// The axes over which an operand is unfinished.
  constexpr AxisSet unfinished() const { return x_.partial | k_.partial; }
  static constexpr Sharding passed(const Sharding& s, const Sharding& operand, AxisSet through) {
    return s.with_partial(operand.partial & through, Reduction::sum);
  }

  /// Returns the axes of `set` in the order that the result, the input or the kernel has them.
  constexpr AxisList ordered(AxisSet set) const {
    AxisList list;
    const auto take = [&](AxisList axes) {
      for (int i = 0; i < axes.size(); ++i)
        if (set.contains(axes[i])) {
          list.push_back(axes[i]);
          set.erase(axes[i]);
        }
    };
    for (const Sharding* s : {&y_, &x_, &k_})
      for (int d = 0; d < s->rank(); ++d) take((*s)[d]);
    for (int axis = 0; axis < mesh_.rank(); ++axis)
      if (set.contains(axis)) list.push_back(axis);
    return list;
  }
  static constexpr AxisList joined(AxisList major, AxisList minor) {
    for (int i = 0; i < minor.size(); ++i) major.push_back(minor[i]);
    return major;
  }

  /// What each part is split over.
  struct Split {
    AxisList batch, group, in, out;
    FixedVector<AxisList, max_spatial> spatial, taps;
    AxisSet through;
  };
  constexpr Split split_of(const Roles& roles) const {
    const auto axes_of = [&](ConvolveRole role) {
      AxisSet set;
      for (int axis = 0; axis < mesh_.rank(); ++axis)
        if (roles[axis] == role) set.insert(axis);
      return ordered(set);
    };
    Split split{axes_of({Part::batch}),
                axes_of({Part::group}),
                axes_of({Part::in}),
                axes_of({Part::out}),
                {},
                {},
                axes_of({Part::through}).set()};
    for (int s = 0; s < shape_.windows.size(); ++s) {
      split.spatial.push_back(axes_of({Part::spatial, s}));
      split.taps.push_back(axes_of({Part::taps, s}));
    }
    return split;
  }
  /// Whether blocks of what is grouped hold whole groups, and parts of groups are blocks.
  constexpr bool possible(const Split& s) const {
    if (shape_.groups == 1) return s.group.empty();
    const bool out_grouped =
        shape_.kernel == GroupSide::feature && shape_.result == GroupSide::feature;
    return shape_.groups % mesh_.parts(s.group) == 0 &&
           (s.batch.empty() ||
            (shape_.input == GroupSide::feature && shape_.result == GroupSide::feature)) &&
           (s.in.empty() ||
            (shape_.input == GroupSide::other && shape_.kernel == GroupSide::feature)) &&
           (s.out.empty() || out_grouped);
  }

  /// The axes over which the convolution leaves partial sums.
  static constexpr AxisSet summed_over(const Split& s) {
    AxisSet open = s.in.set() | s.through;
    for (const AxisList& taps : s.taps) open = open | taps.set();
    return open;
  }

  constexpr void evaluate(const Roles& roles) {
    const Split split = split_of(roles);
    if (!possible(split) || !(y_.partial - summed_over(split)).empty()) return;
    // The input comes as it is; or resharded first, all but the halo; or so, with the border of the
    // block apart from its inner part, which then needs no exchange; or whole where it is split in
    // space.
    Index least = max_int64;
    for (const int way : {0, 1, 3, 2}) {
      PlanBuilder build(OperatorKind::convolve, mesh_, 0, options_);
      if (!make(build, split, way)) continue;
      // To gather what an exchange would bring must not move more.
      const Index moved = bytes_moved(build.plan());
      if (way == 2 && moved > least) continue;
      least = min_of(least, moved);
      consider(build.plan(), roles, way);
    }
  }

  constexpr bool make(PlanBuilder& build, const Split& s, int way) const {
    build.plan().reduction = Reduction::sum;
    build.plan().convolution = shape_;
    int input = build.operand(input_, terms_.operands[0]);
    int kernel = build.operand(kernel_, terms_.operands[1]);
    const bool batch_grouped = shape_.input == GroupSide::other;
    Sharding want = Sharding::replicated(input_.rank());
    want[parts_.input_batch] = batch_grouped ? joined(s.group, s.batch) : s.batch;
    want[parts_.input_feature] = batch_grouped ? s.in : joined(s.group, s.in);
    // Where the halo comes from: what the input is split over in space and is not needed elsewhere.
    Sharding source = want;
    for (int d = 0; d < shape_.windows.size(); ++d)
      source[parts_.input_spatial[d]] =
          way == 2 ? AxisList{} : x_[parts_.input_spatial[d]].without(want.used());
    const Sharding as_is = passed(x_.finished(), x_, s.through);
    source = way == 0 ? as_is : passed(source, x_, s.through);
    if ((way == 1 || way == 2) && source == as_is) return false;  // the same as an earlier way
    input = build.reshard(input, source);
    Region region;
    for (int d = 0; d < input_.rank(); ++d) {
      RegionDim dim;
      dim.extent = dim.source_extent = input_.extents[d];
      dim.axes = want[d];
      dim.source_axes = source[d];
      region.push_back(dim);
    }
    for (int d = 0; d < shape_.windows.size(); ++d) {
      RegionDim& dim = region[parts_.input_spatial[d]];
      dim.rule = RegionDim::Rule::window;
      dim.window = shape_.windows[d];
      dim.extent = result_.extents[parts_.result_spatial[d]];
      dim.axes = s.spatial[d];
      dim.tap_axes = s.taps[d];
    }
    Sharding weights = Sharding::replicated(kernel_.rank());
    weights[parts_.kernel_in] = shape_.kernel == GroupSide::other ? joined(s.group, s.in) : s.in;
    weights[parts_.kernel_out] =
        shape_.kernel == GroupSide::feature ? joined(s.group, s.out) : s.out;
    for (int d = 0; d < shape_.windows.size(); ++d) weights[parts_.kernel_spatial[d]] = s.taps[d];
    weights = passed(weights, k_, s.through);
    kernel = build.reshard(kernel, weights);
    FixedVector<int, max_operands> inputs{input, -1};
    if (!moving_axes(region, mesh_).empty()) {
      TensorDesc needed = input_;
      needed.sharding = passed(region_sharding(region), x_, s.through);
      if (way == 3) {
        if (!take_border(build, input, region, needed, inputs)) return false;
      } else {
        inputs[0] = build.take_window(input, region, needed, terms_.operands[0]);
      }
    } else if (way == 3) {
      return false;
    }
    TensorDesc made = result_;
    made.sharding = Sharding::replicated(result_.rank());
    const bool result_grouped = shape_.result == GroupSide::feature;
    made.sharding[parts_.result_batch] = result_grouped ? s.batch : joined(s.group, s.batch);
    made.sharding[parts_.result_feature] = result_grouped ? joined(s.group, s.out) : s.out;
    for (int d = 0; d < shape_.windows.size(); ++d)
      made.sharding[parts_.result_spatial[d]] = s.spatial[d];
    made.sharding = made.sharding.with_partial(summed_over(s), Reduction::sum);
    inputs[1] = kernel;
    int slot = build.compute(StepKind::convolve, inputs, made, terms_.result);
    if (shape_.mirrored.contains(true))
      slot = build.take({slot}, {mirror(made)}, made, terms_.result, false);
    build.finish(build.reshard(slot, y_), result_.sharding);
    return true;
  }
  /// Takes what the border of the result's block needs, by one exchange: for each spatial dimension
  /// in which something moves a part below the inner results and one above, within the inner
  /// results of the dimensions before it; what the windows of two parts read comes to both. The
  /// slots join `inputs`. Returns false where blocks of input and result do not go together, so
  /// that there is no inner part.
  constexpr bool take_border(PlanBuilder& build, int input, const Region& whole,
                             const TensorDesc& needed,
                             FixedVector<int, max_operands>& inputs) const {
    for (int d = 0; d < whole.size(); ++d) {
      const RegionDim& dim = whole[d];
      if (!dim.tap_axes.empty() || !(dim.axes == dim.source_axes)) return false;
    }
    FixedVector<int, max_operands> slots, targets;
    FixedVector<std::int8_t, max_operands> regions;
    Region border = whole;
    for (int d : parts_.input_spatial) {
      if (whole[d].axes.empty()) continue;
      for (const RegionDim::Part part : {RegionDim::Part::low, RegionDim::Part::high}) {
        border[d].part = part;
        slots.push_back(input);
        regions.push_back(build.region(border));
        targets.push_back(build.shaped(needed, terms_.operands[0], regions.back()));
        inputs.push_back(targets.back());
      }
      border[d].part = RegionDim::Part::inner;
    }
    build.take_each(slots, regions, targets, false);
    build.overlap(targets.size());
    return true;
  }
  constexpr Region mirror(const TensorDesc& made) const {
    Region region;
    for (int d = 0; d < made.rank(); ++d) {
      RegionDim dim;
      dim.extent = dim.source_extent = made.extents[d];
      dim.axes = dim.source_axes = made.sharding[d];
      const int s = parts_.result_spatial.find(d);
      if (s >= 0 && s < shape_.mirrored.size() && shape_.mirrored[s]) {
        dim.boundary = Boundary::constant;
        dim.offset = made.extents[d] - 1;
        dim.stride = -1;
      }
      region.push_back(dim);
    }
    return region;
  }
  /// The sharding that a region's axes make, for texts: the boxes are wider.
  static constexpr Sharding region_sharding(const Region& region) {
    Sharding s = Sharding::replicated(region.size());
    for (int d = 0; d < region.size(); ++d) {
      s[d] = region[d].axes;
      if (s[d].empty()) s[d] = region[d].tap_axes;
    }
    return s;
  }

  /// An exchange copies what a process has beside what comes; it is not held against it, since a
  /// gather copies too, in the library.
  constexpr std::int64_t cost_of(const Plan& plan, int way) const {
    if (way != 2) return plan.cost;
    const Coordinates origin(mesh_.rank(), 0);
    const Slot& read = plan.slots[plan.steps[convolve_step(plan)].in[0]];
    return saturating_add(plan.cost,
                          options_.machine.copy(detail::slot_bytes(plan, read, 0, origin)));
  }
  static constexpr int convolve_step(const Plan& plan) {
    int i = 0;
    while (plan.steps[i].kind != StepKind::convolve) ++i;
    return i;
  }

  constexpr void consider(const Plan& plan, const Roles& roles, int way) {
    const bool keeps = options_.contract.covers(plan.needs);
    const bool fits = plan.peak_bytes <= options_.workspace_limit;
    if (found_) {
      if (keeps != kept_) {
        if (!keeps) return;
      } else if (fits != fitted_) {
        if (!fits) return;
      } else if (cost_of(plan, way) >= cost_of(best_, best_way_)) {
        return;
      }
    }
    found_ = true;
    kept_ = keeps;
    fitted_ = fits;
    best_ = plan;
    best_pick_ = roles;
    best_way_ = way;
  }

  Terms terms_;
  ConvolveParts parts_;
  ConvolveWindows shape_;
  TensorDesc input_, kernel_, result_;
  Sharding x_, k_, y_;  ///< without axes of size 1
  MeshShape mesh_;
  int process_;
  PlanOptions options_;
  FixedVector<FixedVector<ConvolveRole, 12>, max_axes> candidates_;
  Plan best_;
  Roles best_pick_;
  int best_way_ = 0;
  bool found_ = false, kept_ = false, fitted_ = false;
};
}  // namespace detail

/// Plans a convolution of `input` by `kernel` into a result split as `out`, which may leave sums
/// over input features or taps open. Preconditions: check_convolve and check_convolution found
/// nothing wrong.
constexpr Plan plan_convolve(const Terms& terms, const ConvolveWindows& shape,
                             const TensorDesc& input, const TensorDesc& kernel, const Sharding& out,
                             const MeshShape& mesh, int process = 0,
                             const PlanOptions& options = {}) {
  const TensorDesc result{
      input.type, convolved_extents(shape, parts_of(terms), input.extents, kernel.extents), out};
  return detail::ConvolveSearch(terms, shape, input, kernel, result, mesh, process, options).best();
}

}  // namespace tessera
