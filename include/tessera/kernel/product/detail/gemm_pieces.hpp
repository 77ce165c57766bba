// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The products of a batch divided among the host's threads, each piece multiplied by one thread:
/// for a library that many threads may call at once.
///
///     const GemmPieces pieces = gemm_pieces(shape, 4);      // one product: 2 x 2 of its result
///     launch("tessera::gemm", pieces.count(shape), 1, Body{...});   // pieces.piece(shape, i)
///
/// Laws: the pieces of a product are disjoint and cover it; k is not divided. With one thread, or
/// with many products, each product is one piece.
#include <numeric>

#include <tessera/kernel/detail/gemm_shape.hpp>

namespace tessera::detail {

/// Rows [row, row + m) and columns [column, column + n) of a product.
struct GemmPiece {
  Index batch, row, m, column, n;
};

struct GemmPieces {
  /// Pieces begin at multiples of this, as the tiles of libraries do.
  static constexpr Index step = 16;
  Index rows = 1;     ///< of pieces in a product
  Index columns = 1;  ///< of pieces in a product

  Index count(const GemmShape& g) const { return g.batches * rows * columns; }
  GemmPiece piece(const GemmShape& g, Index i) const {
    const Index row = i / columns % rows, column = i % columns;
    const Index top = begin(g.m, rows, row), left = begin(g.n, columns, column);
    return {i / columns / rows, top, begin(g.m, rows, row + 1) - top, left,
            begin(g.n, columns, column + 1) - left};
  }

 private:
  static Index begin(Index extent, Index parts, Index part) {
    return min_of(extent, ceil_div(extent, step) * part / parts * step);
  }
};

/// Returns pieces that keep `threads` threads equally busy: as few as possible, and as square, each
/// of at least `least` multiplications.
inline GemmPieces gemm_pieces(const GemmShape& g, Index threads, Index least = Index{1} << 16) {
  GemmPieces best;
  if (threads == 1 || g.batches >= 8 * threads) return best;
  const Index work = saturating_mul(g.m, saturating_mul(g.n, g.k));
  const Index most = min_of(threads / std::gcd(threads, g.batches), max_of(1, work / least));
  const Index most_rows = ceil_div(g.m, GemmPieces::step);
  const Index most_columns = ceil_div(g.n, GemmPieces::step);
  // A piece reads m x k and k x n elements, so the sum of its sides counts.
  Index shortest = max_int64;
  for (Index parts = most; parts > 1 && shortest == max_int64; --parts)
    for (Index rows = 1; rows <= parts; ++rows) {
      const Index columns = parts / rows, sides = ceil_div(g.m, rows) + ceil_div(g.n, columns);
      if (rows * columns != parts || rows > most_rows || columns > most_columns) continue;
      if (sides >= shortest) continue;
      shortest = sides;
      best.rows = rows;
      best.columns = columns;
    }
  return best;
}

}  // namespace tessera::detail
