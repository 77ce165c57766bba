// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The local work of windows on one process: turns the boxes that it holds into strides and local
/// windows.
///
///     std::vector<ConvolvePart> parts = detail::convolve_work(plan, step, at);
///
/// Laws: a position that a process holds neither in its block nor in its region lies outside the
/// input, or under no tap.
#include <vector>

#include <tessera/plan/move/move_work.hpp>
#include <tessera/plan/region/stored.hpp>

namespace tessera::detail {

/// A part of a convolution, and which input of the step it reads.
struct ConvolvePart {
  int input = 0;
  LocalConvolve work;
};

/// Computes one convolve step.
class ConvolveWork {
 public:
  constexpr ConvolveWork(const Plan& plan, const Step& step, const Coordinates& at)
      : shape_(plan.convolution),
        input_(plan.slots[step.in[0]]),
        kernel_(plan.slots[step.in[1]]),
        result_(plan.slots[step.out]),
        parts_(parts_of(input_.labels, kernel_.labels, result_.labels)),
        k_(held_box(plan, kernel_, at)),
        y_(held_box(plan, result_, at)),
        k_strides_(strides_of(plan, kernel_, at)) {
    x_ = held_box(plan, input_, at);
    x_strides_ = strides_of(plan, input_, at);
    made_ = y_;
    if (step.in.size() == 2) {
      add();
      return;
    }
    // The inner part reads the input's block; the border reads the elements received for it.
    const Region* region = &plan.regions[plan.slots[step.in[2]].region];
    for (int d : parts_.input_spatial) {
      RegionDim dim = (*region)[d];
      dim.part = RegionDim::Part::inner;
      if (dim.axes == dim.source_axes && !dim.axes.empty()) set(d, results(dim, plan.mesh, at));
    }
    add();
    for (int k = 2; k < step.in.size(); ++k) {
      region = &plan.regions[plan.slots[step.in[k]].region];
      x_ = needed(*region, plan.mesh, at);
      x_strides_ = row_major_strides(x_.extents());
      from_ = k;
      for (int d : parts_.input_spatial) set(d, results((*region)[d], plan.mesh, at));
      add();
    }
  }

  constexpr std::vector<ConvolvePart> take() { return std::move(work_); }

 private:
  constexpr void set(int input_dim, Interval results) {
    made_[parts_.result_spatial[parts_.input_spatial.find(input_dim)]] = results;
  }
  constexpr void push(const LocalConvolve& work) { work_.push_back({from_, work}); }
  /// Adds the work that makes made_ from x_.
  constexpr void add() {
    if (made_.empty()) return;
    const Index outs = kernel_.desc.extents[parts_.kernel_out] / grouped(shape_.kernel);
    const Index ins = kernel_.desc.extents[parts_.kernel_in] /
                      (shape_.kernel == GroupSide::other ? shape_.groups : 1);
    if (shape_.groups == 1) {
      return push(part({0, 1}, k_[parts_.kernel_out], k_[parts_.kernel_in]));
    }
    // The groups of this process, from a tensor whose grouped dimension is split into whole groups.
    if (shape_.kernel == GroupSide::other) {
      const Interval in = k_[parts_.kernel_in];
      return push(part({in.lo / ins, in.hi / ins}, k_[parts_.kernel_out], {0, ins}));
    }
    const Interval out = k_[parts_.kernel_out];
    const Interval in = k_[parts_.kernel_in];
    const Index first = ceil_div(out.lo, outs), last = out.hi / outs;
    if (first > last) {  // within one group
      return push(part({last, last + 1}, {out.lo - last * outs, out.hi - last * outs}, in));
    }
    if (out.lo < first * outs)
      push(part({first - 1, first}, {out.lo - (first - 1) * outs, outs}, in));
    if (last > first) push(part({first, last}, {0, outs}, in));
    if (out.hi > last * outs) push(part({last, last + 1}, {0, out.hi - last * outs}, in));
  }

