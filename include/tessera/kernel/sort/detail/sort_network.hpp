// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Sorts the places of lines on a device: each round of the merge exchange is one launch over all
/// lines and pairs, so that one long line and many short ones use the device equally well.
///
///     sort_places(work, from, places, false, order);
///
/// Laws: equal keys keep their order.
#include <tessera/base/local_work.hpp>
#include <tessera/base/merge_exchange.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/position_array.hpp>
#include <tessera/kernel/detail/sort_key.hpp>

namespace tessera::detail {

/// Numbers the elements of each line.
struct NumberLines {
  LocalSort work;
  std::int64_t* order;
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) order[i] = i / work.inner % work.n;
  }
};

template <class T> struct ExchangePlaces {
  LocalSort work;
  const T* from;
  PositionArray places;  ///< none, or positions, some of them no_position
  bool total;            ///< equal elements with different bits are ordered
  std::int64_t* order;
  MergeRound round;

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      const Index place = i / work.inner % work.n;
      if (!round.is_lower(place, work.n)) continue;
      const Index line = i - place * work.inner;
      std::int64_t& low = order[i];
      std::int64_t& high = order[i + round.distance * work.inner];
      if (!after(line, low, high)) continue;
      const std::int64_t moved = low;
      low = high;
      high = moved;
    }
  }
  KOKKOS_FUNCTION bool after(Index line, Index a, Index b) const {
    const Index x = line + a * work.inner, y = line + b * work.inner;
    if (places.there()) {
      const bool absent_x = places.get(x) == no_position, absent_y = places.get(y) == no_position;
      if (absent_x != absent_y) return absent_x;
    }
    const auto key_x =
        total ? total_key(from[x], work.descending) : sort_key(from[x], work.descending);
    const auto key_y =
        total ? total_key(from[y], work.descending) : sort_key(from[y], work.descending);
    return key_x > key_y || (key_x == key_y && a > b);
  }
};

/// Writes the places of each line's elements in order: as many as the lines have.
template <class T>
void sort_places(const LocalSort& work, const T* from, PositionArray places, bool total,
                 std::int64_t* order) {
  const Index size = work.outer * work.n * work.inner;
  launch("tessera::number_lines", size, 32768, NumberLines{work, order});
  const int rounds = merge_exchange_rounds(work.n);
  for (int r = 0; r < rounds; ++r)
    launch("tessera::exchange", size, 8192,
           ExchangePlaces<T>{work, from, places, total, order, merge_exchange_round(work.n, r)});
}

/// Takes what the first places of each line name: positions, elements, or both.
template <class T> struct TakePlaces {
  LocalSort work;
  const T* from;
  PositionArray places;
  const std::int64_t* order;
  T* values;
  PositionArray positions;

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      const Index result = i / work.inner % work.limit;
      const Index line = i / (work.inner * work.limit) * (work.n * work.inner) + i % work.inner;
      const bool there = result < work.n &&
                         (!places.there() || places.get(line + order[line + result * work.inner] *
                                                                   work.inner) != no_position);
      const Index place = there ? order[line + result * work.inner] : 0;
      if (values != nullptr) values[i] = there ? from[line + place * work.inner] : T{};
      if (positions.there()) positions.set(i, there ? work.first + place : no_position);
    }
  }
};

}  // namespace tessera::detail
