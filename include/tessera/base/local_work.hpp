// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Descriptions of work on one process's own memory, as values: the planner decides them, the
/// kernels carry them out. All offsets and strides count elements; a stride of 0 broadcasts.
///
///     detail::Gemm g{.m = 2, .n = 3, .k = 4, .lda = 4, .ldb = 3, .ldc = 3};      // row-major C = A B
#include <vector>

#include <tessera/base/box.hpp>
#include <tessera/base/math.hpp>

namespace tessera::detail {

/// Copies a box of elements between two strided layouts: packing, unpacking, slicing and permuting
/// alike. Element (i...) goes from from_offset + sum i*from_strides to to_offset + sum
/// i*to_strides.
struct StridedCopy {
  Extents extents{};
  Index from_offset = 0;
  Extents from_strides{};
  Index to_offset = 0;
  Extents to_strides{};
  constexpr bool operator==(const StridedCopy&) const = default;
};

/// The copies out of the memory of another process of a group: from its block or, where that
/// process packs the elements that others need, from its packed elements.
struct PeerCopies {
  int peer = 0;
  std::vector<StridedCopy> copies;
  std::vector<StridedCopy> packed;  ///< the same once packed; empty where that would not be faster
  bool operator==(const PeerCopies&) const = default;
};

/// A batch of row-major products C (m x n) = A (m x k) * B (k x n). transpose_a: A is stored (k x
/// m) with leading dimension lda; likewise B. The batch is a box of `batch` extents with strides
/// for each of A, B and C.
struct Gemm {
  Index m = 1;
  Index n = 1;
  Index k = 1;
  bool transpose_a = false;
  bool transpose_b = false;
  Index lda = 1;
  Index ldb = 1;
  Index ldc = 1;
  Extents batch{};
  Extents batch_a{};
  Extents batch_b{};
  Extents batch_c{};
  constexpr Index flops() const {
    return saturating_mul(2,
                          saturating_mul(saturating_mul(m, n), saturating_mul(k, volume(batch))));
  }
  constexpr bool operator==(const Gemm&) const = default;
};

/// Reduces the `reduced` box of each element of the `kept` box; the result is contiguous, row-major
/// over `kept`.
struct LocalReduce {
  Extents kept{};
  Extents kept_strides{};
  Extents reduced{};
  Extents reduced_strides{};
  constexpr bool operator==(const LocalReduce&) const = default;
};

/// Applies a function elementwise over a box. Each operand has a row of strides; the result is
/// contiguous, row-major, unless it has strides too.
struct LocalMap {
  Extents extents{};
  FixedVector<Extents, max_dims> strides{};
  Extents result{};
  bool flat = false;  ///< all tensors are known to be contiguous, row-major
  Extents offset{};   ///< where the block of the result lies in the whole; empty: not stated
  constexpr bool operator==(const LocalMap&) const = default;
};

/// Finds, for each element of the `kept` box of `rows`, the first place in its `reduced` box (in
/// row-major order) where the element equals the row's value: index first + sum i * steps.
struct LocalFind {
  LocalReduce rows{};
  Index first = 0;
  Extents steps{};
  constexpr bool operator==(const LocalFind&) const = default;
};

/// Joins each element of a contiguous block of outer x n x inner with those before it, along the
/// middle dimension. When `parts` is not 0, what comes before the block is the join of some
/// elements of a block of outer x parts x inner: those whose middle index is in `earlier`.
struct LocalScan {
  Index outer = 1;
  Index n = 0;
  Index inner = 1;
  bool reverse = false;    ///< from the last to the first
  bool exclusive = false;  ///< without the element itself
  Index parts = 0;
  Interval earlier{};
  constexpr bool operator==(const LocalScan&) const = default;
};

/// Stands for the position of a missing element.
inline constexpr Index no_position = max_int64;

/// The most elements of a line that are found without ordering the others.
inline constexpr Index few_words = 256;

/// Orders each line along the middle dimension of a contiguous block of outer x n x inner; the
/// results are the first `limit` elements of each line in that order, or their positions.
struct LocalSort {
  Index outer = 1;
  Index n = 0;
  Index inner = 1;
  Index limit = 0;  ///< results of a line; no_position (and zeros) beyond its elements
  Index first = 0;  ///< the position of a line's first element
  bool descending = false;
  bool narrow = false;  ///< positions are int32, and no_position is the largest of them
  constexpr bool operator==(const LocalSort&) const = default;

  /// Returns whether the results are selected from a line as it is read. Elements that may be
  /// missing (`placed`) are collected first.
  constexpr bool selects(bool placed) const { return !placed && limit <= few_words && limit < n; }
  /// Returns whether a key of `unit` bytes and a place in a line are one word.
  constexpr bool one_word(Index unit) const { return unit <= 4 && n <= Index{0xffff'ffff}; }
  /// Returns the bytes of the words of key and place in which the host orders one line: those of
  /// the results, or of the line twice.
  constexpr Index line_bytes(Index unit, bool placed) const {
    const Index words = selects(placed) ? limit : n > few_words ? saturating_mul(2, n) : n;
    return saturating_mul(words, one_word(unit) ? 8 : 16);
  }
  /// Returns how many lines the host orders at once, at most: their words take no more memory than
  /// the block, unless one line's do.
  constexpr Index at_once(Index unit, bool placed) const {
    const Index lines = saturating_mul(outer, inner);
    const Index block = saturating_mul(saturating_mul(lines, n), unit);
    const Index fit = block / max_of(1, line_bytes(unit, placed));
    return max_of(1, min_of(min_of(lines, 256), fit));
  }
  /// Returns the bytes of all these words.
  constexpr Index scratch_bytes(Index unit, bool placed) const {
    return outer * inner == 0 ? 0 : saturating_mul(at_once(unit, placed), line_bytes(unit, placed));
  }
};

/// Merges two sets of sorted lines, and keeps in each line as many elements as the first set has:
/// the first in order, or the last. Lines lie along the middle dimension of outer x own x inner.
struct LocalMerge {
  Index outer = 1;
  Index own = 0;
  Index other = 0;
  Index inner = 1;
  bool last = false;  ///< keeps the last in order, not the first
  bool descending = false;
  bool positions = false;  ///< the second tensor holds positions, which decide between equal keys
  bool narrow = false;     ///< and they are int32
  constexpr bool operator==(const LocalMerge&) const = default;
};

/// Adds rows up as integers: each part of an element gives `limbs` of them, each worth `bits` bits
/// less than the one before. `count` elements make up a whole row.
struct LocalBins {
  LocalReduce rows{};
  int bits = 0;
  int limbs = 0;
  Index count = 0;
  constexpr bool operator==(const LocalBins&) const = default;
};

}  // namespace tessera::detail
