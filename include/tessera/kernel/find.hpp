// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Finds where each row has a given value: the second half of an arg-max; the first half is a
/// reduction.
///
///     detail::find(DType::f32, work, x, best, out);
///
/// Laws: out[i] is the first place of the row's value, or the largest 64-bit integer where the row
/// does not have it; NaN is found as NaN.
#include <cstdint>

#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/detail/row_pieces.hpp>
#include <tessera/kernel/elements.hpp>
#include <tessera/kernel/fill.hpp>

namespace tessera::detail {

inline constexpr std::int64_t not_found = std::numeric_limits<std::int64_t>::max();

template <class T> struct FindOp {
  struct State {
    T value;
    std::int64_t place;
  };
  const T* best;
  std::int64_t* out;
  Index first;
  static constexpr Index block = 256;

  KOKKOS_FUNCTION State start(Index output) const { return {best[output], not_found}; }
  KOKKOS_FUNCTION void take(State& state, T x, Index place) const {
    if (state.place == not_found &&
        (x == state.value || (!(x == x) && !(state.value == state.value))))
      state.place = first + place;
  }
  /// The same for n elements that follow each other: first whether 256 of them have the value at
  /// all, then 16.
  void take_row(State& state, const T* p, Index n, Index place, Index step) const {
    constexpr Index few = 16;
    if (state.place != not_found) return;
    with_wide_vectors([&]() TESSERA_INLINE {
      Index i = 0;
      if (state.value == state.value)  // in loops of constant length
        while (i + block <= n && !any_in_block(p + i, state.value)) i += block;
      while (i + few <= n && any_equal(p + i, few, state.value) == 0) i += few;
      for (; i < n && state.place == not_found; ++i) take(state, p[i], place + i * step);
    });
  }
  /// Flags are as wide as elements, so that compares become vector instructions.
  using Flag = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  TESSERA_INLINE static Flag any_equal(const T* p, Index n, const T value) {
    Flag found = 0;
    const Flag nan = value == value ? 0 : 1;
    TESSERA_SIMD_OR(found)
    for (Index i = 0; i < n; ++i)
      found |= static_cast<Flag>(p[i] == value) | (static_cast<Flag>(p[i] != p[i]) & nan);
    return found;
  }
  /// Whether one of a block's elements is a value that is no NaN; half types are compared as
  /// integers.
  TESSERA_INLINE static bool any_in_block(const T* p, const T value) {
    if constexpr (sizeof(T) == 2 && !std::is_integral_v<T>) {
      const auto all = static_cast<std::uint16_t>(value == T{} ? 0x7fffu : 0xffffu);  // both zeros
      const auto wanted = static_cast<std::uint16_t>(Kokkos::bit_cast<std::uint16_t>(value) & all);
      return any_of<std::uint16_t>(reinterpret_cast<const std::uint16_t*>(p),
                                   [=](std::uint16_t x) TESSERA_INLINE {
                                     return static_cast<std::uint16_t>((x & all) == wanted);
                                   });
    } else {
      return any_of<Flag>(p, [=](T x) TESSERA_INLINE { return static_cast<Flag>(x == value); });
    }
  }
  /// Vectors of 32 bytes are read in the order of memory, as by line_chunk.
  template <class Bits, class E, class Is>
  TESSERA_INLINE static bool any_of(const E* p, const Is is) {
    constexpr Index lanes = 32 / sizeof(E);
    Bits some[lanes] = {}, found = 0;
    for (Index i = 0; i < block; i += 4 * lanes) {
      const E* const x = p + i;
      TESSERA_SIMD
      for (Index j = 0; j < lanes; ++j)
        some[j] = static_cast<Bits>(
            some[j] | (is(x[j]) | is(x[lanes + j]) | is(x[2 * lanes + j]) | is(x[3 * lanes + j])));
    }
    for (Index j = 0; j < lanes; ++j) found = static_cast<Bits>(found | some[j]);
    return found != 0;
  }
  KOKKOS_FUNCTION void put(Index output, const State& state, bool whole) const {
    if (whole)
      out[output] = state.place;
    else
      Kokkos::atomic_min(&out[output], state.place);
  }
};

template <class T>
void find_elements(const LocalFind& work, const void* from, const void* best, std::int64_t* out) {
  using Bits = Stored<T>;
  const Rows rows = rows_of(work.rows, work.steps);
  if (rows.chunks > 1) tessera::detail::fill(out, rows.kept.size, not_found);
  row_pieces("tessera::find", rows, static_cast<const Bits*>(from),
             FindOp<Bits>{static_cast<const Bits*>(best), out, work.first});
}

/// Writes a place for each row; `best` and `out` have an element for each row. Communication: none.
inline void find(DType type, const LocalFind& work, const void* from, const void* best,
                 std::int64_t* out) {
  detail::row_kernels_of(type).find(work, from, best, out);
}
}  // namespace tessera::detail
