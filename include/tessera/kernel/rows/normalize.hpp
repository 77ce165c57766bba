// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Layer norm and RMS norm of the rows of a block: a row's mean and variance are found, and then it
/// is normalized while it is in the cache.
///
///     // y = (x - mean) / sqrt(variance + epsilon) scale + bias, of 2 rows of 3
///     detail::normalize(DType::f32, {.rows = 2, .n = 3, .biased = true}, 1.0 / 3, {.x = x, .scale = scale, .bias = bias, .y = y, .inverse = inverse, .mean = mean});
///
/// Laws: the bits depend only on the shape, not on threads; no digits cancel where means are large
/// beside deviations; half types are computed in float and rounded once.
#include <tessera/kernel/detail/map_loops.hpp>
#include <tessera/kernel/functions/exponential.hpp>
#include <tessera/kernel/rows/moments.hpp>

namespace tessera::detail {

/// Normalizes the rows of a contiguous block of rows x n: by their own means and variances or,
/// where they are `known`, by these.
struct LocalNormalize {
  Index rows = 1;
  Index n = 0;
  double epsilon = 0;   ///< is added to a variance
  bool centred = true;  ///< else variances are mean squares, and nothing is subtracted
  bool biased = false;  ///< a row is added at the end
  bool known = false;
  constexpr bool operator==(const LocalNormalize&) const = default;
};

/// The memory of a norm of elements T that is computed in C. x and y are (rows, n); scale, and bias
/// if there is one, are (n). The others are (rows), in C: the variance and the mean, where they are
/// known; and the results, one over the deviation and, where the mean is not known, the mean of a
/// centred row.
struct NormalizeMemory {
  const void *x = nullptr, *scale = nullptr, *bias = nullptr;
  const void *known_variance = nullptr, *known_mean = nullptr;
  void *y = nullptr, *inverse = nullptr, *mean = nullptr;
};

/// An element of a row whose numbers are known; half types come as floats.
template <class C> struct NormalizedBy {
  C mean, inverse;
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x, T scale) const {
    return (x - mean) * inverse * scale;
  }
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(T x, T scale, T bias) const {
    return (x - mean) * inverse * scale + bias;
  }
};

/// One over the deviation of each row whose variance is known.
template <class C> struct InverseDeviations {
  double epsilon;
  const C* variance;
  C* inverse;

  static KOKKOS_FUNCTION C of(C variance, double epsilon) {
    return fn::Rsqrt{}(variance + static_cast<C>(epsilon));
  }
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index row = begin; row < end; ++row) inverse[row] = of(variance[row], epsilon);
  }
};

template <class T> struct NormalizeRows {
  using C = ComputeType<T>;
  LocalNormalize work;
  double over_n;
  const T *x, *scale, *bias;
  const C *variance, *centre;  // without a variance, each row is read twice
  C *inverse, *mean;
  T* y;
  Index pieces = 1;  // of a row, on the host

  KOKKOS_FUNCTION C mean_of(Index row) const { return work.centred ? centre[row] : C{}; }
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    if constexpr (kernels_on_host) {
      // A few rows at a time, which the second cache holds: memory delivers them side by side.
      const Index some = max_of(1, (Index{128} << 10) / max_of(1, work.n * Index{sizeof(T)}));
      for (Index i = begin; i < end; i += some) {
        const Index last = min_of(i + some, end);
        if (variance == nullptr)
          for (Index row = i; row < last; ++row) find(row);
        for (Index item = i; item < last; ++item) piece(item / pieces, item % pieces);
      }
    } else {
      for (Index i = begin; i < end; ++i) {
        const Index row = i / work.n;
        y[i] = made(x[i], i % work.n, {mean_of(row), inverse[row]});
      }
    }
  }
  KOKKOS_FUNCTION T made(T element, Index j, const NormalizedBy<C>& f) const {
    const C wide = static_cast<C>(element), factor = static_cast<C>(scale[j]);
    return static_cast<T>(work.biased ? f(wide, factor, static_cast<C>(bias[j])) : f(wide, factor));
  }

 private:
  void piece(Index row, Index k) const {
    const Index each = ceil_div(work.n, pieces), first = min_of(work.n, k * each);
    const Index n = min_of(each, work.n - first), at = row * work.n + first;
    const NormalizedBy<C> f{mean_of(row), inverse[row]};
    if (work.biased)
      simple_loop(f, n, y + at, x + at, scale + first, bias + first);
    else
      simple_loop(f, n, y + at, x + at, scale + first);
  }
  void find(Index row) const {
    C spread;
    work.centred ? find<false>(row, spread) : find<true>(row, spread);
    inverse[row] = InverseDeviations<C>::of(spread, work.epsilon);
  }
  /// As moments_part computes it.
  template <bool AboutZero> [[gnu::noinline]] void find(Index row, C& spread) const {
    const T* const from = x + row * work.n;
    with_wide_vectors<computes_much>([&]() TESSERA_INLINE {
      const C base = AboutZero ? C{} : base_of(from);
      Moments<TotalType<T>> total;
      for (Index c = 0; c < work.n; c += line_chunk_elements) {
        LineMoments<T, AboutZero> chunk{base};
        chunk.take_row(from + c, min_of(line_chunk_elements, work.n - c));
        total.join(chunk.whole, AboutZero);
      }
      if constexpr (!AboutZero) mean[row] = total.mean(base, over_n);
      spread = static_cast<C>(total.variance(over_n));
    });
  }
};

