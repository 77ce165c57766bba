// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Exact sums of floating-point rows as integers. With 2^e above a row's largest magnitude, each
/// element is cut into limbs, x = sum over l of q_l 2^(e - bits (l + 1)), and the q_l are added up
/// as 64-bit integers. plan/op/rows/deterministic.hpp chooses bits and limbs.
///
///     detail::exponents(type, work, x, e);   detail::bins(type, work, x, e, limbs);   detail::unbin(type, work, ...);
///
/// Laws: the integers do not depend on the order of the elements; bits above 2^(e - bits * limbs)
/// are exact; infinities and NaN are counted separately; the sum is rounded to double once, and
/// then to the element type.
#include <bit>
#include <cstdint>
#include <limits>

#include <tessera/base/local_work.hpp>
#include <tessera/kernel/elements.hpp>
#include <tessera/kernel/fill.hpp>
#include <tessera/kernel/rows/detail/row_pieces.hpp>

namespace tessera::detail {

inline constexpr int max_limbs = 8;
inline constexpr std::int64_t exponent_of_zero = -4096;     // for a row of zeros, or of no elements
inline constexpr std::int64_t exponent_of_infinity = 4096;  // for a row with infinities or NaN

/// Returns part k of an element: 0 the number, or the real part, 1 the imaginary one.
template <class T> KOKKOS_FORCEINLINE_FUNCTION double part_of(T x, int k) {
  if constexpr (ComplexElement<T>)
    return static_cast<double>(k == 0 ? x.re : x.im);
  else
    return static_cast<double>(static_cast<ComputeType<T>>(x));
}
template <class T> inline constexpr int element_parts = ComplexElement<T> ? 2 : 1;

/// Returns 2^k; k from -1022 to 1023.
KOKKOS_FORCEINLINE_FUNCTION double exact_power(std::int64_t k) {
  return Kokkos::bit_cast<double>((k + 1023) << 52);
}
/// Returns x 2^k, rounded once when x is 0 or at least 1.
KOKKOS_FORCEINLINE_FUNCTION double scaled_by_power(double x, std::int64_t k) {
  for (; k > 1000; k -= 1000) x *= exact_power(1000);
  for (; k < -1000; k += 1000) x *= exact_power(-1000);
  return x * exact_power(k);
}
/// Returns the least e with x < 2^e; x is positive.
KOKKOS_FORCEINLINE_FUNCTION std::int64_t exponent_above(double x) {
  if (x == 0) return exponent_of_zero;
  if (!(x <= std::numeric_limits<double>::max())) return exponent_of_infinity;
  const bool tiny = x < exact_power(-1022);
  const auto bits = Kokkos::bit_cast<std::int64_t>(tiny ? x * exact_power(54) : x);
  return (bits >> 52) - 1022 - (tiny ? 54 : 0);
}

template <class T> struct ExponentOp {
  struct State {
    double largest[element_parts<T>];
  };
  std::int64_t* out;

  KOKKOS_FUNCTION State start(Index) const { return State{}; }
  KOKKOS_FUNCTION void take(State& state, T x, Index) const {
    for (int k = 0; k < element_parts<T>; ++k) {
      const double part = part_of(x, k);
      const double size = part < 0 ? -part : part;
      if (!(size <= state.largest[k]) && state.largest[k] == state.largest[k])
        state.largest[k] = size;  // keeps a NaN
    }
  }
  KOKKOS_FUNCTION void put(Index output, const State& state, bool whole) const {
    for (int k = 0; k < element_parts<T>; ++k) {
      std::int64_t& to = out[output * element_parts<T> + k];
      if (whole)
        to = exponent_above(state.largest[k]);
      else
        Kokkos::atomic_max(&to, exponent_above(state.largest[k]));
    }
  }
};

template <class T> struct BinsOp {
  struct State {
    double first[element_parts<T>],
        second[element_parts<T>];  // scale the part to units of its first limb
    bool infinite[element_parts<T>];
    std::int64_t limb[element_parts<T>][max_limbs];
  };
  const std::int64_t* exponents;
  std::int64_t* out;
  int limbs;
  int bits;
  double again;  // 2^bits

  KOKKOS_FUNCTION State start(Index output) const {
    State state;
    for (int k = 0; k < element_parts<T>; ++k) {
      const std::int64_t exponent = exponents[output * element_parts<T> + k];
      state.infinite[k] = exponent == exponent_of_infinity;
      const std::int64_t by =
          exponent == exponent_of_zero || state.infinite[k] ? 0 : bits - exponent;
      const std::int64_t most = by > 1000 ? 1000 : by < -1000 ? -1000 : by;
      state.first[k] = exact_power(most);
      state.second[k] = exact_power(by - most);
      for (int l = 0; l < limbs; ++l) state.limb[k][l] = 0;
    }
    return state;
  }
  KOKKOS_FUNCTION void take(State& state, T x, Index) const {
    for (int k = 0; k < element_parts<T>; ++k) {
      const double part = part_of(x, k);
      if (state.infinite[k]) {
        if (!(part <= std::numeric_limits<double>::max())) ++state.limb[k][0];
        if (!(part >= std::numeric_limits<double>::lowest())) ++state.limb[k][1];
        continue;
      }
      double rest = part * state.first[k] * state.second[k];
      for (int l = 0; l < limbs; ++l) {
        const auto whole = static_cast<std::int64_t>(rest);
        state.limb[k][l] += whole;
        rest = (rest - static_cast<double>(whole)) * again;
      }
    }
  }
  KOKKOS_FUNCTION void put(Index output, const State& state, bool whole) const {
    for (int k = 0; k < element_parts<T>; ++k)
      for (int l = 0; l < limbs; ++l) {
        std::int64_t& to = out[(output * element_parts<T> + k) * limbs + l];
        if (whole)
          to = state.limb[k][l];
        else
          Kokkos::atomic_add(&to, state.limb[k][l]);
      }
  }
};

/// Carries from limb to limb, so that all but the first lie in [0, 2^bits).
KOKKOS_FUNCTION inline void carry_limbs(std::int64_t* limb, int limbs, int bits) {
  for (int l = limbs - 1; l > 0; --l) {
    const std::int64_t carry = limb[l] >> bits;
    limb[l] -= carry * (std::int64_t{1} << bits);
    limb[l - 1] += carry;
  }
}
/// Returns the number that limbs add up to, rounded once; divided by `count`, where that is not 1,
/// rounded twice.
KOKKOS_FUNCTION inline double number_of(const std::int64_t* from, int limbs, int bits,
                                        std::int64_t exponent, double count) {
  if (exponent == exponent_of_infinity) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if (from[0] > 0 && from[1] > 0) return std::numeric_limits<double>::quiet_NaN();
    return from[0] > 0 ? infinity : -infinity;
  }
  if (exponent == exponent_of_zero) return 0 / count;
  std::int64_t limb[max_limbs] = {};
  for (int l = 0; l < limbs; ++l) limb[l] = from[l];
  carry_limbs(limb, limbs, bits);
  const bool negative = limb[0] < 0;
  if (negative) {
    for (int l = 0; l < limbs; ++l) limb[l] = -limb[l];
    carry_limbs(limb, limbs, bits);
  }
  // The first 64 bits, and one more bit that says whether any later bit is set.
  auto top = static_cast<std::uint64_t>(limb[0]);
  std::int64_t unit = exponent - bits;
  bool more = false;
  for (int l = 1; l < limbs; ++l) {
    int room = 0;
    while (room < bits && (top << room >> 63) == 0) ++room;
    const auto next = static_cast<std::uint64_t>(limb[l]);
    top = top << room | next >> (bits - room);
    more = more || (next & ((std::uint64_t{1} << (bits - room)) - 1)) != 0;
    unit -= room;
  }
  const double number = static_cast<double>(more ? top | 1 : top) / count;
  return scaled_by_power(negative ? -number : number, unit);
}

