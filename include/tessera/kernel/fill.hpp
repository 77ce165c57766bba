// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Fills a contiguous block with one value. A function of the index fills it in fill_index.hpp,
/// random numbers in random.hpp; both come with this header.
///
///     fill(DType::f32, p, n, 0.5);
#include <tessera/base/dtype.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/fill_index.hpp>
#include <tessera/kernel/functions/number.hpp>
#include <tessera/kernel/random.hpp>

namespace tessera {
namespace detail {
template <class T> struct Fill {
  T* out;
  T value;
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) out[i] = value;
  }
};
}  // namespace detail

/// Writes value to n elements; for integers truncated and saturated.
inline void fill(DType type, void* out, Index n, double value) {
  detail::with_basic_type(type, [&](auto element) {
    using T = decltype(element);
    detail::launch("tessera::fill", n, 32768,
                   detail::Fill<T>{static_cast<T*>(out), detail::from_double<T>(value)});
  });
}

}  // namespace tessera