/// On a device: a row by a team.
template <class T> struct NormalizeRow {
  using C = ComputeType<T>;
  struct Found {
    TotalType<T> sum;
    double squares;
  };
  static constexpr int phases = 2;
  NormalizeRows<T> at;

  KOKKOS_FUNCTION C mean_of(Index row, const Found& known) const {
    return at.work.known || !at.work.centred ? at.mean_of(row) : scaled<C>(known.sum, at.over_n);
  }
  template <int K>
  KOKKOS_FUNCTION Found find(Index row, Index lane, Index lanes, const Found& known) const {
    Found found{known.sum, 0};
    const T* const x = at.x + row * at.work.n;
    if (at.work.known || (K == 0 && !at.work.centred)) return found;
    const C mean = mean_of(row, known);
    if constexpr (K == 0)
      found.sum = long_sum_of_lane<TotalType<T>>(x, at.work.n, lane, lanes,
                                                 [](T e) { return static_cast<C>(e); });
    else
      found.squares = long_sum_of_lane<double>(
          x, at.work.n, lane, lanes, [&](T e) { return squared_size(static_cast<C>(e) - mean); });
    return found;
  }
  template <int K> KOKKOS_FUNCTION static Found join(const Found& a, const Found& b) {
    return {K == 0 ? a.sum + b.sum : a.sum, a.squares + b.squares};
  }
  KOKKOS_FUNCTION void finish(Index row, Index lane, Index lanes, const Found& known) const {
    const C variance = at.work.known ? at.variance[row] : scaled<C>(known.squares, at.over_n);
    const NormalizedBy<C> f{mean_of(row, known),
                            InverseDeviations<C>::of(variance, at.work.epsilon)};
    if (lane == 0) {
      at.inverse[row] = f.inverse;
      if (!at.work.known && at.work.centred) at.mean[row] = f.mean;
    }
    const Index first = row * at.work.n;
    const bool biased = at.work.biased;
    map_three_of_lane(
        at.x + first, at.scale, biased ? at.bias : at.scale, at.y + first, at.work.n, lane, lanes,
        [&](C x, C scale, C bias) { return biased ? f(x, scale, bias) : f(x, scale); });
  }
};

template <class T>
void normalize_elements(const LocalNormalize& work, double over_n, const NormalizeMemory& at) {
  using C = ComputeType<T>;
  if (work.rows == 0) return;
  NormalizeRows<T> body{work,
                        over_n,
                        static_cast<const T*>(at.x),
                        static_cast<const T*>(at.scale),
                        static_cast<const T*>(at.bias),
                        static_cast<const C*>(at.known_variance),
                        static_cast<const C*>(work.known ? at.known_mean : at.mean),
                        static_cast<C*>(at.inverse),
                        static_cast<C*>(at.mean),
                        static_cast<T*>(at.y)};
  if constexpr (!kernels_on_host)
    if (row_parts(work.rows, work.n) == 1)
      return launch_rows<T>("tessera::normalize", work.rows, work.n, NormalizeRow<T>{body});
  const Index elements = work.rows * work.n;
  const bool few = work.rows < 4 * host_threads() && host_threads() > 1;
  const bool apart = !kernels_on_host || work.n == 0 || (few && work.n >= 32768);
  if (!work.known && !apart)
    return launch("tessera::normalize", work.rows, max_of(1, 16384 / work.n), body);
  // Few rows are normalized in pieces, so that there is work for all threads.
  const Scratch<C> made(work.known ? 0 : work.rows);
  if (!work.known) {
    const LocalReduce rows{{work.rows}, {work.n}, {work.n}, {1}};
    moments_elements<T>(rows, work.centred, at.x, nullptr, over_n, at.mean, made.data());
    body.variance = made.data();
  }
  launch("tessera::normalize", work.rows, 4096,
         InverseDeviations<C>{work.epsilon, body.variance, body.inverse});
  if (elements == 0) return;
  body.pieces = few ? max_of(1, work.n / 16384) : 1;
  const Index items = kernels_on_host ? work.rows * body.pieces : elements;
  launch("tessera::normalize", items, max_of(1, 16384 / (elements / items)), body);
}

/// The kernel of layer norm and RMS norm, of real elements; `over_n`: one over the elements of a
/// whole row.
struct NormalizeKernels {
  void (*run)(const LocalNormalize& work, double over_n, const NormalizeMemory& at);
  template <class T> static constexpr bool has = RealElement<T>;
  template <class T> static constexpr NormalizeKernels of() { return {&normalize_elements<T>}; }
};

TESSERA_KERNEL_KIND(NormalizeKernels)

/// Writes the norm of rows of x to y, and one over each row's deviation, and its mean where that is
/// subtracted; `over_n` is one over the elements of a whole row. Communication: none.
inline void normalize(DType type, const LocalNormalize& work, double over_n,
                      const NormalizeMemory& at) {
  kernels_of<NormalizeKernels>(type).run(work, over_n, at);
}
}  // namespace tessera::detail
