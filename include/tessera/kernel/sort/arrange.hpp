// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Takes elements of lines in the order given by positions: the second half of a sort with carried
/// values; the first half is order() of sort.hpp.
///
///     detail::arrange(DType::f32, {.n = 3, .limit = 3}, from, positions, to);     // to[r] = from[positions[r]]
///
/// Laws: where a position is no_position, the result is zero.
#include <tessera/base/local_work.hpp>
#include <tessera/kernel/copy/copy_loops.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/position_array.hpp>
#include <tessera/kernel/elements.hpp>

namespace tessera::detail {

template <class T> struct Arrange {
  LocalSort work;
  const T* from;
  PositionArray positions;
  T* to;

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      const Index line = i / (work.inner * work.limit) * (work.n * work.inner) + i % work.inner;
      const Index position = positions.get(i);
      to[i] = position == no_position ? T{} : from[line + (position - work.first) * work.inner];
    }
  }
};

template <int Bytes>
void arrange_elements(const LocalSort& work, const void* from, const void* positions, void* to) {
  using T = Word<Bytes>;
  launch("tessera::arrange", work.outer * work.limit * work.inner, 16384,
         Arrange<T>{work, static_cast<const T*>(from), PositionArray::read(positions, work.narrow),
                    static_cast<T*>(to)});
}

struct ArrangeKernels {
  void (*run)(const LocalSort& work, const void* from, const void* positions, void* to);
  template <class T> static constexpr bool has = true;
  template <class T> static constexpr ArrangeKernels of() { return {&arrange_elements<sizeof(T)>}; }
};

/// Writes from[positions[...] - work.first] of each line; `positions` and `to` are outer x limit x
/// inner, the positions int64 or, where the work is narrow, int32. Communication: none.
inline void arrange(DType type, const LocalSort& work, const void* from, const void* positions,
                    void* to) {
  kernels_of<ArrangeKernels>(type).run(work, from, positions, to);
}
}  // namespace tessera::detail
