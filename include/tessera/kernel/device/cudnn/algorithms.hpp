// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// cuDNN 9's functions of a convolution and of its gradient by the kernel under the same names:
/// what its heuristics recommend, the memory that an algorithm wants, and the call. cudnn.hpp
/// chooses among the algorithms. (These functions of cuDNN are called legacy: they need no
/// description as a graph, and no compiler at run time.)
///
///     for (const CudnnChoice& c : cudnn_choices<CudnnForward>(handle, tensors, math)) ...
///
/// Laws: only algorithms that sum the products themselves are listed, neither Winograd's nor
/// Fourier's, and none that adds with atomics, in an order that differs between runs.
#include <Kokkos_Core.hpp>

#if defined(KOKKOS_ENABLE_CUDA) && defined(TESSERA_HAVE_CUDNN)
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <vector>

#include <cudnn_cnn.h>

#include <tessera/base/math.hpp>
#include <tessera/kernel/device/cudnn/device.hpp>

namespace tessera::detail {

/// The descriptors of a convolution: of its tensors, and of its window.
struct CudnnTensors {
  std::shared_ptr<cudnnTensorStruct> in, out;
  std::shared_ptr<cudnnFilterStruct> kernel;
  std::shared_ptr<cudnnConvolutionStruct> window;
  explicit operator bool() const { return in && out && kernel && window; }
};

/// An algorithm by its number, which each function counts for itself, and how it multiplies.
struct CudnnChoice {
  int algorithm = 0;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  std::size_t workspace = 0;
};

/// The memory and the scales of a call.
struct CudnnArguments {
  const void *in, *kernel, *out;  ///< the function writes one of them
  const void *one, *zero;
  void* workspace;
};

struct CudnnForward {
  using Algorithm = cudnnConvolutionFwdAlgo_t;
  using Found = cudnnConvolutionFwdAlgoPerf_t;
  static constexpr Algorithm plain = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
  static constexpr Algorithm allowed[] = {
      CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM,
      CUDNN_CONVOLUTION_FWD_ALGO_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_DIRECT};

  static cudnnStatus_t most(cudnnHandle_t handle, int* count) {
    return cudnnGetConvolutionForwardAlgorithmMaxCount(handle, count);
  }
  static cudnnStatus_t find(cudnnHandle_t handle, const CudnnTensors& t, int most, int* count,
                            Found* found) {
    return cudnnGetConvolutionForwardAlgorithm_v7(handle, t.in.get(), t.kernel.get(),
                                                  t.window.get(), t.out.get(), most, count, found);
  }
  static cudnnStatus_t workspace(cudnnHandle_t handle, const CudnnTensors& t, Algorithm algorithm,
                                 std::size_t* bytes) {
    return cudnnGetConvolutionForwardWorkspaceSize(handle, t.in.get(), t.kernel.get(),
                                                   t.window.get(), t.out.get(), algorithm, bytes);
  }
  static cudnnStatus_t run(cudnnHandle_t handle, const CudnnTensors& t, const CudnnChoice& choice,
                           const CudnnArguments& a) {
    return cudnnConvolutionForward(handle, a.one, t.in.get(), a.in, t.kernel.get(), a.kernel,
                                   t.window.get(), static_cast<Algorithm>(choice.algorithm),
                                   a.workspace, choice.workspace, a.zero, t.out.get(),
                                   const_cast<void*>(a.out));
  }
};

struct CudnnByKernel {
  using Algorithm = cudnnConvolutionBwdFilterAlgo_t;
  using Found = cudnnConvolutionBwdFilterAlgoPerf_t;
  static constexpr Algorithm plain = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
  static constexpr Algorithm allowed[] = {plain};  // numbers 0 and 3 add with atomics

