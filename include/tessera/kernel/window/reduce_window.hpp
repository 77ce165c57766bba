// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Pooling: sums, products, maxima and minima under windows that slide over a local block in all
/// its dimensions, and whether any or all elements are true there. base/local_window.hpp describes
/// the work.
///
///     // maxima of pairs: eight elements to four
///     const detail::LocalReduceWindow pairs{.input = {8}, .input_strides = {1}, .result = {4},
///                                   .windows = {{.size = 2, .stride = 2}}};
///     detail::reduce_window(DType::f32, Reduction::max, pairs, in, out);
///
/// Laws: a result joins its elements in row-major order, so that its bits do not depend on which
/// others are computed with it, nor on threads; padding and the holes of a dilated base are
/// skipped, and a window without elements gives identity(); NaN, integers and half types as in
/// kernel/reduce.hpp.
#include <tessera/base/dtype.hpp>
#include <tessera/base/local_window.hpp>
#include <tessera/base/reduction.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/elements.hpp>
#include <tessera/kernel/window/detail/window_rows.hpp>

namespace tessera::detail {

/// Host: an index is a piece of a row of results; device: a result.
template <Reduction R, class T> struct ReduceWindows {
  using Total = typename Fold<R, T>::Total;
  using F = Fold<R, Total>;
  WindowRows shape;
  const T* in;
  T* out;
  double scale;

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      if constexpr (kernels_on_host) {
        piece(i / shape.pieces, i % shape.pieces * WindowRows::most);
      } else {
        Total total = F::start();
        ResultTaps walk(shape, i);
        for (Index tap, from; walk.next(tap, from);)
          total = F::join(total, static_cast<Total>(in[from]));
        out[i] = scaled<T>(total, scale);
      }
    }
  }
  void piece(Index row, Index lo) const {
    const Index hi = min_of(shape.width(), lo + WindowRows::most);
    Total total[WindowRows::most];
    for (Index j = 0; j < hi - lo; ++j) total[j] = F::start();
    RowTaps walk(shape, row, lo, hi);
    for (RowTap t; walk.next(t);) {
      const T* p = in + t.from;
      Total* q = total + t.to;
      if (t.hop == 1 && t.step == 1) {
        with_wide_vectors([&]() TESSERA_INLINE {
          TESSERA_SIMD
          for (Index j = 0; j < t.count; ++j) q[j] = F::join(q[j], static_cast<Total>(p[j]));
        });
      } else {
        for (Index j = 0; j < t.count; ++j)
          q[j * t.step] = F::join(q[j * t.step], static_cast<Total>(p[j * t.hop]));
      }
    }
    T* to = out + row * shape.width() + lo;
    for (Index j = 0; j < hi - lo; ++j) to[j] = scaled<T>(total[j], scale);
  }
};

template <class T>
void reduce_window_elements(Reduction reduction, const LocalReduceWindow& work, const void* in,
                            void* out, double scale) {
  with_reduction<T>(reduction, [&](auto r) {
    using Bits = Stored<T>;
    const WindowRows shape = window_rows(work.input, work.input_strides, work.result, work.windows);
    launch("tessera::reduce_window", shape.indices(), shape.grain(),
           ReduceWindows<decltype(r)::value, Bits>{shape, static_cast<const Bits*>(in),
                                                   static_cast<Bits*>(out), scale});
  });
}

struct ReduceWindowKernels {
  void (*run)(Reduction reduction, const LocalReduceWindow& work, const void* in, void* out,
              double scale);
  template <class T> static constexpr bool has = true;
  template <class T> static constexpr ReduceWindowKernels of() {
    return {&reduce_window_elements<T>};
  }
};

/// Reduces; `out` holds volume(work.result) elements, row-major. A sum is multiplied by `scale`
/// before it is rounded to the element type (1 / taps makes a mean that counts padding; integers
/// are truncated); other reductions ignore `scale`. Communication: none. Throws UsageError when
/// elements of `type` have no such reduction.
inline void reduce_window(DType type, Reduction reduction, const LocalReduceWindow& work,
                          const void* in, void* out, double scale = 1) {
  kernels_of<ReduceWindowKernels>(type).run(reduction, work, in, out,
                                            reduction == Reduction::sum ? scale : 1);
}
}  // namespace tessera::detail
