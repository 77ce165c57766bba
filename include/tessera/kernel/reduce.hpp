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
#include <tessera/base/local_work.hpp>
#include <tessera/base/reduction.hpp>
#include <tessera/kernel/detail/reduce_host.hpp>
#include <tessera/kernel/device/reduce.hpp>
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

/// Makes sums -0 that are 0 and have no elements but -0.
template <class T, class Out> struct SignZeroSums {
  ReduceShape shape;
  const T* from;
  Out* to;
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index k = begin; k < end; ++k)
      if (to[k] == Out{} && all_negative(from + shape.kept.offset(k))) to[k] = -Out{};
  }
  KOKKOS_FUNCTION bool all_negative(const T* row) const {
    for (Index i = 0; i < shape.reduced.size; ++i) {
      const double x = static_cast<double>(row[shape.reduced.offset(i)]);
      if (x != 0.0 || Kokkos::copysign(1.0, x) > 0.0) return false;
    }
    return true;
  }
};
/// Makes sums of elements of `type` -0 where they have no elements but -0, so that a running sum
/// that continues from them keeps -0, as one that begins with -0 does. `wide`: the sums of half
/// types are of the wider type.
inline void sign_zero_sums(DType type, const LocalReduce& work, const void* from, void* to,
                           bool wide) {
  if (is_complex(type)) {  // the parts are real elements side by side
    LocalReduce parts = work;
    const auto split = [](Extents& extents, Extents& strides, bool last) {
      for (Index& stride : strides) stride *= 2;
      if (last) extents.push_back(2), strides.push_back(1);
    };
    split(parts.kept, parts.kept_strides, true);
    split(parts.reduced, parts.reduced_strides, false);
    return sign_zero_sums(part_type(type), parts, from, to, false);
  }
  with_real_type(type, [&](auto zero) {
    using T = decltype(zero);
    const ReduceShape shape = reduce_shape(work);
    const auto run = [&](auto out) {
      using Out = decltype(out);
      launch("tessera::sign_zero_sums", shape.kept.size, 4096,
             SignZeroSums<T, Out>{shape, static_cast<const T*>(from), static_cast<Out*>(to)});
    };
    if constexpr (partial_type(Reduction::sum, dtype_of<T>) != dtype_of<T>)
      if (wide) return run(element_of<partial_type(Reduction::sum, dtype_of<T>)>{});
    run(T{});
  });
}

/// Returns the reduction of no elements: 0 for a sum, 1 for a product, for max and min the infinity
/// or limit that never wins, false for any, true for all.
template <Element T> T identity(Reduction reduction) {
  return detail::with_reduction<T>(reduction, [](auto r) {
    return static_cast<T>(detail::Fold<decltype(r)::value, detail::Stored<T>>::start());
  });
}

struct ReduceKernels {
  void (*run)(Reduction reduction, const ReduceShape& shape, const void* from, void* to,
              double scale, bool wide);
  template <class T> static constexpr bool has = true;
  template <class T> static constexpr ReduceKernels of() { return {&reduce_elements<T>}; }
};

/// Reduces; `to` holds volume(kept) elements, row-major. A sum is multiplied by `scale` before it
/// is rounded to the element type (1/n makes a mean; integers are truncated); other reductions
/// ignore `scale`. With `wide`, `to` has elements of partial_type(reduction, type) or, for
/// integers, of another 64-bit type. Communication: none. Throws UsageError when elements of `type`
/// have no such reduction.
inline void reduce(DType type, Reduction reduction, const LocalReduce& work, const void* from,
                   void* to, double scale = 1, bool wide = false) {
  kernels_of<ReduceKernels>(type).run(reduction, detail::reduce_shape(work), from, to,
                                      reduction == Reduction::sum ? scale : 1, wide);
}
}  // namespace tessera::detail
