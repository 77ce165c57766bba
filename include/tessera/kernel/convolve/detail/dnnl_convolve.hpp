// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Convolutions on the host by oneDNN. A dilated base is divided into plain convolutions, one for
/// each residue of the results (convolve_side.hpp). What has the form of a gradient by the kernel
/// is asked of oneDNN as one (dnnl_gradient.hpp). What oneDNN compiles for a LocalConvolve is kept.
///
///     if (!dnnl_convolve(DType::f32, work, in, kernel, out)) ...   // oneDNN does not have it
///
/// Laws: a result is summed in any order; bfloat16 and half are summed in float and rounded once.
#include <tessera/kernel/convolve/detail/dnnl_gradient.hpp>

#if defined(TESSERA_HAVE_DNNL)
#include <cstring>
#include <limits>

#include <tessera/kernel/detail/recent_convolutions.hpp>

namespace tessera::detail {

/// The number of multiplications and additions from which oneDNN is used.
inline constexpr Index dnnl_convolve_from = Index{1} << 16;

class DnnlConvolve {
 public:
  [[gnu::cold]] DnnlConvolve(DType type, const LocalConvolve& work)
      : type_(type),
        work_(work),
        bytes_(static_cast<Index>(size_of(type))),
        shape_(convolve_shape(work)),
        each_group_(!groups_are_features(work)) {
    usable_ = make_pieces();
    if (!usable_ && !each_group_ && work.groups > 1 &&
        work.flops() / work.groups >= dnnl_convolve_from) {
      // Of depthwise convolutions oneDNN has narrow windows alone; of each group by itself it has
      // all.
      clear();
      each_group_ = true;
      usable_ = make_pieces();
    }
    if (!usable_) clear();
  }

  bool usable() const { return usable_; }
  bool is_for(DType type, const LocalConvolve& work) const {
    return type_ == type && work_ == work;
  }

  void run(const void* in, const void* kernel, void* out) const {
    const auto* x = static_cast<const std::byte*>(in) + shape_.in_offset * bytes_;
    const auto* k = static_cast<const std::byte*>(kernel) + shape_.kernel_offset * bytes_;
    auto* y = static_cast<std::byte*>(out) + shape_.out_offset * bytes_;
    if (!covered_)
      launch_on_host("tessera::convolve",
                     shape_.batch * shape_.groups * shape_.out_features * shape_.dim[0].results *
                         shape_.dim[1].results,
                     max_of(1, 32768 / max_of(1, shape_.dim[2].results)),
                     Zeros{&shape_, bytes_, y});
    for (const DnnlPiece& piece : pieces_)
      for (Index g = 0; g < (each_group_ ? shape_.groups : 1); ++g)
        piece.run(x + g * shape_.in_group * bytes_, k + g * shape_.kernel_group * bytes_,
                  y + g * shape_.out_group * bytes_);
    for (const DnnlGradient& gradient : gradients_)
      for (Index g = 0; g < (!DnnlGradient::groups_are_features(shape_) ? shape_.groups : 1); ++g)
        gradient.run(x + g * shape_.in_group * bytes_, k + g * shape_.kernel_group * bytes_,
                     y + g * shape_.out_group * bytes_);
  }

  /// Whether groups follow one another along the features of all three tensors, as oneDNN needs it.
  static bool groups_are_features(const LocalConvolve& work) {
    return work.groups == 1 || (work.in.group == work.in_features * work.in.second &&
                                work.kernel.group == work.out_features * work.kernel.second &&
                                work.out.group == work.out_features * work.out.second);
  }

 private:
  /// An index is a row of results.
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

  [[gnu::cold]] void clear() {
    pieces_.clear();
    gradients_.clear();
    covered_ = true;
  }
  [[gnu::cold]] bool make_pieces() {
    const Index most = std::numeric_limits<int>::max();  // oneDNN counts extents in int
    const Index most_pieces = 64;  // the portable kernel is better for larger base dilations
    const ConvolveShape& s = shape_;
    if (s.batch > most || s.groups * max_of(s.in_features, s.out_features) > most) return false;
    if (s.batch * s.groups * s.in_features * s.out_features * s.results() * s.taps() == 0)
      return false;
    std::vector<ConvolveSide> sides[max_spatial];
    Index pieces = 1;
    for (int d = 0; d < max_spatial; ++d) {
      if (max_of(s.dim[d].elements, max_of(s.dim[d].results, s.dim[d].taps)) > most) return false;
      if (s.dim[d].by_result.step > most_pieces) return false;
      sides[d] = sides_of(s.dim[d], covered_);
      pieces *= static_cast<Index>(sides[d].size());
    }
    if (pieces > most_pieces) return false;
    const DnnlPieceMaker maker(type_, shape_, each_group_);
    for (const ConvolveSide& a : sides[0])
      for (const ConvolveSide& b : sides[1])
        for (const ConvolveSide& c : sides[2])
          if (!make_gradient({{a, b, c}}) && !maker.make({{a, b, c}}, pieces_.emplace_back()))
            return false;
    return true;
  }
  [[gnu::cold]] bool make_gradient(const DnnlGradient::Sides& sides) {
    DnnlGradient made;
    if (type_ != DType::f32 || !DnnlGradient::is_one(shape_) ||
        !made.make(dnnl_f32, shape_, !DnnlGradient::groups_are_features(shape_), sides))
      return false;
    gradients_.push_back(std::move(made));
    return true;
  }

  DType type_;
  LocalConvolve work_;
  Index bytes_;
  ConvolveShape shape_;
  bool each_group_;      // pieces are of one group, and run for each
  bool covered_ = true;  // a piece writes every result
  bool usable_ = false;
  std::vector<DnnlPiece> pieces_;
  std::vector<DnnlGradient> gradients_;
};

/// Convolves, or returns false where oneDNN does not support it.
inline bool dnnl_convolve(DType type, const LocalConvolve& work, const void* in, const void* kernel,
                          void* out) {
  const std::shared_ptr<const DnnlConvolve> made = recent_convolution<DnnlConvolve>(type, work);
  if (made->usable()) made->run(in, kernel, out);
  return made->usable();
}

}  // namespace tessera::detail
#endif
