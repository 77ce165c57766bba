// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The plan of a convolution with a given split, in one of the ways to collect its input.
/// plan/op/window/convolve.hpp chooses the cheapest.
///
///     detail::PlanBuilder build(OperatorKind::convolve, mesh, process, options);
///     detail::ConvolveMaker(terms, shape, x, k, y, mesh).make(build, split, way)
///
/// Laws: an operand that has the wanted sharding is not moved; of the input, only the elements that
/// a window reaches beyond a process's block travel; where both dilations leave few taps for a
/// block of the result, only those taps of the kernel travel.
#include <tessera/plan/builder.hpp>
#include <tessera/plan/op/window/convolution.hpp>

namespace tessera::detail {

/// The axes that split each part of a convolution.
struct ConvolveSplit {
  AxisList batch, group, in, out;
  FixedVector<AxisList, max_spatial> spatial, taps;
  AxisSet through;  ///< an operand is unfinished over these, and so is the result

  /// Returns the axes over which the convolution leaves partial sums.
  constexpr AxisSet summed_over() const {
    AxisSet open = in.set() | through;
    for (const AxisList& axes : taps) open = open | axes.set();
    return open;
  }
};

/// How the input reaches the processes.
enum class ConvolveWay : std::uint8_t {
  as_it_is,  ///< the needed elements come directly from the input's own blocks
  moved,     ///< it is resharded first, except for the halo
  border,    ///< like `moved`, but the border of the block is computed apart from its inner part,
             ///< which needs no exchange
  whole      ///< it is gathered where it is split in space
};
inline constexpr ConvolveWay convolve_ways[] = {ConvolveWay::as_it_is, ConvolveWay::moved,
                                                ConvolveWay::border, ConvolveWay::whole};

class ConvolveMaker {
 public:
  /// `x`, `k` and `y`: the tensors with their shardings, without axes of size 1.
  constexpr ConvolveMaker(const Terms& terms, const ConvolveWindows& shape, const TensorDesc& input,
                          const TensorDesc& kernel, const TensorDesc& result, const Sharding& x,
                          const Sharding& k, const Sharding& y, const MeshShape& mesh)
      : terms_(terms),
        parts_(parts_of(terms)),
        shape_(shape),
        input_(input),
        kernel_(kernel),
        result_(result),
        x_(x),
        k_(k),
        y_(y),
        mesh_(mesh) {}

  constexpr const ConvolveParts& parts() const { return parts_; }

