// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Convolutions, and their gradients, with any dimension of either operand split: a halo of the
/// input is exchanged where its spatial dimensions are.
///
///     auto y = convolve<nhwc>(x, k, {.stride = {2, 2}, .low = {3, 3}, .high = {3, 3}});
///     auto dx = convolve_input_gradient<nhwc>(dy, k, x.extents(), settings);
///     auto dk = convolve_kernel_gradient<nhwc>(x, dy, k.extents(), settings);
///     auto d = convolve<"bxi,xio->bxo", P<data, _, _>>(x1, k1);      // one spatial dimension
///
/// Laws: equals the convolution of the whole tensors in plain loops; <convolve(x, k), y> equals <x,
/// input gradient> and <k, kernel gradient>. Settings.portable gives the same bits on every mesh
/// that splits no summed dimension.
#include <tessera/op/call/call_options.hpp>
#include <tessera/op/call/operators.hpp>
#include <tessera/op/call/result.hpp>
#include <tessera/plan/op/window/convolve.hpp>

namespace tessera {
namespace detail {

/// How convolve<E> and its gradients are made.
template <Equation E, ops::ConvolveForm Form> struct ConvolveBy {
  static constexpr ops::Convolve make(const TensorDescs&) { return {parse(E.view()), {}, Form}; }
};

template <Equation E, ops::ConvolveForm Form, class Out, class Bound, class A, class B>
auto convolve(const A& a, const B& b, const Extents& extents, const Convolution& settings,
              const CallOptions& call) {
  using Call = Typed<ConvolveBy<E, Form>, Out, A, B>;
  detail::use_convolve_of<typename Call::type>();
  ops::Convolve operation = Call::operation;
  operation.settings = settings;
  operation.extents = extents;
  return run_typed<Call, Bound>(E.view(), call, operation, {&a.core(), &b.core()},
                                {.portable = settings.portable});
}
inline DynamicTensor convolve(std::string_view letters, ops::ConvolveForm form,
                              const DynamicTensor& a, const DynamicTensor& b,
                              const Extents& extents, const Convolution& settings,
                              const CallOptions& call) {
  return run_dynamic(letters, call, ops::Convolve{parse(letters), settings, form, extents},
                     {&a.core(), &b.core()}, {.portable = settings.portable});
}
}  // namespace detail

/// Returns the convolution of x by k, of letters E: with nhwc x is (b, h, w, i), k is (h, w, i, o)
/// and the result (b, h, w, o) with the extents that windows leave; "bxi,xio->bxo" has one spatial
/// dimension. Batch and spatial dimensions are split as x's, features as k's, or as `Out` says;
/// `Out` may leave it Unreduced<Sum> over axes that split the input features or k's spatial
/// dimensions. One of x and k may be Unreduced<Sum> itself; `Out` may leave the result so over the
/// same axes. Communication: halos of x where its spatial dimensions are split, reshards of
/// operands that are split otherwise, the reduction of partial sums, whichever ways cost least;
/// within `Bound`. Each of the settings `stride`, `low`, `high`, `base_dilation`, `window_dilation`
/// and `reversed` is empty or has one entry for each spatial dimension, in the order in which E's
/// letters of the result name them: {.stride = {2, 1}} with nhwc is 2 along h and 1 along w. Named
/// settings stand in the order of Convolution's members: stride, low, high, base_dilation,
/// window_dilation, reversed, feature_groups, batch_groups, portable; C++ takes no other.
/// Collective over the mesh. Throws ShapeError for windows that are larger than the padded input,
/// channel counts or groups that do not fit. Source: GShard, section 3.3.3 and Appendix A.4.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor B>
auto convolve(const A& x, const B& k, const Convolution& settings = {},
              const CallOptions& call = Where::here()) {
  return detail::convolve<E, ops::ConvolveForm::forward, Out, Bound>(x, k, {}, settings, call);
}

/// Returns the gradient of convolve<E>(x, k, settings) by x, of extents `x`, where dy is the
/// gradient of the result: split as dy and k are, or as `Out` says. Communication and errors: those
/// of a convolution of dy by k. Collective over the mesh. Throws ShapeError when dy has other
/// extents than that convolution's result.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor B>
auto convolve_input_gradient(const A& dy, const B& k, const Extents& x,
                             const Convolution& settings = {},
                             const CallOptions& call = Where::here()) {
  return detail::convolve<E, ops::ConvolveForm::by_input, Out, Bound>(dy, k, x, settings, call);
}

/// Returns the gradient of convolve<E>(x, k, settings) by k, of extents `k`. The spatial dimensions
/// of dy are summed over, so where they are split the sum is finished over those axes, or left open
/// by `Out`. Communication and errors: those of a convolution of x by dy. Collective over the mesh.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A, TypedTensor B>
auto convolve_kernel_gradient(const A& x, const B& dy, const Extents& k,
                              const Convolution& settings = {},
                              const CallOptions& call = Where::here()) {
  return detail::convolve<E, ops::ConvolveForm::by_kernel, Out, Bound>(x, dy, k, settings, call);
}

/// These overloads take everything at run time; without a sharding the result's is deduced.
inline DynamicTensor convolve(std::string_view letters, const DynamicTensor& x,
                              const DynamicTensor& k, const Convolution& settings = {},
                              const CallOptions& call = Where::here()) {
  return detail::convolve(letters, ops::ConvolveForm::forward, x, k, {}, settings, call);
}
inline DynamicTensor convolve_input_gradient(std::string_view letters, const DynamicTensor& dy,
                                             const DynamicTensor& k, const Extents& x,
                                             const Convolution& settings = {},
                                             const CallOptions& call = Where::here()) {
  return detail::convolve(letters, ops::ConvolveForm::by_input, dy, k, x, settings, call);
}
inline DynamicTensor convolve_kernel_gradient(std::string_view letters, const DynamicTensor& x,
                                              const DynamicTensor& dy, const Extents& k,
                                              const Convolution& settings = {},
                                              const CallOptions& call = Where::here()) {
  return detail::convolve(letters, ops::ConvolveForm::by_kernel, x, dy, k, settings, call);
}

}  // namespace tessera
