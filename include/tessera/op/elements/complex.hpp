// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The parts of complex tensors; abs(z) is in op/elements/arithmetic.hpp.
///
///     auto power = square(real(z)) + square(imag(z));
///
/// Laws: make_complex(real(z), imag(z)) == z. All but arg may act on unfinished sums.
/// Communication: none, but for make_complex of two shardings. Collective over the mesh. Throw
/// nothing of their own, but that make_complex throws ShapeError when extents disagree.
#include <tessera/kernel/functions/complex.hpp>
#include <tessera/op/elements/named_function.hpp>

namespace tessera {

/// Returns the real parts, a tensor of float or double.
template <detail::AnyTensor A> auto real(const A& z, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Real{}, call, z);
}
/// Returns the imaginary parts.
template <detail::AnyTensor A> auto imag(const A& z, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Imag{}, call, z);
}
/// Returns the conjugates, a complex tensor.
template <detail::AnyTensor A> auto conj(const A& z, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Conj{}, call, z);
}
/// Returns the angles, in (-pi, pi].
template <detail::AnyTensor A> auto arg(const A& z, const CallOptions& call = Where::here()) {
  return detail::apply(fn::Arg{}, call, z);
}
/// Returns the complex tensor of two real ones. Throws ShapeError when extents disagree.
template <detail::AnyTensor A, detail::AnyTensor B>
auto make_complex(const A& re, const B& im, const CallOptions& call = Where::here()) {
  return detail::apply(fn::MakeComplex{}, call, re, im);
}

}  // namespace tessera
