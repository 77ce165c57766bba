// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A LocalConvolve as calls of cuDNN, as values: two or three spatial dimensions, the same padding
/// at both ends, a kernel without gaps, extents and strides that fit an int. cudnn.hpp calls cuDNN
/// itself.
///
///     for (const CudnnCall& call : cudnn_work(4, work, false).calls) ...   // none: not for cuDNN
///
/// Laws: each result that reads an element is written once by the calls, and no other result is; if
/// there are others, zeros are written first. A call reads and writes at multiples of
/// cudnn_alignment bytes, and no tensor of it spans more than cudnn_most elements.
#include <limits>
#include <optional>
#include <vector>

#include <tessera/base/local_work.hpp>
#include <tessera/kernel/convolve/detail/convolve_side.hpp>

namespace tessera::detail {

/// cuDNN's limit on extents, on strides, and on the elements that a tensor spans.
inline constexpr Index cudnn_most = std::numeric_limits<int>::max();
/// The alignment of operands in bytes; cuDNN's vector loads need it.
inline constexpr Index cudnn_alignment = 16;
/// Most calls for one convolution; the portable kernel does those that would need more.
inline constexpr int cudnn_most_calls = 64;

/// The properties for which a call is compiled. Extents are images, features and spatial ones; for
/// the kernel output features, input features of a group and taps.
struct CudnnShape {
  using Dims = FixedVector<int, max_spatial + 2>;
  using Spatial = FixedVector<int, max_spatial>;
  Dims in, in_strides, kernel, out, out_strides;
  Spatial padding, strides, dilations;
  int groups = 1;
  bool features_last = false;  ///< in the kernel, which has no gaps
  bool reversed = false;       ///< taps: CUDNN_CONVOLUTION, not CUDNN_CROSS_CORRELATION
  bool operator==(const CudnnShape&) const = default;
};

/// One call. Where there is a copy, an operand is copied to memory of the library's own without
/// gaps (a result: from it), and the copy describes the user's memory.
struct CudnnCall {
  CudnnShape shape;
  Index in = 0, kernel = 0, out = 0;  ///< the user's elements before the first, without a copy
  std::optional<StridedCopy> in_copy, kernel_copy, out_copy;
};

/// A whole convolution: zeros for all results (copied from a single one) if not all are written,
/// and then the calls.
struct CudnnWork {
  std::optional<StridedCopy> zeros;
  std::vector<CudnnCall> calls;
};

class CudnnWorkMaker {
 public:
  CudnnWorkMaker(Index bytes, const LocalConvolve& work, bool dense)
      : bytes_(bytes), s_(convolve_shape(work)), dense_(dense) {
    const bool by_feature = s_.groups == 1 || (s_.in_group == s_.in_features * s_.in_feature &&
                                               s_.out_group == s_.out_features * s_.out_feature);
    groups_ = by_feature ? s_.groups : 1;
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
  /// memory.
  struct Operand {
    Dims dims, strides;
    Index offset;
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
        if (!add_symmetric_sides(side, dim.elements, cudnn_most_calls, sides_[d], covered_))
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
    Operand in{{s_.batch, groups_ * s_.in_features},
               {s_.in_batch, s_.in_feature},
               s_.in_offset + group * s_.in_group};
    Operand out{{s_.batch, groups_ * s_.out_features},
                {s_.out_batch, s_.out_feature},
                s_.out_offset + group * s_.out_group};
    CudnnCall call;
    call.shape.groups = static_cast<int>(groups_);
    for (int d = 0; d < max_spatial; ++d) {
      const ConvolveSide& side = sides[d];
      in.offset += side.element * s_.in_stride[d];
      out.offset += side.at * s_.out_stride[d];
      if (d < first_) continue;
      in.dims.push_back(side.elements);
      in.strides.push_back(s_.in_stride[d]);
      out.dims.push_back(side.count);
      out.strides.push_back(s_.out_stride[d] * side.step);
      call.shape.padding.push_back(static_cast<int>(side.low));
      call.shape.strides.push_back(static_cast<int>(side.stride));
      call.shape.dilations.push_back(static_cast<int>(side.dilation));
    }
    const bool last = !dense_ && features_are_last(in.dims[1] > 1 ? in : out);
    call.shape.features_last = last;
    if (!set_kernel(group, sides, call)) return false;
    const Index images = min_of(images_at_once(in), images_at_once(out));
    if (images < 1) return false;
    for (Index n = 0; n < s_.batch; n += images) {
      if (static_cast<int>(work_.calls.size()) >= cudnn_most_calls) return false;
      CudnnCall part = call;
      in.dims[0] = out.dims[0] = min_of(images, s_.batch - n);
      part.shape.in = ints(in.dims);
      part.shape.out = ints(out.dims);
      part.shape.in_strides = set_operand(in, last, part.in, part.in_copy, false);
      part.shape.out_strides = set_operand(out, last, part.out, part.out_copy, true);
      work_.calls.push_back(part);
      in.offset += images * s_.in_batch;
      out.offset += images * s_.out_batch;
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
    return images;
  }

  /// Sets where an operand lies, or copies it; returns its strides.
  CudnnShape::Dims set_operand(const Operand& o, bool last, Index& offset,
                               std::optional<StridedCopy>& copy, bool result) const {
    const Dims own = packed(o.dims, last);
    const bool in_place = dense_ ? same(o.dims, o.strides, own) : ascends(o);
    if (in_place && o.offset * bytes_ % cudnn_alignment == 0) {
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

  /// Returns false for a kernel that is too large.
  bool set_kernel(Index group, const Sides& sides, CudnnCall& call) const {
    Dims dims{groups_ * s_.out_features, s_.in_features}, strides{s_.kernel_out, s_.kernel_in};
    Index offset = s_.kernel_offset + group * s_.kernel_group;
    bool forwards = false, backwards = false;
    for (int d = 0; d < max_spatial; ++d) {
      const Index stride = s_.kernel_stride[d] * sides[d].tap_step;
      offset += sides[d].tap * s_.kernel_stride[d];
      if (d < first_) continue;
      dims.push_back(sides[d].taps);
      strides.push_back(stride);
      if (sides[d].taps > 1) (stride < 0 ? backwards : forwards) = true;
    }
    if (backwards && !forwards) {
      call.shape.reversed = true;
      for (int d = 2; d < dims.size(); ++d) {
        offset += (dims[d] - 1) * strides[d];
        strides[d] = -strides[d];
      }
    }
    Index elements = 1;
    for (const Index extent : dims) elements = saturating_mul(elements, extent);
    if (elements > cudnn_most) return false;
    call.shape.kernel = ints(dims);
    const Dims own = packed(dims, call.shape.features_last);
    call.kernel = offset;
    if (same(dims, strides, own) && offset * bytes_ % cudnn_alignment == 0 &&
        (groups_ == 1 || s_.kernel_group == s_.out_features * own[0]))
      return true;
    call.kernel_copy = StridedCopy{.extents = {groups_, s_.out_features},
                                   .from_offset = offset,
                                   .from_strides = {s_.kernel_group, strides[0]},
                                   .to_strides = {s_.out_features * own[0], own[0]}};
    for (int d = 1; d < dims.size(); ++d) {
      call.kernel_copy->extents.push_back(dims[d]);
      call.kernel_copy->from_strides.push_back(strides[d]);
      call.kernel_copy->to_strides.push_back(own[d]);
    }
    return true;
  }

  Index bytes_;
  ConvolveShape s_;
  bool dense_;
  Index groups_ = 1;  // in a call
  int first_ = 0;     // the first spatial dimension that cuDNN sees
  bool covered_ = true;
  std::vector<ConvolveSide> sides_[max_spatial];
  CudnnWork work_;
};

/// Returns the calls that convolve elements of `bytes` bytes in aligned memory; empty where cuDNN
/// does not support it. Operands are used in place if their offsets allow it; with `dense` all have
/// the layout that cuDNN supports for every type, without gaps and with features before spatial
/// dimensions, and are copied where the user's layout differs.
inline CudnnWork cudnn_work(Index bytes, const LocalConvolve& work, bool dense) {
  return CudnnWorkMaker(bytes, work, dense).make();
}

}  // namespace tessera::detail
