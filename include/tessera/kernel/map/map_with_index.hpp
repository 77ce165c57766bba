// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Applies a function elementwise that is told where each element lies in a tensor of which this is
/// a block; else as kernel/map/map.hpp.
///
///     // x (2 x 3) is the block at (4, 0) of a tensor (8 x 3)
///     detail::map_with_index(Mask{}, detail::LocalMap{{2, 3}, {{3, 1}}}, {4, 0}, {8, 3}, y, x);
///
/// Laws: map_with_index(f)(x)[i] == f(i, x[i]) for every i. On the host the elements of a row are
/// computed side by side: of a GlobalIndex only the last coordinate and the linear index differ
/// between them, so that what a function does not read costs nothing.
#include <cstddef>
#include <utility>

#include <tessera/kernel/fill_index.hpp>
#include <tessera/kernel/map/map.hpp>

namespace tessera::detail {

/// The indices of a row's elements. Nothing here is a loop over dimensions, or a choice within the
/// loop over the row, so that the index need not be in memory.
class RowIndex {
 public:
  explicit RowIndex(const GlobalIndex& first) : first_(first) {
    for (int d = 0; d < max_dims; ++d) last_[d] = d + 1 == first.dims ? -1 : 0;
  }
  /// Returns the index of the element that comes j after the first.
  TESSERA_INLINE GlobalIndex at(Index j) const {
    return at(j, std::make_index_sequence<max_dims>{});
  }

