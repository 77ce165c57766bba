// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Softmax along a dimension, sharded or not, and its logarithm.
///
///     auto p = softmax<"bsv", 'v'>(logits);         // sums to 1 along v
///
/// Laws: rows sum to 1 to rounding; the largest element is subtracted first, so exp does not
/// overflow. For half types all is computed in float and rounded once, at the end. A row with a
/// NaN or +infinity, or of -infinities alone, is all NaN, as in PyTorch.
#include <tessera/base/compiled.hpp>
#include <tessera/kernel/rows/softmax.hpp>
#include <tessera/op/call/call_options.hpp>
#include <tessera/op/call/operators.hpp>
#include <tessera/op/call/result.hpp>
#include <tessera/op/to_host.hpp>
#include <tessera/plan/op/rows/softmax.hpp>
#if TESSERA_BODIES
#include <tessera/run/verb/verb_run.hpp>
#endif

namespace tessera {
namespace detail {
#if TESSERA_BODIES
inline const bool exp_sum_runs = runs(kernel_of_verb<step::ExpSum>, [](const VerbRun& run) {
  tessera::detail::exp_sums(run.type(), run.work<LocalScan>(), run.in(0), run.in(1), run.out());
});
template <bool Logarithm> void run_softmax(const VerbRun& run) {
  tessera::detail::softmax(run.type(), Logarithm, run.work<LocalScan>(), run.in(0), run.in(1),
                           run.in(2), run.out());
}
inline const bool softmax_runs = runs(kernel_of_verb<step::Softmax>, &run_softmax<false>);
inline const bool log_softmax_runs = runs(kernel_of_verb<step::LogSoftmax>, &run_softmax<true>);
#endif

/// Compiles the kernels of a softmax beside those of its own elements: sums of half types are
/// floats.
template <class T> void use_softmax() {
  use_tensor_of<ComputeType<T>>();
  use_kernels<SoftmaxKernels, T>();
}
/// How a softmax is made.
template <Equation Labels, char Along, bool Logarithm> struct SoftmaxBy {
  static constexpr ops::Softmax make(const TensorDescs&) {
    return {same_terms(Labels.view()), Along, Logarithm};
  }
};
template <Equation Labels, char Along, bool Logarithm, class Out, class Bound, class A>
auto softmax(const A& x, const CallOptions& call) {
  using Call = Typed<SoftmaxBy<Labels, Along, Logarithm>, Out, A>;
  use_softmax<typename A::value_type>();
  return run_typed<Call, Bound>(Labels.view(), call, Call::operation, {&x.core()});
}
template <Element T>
DynamicTensor softmax(bool logarithm, std::string_view labels, char along, const DynamicTensor& x,
                      const CallOptions& call) {
  static_assert(RealElement<T>, "[tessera] softmax is for floating-point tensors; use cast first");
  require_type<T>(x, call.sharded_site(labels));
  use_softmax<T>();
  return run_dynamic(labels, call, ops::Softmax{same_terms(labels), along, logarithm}, {&x.core()});
}
}  // namespace detail

/// Returns exp(x) / sum of exp(x) along the dimension `Along` of x, whose letters are `Labels`:
/// with "bsv" and 'v' x and the result are (b, s, v), under x's spec or `Out`. Communication: two
/// all-reduces, of (b, s) elements, over the axes that split `Along`, within the contract `Bound`;
/// none otherwise. Collective over the mesh. Throws nothing of its own.
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto softmax(const A& x, const CallOptions& call = Where::here()) {
  return detail::softmax<Labels, Along, false, Out, Bound>(x, call);
}

/// Returns the logarithm of softmax(x), of x's shape, without forming the quotient. Communication,
/// errors: as softmax. Collective over the mesh.
template <Equation Labels, char Along, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto log_softmax(const A& x, const CallOptions& call = Where::here()) {
  return detail::softmax<Labels, Along, true, Out, Bound>(x, call);
}

/// These overloads take everything but the element type T at run time; without a sharding the
/// result is sharded as x. They throw UsageError when x has other elements.
template <Element T>
DynamicTensor softmax(std::string_view labels, char along, const DynamicTensor& x,
                      const CallOptions& call = Where::here()) {
  return detail::softmax<T>(false, labels, along, x, call);
}
template <Element T>
DynamicTensor log_softmax(std::string_view labels, char along, const DynamicTensor& x,
                          const CallOptions& call = Where::here()) {
  return detail::softmax<T>(true, labels, along, x, call);
}

}  // namespace tessera
