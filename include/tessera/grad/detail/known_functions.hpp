// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The table of derivatives of the library's functions, for each element type, and of these
/// derivatives' own, by the functions' identities. Where a library has several sources
/// (base/compiled.hpp), each fills in those of some element types.
///
///     detail::PullBackTable table;
///     detail::add_known_functions<float>(table);
#include <type_traits>

#include <tessera/grad/adjoint/moments.hpp>
#include <tessera/grad/adjoint/reduce.hpp>
#include <tessera/grad/adjoint/scatter.hpp>
#include <tessera/grad/derivatives/all.hpp>
#include <tessera/grad/detail/pull_back_table.hpp>
#include <tessera/grad/functions.hpp>
#include <tessera/op/elements/map_runner.hpp>

namespace tessera::detail {

/// Fills the table.
class KnownFunctions {
 public:
  explicit KnownFunctions(PullBackTable& table) : table_(table) {}

  /// F of elements T..., which makes R; and its derivatives, `Order` times.
  template <int Order, class R, class F, class... T> [[gnu::cold]] void add() {
    table_[&MapRunner<R, F, T...>::identity] = &PullBacks<R, F, T...>::of;
    if constexpr (Order > 1) add_derivatives<Order, R, F, T...>(std::index_sequence_for<T...>{});
  }
  /// F of one or two elements T, and of one beside a number.
  template <class T, class... F> void unary() { (add<2, T, F, T>(), ...); }
  template <class T, class... F> void binary() {
    (add<2, T, F, T, T>(), ...);
    (add<2, T, fn::Fixed<F, 0, T>, T>(), ...);
    (add<2, T, fn::Fixed<F, 1, T>, T>(), ...);
  }

 private:
  template <int Order, class R, class F, class... T, std::size_t... I>
  void add_derivatives(std::index_sequence<I...>) {
    (add_derivative<Order, static_cast<int>(I), R, F, T...>(), ...);
  }
  template <int Order, int I, class R, class F, class... T> void add_derivative() {
    if constexpr (HasDerivative<F, I>)
      if constexpr (Derivative<F, I>::slope == Slope::function)
        add_times<Order, I, R, F, T...>(
            std::make_index_sequence<static_cast<std::size_t>(Derivative<F, I>::reads.size())>{});
  }
  template <int Order, int I, class R, class F, class... T, std::size_t... K>
  void add_times(std::index_sequence<K...>) {
    using D = decltype(Derivative<F, I>::of(std::declval<const F&>()));
    using Back = PullBacks<R, F, T...>;
    constexpr Reads reads = Derivative<F, I>::reads;
    if constexpr (has_gradient<typename Back::template Value<I>>)
      add<Order - 1, typename Back::template Value<I>, fn::Times<D, static_cast<int>(sizeof...(K))>,
          R, typename Back::template Value<reads[static_cast<int>(K)]>...>();
  }

