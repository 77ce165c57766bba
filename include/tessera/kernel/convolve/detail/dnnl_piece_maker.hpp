// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Compiles one plain convolution with oneDNN: bands, their layouts and the copies to and from
/// them.
///
///     DnnlPiece piece;
///     if (DnnlPieceMaker(DType::f32, shape, false).make({a, b, c}, piece)) piece.run(in, kernel, out);
///
/// Laws: a band of input and result fits the second-level cache, if a few rows do.
#include <tessera/kernel/convolve/detail/dnnl_piece.hpp>
#include <tessera/kernel/convolve/detail/dnnl_strides.hpp>

#if defined(TESSERA_HAVE_DNNL)
#include <tessera/base/dtype.hpp>

namespace tessera::detail {

/// Compiles pieces; with `each_group`, pieces of one group, which are run for each group.
class DnnlPieceMaker {
 public:
  /// Bytes of input and result in a band: half of a common second-level cache.
  static constexpr Index band_bytes = Index{1} << 20;

  DnnlPieceMaker(DType type, const ConvolveShape& shape, bool each_group)
      : type_(type == DType::f16    ? dnnl_f16
              : type == DType::bf16 ? dnnl_bf16
                                    : dnnl_f32),
        bytes_(static_cast<Index>(size_of(type))),
        s_(shape),
        groups_(each_group ? 1 : shape.groups) {
    while (first_ < max_spatial - 1 && s_.dim[first_].elements == 1 &&
           s_.dim[first_].results == 1 && s_.dim[first_].taps == 1)
      ++first_;
  }

  struct Sides {
    ConvolveSide side[max_spatial];
  };

  /// Returns whether oneDNN supports the piece.
  [[gnu::cold]] bool make(const Sides& whole, DnnlPiece& piece) const {
    piece.bytes = bytes_;
    describe_kernel(whole, piece);
    if (!piece.user_kernel || !make_bands(whole, piece)) return false;
    if (piece.packed_kernel == piece.user_kernel) return true;
    piece.pack = make_dnnl_reorder(piece.user_kernel, piece.packed_kernel);
    return static_cast<bool>(piece.pack);
  }

 private:
  [[gnu::cold]] void describe_kernel(const Sides& whole, DnnlPiece& piece) const {
    DnnlDims strides;
    const auto add = [&](Index extent, Index stride) {
      piece.kernel_dims.push_back(extent);
      strides.push_back(extent == 1 ? 1 : stride);
    };
    if (groups_ > 1) add(groups_, s_.kernel_group);
    add(s_.out_features, s_.kernel_out);
    add(s_.in_features, s_.kernel_in);
    bool forwards = true;
    for (int d = first_; d < max_spatial; ++d) {
      const ConvolveSide& side = whole.side[d];
      piece.kernel += side.tap * s_.kernel_stride[d];
      add(side.taps, s_.kernel_stride[d] * side.tap_step);
      forwards = forwards && strides.back() > 0;
    }
    if (forwards) piece.user_kernel = DnnlLayout::strided(type_, piece.kernel_dims, strides);
    if (piece.user_kernel) return;
    const DnnlDims dense = row_major(piece.kernel_dims);
    piece.gather = DnnlCopy(piece.kernel_dims, strides, dense);
    piece.user_kernel = DnnlLayout::strided(type_, piece.kernel_dims, dense);
  }

  /// One band if no layout changes, else bands of equal size.
  [[gnu::cold]] bool make_bands(const Sides& whole, DnnlPiece& piece) const {
    const int all = shape_of(s_.batch, whole, piece);
    if (all < 0) return false;
    const DnnlBandShape& one = piece.shapes[0];
    const auto total = static_cast<Index>(one.user_in.bytes() + one.user_out.bytes());
    const Index threads = host_threads();
    const Index most = threads == 1 ? band_bytes : min_of(band_bytes, total / (2 * threads) + 1);
    if ((!one.read && !one.write && !one.spread) || total <= most) {
      piece.bands.push_back({all, in_before(whole), out_before(whole)});
      return true;
    }
    piece.shapes.clear();
    const ConvolveSide& along = whole.side[first_];
    const Index image = ceil_div(total, s_.batch),
                images = max_of(1, min_of(s_.batch, most / image));
    const Index span = (along.taps - 1) * along.dilation;
    const Index least = max_of(4, ceil_div(span, along.stride));
    const Index rows = image <= most ? along.count : max_of(least, along.count * most / image);
    const Index parts = max_of(1, along.count / rows);
    for (Index n = 0; n < s_.batch; n += images)
      for (Index part = 0; part < parts; ++part) {
        Sides cut = whole;
        cut.side[first_] = part_of_side(along, s_.dim[first_].elements, along.count * part / parts,
                                        along.count * (part + 1) / parts);
        const int shape = shape_of(min_of(images, s_.batch - n), cut, piece);
        if (shape < 0) return false;
        piece.bands.push_back(
            {shape, n * s_.in_batch + in_before(cut), n * s_.out_batch + out_before(cut)});
      }
    return true;
  }

