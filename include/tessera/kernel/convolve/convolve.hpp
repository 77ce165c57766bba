// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Convolutions over local memory, with every setting of a window, in any layout.
/// base/local_window.hpp describes the work.
///
///     // the sums of neighbours: 16 elements to 14, one feature in and out
///     const detail::LocalConvolve sums{.input = {16}, .result = {14}, .windows = {{.size = 3}},
///                              .in = {0, 0, 16, 16, {1}}, .kernel = {0, 0, 3, 3, {1}},
///                              .out = {0, 0, 14, 14, {1}}};
///     detail::convolve(DType::f32, sums, x, ones, y);
///     detail::convolve(DType::f32, sums, x, ones, y, detail::Convolver::portable);
///
/// Laws: as in detail/convolve_blocks.hpp for Convolver::portable: a result's bits do not depend on
/// which others are computed with it. Convolver::fastest may sum in another order, which depends on
/// the machine, the library and the extents.
#include <cstdint>
#include <string>
#include <type_traits>

#include <tessera/base/dtype.hpp>
#include <tessera/base/error.hpp>
#include <tessera/base/local_window.hpp>
#include <tessera/kernel/convolve/detail/convolve_blocks.hpp>
#include <tessera/kernel/convolve/detail/dnnl_convolve.hpp>
#include <tessera/kernel/device/cudnn/convolve.hpp>
#include <tessera/kernel/elements.hpp>

namespace tessera::detail {

/// The convolver: a library where it is faster, or always Tessera's own kernel.
enum class Convolver : std::uint8_t { fastest, portable };

/// The number of multiplications and additions from which cuDNN is used (not measured, but about a
/// few launches' worth on a large device).
inline constexpr Index cudnn_convolve_from = Index{1} << 20;

/// Returns whether a library has convolved.
template <class T>
bool convolve_by_library([[maybe_unused]] const LocalConvolve& work,
                         [[maybe_unused]] const void* in, [[maybe_unused]] const void* kernel,
                         [[maybe_unused]] void* out) {
#if defined(TESSERA_HAVE_DNNL)
  if constexpr (kernels_on_host && RealElement<T> && sizeof(T) <= 4)
    return work.flops() >= dnnl_convolve_from && dnnl_convolve(dtype_of<T>, work, in, kernel, out);
#endif
#if defined(KOKKOS_ENABLE_CUDA) && defined(TESSERA_HAVE_CUDNN)
  if constexpr (std::is_same_v<KernelSpace, Kokkos::Cuda> && RealElement<T>)
    return work.flops() >= cudnn_convolve_from &&
           cudnn_convolve(dtype_of<T>, work, in, kernel, out);
#endif
  return false;
}

template <class T>
void convolve_elements(const LocalConvolve& work, bool portable, const void* in, const void* kernel,
                       void* out) {
  if (!portable && convolve_by_library<T>(work, in, kernel, out)) return;
  convolve_portable<T>(convolve_shape(work), static_cast<const T*>(in),
                       static_cast<const T*>(kernel), static_cast<T*>(out));
}

struct ConvolveKernels {
  void (*run)(const LocalConvolve& work, bool portable, const void* in, const void* kernel,
              void* out);
  template <class T> static constexpr bool has = NumberElement<T>;
  template <class T> static constexpr ConvolveKernels of() {
    return {&convolve_elements<ModularType<T>>};
  }
};

/// Convolves; the result is overwritten. It must not overlap the input or the kernel.
/// Communication: none. Throws UsageError for bool.
inline void convolve(DType type, const LocalConvolve& work, const void* in, const void* kernel,
                     void* out, Convolver by = Convolver::fastest) {
  if (!is_number(type))
    throw UsageError("elements of " + std::string(name_of(type)) +
                     " have no products; cast them to a number first");
  kernels_of<ConvolveKernels>(type).run(work, by == Convolver::portable, in, kernel, out);
}
}  // namespace tessera::detail
