// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A call of cuDNN's convolutions, as a value. shape.hpp makes the calls for a LocalConvolve,
/// cudnn.hpp carries them out.
///
///     CudnnShape{.function = CudnnFunction::by_kernel, ...}.written() == CudnnTensor::kernel;
#include <cstdint>
#include <optional>
#include <vector>

#include <tessera/base/local_work.hpp>
#include <tessera/kernel/detail/convolve_shape.hpp>

namespace tessera::detail {

/// A convolution, or its gradient by the kernel. Both have the tensors of the convolution: `in`
/// (cuDNN's x), `kernel` (w) and `out` (y), or gradients in their places.
enum class CudnnFunction : std::uint8_t { forward, by_kernel };
enum class CudnnTensor : std::uint8_t { kernel, out };

/// The properties for which a call is compiled. Extents are images, features and spatial ones; for
/// the kernel output features, input features of a group and taps.
struct CudnnShape {
  using Dims = FixedVector<int, max_spatial + 2>;
  using Spatial = FixedVector<int, max_spatial>;
  CudnnFunction function = CudnnFunction::forward;
  Dims in, in_strides, kernel, out, out_strides;
  Spatial padding, strides, dilations;
  int groups = 1;
  bool features_last = false;  ///< in the kernel, which has no gaps
  bool reversed = false;       ///< taps: CUDNN_CONVOLUTION, not CUDNN_CROSS_CORRELATION

  /// Returns the tensor that the function writes; it reads the others.
  CudnnTensor written() const {
    return function == CudnnFunction::forward ? CudnnTensor::out : CudnnTensor::kernel;
  }
  /// Returns the multiplications and additions, including those with padding.
  double flops() const {
    double product = 2;
    for (const int extent : out) product *= extent;
    for (int d = 1; d < kernel.size(); ++d) product *= kernel[d];
    return product;
  }
  bool operator==(const CudnnShape&) const = default;
};

/// One call. Where there is a copy, a tensor is copied to memory of the library's own without gaps
/// (the one that is written: from it), and the copy describes the user's memory.
struct CudnnCall {
  CudnnShape shape;
  Index in = 0, kernel = 0, out = 0;  ///< the user's elements before the first, without a copy
  std::optional<StridedCopy> in_copy, kernel_copy, out_copy;

  /// Returns the copy from the library's memory after the call, if there is one.
  const std::optional<StridedCopy>& copy_of_written() const {
    return shape.written() == CudnnTensor::out ? out_copy : kernel_copy;
  }
};

/// A whole convolution: zeros for all results (copied from a single one) if not all are written,
/// and then the calls, which are of one function.
struct CudnnWork {
  std::optional<StridedCopy> zeros;
  std::vector<CudnnCall> calls;
};

/// Which operands of a LocalConvolve are a function's tensors: its input, its kernel or its result.
/// A gradient by kernel reads the images and, as the LocalConvolve's kernel, the gradient of the
/// convolution's result, and its result is the gradient of the kernel. (A gradient by data is a
/// convolution.)
template <class Operand> struct CudnnOperands { Operand in, kernel, out; };
template <class Operand>
CudnnOperands<Operand> cudnn_operands(CudnnFunction function, const Operand& in,
                                      const Operand& kernel, const Operand& out) {
  return function == CudnnFunction::forward ? CudnnOperands<Operand>{in, kernel, out}
                                            : CudnnOperands<Operand>{in, out, kernel};
}

}  // namespace tessera::detail
