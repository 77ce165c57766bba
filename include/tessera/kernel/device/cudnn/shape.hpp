// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A LocalConvolve as calls of one of cuDNN's functions (call.hpp), as values: two or three
/// spatial dimensions, the same padding at both ends, a kernel without gaps, extents and strides
/// that fit an int. way.hpp chooses the function.
///
///     const CudnnFunction forward = CudnnFunction::forward;
///     for (const CudnnCall& call : cudnn_work(4, work, forward, false).calls) ...  // none: cannot
///
/// Laws: each result that reads an element is written once by the calls, and no other result is; if
/// there are others, zeros are written first. A call reads and writes at multiples of
/// cudnn_alignment bytes, and no tensor of it spans more than cudnn_most elements.
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/kernel/detail/convolve_side.hpp>
#include <tessera/kernel/device/cudnn/call.hpp>

namespace tessera::detail {

/// cuDNN's limit on extents, on strides, and on the elements that a tensor spans.
inline constexpr Index cudnn_most = std::numeric_limits<int>::max();
/// The alignment of operands in bytes; cuDNN's vector loads need it.
inline constexpr Index cudnn_alignment = 16;
/// Most calls for one convolution; the portable kernel does those that would need more.
inline constexpr int cudnn_most_calls = 64;

/// The bytes of a tensor's copy from which images are convolved in several calls.
inline constexpr Index cudnn_most_copied = Index{1} << 28;
/// Most calls into which images are divided for that.
inline constexpr Index cudnn_parts = 16;

class CudnnWorkMaker {
 public:
  CudnnWorkMaker(Index bytes, const LocalConvolve& work, CudnnFunction function, bool dense)
      : bytes_(bytes), s_(convolve_shape(work)), function_(function), dense_(dense) {
    const bool one_call = function == CudnnFunction::by_kernel
                              ? s_.in_group == s_.batch * s_.in_batch &&
                                    s_.kernel_group == s_.out_features * s_.kernel_out
                              : s_.in_group == s_.in_features * s_.in_feature &&
                                    s_.out_group == s_.out_features * s_.out_feature;
    groups_ = one_call ? s_.groups : 1;
    const WindowReads& d = s_.dim[0];
    first_ = d.elements == 1 && d.results == 1 && d.taps == 1 ? 1 : 0;
  }

  /// Returns all work, or none.
  CudnnWork make() {
    if (!make_sides()) return {};
    Index calls = s_.groups / groups_;
    for (const std::vector<ConvolveSide>& sides : sides_)
      calls = saturating_mul(calls, static_cast<Index>(sides.size()));
    if (calls > cudnn_most_calls) return {};
    for (Index g = 0; g < s_.groups; g += groups_)
      for (const ConvolveSide& a : sides_[0])
        for (const ConvolveSide& b : sides_[1])
          for (const ConvolveSide& c : sides_[2])
            if (!add(g, {a, b, c})) return {};
    if (!covered_) work_.zeros = zeros();
    return std::move(work_);
  }

 private:
  using Dims = FixedVector<Index, max_spatial + 2>;
  using Sides = FixedVector<ConvolveSide, max_spatial>;

  /// An operand: extents and strides of images, features and spatial dimensions, in the user's
  /// memory. A kernel's first dimension has a stride of its own from one group to the next.
  struct Operand {
    Dims dims, strides;
    Index offset, group;
  };

  bool make_sides() {
    if (s_.batch <= 0 || s_.groups <= 0 || s_.in_features <= 0 || s_.out_features <= 0)
      return false;
    for (int d = 0; d < max_spatial; ++d) {
      const WindowReads& dim = s_.dim[d];
      if (dim.elements <= 0 || dim.results <= 0 || dim.taps <= 0) return false;
      if (max_of(dim.elements, max_of(dim.results, dim.taps)) > cudnn_most) return false;
      if (dim.by_result.step > cudnn_most_calls) return false;
      for (const ConvolveSide& side : sides_of(dim, covered_))
        if (!add_symmetric_sides(side, dim.elements, function_ == CudnnFunction::by_kernel,
                                 cudnn_most_calls, sides_[d], covered_))
          return false;
      for (const ConvolveSide& side : sides_[d])
        if (max_of(side.stride, max_of(side.dilation, side.low)) > cudnn_most) return false;
    }
    return true;
  }

  StridedCopy zeros() const {
    StridedCopy all{.extents = {s_.batch, s_.groups, s_.out_features},
                    .from_strides = {0, 0, 0},
                    .to_offset = s_.out_offset,
                    .to_strides = {s_.out_batch, s_.out_group, s_.out_feature}};
    for (int d = 0; d < max_spatial; ++d) {
      all.extents.push_back(s_.dim[d].results);
      all.from_strides.push_back(0);
      all.to_strides.push_back(s_.out_stride[d]);
    }
    return all;
  }

