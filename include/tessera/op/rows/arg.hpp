// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Where a tensor has its largest or least element.
///
///     auto i = argmax<"bsv->bs">(logits);       // int64 indices along v
///     auto j = argmin(x);                       // of all elements: a scalar tensor
///
/// Laws: the first of equal elements, the first NaN if there is one (as in NumPy), for every mesh
/// and spec; several reduced dimensions are counted row-major, in the operand's order.
#include <cstdint>

#include <tessera/base/compiled.hpp>
#include <tessera/op/call/call_options.hpp>
#include <tessera/op/reduce.hpp>
#include <tessera/plan/op/rows/arg.hpp>
#if TESSERA_BODIES
#include <tessera/kernel/rows/find.hpp>
#include <tessera/run/verb/verb_run.hpp>
#endif

namespace tessera {
namespace detail {
#if TESSERA_BODIES
inline const bool find_runs = runs(kernel_of_verb<step::Find>, [](const VerbRun& run) {
  if (run.kernel.in.size() == 1)
    return tessera::detail::find_extreme(run.type(), run.plan.reduction, run.work<LocalFind>(),
                                         run.in(0), run.at.scratch,
                                         static_cast<std::int64_t*>(run.out()));
  tessera::detail::find(run.type(), run.work<LocalFind>(), run.in(0), run.in(1),
                        static_cast<std::int64_t*>(run.out()));
});
#endif

/// How argmax<E> and argmin<E> are made.
template <class Kind, Equation E> struct ArgBy {
  static constexpr ops::Arg make(const TensorDescs&) { return {parse(E.view()), Kind::reduction}; }
};

template <class Kind, Equation E, class Out, class Bound, class A>
auto arg(const A& x, const CallOptions& call) {
  using Call = Typed<ArgBy<Kind, E>, Out, A>;
  use_find_of<typename A::value_type>();
  return run_typed<Call, Bound>(E.view(), call, Call::operation, {&x.core()});
}
template <int = dtypes>
DynamicTensor arg(Reduction reduction, std::string_view equation, const DynamicTensor& x,
                  const CallOptions& call) {
  use_tensor_of<std::int64_t>();
  return run_dynamic(equation, call, ops::Arg{parse(equation), reduction}, {&x.core()});
}
}  // namespace detail

/// Returns where x has its largest element (argmax), or its least (argmin), along the dimensions
/// that E drops: 64-bit indices, sharded as a reduction's result. Communication: over the axes that
/// split those dimensions, two all-reduces of the result's size (values, then indices; the second a
/// reduce-scatter where `Out` uses the axes); none when they are not split. Collective over the
/// mesh. Throws ShapeError when there is nothing to choose from.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto argmax(const A& x, const CallOptions& call = Where::here()) {
  return detail::arg<Max, E, Out, Bound>(x, call);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto argmin(const A& x, const CallOptions& call = Where::here()) {
  return detail::arg<Min, E, Out, Bound>(x, call);
}

/// Over all elements: the index into the tensor as one row, the same on every process.
template <TypedTensor A> auto argmax(const A& x, const CallOptions& call = Where::here()) {
  return detail::arg<Max, detail::total_equation(A::rank), Deduced, NoContract>(x, call);
}
template <TypedTensor A> auto argmin(const A& x, const CallOptions& call = Where::here()) {
  return detail::arg<Min, detail::total_equation(A::rank), Deduced, NoContract>(x, call);
}

/// These overloads take everything at run time; without a sharding the result's is deduced.
template <int = dtypes>
DynamicTensor argmax(std::string_view equation, const DynamicTensor& x,
                     const CallOptions& call = Where::here()) {
  return detail::arg(Reduction::max, equation, x, call);
}
template <int = dtypes>
DynamicTensor argmin(std::string_view equation, const DynamicTensor& x,
                     const CallOptions& call = Where::here()) {
  return detail::arg(Reduction::min, equation, x, call);
}

}  // namespace tessera
