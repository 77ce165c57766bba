// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A call of cuDNN (call.hpp) as an object: its descriptors, and the algorithm that it uses
/// (algorithms.hpp).
///
///     const CudnnConvolution c(device, DType::f32, call.shape);
///     if (c.usable()) c.run(device, x, w, y);               // device.mutex is held
///
/// Laws: as in algorithms.hpp: a NaN of a tensor with padding reaches only the results that
/// read it, small whole numbers are exact, and equal calls on one machine have equal bits. (A NaN
/// of the kernel, or in a gradient by kernel one of the convolution's result, may reach results
/// that have it over padding, where cuDNN multiplies it by zero.)
#include <Kokkos_Core.hpp>

#if defined(KOKKOS_ENABLE_CUDA) && defined(TESSERA_HAVE_CUDNN)
#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

#include <tessera/base/dtype.hpp>
#include <tessera/kernel/device/cudnn/algorithms.hpp>
#include <tessera/kernel/device/cudnn/call.hpp>

namespace tessera::detail {

/// A convolution with descriptors and an algorithm, or none where cuDNN does not support it.
class CudnnConvolution {
 public:
  /// By the n-th choice; measurements compare them.
  [[gnu::cold]] CudnnConvolution(CudnnDevice& device, DType type, const CudnnShape& shape,
                                 std::size_t n = 0)
      : shape_(shape), type_(type) {
    tensors_.in = tensor(shape.in, shape.in_strides);
    tensors_.out = tensor(shape.out, shape.out_strides);
    make_kernel();
    make_window();
    if (!tensors_) return;
    const std::vector<CudnnChoice> choices = choices_of(device);
    usable_ = n < choices.size();
    if (!usable_) return;
    choice_ = choices[n];
    check_cudnn(cudnnSetConvolutionMathType(tensors_.window.get(), choice_.math),
                "cudnnSetConvolutionMathType");
  }

  bool usable() const { return usable_; }
  bool is_for(const CudnnShape& shape) const { return shape_ == shape; }
  const CudnnChoice& choice() const { return choice_; }

  /// Launches it, and so writes the tensor shape.written(); returns false where cuDNN, on a second
  /// request, does not support it.
  bool run(CudnnDevice& device, const void* in, const void* kernel, const void* out) const {
    const double one = 1, zero = 0;  // scales are double for double elements, else float
    const float one_float = 1, zero_float = 0;
    const bool wide = type_ == DType::f64;
    const CudnnArguments arguments{
        in,
        kernel,
        out,
        wide ? static_cast<const void*>(&one) : &one_float,
        wide ? static_cast<const void*>(&zero) : &zero_float,
        choice_.workspace > 0 ? device.workspace.get(choice_.workspace) : nullptr};
    const cudnnStatus_t status = with_function([&](auto function) {
      return decltype(function)::run(device.handle, tensors_, choice_, arguments);
    });
    if (is_not_supported(status)) return false;
    check_cudnn(status, "a convolution of cuDNN");
    return true;
  }

 private:
  cudnnDataType_t data() const {
    return type_ == DType::f64    ? CUDNN_DATA_DOUBLE
           : type_ == DType::f16  ? CUDNN_DATA_HALF
           : type_ == DType::bf16 ? CUDNN_DATA_BFLOAT16
                                  : CUDNN_DATA_FLOAT;
  }
  std::shared_ptr<cudnnTensorStruct> tensor(const CudnnShape::Dims& dims,
                                            const CudnnShape::Dims& strides) const {
    cudnnTensorDescriptor_t made = nullptr;
    check_cudnn(cudnnCreateTensorDescriptor(&made), "cudnnCreateTensorDescriptor");
    std::shared_ptr<cudnnTensorStruct> owner(made, cudnnDestroyTensorDescriptor);
    const bool have = cudnnSetTensorNdDescriptor(made, data(), dims.size(), dims.data(),
                                                 strides.data()) == CUDNN_STATUS_SUCCESS;
    return have ? owner : nullptr;
  }
  void make_kernel() {
    cudnnFilterDescriptor_t made = nullptr;
    check_cudnn(cudnnCreateFilterDescriptor(&made), "cudnnCreateFilterDescriptor");
    std::shared_ptr<cudnnFilterStruct> owner(made, cudnnDestroyFilterDescriptor);
    if (cudnnSetFilterNdDescriptor(
            made, data(), shape_.features_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW,
            shape_.kernel.size(), shape_.kernel.data()) == CUDNN_STATUS_SUCCESS)
      tensors_.kernel = owner;
  }
  void make_window() {
    cudnnConvolutionDescriptor_t made = nullptr;
    check_cudnn(cudnnCreateConvolutionDescriptor(&made), "cudnnCreateConvolutionDescriptor");
    std::shared_ptr<cudnnConvolutionStruct> owner(made, cudnnDestroyConvolutionDescriptor);
    // Half types are summed in float.
    if (cudnnSetConvolutionNdDescriptor(
            made, shape_.padding.size(), shape_.padding.data(), shape_.strides.data(),
            shape_.dilations.data(), shape_.reversed ? CUDNN_CONVOLUTION : CUDNN_CROSS_CORRELATION,
            type_ == DType::f64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT) == CUDNN_STATUS_SUCCESS &&
        cudnnSetConvolutionGroupCount(made, shape_.groups) == CUDNN_STATUS_SUCCESS &&
        cudnnSetConvolutionMathType(made, wanted_math()) == CUDNN_STATUS_SUCCESS)
      tensors_.window = owner;
  }

  /// By default cuDNN rounds floats to 10 bits (TF32) for the tensor cores of Ampere and later;
  /// here floats keep all bits.
  cudnnMathType_t wanted_math() const {
    return type_ == DType::f32   ? CUDNN_FMA_MATH
           : type_ == DType::f64 ? CUDNN_DEFAULT_MATH
                                 : CUDNN_TENSOR_OP_MATH;
  }

  template <class F> std::invoke_result_t<F, CudnnForward> with_function(F f) const {
    return shape_.function == CudnnFunction::forward ? f(CudnnForward()) : f(CudnnByKernel());
  }
  /// Returns the choices, the best first. Where they differ in their sums, all processes choose the
  /// same one: it is not measured which is faster.
  std::vector<CudnnChoice> choices_of(const CudnnDevice& device) const {
    return with_function([&](auto function) {
      return cudnn_choices<decltype(function)>(device.handle, tensors_, wanted_math(),
                                               type_ != DType::f32, device.most_workspace);
    });
  }

  CudnnShape shape_;
  DType type_;
  CudnnTensors tensors_;
  CudnnChoice choice_;
  bool usable_ = false;
};

}  // namespace tessera::detail
#endif