  static cudnnStatus_t most(cudnnHandle_t handle, int* count) {
    return cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(handle, count);
  }
  static cudnnStatus_t find(cudnnHandle_t handle, const CudnnTensors& t, int most, int* count,
                            Found* found) {
    return cudnnGetConvolutionBackwardFilterAlgorithm_v7(
        handle, t.in.get(), t.out.get(), t.window.get(), t.kernel.get(), most, count, found);
  }
  static cudnnStatus_t workspace(cudnnHandle_t handle, const CudnnTensors& t, Algorithm algorithm,
                                 std::size_t* bytes) {
    return cudnnGetConvolutionBackwardFilterWorkspaceSize(
        handle, t.in.get(), t.out.get(), t.window.get(), t.kernel.get(), algorithm, bytes);
  }
  static cudnnStatus_t run(cudnnHandle_t handle, const CudnnTensors& t, const CudnnChoice& choice,
                           const CudnnArguments& a) {
    return cudnnConvolutionBackwardFilter(handle, a.one, t.in.get(), a.in, t.out.get(), a.out,
                                          t.window.get(), static_cast<Algorithm>(choice.algorithm),
                                          a.workspace, choice.workspace, a.zero, t.kernel.get(),
                                          const_cast<void*>(a.kernel));
  }
};

/// Returns the choices with at most so much workspace, the best first: the algorithms of `allowed`
/// that cuDNN's heuristics recommend, of them the first of `allowed` before the others, and at last
/// the plain one. All multiply as `wanted`, or by default where `or_default` says that this keeps
/// all bits; without it, those that are recommended for another way to multiply follow.
template <class Function>
std::vector<CudnnChoice> cudnn_choices(cudnnHandle_t handle, const CudnnTensors& tensors,
                                       cudnnMathType_t wanted, bool or_default,
                                       std::size_t most_workspace) {
  std::vector<CudnnChoice> choices;
  const auto add = [&](typename Function::Algorithm algorithm, cudnnMathType_t math) {
    CudnnChoice choice{static_cast<int>(algorithm), math};
    for (const CudnnChoice& c : choices)
      if (c.algorithm == choice.algorithm && c.math == choice.math) return;
    if (cudnnSetConvolutionMathType(tensors.window.get(), math) == CUDNN_STATUS_SUCCESS &&
        Function::workspace(handle, tensors, algorithm, &choice.workspace) ==
            CUDNN_STATUS_SUCCESS &&
        choice.workspace <= most_workspace)
      choices.push_back(choice);
  };
  check_cudnn(cudnnSetConvolutionMathType(tensors.window.get(), wanted),
              "cudnnSetConvolutionMathType");
  int most = 0, count = 0;
  check_cudnn(Function::most(handle, &most), "cudnnGetConvolution...AlgorithmMaxCount");
  std::vector<typename Function::Found> found(static_cast<std::size_t>(max_of(1, most)));
  if (Function::find(handle, tensors, static_cast<int>(found.size()), &count, found.data()) !=
      CUDNN_STATUS_SUCCESS)
    count = 0;
  for (const bool as_wanted : {true, false}) {
    const auto before = static_cast<std::ptrdiff_t>(choices.size());
    for (int i = 0; i < count; ++i) {
      const typename Function::Found& f = found[static_cast<std::size_t>(i)];
      if (f.status != CUDNN_STATUS_SUCCESS ||
          std::find(std::begin(Function::allowed), std::end(Function::allowed), f.algo) ==
              std::end(Function::allowed))
        continue;
      if (!as_wanted)
        add(f.algo, wanted);
      else if (f.mathType == wanted || (or_default && f.mathType == CUDNN_DEFAULT_MATH))
        add(f.algo, f.mathType);
    }
    std::stable_partition(choices.begin() + before, choices.end(), [](const CudnnChoice& c) {
      return c.algorithm == static_cast<int>(Function::allowed[0]);
    });
  }
  add(Function::plain, wanted);
  if (or_default) add(Function::plain, CUDNN_DEFAULT_MATH);
  return choices;
}

}  // namespace tessera::detail
#endif
