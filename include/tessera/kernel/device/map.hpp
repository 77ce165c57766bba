// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Maps on a device: a thread computes a tile, some elements of a row that follow each other, and
/// reads and writes them at once where they are aligned. An index is a tile.
///
///     launch("tessera::map", kernel.count(), 1, kernel);      // a MapOnDevice
#include <type_traits>

#include <tessera/kernel/detail/map_shape.hpp>
#include <tessera/kernel/device/packs.hpp>

namespace tessera::detail {

template <class F, class... T> struct Promoted;
/// Whether F is a function of floats that gets half types.
template <class F> inline constexpr bool is_promoted = false;
template <class F, class... T> inline constexpr bool is_promoted<Promoted<F, T...>> = true;

/// The operands' pointers, in a form that device code can hold.
template <class... T> struct MapInputs {
  MapInputs() = default;
  template <class Call, class... P> void apply(const Call& call, const P*... pointers) const {
    call(pointers...);
  }
};
template <class T, class... Rest> struct MapInputs<T, Rest...> {
  const T* head;
  MapInputs<Rest...> rest;
  explicit MapInputs(const T* first, const Rest*... others) : head(first), rest(others...) {}
  /// Calls call(pointer...) with all operands.
  template <class Call, class... P> void apply(const Call& call, const P*... pointers) const {
    rest.apply(call, pointers..., head);
  }
};

/// Writes `count` of N elements, `step` apart.
template <int N, class R>
KOKKOS_FORCEINLINE_FUNCTION void store_tile(R* to, Index step, Index count,
                                            const Pack<R, N>& made) {
  if (step == 1 && count == N && is_packed<N>(to)) return store_pack<N>(to, made);
  for (int j = 0; j < N; ++j)
    if (j < count) to[j * step] = made.of[j];
}

/// One result: R.
template <class R> struct OneResult {
  static constexpr int width = pack_size<R>;
  using Made = R;
  R* to;
  template <int N>
  KOKKOS_FORCEINLINE_FUNCTION void store(Index at, Index step, Index count,
                                         const R (&made)[N]) const {
    Pack<R, N> pack;
    for (int j = 0; j < N; ++j) pack.of[j] = made[j];
    store_tile(to + at, step, count, pack);
  }
};

/// Rows of all operands; `out` is a `OneResult` or has its members.
template <class Out, class F, class... T> struct MapOnDevice {
  static constexpr int operands = sizeof...(T);
  static constexpr int least(int a, int b) { return a < b ? a : b; }
  template <class... S> static constexpr int width_of() {
    int fits = Out::width;
    ((fits = least(fits, pack_size<S>)), ...);
    return least(fits, 8);
  }
  static constexpr int width = width_of<T...>();  ///< of a tile

  F f;
  MapShape<operands> shape;
  Out out;
  MapInputs<T...> in;
  Index row = 1, tiles = 1;  // elements of a row, and tiles

  MapOnDevice(const F& function, const MapShape<operands>& of, const Out& to,
              const MapInputs<T...>& from)
      : f(function), shape(of), out(to), in(from) {
    if (shape.flat)
      row = shape.size;
    else if (shape.rank > 0)
      row = shape.extent[shape.rank - 1];
    tiles = max_of(1, ceil_div(row, width));
  }
  Index count() const { return row > 0 ? shape.size / row * tiles : 0; }

  KOKKOS_FUNCTION void run(Index begin, Index end) const {
    for (Index i = begin; i < end; ++i) {
      const Index r = shape.flat ? 0 : i / tiles;  // division takes long
      const Index first = (i - r * tiles) * width;
      tile<0>(in, r, first, min_of(width, row - first));
    }
  }

 private:
  /// Returns where element `first` of a row of operand k lies.
  KOKKOS_FORCEINLINE_FUNCTION Index place(int k, Index r, Index first) const {
    const MapOperand& operand = shape.operand[k];
    if (operand.flat) return r * row + first;
    Index at = first * step(k);
    for (int d = shape.rank - 2; d > 0; --d) {
      at += r % shape.extent[d] * operand.stride[d];
      r /= shape.extent[d];
    }
    return shape.rank > 1 ? at + r * operand.stride[0] : at;
  }
  KOKKOS_FORCEINLINE_FUNCTION Index step(int k) const {
    if (shape.operand[k].flat) return 1;
    return shape.rank > 0 ? shape.operand[k].stride[shape.rank - 1] : 0;
  }
  template <class S>
  KOKKOS_FORCEINLINE_FUNCTION Pack<S, width> read(const S* from, Index step, Index count) const {
    if (step == 1 && count == width && is_packed<width>(from)) return load_pack<width>(from);
    Pack<S, width> x;
    for (int j = 0; j < width; ++j) x.of[j] = from[(j < count ? j : 0) * step];
    return x;
  }
  template <int K, class S, class... Rest, class... X>
  KOKKOS_FORCEINLINE_FUNCTION void tile(const MapInputs<S, Rest...>& from, Index r, Index first,
                                        Index count, const X&... x) const {
    tile<K + 1>(from.rest, r, first, count, x...,
                read(from.head + place(K, r, first), step(K), count));
  }
  template <int K, class... X>
  KOKKOS_FORCEINLINE_FUNCTION void tile(const MapInputs<>&, Index r, Index first, Index count,
                                        const X&... x) const {
    typename Out::Made made[width];
    if constexpr (is_promoted<F>)
      make(f.f, made, widen_pack(x)...);
    else
      make(f, made, x...);
    out.store(place(K, r, first), step(K), count, made);
  }
  template <class G, class... X>
  KOKKOS_FORCEINLINE_FUNCTION static void make(const G& g, typename Out::Made (&made)[width],
                                               const X&... x) {
    using Wide = std::remove_cvref_t<decltype(g(x.of[0]...))>;
    if constexpr (std::is_same_v<Wide, float> && width > 1) {
      Wide wide[width];
      for (int j = 0; j < width; ++j) wide[j] = g(x.of[j]...);
      round_pack(wide, made);
    } else {
      for (int j = 0; j < width; ++j) made[j] = static_cast<typename Out::Made>(g(x.of[j]...));
    }
  }
};

}  // namespace tessera::detail
