// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Conversions between half types and float, in which half types are summed.
///
///     detail::widen(DType::f16, halves, floats, n);
///     detail::narrow(DType::f16, floats, halves, n);     // rounds to nearest
///
/// Laws: narrow after widen gives the original bits.
#include <type_traits>

#include <tessera/base/dtype.hpp>
#include <tessera/kernel/detail/convert_row.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/elements.hpp>

namespace tessera::detail {
template <class From, class To> struct ConvertElements {
  const From* from;
  To* to;
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    KOKKOS_IF_ON_HOST((convert_row(from + begin, end - begin, to + begin);))
    KOKKOS_IF_ON_DEVICE((for (Index i = begin; i < end; ++i) to[i] = static_cast<To>(from[i]);))
  }
};
template <class From, class To> void convert_elements(const void* from, void* to, Index n) {
  launch("tessera::convert", n, 32768,
         ConvertElements<From, To>{static_cast<const From*>(from), static_cast<To*>(to)});
}

/// Between half types and float.
struct NarrowKernels {
  void (*widen)(const void* from, void* to, Index n);
  void (*narrow)(const void* from, void* to, Index n);
  template <class T> static constexpr bool has = !std::is_same_v<T, ComputeType<T>>;
  template <class T> static constexpr NarrowKernels of() {
    return {&convert_elements<T, ComputeType<T>>, &convert_elements<ComputeType<T>, T>};
  }
};

/// Converts n elements of a half type to float. Communication: none.
inline void widen(DType type, const void* from, void* to, Index n) {
  kernels_of<NarrowKernels>(type).widen(from, to, n);
}
/// Converts n floats to a half type, each rounded to nearest. Communication: none.
inline void narrow(DType type, const void* from, void* to, Index n) {
  kernels_of<NarrowKernels>(type).narrow(from, to, n);
}
}  // namespace tessera::detail
