// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Places that count.
///
///     const A seen = where_valid(x, valid, where);     // zeros where valid is false
#include <string_view>

#include <tessera/kernel/functions/comparison.hpp>
#include <tessera/nn/detail/letters.hpp>
#include <tessera/op/elements/map.hpp>

namespace tessera::detail {

/// Returns x with zeros at places that are not valid, whatever stands there: x's first dimensions
/// are those of `valid`.
template <TypedTensor A, TypedTensor V> A where_valid(const A& x, const V& valid, Where where) {
  using T = typename A::value_type;
  static_assert(V::rank >= 1 && V::rank <= 3,
                "[tessera] a mask of places has no dimension, or more than three; give one of 1 to "
                "3, and join dimensions of x before (merge)");
  static constexpr std::string_view letters[] = {"z,z*->z*", "yz,yz*->yz*", "xyz,xyz*->xyz*"};
  return map<equation_of(A::rank - V::rank, letters[V::rank - 1]), typename A::spec>(
      fn::Fixed<fn::Select, 2, T>{{}, T{}}, valid, x, where);
}

}  // namespace tessera::detail
