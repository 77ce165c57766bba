// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Sorts the lines of a block, or returns the positions of their elements in order.
///
///     detail::sort(DType::f32, {.outer = 2, .n = 3, .limit = 3}, from, to);
///     detail::order(DType::f32, {.outer = 2, .n = 3, .limit = 2}, from, nullptr, positions);   // the first two
///
/// Laws: NaNs come last, in either direction. order(): equal elements keep their order, -0 and 0
/// too. sort() has no positions: equal elements with different bits are in the order of
/// detail/sort_key.hpp, -0 before 0.
#include <algorithm>
#include <vector>

#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/elements.hpp>
#include <tessera/kernel/scratch.hpp>
#include <tessera/kernel/sort/detail/sort_network.hpp>
#include <tessera/kernel/sort/detail/sort_words.hpp>

namespace tessera::detail {

/// Host: whole lines, through words of key and place.
template <class T> struct SortLines {
  LocalSort work;
  const T* from;
  PositionArray places;     ///< none, or positions, some of them no_position
  T* values;                ///< null where positions are wanted
  PositionArray positions;  ///< none where values are wanted

  void run(Index begin, Index end) const {
    if (sizeof(T) <= 4 && work.n <= Index{0xffff'ffff})
      lines<KeyWord>(begin, end);
    else
      lines<KeyPair>(begin, end);
  }

 private:
  using Key = SortKey<T>;
  template <bool Total> TESSERA_INLINE static Key key(T x, bool descending) {
    return Total ? total_key(x, descending) : sort_key(x, descending);
  }
  /// Writes the first words of a line in order, and returns how many: of the elements read so far
  /// they are kept as a heap, and 64 elements none of which comes before its last one are passed
  /// over together. An element that equals it comes later.
  template <class Word, bool Total> Index first_few(Index line, Word* heap) const {
    const Index kept = work.limit, inner = work.inner;
    if (kept == 0) return 0;
    with_wide_vectors([&]() TESSERA_INLINE {
      const T* const x = from + line;
      const bool down = work.descending;
      for (Index place = 0; place < kept; ++place)
        heap[place] = Word::make(key<Total>(x[place * inner], down), place);
      std::make_heap(heap, heap + kept);
      Key last = static_cast<Key>(heap->key_bits());
      constexpr Index block = 64;
      Key keys[block];
      T apart[block];
      for (Index first = kept; first < work.n; first += block) {
        const Index count = min_of(block, work.n - first);
        const T* p = x + first * inner;
        if (inner != 1) {
          for (Index j = 0; j < count; ++j) apart[j] = p[j * inner];
          p = apart;
        }
        Key before = 0;
        TESSERA_SIMD_OR(before)
        for (Index j = 0; j < count; ++j) {
          keys[j] = key<Total>(p[j], down);
          before |= Key{keys[j] < last};
        }
        for (Index j = 0; before != 0 && j < count; ++j) {
          if (keys[j] >= last) continue;
          std::pop_heap(heap, heap + kept);
          heap[kept - 1] = Word::make(keys[j], first + j);
          std::push_heap(heap, heap + kept);
          last = static_cast<Key>(heap->key_bits());
        }
      }
    });
    std::sort_heap(heap, heap + kept);
    return kept;
  }
  template <class Word> void lines(Index begin, Index end) const {
    std::vector<Word> words(static_cast<std::size_t>(2 * work.n));
    for (Index i = begin; i < end; ++i) {
      const Index line = i / work.inner * work.n * work.inner + i % work.inner;
      const Index to = i / work.inner * work.limit * work.inner + i % work.inner;
      Index count = 0;
      const bool few = !places.there() && work.limit <= few_words && work.limit < work.n;
      if (few && values != nullptr)
        count = first_few<Word, true>(line, words.data());
      else if (few)
        count = first_few<Word, false>(line, words.data());
      for (Index place = 0; !few && place < work.n; ++place) {
        const Index at = line + place * work.inner;
        if (places.there() && places.get(at) == no_position) continue;
        words[static_cast<std::size_t>(count++)] =
            Word::make(values != nullptr ? total_key(from[at], work.descending)
                                         : sort_key(from[at], work.descending),
                       place);
      }
      const Index kept = min_of(work.limit, count);
      const Word* sorted = few ? words.data()
                               : sort_words(words.data(), words.data() + work.n, count, kept,
                                            8 * static_cast<int>(sizeof(T)));
      for (Index r = 0; r < work.limit; ++r) {
        const Index at = to + r * work.inner;
        const Index place = r < kept ? sorted[r].place() : 0;
        if (values != nullptr) values[at] = r < kept ? from[line + place * work.inner] : T{};
        if (positions.there()) positions.set(at, r < kept ? work.first + place : no_position);
      }
    }
  }
};

template <class T>
void sort_lines(const LocalSort& work, const T* from, PositionArray places, T* values,
                PositionArray positions) {
  const Index results = work.outer * work.limit * work.inner;
  if (results == 0) return;
  if constexpr (kernels_on_host) {
    launch("tessera::sort", work.outer * work.inner, max_of(1, 4096 / max_of(1, work.n)),
           SortLines<T>{work, from, places, values, positions});
  } else {
    const Scratch<std::int64_t> order(work.outer * work.n * work.inner);
    sort_places(work, from, places, values != nullptr, order.data());
    launch("tessera::sort", results, 1,
           TakePlaces<T>{work, from, places, order.data(), values, positions});
  }
}

template <class T> void sort_elements(const LocalSort& work, const void* from, void* to) {
  sort_lines(work, static_cast<const Stored<T>*>(from), {}, static_cast<Stored<T>*>(to), {});
}
template <class T>
void order_elements(const LocalSort& work, const void* from, const void* places, void* to) {
  sort_lines(work, static_cast<const Stored<T>*>(from), PositionArray::read(places, work.narrow),
             static_cast<Stored<T>*>(nullptr), {to, work.narrow});
}

/// Writes the first work.limit elements of each line in order: `to` is outer x limit x inner.
/// Elements are of any type but complex. Communication: none.
inline void sort(DType type, const LocalSort& work, const void* from, void* to) {
  detail::sort_kernels_of(type).sort(work, from, to);
}
/// Writes their positions, counted from work.first: int64 or, where the work is narrow, int32.
/// Where `places` is not null, elements whose place is no_position are left out. Communication:
/// none.
inline void order(DType type, const LocalSort& work, const void* from, const void* places,
                  void* to) {
  detail::sort_kernels_of(type).order(work, from, places, to);
}
}  // namespace tessera::detail
