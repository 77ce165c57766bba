// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A tensor repeated along dimensions, under NumPy's name.
///
///     auto all = broadcast_to<P<_, data, model>>(x, {4, 8, 6});     // x (8, 6)
///     DynamicTensor columns = broadcast_to(row_sums, {8, 6}, {0}, Sharding{{0}, {1}});
///
/// Laws: each element of a broadcast is x's at the same indices, 0 along dimensions that stretch.
#include <tessera/op/call/call_options.hpp>
#include <tessera/op/call/result.hpp>
#include <tessera/plan/op/shape/broadcast.hpp>
#include <tessera/run/request.hpp>

namespace tessera {
namespace detail {
/// The dimensions of a result of `rank` that those of an operand become, lined up from the right.
constexpr Dimensions dims_from_the_right(int own, int rank) {
  Dimensions dims;
  for (int d = 0; d < own; ++d) dims.push_back(rank - own + d);
  return dims;
}
/// The dimensions of the result: the spec's, or the operand's.
template <class Out, class A> struct BroadcastRank {
  static constexpr int value = ShardedTensor<float, typename A::mesh_type, Out>::rank;
};
template <class A> struct BroadcastRank<Deduced, A> { static constexpr int value = A::rank; };
/// How a broadcast to Rank dimensions is made.
template <int Rank> struct BroadcastBy {
  static constexpr ops::Broadcast make(const TensorDescs& x) {
    return {dims_from_the_right(x[0].rank(), Rank), Extents(Rank, 5040)};
  }
};
}  // namespace detail

/// Returns x stretched to `extents` under the spec `Out`: dimensions lined up from the right, new
/// ones before them, an extent of 1 repeated; without `Out`, x's dimensions under x's spec.
/// Communication: a dimension that is split and stretches is gathered; else that of a reshard to
/// the result's sharding. Collective over the mesh. Throws ShapeError when x does not broadcast to
/// the extents.
template <class Out = Deduced, class Bound = NoContract, TypedTensor A>
auto broadcast_to(const A& x, const Extents& extents, const CallOptions& call = Where::here()) {
  constexpr int rank = detail::BroadcastRank<Out, A>::value;
  static_assert(rank >= A::rank,
                "[tessera] broadcast_to adds dimensions and takes none away; name a spec of at "
                "least as many dimensions as the tensor has");
  using Typed = detail::Typed<detail::BroadcastBy<rank>, Out, A>;
  const ops::Broadcast operation{Typed::operation.dims, extents, Typed::value};
  return detail::run_typed<Typed, Bound>("broadcast_to", call, operation, {&x.core()});
}
/// These overloads take everything at run time. Where `dims` are given, dimension d of x becomes
/// dimension dims[d] of the result, as in XLA's BroadcastInDim.
inline DynamicTensor broadcast_to(const DynamicTensor& x, const Extents& extents,
                                  const Dimensions& dims, const CallOptions& call = Where::here()) {
  return detail::run_dynamic("broadcast_to", call, ops::Broadcast{dims, extents}, {&x.core()});
}
inline DynamicTensor broadcast_to(const DynamicTensor& x, const Extents& extents,
                                  const CallOptions& call = Where::here()) {
  return broadcast_to(x, extents, detail::dims_from_the_right(x.core().rank(), extents.size()),
                      call);
}

}  // namespace tessera
