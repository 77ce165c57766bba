// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The parts of complex tensors; abs(z) is in op/arithmetic.hpp.
///
///     auto power = square(real(z)) + square(imag(z));
///
/// Laws: make_complex(real(z), imag(z)) == z. All but arg may act on unfinished sums.
/// Communication: none, but for make_complex of two shardings. Collective over the mesh.
#include <tessera/kernel/functions/complex.hpp>
#include <tessera/op/map.hpp>

namespace tessera {

/// Returns the real parts, a tensor of float or double.
template <TypedTensor A> auto real(const A& z, Where where = Where::here()) {
  return detail::apply(fn::Real{}, where, z);
}
/// Returns the imaginary parts.
template <TypedTensor A> auto imag(const A& z, Where where = Where::here()) {
  return detail::apply(fn::Imag{}, where, z);
}
template <TypedTensor A> auto conj(const A& z, Where where = Where::here()) {
  return detail::apply(fn::Conj{}, where, z);
}
/// Returns the angles, in (-pi, pi].
template <TypedTensor A> auto arg(const A& z, Where where = Where::here()) {
  return detail::apply(fn::Arg{}, where, z);
}
/// Returns the complex tensor of two real ones. Throws ShapeError when extents disagree.
template <TypedTensor A, TypedTensor B>
auto make_complex(const A& re, const B& im, Where where = Where::here()) {
  return detail::apply(fn::MakeComplex{}, where, re, im);
}

}  // namespace tessera
