// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Applies a function of several results elementwise, in one pass over memory; operands broadcast
/// through stride 0. The function's operator() is const and a KOKKOS_FUNCTION, and returns
/// several(...).
///
///     // velocity and weights of a step, from the old ones and a gradient
///     const auto step = [](float w, float v, float g) { return several(w - (v + g), v + g); };
///
/// Laws: results are contiguous and share no memory with operands.
#include <utility>

#include <tessera/kernel/map/map.hpp>

namespace tessera {

/// The results of a function that has several.
template <class... R> struct Several;
template <> struct Several<> {};
template <class First, class... Rest> struct Several<First, Rest...> {
  First first;
  Several<Rest...> rest;
};
KOKKOS_FORCEINLINE_FUNCTION constexpr Several<> several() { return {}; }
template <class First, class... Rest>
KOKKOS_FORCEINLINE_FUNCTION constexpr Several<First, Rest...> several(First first, Rest... rest) {
  return {first, several(rest...)};
}

namespace detail {

/// Where the results of a function go.
template <class... R> struct MapOutputs;
template <> struct MapOutputs<> {
  static constexpr int width = 8;
  using Made = Several<>;
  KOKKOS_FORCEINLINE_FUNCTION void store(Index, const Several<>&) const {}
  template <int N>
  KOKKOS_FORCEINLINE_FUNCTION void store(Index, Index, Index, const Several<> (&)[N]) const {}
};
template <class First, class... Rest> struct MapOutputs<First, Rest...> {
  First* head;
  MapOutputs<Rest...> rest;
  KOKKOS_FORCEINLINE_FUNCTION void store(Index i, const Several<First, Rest...>& made) const {
    head[i] = made.first;
    rest.store(i, made.rest);
  }
  // On a device, a tile at once (kernel/device/map.hpp).
  static constexpr int width =
      pack_size<First> < MapOutputs<Rest...>::width ? pack_size<First> : MapOutputs<Rest...>::width;
  using Made = Several<First, Rest...>;
  template <int N>
  KOKKOS_FORCEINLINE_FUNCTION void store(Index at, Index step, Index count,
                                         const Made (&made)[N]) const {
    Pack<First, N> pack;
    Several<Rest...> others[N];
    for (int j = 0; j < N; ++j) {
      pack.of[j] = made[j].first;
      others[j] = made[j].rest;
    }
    store_tile(head + at, step, count, pack);
    rest.store(at, step, count, others);
  }
};

/// Calls f with element i of each operand, and keeps its results. A function of its own: a result
/// that the loop itself named would be in memory, and the loop no vectors (g++ 12).
template <class F, class Outputs, class... T>
TESSERA_INLINE inline void several_element(const F& f, Index i, Index at, const Outputs& out,
                                           const T*... in) {
  out.store(at + i, f(in[i]...));
}
template <class F, class Outputs, class... T>
TESSERA_INLINE inline void several_loop(const F f, Index n, Index at, const Outputs out,
                                        const T*... in) {
  TESSERA_SIMD
  for (Index i = 0; i < n; ++i) several_element(f, i, at, out, in...);
}

/// Host: an index is an element.
template <class F, class Outputs, class... T> struct MapSeveral {
  static constexpr int operands = sizeof...(T);
  F f;
  MapShape<operands> shape;
  Outputs out;
  MapInputs<T...> in;

  void run(Index begin, Index end) const {
    in.apply([&](const T*... p) {
      run_tiles(std::index_sequence_for<T...>{}, begin, end, p..., MapTile<T>{}...);
    });
  }
  template <std::size_t... K>
  void run_tiles(std::index_sequence<K...>, Index begin, Index end, const T*... p,
                 MapTile<T>&&... tile) const {
    for (Index i = begin; i < end; i += map_tile) {
      const Index count = min_of(map_tile, end - i);
      const auto one_tile = [&](const T*... from) {
        with_wide_vectors([&]() TESSERA_INLINE { several_loop(f, count, i, out, from...); });
      };
      one_tile(gather_tile(shape.rank, shape.extent, shape.operand[K], p, i, count, tile.buffer,
                           tile.filled)...);
    }
  }
};

template <class F, class Outputs, class... T>
void run_map_several(const F& f, const LocalMap& work, const Outputs& out, const T*... in) {
  const MapShape<sizeof...(T)> shape = map_shape<sizeof...(T)>(work);
  const MapInputs<T...> inputs(in...);
  if constexpr (kernels_on_host) {
    launch("tessera::map_several", shape.size, 8192,
           MapSeveral<F, Outputs, T...>{f, shape, out, inputs});
  } else {
    const MapOnDevice<Outputs, F, T...> kernel(f, shape, out, inputs);
    launch("tessera::map_several", kernel.count(), 1, kernel);
  }
}

}  // namespace detail
}  // namespace tessera
