// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Sorts lines on a CUDA device by CUB's radix sort, which is stable: all elements at once, by
/// words of their line, whether they are missing, and their key (kernel/detail/sort_key.hpp).
///
///     sort_by_radix(work, from, places, values, positions);
///
/// Laws: equal keys keep their order. Keys of eight bytes fill a word: lines are then gathered by a
/// second sort. One line of short keys has words of four bytes.
#include <Kokkos_Core.hpp>

#if defined(KOKKOS_ENABLE_CUDA)
#include <cstdint>
#include <string>

#include <cub/device/device_radix_sort.cuh>

#include <tessera/base/error.hpp>
#include <tessera/base/local_work.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/position_array.hpp>
#include <tessera/kernel/detail/sort_key.hpp>
#include <tessera/kernel/scratch.hpp>

namespace tessera::detail {

/// Where the elements of a line lie, by their number in it; elements are numbered line after line.
struct LineElements {
  Index n, inner;
  KOKKOS_FUNCTION Index at(Index line, Index place) const {
    return line / inner * n * inner + line % inner + place * inner;
  }
};

/// Writes the word and the number of each element.
template <class T, class Word, class Number> struct MakeWords {
  static constexpr int key_bits = 8 * static_cast<int>(sizeof(SortKey<T>));
  static constexpr bool alone = sizeof(Word) == sizeof(std::uint32_t) || key_bits == 64;
  LineElements lines;
  const T* from;
  PositionArray places;
  bool total, descending;
  Word* words;
  Number* numbers;
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      const Index line = i / lines.n, at = lines.at(line, i % lines.n);
      const T x = from[at];
      Word word = total ? total_key(x, descending) : sort_key(x, descending);
      if constexpr (!alone) {
        const bool missing = places.there() && places.get(at) == no_position;
        word |= (static_cast<std::uint64_t>(line) << 1 | std::uint64_t{missing}) << key_bits;
      }
      words[i] = word;
      numbers[i] = static_cast<Number>(i);
    }
  }
};
/// Writes the line of each element, and whether it is missing.
template <class Number> struct MakeLines {
  LineElements lines;
  PositionArray places;
  std::uint64_t* words;
  const Number* numbers;
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      const Index number = static_cast<Index>(numbers[i]), line = number / lines.n;
      const bool missing =
          places.there() && places.get(lines.at(line, number % lines.n)) == no_position;
      words[i] = static_cast<std::uint64_t>(line) << 1 | std::uint64_t{missing};
    }
  }
};
/// Takes what the first elements of each line name: positions, elements, or both.
template <class T, class Number> struct TakeNumbers {
  LocalSort work;
  const T* from;
  PositionArray places;
  const Number* numbers;
  T* values;
  PositionArray positions;
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      const Index rank = i / work.inner % work.limit;
      const Index line = i / (work.inner * work.limit) * work.inner + i % work.inner;
      const Index place =
          rank < work.n ? static_cast<Index>(numbers[line * work.n + rank]) - line * work.n : 0;
      const Index at = LineElements{work.n, work.inner}.at(line, place);
      const bool there = rank < work.n && (!places.there() || places.get(at) != no_position);
      if (values != nullptr) values[i] = there ? from[at] : T{};
      if (positions.there()) positions.set(i, there ? work.first + place : no_position);
    }
  }
};

/// Two buffers of words and of numbers; a sort leaves its results in one or the other.
template <class Word, class Number> struct RadixBuffers {
  Index size;
  Scratch<Word> words{2 * size};
  Scratch<Number> numbers{2 * size};
  cub::DoubleBuffer<Word> word{words.data(), words.data() + size};
  cub::DoubleBuffer<Number> number{numbers.data(), numbers.data() + size};

  explicit RadixBuffers(Index n) : size(n) {}
  /// Sorts by the lowest `bits` of the words.
  void sort(int bits) {
    const auto stream = lane().space().cuda_stream();
    std::size_t bytes = 0;
    check(cub::DeviceRadixSort::SortPairs(nullptr, bytes, word, number, size, 0, bits, stream));
    const Scratch<char> memory(max_of(1, static_cast<Index>(bytes)));
    check(
        cub::DeviceRadixSort::SortPairs(memory.data(), bytes, word, number, size, 0, bits, stream));
  }

 private:
  static void check(cudaError_t status) {
    if (status != cudaSuccess)
      throw Error(std::string("sorting on the device failed: ") + cudaGetErrorString(status));
  }
};

/// Returns how many bits the numbers below n have.
inline int bits_below(Index n) {
  int bits = 0;
  while (bits < 63 && n > Index{1} << bits) ++bits;
  return bits;
}

template <class Word, class Number, class T>
void sort_words_by_radix(const LocalSort& work, const T* from, PositionArray places, T* values,
                         PositionArray positions) {
  using Words = MakeWords<T, Word, Number>;
  const Index lines = work.outer * work.inner, size = lines * work.n;
  const LineElements elements{work.n, work.inner};
  RadixBuffers<Word, Number> made(size);
  launch("tessera::sort", size, 1,
         Words{elements, from, places, values != nullptr, work.descending, made.word.Current(),
               made.number.Current()});
  const int line_bits = bits_below(lines) + 1;
  const bool lines_matter = lines > 1 || places.there();
  made.sort(!Words::alone && lines_matter ? Words::key_bits + line_bits : Words::key_bits);
  if constexpr (Words::alone && sizeof(Word) == sizeof(std::uint64_t))
    if (lines_matter) {
      launch("tessera::sort", size, 1,
             MakeLines<Number>{elements, places, made.word.Current(), made.number.Current()});
      made.sort(line_bits);
    }
  launch("tessera::sort", work.outer * work.limit * work.inner, 1,
         TakeNumbers<T, Number>{work, from, places, made.number.Current(), values, positions});
}

template <class Number, class T>
void sort_by_radix(const LocalSort& work, const T* from, PositionArray places, T* values,
                   PositionArray positions) {
  if constexpr (sizeof(T) <= 4)
    if (work.outer * work.inner == 1 && !places.there())
      return sort_words_by_radix<std::uint32_t, Number>(work, from, places, values, positions);
  sort_words_by_radix<std::uint64_t, Number>(work, from, places, values, positions);
}

}  // namespace tessera::detail
#endif
