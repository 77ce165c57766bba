// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One plain convolution by oneDNN, from and to any layout: as compiled (see dnnl_piece_maker.hpp),
/// in bands where a layout is not oneDNN's own.
///
///     piece.run(in, kernel, out);   // on the pointers given
///
/// Laws: each band writes its own results; a kernel is packed once in each run.
#include <tessera/kernel/detail/convolve_side.hpp>

#if defined(TESSERA_HAVE_DNNL)
#include <tessera/kernel/convolve/detail/dnnl.hpp>
#include <tessera/kernel/convolve/detail/feature_rows.hpp>
#include <tessera/kernel/copy/copy_loops.hpp>
#include <tessera/kernel/detail/launch.hpp>

namespace tessera::detail {

/// A copy between layouts that oneDNN does not support, with interlocking gaps or negative strides,
/// or for which it is slow.
class DnnlCopy {
 public:
  DnnlCopy() = default;
  DnnlCopy(const DnnlDims& dims, const DnnlDims& from, const DnnlDims& to) {
    for (int d = 0; d < dims.size(); ++d) {
      copy_.extents.push_back(dims[d]);
      copy_.from_strides.push_back(from[d]);
      copy_.to_strides.push_back(to[d]);
    }
  }
  explicit operator bool() const { return !copy_.extents.empty(); }
  std::size_t bytes(Index each) const {
    return static_cast<std::size_t>(volume(copy_.extents) * each);
  }
  void run(Index each, const void* from, void* to) const {
    const CopyBox box = collapse_copy(copy_);
    if (each == 2)
      copy_box(box, static_cast<const Word<2>*>(from), static_cast<Word<2>*>(to));
    else
      copy_box(box, static_cast<const Word<4>*>(from), static_cast<Word<4>*>(to));
  }
  /// Copies where `from` is dense with features last, and each feature is a row in `to`.
  void run_rows(const float* from, float* to) const {
    const Extents &n = copy_.extents, &stride = copy_.to_strides;
    // Rows that continue each other are one.
    int last = n.size() - 1;
    Index pixels = n[last], pieces = n[0];
    for (; last > 2 && stride[last - 1] == pixels; --last) pixels *= n[last - 1];
    for (int d = 2; d < last; ++d) pieces *= n[d];
    for (Index i = 0; i < pieces; ++i) {
      Index rest = i, offset = 0;
      for (int d = last - 1; d >= 2; --d) {
        offset += rest % n[d] * stride[d];
        rest /= n[d];
      }
      feature_rows(from + i * pixels * n[1], pixels, n[1], to + offset + rest * stride[0],
                   stride[1]);
    }
  }

 private:
  StridedCopy copy_;
};

/// One band: some images, and results along the leading spatial dimension, that are computed
/// together.
struct DnnlBand {
  int shape;
  Index in, out;  // elements before its first
};

/// A convolution that oneDNN has compiled, and the copies to and from its layouts (empty where
/// these are the user's).
struct DnnlBandShape {
  Index images = 0;
  ConvolveSide side[max_spatial];
  DnnlLayout user_in, in, user_out, out;
  DnnlPrimitive convolution, read, write;
  DnnlCopy spread;    // from user_out, which is dense with features last, to the user's layout
  bool rows = false;  // copies rows of one feature

  bool is_for(Index count, const ConvolveSide* sides) const {
    bool same = images == count;
    for (int d = 0; d < max_spatial; ++d) same = same && side[d].reads_as(sides[d]);
    return same;
  }
};

struct DnnlPiece {
  Index bytes = 4;   // size of an element
  Index kernel = 0;  // the offset of the first element
  DnnlDims kernel_dims;
  DnnlLayout user_kernel, packed_kernel;
  DnnlCopy gather;  // to user_kernel, which is then dense
  DnnlPrimitive pack;
  std::vector<DnnlBandShape> shapes;
  std::vector<DnnlBand> bands;

  /// Convolves all bands; the pointers are to the first group's elements.
  void run(const std::byte* in, const std::byte* kernel_elements, std::byte* out) const {
    thread_local DnnlMemory gathered, packed;
    const void* from = kernel_elements + kernel * bytes;
    if (gather) {
      void* to = gathered.get(gather.bytes(bytes));
      gather.run(bytes, from, to);
      from = to;
    }
    if (pack) {
      void* to = packed.get(packed_kernel.bytes());
      pack.run({{DNNL_ARG_FROM, &user_kernel, from}, {DNNL_ARG_TO, &packed_kernel, to}});
      from = to;
    }
    const Run body{this, in, from, out};
    const auto count = static_cast<Index>(bands.size());
    if (count >= host_threads())
      launch_on_host("tessera::convolve", count, 1, body);
    else
      body.run(0, count);  // on oneDNN's threads
  }

 private:
  /// An index is a band.
  struct Run {
    const DnnlPiece* piece;
    const std::byte* in;
    const void* kernel;
    std::byte* out;
    void run(Index begin, Index end) const {
      for (Index i = begin; i < end; ++i) band(piece->bands[static_cast<std::size_t>(i)]);
    }
    void band(const DnnlBand& b) const {
      thread_local DnnlMemory in_memory, out_memory, dense_memory;
      const DnnlBandShape& s = piece->shapes[static_cast<std::size_t>(b.shape)];
      const void* x = in + b.in * piece->bytes;
      void* target = out + b.out * piece->bytes;
      void* y = s.spread ? dense_memory.get(s.user_out.bytes()) : target;
      void* packed = s.write ? out_memory.get(s.out.bytes()) : y;
      if (s.read) {
        void* to = in_memory.get(s.in.bytes());
        s.read.run({{DNNL_ARG_FROM, &s.user_in, x}, {DNNL_ARG_TO, &s.in, to}});
        x = to;
      }
      s.convolution.run({{DNNL_ARG_SRC, &s.in, x},
                         {DNNL_ARG_WEIGHTS, &piece->packed_kernel, kernel},
                         {DNNL_ARG_DST, &s.out, packed}});
      if (s.write) s.write.run({{DNNL_ARG_FROM, &s.out, packed}, {DNNL_ARG_TO, &s.user_out, y}});
      if (s.spread && s.rows)
        s.spread.run_rows(static_cast<const float*>(y), static_cast<float*>(target));
      else if (s.spread)
        s.spread.run(piece->bytes, y, target);
    }
  };
};

}  // namespace tessera::detail
#endif
