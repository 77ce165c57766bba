// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Single random cases of convolutions, their gradients, reduce-windows and select-and-scatter, run
/// and compared as those of cases.hpp are.
///
///     std::string wrong = support::some_window_case(mesh, random);
#include <atomic>

#include <tessera/kernel/reduce.hpp>

#include "cases.hpp"

namespace support {

/// A convolution in plain loops: calls visit(input, kernel, result) with row-major places for every
/// product of the sum.
template <class Visit>
void for_each_product(const Terms& terms, const detail::ConvolveWindows& shape, const Extents& x,
                      const Extents& k, const Visit& visit) {
  const detail::ConvolveParts p = detail::parts_of(terms);
  const Extents y = detail::convolved_extents(shape, p, x, k);
  const Extents xs = detail::row_major_strides(x), ks = detail::row_major_strides(k),
                ys = detail::row_major_strides(y);
  const Index groups = shape.groups;
  const bool of_batch = shape.input == detail::GroupSide::other;
  const Index batch = y[p.result_batch], ins = k[p.kernel_in], outs = k[p.kernel_out] / groups;
  Extents results, taps;
  for (int d = 0; d < shape.windows.size(); ++d) {
    results.push_back(y[p.result_spatial[d]]);
    taps.push_back(shape.windows[d].size);
  }
  for (Index g = 0; g < groups; ++g)
    for (Index n = 0; n < batch; ++n)
      for (Index o = 0; o < outs; ++o)
        for_each_index(results, [&](const Extents& at) {
          for (Index c = 0; c < ins; ++c)
            for_each_index(taps, [&](const Extents& t) {
              Index in = (of_batch ? g * batch + n : n) * xs[p.input_batch] +
                         (of_batch ? c : g * ins + c) * xs[p.input_feature];
              Index weight = c * ks[p.kernel_in] + (g * outs + o) * ks[p.kernel_out];
              Index out = n * ys[p.result_batch] + (g * outs + o) * ys[p.result_feature];
              for (int d = 0; d < shape.windows.size(); ++d) {
                const Window& w = shape.windows[d];
                const Index position = at[d] * w.stride - w.low + t[d] * w.window_dilation;
                if (position < 0 || position % w.base_dilation != 0 ||
                    position / w.base_dilation >= x[p.input_spatial[d]])
                  return;
                in += position / w.base_dilation * xs[p.input_spatial[d]];
                weight += (w.reversed ? w.size - 1 - t[d] : t[d]) * ks[p.kernel_spatial[d]];
                out += at[d] * ys[p.result_spatial[d]];
              }
              visit(in, weight, out);
            });
        });
}

/// How many cases have taken corners dimension by dimension.
inline std::atomic<int> window_turns = 0;

template <class T> class WindowCases {
 public:
  /// `within`: operands lie within halos.
  WindowCases(std::shared_ptr<MeshCore> mesh, Random& random, bool within = false)
      : mesh_(std::move(mesh)), shape_(mesh_->shape()), random_(random) {
    if (within) within_ = WithinHalos(random);
  }

  /// A convolution or one of its gradients.
  std::string convolution() {
    const int which = random_.below(3);
    const int spatial = 1 + (random_.chance(50) ? 1 : 0) + (random_.chance(10) ? 1 : 0);
    const bool tiles = spatial > 1 && random_.chance(30);
    const Terms terms = parse(
        spatial == 1 ? random_.of<std::string>({"bxi,xio->bxo", "bix,oix->box", "xbi,oxi->obx"})
        : spatial == 2
            ? random_.of<std::string>({"bhwi,hwio->bhwo", "bihw,oihw->bohw", "ihwb,ihwo->bwho"})
            : std::string("bxyzi,xyzio->bxyzo"));
    const detail::ConvolveParts p = detail::parts_of(terms);
    Convolution c;
    Extents x(spatial + 2, 1), k(spatial + 2, 1);
    c.portable = random_.chance(50);
    if (random_.chance(25))
      (random_.chance(50) ? c.feature_groups : c.batch_groups) = random_.of<Index>({2, 3, 4});
    x[p.input_batch] = random_.of<Index>({1, 2, 3, 5}) * c.batch_groups;
    k[p.kernel_in] = random_.of<Index>({1, 2, 3});
    x[p.input_feature] = k[p.kernel_in] * c.feature_groups;
    k[p.kernel_out] = random_.of<Index>({1, 2, 3, 4}) * c.feature_groups * c.batch_groups;
    for (int d = 0; d < spatial; ++d) {
      x[p.input_spatial[d]] = random_.of<Index>({1, 2, 3, 5, 7, 9, spatial == 1 ? 12 : 4});
      k[p.kernel_spatial[d]] = random_.of<Index>({1, 2, 3, 4});
      c.stride.push_back(random_.of<Index>({1, 1, 2, 3}));
      c.low.push_back(random_.below(5) - 1);
      c.high.push_back(random_.below(5) - 1);
      c.base_dilation.push_back(random_.of<Index>({1, 1, 2, 3}));
      c.window_dilation.push_back(random_.of<Index>({1, 1, 2, 3}));
      c.reversed.push_back(random_.below(2));
      if (!tiles && random_.chance(10)) {  // a kernel for each example: few taps reach an element
        const Index n = random_.of<Index>({3, 4, 6, 7});
        x[p.input_spatial[d]] = k[p.kernel_spatial[d]] = c.base_dilation[d] = n;
        c.window_dilation[d] = n - 1;
        c.stride[d] = 1;
        c.low[d] = c.high[d] = 0;
      }
      if (!tiles) continue;
      x[p.input_spatial[d]] = random_.of<Index>({4, 6, 8, 9});
      c.stride[d] = c.base_dilation[d] = c.window_dilation[d] = 1;
      c.low[d] = (k[p.kernel_spatial[d]] - 1) / 2;
      c.high[d] = k[p.kernel_spatial[d]] - 1 - c.low[d];
    }
    while (!detail::check_convolution(c, terms, x, k).ok())
      for (Index& high : c.high) ++high;  // until the window fits
    const detail::ConvolveWindows shape = detail::shape_of(c, p, k);
    const Extents y = detail::convolved_extents(shape, p, x, k);
    const detail::ConvolveGradient g = which == 1   ? detail::input_gradient(terms, shape, x)
                                       : which == 2 ? detail::kernel_gradient(terms, shape, x, k)
                                                    : detail::ConvolveGradient{terms, shape};
    TensorDesc a = tensor(which == 1 ? y : x), b = tensor(which == 2 ? y : k);
    const Extents made = which == 0 ? y : which == 1 ? x : k;
    const detail::ConvolveParts of = detail::parts_of(g.terms);
    if (tiles) a.sharding = tiled(a.extents.size(), of.input_spatial);
    if (!tiles && random_.chance(30)) {  // one operand is unfinished
      TensorDesc& one = random_.chance(50) ? a : b;
      one.sharding = some_sharding(random_, one.rank(), shape_.rank(), 50);
    }
    Sharding out = some_sharding(random_, made.size(), shape_.rank(), 20);
    if (!detail::check_convolve(g.terms, {a.sharding, b.sharding}, out).ok()) out = out.finished();
    if (tiles || random_.chance(40))
      out = detail::deduce_convolve(g.terms, {a.sharding, b.sharding});
    const AxisSet open = a.sharding.partial | b.sharding.partial;
    if (!open.empty() && random_.chance(50) && (open & out.used()).empty())
      out = out.with_partial(open, Reduction::sum);

    const Whole<T> left = whole_input<T>(a, shape_, 1), right = whole_input<T>(b, shape_, 2);
    Whole<T> expected(made);
    Index products = 0;
    for_each_product(terms, shape, x, k, [&](Index in, Index weight, Index result) {
      ++products;
      if (which == 0) expected[result] += left[in] * right[weight];
      if (which == 1) expected[in] += left[result] * right[weight];
      if (which == 2) expected[weight] += left[in] * right[result];
    });
    const DynamicTensor input = stored(a, 1), second = stored(b, 2);
    const std::string letters = to_text(terms);
    const auto run = [&] {
      if (which == 1) return convolve_input_gradient(letters, input, second, x, c, out);
      if (which == 2) return convolve_kernel_gradient(letters, input, second, k, c, out);
      return convolve(letters, input, second, c, out);
    };
    const Plan plan = counted(within_.options(mesh_), [&](const PlanOptions& options) {
      return detail::plan_convolve(g.terms, g.shape, a, b, out, shape_, mesh_->process(), options);
    });
    std::string settings =
        "groups " + std::to_string(c.feature_groups) + " " + std::to_string(c.batch_groups);
    for (const Window& w : shape.windows)
      settings += ", size " + std::to_string(w.size) + " stride " + std::to_string(w.stride) +
                  " pad " + std::to_string(w.low) + "_" + std::to_string(w.high) + " base " +
                  std::to_string(w.base_dilation) + " window " + std::to_string(w.window_dilation) +
                  (w.reversed ? " reversed" : "");
    const double terms_summed =
        static_cast<double>(products) / static_cast<double>(max_of(1, volume(made))) + 8;
    return trial<T>((which == 0   ? "convolve "
                     : which == 1 ? "input gradient "
                                  : "kernel gradient ") +
                        letters + " " + settings + ", " + describe(b, shape_),
                    a, out)(run, noted(plan), expected, tolerance(40 * terms_summed));
  }

  /// A reduce-window, its gradient, or the gradient of that.
  std::string window() {
    const int rank = 1 + random_.below(3);
    const int which = random_.below(4);
    const bool tiles = rank > 1 && random_.chance(30);
    const Reduction kind =
        which >= 2 ? Reduction::max
                   : random_.of<Reduction>({Reduction::sum, Reduction::max, Reduction::min});
    TensorDesc x{dtype_of<T>, {}, some_sharding(random_, rank, shape_.rank())};
    WindowSettings s;
    for (int d = 0; d < rank; ++d) {
      x.extents.push_back(random_.of<Index>({1, 2, 3, 5, 7, 9, rank == 1 ? 13 : 4}));
      s.size.push_back(random_.of<Index>({1, 2, 3, 4}));
      s.stride.push_back(random_.of<Index>({1, 1, 2, 3, 5}));
      s.low.push_back(random_.below(5) - 1);
      s.high.push_back(random_.below(5) - 1);
      s.base_dilation.push_back(random_.of<Index>({1, 1, 2, 3}));
      s.window_dilation.push_back(random_.of<Index>({1, 1, 2, 3}));
      if (!tiles) continue;
      x.extents[d] = random_.of<Index>({4, 6, 8, 9});
      s.stride[d] = s.base_dilation[d] = s.window_dilation[d] = 1;
      s.low[d] = (s.size[d] - 1) / 2;
      s.high[d] = s.size[d] - 1 - s.low[d];
    }
    while (!detail::check_windows(detail::windows_of(s, rank), x.extents).ok())
      for (Index& high : s.high) ++high;
    const WindowList windows = detail::windows_of(s, rank);
    const Extents made = detail::windowed_extents(x.extents, windows);
    FixedVector<int, max_dims> all;
    for (int d = 0; d < rank; ++d) all.push_back(d);
    if (tiles) x.sharding = tiled(rank, all);
    TensorDesc dy = tensor(made);
    if (tiles && random_.chance(50)) dy.sharding = x.sharding;
    const Whole<T> values = whole_input<T>(x, shape_, 1), source = whole_input<T>(dy, shape_, 2);
    const Extents xs = detail::row_major_strides(x.extents), ys = detail::row_major_strides(made);
    Whole<T> reduced(made, kind == Reduction::sum ? T{} : detail::identity<T>(kind)),
        scattered(x.extents), summed(x.extents), gathered(made);
    const Whole<T> others = whole_input<T>(x, shape_, 3);
    for_each_index(made, [&](const Extents& at) {
      const Index out = dot(at, ys);
      Index best = -1;
      for_each_index(s.size, [&](const Extents& t) {
        Index in = 0;
        for (int d = 0; d < rank; ++d) {
          const Window& w = windows[d];
          const Index position = at[d] * w.stride - w.low + t[d] * w.window_dilation;
          if (position < 0 || position % w.base_dilation != 0 ||
              position / w.base_dilation >= x.extents[d])
            return;
          in += position / w.base_dilation * xs[d];
        }
        const T v = values[in];
        if (kind == Reduction::sum) reduced[out] += v;
        if (kind == Reduction::max && v > reduced[out]) reduced[out] = v;
        if (kind == Reduction::min && v < reduced[out]) reduced[out] = v;
        if (best < 0 || v > values[best]) best = in;
        summed[in] += source[out];
      });
      if (best >= 0) scattered[best] += source[out];
      if (best >= 0) gathered[out] = others[best];
    });
    const Sharding out =
        tiles || random_.chance(50) ? x.sharding : some_sharding(random_, rank, shape_.rank());
    const DynamicTensor a = which == 1 ? make_input<T>(mesh_, x, 1) : stored(x, 1);
    TensorDesc other = x;
    if (which == 3) {
      other = tensor(x.extents);
      if (tiles && random_.chance(50)) other.sharding = x.sharding;
    }
    const DynamicTensor b = which == 0   ? make_input<T>(mesh_, dy, 2)
                            : which == 3 ? stored(other, 3)
                                         : stored(dy, 2);
    std::string text = "window " + to_string(s.size) + " stride " + to_string(s.stride) + " base " +
                       to_string(s.base_dilation) + " dilation " + to_string(s.window_dilation) +
                       " pad";
    for (int d = 0; d < rank; ++d)
      text += " " + std::to_string(s.low[d]) + "_" + std::to_string(s.high[d]);
    const PlanOptions options = within_.options(mesh_);
    if (which == 0)
      return trial<T>("reduce-window " + std::string(name_of(kind)) + " " + text, x, out)(
          [&] {
            if (kind == Reduction::sum) return reduce_window<Sum>(a, s, out);
            if (kind == Reduction::max) return reduce_window<Max>(a, s, out);
            return reduce_window<Min>(a, s, out);
          },
          noted(ops::ReduceWindow{.reduction = kind, .windows = windows, .out = out}.plan(
              {x}, {shape_, mesh_->process(), options})),
          reduced, tolerance(100));
    if (which == 1)
      return trial<T>("gradient of a windowed sum " + text + " of " + describe(dy, shape_), x, out)(
          [&] { return reduce_window_gradient<Sum>(a, b, s, out); },
          noted(ops::ReduceWindow{
              .reduction = Reduction::sum, .windows = turned(windows, x.extents), .out = out}
                    .plan({dy}, {shape_, mesh_->process(), options})),
          summed, tolerance(100));
    if (which == 3)
      return trial<T>("select and gather " + text + " of " + describe(other, shape_), x, out)(
          [&] { return select_and_gather<Max>(a, b, s, out); },
          noted(ops::SelectAndScatter{true, windows, out, true}.plan(
              {x, other}, {shape_, mesh_->process(), options})),
          gathered, tolerance(100));
    return trial<T>("select and scatter " + text + " of " + describe(dy, shape_), x, out)(
        [&] { return select_and_scatter<Max>(a, b, s, out); },
        noted(ops::SelectAndScatter{true, windows, out, false}.plan(
            {x, dy}, {shape_, mesh_->process(), options})),
        scattered, tolerance(100));
  }

 private:
  DynamicTensor stored(const TensorDesc& desc, std::uint64_t seed) {
    return within_.put(make_input<T>(mesh_, desc, seed));
  }
  template <class R>
  Trial<R> trial(const std::string& name, const TensorDesc& x, const Sharding& out) const {
    return Trial<R>(mesh_, std::string(name_of(dtype_of<T>)) + " on " + describe(shape_) + ": " +
                               name + ", " + describe(x, shape_) + " to " + describe(out, shape_));
  }
  /// Counts a plan that takes corners dimension by dimension.
  Plan noted(const Plan& plan) const {
    bool turns = false;
    for (const detail::Region& region : plan.regions)
      for (const detail::RegionDim& d : region)
        turns = turns || d.turn != detail::RegionDim::Turn::now;
    if (turns && mesh_->process() == 0) ++window_turns;
    return plan;
  }
  /// Every axis splits a spatial dimension of its own, as far as they go.
  Sharding tiled(int rank, const FixedVector<int, max_dims>& spatial) {
    Sharding s = Sharding::replicated(rank);
    for (int axis = 0; axis < shape_.rank(); ++axis)
      s[spatial[axis % spatial.size()]].push_back(axis);
    return s;
  }
  TensorDesc tensor(const Extents& extents) {
    return {dtype_of<T>, extents, some_sharding(random_, extents.size(), shape_.rank())};
  }
  static double tolerance(double terms) {
    return std::is_floating_point_v<T>
               ? terms * static_cast<double>(std::numeric_limits<T>::epsilon())
               : 0;
  }

  std::shared_ptr<MeshCore> mesh_;
  MeshShape shape_;
  Random& random_;
  WithinHalos within_;
};

/// Runs one case, all of it chosen by `random`. Collective over the mesh.
inline std::string some_window_case(const std::shared_ptr<MeshCore>& mesh, Random& random,
                                    bool within = false) {
  const bool convolves = random.chance(65);
  const auto run = [&](auto element) {
    WindowCases<decltype(element)> cases(mesh, random, within);
    return convolves ? cases.convolution() : cases.window();
  };
  switch (random.below(4)) {
    case 0:
      return run(std::int64_t{});
    case 1:
      return run(double{});
    case 2:
      return run(std::int32_t{});
    default:
      return run(float{});
  }
}

}  // namespace support
