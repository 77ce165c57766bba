// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Layer norm and RMS norm over the last dimension, which may be split, as operators; nn/ has them
/// as layers.
///
///     auto y = layer_norm(x, scale, bias);       // x "bsm", scale and bias "m"
///     auto z = rms_norm(x, scale, 1e-6);
///     DynamicTensor d = layer_norm<float>(DynamicTensor(x), s, b);
///
/// Laws: a row with scale 1 and bias 0 has mean 0 and variance v / (v + epsilon); half types are
/// computed in float and rounded once; both have second derivatives.
#include <memory>
#include <string_view>

#include <tessera/base/compiled.hpp>
#include <tessera/kernel/rows/normalize.hpp>
#include <tessera/op/call/call_options.hpp>
#include <tessera/op/call/operators.hpp>
#include <tessera/op/call/result.hpp>
#include <tessera/op/elements/map_runner.hpp>
#include <tessera/plan/op/rows/normalize.hpp>
#if TESSERA_BODIES
#include <tessera/run/verb/verb_run.hpp>
#endif

namespace tessera {
// Each is a polynomial, whose derivatives it brings, so that norms have second derivatives; half
// types are computed in float.
namespace fn {
/// dy (x - mean) inverse: of which the gradient of the scale is the sum.
struct ScaleGradient {
  static constexpr std::string_view name = "gradient of a scale";
  template <class T, class C = ComputeType<T>>
  KOKKOS_FORCEINLINE_FUNCTION C operator()(T dy, T x, ComputeType<T> inverse,
                                           ComputeType<T> mean = {}) const {
    return C(dy) * (C(x) - mean) * inverse;
  }
  template <int I, class T, class C = ComputeType<T>>
  KOKKOS_FORCEINLINE_FUNCTION C derivative(T dy, T x, ComputeType<T> inverse,
                                           ComputeType<T> mean = {}) const {
    if constexpr (I == 0) return (C(x) - mean) * inverse;
    if constexpr (I == 1) return C(dy) * inverse;
    if constexpr (I == 2) return C(dy) * (C(x) - mean);
    return -C(dy) * inverse;
  }
};
/// The gradient of x, where b is the row's sum of dy scale (x - mean) inverse, and a, which RMS
/// norm has not, its sum of dy scale: inverse (dy scale - a / n - (x - mean) inverse b / n).
struct NormGradient {
  static constexpr std::string_view name = "gradient of a norm";
  double over_n;
  template <class T, class C = ComputeType<T>>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(T dy, T x, ComputeType<T> inverse, T scale,
                                           ComputeType<T> b, ComputeType<T> mean = {},
                                           ComputeType<T> a = {}) const {
    const C n = static_cast<C>(over_n), h = (C(x) - mean) * inverse;
    return static_cast<T>(inverse * (C(dy) * C(scale) - n * (a + h * b)));
  }
  template <int I, class T, class C = ComputeType<T>>
  KOKKOS_FORCEINLINE_FUNCTION C derivative(T dy, T x, ComputeType<T> inverse, T scale,
                                           ComputeType<T> b, ComputeType<T> mean = {},
                                           ComputeType<T> a = {}) const {
    const C n = static_cast<C>(over_n), h = (C(x) - mean) * inverse;
    if constexpr (I == 0) return inverse * C(scale);
    if constexpr (I == 1) return -inverse * inverse * n * b;
    if constexpr (I == 2) return C(dy) * C(scale) - n * (a + C(2) * h * b);
    if constexpr (I == 3) return inverse * C(dy);
    if constexpr (I == 4) return -inverse * n * h;
    if constexpr (I == 5) return inverse * inverse * n * b;
    return -inverse * n;
  }
};
}  // namespace fn

namespace detail {

/// The functions of the gradients of a norm of elements T: by x and by the scale.
template <class T, bool Centred> struct NormFunctions {
  using C = ComputeType<T>;
  double over_n;
  static inline char identity = 0;

  MapKernel kernel() const {
    MapKernel kernel{.context = this, .keep = &keep_function<NormFunctions>};
    kernel.identity = &identity;
    kernel.pull = &of;
    return kernel;
  }
  /// Returns the function of a NormPull; the adjoint knows what it reads.
  static PullBack of(const void* functions, int asked) {
    const double over_n = static_cast<const NormFunctions*>(functions)->over_n;
    if constexpr (Centred)
      return asked == NormPull::by_x ? made<T, T, T, C, T, C, C, C>(fn::NormGradient{over_n})
                                     : made<C, T, T, C, C>(fn::ScaleGradient{});
    else
      return asked == NormPull::by_x ? made<T, T, T, C, T, C>(fn::NormGradient{over_n})
                                     : made<C, T, T, C>(fn::ScaleGradient{});
  }

 private:
  template <class R, class... Of, class F> static PullBack made(const F& f) {
    return {true,
            Slope::function,
            {},
            std::make_shared<OwnedFunction>(MapRunner<R, F, Of...>::kernel(f))};
  }
};

#if TESSERA_BODIES
inline const bool normalize_runs = runs(kernel_of_verb<step::Normalize>, [](const VerbRun& run) {
  const auto verb = run.step().as<step::Normalize>();
  const auto& lines = run.work<LocalScan>();
  const LocalNormalize work{lines.outer,  lines.n,     verb.epsilon,
                            verb.centred, verb.biased, verb.known};
  NormalizeMemory rows{.x = run.in(0), .scale = run.in(1), .y = run.out(), .inverse = run.also(0)};
  int k = 2;
  if (verb.biased) rows.bias = run.in(k++);
  if (verb.known) rows.known_variance = run.in(k++);
  if (verb.known && verb.centred) rows.known_mean = run.in(k);
  if (!verb.known && verb.centred) rows.mean = run.also(1);
  tessera::detail::normalize(run.type(), work, run.scale, rows);
});
#endif

/// How a norm is made.
template <bool Centred> struct NormBy {
  static constexpr ops::Normalize make(const TensorDescs& x) {
    return {norm_terms(x[0].rank(), x.size()), Centred};
  }
};
template <class T> void use_normalize() {
  use_tensor_of<T>();
  use_tensor_of<ComputeType<T>>();
  use_kernels<MomentsKernels, T>();
  use_kernels<NormalizeKernels, T>();
}
template <class T, bool Centred>
TensorCore normalize(ops::Normalize operation, double epsilon, const OperandList& operands,
                     const CallSite& site) {
  if constexpr (RealElement<T>) {  // else it has been reported
    use_normalize<T>();
    operation.epsilon = epsilon;
    const NormFunctions<T, Centred> functions{
        mean_scale(norm_rows(operation.terms), operands[0]->extents())};
    return run({operation, operands, site, {.kernel = functions.kernel()}});
  } else {
    return {};
  }
}
template <bool Centred, class Out, class Bound, class A, class... Row>
auto normalize(double epsilon, const CallOptions& call, const A& x, const Row&... row) {
  using Call = Typed<NormBy<Centred>, Out, A, Row...>;
  return typename Call::result(normalize<typename A::value_type, Centred>(
      Call::operation, epsilon, {&x.core(), &row.core()...},
      typed_site<Call, Bound>(Call::operation.name(), call, x.core())));
}
template <class T, bool Centred>
DynamicTensor normalize(double epsilon, const CallOptions& call, const OperandList& operands) {
  static_assert(
      RealElement<T>,
      "[tessera] layer norm and RMS norm are for floating-point tensors, and this one is not; use "
      "cast first");
  ops::Normalize operation = NormBy<Centred>::make(descs_of(operands));
  const DynamicTensor x(*operands[0]);
  operation.out = call.out_or(x);
  const CallSite site = call.sharded_site(operation.name());
  require_type<T>(x, site);
  return DynamicTensor(normalize<T, Centred>(operation, epsilon, operands, site));
}
}  // namespace detail

/// Returns (x - mean) / sqrt(variance + epsilon) scale + bias, mean and variance over the last
/// dimension: x is (..., size), scale and bias (size), the result like x, with x's spec or `Out`.
/// Communication: two all-reduces of a row's number over the axes that split the last dimension,
/// what brings scale and bias to x's, and the result to `Out`, within the contract `Bound`; none
/// where it is whole and they lie as it does. Collective over the mesh. Throws ShapeError when
/// extents disagree. Source: Ba, Kiros and Hinton, "Layer normalization" (2016).
template <class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor S,
          TypedTensor B>
auto layer_norm(const A& x, const S& scale, const B& bias, double epsilon = 1e-5,
                const CallOptions& call = Where::here()) {
  return detail::normalize<true, Out, Bound>(epsilon, call, x, scale, bias);
}
/// Returns x / sqrt(mean of x^2 + epsilon) scale: x is (..., size), scale (size). Communication: as
/// layer_norm, but one all-reduce of a row's number. Collective over the mesh. Source: Zhang and
/// Sennrich, "Root mean square layer normalization" (2019).
template <class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor S>
auto rms_norm(const A& x, const S& scale, double epsilon = 1e-6,
              const CallOptions& call = Where::here()) {
  return detail::normalize<false, Out, Bound>(epsilon, call, x, scale);
}

/// These overloads take everything but the element type T at run time; without a sharding the
/// result is sharded as x. They throw UsageError when x has other elements.
template <Element T>
DynamicTensor layer_norm(const DynamicTensor& x, const DynamicTensor& scale,
                         const DynamicTensor& bias, double epsilon = 1e-5,
                         const CallOptions& call = Where::here()) {
  return detail::normalize<T, true>(epsilon, call, {&x.core(), &scale.core(), &bias.core()});
}
template <Element T>
DynamicTensor rms_norm(const DynamicTensor& x, const DynamicTensor& scale, double epsilon = 1e-6,
                       const CallOptions& call = Where::here()) {
  return detail::normalize<T, false>(epsilon, call, {&x.core(), &scale.core()});
}

}  // namespace tessera
