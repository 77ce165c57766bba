// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Convolutions on the host by oneDNN. A dilated base falls apart into plain convolutions, one for
/// each residue of the results (dnnl_side.hpp); where a layout is not oneDNN's own, bands of the
/// result that fit the second-level cache are brought into one that is, convolved, and brought
/// back. What is compiled for a LocalConvolve is kept.
///
///     if (!dnnl_convolve(DType::f32, work, in, kernel, out)) ...   // oneDNN does not have it
///
/// Laws: any order of a result's sum; bfloat16 and half are summed in float and rounded once.
#include <tessera/kernel/detail/dnnl_side.hpp>

#if defined(TESSERA_HAVE_DNNL)
#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>

#include <tessera/base/dtype.hpp>
#include <tessera/kernel/detail/copy_loops.hpp>
#include <tessera/kernel/detail/dnnl.hpp>
#include <tessera/kernel/detail/launch.hpp>

namespace tessera::detail {

/// What is computed at once: some images and results along the leading spatial dimension.
struct DnnlBand {
  int shape;
  Index in, out;  // elements before its first
};

/// A convolution that oneDNN has compiled, and the copies to and from its layouts (empty where the
/// user's is the same).
struct DnnlBandShape {
  Index images;
  DnnlSide side[max_spatial];
  DnnlLayout user_in, in, user_out, out;
  DnnlPrimitive convolution, read, write;
};

/// One plain convolution.
struct DnnlPiece {
  Index kernel = 0;  // elements before its first
  DnnlDims kernel_dims, kernel_strides;
  DnnlLayout user_kernel, packed_kernel;
  DnnlPrimitive pack;
  std::vector<DnnlBandShape> shapes;
  std::vector<DnnlBand> bands;
};

class DnnlConvolve {
 public:
  /// Bytes of input and result that are worked on at once: half of a common second-level cache.
  static constexpr Index band_bytes = Index{1} << 20;
  /// Residues beyond which a dilated base is left to the portable kernel.
  static constexpr Index most_pieces = 64;

  DnnlConvolve(DType type, const LocalConvolve& work)
      : type_(type),
        bytes_(static_cast<Index>(size_of(type))),
        shape_(convolve_shape(work)),
        each_group_(!groups_are_features(work)) {
    usable_ = plan();
  }

  bool usable() const { return usable_; }

  void run(const void* in, const void* kernel, void* out) const {
    const auto* x = static_cast<const std::byte*>(in) + shape_.in_offset * bytes_;
    const auto* k = static_cast<const std::byte*>(kernel) + shape_.kernel_offset * bytes_;
    auto* y = static_cast<std::byte*>(out) + shape_.out_offset * bytes_;
    if (!covered_) zero(y);
    for (const DnnlPiece& piece : pieces_)
      for (Index g = 0; g < (each_group_ ? shape_.groups : 1); ++g)
        run_piece(piece, x + g * shape_.in_group * bytes_,
                  k + (piece.kernel + g * shape_.kernel_group) * bytes_,
                  y + g * shape_.out_group * bytes_);
  }

  /// Whether groups follow one another along the features of all three, as the library has them.
  static bool groups_are_features(const LocalConvolve& work) {
    return work.groups == 1 || (work.in.group == work.in_features * work.in.second &&
                                work.kernel.group == work.out_features * work.kernel.second &&
                                work.out.group == work.out_features * work.out.second);
  }

 private:
  /// Host: an index is a band.
  struct Bands {
    const DnnlPiece* piece;
    Index bytes;
    const std::byte* in;
    const void* kernel;
    std::byte* out;
    void run(Index begin, Index end) const {
      for (Index i = begin; i < end; ++i) band(piece->bands[static_cast<std::size_t>(i)]);
    }
    void band(const DnnlBand& b) const {
      thread_local DnnlMemory in_memory, out_memory;
      const DnnlBandShape& s = piece->shapes[static_cast<std::size_t>(b.shape)];
      const void* x = in + b.in * bytes;
      void* y = out + b.out * bytes;
      void* packed_y = s.write ? out_memory.get(s.out.bytes()) : y;
      if (s.read) {
        void* packed_x = in_memory.get(s.in.bytes());
        s.read.run({{DNNL_ARG_FROM, &s.user_in, x}, {DNNL_ARG_TO, &s.in, packed_x}});
        x = packed_x;
      }
      s.convolution.run({{DNNL_ARG_SRC, &s.in, x},
                         {DNNL_ARG_WEIGHTS, &piece->packed_kernel, kernel},
                         {DNNL_ARG_DST, &s.out, packed_y}});
      if (s.write) s.write.run({{DNNL_ARG_FROM, &s.out, packed_y}, {DNNL_ARG_TO, &s.user_out, y}});
    }
  };