  Index in_before(const Sides& sides) const {
    Index before = 0;
    for (int d = 0; d < max_spatial; ++d) before += sides.side[d].element * s_.in_stride[d];
    return before;
  }
  Index out_before(const Sides& sides) const {
    Index before = 0;
    for (int d = 0; d < max_spatial; ++d) before += sides.side[d].at * s_.out_stride[d];
    return before;
  }

  /// Returns the index of the piece's shape for such a band, compiled if it is new, or -1.
  [[gnu::cold]] int shape_of(Index images, const Sides& sides, DnnlPiece& piece) const {
    for (std::size_t i = 0; i < piece.shapes.size(); ++i)
      if (piece.shapes[i].is_for(images, sides.side)) return static_cast<int>(i);
    DnnlBandShape made;
    made.images = images;
    DnnlDims in{images, groups_ * s_.in_features}, out{images, groups_ * s_.out_features};
    DnnlDims in_strides{s_.in_batch, s_.in_feature}, out_strides{s_.out_batch, s_.out_feature};
    DnnlWindow window;
    for (int d = 0; d < max_spatial; ++d) {
      const ConvolveSide& side = made.side[d] = sides.side[d];
      if (d < first_) continue;
      in.push_back(side.elements);
      out.push_back(side.count);
      in_strides.push_back(s_.in_stride[d]);
      out_strides.push_back(s_.out_stride[d] * side.step);
      window.strides.push_back(side.stride);
      window.dilations.push_back(side.dilation);
      window.low.push_back(side.low);
      window.high.push_back(side.high);
    }
    in_strides = plain_strides(in, in_strides);
    out_strides = plain_strides(out, out_strides);
    made.user_in = DnnlLayout::strided(type_, in, in_strides);
    made.user_out = DnnlLayout::strided(type_, out, out_strides);
    const DnnlLayout dense = DnnlLayout::strided(type_, out, features_last(out));
    const DnnlCopy spread(out, features_last(out), out_strides);
    if (!made.user_out) {
      made.user_out = dense;
      made.spread = spread;
      out_strides = features_last(out);
    }
    if (!made.user_in || !made.user_out) return -1;
    const bool last = in_strides == features_last(in) && out_strides == features_last(out);
    for (const dnnl_data_type_t type : {type_, dnnl_f32}) {
      // The user's own layout where features are last, for which oneDNN is fast; else oneDNN's
      // choice.
      for (const bool own : {true, false}) {
        if (own && !last) continue;
        made.convolution = make_dnnl_convolution(
            own ? DnnlLayout::strided(type, in, in_strides) : DnnlLayout::any(type, in),
            piece.packed_kernel ? piece.packed_kernel : DnnlLayout::any(type, piece.kernel_dims),
            own ? DnnlLayout::strided(type, out, out_strides) : DnnlLayout::any(type, out), window);
        if (!made.convolution || !made.convolution.is_fast()) continue;
        made.out = made.convolution.layout(dnnl_query_dst_md);
        const bool rows = made.out == dense && bytes_ == 4 && out_strides.back() == 1;
        if (rows && !(made.user_out == dense)) {
          made.user_out = dense;
          made.spread = spread;
          made.rows = true;
        }
        return finish(piece, made);
      }
      // oneDNN converts half element by element, so it is not used for half without a convolution.
      if (type == dnnl_f32 || type == dnnl_f16) break;
    }
    return -1;
  }

  [[gnu::cold]] static int finish(DnnlPiece& piece, DnnlBandShape& made) {
    made.in = made.convolution.layout(dnnl_query_src_md);
    piece.packed_kernel = made.convolution.layout(dnnl_query_weights_md);
    if (!(made.in == made.user_in) && !(made.read = make_dnnl_reorder(made.user_in, made.in)))
      return -1;
    if (!(made.out == made.user_out) && !(made.write = make_dnnl_reorder(made.out, made.user_out)))
      return -1;
    piece.shapes.push_back(std::move(made));
    return static_cast<int>(piece.shapes.size()) - 1;
  }

  dnnl_data_type_t type_;
  Index bytes_;
  const ConvolveShape& s_;
  Index groups_;
  int first_ = 0;  // the first spatial dimension in use
};

}  // namespace tessera::detail
#endif