 private:
  template <std::size_t... D>
  TESSERA_INLINE GlobalIndex at(Index j, std::index_sequence<D...>) const {
    return {{(first_.coordinate[D] + (j & last_[D]))...}, first_.row_major + j, first_.dims};
  }
  GlobalIndex first_;
  Index last_[max_dims];  ///< all bits of the last dimension
};

/// n elements of a row, whose operands are contiguous.
template <class R, class F, class... T>
TESSERA_INLINE inline void row_loop(const F f, const RowIndex row, Index n, R* out,
                                    const T*... in) {
  TESSERA_SIMD
  for (Index j = 0; j < n; ++j) out[j] = static_cast<R>(f(row.at(j), in[j]...));
}

template <class R, class F, class... T> struct MapWithIndex {
  static constexpr int operands = sizeof...(T);
  F f;
  MapShape<operands> shape;
  BlockIndex block;
  R* out;
  MapInputs<T...> in;

  void run(Index begin, Index end) const {
    in.apply([&](const T*... p) {
      run_rows(std::index_sequence_for<T...>{}, begin, end, p..., MapTile<T>{}...);
    });
  }
  template <std::size_t... K>
  void run_rows(std::index_sequence<K...>, Index begin, Index end, const T*... p,
                MapTile<T>&&... tile) const {
    const int last = block.rank - 1;
    alignas(64) R made[map_tile];
    with_wide_vectors<ComputesMuch<F, T...>>([&]() TESSERA_INLINE {
      GlobalIndex first = block.at(begin);
      for (Index i = begin; i < end;) {
        const Index left =
            last < 0 ? 1 : block.offset[last] + block.extent[last] - first.coordinate[last];
        const Index count = min_of(map_tile, min_of(left, end - i));
        R* const to = shape.operand[operands].flat ? out + i : made;
        row_loop(f, RowIndex(first), count, to,
                 gather_tile(shape.rank, shape.extent, shape.operand[K], p, i, count, tile.buffer,
                             tile.filled)...);
        for (Index j = 0; to == made && j < count; ++j)
          out[shape.offset(i + j, operands)] = made[j];
        i += count;
        if (last >= 0) first = RowIndex(first).at(count - 1);
        block.next(first);
      }
    });
  }
};

/// On a device: an index is a tile, some elements of a row of the block.
template <class R, class F, class... T> struct MapWithIndexOnDevice {
  static constexpr int operands = sizeof...(T);
  static constexpr int width = MapOnDevice<OneResult<R>, F, T...>::width;
  F f;
  MapShape<operands> shape;
  BlockIndex block;
  R* out;
  MapInputs<T...> in;
  Index row, tiles;  // elements of a row, and tiles

  explicit MapWithIndexOnDevice(const MapWithIndex<R, F, T...>& map)
      : f(map.f),
        shape(map.shape),
        block(map.block),
        out(map.out),
        in(map.in),
        row(map.block.rank > 0 ? max_of(1, map.block.extent[map.block.rank - 1]) : 1),
        tiles(ceil_div(row, width)) {}
  Index count() const { return shape.size / row * tiles; }

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      const Index r = i / tiles, first = (i - r * tiles) * width;
      tile<0>(in, r * row + first, min_of(width, row - first));
    }
  }

 private:
  template <int K, class S, class... Rest, class... X>
  KOKKOS_FORCEINLINE_FUNCTION void tile(const MapInputs<S, Rest...>& from, Index at, Index count,
                                        const X&... x) const {
    tile<K + 1>(from.rest, at, count, x..., read<K>(from.head, at, count));
  }
  template <int K, class... X>
  KOKKOS_FORCEINLINE_FUNCTION void tile(const MapInputs<>&, Index at, Index count,
                                        const X&... x) const {
    const GlobalIndex first = block.at(at);
    Pack<R, width> made;
    for (int j = 0; j < width; ++j)
      made.of[j] = static_cast<R>(f(after(first, j < count ? j : 0), x.of[j]...));
    if (shape.operand[K].flat) return store_tile(out + at, 1, count, made);
    for (int j = 0; j < width; ++j)
      if (j < count) out[shape.offset(at + j, K)] = made.of[j];
  }
  template <int K, class S>
  KOKKOS_FORCEINLINE_FUNCTION Pack<S, width> read(const S* from, Index at, Index count) const {
    const bool flat = shape.operand[K].flat;
    if (flat && count == width && is_packed<width>(from + at)) return load_pack<width>(from + at);
    Pack<S, width> x;
    for (int j = 0; j < width; ++j) {
      const Index element = at + (j < count ? j : 0);
      x.of[j] = from[flat ? element : shape.offset(element, K)];
    }
    return x;
  }
  /// Returns the index of the element that comes j after the first in its row.
  KOKKOS_FORCEINLINE_FUNCTION static GlobalIndex after(GlobalIndex index, Index j) {
    for (int d = 0; d < max_dims; ++d) index.coordinate[d] += d + 1 == index.dims ? j : 0;
    index.row_major += j;
    return index;
  }
};

/// F reads nothing of an index but its linear one.
template <class F>
concept ReadsLinearIndex = F::reads_linear_index;

/// Writes f(index, in0[...], in1[...], ...) to each element of `out` as kernel/map/map.hpp's map
/// does, where index is the element's GlobalIndex: the result is the block at `offset` of a tensor
/// of `global_extents`. Communication: none.
template <class R, class F, class... T>
void map_with_index(F f, const LocalMap& work, const Extents& offset, const Extents& global_extents,
                    R* out, const T*... in) {
  static_assert(sizeof...(T) >= 1 && sizeof...(T) <= max_dims,
                "[tessera] map_with_index takes one to eight operands.");
  BlockIndex block = block_index(work.extents, offset, global_extents);
  if constexpr (ReadsLinearIndex<F>) block = with_joined_rows(block, global_extents);
  const MapWithIndex<R, F, T...> kernel{f, map_shape<sizeof...(T)>(work), block, out,
                                        MapInputs<T...>(in...)};
  if constexpr (kernels_on_host) {
    launch("tessera::map_with_index", kernel.shape.size, 4096, kernel);
  } else {
    const MapWithIndexOnDevice<R, F, T...> tiled(kernel);
    launch("tessera::map_with_index", tiled.count(), 1, tiled);
  }
}
}  // namespace tessera::detail
