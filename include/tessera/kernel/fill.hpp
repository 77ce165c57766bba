// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Fills a contiguous block with one value. fill_index.hpp fills it with a function of the index,
/// random.hpp with random numbers; both come with this header.
///
///     detail::fill(DType::f32, p, n, 0.5);
#include <cstring>

#include <tessera/base/dtype.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/fill_index.hpp>
#include <tessera/kernel/functions/number.hpp>
#include <tessera/kernel/random.hpp>

namespace tessera::detail {
template <class T> struct Fill {
  T* out;
  T value;
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) out[i] = value;
  }
};

/// Writes value to n elements.
template <Element T> void fill(T* out, Index n, std::type_identity_t<T> value) {
  detail::launch("tessera::fill", n, 32768, detail::Fill<T>{out, value});
}
/// Writes zeros to a block of any element type: zero is zero bytes in every type.
inline void fill_zeros(void* out, Index bytes) {
  if (bytes == 0) return;  // an empty block may have no memory
  if constexpr (kernels_on_host)
    std::memset(out, 0, static_cast<std::size_t>(bytes));
  else
    fill(static_cast<std::uint8_t*>(out), bytes, std::uint8_t{0});
}
/// Fills with a value of a type that is known at run time; for integers it is truncated and
/// saturated.
template <int = dtypes> void fill(DType type, void* out, Index n, double value) {
  with_type(type, [&](auto element) {
    using T = decltype(element);
    fill<T>(static_cast<T*>(out), n, detail::from_double<T>(value));
  });
}
}  // namespace tessera::detail
