// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The kernels of a function of elements, with its type erased; and those of its derivative, where
/// it brings one.
///
///     extras.kernel = detail::MapRunner<float, fn::Add, float, float>::kernel(f);
///
/// Laws: kernel(f) refers to f; keep makes a copy.
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

#include <tessera/kernel/map/map.hpp>
#include <tessera/kernel/map/map_by_loop.hpp>
#include <tessera/kernel/map/map_with_index.hpp>
#include <tessera/run/pull_back.hpp>

namespace tessera::detail {

template <class R, class F, class... T> struct PullBacks;
/// F is what pulls a gradient back through a function of the index (fn::TimesPlaced).
template <class F>
concept PullsPlaced = requires {
  F::of_linear;
};

template <class R, class F, class... T> struct MapRunner {
  /// One address for each function on elements of these types. Not const, so that no linker merges
  /// two.
  static inline char identity = 0;
  template <std::size_t... I>
  static void call(const F& f, const LocalMap& work, R* out, const void* const* in,
                   std::index_sequence<I...>) {
    tessera::detail::map<R>(f, work, out, static_cast<const T*>(in[I])...);
  }
  static void run(const void* f, const LocalMap& work, void* out, const void* const* in) {
    call(*static_cast<const F*>(f), work, static_cast<R*>(out), in,
         std::index_sequence_for<T...>{});
  }
  /// Returns the kernel that applies f, which lives as long; by another way than `run` where one is
  /// given, as by LoopRunner's.
  static MapKernel kernel(const F& f, decltype(MapKernel::run) by = &run) {
    MapKernel kernel{by, &f, nullptr, nullptr, &keep_function<F>};
    kernel.identity = &identity;
    kernel.numbers = numbers_of<F>();
    if constexpr (requires { f.given_infinity(); }) kernel.given_infinity = f.given_infinity();
    if constexpr (BringsDerivative<F, T...> || StatesSlopes<F> || StopsGradients<F>)
      kernel.pull = &PullBacks<R, F, T...>::of;
    return kernel;
  }
};

/// A function of a product in float and of extras, whose result is R: in float where it takes that,
/// else of the product rounded to T.
template <class R, class F, class T> struct OfWideProduct {
  F f;
  template <class... Extra>
  KOKKOS_FUNCTION R operator()(float product, const Extra&... extra) const {
    if constexpr (std::is_invocable_r_v<R, const F&, float, ComputeType<Extra>...>)
      return f(product, static_cast<ComputeType<Extra>>(extra)...);
    else
      return f(static_cast<T>(product), extra...);
  }
};
/// Runs the epilogue of a product; with half types the product is float.
template <class R, class F, class T, class... Extra> struct EpilogueRunner {
  static void run_wide(const void* f, const LocalMap& work, void* out, const void* const* in) {
    if constexpr (Promotable<R, F, float, Extra...>) {
      MapRunner<R, F, float, Extra...>::run(f, work, out, in);
    } else {
      const OfWideProduct<R, F, T> wide{*static_cast<const F*>(f)};
      MapRunner<R, OfWideProduct<R, F, T>, float, Extra...>::run(&wide, work, out, in);
    }
  }
  static MapKernel kernel(const F& f) {
    MapKernel kernel = MapRunner<R, F, T, Extra...>::kernel(f);
    if constexpr (is_short(dtype_of<T>)) kernel.run_wide = &run_wide;
    return kernel;
  }
};

/// Element types for which few programs compute: one loop of theirs suffices, without wide vectors.
template <class T>
inline constexpr bool is_rare_element =
    IntegerElement<T> && !std::is_same_v<T, std::int32_t> && !std::is_same_v<T, std::int64_t>;

/// Functions that few programs run, such as derivatives of derivatives: compiled small.
template <class F> inline constexpr bool is_seldom_run = false;

/// Runs a derivative: compiled fast, and fast where its operands lie as its result does. For half
/// types only the loop in float is compiled, which all of them share.
template <class R, class F, class... T> struct LoopRunner {
  static constexpr ElementSizes sizes{static_cast<int>(sizeof(T))..., static_cast<int>(sizeof(R))};
  static constexpr DType types[] = {dtype_of<T>..., dtype_of<R>};
  template <std::size_t... I>
  static void call(const F& f, Index n, R* out, const void* const* in, std::index_sequence<I...>) {
    if constexpr ((is_rare_element<R> || ... || is_rare_element<T>))
      for (Index i = 0; i < n; ++i) out[i] = static_cast<R>(f(static_cast<const T*>(in[I])[i]...));
    else if constexpr (is_seldom_run<F> && !(ComplexElement<R> || ... || ComplexElement<T>))
      run_small([&]() TESSERA_INLINE { plain_loop(f, n, out, static_cast<const T*>(in[I])...); });
    else
      simple_loop(f, n, out, static_cast<const T*>(in[I])...);
  }
  static void loop(const void* f, Index n, void* out, const void* const* in) {
    if constexpr (Promotable<R, F, T...>) {
      const auto wide = as_promoted<R, F, T...>(*static_cast<const F*>(f)).f;
      using Wide = std::remove_const_t<decltype(wide)>;
      loop_in_float(&LoopRunner<ComputeType<R>, Wide, ComputeType<T>...>::loop, &wide, n, out, in,
                    types, sizeof...(T));
    } else {
      call(*static_cast<const F*>(f), n, static_cast<R*>(out), in, std::index_sequence_for<T...>{});
    }
  }
  static void run(const void* f, const LocalMap& work, void* out, const void* const* in) {
    if constexpr (kernels_on_host)
      map_by_loop(work, &loop, f, out, in, sizes);
    else
      MapRunner<R, F, T...>::run(f, work, out, in);
  }
  static MapKernel kernel(const F& f) {
    MapKernel kernel{&run, &f, nullptr, nullptr, &keep_function<F>};
    kernel.identity = &MapRunner<R, F, T...>::identity;
    kernel.numbers = numbers_of<F>();
    if constexpr (StatesSlopes<F>) kernel.pull = &PullBacks<R, F, T...>::of;
    return kernel;
  }
  /// The kernel of the only function of type F, where it holds nothing.
  static inline const F function{};
  static constexpr MapKernel only{.run = &run,
                                  .context = &function,
                                  .keep = &keep_as_it_is,
                                  .identity = &MapRunner<R, F, T...>::identity};
};

/// A function and where the result's block lies in the whole.
template <class F> struct PlacedFunction {
  F f;
  Extents offset, extents;
  template <class Told> void numbers(Told& told) const {  // not where the block lies
    tell_numbers<F>(&f, told);
  }
};
template <class R, class F, class... T> struct IndexRunner {
  template <std::size_t... I>
  static void call(const PlacedFunction<F>& p, const LocalMap& work, R* out, const void* const* in,
                   std::index_sequence<I...>) {
    // The plan says where the result lies: a choice may have it elsewhere than the call has.
    const Extents& offset = work.offset.empty() ? p.offset : work.offset;
    tessera::detail::map_with_index<R>(p.f, work, offset, p.extents, out,
                                       static_cast<const T*>(in[I])...);
  }
  static void run(const void* placed, const LocalMap& work, void* out, const void* const* in) {
    call(*static_cast<const PlacedFunction<F>*>(placed), work, static_cast<R*>(out), in,
         std::index_sequence_for<T...>{});
  }
  static MapKernel kernel(const PlacedFunction<F>& placed) {
    MapKernel kernel{&run, &placed, nullptr, nullptr, &keep_function<PlacedFunction<F>>};
    kernel.reads_index = true;
    kernel.numbers = &tell_numbers<PlacedFunction<F>>;
    if constexpr (BringsDerivative<F, GlobalIndex, T...> || StatesSlopes<F> || PullsPlaced<F>)
      kernel.pull = &PullBacks<R, PlacedFunction<F>, T...>::of;
    return kernel;
  }
};

}  // namespace tessera::detail

#include <tessera/op/elements/pull_backs.hpp>
