// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Sums, maxima and minima over some dimensions of a local block, and joining two such results.
/// What is kept and what is reduced is decided elsewhere (base/local_work.hpp).
///
///     // row sums of a 2 x 3 matrix
///     reduce(DType::f32, Reduction::sum, {.kept = {2}, .kept_strides = {3}, .reduced = {3},
///     .reduced_strides = {1}},
///            from, to);
///
/// Laws: the bits depend on the shape only, not on threads; a float sum of 10^7 elements is good to
/// 1e-6; reducing nothing gives identity(); a NaN anywhere is the maximum and the minimum (as in
/// NumPy); integer sums wrap.
#include <tessera/base/dtype.hpp>
#include <tessera/base/error.hpp>
#include <tessera/kernel/detail/reduce_device.hpp>
#include <tessera/kernel/detail/reduce_host.hpp>

namespace tessera {
namespace detail {

/// Calls f with the reduction as a compile-time constant.
template <class F> decltype(auto) with_reduction(Reduction reduction, F&& f) {
  switch (reduction) {
    case Reduction::sum:
      return f(std::integral_constant<Reduction, Reduction::sum>{});
    case Reduction::max:
      return f(std::integral_constant<Reduction, Reduction::max>{});
    case Reduction::min:
      return f(std::integral_constant<Reduction, Reduction::min>{});
    default:
      break;
  }
  throw UsageError("no kernel reduces by " + std::string(name_of(reduction)));
}

template <Reduction R, class T> struct Combine {
  const T* from;
  T* into;
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    TESSERA_SIMD
    for (Index i = begin; i < end; ++i) into[i] = Fold<R, T>::join(into[i], from[i]);
  }
};
}  // namespace detail

/// Returns what a reduction of no elements gives: 0 for a sum, and for max and min the infinity or
/// limit that loses.
template <class T> T identity(Reduction reduction) {
  return detail::with_reduction(
      reduction, [](auto r) { return detail::Fold<decltype(r)::value, T>::start(); });
}

/// Reduces; `to` holds volume(kept) elements, row-major. A sum is multiplied by `scale` before it
/// is rounded to the element type (1/n makes a mean; integers are truncated); max and min ignore
/// it. Communication: none.
inline void reduce(DType type, Reduction reduction, const LocalReduce& work, const void* from,
                   void* to, double scale = 1) {
  const detail::ReduceShape shape = detail::reduce_shape(work);
  if (reduction != Reduction::sum) scale = 1;
  detail::with_basic_type(type, [&](auto element) {
    using T = decltype(element);
    detail::with_reduction(reduction, [&](auto r) {
      constexpr Reduction R = decltype(r)::value;
      if (shape.kept.size == 0) return;
      if constexpr (kernels_on_host)
        detail::reduce_host(shape, from, to, scale, detail::reduce_part<R, T>,
                            sizeof(typename detail::Fold<R, T>::Total));
      else
        detail::reduce_device<R, typename detail::Fold<R, T>::Total>(
            shape, static_cast<const T*>(from), static_cast<T*>(to), scale);
    });
  });
}

/// Joins n elements into others: into[i] = join(into[i], from[i]).
inline void combine(DType type, Reduction reduction, const void* from, void* into, Index n) {
  detail::with_basic_type(type, [&](auto element) {
    using T = decltype(element);
    detail::with_reduction(reduction, [&](auto r) {
      detail::launch("tessera::combine", n, 32768,
                     detail::Combine<decltype(r)::value, T>{static_cast<const T*>(from),
                                                            static_cast<T*>(into)});
    });
  });
}

}  // namespace tessera
