// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Arithmetic into an existing tensor: nothing is allocated where the shardings agree.
///
///     velocity += gradient;   weights *= 0.5f;   weights -= bias;     // bias stretches
///     axpy(-0.01f, gradient, weights);                                // weights -= 0.01 gradient
///
/// Laws: x += y gives x the value of x + y, under x's spec, in x's memory, which all copies of x
/// share; y may be x itself. Errors of operators carry the place of the call where a tensor is
/// dynamic or both are of one type; of other typed operands they cannot, and name the function.
#include <concepts>

#include <tessera/op/elements/beside.hpp>
#include <tessera/op/elements/named_function.hpp>
#include <tessera/op/into.hpp>

namespace tessera {
namespace detail {

/// y + alpha x
template <class T> struct AddMultiple {
  static constexpr std::string_view name = "axpy";
  static constexpr Linearity linearity = Linearity::linear;
  T alpha;
  KOKKOS_FORCEINLINE_FUNCTION T operator()(T x, T y) const {
    using C = ComputeType<T>;
    return static_cast<T>(
        fn::Add{}(static_cast<C>(y), fn::Multiply{}(static_cast<C>(alpha), static_cast<C>(x))));
  }
};

template <class F, TypedTensor A, class B>
void apply_in_place(const F& f, A& x, const B& y, Where where = {}) {
  if constexpr (TypedTensor<B>) {
    map_into(At{where}, x, f, x, y);
  } else {
    using T = typename A::value_type;
    map_into(x, typed_beside<F, 1, T>(f, y, {function_name<F>(), Where{}}), x);
  }
}

/// f(x...) into y, elementwise from the right, all of elements T.
template <class T, class F, std::same_as<TensorCore>... X>
void map_elements_into(const F& f, const TensorCore& y, CallSite site, const X&... x) {
  const OperandList operands{&x...};
  Extras extras = into(y, operands);
  extras.kernel = kernel_of_any<T, F, std::conditional_t<true, T, X>...>(f);
  const ops::Map operation{broadcast_terms({x.rank()...}), dtype_of<T>,
                           linearity<F, std::conditional_t<true, T, X>...>, y.sharding()};
  (void)run({operation, operands, site, extras});
}

/// Calls run(T{}) with T the tensors' common number type. Throws UsageError when there is none.
template <class Run>
void with_common_number(const OperandList& operands, CallSite site, const Run& run) {
  for (const TensorCore* operand : operands) {
    const DType type = mesh_of(*operand, site).process() >= 0 ? operand->type() : DType::f32;
    if (!is_number(type) || type != operands[0]->type())
      throw UsageError(std::string(site.label) + ": the operands are of " +
                           std::string(name_of(operands[0]->type())) + " and " +
                           std::string(name_of(type)) +
                           "; arithmetic takes numbers of one element type; cast one of them",
                       site.where);
  }
  with_number_type(operands[0]->type(), run);
}

template <class F>
void apply_in_place(const F& f, const DynamicTensor& x, const DynamicTensor& y, Where where) {
  const CallSite site{function_name<F>(), where};
  with_common_number({&x.core(), &y.core()}, site, [&](auto zero) {
    map_elements_into<decltype(zero)>(f, x.core(), site, x.core(), y.core());
  });
}
template <class F, Scalar S>
void apply_in_place(const F& f, const DynamicTensor& x, S y, Where where) {
  const CallSite site{function_name<F>(), where};
  with_common_number({&x.core()}, site, [&](auto zero) {
    using T = decltype(zero);
    map_elements_into<T>(beside<F, 1, T>(f, y, site), x.core(), site, x.core());
  });
}

/// The left operand of an operator in place, where it is dynamic.
using PlacedDestination = Placed<DynamicTensor>;
}  // namespace detail

/// x becomes x + y; y is a number or a tensor that broadcasts to x's extents, of x's element type.
/// Communication: none where y is split as x is (a stretched dimension whole); else y is resharded.
/// Collective over the mesh. Throws ShapeError when y does not broadcast to x, UsageError when the
/// number is no element of x's type; x is then as it was.
template <TypedTensor A, detail::OtherOperand B>
  requires(!std::same_as<A, B>)
A& operator+=(A& x, const B& y) {
  detail::apply_in_place(fn::Add{}, x, y);
  return x;
}
template <TypedTensor A> A& operator+=(A& x, const detail::PlacedLike<A>& y) {
  detail::apply_in_place(fn::Add{}, x, y.tensor, y.where);
  return x;
}
template <detail::EitherOperand B>
DynamicTensor& operator+=(const detail::PlacedDestination& x, const B& y) {
  detail::apply_in_place(fn::Add{}, x.tensor, y, x.where);
  return x.tensor;
}
template <TypedTensor A, detail::OtherOperand B>
  requires(!std::same_as<A, B>)
A& operator-=(A& x, const B& y) {
  detail::apply_in_place(fn::Subtract{}, x, y);
  return x;
}
template <TypedTensor A> A& operator-=(A& x, const detail::PlacedLike<A>& y) {
  detail::apply_in_place(fn::Subtract{}, x, y.tensor, y.where);
  return x;
}
template <detail::EitherOperand B>
DynamicTensor& operator-=(const detail::PlacedDestination& x, const B& y) {
  detail::apply_in_place(fn::Subtract{}, x.tensor, y, x.where);
  return x.tensor;
}
template <TypedTensor A, detail::OtherOperand B>
  requires(!std::same_as<A, B>)
A& operator*=(A& x, const B& y) {
  detail::apply_in_place(fn::Multiply{}, x, y);
  return x;
}
template <TypedTensor A> A& operator*=(A& x, const detail::PlacedLike<A>& y) {
  detail::apply_in_place(fn::Multiply{}, x, y.tensor, y.where);
  return x;
}
template <detail::EitherOperand B>
DynamicTensor& operator*=(const detail::PlacedDestination& x, const B& y) {
  detail::apply_in_place(fn::Multiply{}, x.tensor, y, x.where);
  return x.tensor;
}
template <TypedTensor A, detail::OtherOperand B>
  requires(!std::same_as<A, B>)
A& operator/=(A& x, const B& y) {
  detail::apply_in_place(fn::Divide{}, x, y);
  return x;
}
template <TypedTensor A> A& operator/=(A& x, const detail::PlacedLike<A>& y) {
  detail::apply_in_place(fn::Divide{}, x, y.tensor, y.where);
  return x;
}
template <detail::EitherOperand B>
DynamicTensor& operator/=(const detail::PlacedDestination& x, const B& y) {
  detail::apply_in_place(fn::Divide{}, x.tensor, y, x.where);
  return x.tensor;
}

/// y becomes y + alpha x, rounded once; x broadcasts to y. Communication and errors: as y += x.
template <Scalar S, TypedTensor X, TypedTensor Y>
void axpy(S alpha, const X& x, Y& y, Where where = Where::here()) {
  using T = typename Y::value_type;
  map_into(At{where}, y, detail::AddMultiple<T>{detail::scalar_as<T>(alpha, {"axpy", where})}, x,
           y);
}
template <Scalar S, std::same_as<DynamicTensor> X>
void axpy(S alpha, const X& x, const X& y, Where where = Where::here()) {
  const detail::CallSite site{"axpy", where};
  detail::with_common_number({&y.core(), &x.core()}, site, [&](auto zero) {
    using T = decltype(zero);
    const detail::AddMultiple<T> f{detail::element_of_type<T>(alpha, site)};
    detail::map_elements_into<T>(f, y.core(), site, x.core(), y.core());
  });
}

}  // namespace tessera
