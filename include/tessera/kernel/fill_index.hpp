// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Fills a contiguous block with a function of each element's index in the whole tensor; the block
/// is the part that starts at `offset`.
///
///     detail::fill_index<float>(f, p, {2, 3}, {4, 0}, {8, 3});   // f(const GlobalIndex&)
///
/// Laws: the blocks of any partition together equal the whole tensor filled at once.
#include <cstddef>
#include <utility>

#include <tessera/base/box.hpp>
#include <tessera/kernel/detail/launch.hpp>

namespace tessera {

/// Where an element lies in the whole tensor.
struct GlobalIndex {
  Index coordinate[max_dims];
  Index row_major;  // the linear index
  int dims;
  KOKKOS_FUNCTION Index operator[](int d) const { return coordinate[d]; }
  KOKKOS_FUNCTION Index linear() const { return row_major; }
  KOKKOS_FUNCTION int size() const { return dims; }
  /// The coordinate along the last dimension, so that a loop over a row need not have the index in
  /// memory.
  KOKKOS_FORCEINLINE_FUNCTION Index back() const {
    return back_of(std::make_index_sequence<max_dims>{});
  }

 private:
  template <std::size_t... D>
  KOKKOS_FORCEINLINE_FUNCTION Index back_of(std::index_sequence<D...>) const {
    return ((coordinate[D] & -static_cast<Index>(static_cast<int>(D) + 1 == dims)) | ...);
  }
};

namespace detail {
/// A block of a tensor, and how its elements are numbered in the whole.
struct BlockIndex {
  int rank;
  Index extent[max_dims], offset[max_dims], stride[max_dims];

  KOKKOS_FUNCTION GlobalIndex at(Index i) const {
    GlobalIndex index{{}, 0, rank};
    for (int d = rank - 1; d >= 0; --d) {
      index.coordinate[d] = offset[d] + (d > 0 ? i % extent[d] : i);
      i /= extent[d];
      index.row_major += index.coordinate[d] * stride[d];
    }
    return index;
  }
  /// Advances to the block's next element.
  KOKKOS_FUNCTION void next(GlobalIndex& index) const {
    for (int d = rank - 1; d >= 0; --d) {
      index.row_major += stride[d];
      if (++index.coordinate[d] < offset[d] + extent[d]) return;
      index.row_major -= stride[d] * extent[d];
      index.coordinate[d] = offset[d];
    }
  }
};

inline BlockIndex block_index(const Extents& extents, const Extents& offset,
                              const Extents& global_extents) {
  BlockIndex block{extents.size(), {}, {}, {}};
  const Extents strides = row_major_strides(global_extents);
  for (int d = 0; d < extents.size(); ++d) {
    block.extent[d] = extents[d];
    block.offset[d] = offset[d];
    block.stride[d] = strides[d];
  }
  return block;
}

/// Returns the same block with dimensions that lie side by side in the whole tensor as one: the
/// elements and their linear indices are the same, their rows as long as can be.
inline BlockIndex with_joined_rows(const BlockIndex& block, const Extents& global_extents) {
  BlockIndex joined{0, {}, {}, {}};
  for (int d = 0; d < block.rank; ++d) {
    const bool beside = joined.rank > 0 && block.extent[d] == global_extents[d];
    const int at = beside ? joined.rank - 1 : joined.rank++;
    joined.extent[at] = (beside ? joined.extent[at] : 1) * block.extent[d];
    joined.offset[at] = (beside ? joined.offset[at] * global_extents[d] : block.offset[d]);
    joined.stride[at] = block.stride[d];
  }
  return joined;
}

template <class T, class F> struct FillIndex {
  F f;
  T* out;
  BlockIndex block;
  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    GlobalIndex index = block.at(begin);
    for (Index i = begin;;) {
      out[i] = static_cast<T>(f(static_cast<const GlobalIndex&>(index)));
      if (++i >= end) return;
      block.next(index);
    }
  }
};

/// Writes f(index) to each element of a contiguous block of `extents` that starts at `offset` in a
/// tensor of `global_extents`. f is const-callable with a GlobalIndex (a KOKKOS_FUNCTION where
/// kernels run on a device).
template <class T, class F>
void fill_index(F f, T* out, const Extents& extents, const Extents& offset,
                const Extents& global_extents) {
  detail::launch(
      "tessera::fill_index", volume(extents), 4096,
      detail::FillIndex<T, F>{f, out, detail::block_index(extents, offset, global_extents)});
}
}  // namespace detail
}  // namespace tessera
