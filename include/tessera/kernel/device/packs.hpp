// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Elements that a thread of a device reads or writes at once: 16 bytes, where they are aligned so.
/// One thread for each element of two bytes would leave three quarters of the memory's rate unused.
///
///     each_of_lane(row, n, lane, lanes, [&](T x, Index i) { total += x; });
#include <cstdint>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <tessera/base/dtype.hpp>
#include <tessera/base/math.hpp>

namespace tessera::detail {

template <class T, int N> struct alignas(N * sizeof(T)) Pack { T of[N]; };

/// Elements in 16 bytes.
template <class T>
inline constexpr int pack_size = sizeof(T) >= 16 ? 1 : 16 / static_cast<int>(sizeof(T));

/// Whether elements from p on may be read as packs of N.
template <int N, class T> KOKKOS_FORCEINLINE_FUNCTION bool is_packed(const T* p) {
  return reinterpret_cast<std::uintptr_t>(p) % alignof(Pack<T, N>) == 0;
}
template <int N, class T> KOKKOS_FORCEINLINE_FUNCTION Pack<T, N> load_pack(const T* p) {
  return *reinterpret_cast<const Pack<T, N>*>(p);
}
template <int N, class T>
KOKKOS_FORCEINLINE_FUNCTION void store_pack(T* p, const Pack<T, N>& pack) {
  *reinterpret_cast<Pack<T, N>*>(p) = pack;
}

/// Returns the elements as those are in which they are computed; half types together, where no NaN
/// needs more than a shift.
template <class T, int N>
KOKKOS_FORCEINLINE_FUNCTION Pack<ComputeType<T>, N> widen_pack(const Pack<T, N>& x) {
  Pack<ComputeType<T>, N> wide;
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, bfloat16>) {
    bool numbers = true;
    for (int j = 0; j < N; ++j) {
      wide.of[j] = __uint_as_float(static_cast<std::uint32_t>(x.of[j].bits()) << 16);
      numbers = numbers && wide.of[j] == wide.of[j];
    }
    if (numbers) return wide;
  }
#endif
  for (int j = 0; j < N; ++j) wide.of[j] = static_cast<ComputeType<T>>(x.of[j]);
  return wide;
}
/// Rounds elements to R; to half types two at once, where none is a NaN.
template <class R, class W, int N>
KOKKOS_FORCEINLINE_FUNCTION void round_pack(const W (&wide)[N], R (&made)[N]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  constexpr bool brain = std::is_same_v<R, bfloat16>;
  if constexpr (std::is_same_v<W, float> && N % 2 == 0 && (brain || std::is_same_v<R, half>)) {
    bool numbers = true;
    for (int j = 0; j < N; ++j) numbers = numbers && wide[j] == wide[j];
    if (numbers) {
      for (int j = 0; j < N; j += 2) {
        std::uint32_t two = 0;
        if constexpr (brain)
          asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(wide[j + 1]), "f"(wide[j]));
        else
          asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(wide[j + 1]), "f"(wide[j]));
        made[j] = R::from_bits(static_cast<std::uint16_t>(two));
        made[j + 1] = R::from_bits(static_cast<std::uint16_t>(two >> 16));
      }
      return;
    }
  }
#endif
  for (int j = 0; j < N; ++j) made[j] = static_cast<R>(wide[j]);
}

struct NothingAfter {
  KOKKOS_FORCEINLINE_FUNCTION void operator()() const {}
};

/// Calls f(x, i) for the elements of a row that belong to a lane of a team: packs, or elements, in
/// turns with the other lanes; and after() when it has called f for a pack, or for the rest.
template <class T, class F, class After = NothingAfter>
KOKKOS_FORCEINLINE_FUNCTION void each_of_lane(const T* row, Index n, Index lane, Index lanes,
                                              const F& f, const After& after = {}) {
  constexpr int size = pack_size<T>;
  Index done = 0;
  if (is_packed<size>(row)) {
    const Index packs = n / size;
    Index p = lane;
    for (; p + lanes < packs; p += 2 * lanes) {  // two reads at once
      const Pack<T, size> a = load_pack<size>(row + p * size);
      const Pack<T, size> b = load_pack<size>(row + (p + lanes) * size);
      for (int j = 0; j < size; ++j) f(a.of[j], p * size + j);
      after();
      for (int j = 0; j < size; ++j) f(b.of[j], (p + lanes) * size + j);
      after();
    }
    if (p < packs) {
      const Pack<T, size> a = load_pack<size>(row + p * size);
      for (int j = 0; j < size; ++j) f(a.of[j], p * size + j);
      after();
    }
    done = packs * size;
  }
  for (Index i = done + lane; i < n; i += lanes) {
    f(row[i], i);
    after();
  }
}

