// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// cuDNN 9's convolutions as one object each, and the handle and device memory that they share.
/// cudnn_shape.hpp decides the calls. (These functions of cuDNN are called legacy: they need no
/// description as a graph, and no compiler at run time.)
///
///     const CudnnConvolution c(device, DType::f32, call.shape);
///     if (c.usable()) c.run(device, x, w, y);               // device.mutex is held
///
/// Laws: only algorithms that sum the products themselves are used, neither Winograd's nor
/// Fourier's: a NaN reaches only the results that read it, and small whole numbers are exact.
#include <Kokkos_Core.hpp>

#if defined(KOKKOS_ENABLE_CUDA) && defined(TESSERA_HAVE_CUDNN)
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <cudnn_cnn.h>

#include <tessera/base/dtype.hpp>
#include <tessera/base/error.hpp>
#include <tessera/kernel/convolve/detail/cudnn_shape.hpp>
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

  explicit CudnnDevice(const Lane& lane)
      : in(lane),
        kernel(lane),
        out(lane),
        workspace(lane),
        zero(lane),
        device_(lane.space().cuda_device()) {
    begin();
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

/// A convolution with descriptors and an algorithm, or none where cuDNN does not support it.
class CudnnConvolution {
 public:
  /// Most bytes that an algorithm may take beside the operands.
  static constexpr std::size_t most_workspace = std::size_t{1} << 28;

  [[gnu::cold]] CudnnConvolution(CudnnDevice& device, DType type, const CudnnShape& shape)
      : shape_(shape), type_(type) {
    in_ = tensor(shape.in, shape.in_strides);
    out_ = tensor(shape.out, shape.out_strides);
    make_kernel();
    make_window();
    usable_ = in_ && out_ && kernel_ && window_ && choose(device.handle);
  }

  bool usable() const { return usable_; }
  bool is_for(const CudnnShape& shape) const { return shape_ == shape; }

  /// Launches it; returns false where cuDNN, on a second request, does not support it.
  bool run(CudnnDevice& device, const void* in, const void* kernel, void* out) const {
    const double one = 1, zero = 0;  // scales are double for double elements, else float
    const float one_float = 1, zero_float = 0;
    const bool wide = type_ == DType::f64;
    void* workspace = workspace_ > 0 ? device.workspace.get(workspace_) : nullptr;
    const cudnnStatus_t status = cudnnConvolutionForward(
        device.handle, wide ? static_cast<const void*>(&one) : &one_float, in_.get(), in,
        kernel_.get(), kernel, window_.get(), algorithm_, workspace, workspace_,
        wide ? static_cast<const void*>(&zero) : &zero_float, out_.get(), out);
    if (is_not_supported(status)) return false;
    check_cudnn(status, "cudnnConvolutionForward");
    return true;
  }

 private:
  using Tensor = std::shared_ptr<cudnnTensorStruct>;
  using Kernel = std::shared_ptr<cudnnFilterStruct>;
  using Window = std::shared_ptr<cudnnConvolutionStruct>;

  cudnnDataType_t data() const {
    return type_ == DType::f64    ? CUDNN_DATA_DOUBLE
           : type_ == DType::f16  ? CUDNN_DATA_HALF
           : type_ == DType::bf16 ? CUDNN_DATA_BFLOAT16
                                  : CUDNN_DATA_FLOAT;
  }
  Tensor tensor(const CudnnShape::Dims& dims, const CudnnShape::Dims& strides) const {
    cudnnTensorDescriptor_t made = nullptr;
    check_cudnn(cudnnCreateTensorDescriptor(&made), "cudnnCreateTensorDescriptor");
    Tensor owner(made, cudnnDestroyTensorDescriptor);
    const bool have = cudnnSetTensorNdDescriptor(made, data(), dims.size(), dims.data(),
                                                 strides.data()) == CUDNN_STATUS_SUCCESS;
    return have ? owner : Tensor();
  }
  void make_kernel() {
    cudnnFilterDescriptor_t made = nullptr;
    check_cudnn(cudnnCreateFilterDescriptor(&made), "cudnnCreateFilterDescriptor");
    Kernel owner(made, cudnnDestroyFilterDescriptor);
    if (cudnnSetFilterNdDescriptor(
            made, data(), shape_.features_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
            shape_.kernel.size(), shape_.kernel.data()) == CUDNN_STATUS_SUCCESS)
      kernel_ = owner;
  }
  void make_window() {
    cudnnConvolutionDescriptor_t made = nullptr;
    check_cudnn(cudnnCreateConvolutionDescriptor(&made), "cudnnCreateConvolutionDescriptor");
    Window owner(made, cudnnDestroyConvolutionDescriptor);
    // Half types are summed in float.
    if (cudnnSetConvolutionNdDescriptor(
            made, shape_.padding.size(), shape_.padding.data(), shape_.strides.data(),
            shape_.dilations.data(), shape_.reversed ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION,
            type_ == DType::f64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT) == CUDNN_STATUS_SUCCESS &&
        cudnnSetConvolutionGroupCount(made, shape_.groups) == CUDNN_STATUS_SUCCESS &&
        cudnnSetConvolutionMathType(made, wanted_math()) == CUDNN_STATUS_SUCCESS)
      window_ = owner;
  }

  /// By default cuDNN rounds floats to 10 bits (TF32) for the tensor cores of Ampere and later;
  /// here floats keep all bits.
  cudnnMathType_t wanted_math() const {
    return type_ == DType::f32   ? CUDNN_FMA_MATH
           : type_ == DType::f64 ? CUDNN_DEFAULT_MATH
                                 : CUDNN_TENSOR_OP_MATH;
  }
  bool keeps_bits(cudnnMathType_t math) const {
    return type_ == DType::f32 ? math == CUDNN_FMA_MATH
                               : math != CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
  }
  static bool sums_products(cudnnConvolutionFwdAlgo_t algorithm) {
    return algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM ||
           algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM ||
           algorithm == CUDNN_CONVOLUTION_FWD_ALGO_GEMM ||
           algorithm == CUDNN_CONVOLUTION_FWD_ALGO_DIRECT;
  }

  /// Chooses the first wanted algorithm that cuDNN's heuristics recommend; else the one that needs
  /// no workspace.
  bool choose(cudnnHandle_t handle) {
    int most = 0, count = 0;
    check_cudnn(cudnnGetConvolutionForwardAlgorithmMaxCount(handle, &most),
                "cudnnGetConvolutionForwardAlgorithmMaxCount");
    std::vector<cudnnConvolutionFwdAlgoPerf_t> found(static_cast<std::size_t>(max_of(1, most)));
    if (cudnnGetConvolutionForwardAlgorithm_v7(handle, in_.get(), kernel_.get(), window_.get(),
                                               out_.get(), static_cast<int>(found.size()), &count,
                                               found.data()) == CUDNN_STATUS_SUCCESS)
      for (int i = 0; i < count; ++i) {
        const cudnnConvolutionFwdAlgoPerf_t& f = found[static_cast<std::size_t>(i)];
        if (f.status == CUDNN_STATUS_SUCCESS && sums_products(f.algo) && keeps_bits(f.mathType) &&
            take(handle, f.algo, f.mathType))
          return true;
      }
    constexpr cudnnConvolutionFwdAlgo_t plain = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
    return take(handle, plain, wanted_math()) ||
           (keeps_bits(CUDNN_DEFAULT_MATH) && take(handle, plain, CUDNN_DEFAULT_MATH));
  }
  bool take(cudnnHandle_t handle, cudnnConvolutionFwdAlgo_t algorithm, cudnnMathType_t math) {
    algorithm_ = algorithm;
    workspace_ = 0;
    return cudnnSetConvolutionMathType(window_.get(), math) == CUDNN_STATUS_SUCCESS &&
           cudnnGetConvolutionForwardWorkspaceSize(handle, in_.get(), kernel_.get(), window_.get(),
                                                   out_.get(), algorithm,
                                                   &workspace_) == CUDNN_STATUS_SUCCESS &&
           workspace_ <= most_workspace;
  }

  CudnnShape shape_;
  DType type_;
  Tensor in_, out_;
  Kernel kernel_;
  Window window_;
  cudnnConvolutionFwdAlgo_t algorithm_ = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
  std::size_t workspace_ = 0;
  bool usable_ = false;
};

}  // namespace tessera::detail
#endif
