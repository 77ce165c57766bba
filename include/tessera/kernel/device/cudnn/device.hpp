// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// cuDNN's handle and the device memory that the convolutions of a lane share; its errors.
///
///     CudnnDevice& device = cudnn_device();
///     const std::lock_guard lock(device.mutex);
///     device.begin();
///     void* workspace = device.workspace.get(bytes);
#include <Kokkos_Core.hpp>

#if defined(KOKKOS_ENABLE_CUDA) && defined(TESSERA_HAVE_CUDNN)
#include <cstddef>
#include <exception>
#include <mutex>
#include <string>

#include <cudnn_cnn.h>

#include <tessera/base/error.hpp>
#include <tessera/kernel/lane.hpp>

namespace tessera::detail {

inline void check_cudnn(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const std::string text = std::string(call) + " failed: " + cudnnGetErrorString(status);
  if (status == CUDNN_STATUS_ALLOC_FAILED)
    throw MemoryError(text + "; cuDNN could not have the memory it wanted");
  throw Error(text +
              "; the device's memory may be full, or its driver older than the CUDA this was "
              "built with");
}
/// cuDNN 9 numbers its errors in thousands, by kind.
inline bool is_not_supported(cudnnStatus_t status) {
  return static_cast<int>(status) / 1000 * 1000 == static_cast<int>(CUDNN_STATUS_NOT_SUPPORTED);
}

/// Device memory of a lane that grows and is kept, one for each purpose.
class CudnnMemory {
 public:
  explicit CudnnMemory(const Lane& lane) : lane_(lane) {}
  CudnnMemory(const CudnnMemory&) = delete;
  CudnnMemory& operator=(const CudnnMemory&) = delete;
  ~CudnnMemory() { free(); }
  void* get(std::size_t bytes) {
    if (bytes > size_) {
      free();
      try {
        memory_ = Kokkos::kokkos_malloc<Kokkos::CudaSpace>("tessera::convolve", bytes);
      } catch (const std::exception& error) {
        throw MemoryError("a convolution cannot have " + std::to_string(bytes) +
                          " bytes of device memory beside the tensors: " + error.what());
      }
      size_ = bytes;
    }
    return memory_;
  }

 private:
  void free() {
    if (memory_ == nullptr) return;
    lane_.wait();  // kernels may be reading it
    Kokkos::kokkos_free<Kokkos::CudaSpace>(memory_);
    memory_ = nullptr;
    size_ = 0;
  }

  const Lane& lane_;
  void* memory_ = nullptr;
  std::size_t size_ = 0;
};

/// A lane's cuDNN, which launches on its stream. Threads that share a lane share its memory:
/// holding the mutex while launching gives the order on the device too.
struct CudnnDevice {
  std::mutex mutex;
  CudnnMemory in, kernel, out, workspace, zero;
  cudnnHandle_t handle = nullptr;
  /// Most bytes that an algorithm may take beside the operands: up to 1 GiB. It does not depend on
  /// how much memory is free: a process chooses the same algorithm in each run.
  std::size_t most_workspace = 0;

  explicit CudnnDevice(const Lane& lane)
      : in(lane),
        kernel(lane),
        out(lane),
        workspace(lane),
        zero(lane),
        device_(lane.space().cuda_device()) {
    begin();
    std::size_t free = 0, total = 0;
    if (cudaMemGetInfo(&free, &total) != cudaSuccess) total = 0;
    most_workspace = total / 64 < (std::size_t{1} << 30) ? total / 64 : std::size_t{1} << 30;
    check_cudnn(cudnnCreate(&handle), "cudnnCreate");
    check_cudnn(cudnnSetStream(handle, lane.space().cuda_stream()), "cudnnSetStream");
  }
  CudnnDevice(const CudnnDevice&) = delete;
  CudnnDevice& operator=(const CudnnDevice&) = delete;
  ~CudnnDevice() { cudnnDestroy(handle); }

  /// Called before calls of cuDNN; a thread that has not called Kokkos may have another device set.
  void begin() const {
    const cudaError_t status = cudaSetDevice(device_);
    if (status != cudaSuccess)
      throw Error(std::string("cudaSetDevice failed: ") + cudaGetErrorString(status));
  }

 private:
  int device_;
};

/// Returns the cuDNN of this thread's lane.
inline CudnnDevice& cudnn_device() { return lane().own<CudnnDevice>(); }

}  // namespace tessera::detail
#endif
