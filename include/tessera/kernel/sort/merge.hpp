// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Merges sorted lines with sorted lines and keeps as many elements as one side has, together with
/// the carried tensors. Each result finds its place by bisection (Green, McColl & Bader, GPU merge
/// path, ICS 2012); the next ones are merged on from there.
///
///     detail::merge(DType::f32, {.own = 3, .other = 4}, runs);        // the least three of seven
///
/// Laws: when two processes merge each other's lines, one with `last`, one without, exactly one of
/// them keeps each element: both make the same choice, since positions order equal keys or, without
/// positions, their bits do (kernel/detail/sort_key.hpp).
#include <tessera/base/fixed_vector.hpp>
#include <tessera/base/local_work.hpp>
#include <tessera/kernel/copy/copy_loops.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/detail/sort_key.hpp>
#include <tessera/kernel/elements.hpp>

namespace tessera::detail {

/// The tensors of a merge: keys, perhaps positions, and carried tensors.
struct MergeRuns {
  static constexpr int most = 10;
  int count = 0;
  const void* own[most] = {};
  const void* other[most] = {};
  void* to[most] = {};
  int bytes[most] = {};  ///< of an element

  void add(const void* mine, const void* theirs, void* result, std::size_t size) {
    own[count] = mine;
    other[count] = theirs;
    to[count] = result;
    bytes[count++] = static_cast<int>(size);
  }
};

KOKKOS_INLINE_FUNCTION void copy_element(int bytes, const void* from, Index i, void* to, Index j) {
  switch (bytes) {
    case 1:
      static_cast<Word<1>*>(to)[j] = static_cast<const Word<1>*>(from)[i];
      break;
    case 2:
      static_cast<Word<2>*>(to)[j] = static_cast<const Word<2>*>(from)[i];
      break;
    case 4:
      static_cast<Word<4>*>(to)[j] = static_cast<const Word<4>*>(from)[i];
      break;
    case 8:
      static_cast<Word<8>*>(to)[j] = static_cast<const Word<8>*>(from)[i];
      break;
    default:
      static_cast<Word<16>*>(to)[j] = static_cast<const Word<16>*>(from)[i];
  }
}

template <class T> struct MergeLines {
  LocalMerge work;
  MergeRuns runs;

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end;) {
      const Index line = i / work.own;  // results are visited a line at a time
      const Index stop = min_of(end, (line + 1) * work.own);
      results(line, i - line * work.own, stop - line * work.own);
      i = stop;
    }
  }

 private:
  KOKKOS_FUNCTION void results(Index line, Index from, Index to) const {
    const Index block = line / work.inner, column = line % work.inner;
    const Index mine = block * work.own * work.inner + column;
    const Index theirs = block * work.other * work.inner + column;
    const Index rank = from + (work.last ? work.other : 0);  // in the merged line
    // The first `a` of mine and `b` of theirs come before it.
    Index low = max_of(0, rank - work.other), high = min_of(rank, work.own);
    while (low < high) {
      const Index a = (low + high) / 2, b = rank - a - 1;
      if (first_is_mine(mine + a * work.inner, theirs + b * work.inner))
        low = a + 1;
      else
        high = a;
    }
    Index a = low, b = rank - low;
    for (Index r = from; r < to; ++r) {
      const Index own_at = mine + a * work.inner, other_at = theirs + b * work.inner;
      const bool take_mine = b >= work.other || (a < work.own && first_is_mine(own_at, other_at));
      const Index result = mine + r * work.inner;
      for (int k = 0; k < runs.count; ++k)
        copy_element(runs.bytes[k], take_mine ? runs.own[k] : runs.other[k],
                     take_mine ? own_at : other_at, runs.to[k], result);
      ++(take_mine ? a : b);
    }
  }
  /// Whether this process's element comes before the other one. Where elements are equal, the
  /// earlier ones belong to the process that keeps the first part, so that both processes choose
  /// alike.
  KOKKOS_FUNCTION bool first_is_mine(Index own_at, Index other_at) const {
    const T mine = static_cast<const T*>(runs.own[0])[own_at];
    const T theirs = static_cast<const T*>(runs.other[0])[other_at];
    if (!work.positions) {
      const auto x = total_key(mine, work.descending), y = total_key(theirs, work.descending);
      return x != y ? x < y : !work.last;
    }
    const auto x = sort_key(mine, work.descending), y = sort_key(theirs, work.descending);
    if (x != y) return x < y;
    return work.narrow ? before<std::int32_t>(own_at, other_at)
                       : before<std::int64_t>(own_at, other_at);
  }
  template <class P> KOKKOS_FUNCTION bool before(Index own_at, Index other_at) const {
    return static_cast<const P*>(runs.own[1])[own_at] <
           static_cast<const P*>(runs.other[1])[other_at];
  }
};

template <class T> void merge_elements(const LocalMerge& work, const MergeRuns& runs) {
  launch("tessera::merge", work.outer * work.inner * work.own, 8192,
         MergeLines<Stored<T>>{work, runs});
}

struct MergeKernels {
  void (*run)(const LocalMerge& work, const MergeRuns& runs);
  template <class T> static constexpr bool has = !ComplexElement<T>;
  template <class T> static constexpr MergeKernels of() { return {&merge_elements<T>}; }
};

/// Writes runs.to: outer x own x inner of each tensor. The first tensor holds the keys, of `type`.
/// No result may be one of the sources. Communication: none.
inline void merge(DType type, const LocalMerge& work, const detail::MergeRuns& runs) {
  kernels_of<MergeKernels>(type).run(work, runs);
}
}  // namespace tessera::detail