  /// Host: an index is a row of results.
  struct Zeros {
    const ConvolveShape* shape;
    Index bytes;
    std::byte* out;
    void run(Index begin, Index end) const {
      const ConvolveShape& s = *shape;
      for (Index i = begin; i < end; ++i) {
        Index rest = i;
        const Index b = rest % s.dim[1].results, a = (rest /= s.dim[1].results) % s.dim[0].results;
        const Index o = (rest /= s.dim[0].results) % s.out_features;
        const Index g = (rest /= s.out_features) % s.groups, n = rest / s.groups;
        std::byte* row = out + (n * s.out_batch + g * s.out_group + o * s.out_feature +
                                a * s.out_stride[0] + b * s.out_stride[1]) *
                                   bytes;
        for (Index c = 0; c < s.dim[2].results; ++c)
          std::memset(row + c * s.out_stride[2] * bytes, 0, static_cast<std::size_t>(bytes));
      }
    }
  };
  void zero(std::byte* out) const {
    launch("tessera::convolve",
           shape_.batch * shape_.groups * shape_.out_features * shape_.dim[0].results *
               shape_.dim[1].results,
           max_of(1, 32768 / max_of(1, shape_.dim[2].results)), Zeros{&shape_, bytes_, out});
  }

  void run_piece(const DnnlPiece& piece, const std::byte* in, const std::byte* kernel,
                 std::byte* out) const {
    thread_local DnnlMemory flipped, packed;
    const void* k = kernel;
    if (!(piece.kernel_strides == row_major(piece.kernel_dims)) && flips(piece)) {
      StridedCopy copy;
      for (int d = 0; d < piece.kernel_dims.size(); ++d) {
        copy.extents.push_back(piece.kernel_dims[d]);
        copy.from_strides.push_back(piece.kernel_strides[d]);
      }
      copy.to_strides = row_major_strides(copy.extents);
      void* to = flipped.get(static_cast<std::size_t>(volume(copy.extents) * bytes_));
      if (bytes_ == 2)
        copy_box(collapse_copy(copy), static_cast<const Word<2>*>(k), static_cast<Word<2>*>(to));
      else
        copy_box(collapse_copy(copy), static_cast<const Word<4>*>(k), static_cast<Word<4>*>(to));
      k = to;
    }
    if (piece.pack) {
      void* to = packed.get(piece.packed_kernel.bytes());
      piece.pack.run(
          {{DNNL_ARG_FROM, &piece.user_kernel, k}, {DNNL_ARG_TO, &piece.packed_kernel, to}});
      k = to;
    }
    const Bands bands{&piece, bytes_, in, k, out};
    const auto count = static_cast<Index>(piece.bands.size());
    if (count >= host_threads())
      launch("tessera::convolve", count, 1, bands);
    else
      bands.run(0, count);  // by oneDNN's threads
  }

  /// Returns whether a kernel has to be turned around before oneDNN can read it.
  static bool flips(const DnnlPiece& piece) {
    for (int d = 0; d < piece.kernel_dims.size(); ++d)
      if (piece.kernel_dims[d] > 1 && piece.kernel_strides[d] < 0) return true;
    return false;
  }

  // ---- what is compiled --------------------------------------------------------------------

  dnnl_data_type_t user_type() const {
    return type_ == DType::f16 ? dnnl_f16 : type_ == DType::bf16 ? dnnl_bf16 : dnnl_f32;
  }

  static DnnlDims row_major(const DnnlDims& dims) {
    DnnlDims strides(dims.size(), 1);
    for (int d = dims.size() - 2; d >= 0; --d) strides[d] = strides[d + 1] * dims[d + 1];
    return strides;
  }
  /// The same with dimension 1, the features, last.
  static DnnlDims features_last(const DnnlDims& dims) {
    DnnlDims strides(dims.size(), dims[1]);
    strides[1] = 1;
    for (int d = dims.size() - 2; d >= 2; --d) strides[d] = strides[d + 1] * dims[d + 1];
    strides[0] = strides[2] * dims[2];
    return strides;
  }
  static bool agree(const DnnlDims& dims, const DnnlDims& a, const DnnlDims& b) {
    for (int d = 0; d < dims.size(); ++d)
      if (dims[d] > 1 && a[d] != b[d]) return false;
    return true;
  }
  /// Makes the strides of extents 1, which mean nothing, those of a dense layout if it is one.
  static DnnlDims plain(const DnnlDims& dims, const DnnlDims& strides) {
    for (const DnnlDims& dense : {features_last(dims), row_major(dims)})
      if (agree(dims, strides, dense)) return dense;
    DnnlDims safe = strides;
    for (int d = 0; d < dims.size(); ++d)
      if (dims[d] == 1) safe[d] = 1;
    return safe;
  }

