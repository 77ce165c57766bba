// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Running sums, products, maxima, minima, anys and alls of a block, starting from what comes
/// before it.
///
///     scan(DType::f32, Reduction::sum, {.outer = 2, .n = 3}, from, nullptr, to);
///
/// Laws: the bits depend on the shape only; float sums run in double and are rounded at each
/// element, once.
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/elements.hpp>

namespace tessera {
namespace detail {

/// Runs along lines, up to `width` side by side.
template <Reduction R, class T> struct ScanLines {
  static constexpr Index width = kernels_on_host ? 64 : 1;
  using Total = typename Fold<R, T>::Total;
  using F = Fold<R, Total>;
  LocalScan work;
  Index strips;  // in a row of lines
  const T* from;
  const T* earlier;
  T* to;

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) lines(i / strips, i % strips * width);
  }
  KOKKOS_FUNCTION void lines(Index outer, Index column) const {
    const Index count = min_of(width, work.inner - column);
    Total total[width];
    for (Index j = 0; j < count; ++j) total[j] = F::start();
    for (Index part = work.earlier.lo; part < work.earlier.hi; ++part)
      for (Index j = 0; j < count; ++j)
        total[j] = F::join(
            total[j],
            static_cast<Total>(earlier[(outer * work.parts + part) * work.inner + column + j]));
    for (Index k = 0; k < work.n; ++k) {
      const Index row = work.reverse ? work.n - 1 - k : k;
      const Index at = (outer * work.n + row) * work.inner + column;
      for (Index j = 0; j < count; ++j) {
        const Total joined = F::join(total[j], static_cast<Total>(from[at + j]));
        to[at + j] = static_cast<T>(work.exclusive ? total[j] : joined);
        total[j] = joined;
      }
    }
  }
};

template <class T>
void scan_elements(Reduction reduction, const LocalScan& work, const void* from,
                   const void* earlier, void* to) {
  with_reduction<T>(reduction, [&](auto r) {
    using Lines = ScanLines<decltype(r)::value, Stored<T>>;
    const Index strips = ceil_div(work.inner, Lines::width);
    const Index each = saturating_mul(work.n, min_of(work.inner, Lines::width));
    launch("tessera::scan", work.n > 0 ? work.outer * strips : 0,
           max_of(1, 32768 / max_of(1, each)),
           Lines{work, strips, static_cast<const Stored<T>*>(from),
                 static_cast<const Stored<T>*>(earlier), static_cast<Stored<T>*>(to)});
  });
}
}  // namespace detail

/// Writes, for each element, the join of those up to it; `earlier` may be null when work.parts is
/// 0. Communication: none. Throws UsageError when elements of `type` have no such reduction.
inline void scan(DType type, Reduction reduction, const LocalScan& work, const void* from,
                 const void* earlier, void* to) {
  detail::row_kernels_of(type).scan(reduction, work, from, earlier, to);
}

}  // namespace tessera
