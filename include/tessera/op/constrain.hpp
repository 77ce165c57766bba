// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Stating within a function how a tensor shall be split where the function's shardings are chosen
/// (program/choice.hpp).
///
///     auto h = constrain<P<data, Open>>(relu(einsum<"bi,ih->bh">(x, w)));   // rows over data
///     DynamicTensor d = constrain(DynamicTensor(h), {{0}, Open{}});          // the same by number
///
/// An axis or Axes<...> splits that dimension and nothing else does; _ keeps it whole; Open leaves
/// it to the choice. The pin is x's own: no operator is added, copies of x may lie otherwise, and
/// so may its gradient. reshard, in contrast, moves x whether anything is chosen or not.
///
/// Laws: constrain(x) is x, of the same type and values, and so is its gradient; where nothing is
/// chosen it does nothing.
#include <string>

#include <tessera/op/call/call_options.hpp>
#include <tessera/run/recording.hpp>
#include <tessera/run/require_operands.hpp>
#include <tessera/spec/open_sharding.hpp>

namespace tessera {
namespace detail {
/// Instantiated only for a pin that does not fit its tensor.
template <class S, class A> struct InvalidPin {
  static consteval bool said() {
    static_assert(never<S, A>,
                  "[tessera] constrain states another number of dimensions than the tensor has, or "
                  "an Unreduced entry; a pin says of each dimension which axes split it; write one "
                  "axis, Axes<...>, _ or Open for each");
    return true;
  }
};
template <class S> inline constexpr bool has_unreduced = false;
template <class... D>
inline constexpr bool has_unreduced<PartitionSpec<D...>> = (IsUnreduced<D>::value || ...);
}  // namespace detail

/// Returns x, which shall be split as S says where shardings are chosen. Communication: none.
template <class S, TypedTensor A> A constrain(const A& x, Where where = Where::here()) {
  using M = typename A::mesh_type;
  constexpr OpenSharding to = detail::lower<M, S>();
  constexpr Verdict verdict = check(to.closed(), M::rank);
  if constexpr (to.rank() != A::rank || detail::has_unreduced<S>)
    static_assert(detail::InvalidPin<S, A>::said());
  else if constexpr (!verdict.ok())
    static_assert(detail::InvalidOperator<verdict.rule, S, M>::said());
  else
    (void)detail::mesh_of(x.core(), {"constrain", where}), detail::pin_tensor(x.core(), to, where);
  return x;
}
/// Returns x, which shall be split as `to` says where shardings are chosen. Throws ShardingError
/// for another number of dimensions, or axes that the mesh does not have or that stand twice.
inline DynamicTensor constrain(const DynamicTensor& x, const OpenSharding& to,
                               Where where = Where::here()) {
  const TensorCore& core = x.core();
  const MeshCore& mesh = detail::mesh_of(core, {"constrain", where});
  if (to.rank() != core.rank())
    throw ShardingError(
        "constrain: " + to_string(to, mesh.names()) + " says something of " +
            std::to_string(to.rank()) + " dimensions, and the tensor has " +
            std::to_string(core.rank()) +
            "; a pin has one entry for each; write Open{} where nothing is to be said",
        where);
  if (const Verdict v = check(to.closed(), mesh.shape().rank()); !v.ok())
    throw ShardingError("constrain: " + explain(v, to.closed(), mesh.names()), where);
  detail::pin_tensor(core, to, where);
  return x;
}

}  // namespace tessera