  /// Adds the calls for some sides of one group, or of as many groups as a call can hold.
  bool add(Index group, const Sides& sides) {
    const Index g = groups_, ins = s_.in_features, outs = s_.out_features;
    Operand in{{s_.batch, g * ins},
               {s_.in_batch, s_.in_feature},
               s_.in_offset + group * s_.in_group,
               s_.in_group};
    Operand kernel{{g * outs, ins},
                   {s_.kernel_out, s_.kernel_in},
                   s_.kernel_offset + group * s_.kernel_group,
                   s_.kernel_group};
    Operand out{{s_.batch, g * outs},
                {s_.out_batch, s_.out_feature},
                s_.out_offset + group * s_.out_group,
                s_.out_group};
    const bool by_kernel = function_ == CudnnFunction::by_kernel;
    if (by_kernel) {  // images are features, and features the batch
      in.dims = {ins, g * s_.batch};
      in.strides = {s_.in_feature, s_.in_batch};
      kernel.dims = {ins, g * outs};
      kernel.strides = {s_.kernel_in, s_.kernel_out};
      out.dims = {g * outs, s_.batch};
      out.strides = {s_.out_feature, s_.out_batch};
    }
    CudnnCall call;
    call.shape.function = function_;
    call.shape.groups = static_cast<int>(g);
    for (int d = 0; d < max_spatial; ++d) {
      const ConvolveSide& side = sides[d];
      in.offset += side.element * s_.in_stride[d];
      kernel.offset += side.tap * s_.kernel_stride[d];
      out.offset += side.at * s_.out_stride[d];
      if (d < first_) continue;
      in.dims.push_back(side.elements);
      in.strides.push_back(s_.in_stride[d]);
      kernel.dims.push_back(side.taps);
      kernel.strides.push_back(s_.kernel_stride[d] * side.tap_step);
      out.dims.push_back(side.count);
      out.strides.push_back(s_.out_stride[d] * side.step);
      call.shape.padding.push_back(static_cast<int>(side.low));
      call.shape.strides.push_back(static_cast<int>(by_kernel ? side.dilation : side.stride));
      call.shape.dilations.push_back(static_cast<int>(by_kernel ? side.stride : side.dilation));
    }
    return add_calls(call, cudnn_operands(function_, in, kernel, out));
  }

  /// Adds the calls for these tensors, several where images are too many for one.
  bool add_calls(CudnnCall call, CudnnOperands<Operand> o) {
    const bool last = !dense_ && features_are_last(o.in.dims[1] > 1 ? o.in : o.out);
    call.shape.features_last = last;
    if (!set_kernel(o.kernel, call)) return false;
    const Index all = o.in.dims[0];
    const Index images = min_of(images_at_once(o.in), images_at_once(o.out));
    if (images < 1) return false;
    if (images < all && function_ == CudnnFunction::by_kernel) return false;  // sums over images
    for (Index n = 0; n < all; n += images) {
      if (static_cast<int>(work_.calls.size()) >= cudnn_most_calls) return false;
      CudnnCall part = call;
      o.in.dims[0] = o.out.dims[0] = min_of(images, all - n);
      part.shape.in = ints(o.in.dims);
      part.shape.out = ints(o.out.dims);
      part.shape.in_strides = set_operand(o.in, last, part.in, part.in_copy, false);
      part.shape.out_strides = set_operand(o.out, last, part.out, part.out_copy,
                                           part.shape.written() == CudnnTensor::out);
      work_.calls.push_back(part);
      o.in.offset += images * o.in.strides[0];
      o.out.offset += images * o.out.strides[0];
    }
    return true;
  }

  static CudnnShape::Dims ints(const Dims& values) {
    CudnnShape::Dims result;
    for (const Index value : values) result.push_back(static_cast<int>(value));
    return result;
  }
  /// Strides without gaps, with or without features (dimension 1) last.
  static Dims packed(const Dims& dims, bool last) {
    Dims strides(dims.size(), 1);
    Index next = last ? dims[1] : 1;
    for (int d = dims.size() - 1; d > 1; --d) {
      strides[d] = next;
      next *= dims[d];
    }
    if (!last) {
      strides[1] = next;
      next *= dims[1];
    }
    strides[0] = next;
    return strides;
  }
  /// Returns whether strides are the same except at extents of 1, where they mean nothing.
  static bool same(const Dims& dims, const Dims& a, const Dims& b) {
    for (int d = 0; d < dims.size(); ++d)
      if (dims[d] > 1 && a[d] != b[d]) return false;
    return true;
  }
  static bool features_are_last(const Operand& o) {
    for (int d = 2; d < o.dims.size(); ++d)
      if (o.dims[d] > 1 && o.strides[d] <= o.strides[1]) return false;
    return true;
  }
  /// Returns whether cuDNN supports these strides: all must be positive.
  static bool ascends(const Operand& o) {
    for (int d = 0; d < o.dims.size(); ++d)
      if (o.dims[d] > 1 && o.strides[d] <= 0) return false;
    return true;
  }
  /// Returns how many elements an image spans in memory; saturates.
  static Index span_of_image(const Operand& o) {
    Index last = 0;
    for (int d = 1; d < o.dims.size(); ++d)
      last = saturating_add(last, saturating_mul(o.dims[d] - 1, o.dims[d] > 1 ? o.strides[d] : 1));
    return saturating_add(last, 1);
  }

