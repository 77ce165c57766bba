// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A pipeline as a sharding: all stages lie along a dimension that an axis of the mesh splits,
/// every process computes its own at every turn, and what they have made moves on by one stage.
///
///     // w: P<stage, _, _>, (stages, k, k); x: P<_, data, _>, (micro-batches, rows, k)
///     auto y = shifted<stage>([](const auto& w, const auto& s) {
///       return tanh(einsum<"sik,skj->sij">(s, w));            // of all stages at once
///     }, w, x, 4);                                            // as x
///
/// It needs no schedule, no parts and no layers' names, goes with all other shardings of the mesh,
/// and is an ordinary function: gradients, compile, choices and contracts are those of its
/// operators. It holds all micro-batches until the way back, and stands idle (p - 1) / (m + p - 1)
/// of the time.
///
/// Laws: y[b] is what the stages make of x[b], one after the other. What a stage makes in a turn
/// without a micro-batch, of zeros, is read by nobody; that its derivatives there are numbers is
/// f's affair. Source: GSPMD, section 3.3; GPipe.
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <tessera/op/create/create.hpp>
#include <tessera/op/elements/map.hpp>
#include <tessera/op/reshard.hpp>
#include <tessera/op/shape/concatenate.hpp>
#include <tessera/op/shape/slice.hpp>
#include <tessera/tensor/process_mesh.hpp>

namespace tessera {
namespace detail {
/// The type of a state: X's, with stages in place of its micro-batches.
template <class Stage, class X> struct ShiftedState;
template <class Stage, class T, class M, class First, class... D>
struct ShiftedState<Stage, ShardedTensor<T, M, PartitionSpec<First, D...>>> {
  using type = ShardedTensor<T, M, PartitionSpec<Stage, D...>>;
};

/// The elements of stages that have a micro-batch at a turn; zeros in the others.
struct UnderWayAt {
  Index turn, micro_batches;
  KOKKOS_FUNCTION bool has(const GlobalIndex& i) const {
    return i[0] <= turn && turn - i[0] < micro_batches;
  }
  template <class T> KOKKOS_FUNCTION T operator()(const GlobalIndex& i, T x) const {
    return has(i) ? x : T{};
  }
  template <class T> KOKKOS_FUNCTION T derivative(const GlobalIndex& i, T) const {
    return has(i) ? T{1} : T{};
  }
};

/// Returns a slice of the first dimension.
template <class A> A rows_of(const A& x, Index begin, Index end) {
  return A(slice<0>(x, {begin}, {end}));
}
/// Returns tensors one behind the other along the first dimension, a few at a time.
template <class A> A behind_each_other(std::vector<A> parts) {
  constexpr auto most = static_cast<std::size_t>(max_operands);
  while (parts.size() > 1) {
    std::vector<A> joined;
    for (std::size_t first = 0; first < parts.size(); first += most) {
      std::vector<DynamicTensor> some;
      for (std::size_t i = first; i < parts.size() && i < first + most; ++i)
        some.emplace_back(parts[i]);
      joined.push_back(some.size() == 1 ? parts[first]
                                        : A(concatenate(0, some, parts[first].sharding()).core()));
    }
    parts = std::move(joined);
  }
  return parts[0];
}
}  // namespace detail

/// Returns, for each micro-batch x[b], what the stages make of it in order. x is (micro-batches,
/// ...); f(weights, s) returns what each stage i makes of its own s[i]: s and the result are
/// (stages, ...), split over the axis `Stage`, which may have another number of processes. Before
/// the first and after the last micro-batch a stage computes with zeros. Communication: that of f,
/// and a turn's exchange of a stage's state with its neighbour. Collective over the mesh. Throws
/// UsageError for fewer than one stage or micro-batch, and what f throws.
template <class Stage, class F, class W, TypedTensor X>
X shifted(const F& f, const W& weights, const X& x, Index stages, Where where = Where::here()) {
  using State = typename detail::ShiftedState<Stage, X>::type;
  const Index micro_batches = x.extents()[0];
  if (stages < 1 || micro_batches < 1)
    throw UsageError("shifted: there are " + std::to_string(stages) + " stages and " +
                         std::to_string(micro_batches) +
                         " micro-batches, and there is at least one of each",
                     where);
  Extents extents = x.extents();
  extents[0] = stages;
  const ProcessMesh<typename X::mesh_type> mesh(x.core().mesh());
  State state = zeros<State>(mesh, extents);
  std::vector<State> made;
  for (Index turn = 0; turn < micro_batches + stages - 1; ++turn) {
    const Index next = turn < micro_batches ? turn : micro_batches - 1;  // then no stage reads it
    const State first = reshard<typename State::spec>(detail::rows_of(x, next, next + 1));
    const State moved =
        stages == 1 ? first : State(concatenate<0>(first, detail::rows_of(state, 0, stages - 1)));
    state =
        State(f(weights, State(map_with_index(detail::UnderWayAt{turn, micro_batches}, moved))));
    if (turn >= stages - 1) made.push_back(detail::rows_of(state, stages - 1, stages));
  }
  return reshard<typename X::spec>(State(detail::behind_each_other(made)));
}

}  // namespace tessera
