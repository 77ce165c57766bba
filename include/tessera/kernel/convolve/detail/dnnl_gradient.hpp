// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The gradient of a convolution by its kernel, by oneDNN. As a LocalConvolve it has few results
/// and a window as large as an image: its batch are the forward convolution's input features, its
/// input features the images, its kernel the gradient of the forward result, and stride and
/// dilation have changed places. oneDNN has a primitive for it, which is several times as fast as
/// a convolution with such a window.
///
///     DnnlGradient gradient;
///     if (gradient.make(dnnl_f32, shape, false, {a, b, c})) gradient.run(in, kernel, out);
///
/// Laws: a run depends only on its arguments and on the number of threads.
#include <tessera/kernel/convolve/detail/dnnl_piece_maker.hpp>

#if defined(TESSERA_HAVE_DNNL)

namespace tessera::detail {

class DnnlGradient {
 public:
  using Sides = DnnlPieceMaker::Sides;

  /// Returns whether results are so few, and taps so many, that this is such a gradient.
  static bool is_one(const ConvolveShape& s) { return s.taps() > s.results() && s.taps() >= 64; }
  /// Returns whether groups follow one another along the features, as oneDNN needs it.
  static bool groups_are_features(const ConvolveShape& s) {
    return s.groups == 1 ||
           (s.in_group == s.batch * s.in_batch && s.kernel_group == s.out_features * s.kernel_out);
  }

  /// Returns whether oneDNN supports it; with `each_group`, it is run for each group.
  [[gnu::cold]] bool make(dnnl_data_type_t type, const ConvolveShape& s, bool each_group,
                          const Sides& sides) {
    const Index groups = each_group ? 1 : s.groups;
    bytes_ = type == dnnl_f32 ? 4 : 2;
    DnnlDims images{s.in_features, groups * s.batch};
    DnnlDims image_strides{s.in_feature, s.in_batch};
    DnnlDims errors{s.in_features, groups * s.out_features};
    DnnlDims error_strides{s.kernel_in, s.kernel_out};
    DnnlDims sums, sum_strides;
    if (groups > 1) sums.push_back(groups), sum_strides.push_back(s.out_group);
    for (const Index extent : {s.out_features, s.batch}) sums.push_back(extent);
    for (const Index stride : {s.out_feature, s.out_batch}) sum_strides.push_back(stride);
    DnnlWindow window;
    bool forwards = true;
    for (int d = 0; d < max_spatial; ++d) {
      const ConvolveSide& side = sides.side[d];
      in_ += side.element * s.in_stride[d];
      kernel_ += side.tap * s.kernel_stride[d];
      out_ += side.at * s.out_stride[d];
      if (d < max_spatial - 1 && images.size() == 2 && s.dim[d].elements == 1 &&
          s.dim[d].results == 1 && s.dim[d].taps == 1)
        continue;  // a leading dimension that is not in use
      images.push_back(side.elements);
      image_strides.push_back(s.in_stride[d]);
      errors.push_back(side.taps);
      error_strides.push_back(s.kernel_stride[d] * side.tap_step);
      forwards = forwards && (side.taps == 1 || error_strides.back() > 0);
      sums.push_back(side.count);
      sum_strides.push_back(s.out_stride[d] * side.step);
      window.strides.push_back(side.dilation);
      window.dilations.push_back(side.stride);
      window.low.push_back(side.low);
      window.high.push_back(side.high);
    }
    image_strides = plain_strides(images, image_strides);
    error_strides = plain_strides(errors, error_strides);
    for (int d = 0; d < sums.size(); ++d)
      if (sums[d] == 1) sum_strides[d] = 1;
    user_images_ = DnnlLayout::strided(type, images, image_strides);
    if (forwards) user_errors_ = DnnlLayout::strided(type, errors, error_strides);
    if (!user_errors_) {
      gather_ = DnnlCopy(errors, error_strides, row_major(errors));
      error_strides = row_major(errors);
      user_errors_ = DnnlLayout::strided(type, errors, error_strides);
    }
    user_sums_ = DnnlLayout::strided(type, sums, sum_strides);
    if (!user_sums_) {
      spread_ = DnnlCopy(sums, row_major(sums), sum_strides);
      user_sums_ = DnnlLayout::strided(type, sums, row_major(sums));
    }
    if (!user_images_ || !user_errors_ || !user_sums_) return false;
    const bool last =
        image_strides == features_last(images) && error_strides == features_last(errors);
    for (const bool own : {true, false}) {
      if (own && !last) continue;
      gradient_ = make_dnnl_gradient(own ? user_images_ : DnnlLayout::any(type, images),
                                     own ? user_errors_ : DnnlLayout::any(type, errors),
                                     DnnlLayout::any(type, sums), window);
      if (gradient_ && gradient_.is_fast()) return add_copies();
    }
    return false;
  }

  /// The pointers are to the first group's elements.
  void run(const std::byte* in, const std::byte* kernel, std::byte* out) const {
    thread_local DnnlMemory image_memory, gathered, error_memory, sum_memory, dense;
    const void* images = in + in_ * bytes_;
    const void* errors = kernel + kernel_ * bytes_;
    void* target = out + out_ * bytes_;
    if (read_images_) {
      void* to = image_memory.get(images_.bytes());
      read_images_.run({{DNNL_ARG_FROM, &user_images_, images}, {DNNL_ARG_TO, &images_, to}});
      images = to;
    }
    if (gather_) {
      void* to = gathered.get(gather_.bytes(bytes_));
      gather_.run(bytes_, errors, to);
      errors = to;
    }
    if (read_errors_) {
      void* to = error_memory.get(errors_.bytes());
      read_errors_.run({{DNNL_ARG_FROM, &user_errors_, errors}, {DNNL_ARG_TO, &errors_, to}});
      errors = to;
    }
    void* user_sums = spread_ ? dense.get(user_sums_.bytes()) : target;
    void* sums = write_ ? sum_memory.get(sums_.bytes()) : user_sums;
    gradient_.run({{DNNL_ARG_SRC, &images_, images},
                   {DNNL_ARG_DIFF_DST, &errors_, errors},
                   {DNNL_ARG_DIFF_WEIGHTS, &sums_, sums}});
    if (write_) write_.run({{DNNL_ARG_FROM, &sums_, sums}, {DNNL_ARG_TO, &user_sums_, user_sums}});
    if (spread_) spread_.run(bytes_, user_sums, target);
  }

 private:
  [[gnu::cold]] bool add_copies() {
    images_ = gradient_.layout(dnnl_query_src_md);
    errors_ = gradient_.layout(dnnl_query_diff_dst_md);
    sums_ = gradient_.layout(dnnl_query_diff_weights_md);
    const auto copy = [](const DnnlLayout& from, const DnnlLayout& to, DnnlPrimitive& made) {
      return from == to || (made = make_dnnl_reorder(from, to));
    };
    return copy(user_images_, images_, read_images_) && copy(user_errors_, errors_, read_errors_) &&
           copy(sums_, user_sums_, write_);
  }

  Index bytes_ = 4;
  Index in_ = 0, kernel_ = 0, out_ = 0;  // elements before the first
  DnnlLayout user_images_, images_, user_errors_, errors_, user_sums_, sums_;
  DnnlCopy gather_;  // to user_errors_, which is then dense
  DnnlCopy spread_;  // from user_sums_, which is then dense
  DnnlPrimitive read_images_, read_errors_, gradient_, write_;
};

}  // namespace tessera::detail
#endif
