// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Running sums, products, maxima, minima, anys and alls of a block, which continue from earlier
/// elements; and running joins by any associative function.
///
///     detail::scan(DType::f32, Reduction::sum, {.outer = 2, .n = 3}, from, nullptr, to);
///     detail::scan<float>(f, identity, {.outer = 2, .n = 3}, from, nullptr, to);
///
/// Laws: the bits depend only on the shape; float sums run in double and are rounded at each
/// element, once; the running sum of -0 alone is -0.
#include <tessera/base/local_work.hpp>
#include <tessera/base/reduction.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/device/scan.hpp>
#include <tessera/kernel/elements.hpp>
#include <tessera/kernel/rows/detail/scan_rows.hpp>

namespace tessera::detail {

/// How a reduction joins two values, to results of type Out.
template <Reduction R, class T, class Out = T> struct ReductionJoin {
  using Total = typename Accumulator<R, T, Out>::Total;
  bool exclusive;  ///< the first element is the reduction of none
  /// The sum of none is 0; a sum that begins with the first element begins from -0, which keeps -0.
  KOKKOS_FORCEINLINE_FUNCTION Total start() const {
    if constexpr (R == Reduction::sum && !std::is_integral_v<Total>)
      if (!exclusive) return -Total{};
    return Fold<R, Total>::start();
  }
  KOKKOS_FORCEINLINE_FUNCTION Total operator()(Total a, Total b) const {
    return Fold<R, Total>::join(a, b);
  }
};
/// How a function joins two values, with an identity.
template <class F, class T> struct FunctionJoin {
  using Total = T;
  F f;
  T identity;
  KOKKOS_FORCEINLINE_FUNCTION T start() const { return identity; }
  KOKKOS_FORCEINLINE_FUNCTION T operator()(const T& a, const T& b) const {
    return static_cast<T>(f(a, b));
  }
};

/// Runs along lines, up to `width` side by side; `to` is null where only their totals are wanted.
/// The first argument of a join is always the earlier one in the direction of the scan.
template <class Join, class T, class Out> struct ScanLines {
  static constexpr Index width = kernels_on_host ? 64 : 1;
  using Total = typename Join::Total;
  Join join;
  LocalScan work;
  Index strips;  // in a row of lines
  const T* from;
  const Out* earlier;
  Out* to;
  Out* totals;

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) lines(i / strips, i % strips * width);
  }
  KOKKOS_FUNCTION void lines(Index outer, Index column) const {
    const Index count = min_of(width, work.inner - column);
    Total total[width] = {};
    for (Index j = 0; j < count; ++j) total[j] = join.start();
    for (Index k = work.earlier.lo; k < work.earlier.hi; ++k) {
      const Index part = work.reverse ? work.earlier.lo + work.earlier.hi - 1 - k : k;
      for (Index j = 0; j < count; ++j)
        total[j] = join(
            total[j],
            static_cast<Total>(earlier[(outer * work.parts + part) * work.inner + column + j]));
    }
    for (Index k = 0; k < work.n; ++k) {
      const Index row = work.reverse ? work.n - 1 - k : k;
      const Index at = (outer * work.n + row) * work.inner + column;
      for (Index j = 0; j < count; ++j) {
        const Total joined = join(total[j], static_cast<Total>(from[at + j]));
        if (to != nullptr) to[at + j] = static_cast<Out>(work.exclusive ? total[j] : joined);
        total[j] = joined;
      }
    }
    if (totals != nullptr)
      for (Index j = 0; j < count; ++j)
        totals[outer * work.inner + column + j] = static_cast<Out>(total[j]);
  }
};

template <class Join, class T, class Out>
void scan_lines(const char* label, const Join& join, const LocalScan& work, const T* from,
                const Out* earlier, Out* to, Out* totals) {
  if constexpr (kernels_on_host)
    if (work.inner == 1 && to != nullptr && totals == nullptr) {
      if (work.n > 0 && work.outer > 0) scan_rows(label, join, work, from, earlier, to);
      return;
    }
  if constexpr (!kernels_on_host)
    if (to != nullptr && totals == nullptr)
      return scan_device(label, join, work, {work.n, work.reverse, work.exclusive}, from, earlier,
                         to);
  using Lines = ScanLines<Join, T, Out>;
  const Index strips = ceil_div(work.inner, Lines::width);
  const Index each = saturating_mul(work.n, min_of(work.inner, Lines::width));
  launch(label, work.n > 0 || totals != nullptr ? work.outer * strips : 0,
         max_of(1, 32768 / max_of(1, each)), Lines{join, work, strips, from, earlier, to, totals});
}

template <class T>
void scan_elements(Reduction reduction, const LocalScan& work, const void* from,
                   const void* earlier, void* to, bool wide) {
  with_reduction<T>(reduction, wide, [&](auto r) {
    constexpr Reduction R = decltype(r)::value;
    constexpr DType type = dtype_of<T>;
    const auto run = [&](auto out) {
      using E = Stored<T>;
      using Out = decltype(out);
      scan_lines("tessera::scan", ReductionJoin<R, E, Out>{work.exclusive}, work,
                 static_cast<const E*>(from), static_cast<const Out*>(earlier),
                 static_cast<Out*>(to), static_cast<Out*>(nullptr));
    };
    if constexpr (reduced_type(R, type) != type)
      if (wide) return run(element_of<reduced_type(R, type)>{});
    if constexpr (defined(R, type)) run(Stored<T>{});
  });
}

struct ScanKernels {
  void (*run)(Reduction reduction, const LocalScan& work, const void* from, const void* earlier,
              void* to, bool wide);
  template <class T> static constexpr bool has = true;
  template <class T> static constexpr ScanKernels of() { return {&scan_elements<T>}; }
};

/// Writes, for each element, the join of all elements up to it; `earlier` may be null when
/// work.parts is 0. With `wide`, `earlier` and `to` have elements of reduced_type(reduction, type),
/// or of another 64-bit type. Communication: none. Throws UsageError when elements of `type` have
/// no such reduction.
inline void scan(DType type, Reduction reduction, const LocalScan& work, const void* from,
                 const void* earlier, void* to, bool wide = false) {
  kernels_of<ScanKernels>(type).run(reduction, work, from, earlier, to, wide);
}

/// Scans by an associative function f(earlier, later), which has an identity. Intermediate joins
/// are kept in Total.
template <Element T, Element Total = T, class F>
void scan(const F& f, std::type_identity_t<Total> identity, const LocalScan& work, const T* from,
          const T* earlier, T* to) {
  detail::scan_lines("tessera::scan", detail::FunctionJoin<F, Total>{f, identity}, work, from,
                     earlier, to, static_cast<T*>(nullptr));
}
/// Writes the join of each line: totals is outer x inner.
template <Element T, Element Total = T, class F>
void fold(const F& f, std::type_identity_t<Total> identity, const LocalScan& work, const T* from,
          T* totals) {
  detail::scan_lines("tessera::fold", detail::FunctionJoin<F, Total>{f, identity}, work, from,
                     static_cast<const T*>(nullptr), static_cast<T*>(nullptr), totals);
}
}  // namespace tessera::detail
