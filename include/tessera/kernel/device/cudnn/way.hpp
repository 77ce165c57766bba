// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Which of cuDNN's functions makes a LocalConvolve, and in which layout: the ways, the best first.
/// A convolution and both of its gradients all arrive as a LocalConvolve; cuDNN's function for
/// convolutions takes a hundred times as long for a window as large as an image as its function for
/// the gradient by the kernel.
///
///     for (const CudnnWork& way : cudnn_ways(4, work)) ...    // the first that cuDNN supports
///
/// Laws: the ways depend on the arguments alone, so that all processes choose the same one, in each
/// run. A convolution has a way if one of its results reads an element, unless it would need too
/// many calls.
#include <limits>
#include <utility>
#include <vector>

#include <tessera/kernel/device/cudnn/shape.hpp>

namespace tessera::detail {

/// Returns whether a convolution is another one's gradient by its kernel. It then reaches over more
/// elements than it has results, and its input features are images: further apart than its batch.
inline bool is_gradient_by_kernel(const ConvolveShape& s) {
  Index reach = 1;
  for (const WindowReads& d : s.dim)
    reach = saturating_mul(reach, (d.taps - 1) * d.dilation / d.by_tap.base + 1);
  if (reach <= s.results()) return false;
  const Index inner = s.batch == 1 && s.groups > 1 ? s.in_group : s.in_batch;
  if (s.in_feature != inner) return s.in_feature > inner;
  return s.batch == 1 && (s.in_features > 1 || s.taps() > s.results());
}

/// Returns the function that is meant for a convolution. That for gradients by data is none: with
/// strides, on an H100 with cuDNN 9, a NaN reached results that do not read it.
inline CudnnFunction cudnn_function(const LocalConvolve& work) {
  return is_gradient_by_kernel(convolve_shape(work)) ? CudnnFunction::by_kernel
                                                     : CudnnFunction::forward;
}

/// What a way takes, in seconds, roughly (H100, cuDNN 9). cuDNN's kernels for float that do not
/// round to TF32 are four times as fast with features before spatial dimensions as with features
/// last, which only those for tensor cores are written for.
struct CudnnPrice {
  static constexpr double copied = 2.5e12;                     ///< bytes a second, read and written
  static constexpr double launch = 5e-6;                       ///< seconds
  static constexpr double first = 40e12, other = 10e12;        ///< float's operations a second
  static constexpr Index most_copied = cudnn_most_copied * 4;  ///< bytes of a copy worth its memory

  Index bytes;  ///< of an element

  double of(const CudnnWork& work) const {
    if (work.calls.empty()) return std::numeric_limits<double>::infinity();
    double seconds = 0;
    for (const CudnnCall& call : work.calls) {
      const double rate = are_features_first(call.shape) ? first : other;
      seconds += launch + call.shape.flops() / rate * static_cast<double>(bytes) / 4;
      for (const auto& copy : {call.in_copy, call.kernel_copy, call.out_copy})
        if (copy) seconds += of(*copy);
    }
    return seconds;
  }

 private:
  double of(const StridedCopy& copy) const {
    const Index size = saturating_mul(volume(copy.extents), bytes);
    if (size > most_copied) return std::numeric_limits<double>::infinity();
    return launch + 2 * static_cast<double>(size) / copied;
  }
  static bool are_features_first(const CudnnShape& shape) {
    return !shape.features_last && is_packed(shape.in, shape.in_strides) &&
           is_packed(shape.out, shape.out_strides);
  }
  static bool is_packed(const CudnnShape::Dims& dims, const CudnnShape::Dims& strides) {
    Index next = 1;
    for (int d = dims.size() - 1; d >= 0; next *= dims[d--])
      if (dims[d] > 1 && strides[d] != next) return false;
    return true;
  }
};

/// Returns the ways to convolve elements of `bytes` bytes, the best first: by the function that is
/// meant for it, then by that for convolutions; in place, then on copies with features before
/// spatial dimensions, which come first for wide elements where they are worth their time.
inline std::vector<CudnnWork> cudnn_ways(Index bytes, const LocalConvolve& work) {
  std::vector<CudnnWork> ways;
  const CudnnFunction meant = cudnn_function(work);
  const CudnnPrice price{bytes};
  std::vector<CudnnFunction> functions{meant};
  if (meant != CudnnFunction::forward) functions.push_back(CudnnFunction::forward);
  for (const CudnnFunction function : functions) {
    CudnnWork in_place = cudnn_work(bytes, work, function, false);
    CudnnWork dense = cudnn_work(bytes, work, function, true);
    if (bytes >= 4 && price.of(dense) < price.of(in_place)) std::swap(in_place, dense);
    for (CudnnWork* way : {&in_place, &dense})
      if (!way->calls.empty()) ways.push_back(std::move(*way));
  }
  return ways;
}

}  // namespace tessera::detail
