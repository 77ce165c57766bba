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

using ConvertKernel = void (*)(const void* from, void* to, Index n);
/// The kernel that converts T to the type in which T is computed, or back; none for wide types.
template <class T> constexpr ConvertKernel convert_kernel(bool widens) {
  using C = ComputeType<T>;
  if constexpr (std::is_same_v<T, C>)
    return nullptr;
  else
    return widens ? &convert_elements<T, C> : &convert_elements<C, T>;
}

/// Converts n elements of a half type to float. Communication: none.
inline void widen(DType type, const void* from, void* to, Index n) {
  detail::kernels_of(type).widen(from, to, n);
}
/// Converts n floats to a half type, each rounded to nearest. Communication: none.
inline void narrow(DType type, const void* from, void* to, Index n) {
  detail::kernels_of(type).narrow(from, to, n);
}
}  // namespace tessera::detail
