// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// From derivatives of functions (kernel/functions/derivative.hpp) to the kernels that pull a
/// gradient back through them: cotangent times derivative, in one pass.
///
///     PullBack back = detail::PullBacks<float, fn::Tanh, float>::of(&f, 0);
///
/// Laws: the pulled gradient has the operand's element type; of operands that are no numbers with
/// derivatives there is none.
#include <tuple>

#include <tessera/kernel/functions/arithmetic.hpp>
#include <tessera/kernel/functions/cast.hpp>
#include <tessera/kernel/functions/fixed.hpp>
#include <tessera/op/elements/map_runner.hpp>

namespace tessera {
namespace fn {

/// A slope of the larger of two, and its like: where it is 0 nothing passes, NaN neither.
struct Share {
  float part;
  KOKKOS_FORCEINLINE_FUNCTION constexpr operator float() const { return part; }
};
/// A cotangent times a slope, in the cotangent's type; a bool selects, so that nothing passes where
/// it is false, NaN neither.
template <class C, class D>
KOKKOS_FORCEINLINE_FUNCTION C times_slope(const C& cotangent, const D& slope) {
  using Wide = ComputeType<C>;
  if constexpr (std::is_same_v<D, bool>)
    return slope ? cotangent : C{};
  else if constexpr (std::is_same_v<D, Share>)
    return slope.part == 0
               ? C{}
               : static_cast<C>(static_cast<Wide>(cotangent) * static_cast<Wide>(slope.part));
  else if constexpr (std::is_same_v<D, double>)
    return static_cast<C>(
        Multiply{}(static_cast<Wide>(cotangent), tessera::detail::from_double<Wide>(slope)));
  else
    return static_cast<C>(Multiply{}(static_cast<Wide>(cotangent), static_cast<Wide>(slope)));
}
/// cotangent times D of N values.
template <class D, int N> struct Times {
  static constexpr std::string_view name = "gradient";
  D d;
  template <class C, class... V>
    requires(sizeof...(V) == N)
  KOKKOS_FORCEINLINE_FUNCTION C operator()(const C& cotangent, const V&... values) const {
    return times_slope(cotangent, d(values...));
  }
};
/// Multiplies by the derivative of a function that knows where its elements lie.
template <class F, int I> struct TimesPlaced {
  static constexpr std::string_view name = "gradient";
  /// Whether the derivative depends on no value.
  static constexpr bool of_linear = has(tessera::detail::stated_linearity<F>(), Linearity::linear);
  F f;
  template <class C, class... V>
  KOKKOS_FUNCTION C operator()(const GlobalIndex& i, const C& cotangent, const V&... values) const {
    return times_slope(cotangent, OwnDerivative<F, I>{f}(i, values...));
  }
};
/// The element itself, or its real part, as another element type.
template <class U> struct Converted {
  static constexpr std::string_view name = "gradient";
  template <class T> KOKKOS_FORCEINLINE_FUNCTION U operator()(const T& x) const {
    if constexpr (ComplexElement<T> && !ComplexElement<U>)
      return static_cast<U>(x.re);
    else
      return Cast<U>{}(x);
  }
};
/// a + b as an element of type R, computed in the wider of the types in which theirs are.
template <class R> struct AddAs {
  static constexpr std::string_view name = "Add";
  template <class A, class B>
  KOKKOS_FORCEINLINE_FUNCTION R operator()(const A& a, const B& b) const {
    return static_cast<R>(static_cast<ComputeType<A>>(a) + static_cast<ComputeType<B>>(b));
  }
};

}  // namespace fn

namespace detail {

/// Those of gradients of gradients.
template <class D, int M, int N>
inline constexpr bool is_seldom_run<fn::Times<fn::Times<D, M>, N>> = true;

template <class T> inline constexpr bool has_gradient = RealElement<T> || ComplexElement<T>;

template <class F, int I>
concept HasPull = requires {
  Pulled<F, I>::reads;
};

/// Returns one.operator()<I>() where I, below N, is the operand.
template <int N, int I = 0, class One>
TESSERA_INLINE inline PullBack by_operand(int operand, const One& one) {
  if constexpr (I == N)
    return {};
  else
    return operand == I ? one.template operator()<I>() : by_operand<N, I + 1>(operand, one);
}

inline constexpr Reads no_reads{};

/// Pulls back by a function of the cotangent and the values named.
template <class Function>
[[gnu::noinline]] PullBack pull_by(const MapKernel& kernel, const Reads& reads) {
  return {true, Slope::function, reads, std::make_shared<Function>(kernel)};
}

template <class R, class F, class... T> struct PullBacks {
  template <int K>
  using Value = typename std::tuple_element_t<
      K + 1, std::tuple<std::type_identity<R>, std::type_identity<T>...>>::type;

  /// Returns how the gradient of f's result becomes that of an operand. Compiled small: there is
  /// one for each function, and a pass backward calls it once a map.
  [[gnu::cold]] static PullBack of(const void* f, int operand) {
    return by_operand<sizeof...(T)>(
        operand, [&]<int I>() TESSERA_INLINE { return one<I>(*static_cast<const F*>(f)); });
  }

 private:
  template <int I> [[gnu::cold]] static PullBack one(const F& f) {
    using To = Value<I>;
    if constexpr (!has_gradient<To> || !has_gradient<R> || StopsGradients<F>) {
      return {.known = true};
    } else if constexpr (BringsDerivative<F, T...>) {
      return times_all<I>(fn::OwnDerivative<F, I>{f}, std::index_sequence_for<T...>{});
    } else if constexpr (HasPull<F, I> &&
                         (ComplexElement<R> || ComplexElement<To> || !HasDerivative<F, I>)) {
      return pulled_read<I>(
          Pulled<F, I>::of(f),
          std::make_index_sequence<static_cast<std::size_t>(Pulled<F, I>::reads.size())>{});
    } else if constexpr (HasDerivative<F, I>) {
      using D = Derivative<F, I>;
      if constexpr (D::slope == Slope::function)
        return times_read<I>(D::of(f),
                             std::make_index_sequence<static_cast<std::size_t>(D::reads.size())>{});
      else if constexpr (D::slope == Slope::one && !std::is_same_v<R, To>)
        return made<To, R>(fn::Converted<To>{}, no_reads);
      else
        return {.known = true, .slope = D::slope};
    } else {
      return {};
    }
  }
  template <int I, class D, std::size_t... K>
  static PullBack times_read(const D& d, std::index_sequence<K...>) {
    return times<I, Derivative<F, I>::reads[static_cast<int>(K)]...>(d);
  }
  template <int I, class Pull, std::size_t... K>
  static PullBack pulled_read(const Pull& pull, std::index_sequence<K...>) {
    static constexpr Reads reads = Pulled<F, I>::reads;
    return made<Value<I>, R, Value<reads[static_cast<int>(K)]>...>(pull, reads);
  }
  template <int I, class D, std::size_t... K>
  static PullBack times_all(const D& d, std::index_sequence<K...>) {
    return times<I, static_cast<int>(K)...>(d);
  }
  /// The cotangent times d of the values named.
  template <int I, int... Read, class D> static PullBack times(const D& d) {
    static constexpr Reads reads{Read...};
    return made<Value<I>, R, Value<Read>...>(fn::Times<D, static_cast<int>(sizeof...(Read))>{d},
                                             reads);
  }
  /// By a function of elements From..., which makes To.
  template <class To, class... From, class Pull>
  static PullBack made(const Pull& pull, const Reads& reads) {
    using Runner = LoopRunner<To, Pull, From...>;
    if constexpr (std::is_empty_v<Pull> && std::is_default_constructible_v<Pull> &&
                  !TellsNumbers<Pull>)
      return pull_by<OwnedFunction>(Runner::only, reads);
    else
      return pull_by<OwnedFunction>(Runner::kernel(pull), reads);
  }
};

template <class R, class F, class... T> struct PullBacks<R, PlacedFunction<F>, T...> {
  static PullBack of(const void* placed, int operand) {
    return by_operand<sizeof...(T)>(operand, [&]<int I>() TESSERA_INLINE {
      return one<I, std::tuple_element_t<I, std::tuple<T...>>>(
          *static_cast<const PlacedFunction<F>*>(placed));
    });
  }

 private:
  template <int I, class To> static PullBack one(const PlacedFunction<F>& placed) {
    if constexpr (!has_gradient<To> || !has_gradient<R>) {
      return {.known = true};
    } else if constexpr (PullsPlaced<F>) {  // the same of another cotangent
      if constexpr (I == 0)
        return again<T...>(placed);
      else
        return {.known = F::of_linear};
    } else if constexpr (HasDerivative<F, I>) {
      using D = Derivative<F, I>;
      static_assert(D::slope != Slope::function && std::is_same_v<R, To>,
                    "[tessera] a function of the index states slopes that are constant, of "
                    "operands of its own type; give it a derivative(i, x...)");
      return {.known = true, .slope = D::slope};
    } else {
      using Pull = fn::TimesPlaced<F, I>;
      const PlacedFunction<Pull> pull{{placed.f}, placed.offset, placed.extents};
      PullBack back{.known = true, .slope = Slope::function};
      for (int k = 0; k < static_cast<int>(sizeof...(T)); ++k) back.reads.push_back(k);
      back.function = std::make_shared<OwnedFunction>(IndexRunner<To, Pull, R, T...>::kernel(pull));
      return back;
    }
  }
  template <class To, class... Values> static PullBack again(const PlacedFunction<F>& placed) {
    PullBack back{.known = true, .slope = Slope::function};
    for (int k = 1; k <= static_cast<int>(sizeof...(Values)); ++k) back.reads.push_back(k);
    back.function =
        std::make_shared<OwnedFunction>(IndexRunner<To, F, R, Values...>::kernel(placed));
    return back;
  }
};

}  // namespace detail
}  // namespace tessera
