// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What derivatives of several functions have in common, and those of functions with one argument
/// fixed to a number.
///
///     struct OneMinusSquare : detail::OfValues<OneMinusSquare> {
///       template <class T> KOKKOS_FORCEINLINE_FUNCTION static T of(T y) { return T(1) - y * y; }
///     };
///
/// Laws: half types are computed in float.
#include <cstddef>
#include <type_traits>
#include <utility>

#include <tessera/kernel/functions/derivative.hpp>
#include <tessera/kernel/functions/fixed.hpp>

namespace tessera {
namespace detail {
/// A derivative of values of one type: Self::of.
template <class Self> struct OfValues {
  template <class First, class... Rest>
  KOKKOS_FORCEINLINE_FUNCTION First operator()(const First& x, const Rest&... rest) const {
    using C = ComputeType<First>;
    return static_cast<First>(Self::of(static_cast<C>(x), static_cast<C>(rest)...));
  }
};
}  // namespace detail

namespace fn {
/// The value itself. A derivative that is a truth value selects: 1 where it is true.
struct Same {
  template <class T> KOKKOS_FORCEINLINE_FUNCTION T operator()(const T& x) const { return x; }
};
/// A number, whatever the values are.
template <class T> struct Constant {
  T value;
  KOKKOS_FORCEINLINE_FUNCTION T operator()() const { return value; }
};
/// The derivative by operand J of F, whose argument P is `value`: of the values that it reads but
/// P.
template <class F, int P, class T, int J> struct FixedSlope {
  using Inner = Derivative<F, J>;
  static constexpr int count = Inner::reads.size();
  F f;
  T value;
  template <class... V> KOKKOS_FORCEINLINE_FUNCTION auto operator()(const V&... given) const {
    if constexpr (sizeof...(V) == static_cast<std::size_t>(count)) {
      return Inner::of(f)(given...);
    } else {
      T all[count];
      fill(all, given...);
      return apply(all, std::make_index_sequence<static_cast<std::size_t>(count)>{});
    }
  }
  template <class... V> KOKKOS_FORCEINLINE_FUNCTION void fill(T* all, const V&... given) const {
    const T from[] = {value, given...};
    for (int k = 0, next = 1; k < count; ++k) all[k] = Inner::reads[k] == P ? value : from[next++];
  }

 private:
  template <std::size_t... K>
  KOKKOS_FORCEINLINE_FUNCTION T apply(const T* all, std::index_sequence<K...>) const {
    return static_cast<T>(Inner::of(f)(all[K]...));
  }
};
/// The derivative of that by the value of read K.
template <class F, int P, class T, int J, int K> struct FixedCurvature {
  using Slope = FixedSlope<F, P, T, J>;
  using D = decltype(Derivative<F, J>::of(std::declval<const F&>()));
  using Inner = Derivative<D, K>;
  Slope slope;
  template <class... V> KOKKOS_FORCEINLINE_FUNCTION T operator()(const V&... given) const {
    T all[Slope::count];
    slope.fill(all, given...);
    const D d = Derivative<F, J>::of(slope.f);
    return apply(d, all, d_of(d, all, std::make_index_sequence<Slope::count>{}),
                 std::make_index_sequence<static_cast<std::size_t>(Inner::reads.size())>{});
  }

 private:
  template <std::size_t... I>
  KOKKOS_FORCEINLINE_FUNCTION T d_of(const D& d, const T* all, std::index_sequence<I...>) const {
    return static_cast<T>(d(all[I]...));
  }
  template <std::size_t... I>
  KOKKOS_FORCEINLINE_FUNCTION T apply(const D& d, const T* all, T made,
                                      std::index_sequence<I...>) const {
    return static_cast<T>(Inner::of(d)((Inner::reads[static_cast<int>(I)] == reads_result
                                            ? made
                                            : all[Inner::reads[static_cast<int>(I)]])...));
  }
};
}  // namespace fn

namespace detail {
/// Which operand of F the I-th operand of Fixed<F, P, T> is.
constexpr int beside(int position, int operand) {
  return operand < position ? operand : operand + 1;
}
/// The reads of a function in terms of that function with argument P fixed.
constexpr Reads reads_beside(const Reads& reads, int position) {
  Reads own;
  for (const int read : reads)
    if (read != position) own.push_back(read > position ? read - 1 : read);
  return own;
}
/// Which read of F's derivative is value `given` of the fixed one's.
constexpr int read_of_value(const Reads& reads, int position, int given) {
  for (int k = 0; k < reads.size(); ++k)
    if (reads[k] != position && given-- == 0) return k;
  return -1;
}
}  // namespace detail

template <class F, int P, class T, int I>
  requires requires { Derivative<F, detail::beside(P, I)>::slope; }
struct Derivative<fn::Fixed<F, P, T>, I> {
  static constexpr int operand = detail::beside(P, I);
  using Inner = Derivative<F, operand>;
  static constexpr Slope slope = Inner::slope;
  static constexpr Reads reads = [] {
    if constexpr (slope == Slope::function)
      return detail::reads_beside(Inner::reads, P);
    else
      return Reads{};
  }();
  static fn::FixedSlope<F, P, T, operand> of(const fn::Fixed<F, P, T>& f) { return {f.f, f.value}; }
};
template <class F, int P, class T, int J, int I>
  requires requires {
    Derivative<decltype(Derivative<F, J>::of(std::declval<const F&>())),
               detail::read_of_value(Derivative<F, J>::reads, P, I)>::slope;
  }
struct Derivative<fn::FixedSlope<F, P, T, J>, I> {
  static constexpr int read = detail::read_of_value(Derivative<F, J>::reads, P, I);
  using Inner = Derivative<decltype(Derivative<F, J>::of(std::declval<const F&>())), read>;
  static constexpr Slope slope = Inner::slope;
  static constexpr Reads reads = [] {
    Reads all;
    const int count = detail::reads_beside(Derivative<F, J>::reads, P).size();
    for (int k = 0; k < count && slope == Slope::function; ++k) all.push_back(k);
    return all;
  }();
  static fn::FixedCurvature<F, P, T, J, read> of(const fn::FixedSlope<F, P, T, J>& f) {
    return {f};
  }
};
template <> struct Derivative<fn::Same, 0> : UnitSlope {};

/// The base of derivatives that are a whole number.
template <int Value> struct WholeSlope {
  static constexpr Slope slope = Slope::function;
  static constexpr Reads reads{};
  template <class F> static fn::Constant<double> of(const F&) { return {Value}; }
};

}  // namespace tessera
