// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Convolutions on a CUDA device by cuDNN, on this thread's lane, and with them the gradients of
/// convolutions, for which cuDNN has functions of their own (way.hpp). A convolution needs
/// several calls where the base is dilated or the padding differs between the ends
/// (shape.hpp). The calls for a LocalConvolve are kept.
///
///     if (!cudnn_convolve(DType::f32, work, in, kernel, out)) ...   // cuDNN does not have it
///
/// Laws: a result is summed in any order, but in the same one each time; bfloat16 and half are
/// summed in float, and float is not rounded to fewer bits.
#include <tessera/kernel/device/cudnn/cudnn.hpp>

#if defined(KOKKOS_ENABLE_CUDA) && defined(TESSERA_HAVE_CUDNN)
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/kernel/copy/copy.hpp>
#include <tessera/kernel/detail/recent_convolutions.hpp>
#include <tessera/kernel/device/cudnn/way.hpp>
#include <tessera/kernel/fill.hpp>

namespace tessera::detail {

class CudnnConvolve {
 public:
  /// The caller holds the device's mutex, as for run().
  [[gnu::cold]] CudnnConvolve(DType type, const LocalConvolve& work)
      : type_(type),
        work_(work),
        bytes_(static_cast<Index>(size_of(type))),
        ways_(cudnn_ways(bytes_, work)) {
    made_ = make_next();
  }

  bool is_for(DType type, const LocalConvolve& work) const {
    return type_ == type && work_ == work;
  }

  /// Launches all calls; returns false where cuDNN does not support them: then the contents of the
  /// result are undefined.
  bool run(const void* in, const void* kernel, void* out) const {
    if (!is_aligned(in) || !is_aligned(kernel) || !is_aligned(out)) return false;
    while (const std::shared_ptr<const Made> made = current()) {
      if (launch(*made, in, kernel, out)) return true;
      refuse(made);
    }
    return false;
  }

 private:
  /// A way with the convolutions of its calls.
  struct Made {
    CudnnWork way;
    std::vector<CudnnConvolution> convolutions;
    std::vector<std::size_t> of_call;
  };

  bool launch(const Made& made, const void* in, const void* kernel, void* out) const {
    CudnnDevice& device = cudnn_device();
    if (made.way.zeros) {
      constexpr Index one = 8;  // bytes of the largest element
      void* zero = device.zero.get(one);
      fill_zeros(zero, one);
      copy(*made.way.zeros, zero, out);
    }
    for (std::size_t i = 0; i < made.way.calls.size(); ++i) {
      const CudnnCall& call = made.way.calls[i];
      const CudnnTensor written = call.shape.written();
      const auto user = cudnn_operands<const void*>(call.shape.function, in, kernel, out);
      const void* x = tensor(call.in_copy, user.in, call.in, device.in, false);
      const void* w = tensor(call.kernel_copy, user.kernel, call.kernel, device.kernel,
                             written == CudnnTensor::kernel);
      const void* y =
          tensor(call.out_copy, user.out, call.out, device.out, written == CudnnTensor::out);
      if (!made.convolutions[made.of_call[i]].run(device, x, w, y)) return false;
      if (const auto& back = call.copy_of_written())
        copy(*back, written == CudnnTensor::out ? y : w, out);
    }
    return true;
  }

  /// Returns the next way of which cuDNN supports all calls, or null: by the next choices of
  /// algorithms, or else the way after it.
  std::shared_ptr<const Made> make_next() const {
    for (; next_ < ways_.size(); ++next_, choice_ = 0) {
      const auto made = std::make_shared<Made>(Made{ways_[next_], {}, {}});
      if (make(*made, choice_++)) return made;
    }
    return nullptr;
  }
  /// Makes the n-th choice for all calls that have so many, and the first for the others.
  bool make(Made& made, std::size_t n) const {
    bool has = false;
    for (const CudnnCall& call : made.way.calls) {
      std::size_t i = 0;
      while (i < made.convolutions.size() && !made.convolutions[i].is_for(call.shape)) ++i;
      if (i == made.convolutions.size()) {
        CudnnConvolution convolution(cudnn_device(), type_, call.shape, n);
        has = has || convolution.usable();
        if (n > 0 && !convolution.usable())
          convolution = CudnnConvolution(cudnn_device(), type_, call.shape);
        if (!convolution.usable()) return false;
        made.convolutions.push_back(std::move(convolution));
      }
      made.of_call.push_back(i);
    }
    return has;
  }
  std::shared_ptr<const Made> current() const {
    const std::lock_guard lock(mutex_);
    return made_;
  }
  /// Goes on to the next choice or way, since cuDNN did not support this one when it was launched.
  void refuse(const std::shared_ptr<const Made>& made) const {
    const std::lock_guard lock(mutex_);
    if (made_ == made) made_ = make_next();
  }

  static bool is_aligned(const void* p) {
    return reinterpret_cast<std::uintptr_t>(p) % cudnn_alignment == 0;
  }
  std::size_t bytes(const StridedCopy& copy) const {
    return static_cast<std::size_t>(volume(copy.extents) * bytes_);
  }
  /// Returns where a tensor lies: in the user's memory, or in the library's, as a copy of the
  /// user's unless it is to be written.
  const void* tensor(const std::optional<StridedCopy>& copied, const void* user, Index offset,
                     CudnnMemory& memory, bool written) const {
    if (!copied) return static_cast<const std::byte*>(user) + offset * bytes_;
    void* to = memory.get(bytes(*copied));
    if (!written) copy(*copied, user, to);
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
  std::vector<CudnnWork> ways_;
  mutable std::mutex mutex_;  // runs on several lanes share what follows
  mutable std::size_t next_ = 0, choice_ = 0;
  mutable std::shared_ptr<const Made> made_;
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
