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

  KOKKOS_FUNCTION State start(Index output) const { return {best[output], not_found}; }
  KOKKOS_FUNCTION void take(State& state, T x, Index place) const {
    if (state.place == not_found &&
        (x == state.value || (!(x == x) && !(state.value == state.value))))
      state.place = first + place;
  }
  /// The same for n elements that follow each other: first whether 256 of them have the value at
  /// all, then 16.
  void take_row(State& state, const T* p, Index n, Index place, Index step) const {
    constexpr Index block = 256, few = 16;
    for (Index i = 0; i < n && state.place == not_found; i += block) {
      const Index count = min_of(block, n - i);
      with_wide_vectors([&]() TESSERA_INLINE {
        if (any_equal(p + i, count, state.value) == 0) return;
        Index k = i;
        while (k + few <= i + count && any_equal(p + k, few, state.value) == 0) k += few;
        for (; state.place == not_found; ++k) take(state, p[k], place + k * step);
      });
    }
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