  PullBackTable& table_;
};

/// The functions of any numbers.
template <class T> void add_numbers(KnownFunctions& all) {
  all.unary<T, fn::Negate, fn::Square, fn::Reciprocal, fn::Scale, fn::Shift>();
  all.binary<T, fn::Add, fn::Subtract, fn::Multiply, fn::Divide>();
  all.add<2, T, fn::Select, bool, T, T>();
  all.add<2, T, fn::Fixed<fn::Select, 1, T>, bool, T>();
  all.add<2, T, fn::Fixed<fn::Select, 2, T>, bool, T>();
  all.add<2, T, fn::Masked, T, T>();
  all.add<1, T, fn::OneWhereEqual, T, T>();
  all.add<1, T, fn::WhereSame, T, std::int64_t, std::int64_t>();
}
/// The functions of complex numbers of parts T.
template <class T> void add_complex(KnownFunctions& all) {
  using C = complex<T>;
  add_numbers<C>(all);
  all.add<1, C, fn::Converted<C>, C>();
  all.add<1, T, fn::Real, C>();
  all.add<1, T, fn::Imag, C>();
  all.add<1, C, fn::Conj, C>();
  all.add<1, T, fn::Arg, C>();
  all.add<1, T, fn::Abs, C>();
  all.add<1, C, fn::MakeComplex, T, T>();
  all.add<1, C, fn::FromReal, T>();
  all.add<1, C, fn::FromImag, T>();
  all.add<1, C, fn::FromNegativeImag, T>();
  all.add<1, T, fn::NegativeImag, C>();
  all.add<1, C, fn::BySize, T, C, T>();
  all.add<1, C, fn::ByAngle, T, C>();
}
template <class T, class... U> void add_casts(KnownFunctions& all) {
  (all.add<1, U, fn::Cast<U>, T>(), ...);
  (all.add<1, U, fn::Converted<U>, T>(), ...);  // of which T's own is the pull of a cast
}
/// The functions of real numbers.
template <class T> void add_reals(KnownFunctions& all) {
  add_numbers<T>(all);
  add_casts<T, half, bfloat16, float, double>(all);
  all.unary<T, fn::Exp, fn::Exp2, fn::Expm1, fn::Log, fn::Log1p, fn::Log2, fn::Log10, fn::Sqrt,
            fn::Rsqrt, fn::Cbrt, fn::Abs>();
  all.unary<T, fn::Sin, fn::Cos, fn::Tan, fn::Asin, fn::Acos, fn::Atan, fn::Sinh, fn::Cosh,
            fn::Tanh, fn::Asinh, fn::Acosh, fn::Atanh>();
  all.unary<T, fn::Erf, fn::Relu, fn::ReluGradient, fn::Gelu, fn::GeluGradient, fn::GeluTanh,
            fn::Sigmoid, fn::Silu>();
  all.unary<T, fn::Floor, fn::Ceil, fn::Round, fn::Trunc, fn::Sign, fn::ClampTo<T>>();
  all.binary<T, fn::Maximum, fn::Minimum, fn::Pow, fn::LogAddExp, fn::Atan2, fn::Remainder>();
  all.add<2, T, fn::Clamp, T, T, T>();
  if constexpr (sizeof(T) == 2) {  // sums of gradients
    all.add<1, float, fn::AddAs<float>, T, T>();
    all.add<1, float, fn::AddAs<float>, float, T>();
    all.add<1, T, fn::AddAs<T>, float, T>();
  }
  using C = ComputeType<T>;
  all.add<1, T, VarianceBack, C, T, C>();
  all.add<2, C, SquaredSize, T>();
  all.add<2, C, Size, T>();
  all.add<2, C, ExpBelow, T, T>();
  all.add<2, T, LogPlus, C, T>();
  all.add<2, T, ScaledAs<T>, C>();
  all.add<2, T, Root, T>();
  all.add<2, T, RootAs<T>, C>();
}

/// Adds the derivatives of the functions of elements T.
template <class T> void add_known_functions(PullBackTable& table) {
  KnownFunctions all(table);
  if constexpr (ComplexElement<T>)
    add_complex<PartType<T>>(all);
  else
    add_reals<T>(all);
}
/// Those of the element types of one of several parts. The part is an argument, since each source
/// that has one has a function of its own.
template <int Parts, int Part> void add_known_functions_of_types(PullBackTable& table) {
  [[maybe_unused]] const auto add = [&](auto element) {
    using E = decltype(element);
    if constexpr (static_cast<int>(dtype_of<E>) % Parts == Part) add_known_functions<E>(table);
  };
  add(half{}), add(bfloat16{}), add(float{}), add(double{}), add(complex<float>{});
  add(complex<double>{});
}

#if defined(TESSERA_DERIVATIVES_PART)
template <> void add_known_functions_of_part<TESSERA_DERIVATIVES_PART>(PullBackTable& table) {
  add_known_functions_of_types<TESSERA_KERNEL_PARTS, TESSERA_DERIVATIVES_PART>(table);
}
#else
inline void add_all_known_functions(PullBackTable& table) {
  add_known_functions_of_types<1, 0>(table);
}
#endif

}  // namespace tessera::detail
