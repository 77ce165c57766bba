// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The innermost loops of kernel/map/map.hpp on the host: elements that follow each other, of all
/// operands.
///
///     map_loop(fn::Add{}, 256, out, x, y);
///
/// Laws: out[i] == f(x[i], y[i]), to the bit, whichever instructions the CPU has.
#include <concepts>
#include <cstring>
#include <type_traits>
#include <utility>

#include <tessera/base/dtype.hpp>
#include <tessera/kernel/detail/convert_row.hpp>
#include <tessera/kernel/detail/map_shape.hpp>
#include <tessera/kernel/functions/cast.hpp>

namespace tessera::detail {

// The innermost loops on the host: all operands are contiguous. Arguments are passed by value: any
// store might change an object behind a lambda or a reference, which keeps g++ 12 from vectorising.
template <class R, class F, class... T>
TESSERA_INLINE inline void plain_loop(const F f, Index n, R* out, const T*... in) {
  TESSERA_SIMD
  for (Index i = 0; i < n; ++i) out[i] = static_cast<R>(f(in[i]...));
}
template <class W, class R, class F, class... T>
TESSERA_INLINE inline void loop_by(const F f, Index n, R* out, const T*... in) {
  TESSERA_SIMD
  for (Index i = 0; i < n; ++i) out[i] = static_cast<R>(f.by(W{}, in[i]...));
}
template <class W, class F, class... T>
TESSERA_INLINE inline bool all_fit(const F f, Index n, const T*... in) {
  if constexpr (HasBounds<F, W, T...>)
    if (const Fit fit = f.bounds(W{}, n, in...); fit != Fit::unsure) return fit == Fit::all;
  unsigned rare = 0;
  TESSERA_SIMD_OR(rare)
  for (Index i = 0; i < n; ++i) rare |= static_cast<unsigned>(!f.fits(W{}, in[i]...));
  return rare == 0;
}
/// Where an operand is one number in a row, so many of it stand in its place, again and again.
inline constexpr Index step_block = 64;

// With AVX-512 where there is enough to compute: every way more is compiled for each function.
template <class R, class F, class... T> void map_loop(const F& f, Index n, R* out, const T*... in) {
  if constexpr (HasWay<F, fn::CommonWay, T...>) {
    for (Index i = 0; i < n; i += map_tile) {
      const Index count = min_of(map_tile, n - i);
      with_wide_vectors<computes_much>([&]() TESSERA_INLINE {
        if constexpr (HasWay<F, fn::SimpleWay, T...>)
          if (all_fit<fn::SimpleWay>(f, count, (in + i)...))
            return loop_by<fn::SimpleWay>(f, count, out + i, (in + i)...);
        if (all_fit<fn::CommonWay>(f, count, (in + i)...))
          return loop_by<fn::CommonWay>(f, count, out + i, (in + i)...);
        if constexpr (HasWay<F, fn::ModerateWay, T...>)
          if (all_fit<fn::ModerateWay>(f, count, (in + i)...))
            return loop_by<fn::ModerateWay>(f, count, out + i, (in + i)...);
        plain_loop(f, count, out + i, (in + i)...);
      });
    }
  } else {
    with_wide_vectors<ComputesMuch<F, T...>>([&]()
                                                 TESSERA_INLINE { plain_loop(f, n, out, in...); });
  }
}

/// A function that gets half types as floats, and whose result is rounded to the element type.
template <class F, class... T> struct Promoted {
  F f;
  KOKKOS_FUNCTION auto operator()(const T&... x) const {
    return f(static_cast<ComputeType<T>>(x)...);
  }
};
/// Returns f with the number that it holds, if it does and that has a half type, as a float.
template <class F> auto widened(const F& f) {
  if constexpr (requires { f.widened(); })
    return f.widened();
  else
    return f;
}
template <class F> using Widened = decltype(widened(std::declval<const F&>()));
/// Whether f is generic: with arguments in float its result has the type in which R is computed.
template <class R, class F, class... T>
concept Promotable = (!std::same_as<R, ComputeType<R>> || ... ||
                      !std::same_as<T, ComputeType<T>>)&&std::
    is_invocable_v<const Widened<F>&, const ComputeType<T>&...>&& std::same_as<
        std::remove_cvref_t<std::invoke_result_t<const Widened<F>&, const ComputeType<T>&...>>,
        ComputeType<R>>;
/// The cheaper way of a function whose operand and result have one half type.
template <class F> struct ShortWay {
  KOKKOS_FORCEINLINE_FUNCTION float operator()(float x) const { return F::of_short(x); }
};
template <class F>
  requires requires { F::of_short_common(0.0F); }
struct ShortWay<F> {
  KOKKOS_FORCEINLINE_FUNCTION float operator()(float x) const { return F::of_short(x); }
  KOKKOS_FORCEINLINE_FUNCTION bool fits(fn::CommonWay way, float x) const {
    return F{}.fits(way, x);
  }
  KOKKOS_FORCEINLINE_FUNCTION float by(fn::CommonWay, float x) const {
    return F::of_short_common(x);
  }
};
template <class F> inline constexpr bool of_short_way = false;
template <class F> inline constexpr bool of_short_way<ShortWay<F>> = true;
/// Returns f as a function of half types, for results R.
template <class R, class F, class... T> auto as_promoted(const F& f) {
  if constexpr (HasShortWay<F> && sizeof(R) == 2 && (std::same_as<R, T> && ...))
    return Promoted<ShortWay<F>, T...>{};
  else
    return Promoted<Widened<F>, T...>{widened(f)};
}

/// Holds a tile of elements that are computed in another type.
template <class T> struct WideTile { alignas(64) ComputeType<T> buffer[map_tile]; };
template <class T>
  requires std::same_as<T, ComputeType<T>>
struct WideTile<T> {
  static constexpr T* buffer = nullptr;
};

/// Whether nothing is done but to convert between float and a half type.
template <class R, class F, class... T> inline constexpr bool converts = false;
template <class R, class T>
inline constexpr bool converts<R, fn::Cast<float>, T> =
    std::same_as<ComputeType<R>, float>&& std::same_as<ComputeType<T>, float>&&
        std::same_as<R, float> != std::same_as<T, float>;

/// Functions of half types that compute so little that elements stay in registers from the
/// conversion to the rounding; in others a tile's conversions hide behind the computation.
template <class F, class... T>
inline constexpr bool in_registers =
    !ComputesMuch<F> && !HasWay<F, fn::CommonWay, ComputeType<T>...>;

#if defined(TESSERA_AVX512)
template <class C, class F, class... T>
TESSERA_INLINE inline void lanes_loop(const F f, C* out, const T*... in) {
  TESSERA_SIMD
  for (Index j = 0; j < short_lanes; ++j) out[j] = f(in[j]...);
}
template <class R, class F, class... T>
TESSERA_AVX512_INLINE inline void map_lanes(const F f, R* out, const T*... in) {
  [&](ShortLanes<ComputeType<T>>&&... wide) TESSERA_AVX512_INLINE {
    ShortLanes<ComputeType<R>> made;
    if constexpr (std::is_same_v<R, ComputeType<R>>)
      (widen_lanes(in, wide.lane), ...);
    else  // the last rounding makes NaNs quiet
      (read_lanes(in, wide.lane), ...);
    lanes_loop(f, made.lane, wide.lane...);
    if constexpr (of_short_way<F>)
      narrow_widened(made.lane, out);
    else
      narrow_lanes(made.lane, out);
  }(ShortLanes<ComputeType<T>>{}...);
}
/// An operand of a row: its elements from `first` on or, with step 0, step_block of them that are
/// alike.
template <class T> struct RowOperand {
  const T* first;
  Index step;
  TESSERA_INLINE const T* at(Index i) const { return first + i * step; }
};
/// A row of which some operands have half types, 16 elements at a time.
template <class R, class F, class... T>
TESSERA_AVX512_ALONE void short_loop(const F f, Index n, R* out, const RowOperand<T>... in) {
  Index i = 0;
  for (; i + short_lanes <= n; i += short_lanes) map_lanes(f, out + i, in.at(i)...);
  if (i == n) return;
  const auto bytes = [&](auto lane) { return static_cast<std::size_t>(n - i) * sizeof(lane); };
  [&](ShortLanes<T>&&... rest) TESSERA_AVX512_INLINE {
    ShortLanes<R> made;
    // Not all bits are a truth value.
    (std::memset(static_cast<void*>(rest.lane), 0, sizeof(rest.lane)), ...);
    (std::memcpy(rest.lane, in.at(i), bytes(T{})), ...);
    map_lanes(f, made.lane, rest.lane...);
    std::memcpy(out + i, made.lane, bytes(R{}));
  }(ShortLanes<T>{}...);
}
#endif

/// Tiles of half types are converted, computed and rounded one after the other.
template <class R, class F, class... T>
void map_loop(const Promoted<F, T...>& f, Index n, R* out, const T*... in) {
  if constexpr (converts<R, F, T...>) {
    convert_row(in..., n, out);
  } else {
#if defined(TESSERA_AVX512)
    if constexpr (in_registers<F, T...>)
      if (has_avx512()) return short_loop(f.f, n, out, RowOperand<T>{in, 1}...);
#endif
    [&](WideTile<T>&&... wide) {
      WideTile<R> made;
      for (Index i = 0; i < n; i += map_tile) {
        const Index count = min_of(map_tile, n - i);
        if constexpr (std::same_as<R, ComputeType<R>>) {
          map_loop(f.f, count, out + i, computed_row(in + i, count, wide.buffer)...);
        } else {
          map_loop(f.f, count, made.buffer, computed_row(in + i, count, wide.buffer)...);
          convert_row(made.buffer, count, out + i);
        }
      }
    }(WideTile<T>{}...);
  }
}

/// Computes out[i] as map_loop does, by no way of f but one: less is compiled. A generic f gets
/// half types as floats.
template <class R, class F, class... T>
void simple_loop(const F& f, Index n, R* out, const T*... in) {
  if constexpr (Promotable<R, F, T...>)
    map_loop(as_promoted<R, F, T...>(f), n, out, in...);
  else
    with_wide_vectors([&]() TESSERA_INLINE { plain_loop(f, n, out, in...); });
}

/// Functions of which a whole row is one loop.
template <class F, class... T> inline constexpr bool in_one_loop = !HasWay<F, fn::CommonWay, T...>;
template <class F, class... T> inline constexpr bool in_one_loop<Promoted<F, T...>, T...> = false;
/// Functions of half types of which a row is one short_loop, where the CPU has AVX-512.
template <class F> inline constexpr bool in_short_loop = false;
template <class F, class... T>
inline constexpr bool in_short_loop<Promoted<F, T...>> = in_registers<F, T...>;

}  // namespace tessera::detail