  bool is_in_place(const Operand& o, bool last) const {
    return (dense_ ? same(o.dims, o.strides, packed(o.dims, last)) : ascends(o)) &&
           o.offset * bytes_ % cudnn_alignment == 0;
  }

  /// Returns how many images a tensor may have, whether it is used in place or copied.
  Index images_at_once(const Operand& o) const {
    Index each = 1;
    for (int d = 1; d < o.dims.size(); ++d) each = saturating_mul(each, o.dims[d]);
    Index images = min_of(o.dims[0], cudnn_most / each);
    if (!dense_ && ascends(o)) {
      const Index rest = cudnn_most - span_of_image(o);
      if (rest < 0) return 0;
      if (o.dims[0] > 1) images = min_of(images, rest / o.strides[0] + 1);
    }
    if (images > 0 && function_ != CudnnFunction::by_kernel && !is_in_place(o, false))
      images = min_of(images,
                      max_of(cudnn_most_copied / bytes_ / each, ceil_div(o.dims[0], cudnn_parts)));
    return images;
  }

  /// Sets where an operand lies, or copies it; returns its strides.
  CudnnShape::Dims set_operand(const Operand& o, bool last, Index& offset,
                               std::optional<StridedCopy>& copy, bool result) const {
    const Dims own = packed(o.dims, last);
    if (is_in_place(o, last)) {
      offset = o.offset;
      for (const bool features_last : {last, !last})
        if (const Dims dense = packed(o.dims, features_last); same(o.dims, o.strides, dense))
          return ints(dense);
      Dims strides = o.strides;
      for (int d = 0; d < strides.size(); ++d)
        if (o.dims[d] == 1) strides[d] = span_of_image(o);
      return ints(strides);
    }
    copy.emplace();
    for (int d = 0; d < o.dims.size(); ++d) {
      copy->extents.push_back(o.dims[d]);
      copy->from_strides.push_back(result ? own[d] : o.strides[d]);
      copy->to_strides.push_back(result ? o.strides[d] : own[d]);
    }
    (result ? copy->to_offset : copy->from_offset) = o.offset;
    return ints(own);
  }

  /// Turns a kernel's taps around.
  static void turn(Operand& kernel) {
    for (int d = 2; d < kernel.dims.size(); ++d) {
      kernel.offset += (kernel.dims[d] - 1) * kernel.strides[d];
      kernel.strides[d] = -kernel.strides[d];
    }
  }

  /// Returns false for a kernel that is too large.
  bool set_kernel(Operand o, CudnnCall& call) const {
    bool forwards = false, backwards = false;
    for (int d = 2; d < o.dims.size(); ++d)
      if (o.dims[d] > 1) (o.strides[d] < 0 ? backwards : forwards) = true;
    call.shape.reversed = backwards && !forwards;
    if (call.shape.reversed) turn(o);
    Index elements = 1;
    for (const Index extent : o.dims) elements = saturating_mul(elements, extent);
    if (elements > cudnn_most) return false;
    call.shape.kernel = ints(o.dims);
    const Dims own = packed(o.dims, call.shape.features_last);
    const Index outs = o.dims[0] / groups_;
    call.kernel = o.offset;
    if (same(o.dims, o.strides, own) && o.offset * bytes_ % cudnn_alignment == 0 &&
        (groups_ == 1 || o.group == outs * own[0]))
      return true;
    StridedCopy& copy = call.kernel_copy.emplace();
    const bool result = call.shape.written() == CudnnTensor::kernel;
    Extents& user = result ? copy.to_strides : copy.from_strides;
    Extents& library = result ? copy.from_strides : copy.to_strides;
    copy.extents = {groups_, outs};
    user = {o.group, o.strides[0]};
    library = {outs * own[0], own[0]};
    (result ? copy.to_offset : copy.from_offset) = o.offset;
    for (int d = 1; d < o.dims.size(); ++d) {
      copy.extents.push_back(o.dims[d]);
      user.push_back(o.strides[d]);
      library.push_back(own[d]);
    }
    return true;
  }

  Index bytes_;
  ConvolveShape s_;
  CudnnFunction function_;
  bool dense_;
  Index groups_ = 1;  // in a call
  int first_ = 0;     // the first spatial dimension that cuDNN sees
  bool covered_ = true;
  std::vector<ConvolveSide> sides_[max_spatial];
  CudnnWork work_;
};

/// Returns the calls of a function that convolve elements of `bytes` bytes in aligned memory; empty
/// where cuDNN does not support it. Operands are used in place if their offsets allow it; with
/// `dense` all have the layout that cuDNN supports for every type, without gaps and with features
/// before spatial dimensions, and are copied where the user's layout differs.
inline CudnnWork cudnn_work(Index bytes, const LocalConvolve& work, CudnnFunction function,
                            bool dense) {
  return CudnnWorkMaker(bytes, work, function, dense).make();
}

}  // namespace tessera::detail