  bool plan() {
    // oneDNN counts extents in int.
    const Index most = std::numeric_limits<int>::max();
    const ConvolveShape& s = shape_;
    if (max_of(s.groups * s.in_features, s.groups * s.out_features) > most || s.batch > most)
      return false;
    std::vector<DnnlSide> sides[max_spatial];
    Index pieces = 1;
    for (int d = 0; d < max_spatial; ++d) {
      if (max_of(s.dim[d].elements, max_of(s.dim[d].results, s.dim[d].taps)) > most) return false;
      if (s.dim[d].by_result.step > most_pieces) return false;
      sides[d] = sides_of(s.dim[d], covered_);
      pieces *= static_cast<Index>(sides[d].size());
    }
    if (pieces > most_pieces) return false;
    for (const DnnlSide& a : sides[0])
      for (const DnnlSide& b : sides[1])
        for (const DnnlSide& c : sides[2])
          if (!plan_piece({a, b, c})) return false;
    return true;
  }

  /// The first spatial dimension there is.
  int leading() const {
    int d = 0;
    while (d < max_spatial - 1 && shape_.dim[d].elements == 1 && shape_.dim[d].results == 1 &&
           shape_.dim[d].taps == 1)
      ++d;
    return d;
  }

  struct Sides {
    DnnlSide side[max_spatial];
  };

  bool plan_piece(const Sides& whole) {
    const ConvolveShape& s = shape_;
    const int first = leading();
    DnnlPiece piece;
    if (!each_group_ && s.groups > 1) {
      piece.kernel_dims.push_back(s.groups);
      piece.kernel_strides.push_back(s.kernel_group);
    }
    piece.kernel_dims.push_back(s.out_features);
    piece.kernel_strides.push_back(s.kernel_out);
    piece.kernel_dims.push_back(s.in_features);
    piece.kernel_strides.push_back(s.kernel_in);
    for (int d = first; d < max_spatial; ++d) {
      piece.kernel += whole.side[d].tap * s.kernel_stride[d];
      piece.kernel_dims.push_back(whole.side[d].taps);
      piece.kernel_strides.push_back(s.kernel_stride[d] * whole.side[d].tap_step);
    }
    piece.user_kernel =
        DnnlLayout::strided(user_type(), piece.kernel_dims,
                            flips(piece) ? row_major(piece.kernel_dims) : piece.kernel_strides);
    if (!piece.user_kernel) return false;

    // All at once, if nothing has to be copied; else in bands.
    const int all = shape_of(piece, s.batch, whole);
    if (all < 0) return false;
    const DnnlBandShape& one = piece.shapes[0];
    const auto total = static_cast<Index>(one.user_in.bytes() + one.user_out.bytes());
    const Index most =
        host_threads() == 1 ? band_bytes : min_of(band_bytes, total / (2 * host_threads()) + 1);
    const Index image = ceil_div(total, s.batch);
    if ((!one.read && !one.write) || total <= most) {
      piece.bands.push_back({all, in_before(whole), out_before(whole)});
    } else {
      piece.shapes.clear();
      const Index images = max_of(1, min_of(s.batch, most / image));
      const DnnlSide& along = whole.side[first];
      const Index least = max_of(4, ceil_div((along.taps - 1) * along.dilation, along.stride));
      const Index rows = image <= most
                             ? along.count
                             : min_of(along.count, max_of(least, along.count * most / image));
      // Equal ones, so that the last is not a small rest.
      const Index parts = ceil_div(along.count, rows);
      for (Index n = 0; n < s.batch; n += images)
        for (Index part = 0; part < parts; ++part) {
          Sides cut = whole;
          cut.side[first] = part_of_side(along, s.dim[first].elements, along.count * part / parts,
                                         along.count * (part + 1) / parts);
          const int shape = shape_of(piece, min_of(images, s.batch - n), cut);
          if (shape < 0) return false;
          piece.bands.push_back(
              {shape, n * s.in_batch + in_before(cut), n * s.out_batch + out_before(cut)});
        }
    }
    if (!(piece.packed_kernel == piece.user_kernel)) {
      piece.pack = dnnl_reorder(piece.user_kernel, piece.packed_kernel);
      if (!piece.pack) return false;
    }
    pieces_.push_back(std::move(piece));
    return true;
  }

  Index in_before(const Sides& sides) const {
    Index before = 0;
    for (int d = 0; d < max_spatial; ++d) before += sides.side[d].element * shape_.in_stride[d];
    return before;
  }
  Index out_before(const Sides& sides) const {
    Index before = 0;
    for (int d = 0; d < max_spatial; ++d) before += sides.side[d].at * shape_.out_stride[d];
    return before;
  }

