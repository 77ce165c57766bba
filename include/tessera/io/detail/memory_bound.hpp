// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The contracts of typed calls between tensors and memory of the application.
///
///     detail::free_bound<detail::OutOf<A>, Bound>()     // of to_root<Bound>(x)
///     detail::free_bound<detail::Into<A>, Bound>()      // of from_root<A, Bound>(...)
#include <tessera/op/call/result.hpp>
#include <tessera/plan/op/move/place.hpp>

namespace tessera::detail {

template <class A> struct Into {
  using mesh = typename A::mesh_type;
  static constexpr Contract needs(const MeshShape& on, const Contract& contract) {
    return tessera::needs(ops::FromMemory{}, TensorDescs{}, on, contract);
  }
};
template <class A> struct OutOf {
  using mesh = typename A::mesh_type;
  static constexpr Contract needs(const MeshShape& on, const Contract& contract) {
    return tessera::needs(ops::ToMemory{}, TensorDescs{desc_of_type<A>()}, on, contract);
  }
};

}  // namespace tessera::detail
