// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Softmax of the lines of a block, or its logarithm, and the sums of exponentials that a line's
/// parts have: a line is read three times while it is in the cache.
///
///     detail::softmax(DType::f32, false, {.outer = 2, .n = 3}, from, nullptr, nullptr, to);
///
/// Laws: the bits depend only on the shape; half types are computed in float and rounded once; sums
/// are kept in double. A NaN, an infinity, and a line of -infinities give what they give PyTorch.
#include <type_traits>

#include <tessera/base/local_work.hpp>
#include <tessera/kernel/elements.hpp>
#include <tessera/kernel/rows/detail/softmax_parts.hpp>

namespace tessera::detail {

template <class T>
void exp_sum_elements(const LocalScan& lines, const void* from, const void* greatest, void* to) {
  const SoftmaxLines<T> body(lines, static_cast<const T*>(from), static_cast<const T*>(greatest));
  body.sum("tessera::exp_sums", static_cast<ComputeType<T>*>(to));
}
template <class T>
void softmax_elements(bool logarithm, const LocalScan& lines, const void* from,
                      const void* greatest, const void* sums, void* to) {
  const SoftmaxLines<T> body(lines, static_cast<const T*>(from), static_cast<const T*>(greatest));
  body.softmax("tessera::softmax", logarithm, static_cast<const ComputeType<T>*>(sums),
               static_cast<T*>(to));
}

/// The kernels of a softmax, of real elements.
struct SoftmaxKernels {
  void (*sum)(const LocalScan& lines, const void* from, const void* greatest, void* to);
  void (*run)(bool logarithm, const LocalScan& lines, const void* from, const void* greatest,
              const void* sums, void* to);
  template <class T> static constexpr bool has = RealElement<T>;
  template <class T> static constexpr SoftmaxKernels of() {
    return {&exp_sum_elements<T>, &softmax_elements<T>};
  }
};

TESSERA_KERNEL_KIND(SoftmaxKernels)

/// Writes for each line the sum of exp(x - greatest), in float for half types; `greatest` and `to`
/// are outer x inner. Communication: none.
inline void exp_sums(DType type, const LocalScan& lines, const void* from, const void* greatest,
                     void* to) {
  kernels_of<SoftmaxKernels>(type).sum(lines, from, greatest, to);
}
/// Writes exp(x - greatest) / sum for each element, or its logarithm. Lines that are whole have
/// neither greatest elements nor sums: both are null. Communication: none.
inline void softmax(DType type, bool logarithm, const LocalScan& lines, const void* from,
                    const void* greatest, const void* sums, void* to) {
  kernels_of<SoftmaxKernels>(type).run(logarithm, lines, from, greatest, sums, to);
}
}  // namespace tessera::detail
