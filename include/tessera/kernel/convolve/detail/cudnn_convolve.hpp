// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Convolutions on a CUDA device by cuDNN, on this thread's lane. A convolution
/// needs several of cuDNN's where the base is dilated or the padding differs between the ends
/// (cudnn_shape.hpp). The calls for a LocalConvolve are kept.
///
///     if (!cudnn_convolve(DType::f32, work, in, kernel, out)) ...   // cuDNN does not have it
///
/// Laws: a result is summed in any order; bfloat16 and half are summed in float, and float is not
/// rounded to fewer bits.
#include <tessera/kernel/convolve/detail/cudnn.hpp>

#if defined(KOKKOS_ENABLE_CUDA) && defined(TESSERA_HAVE_CUDNN)
#include <atomic>
#include <cstdint>

#include <tessera/kernel/convolve/detail/recent_convolutions.hpp>
#include <tessera/kernel/copy/copy.hpp>
#include <tessera/kernel/fill.hpp>

namespace tessera::detail {

class CudnnConvolve {
 public:
  /// The caller holds the device's mutex, as for run().
  [[gnu::cold]] CudnnConvolve(DType type, const LocalConvolve& work)
      : type_(type), work_(work), bytes_(static_cast<Index>(size_of(type))) {
    for (const bool dense : {false, true})
      if (make(cudnn_work(bytes_, work, dense))) return;
    convolutions_.clear();
  }

  bool is_for(DType type, const LocalConvolve& work) const {
    return type_ == type && work_ == work;
  }

  /// Launches all calls; returns false where cuDNN does not support them: then the contents of the
  /// result are undefined.
  bool run(const void* in, const void* kernel, void* out) const {
    if (convolutions_.empty() || refused_ || !is_aligned(in) || !is_aligned(kernel) ||
        !is_aligned(out))
      return false;
    CudnnDevice& device = cudnn_device();
    if (calls_.zeros) {
      constexpr Index one = 8;  // bytes of the largest element
      void* zero = device.zero.get(one);
      fill_zeros(zero, one);
      copy(*calls_.zeros, zero, out);
    }
    for (std::size_t i = 0; i < calls_.calls.size(); ++i) {
      const CudnnCall& call = calls_.calls[i];
      const void* x = operand(call.in_copy, in, call.in, device.in);
      const void* w = operand(call.kernel_copy, kernel, call.kernel, device.kernel);
      void* y = call.out_copy ? device.out.get(bytes(*call.out_copy))
                              : static_cast<std::byte*>(out) + call.out * bytes_;
      if (!convolutions_[of_call_[i]].run(device, x, w, y)) {
        refused_ = true;
        return false;
      }
      if (call.out_copy) copy(*call.out_copy, y, out);
    }
    return true;
  }

 private:
  /// Returns whether cuDNN supports all the calls, of which there is at least one.
  bool make(const CudnnWork& calls) {
    calls_ = calls;
    convolutions_.clear();
    of_call_.clear();
    for (const CudnnCall& call : calls_.calls) {
      std::size_t i = 0;
      while (i < convolutions_.size() && !convolutions_[i].is_for(call.shape)) ++i;
      if (i == convolutions_.size()) convolutions_.emplace_back(cudnn_device(), type_, call.shape);
      if (!convolutions_[i].usable()) return false;
      of_call_.push_back(i);
    }
    return !calls_.calls.empty();
  }

  static bool is_aligned(const void* p) {
    return reinterpret_cast<std::uintptr_t>(p) % cudnn_alignment == 0;
  }
  std::size_t bytes(const StridedCopy& copy) const {
    return static_cast<std::size_t>(volume(copy.extents) * bytes_);
  }
  const void* operand(const std::optional<StridedCopy>& copied, const void* from, Index offset,
                      CudnnMemory& memory) const {
    if (!copied) return static_cast<const std::byte*>(from) + offset * bytes_;
    void* to = memory.get(bytes(*copied));
    copy(*copied, from, to);
    return to;
  }
  void copy(const StridedCopy& box, const void* from, void* to) const {
    if (bytes_ == 2)
      copy_elements<2>(from, to, &box, 1);
    else if (bytes_ == 4)
      copy_elements<4>(from, to, &box, 1);
    else
      copy_elements<8>(from, to, &box, 1);
  }

  DType type_;
  LocalConvolve work_;
  Index bytes_;
  CudnnWork calls_;
  std::vector<CudnnConvolution> convolutions_;
  std::vector<std::size_t> of_call_;
  mutable std::atomic<bool> refused_ = false;  // while running, on any lane
};

/// Convolves, or returns false where cuDNN does not support it.
inline bool cudnn_convolve(DType type, const LocalConvolve& work, const void* in,
                           const void* kernel, void* out) {
  CudnnDevice& device = cudnn_device();
  const std::lock_guard lock(device.mutex);
  device.begin();
  return recent_convolution<CudnnConvolve>(type, work)->run(in, kernel, out);
}

}  // namespace tessera::detail
#endif
