// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The reads of a window, for kernels: the taps of one result, and the results of one tap, as
/// arithmetic progressions. They skip taps that read padding, or a hole of a dilated base.
///
///     const WindowReads reads = window_reads(7, 4, {.size = 3, .stride = 2, .low = 1});
///     reads.taps_of(0).first == 1;      // tap 0 of result 0 reads the padding
///     reads.taps_of(0).value == 0;      // tap 1 reads element 0
///
/// Laws: over all results y, taps_of(y) lists every (y, tap, element) with
/// y * stride - low + tap * window_dilation == element * base_dilation once, taps ascending; over
/// all taps, results_of lists the same.
#include <Kokkos_Core.hpp>

#include <tessera/base/local_window.hpp>

namespace tessera::detail {

/// Numbers v = first + j * step, and value + j * hop, for j < count; step and hop are Divisible's.
struct Progression {
  Index first, count, value;
};

/// The v for which offset + v * scale is a multiple of base.
struct Divisible {
  Index scale, base;
  Index step;     ///< from one such v to the next
  Index hop;      ///< from its quotient to the next
  Index common;   ///< the greatest common divisor of scale and base
  Index inverse;  ///< of scale / common, modulo step

  /// Returns the least v >= 0 for which offset + v * scale is a multiple, or -1.
  KOKKOS_FUNCTION Index least(Index offset) const {
    if (base == 1) return 0;
    if (offset % common != 0) return -1;
    const Index rest = -(offset / common) % step;
    return (rest < 0 ? rest + step : rest) * inverse % step;
  }
  /// Returns those v in lo to hi-1 whose quotient is in 0 to n-1.
  KOKKOS_FUNCTION Progression among(Index lo, Index hi, Index offset, Index n) const {
    offset += lo * scale;
    Index v = least(offset);
    if (v < 0) return {lo, 0, 0};
    Index value = base == 1 ? offset : (offset + v * scale) / base;
    const Index skip = value < 0 ? (hop - 1 - value) / hop : 0;
    v += skip * step;
    value += skip * hop;
    if (v >= hi - lo || value >= n) return {lo, 0, 0};
    const Index fit = (hi - lo - 1 - v) / step, reach = (n - 1 - value) / hop;
    return {lo + v, min_of(fit, reach) + 1, value};
  }
};

inline Divisible divisible(Index scale, Index base) {
  Index a = scale, b = base;
  while (b != 0) {
    const Index rest = a % b;
    a = b;
    b = rest;
  }
  Divisible d{scale, base, base / a, scale / a, a, 0};
  // Euclid's algorithm, extended: d.hop * d.inverse == 1 modulo d.step.
  Index r0 = d.step, r1 = d.hop % d.step, s0 = 0, s1 = 1;
  while (r1 != 0) {
    const Index quotient = r0 / r1, r2 = r0 - quotient * r1, s2 = s0 - quotient * s1;
    r0 = r1, r1 = r2, s0 = s1, s1 = s2;
  }
  d.inverse = d.step == 1 ? 0 : (s0 % d.step + d.step) % d.step;
  return d;
}

/// One dimension: extents, a window, and both ways to read it.
struct WindowReads {
  Index elements, results, taps;
  Index stride, low, dilation;
  Divisible by_tap, by_result;

  KOKKOS_FUNCTION Progression taps_of(Index result) const {
    return by_tap.among(0, taps, result * stride - low, elements);
  }
  /// Returns the results, in lo to hi-1, whose tap `tap` reads an element.
  KOKKOS_FUNCTION Progression results_of(Index tap, Index lo, Index hi) const {
    return by_result.among(lo, hi, tap * dilation - low, elements);
  }
};

inline WindowReads window_reads(Index elements, Index results, const Window& w) {
  return {elements,
          results,
          w.size,
          w.stride,
          w.low,
          w.window_dilation,
          divisible(w.window_dilation, w.base_dilation),
          divisible(w.stride, w.base_dilation)};
}

}  // namespace tessera::detail
