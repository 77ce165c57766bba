// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Applies a function elementwise to one to eight operands in one kernel; an operand broadcasts
/// through stride 0. The function is one of functions.hpp, or any type whose operator() is const
/// and a KOKKOS_FUNCTION. kernel/map/map_with_index.hpp has functions that are told where elements
/// lie.
///
///     // y (2 x 3) = x (2 x 3) + bias (3)
///     detail::map(fn::Add{}, detail::LocalMap{{2, 3}, {{3, 1}, {0, 1}}}, y, x, bias);
///
/// Laws: map(f)(x)[i] == f(x[i]) for every i (a generic f gets half types as float, and its result
/// is rounded once; a function with a way of its own for half types takes that); the gaps of a
/// result with strides are not written; the result may be one of the operands, if that one has the
/// same layout. A function with a fast path for common arguments (functions/number.hpp) tries it
/// for each tile first.
#include <concepts>
#include <type_traits>
#include <utility>

#include <tessera/base/dtype.hpp>
#include <tessera/kernel/detail/launch.hpp>
#include <tessera/kernel/detail/map_loops.hpp>
#include <tessera/kernel/detail/map_shape.hpp>
#include <tessera/kernel/device/map.hpp>
#include <tessera/kernel/functions/cast.hpp>

namespace tessera::detail {

/// Holds the tiles of one operand that are copied together.
template <class T> struct MapTile {
  const T* filled = nullptr;
  const T* row = nullptr;
  alignas(64) T buffer[map_tile];
  MapTile() {}  // leaves the buffer uninitialized
};

/// Host: an index is an element.
template <class R, class F, class... T> struct Map {
  static constexpr int operands = sizeof...(T);
  F f;
  MapShape<operands> shape;
  R* out;
  MapInputs<T...> in;

  void run(Index begin, Index end) const {
    in.apply([&](const T*... p) {
      if (shape.flat) return map_loop(f, end - begin, out + begin, (p + begin)...);
      if (begin == end) return;
      if (!shape.operand[operands].flat || shape.extent[shape.rank - 1] >= 64)
        run_rows(std::index_sequence_for<T...>{}, begin, end, p..., MapTile<T>{}...);
      else
        run_tiles(std::index_sequence_for<T...>{}, begin, end, p..., MapTile<T>{}...);
    });
  }
  template <std::size_t... K>
  void run_tiles(std::index_sequence<K...>, Index begin, Index end, const T*... p,
                 MapTile<T>&&... tile) const {
    for (Index i = begin; i < end;) {
      const Index count = min_of(map_tile, end - i);
      map_loop(f, count, out + i,
               gather_tile(shape.rank, shape.extent, shape.operand[K], p, i, count, tile.buffer,
                           tile.filled)...);
      i += count;
    }
  }
  /// Row by row, without division: operands are read, and the result is written, in place.
  template <std::size_t... K>
  void run_rows(std::index_sequence<K...>, Index begin, Index end, const T*... p,
                MapTile<T>&&... tile) const {
    const int last = shape.rank - 1;
    MapRows<operands + 1> rows(last, shape.extent, shape.operand, begin);
    const Index step = shape.operand[operands].stride[last];
    // Rows all of whose operands lie side by side, or are one number each.
    [[maybe_unused]] const bool steps =
        step == 1 &&
        ((shape.operand[K].stride[last] == 0 || shape.operand[K].stride[last] == 1) && ...);
    [[maybe_unused]] const Index alike = min_of(step_block, shape.extent[last]);
    if constexpr (in_one_loop<F, T...>) {
      if (steps)  // all in one wide loop
        return with_wide_vectors<ComputesMuch<F, T...>>([&]() TESSERA_INLINE {
          for (Index i = begin; i < end; rows.next(last, shape.extent, shape.operand)) {
            const Index row = min_of(shape.extent[last] - rows.at[last], end - i);
            R* const to = out + rows.offset[operands];
            ((tile.row = row_piece(p + rows.offset[K], shape.operand[K].stride[last], alike, alike,
                                   tile.buffer, tile.filled)),
             ...);
            Index k = 0;
            for (; k + step_block <= row; k += step_block)  // of constant length
              plain_loop(f, step_block, to + k, (tile.row + k * shape.operand[K].stride[last])...);
            plain_loop(f, row - k, to + k, (tile.row + k * shape.operand[K].stride[last])...);
            i += row;
          }
        });
    }
#if defined(TESSERA_AVX512)
    if constexpr (in_short_loop<F>)
      if (steps && has_avx512()) {
        for (Index i = begin; i < end; rows.next(last, shape.extent, shape.operand)) {
          const Index row = min_of(shape.extent[last] - rows.at[last], end - i);
          short_loop(f.f, row, out + rows.offset[operands],
                     RowOperand<T>{row_piece(p + rows.offset[K], shape.operand[K].stride[last],
                                             alike, alike, tile.buffer, tile.filled),
                                   shape.operand[K].stride[last]}...);
          i += row;
        }
        return;
      }
#endif
    alignas(64) R made[map_tile];
    for (Index i = begin; i < end;) {
      const Index row = min_of(shape.extent[last] - rows.at[last], end - i);
      for (Index done = 0; done < row; done += map_tile) {
        const Index count = min_of(map_tile, row - done);
        R* const to = out + rows.offset[operands] + done * step;
        map_loop(f, count, step == 1 ? to : made,
                 row_piece(p + rows.offset[K] + done * shape.operand[K].stride[last],
                           shape.operand[K].stride[last], count,
                           min_of(map_tile, shape.extent[last]), tile.buffer, tile.filled)...);
        for (Index k = 0; step != 1 && k < count; ++k) to[k * step] = made[k];
      }
      i += row;
      rows.next(last, shape.extent, shape.operand);
    }
  }
};

template <class R, class F, class... T>
void run_map(const F& f, const LocalMap& work, R* out, const T*... in) {
  const MapShape<sizeof...(T)> shape = map_shape<sizeof...(T)>(work);
  const MapInputs<T...> inputs(in...);
  if constexpr (kernels_on_host) {
    launch("tessera::map", shape.size, 16384, Map<R, F, T...>{f, shape, out, inputs});
  } else {
    const MapOnDevice<OneResult<R>, F, T...> kernel(f, shape, {out}, inputs);
    launch("tessera::map", kernel.count(), 1, kernel);
  }
}

/// Writes f(in0[...], in1[...], ...) to each element of `out`, which is contiguous and row-major
/// over work.extents, or has strides work.result, the last of which is 1; operand k is read with
/// strides work.strides[k]. R may differ from the operands' types. Communication: none.
template <class R, class F, class... T>
void map(F f, const LocalMap& work, R* out, const T*... in) {
  static_assert(sizeof...(T) >= 1 && sizeof...(T) <= max_dims,
                "[tessera] map takes one to eight operands.");
  using Wide = ComputeType<R>;  // in which a cast of half types is computed, and then rounded
  if constexpr (std::same_as<F, fn::Cast<R>> && !std::same_as<R, Wide> &&
                (std::same_as<Wide, ComputeType<T>> && ...))
    detail::map<R>(fn::Cast<Wide>{}, work, out, in...);
  else if constexpr (detail::Promotable<R, F, T...>)
    detail::run_map(detail::as_promoted<R, F, T...>(f), work, out, in...);
  else
    detail::run_map(f, work, out, in...);
}
}  // namespace tessera::detail
