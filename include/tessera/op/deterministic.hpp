// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Sums and means with the same bits for any number of processes, any mesh and any spec.
///
///     auto s = sum<"bsv->bs">(x, deterministic);
///     auto m = reduce<Deterministic<Mean>, "bsv->bs">(x);
///
/// Laws: the bits are a function of the row's elements alone, not even of their order; the error is
/// at most half a unit in the last place of the sum (a mean's: one) and 2^-(mantissa bits + 9) of
/// the row's largest magnitude; NaN and infinities give the same as in any sum. Source: the idea of
/// Demmel & Nguyen, Parallel Reproducible Summation, IEEE TC 2015, and of fixed-point
/// superaccumulators; plan/op/rows/deterministic.hpp describes the method.
#include <tessera/op/reduce.hpp>

namespace tessera {
namespace detail {

/// Asks for the same bits for any number of processes.
struct DeterministicTag {};
}  // namespace detail

inline constexpr detail::DeterministicTag deterministic{};

/// Returns the sum, or mean, of x over the dimensions that E drops. Communication: over the axes
/// that split those dimensions, an all-reduce of an exponent for each row, and a reduce-scatter or
/// all-reduce of its limbs (two to eight 64-bit integers for each element of the result); none when
/// they are not split. Collective over the mesh. Throws ShapeError for rows of more than 2^48
/// elements.
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto sum(const A& x, detail::DeterministicTag, Where where = Where::here()) {
  return reduce<Deterministic<Sum>, E, Out, Bound>(x, where);
}
template <Equation E, class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto mean(const A& x, detail::DeterministicTag, Where where = Where::here()) {
  return reduce<Deterministic<Mean>, E, Out, Bound>(x, where);
}
template <TypedTensor A>
auto sum(const A& x, detail::DeterministicTag, Where where = Where::here()) {
  return reduce<Deterministic<Sum>, detail::total_equation(A::rank)>(x, where);
}
template <TypedTensor A>
auto mean(const A& x, detail::DeterministicTag, Where where = Where::here()) {
  return reduce<Deterministic<Mean>, detail::total_equation(A::rank)>(x, where);
}
}  // namespace tessera