template <class T> struct Unbin {
  const std::int64_t* limbs;
  const std::int64_t* exponents;
  T* to;
  int count_limbs;
  int bits;
  double count;

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      double part[2];
      for (int k = 0; k < element_parts<T>; ++k) {
        const Index at = i * element_parts<T> + k;
        part[k] = number_of(limbs + at * count_limbs, count_limbs, bits, exponents[at], count);
      }
      if constexpr (ComplexElement<T>) {
        using Part = typename T::value_type;
        to[i] = T(static_cast<Part>(part[0]), static_cast<Part>(part[1]));
      } else {
        to[i] = static_cast<T>(part[0]);
      }
    }
  }
};

template <class T>
void exponent_elements(const LocalBins& work, const void* from, std::int64_t* out) {
  const Rows rows = rows_of(work.rows, {});
  if (rows.chunks > 1)
    tessera::detail::fill(out, rows.kept.size * element_parts<T>, exponent_of_zero);
  row_pieces("tessera::exponent", rows, static_cast<const T*>(from), ExponentOp<T>{out});
}
template <class T>
void bin_elements(const LocalBins& work, const void* from, const std::int64_t* exponents,
                  std::int64_t* out) {
  const Rows rows = rows_of(work.rows, {});
  if (rows.chunks > 1)
    tessera::detail::fill(out, rows.kept.size * element_parts<T> * work.limbs, std::int64_t{0});
  row_pieces("tessera::bins", rows, static_cast<const T*>(from),
             BinsOp<T>{exponents, out, work.limbs, work.bits, exact_power(work.bits)});
}
template <class T>
void unbin_elements(const LocalBins& work, bool mean, const std::int64_t* limbs,
                    const std::int64_t* exponents, void* to) {
  launch("tessera::unbin", volume(work.rows.kept), 4096,
         Unbin<T>{limbs, exponents, static_cast<T*>(to), work.limbs, work.bits,
                  mean ? static_cast<double>(work.count) : 1.0});
}

struct BinKernels {
  void (*exponent)(const LocalBins& work, const void* from, std::int64_t* out);
  void (*bins)(const LocalBins& work, const void* from, const std::int64_t* exponents,
               std::int64_t* out);
  void (*unbin)(const LocalBins& work, bool mean, const std::int64_t* limbs,
                const std::int64_t* exponents, void* to);
  template <class T> static constexpr bool has = RealElement<T> || ComplexElement<T>;
  template <class T> static constexpr BinKernels of() {
    return {&exponent_elements<T>, &bin_elements<T>, &unbin_elements<T>};
  }
};

/// Writes e for each row (and each part of an element) of a floating or complex type.
inline void exponents(DType type, const LocalBins& work, const void* from, std::int64_t* out) {
  kernels_of<BinKernels>(type).exponent(work, from, out);
}
/// Writes work.limbs integers for each row and part.
inline void bins(DType type, const LocalBins& work, const void* from, const std::int64_t* exponents,
                 std::int64_t* out) {
  kernels_of<BinKernels>(type).bins(work, from, exponents, out);
}
/// Makes elements from the integers: sums, or means of work.count.
inline void unbin(DType type, const LocalBins& work, bool mean, const std::int64_t* limbs,
                  const std::int64_t* exponents, void* to) {
  kernels_of<BinKernels>(type).unbin(work, mean, limbs, exponents, to);
}
}  // namespace tessera::detail
