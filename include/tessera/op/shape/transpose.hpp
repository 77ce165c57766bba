// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Reordering of dimensions: the sharding goes with them, so nothing is communicated.
///
///     auto wt = transpose<"ij->ji">(w);            // P<data, model> becomes P<model, data>
///
/// Laws: transpose<"ji->ij">(transpose<"ij->ji">(x)) equals x.
#include <tessera/op/call/call_options.hpp>
#include <tessera/op/call/operators.hpp>
#include <tessera/op/call/result.hpp>

namespace tessera {
namespace detail {
/// How transpose<E> is made.
template <Equation E> struct TransposeBy {
  static constexpr ops::Transpose make(const TensorDescs&) { return {parse(E.view())}; }
};
template <Equation E, class Out, class A> using TypedTranspose = Typed<TransposeBy<E>, Out, A>;
}  // namespace detail

/// Returns x with its dimensions reordered: with "ij->ji" x is (n, m) and the result (m, n). Its
/// sharding goes with them. Communication: none, but where `Out` is another spec, that of a
/// reshard. Collective over the mesh. Throws nothing of its own.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
typename detail::TypedTranspose<E, Out, A>::result transpose(
    const A& x, const CallOptions& call = Where::here()) {
  using Typed = detail::TypedTranspose<E, Out, A>;
  return detail::run_typed<Typed, Bound>(E.view(), call, Typed::operation, {&x.core()});
}
/// This overload takes everything at run time.
inline DynamicTensor transpose(std::string_view equation, const DynamicTensor& x,
                               const CallOptions& call = Where::here()) {
  return detail::run_dynamic(equation, call, ops::Transpose{parse(equation)}, {&x.core()});
}

}  // namespace tessera