  /// Returns the number of the piece's shape for such a band, compiled if it is new, or -1.
  int shape_of(DnnlPiece& piece, Index images, const Sides& sides) const {
    for (std::size_t i = 0; i < piece.shapes.size(); ++i) {
      const DnnlBandShape& known = piece.shapes[i];
      bool same = known.images == images;
      for (int d = 0; d < max_spatial; ++d) same = same && known.side[d].reads_as(sides.side[d]);
      if (same) return static_cast<int>(i);
    }
    const ConvolveShape& s = shape_;
    const Index groups = each_group_ ? 1 : s.groups;
    DnnlDims in{images, groups * s.in_features}, out{images, groups * s.out_features};
    DnnlDims in_strides{s.in_batch, s.in_feature}, out_strides{s.out_batch, s.out_feature};
    DnnlWindow window;
    for (int d = leading(); d < max_spatial; ++d) {
      const DnnlSide& side = sides.side[d];
      in.push_back(side.elements);
      out.push_back(side.count);
      in_strides.push_back(s.in_stride[d]);
      out_strides.push_back(s.out_stride[d] * side.step);
      window.strides.push_back(side.stride);
      window.dilations.push_back(side.dilation);
      window.low.push_back(side.low);
      window.high.push_back(side.high);
    }
    DnnlBandShape made;
    made.images = images;
    for (int d = 0; d < max_spatial; ++d) made.side[d] = sides.side[d];
    in_strides = plain(in, in_strides);
    out_strides = plain(out, out_strides);
    made.user_in = DnnlLayout::strided(user_type(), in, in_strides);
    made.user_out = DnnlLayout::strided(user_type(), out, out_strides);
    if (!made.user_in || !made.user_out) return -1;
    const bool last = in_strides == features_last(in) && out_strides == features_last(out);
    for (const dnnl_data_type_t type : {user_type(), dnnl_f32}) {
      // The user's own layout where features are last, which oneDNN is fast in; else its choice.
      for (const bool own : {true, false}) {
        if (own && !last) continue;
        const bool fixed = static_cast<bool>(piece.packed_kernel);
        made.convolution = dnnl_convolution(
            own ? DnnlLayout::strided(type, in, in_strides) : DnnlLayout::any(type, in),
            fixed ? piece.packed_kernel : DnnlLayout::any(type, piece.kernel_dims),
            own ? DnnlLayout::strided(type, out, out_strides) : DnnlLayout::any(type, out), window);
        if (made.convolution && made.convolution.is_fast()) return finish(piece, made);
      }
      if (type == dnnl_f32) break;
    }
    return -1;
  }

  static int finish(DnnlPiece& piece, DnnlBandShape& made) {
    made.in = made.convolution.layout(dnnl_query_src_md);
    made.out = made.convolution.layout(dnnl_query_dst_md);
    piece.packed_kernel = made.convolution.layout(dnnl_query_weights_md);
    if (!(made.in == made.user_in) && !(made.read = dnnl_reorder(made.user_in, made.in))) return -1;
    if (!(made.out == made.user_out) && !(made.write = dnnl_reorder(made.out, made.user_out)))
      return -1;
    piece.shapes.push_back(std::move(made));
    return static_cast<int>(piece.shapes.size()) - 1;
  }

  DType type_;
  Index bytes_;
  ConvolveShape shape_;
  bool each_group_;      // groups of the batch are convolved one by one
  bool covered_ = true;  // every result is written by a piece
  bool usable_ = false;
  std::vector<DnnlPiece> pieces_;
};

/// Returns what is compiled for this work, from a list of the last 512.
inline std::shared_ptr<const DnnlConvolve> dnnl_convolve_of(DType type, const LocalConvolve& work) {
  struct Entry {
    DType type;
    LocalConvolve work;
    std::shared_ptr<const DnnlConvolve> made;
  };
  struct Cache {
    std::mutex mutex;
    std::vector<Entry> entries;  // the last used in front
  };
  static Cache& cache = *new Cache;  // outlives the threads that use it
  const std::lock_guard lock(cache.mutex);
  const auto found = std::find_if(cache.entries.begin(), cache.entries.end(),
                                  [&](const Entry& e) { return e.type == type && e.work == work; });
  if (found != cache.entries.end()) {
    std::rotate(cache.entries.begin(), found, found + 1);
  } else {
    if (cache.entries.size() >= 512) cache.entries.pop_back();
    cache.entries.insert(cache.entries.begin(),
                         {type, work, std::make_shared<const DnnlConvolve>(type, work)});
  }
  return cache.entries.front().made;
}

/// Convolves, or returns false where oneDNN does not have it. There is a result, and something to
/// sum.
inline bool dnnl_convolve(DType type, const LocalConvolve& work, const void* in, const void* kernel,
                          void* out) {
  const std::shared_ptr<const DnnlConvolve> made = dnnl_convolve_of(type, work);
  if (!made->usable()) return false;
  made->run(in, kernel, out);
  return true;
}

}  // namespace tessera::detail
#endif
