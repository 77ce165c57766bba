// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Sums, products, maxima and minima over some dimensions of a local block, and whether any or all
/// elements are true. base/local_work.hpp describes what is kept and what is reduced.
///
///     // row sums of a 2 x 3 matrix
///     const detail::LocalReduce rows{.kept = {2}, .kept_strides = {3}, .reduced = {3}, .reduced_strides = {1}};
///     detail::reduce(DType::f32, Reduction::sum, rows, from, to);
///
/// Laws: the bits depend only on the shape, not on threads; a float sum of 10^7 elements is
/// accurate to 1e-6; reducing nothing gives identity(); a NaN anywhere is the maximum and the
/// minimum (as in NumPy), and -0 is below +0; integers wrap; half types are summed in float and
/// double, and rounded once.
#include <tessera/base/dtype.hpp>
#include <tessera/kernel/detail/reduce_device.hpp>
#include <tessera/kernel/detail/reduce_host.hpp>
#include <tessera/kernel/elements.hpp>

namespace tessera::detail {

template <Reduction R, class T, class Out>
void reduce_to(const ReduceShape& shape, const void* from, void* to, double scale) {
  using Total = typename Accumulator<R, T, Out>::Total;
  if (shape.kept.size == 0) return;
  if constexpr (kernels_on_host)
    reduce_host(shape, from, to, scale, reduce_part<R, T, Out>, sizeof(Total), strip_width<T>);
  else
    reduce_device<R, Total>(shape, static_cast<const T*>(from), static_cast<Out*>(to), scale);
}
template <class T>
void reduce_elements(Reduction reduction, const ReduceShape& shape, const void* from, void* to,
                     double scale, bool wide) {
  with_reduction<T>(reduction, wide, [&](auto r) {
    constexpr Reduction R = decltype(r)::value;
    constexpr DType type = dtype_of<T>, wider = partial_type(R, type);
    if constexpr (wider != type)
      if (wide) return reduce_to<R, Stored<T>, element_of<wider>>(shape, from, to, scale);
    if constexpr (defined(R, type)) reduce_to<R, Stored<T>, Stored<T>>(shape, from, to, scale);
  });
}

/// Returns the reduction of no elements: 0 for a sum, 1 for a product, for max and min the infinity
/// or limit that never wins, false for any, true for all.
template <Element T> T identity(Reduction reduction) {
  return detail::with_reduction<T>(reduction, [](auto r) {
    return static_cast<T>(detail::Fold<decltype(r)::value, detail::Stored<T>>::start());
  });
}

/// Reduces; `to` holds volume(kept) elements, row-major. A sum is multiplied by `scale` before it
/// is rounded to the element type (1/n makes a mean; integers are truncated); other reductions
/// ignore `scale`. With `wide`, `to` has elements of partial_type(reduction, type) or, for
/// integers, of another 64-bit type. Communication: none. Throws UsageError when elements of `type`
/// have no such reduction.
inline void reduce(DType type, Reduction reduction, const LocalReduce& work, const void* from,
                   void* to, double scale = 1, bool wide = false) {
  detail::kernels_of(type).reduce(reduction, detail::reduce_shape(work), from, to,
                                  reduction == Reduction::sum ? scale : 1, wide);
}
}  // namespace tessera::detail