  /// Whether blocks of grouped dimensions hold whole groups, and parts of groups are blocks; and
  /// whether the axes that the result leaves open are summed over.
  constexpr bool possible(const ConvolveSplit& s) const {
    if (!(y_.partial - s.summed_over()).empty()) return false;
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

  /// Returns the input's sharding before the exchange.
  constexpr Sharding source_of(const ConvolveSplit& s, ConvolveWay way) const {
    if (way == ConvolveWay::as_it_is) return passed(x_.finished(), x_, s.through);
    Sharding source = wanted_input(s);
    if (way == ConvolveWay::whole) return passed(source, x_, s.through);
    // The halo comes along the axes that split the input in space and are not needed elsewhere;
    // else from blocks like the result's.
    const AxisSet needed = source.used();
    for (const int d : parts_.input_spatial) source[d] = x_[d].without(needed);
    for (int d = 0; d < shape_.windows.size(); ++d)
      if (AxisList& axes = source[parts_.input_spatial[d]]; axes.empty())
        axes = s.spatial[d].without(source.used());
    return passed(source, x_, s.through);
  }
  /// Returns whether a way brings more of the input to a process than it needs.
  constexpr bool brings_more(const ConvolveSplit& s, ConvolveWay way) const {
    const Coordinates origin(mesh_.rank(), 0);
    const Sharding source = source_of(s, way);
    return way != ConvolveWay::as_it_is &&
           block_volume(input_.extents, source, mesh_, origin) >
               max_of(needed(region_of(s, source), mesh_, origin).size(),
                      block_volume(input_.extents, x_, mesh_, origin));
  }
  /// Returns the kernel's sharding before the convolution, or before its taps are taken.
  constexpr Sharding weights(const ConvolveSplit& s) const {
    return takes_taps(s) ? passed(k_.finished(), k_, s.through)
                         : passed(wanted_weights(s), k_, s.through);
  }
  constexpr Sharding made(const ConvolveSplit& s) const {
    Sharding made = Sharding::replicated(result_.rank());
    const bool grouped = shape_.result == GroupSide::feature;
    made[parts_.result_batch] = grouped ? s.batch : joined(s.group, s.batch);
    made[parts_.result_feature] = grouped ? joined(s.group, s.out) : s.out;
    for (int d = 0; d < shape_.windows.size(); ++d) made[parts_.result_spatial[d]] = s.spatial[d];
    return made.with_partial(s.summed_over(), Reduction::sum);
  }

  /// Returns the operations of process 0.
  constexpr Index operations(const ConvolveSplit& s) const {
    const Coordinates origin(mesh_.rank(), 0);
    FixedVector<bool, max_spatial> all_taps;
    for (int d = 0; d < shape_.windows.size(); ++d) all_taps.push_back(takes_taps(s, d));
    return detail::operations(shape_, parts_, kernel_.extents,
                              block(kernel_.extents, wanted_weights(s), mesh_, origin),
                              block(result_.extents, made(s), mesh_, origin), all_taps);
  }
  /// Returns a lower bound of the operations of process 0 for any split.
  constexpr Index least_operations() const {
    Index products = kernel_.extents[parts_.kernel_in];
    if (shape_.kernel == GroupSide::other) products /= shape_.groups;
    for (int d = 0; d < shape_.windows.size(); ++d)
      products = shape_.windows[d].base_dilation > 1
                     ? 0
                     : saturating_mul(products, kernel_.extents[parts_.kernel_spatial[d]]);
    return saturating_mul(saturating_mul(2, products), volume(result_.extents)) / mesh_.processes();
  }
  /// Makes the plan; false where a way is impossible, or the same as one before it.
  constexpr bool make(PlanBuilder& build, const ConvolveSplit& s, ConvolveWay way) const {
    build.plan().reduction = Reduction::sum;
    build.plan().convolution = shape_;
    int input = build.operand(input_, terms_.operands[0]);
    int kernel = build.operand(kernel_, terms_.operands[1]);
    const Sharding source = source_of(s, way);
    // An earlier way has been this one.
    if ((way == ConvolveWay::moved || way == ConvolveWay::whole) &&
        source == source_of(s, ConvolveWay::as_it_is))
      return false;
    input = build.reshard(input, source);
    const Region region = region_of(s, source);
    kernel = build.reshard(kernel, weights(s));
    if (takes_taps(s)) kernel = taps_for(build, kernel, s);
    const Sharding split = this->made(s);
    const bool apart = !(split.partial - y_.partial - mesh_.unit_axes()).empty();
    const DType parts =
        apart ? build.options().parts_of(Reduction::sum, result_.type) : result_.type;
    FixedVector<int, max_operands> inputs{input, -1};
    if (!moving_axes(region, mesh_).empty()) {
      TensorDesc needed = input_;
      needed.sharding = passed(region_sharding(region), x_, s.through);
      if (way == ConvolveWay::border) {
        // What is converted comes before the work that begins meanwhile.
        if (parts != result_.type || !take_border(build, input, region, needed, inputs))
          return false;
      } else {
        inputs[0] = build.take_window(input, region, needed, terms_.operands[0]);
      }
    } else if (way == ConvolveWay::border) {
      return false;
    }
    const TensorDesc made{parts, result_.extents, split};
    inputs[1] = kernel;
    for (int& slot : inputs) slot = build.convert(slot, parts);
    int slot = build.compute(step::Convolve{}, inputs, made, terms_.result);
    if (brings_more(s, way)) {
      // An exchange's price includes its copies; a gather's does not include the copies within the
      // library.
      Step& step = build.plan().steps.back();
      step.cost = saturating_add(step.cost, build.options().machine.copy(slot_bytes(
                                                build.plan(), build.plan().slots[inputs[0]], 0,
                                                Coordinates(mesh_.rank(), 0))));
    }
    if (shape_.mirrored.contains(true))
      slot = build.take({slot}, {mirror(made)}, made, terms_.result, false);
    build.finish(build.reshard(slot, y_, result_.type), result_.sharding);
    return true;
  }

 private:
  static constexpr Sharding passed(const Sharding& s, const Sharding& operand, AxisSet through) {
    return s.with_partial(operand.partial & through, Reduction::sum);
  }
  static constexpr AxisList joined(AxisList major, AxisList minor) {
    for (int i = 0; i < minor.size(); ++i) major.push_back(minor[i]);
    return major;
  }
  /// Returns the input's sharding, except in space.
  constexpr Sharding wanted_input(const ConvolveSplit& s) const {
    const bool batch_grouped = shape_.input == GroupSide::other;
    Sharding want = Sharding::replicated(input_.rank());
    want[parts_.input_batch] = batch_grouped ? joined(s.group, s.batch) : s.batch;
    want[parts_.input_feature] = batch_grouped ? s.in : joined(s.group, s.in);
    return want;
  }
  /// Returns the region of the input that the processes need.
  constexpr Region region_of(const ConvolveSplit& s, const Sharding& source) const {
    const Sharding want = wanted_input(s);
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
    return region;
  }
  /// Returns the kernel's sharding, except along taps where a block of the result may need few of
  /// them.
  constexpr Sharding wanted_weights(const ConvolveSplit& s) const {
    Sharding want = Sharding::replicated(kernel_.rank());
    want[parts_.kernel_in] = shape_.kernel == GroupSide::other ? joined(s.group, s.in) : s.in;
    want[parts_.kernel_out] = shape_.kernel == GroupSide::feature ? joined(s.group, s.out) : s.out;
    for (int d = 0; d < shape_.windows.size(); ++d) want[parts_.kernel_spatial[d]] = s.taps[d];
    return want;
  }
  /// Whether a block of the result may need few of the taps.
  constexpr bool takes_taps(const ConvolveSplit& s, int d) const {
    const Coordinates origin(mesh_.rank(), 0);
    const Index n = result_.extents[parts_.result_spatial[d]];
    return !s.spatial[d].empty() && s.taps[d].empty() && skips_taps(shape_.windows[d]) &&
           block(n, s.spatial[d], mesh_, origin).size() < shape_.windows[d].base_dilation;
  }
  constexpr bool takes_taps(const ConvolveSplit& s) const {
    bool any = false;
    for (int d = 0; d < shape_.windows.size(); ++d) any = any || takes_taps(s, d);
    return any;
  }
  /// Takes the taps that a process's block of the result needs.
  constexpr int taps_for(PlanBuilder& build, int kernel, const ConvolveSplit& s) const {
    const TensorDesc has = build.desc(kernel);
    const Sharding want = wanted_weights(s);
    Region region;
    bool stays = true;  // a block may hold more taps than are needed, but nothing else
    for (int d = 0; d < has.rank(); ++d) {
      RegionDim dim;
      dim.extent = dim.source_extent = has.extents[d];
      dim.axes = want[d];
      dim.source_axes = has.sharding[d];
      const int i = parts_.kernel_spatial.find(d);
      if (i >= 0 && takes_taps(s, i)) {
        dim.rule = RegionDim::Rule::taps;
        dim.window = shape_.windows[i];
        dim.extent = result_.extents[parts_.result_spatial[i]];
        dim.axes = s.spatial[i];
      } else {
        stays = stays && dim.axes == dim.source_axes;
      }
      region.push_back(dim);
    }
    if (stays && moving_axes(region, mesh_).empty()) return kernel;
    TensorDesc needed = has;
    needed.sharding = passed(region_sharding(region), k_, s.through);
    return build.take_window(kernel, region, needed, terms_.operands[1]);
  }
  /// Takes the input of the border of the result's block, by one exchange. For each spatial
  /// dimension with movement there is one part below the inner results and one above, within the
  /// inner results of the dimensions before it; elements that the windows of two parts read come to
  /// both. The slots are appended to `inputs`. Returns false where the blocks of input and result
  /// do not match, so that there is no inner part.
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
  /// The sharding given by a region's axes, for printing: the boxes are wider.
  static constexpr Sharding region_sharding(const Region& region) {
    Sharding s = Sharding::replicated(region.size());
    for (int d = 0; d < region.size(); ++d) {
      s[d] = region[d].axes;
      if (s[d].empty()) s[d] = region[d].tap_axes;
    }
    return s;
  }

  Terms terms_;
  ConvolveParts parts_;
  ConvolveWindows shape_;
  TensorDesc input_, kernel_, result_;
  Sharding x_, k_, y_;
  MeshShape mesh_;
};

}  // namespace tessera::detail
