// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A LocalIndexed made small, together with its indices: dimensions of extent 1 are dropped,
/// neighbours joined where all strides allow it. Device-callable.
///
///     Index at[max_dims], row = 0;
///     box.start(i, at);
///     if (box.find(at, row) == IndexBox::here) ...
///
/// Laws: all processes with the same indices drop the same indices as out of range; among the
/// processes that split the table, exactly one finds each of the others.
#include <Kokkos_Core.hpp>

#include <tessera/base/dtype.hpp>
#include <tessera/base/local_index.hpp>

namespace tessera::detail {

struct IndexBox {
  enum Place { here, elsewhere, dropped };
  struct One {
    const void* data;
    bool wide;  // 64-bit
    Index extent, lo, hi, step;
    int window;  // the dimension along which its window lies, or -1
    Index stride[max_dims];
  };

  int rank;
  Index size;
  Index extent[max_dims];
  Index stride[max_dims];  // of the tuples
  Index in_table[max_dims];
  int count;
  bool clamp;
  One one[max_indices];

  KOKKOS_FUNCTION void start(Index i, Index* at) const {
    for (int d = rank - 1; d > 0; --d) {
      at[d] = i % extent[d];
      i /= extent[d];
    }
    if (rank > 0) at[0] = i;
  }
  KOKKOS_FUNCTION void next(Index* at) const {
    for (int d = rank - 1; d > 0; --d) {
      if (++at[d] < extent[d]) return;
      at[d] = 0;
    }
    if (rank > 0) ++at[0];
  }
  KOKKOS_FUNCTION Index dot(const Index* at, const Index* strides) const {
    Index sum = 0;
    for (int d = 0; d < rank; ++d) sum += at[d] * strides[d];
    return sum;
  }
  /// Returns where a tuple lies in the result or the updates.
  KOKKOS_FUNCTION Index offset(const Index* at) const { return dot(at, stride); }
  /// Finds which row of the table a tuple names, and whether this process has it.
  KOKKOS_FUNCTION Place find(const Index* at, Index& row) const {
    row = dot(at, in_table);
    Place place = here;
    for (int k = 0; k < count; ++k) {
      const One& index = one[k];
      const Index where = dot(at, index.stride);
      Index i = index.wide ? static_cast<const std::int64_t*>(index.data)[where]
                           : static_cast<const std::int32_t*>(index.data)[where];
      if (i < 0 || i >= index.extent) {
        if (!clamp || index.extent <= 0) return dropped;
        i = i < 0 ? 0 : index.extent - 1;
      }
      if (index.window >= 0) i += at[index.window];
      if (i < index.lo || i >= index.hi) place = elsewhere;
      row += (i - index.lo) * index.step;
    }
    return place;
  }
};

/// `types`: int32 or int64 for each tensor of indices.
inline IndexBox index_box(const LocalIndexed& work, const void* const* indices,
                          const DType* types) {
  IndexBox box{};
  box.size = 1;
  box.count = work.indices.size();
  box.clamp = work.out_of_range == OutOfRange::clamp;
  for (int k = 0; k < box.count; ++k) {
    const LocalIndex& index = work.indices[k];
    box.one[k] = {indices[k],
                  types[k] == DType::i64,
                  index.extent,
                  index.held.lo,
                  index.held.hi,
                  index.step,
                  -1,
                  {}};
  }
  for (int d = 0; d < work.tuples.size(); ++d) {
    const Index n = work.tuples[d];
    box.size *= max_of(0, n);
    if (n == 1) continue;
    const int last = box.rank - 1;
    bool joins = last >= 0 && box.stride[last] == work.strides[d] * n &&
                 box.in_table[last] == work.in_table[d] * n;
    for (int k = 0; joins && k < box.count; ++k)
      joins = box.one[k].stride[last] == work.indices[k].strides[d] * n &&
              box.one[k].window != last && work.indices[k].window != d;
    const int to = joins ? last : box.rank++;
    box.extent[to] = joins ? box.extent[to] * n : n;
    box.stride[to] = work.strides[d];
    box.in_table[to] = work.in_table[d];
    for (int k = 0; k < box.count; ++k) {
      box.one[k].stride[to] = work.indices[k].strides[d];
      if (work.indices[k].window == d) box.one[k].window = to;
    }
  }
  return box;
}

/// The elements of a row, in two layouts.
struct RowBox {
  int rank;
  Index size;
  Index extent[max_dims];
  Index stride[max_dims];
  Index in_table[max_dims];

  /// Visits elements begin to end-1 of the row: visit(j, offset, offset in the table).
  template <class Visit>
  KOKKOS_FORCEINLINE_FUNCTION void visit(Index begin, Index end, const Visit& visit) const {
    if (rank <= 1) {
      const Index s = rank > 0 ? stride[0] : 0, t = rank > 0 ? in_table[0] : 0;
      for (Index j = begin; j < end; ++j) visit(j - begin, j * s, j * t);
      return;
    }
    for (Index j = begin; j < end; ++j) {
      Index rest = j, a = 0, b = 0;
      for (int d = rank - 1; d > 0; --d) {
        a += rest % extent[d] * stride[d];
        b += rest % extent[d] * in_table[d];
        rest /= extent[d];
      }
      visit(j - begin, a + rest * stride[0], b + rest * in_table[0]);
    }
  }
  KOKKOS_FUNCTION bool contiguous() const {
    return rank == 0 || (rank == 1 && stride[0] == 1 && in_table[0] == 1);
  }
};

inline RowBox row_box(const LocalIndexed& work) {
  RowBox box{0, 1, {}, {}, {}};
  for (int d = 0; d < work.row.size(); ++d) {
    const Index n = work.row[d];
    box.size *= max_of(0, n);
    if (n == 1) continue;
    const int last = box.rank - 1;
    const bool joins = last >= 0 && box.stride[last] == work.row_strides[d] * n &&
                       box.in_table[last] == work.row_in_table[d] * n;
    const int to = joins ? last : box.rank++;
    box.extent[to] = joins ? box.extent[to] * n : n;
    box.stride[to] = work.row_strides[d];
    box.in_table[to] = work.row_in_table[d];
  }
  return box;
}

}  // namespace tessera::detail
