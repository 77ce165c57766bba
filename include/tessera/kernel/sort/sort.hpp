// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Sorts the lines of a block, or returns the positions of their elements in order.
///
///     const detail::LocalSort work{.outer = 2, .n = 3, .limit = 3};
///     detail::sort(DType::f32, work, from, to, words);  // work.scratch_bytes(4, false) of them
///     detail::order(DType::f32, work, from, nullptr, positions, words);
///
/// The host orders words of key and place, in memory that the caller gives. CUDA orders words of
/// line and key (detail/sort_radix.hpp), another device places (detail/sort_network.hpp), in
/// scratch memory of its lane.
///
/// Laws: nothing is allocated on the host. NaNs come last, in either direction. order(): equal
/// elements keep their order, -0 and 0 too. sort() has no positions: equal elements with different
/// bits are in the order of kernel/detail/sort_key.hpp, -0 before 0.
#include <algorithm>

#include <tessera/base/local_work.hpp>
#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/device/sort_blocks.hpp>
#include <tessera/kernel/device/sort_radix.hpp>
#include <tessera/kernel/elements.hpp>
#include <tessera/kernel/scratch.hpp>
#include <tessera/kernel/sort/detail/sort_network.hpp>
#include <tessera/kernel/sort/detail/sort_words.hpp>

namespace tessera::detail {

/// Host: whole lines, through words of key and place. The lines are divided into parts, each with
/// memory for the words of one line.
template <class T> struct SortLines {
  LocalSort work;
  const T* from;
  PositionArray places;     ///< none, or positions, some of them no_position
  T* values;                ///< null where positions are wanted
  PositionArray positions;  ///< none where values are wanted
  std::byte* words;
  Index parts;

  void run(Index begin, Index end) const {
    for (Index part = begin; part < end; ++part) {
      const Index lines = work.outer * work.inner;
      const Index first = lines / parts * part + min_of(part, lines % parts);
      const Index last = first + lines / parts + (part < lines % parts ? 1 : 0);
      std::byte* const own = words + part * work.line_bytes(sizeof(T), places.there());
      if (work.one_word(sizeof(T)))
        sort_all(first, last, reinterpret_cast<KeyWord*>(own));
      else
        sort_all(first, last, reinterpret_cast<KeyPair*>(own));
    }
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
  template <class Word> void sort_all(Index begin, Index end, Word* line_words) const {
    const bool few = work.selects(places.there());
    for (Index i = begin; i < end; ++i) {
      const Index line = i / work.inner * work.n * work.inner + i % work.inner;
      const Index to = i / work.inner * work.limit * work.inner + i % work.inner;
      Index count = 0;
      if (few && values != nullptr)
        count = first_few<Word, true>(line, line_words);
      else if (few)
        count = first_few<Word, false>(line, line_words);
      for (Index place = 0; !few && place < work.n; ++place) {
        const Index at = line + place * work.inner;
        if (places.there() && places.get(at) == no_position) continue;
        line_words[count++] = Word::make(values != nullptr ? total_key(from[at], work.descending)
                                                           : sort_key(from[at], work.descending),
                                         place);
      }
      const Index kept = min_of(work.limit, count);
      const Word* sorted = few ? line_words
                               : sort_words(line_words, line_words + work.n, count, kept,
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
                PositionArray positions, [[maybe_unused]] void* words) {
  const Index results = work.outer * work.limit * work.inner;
  if (results == 0) return;
  if constexpr (kernels_on_host) {
    const Index grain = max_of(1, 4096 / max_of(1, work.n));  // lines
    const Index most = min_of(host_threads(), work.at_once(sizeof(T), places.there()));
    const Index parts = max_of(1, min_of(most, work.outer * work.inner / grain));
    launch(
        "tessera::sort", parts, 1,
        SortLines<T>{work, from, places, values, positions, static_cast<std::byte*>(words), parts});
  } else {
    const Index size = work.outer * work.n * work.inner;
#if defined(KOKKOS_ENABLE_CUDA)
    // Words hold the bits of a line's number beside a key of four bytes.
    if constexpr (std::is_same_v<KernelSpace, Kokkos::Cuda>)
      if (size > 0 && work.outer * work.inner < Index{1} << 31) {
        if (!places.there() && sort_by_blocks(work, from, values, positions)) return;
        return size <= Index{0xffff'ffff}
                   ? sort_by_radix<std::uint32_t>(work, from, places, values, positions)
                   : sort_by_radix<std::uint64_t>(work, from, places, values, positions);
      }
#endif
    const Scratch<std::int64_t> order(size);
    sort_places(work, from, places, values != nullptr, order.data());
    launch("tessera::sort", results, 1,
           TakePlaces<T>{work, from, places, order.data(), values, positions});
  }
}

template <class T>
void sort_elements(const LocalSort& work, const void* from, void* to, void* words) {
  sort_lines(work, static_cast<const Stored<T>*>(from), {}, static_cast<Stored<T>*>(to), {}, words);
}
template <class T>
void order_elements(const LocalSort& work, const void* from, const void* places, void* to,
                    void* words) {
  sort_lines(work, static_cast<const Stored<T>*>(from), PositionArray::read(places, work.narrow),
             static_cast<Stored<T>*>(nullptr), {to, work.narrow}, words);
}

struct SortKernels {
  void (*sort)(const LocalSort& work, const void* from, void* to, void* words);
  void (*order)(const LocalSort& work, const void* from, const void* places, void* to, void* words);
  template <class T> static constexpr bool has = !ComplexElement<T>;
  template <class T> static constexpr SortKernels of() {
    return {&sort_elements<T>, &order_elements<T>};
  }
};

/// Writes the first work.limit elements of each line in order: `to` is outer x limit x inner.
/// Elements are of any type but complex; `words` has work.scratch_bytes(size of an element, false).
/// Communication: none.
inline void sort(DType type, const LocalSort& work, const void* from, void* to, void* words) {
  kernels_of<SortKernels>(type).sort(work, from, to, words);
}
/// Writes their positions, counted from work.first: int64 or, where the work is narrow, int32.
/// Where `places` is not null, elements whose place is no_position are left out; `words` has
/// work.scratch_bytes(size of an element, places != nullptr). Communication: none.
inline void order(DType type, const LocalSort& work, const void* from, const void* places, void* to,
                  void* words) {
  kernels_of<SortKernels>(type).order(work, from, places, to, words);
}
}  // namespace tessera::detail
