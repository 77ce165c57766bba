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
#include <tessera/op/map_runner.hpp>

namespace tessera {
namespace fn {

/// cotangent times D of N values; a bool D selects.
template <class D, int N> struct Times {
  static constexpr std::string_view name = "gradient";
  D d;
  template <class C, class... V>
    requires(sizeof...(V) == N)
  KOKKOS_FORCEINLINE_FUNCTION C operator()(const C& cotangent, const V&... values) const {
    const auto slope = d(values...);
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(slope)>, bool>)
      return slope ? cotangent : C{};
    else if constexpr (std::is_same_v<std::remove_cvref_t<decltype(slope)>, double>)
      return static_cast<C>(Multiply{}(static_cast<ComputeType<C>>(cotangent),
                                       tessera::detail::from_double<ComputeType<C>>(slope)));
    else
      return static_cast<C>(
          Multiply{}(static_cast<ComputeType<C>>(cotangent), static_cast<ComputeType<C>>(slope)));
  }
};
/// The same of a function that knows where its elements lie.
template <class F, int I> struct TimesPlaced {
  static constexpr std::string_view name = "gradient";
  F f;
  template <class C, class... V>
  KOKKOS_FUNCTION C operator()(const GlobalIndex& i, const C& cotangent, const V&... values) const {
    return static_cast<C>(
        Multiply{}(static_cast<ComputeType<C>>(cotangent),
                   static_cast<ComputeType<C>>(OwnDerivative<F, I>{f}(i, values...))));
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

}  // namespace fn

namespace detail {

template <class T> inline constexpr bool has_gradient = RealElement<T> || ComplexElement<T>;

template <class F, int I>
concept HasDerivative = requires {
  Derivative<F, I>::slope;
};

template <class R, class F, class... T> struct PullBacks {
  template <int K>
  using Value = typename std::tuple_element_t<
      K + 1, std::tuple<std::type_identity<R>, std::type_identity<T>...>>::type;

  /// Returns how the gradient of f's result becomes that of an operand.
  static PullBack of(const void* f, int operand) {
    return any(*static_cast<const F*>(f), operand, std::index_sequence_for<T...>{});
  }

 private:
  template <std::size_t... I>
  static PullBack any(const F& f, int operand, std::index_sequence<I...>) {
    PullBack back;
    ((static_cast<int>(I) == operand ? void(back = one<static_cast<int>(I)>(f)) : void()), ...);
    return back;
  }
  template <int I> static PullBack one(const F& f) {
    using To = Value<I>;
    if constexpr (!has_gradient<To> || !has_gradient<R>) {
      return {.known = true};
    } else if constexpr (BringsDerivative<F, T...>) {
      return own<I>(fn::OwnDerivative<F, I>{f}, std::index_sequence_for<T...>{});
    } else if constexpr (HasDerivative<F, I>) {
      using D = Derivative<F, I>;
      if constexpr (D::slope == Slope::function) {
        constexpr int count = D::reads.size();
        return by<I>(D::of(f), std::make_index_sequence<count>{});
      } else if constexpr (D::slope == Slope::one && !std::is_same_v<R, To>) {
        const fn::Converted<To> convert;
        return {
            true,
            Slope::function,
            {},
            std::make_shared<OwnedFunction>(LoopRunner<To, fn::Converted<To>, R>::kernel(convert))};
      } else {
        return {.known = true, .slope = D::slope};
      }
    } else {
      return {};
    }
  }
  template <int I, class D, std::size_t... K>
  static PullBack by(const D& d, std::index_sequence<K...>) {
    constexpr Reads reads = Derivative<F, I>::reads;
    using Pull = fn::Times<D, static_cast<int>(sizeof...(K))>;
    const Pull pull{d};
    return {true, Slope::function, reads,
            std::make_shared<OwnedFunction>(
                LoopRunner<Value<I>, Pull, R, Value<reads[static_cast<int>(K)]>...>::kernel(pull))};
  }
  template <int I, class D, std::size_t... K>
  static PullBack own(const D& d, std::index_sequence<K...>) {
    using Pull = fn::Times<D, static_cast<int>(sizeof...(T))>;
    const Pull pull{d};
    return {true, Slope::function, Reads{static_cast<int>(K)...},
            std::make_shared<OwnedFunction>(LoopRunner<Value<I>, Pull, R, T...>::kernel(pull))};
  }
};

template <class R, class F, class... T> struct PullBacks<R, PlacedFunction<F>, T...> {
  static PullBack of(const void* placed, int operand) {
    return any(*static_cast<const PlacedFunction<F>*>(placed), operand,
               std::index_sequence_for<T...>{});
  }

 private:
  template <std::size_t... I>
  static PullBack any(const PlacedFunction<F>& placed, int operand, std::index_sequence<I...>) {
    PullBack back;
    ((static_cast<int>(I) == operand ? void(back = one<static_cast<int>(I), T>(placed)) : void()),
     ...);
    return back;
  }
  template <int I, class To> static PullBack one(const PlacedFunction<F>& placed) {
    if constexpr (!has_gradient<To> || !has_gradient<R>) {
      return {.known = true};
    } else {
      using Pull = fn::TimesPlaced<F, I>;
      const PlacedFunction<Pull> pull{{placed.f}, placed.offset, placed.extents};
      PullBack back{.known = true, .slope = Slope::function};
      for (int k = 0; k < static_cast<int>(sizeof...(T)); ++k) back.reads.push_back(k);
      back.function = std::make_shared<OwnedFunction>(IndexRunner<To, Pull, R, T...>::kernel(pull));
      return back;
    }
  }
};

}  // namespace detail

/// Derivatives of these: linear in the cotangent.
template <class D, int N> struct Derivative<fn::Times<D, N>, 0> {
  static constexpr Slope slope = Slope::function;
  static constexpr Reads reads = [] {
    Reads all;
    for (int k = 1; k <= N; ++k) all.push_back(k);
    return all;
  }();
  static D of(const fn::Times<D, N>& f) { return f.d; }
};
namespace fn {
/// D of some of N values: those in Derivative<Of, I>::reads, where Of is a function of all of them.
template <class Of, int I> struct SlopeWithin {
  using Within = Derivative<Of, I>;
  Of of;
  template <class... V> KOKKOS_FORCEINLINE_FUNCTION auto operator()(const V&... values) const {
    return pick(std::make_index_sequence<static_cast<std::size_t>(Within::reads.size())>{},
                values...);
  }

 private:
  template <std::size_t... K, class First, class... Rest>
  KOKKOS_FORCEINLINE_FUNCTION auto pick(std::index_sequence<K...>, const First& first,
                                        const Rest&... rest) const {
    return Within::of(of)(value<Within::reads[static_cast<int>(K)]>(first, rest...)...);
  }
  template <int K, class First, class... Rest>
  KOKKOS_FORCEINLINE_FUNCTION auto value(const First& first, const Rest&... rest) const {
    if constexpr (K == reads_result)
      return of(first, rest...);
    else if constexpr (K == 0)
      return first;
    else
      return value<K - 1>(rest...);
  }
};
}  // namespace fn
/// By a value that D reads: cotangent times D's own derivative.
template <class D, int N, int I>
  requires(I >= 1 && detail::HasDerivative<D, I - 1>)
struct Derivative<fn::Times<D, N>, I> {
  using Inner = Derivative<D, I - 1>;
  static constexpr Slope slope = Inner::slope == Slope::zero ? Slope::zero : Slope::function;
  static constexpr Reads reads = [] {
    Reads all{0};
    for (int k = 1; k <= N && Inner::slope == Slope::function; ++k) all.push_back(k);
    return all;
  }();
  static auto of(const fn::Times<D, N>& f) {
    if constexpr (Inner::slope == Slope::function)
      return fn::Times<fn::SlopeWithin<D, I - 1>, N>{{f.d}};
    else if constexpr (Inner::slope == Slope::minus_one)
      return fn::Negate{};
    else
      return fn::Scale{};
  }
};

}  // namespace tessera