/// A sum in blocks, whose errors do not add up.
template <class Total> class BlockSum {
 public:
  KOKKOS_FORCEINLINE_FUNCTION void add(const Total& x) {
    part_ = part_ + x;
    if (++count_ % 32 != 0) return;
    whole_ = whole_ + part_;
    part_ = Total{};
  }
  KOKKOS_FORCEINLINE_FUNCTION Total total() const { return whole_ + part_; }

 private:
  Total whole_{}, part_{};
  int count_ = 0;
};

/// Returns the sum of f(x) of the same elements: of a pack's in the type of f, then in Total.
template <class Total, class T, class F>
KOKKOS_FORCEINLINE_FUNCTION Total sum_of_lane(const T* row, Index n, Index lane, Index lanes,
                                              const F& f) {
  decltype(f(*row)) part{};
  Total total{};
  each_of_lane(
      row, n, lane, lanes, [&](T x, Index) { part = part + f(x); },
      [&] {
        total = total + static_cast<Total>(part);
        part = {};
      });
  return total;
}

/// Returns the sum of f(x) of the same elements, in blocks.
template <class Total, class T, class F>
KOKKOS_FORCEINLINE_FUNCTION Total blocks_of_lane(const T* row, Index n, Index lane, Index lanes,
                                                 const F& f) {
  BlockSum<Total> sum;
  each_of_lane(row, n, lane, lanes, [&](T x, Index) { sum.add(static_cast<Total>(f(x))); });
  return sum.total();
}

/// Returns the sum of f(x) as exactly as its elements are known: half types are computed in float,
/// and summed in it a pack at a time; floats are summed in double, where a lane's errors are
/// nothing; other sums are made in blocks.
template <class Total, class T, class F>
KOKKOS_FORCEINLINE_FUNCTION Total long_sum_of_lane(const T* row, Index n, Index lane, Index lanes,
                                                   const F& f) {
  if constexpr (sizeof(T) == 2 && !std::is_integral_v<T>)
    return sum_of_lane<Total>(row, n, lane, lanes, f);
  else if constexpr (std::is_same_v<T, float> && std::is_same_v<Total, double>)
    return sum_of_lane<Total>(row, n, lane, lanes, [&](T x) { return static_cast<Total>(f(x)); });
  else
    return blocks_of_lane<Total>(row, n, lane, lanes, f);
}

/// Writes f(x, i) of the same elements to another row.
template <class T, class R, class F>
KOKKOS_FORCEINLINE_FUNCTION void map_lane(const T* row, R* to, Index n, Index lane, Index lanes,
                                          const F& f) {
  constexpr int size = pack_size<T> < pack_size<R> ? pack_size<T> : pack_size<R>;
  Index done = 0;
  if (is_packed<size>(row) && is_packed<size>(to)) {
    const Index packs = n / size;
    for (Index p = lane; p < packs; p += lanes) {
      const Pack<T, size> x = load_pack<size>(row + p * size);
      Pack<R, size> y;
      for (int j = 0; j < size; ++j) y.of[j] = f(x.of[j], p * size + j);
      store_pack<size>(to + p * size, y);
    }
    done = packs * size;
  }
  for (Index i = done + lane; i < n; i += lanes) to[i] = f(row[i], i);
}

/// Writes f(x, a, b) of the same elements of three rows to another one; the same lane for all.
template <class T, class F>
KOKKOS_FORCEINLINE_FUNCTION void map_three_of_lane(const T* row, const T* a, const T* b, T* to,
                                                   Index n, Index lane, Index lanes, const F& f) {
  using C = ComputeType<T>;
  constexpr int size = pack_size<T>;
  Index done = 0;
  if (is_packed<size>(row) && is_packed<size>(a) && is_packed<size>(b) && is_packed<size>(to)) {
    for (Index p = lane; p < n / size; p += lanes) {
      const Pack<C, size> x = widen_pack(load_pack<size>(row + p * size));
      const Pack<C, size> y = widen_pack(load_pack<size>(a + p * size));
      const Pack<C, size> z = widen_pack(load_pack<size>(b + p * size));
      C wide[size];
      for (int j = 0; j < size; ++j) wide[j] = f(x.of[j], y.of[j], z.of[j]);
      Pack<T, size> made;
      round_pack(wide, made.of);
      store_pack<size>(to + p * size, made);
    }
    done = n / size * size;
  }
  for (Index i = done + lane; i < n; i += lanes)
    to[i] = static_cast<T>(f(static_cast<C>(row[i]), static_cast<C>(a[i]), static_cast<C>(b[i])));
}

}  // namespace tessera::detail