  constexpr Index grouped(GroupSide side) const {
    return side == GroupSide::feature ? shape_.groups : 1;
  }
  /// The convolution of some groups, with the features `out` (within the group) and `in` of each.
  constexpr LocalConvolve part(Interval groups, Interval out, Interval in) const {
    const Extents &xs = x_strides_, &ks = k_strides_, ys = row_major_strides(y_.extents());
    const bool result_by_feature = shape_.result == GroupSide::feature;
    const Index batch_size =
        result_.desc.extents[parts_.result_batch] / (result_by_feature ? 1 : shape_.groups);
    const Interval batch = result_by_feature ? y_[parts_.result_batch] : Interval{0, batch_size};
    const Index ins = kernel_.desc.extents[parts_.kernel_in] /
                      (shape_.kernel == GroupSide::other ? shape_.groups : 1);
    const Index outs = kernel_.desc.extents[parts_.kernel_out] / grouped(shape_.kernel);
    LocalConvolve c;
    c.groups = groups.size();
    c.batch = batch.size();
    c.in_features = in.size();
    c.out_features = out.size();
    const int xb = parts_.input_batch, xf = parts_.input_feature, ki = parts_.kernel_in,
              ko = parts_.kernel_out, yb = parts_.result_batch, yf = parts_.result_feature;
    const bool by_feature = shape_.input == GroupSide::feature;
    const bool kernel_by_out = shape_.kernel == GroupSide::feature;
    c.in.first = xs[xb];
    c.in.second = xs[xf];
    c.in.group = by_feature ? ins * xs[xf] : batch_size * xs[xb];
    c.in.offset =
        groups.lo * c.in.group + (batch.lo - x_[xb].lo) * xs[xb] + (in.lo - x_[xf].lo) * xs[xf];
    c.kernel.first = ks[ki];
    c.kernel.second = ks[ko];
    c.kernel.group = kernel_by_out ? outs * ks[ko] : ins * ks[ki];
    c.kernel.offset =
        groups.lo * c.kernel.group + (in.lo - k_[ki].lo) * ks[ki] + (out.lo - k_[ko].lo) * ks[ko];
    c.out.first = ys[yb];
    c.out.second = ys[yf];
    c.out.group = result_by_feature ? outs * ys[yf] : batch_size * ys[yb];
    c.out.offset =
        groups.lo * c.out.group + (batch.lo - y_[yb].lo) * ys[yb] + (out.lo - y_[yf].lo) * ys[yf];
    for (int s = 0; s < shape_.windows.size(); ++s) {
      const int xd = parts_.input_spatial[s], kd = parts_.kernel_spatial[s],
                yd = parts_.result_spatial[s];
      Interval taps = k_[kd];
      const Window& w = shape_.windows[s];
      if (w.reversed) taps = {w.size - taps.hi, w.size - taps.lo};
      c.windows.push_back(local_window(w, made_[yd].lo, x_[xd].lo, taps));
      c.input.push_back(x_[xd].size());
      c.result.push_back(made_[yd].size());
      c.out.offset += (made_[yd].lo - y_[yd].lo) * ys[yd];
      c.in.spatial.push_back(xs[xd]);
      c.kernel.spatial.push_back(ks[kd]);
      c.out.spatial.push_back(ys[yd]);
    }
    return c;
  }

  const ConvolveWindows& shape_;
  const Slot& input_;
  const Slot& kernel_;
  const Slot& result_;
  ConvolveParts parts_;
  Box k_, y_;
  Extents k_strides_, x_strides_;
  Box x_;     ///< the held box of the input for the current part,
  Box made_;  ///< and the results that are made from it
  int from_ = 0;
  std::vector<ConvolvePart> work_;
};

constexpr std::vector<ConvolvePart> convolve_work(const Plan& plan, const Step& step,
                                                  const Coordinates& at) {
  return ConvolveWork(plan, step, at).take();
}

constexpr LocalReduceWindow reduce_window_work(const Plan& plan, const Step& step,
                                               const Coordinates& at) {
  const Box x = held_box(plan, plan.slots[step.in[0]], at),
            y = held_box(plan, plan.slots[step.out], at);
  LocalReduceWindow work;
  work.input = x.extents();
  work.input_strides = strides_of(plan, plan.slots[step.in[0]], at);
  work.result = y.extents();
  for (int d = 0; d < y.rank(); ++d)
    work.windows.push_back(
        local_window(plan.windows[d], y[d].lo, x[d].lo, {0, plan.windows[d].size}));
  return work;
}

constexpr LocalSelectScatter select_work(const Plan& plan, const Step& step,
                                         const Coordinates& at) {
  const Box x = held_box(plan, plan.slots[step.in[0]], at),
            s = held_box(plan, plan.slots[step.in[1]], at),
            y = held_box(plan, plan.slots[step.out], at);
  LocalSelectScatter work;
  work.input = x.extents();
  work.source = s.extents();
  work.result = y.extents();
  for (int d = 0; d < y.rank(); ++d) {
    work.first.push_back(y[d].lo - x[d].lo);
    work.windows.push_back(
        local_window(plan.windows[d], s[d].lo, x[d].lo, {0, plan.windows[d].size}));
  }
  return work;
}

}  // namespace tessera::detail
