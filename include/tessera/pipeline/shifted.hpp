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
/// In rounds, each place along the dimension has several stages, and a state passes all places once
/// in each round: with r rounds, of stages that are r times as short, a process stands idle
/// (p - 1) / (r m + p - 1) of the time.
///
///     // w: P<_, stage, _, _>, (rounds, stages, k, k): stage round * 4 + place
///     auto z = shifted_in_rounds<stage>([](const auto& w, const auto& s) {
///       return tanh(einsum<"sik,rskj->sij">(s, w));           // w is (1, stages, k, k)
///     }, w, x, 4, 2);
///
/// Laws: y[b] is what the stages make of x[b], one after the other. What a stage makes in a turn
/// without a micro-batch, of zeros, is read by nobody; that its derivatives there are numbers is
/// f's affair. Source: GSPMD, section 3.3; GPipe; rounds: Narayanan et al., arXiv:2104.04473,
/// section 2.2, and the circular schedule of Praxis.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tessera/op/create/create.hpp>
#include <tessera/op/elements/map.hpp>
#include <tessera/op/indexed/take.hpp>
#include <tessera/op/reshard.hpp>
#include <tessera/op/shape/concatenate.hpp>
#include <tessera/op/shape/slice.hpp>
#include <tessera/tensor/process_mesh.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {
namespace detail {
/// The type of a state: X's, with stages in place of its micro-batches.
template <class Stage, class X> struct ShiftedState;
template <class Stage, class T, class M, class First, class... D>
struct ShiftedState<Stage, ShardedTensor<T, M, PartitionSpec<First, D...>>> {
  using type = ShardedTensor<T, M, PartitionSpec<Stage, D...>>;
};

/// How micro-batches pass `stages` places in `rounds`: that of number b begins round r, at the
/// first place, at turn r * period + b.
struct ShiftedTurns {
  Index micro_batches, stages, rounds;
  /// One that begins a round has ended the round before.
  KOKKOS_FUNCTION Index period() const {
    return rounds > 1 && micro_batches < stages ? stages : micro_batches;
  }
  Index count() const { return (rounds - 1) * period() + micro_batches + stages - 1; }
  /// Whether there is a micro-batch at a place.
  KOKKOS_FUNCTION bool under_way(Index turn, Index place) const {
    const Index since = turn - place;
    return since >= 0 && since < rounds * period() && since % period() < micro_batches;
  }
};
/// The elements of stages that have a micro-batch at a turn; zeros in the others.
struct UnderWayAt {
  Index turn;
  ShiftedTurns turns;
  KOKKOS_FUNCTION bool has(const GlobalIndex& i) const { return turns.under_way(turn, i[0]); }
  template <class T> KOKKOS_FUNCTION T operator()(const GlobalIndex& i, T x) const {
    return has(i) ? x : T{};
  }
  template <class T> KOKKOS_FUNCTION T derivative(const GlobalIndex& i, T) const {
    return has(i) ? T{1} : T{};
  }
};

/// The round of each place at a turn; any, where there is no micro-batch.
struct RoundAt {
  Index turn;
  ShiftedTurns turns;
  KOKKOS_FUNCTION std::int64_t operator()(const GlobalIndex& i) const {
    const Index round = turn < i[1] ? 0 : (turn - i[1]) / turns.period();
    return round < turns.rounds ? round : turns.rounds - 1;
  }
};

/// Returns a slice of the first dimension.
template <class Y, TypedTensor A> Y rows_of(const A& x, Index begin, Index end) {
  return Y(slice<typename Y::spec, NoContract, 0>(x, {begin}, {end}));
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

namespace detail {
/// Runs all turns; f(turn, state) returns what the places make of a state at a turn.
template <class Stage, class F, TypedTensor X>
X run_shifted(const F& f, const X& x, const ShiftedTurns& turns) {
  using State = typename ShiftedState<Stage, X>::type;
  const Index stages = turns.stages, period = turns.period();
  Extents extents = x.extents();
  extents[0] = stages;
  const ProcessMesh<typename X::mesh_type> mesh(x.core().mesh());
  State state = zeros<State>(mesh, extents);
  std::vector<State> again;  // what begins another round, in the order in which it has ended one
  std::vector<X> made;
  for (Index turn = 0; turn < turns.count(); ++turn) {
    const State first = [&] {
      if (turn >= period && turns.under_way(turn, 0))  // it has ended a round before
        return std::exchange(again[static_cast<std::size_t>(turn - period)], State());
      const Index next = min_of(turn, turns.micro_batches - 1);  // or no stage reads it
      return rows_of<State>(x, next, next + 1);
    }();
    const State moved =
        stages == 1 ? first : State(concatenate<0>(first, rows_of<State>(state, 0, stages - 1)));
    state = State(f(turn, State(map_with_index(UnderWayAt{turn, turns}, moved))));
    const Index began = turn - (stages - 1);  // of what the last stage has made
    if (began >= (turns.rounds - 1) * period)
      made.push_back(rows_of<X>(state, stages - 1, stages));
    else if (began >= 0)
      again.push_back(rows_of<State>(state, stages - 1, stages));
  }
  return behind_each_other(std::move(made));
}

inline void require_turns(const ShiftedTurns& turns, Where where) {
  if (turns.stages < 1 || turns.micro_batches < 1 || turns.rounds < 1)
    throw UsageError("shifted: there are " + std::to_string(turns.stages) + " stages, " +
                         std::to_string(turns.rounds) + " rounds and " +
                         std::to_string(turns.micro_batches) +
                         " micro-batches, and there is at least one of each",
                     where);
}

/// Returns w[rounds[p], p] for each place p, (1, stages, ...), of w, (rounds, stages, ...).
inline DynamicTensor weights_of_rounds(const DynamicTensor& w, const DynamicTensor& rounds,
                                       const ShiftedTurns& turns, Where where) {
  const Extents& extents = w.core().extents();
  if (extents.size() < 2 || extents[0] != turns.rounds || extents[1] != turns.stages)
    throw ShapeError("shifted_in_rounds: a weight is " + to_string(w.core().desc(), {}) +
                         ", and there are " + std::to_string(turns.rounds) + " rounds of " +
                         std::to_string(turns.stages) +
                         " stages; a weight has both as its first dimensions",
                     where);
  const std::string rest =
      std::string("abcdef").substr(0, static_cast<std::size_t>(extents.size()) - 2);
  return take("rp" + rest + ",qp->qp" + rest, w, rounds, {}, w.core().sharding());
}
}  // namespace detail

/// Returns, for each micro-batch x[b], what the stages make of it in order. x is (micro-batches,
/// ...); f(weights, s) returns what each stage i makes of its own s[i]: s and the result are
/// (stages, ...), split over the axis `Stage`, which may have another number of processes. Before
/// the first and after the last micro-batch a stage computes with zeros. Communication: that of f,
/// a turn's exchange of a stage's state with its neighbour, and a broadcast of what the last one
/// makes. Collective over the mesh. Throws UsageError for fewer than one stage or micro-batch, and
/// what f throws.
template <class Stage, class F, class W, TypedTensor X>
X shifted(const F& f, const W& weights, const X& x, Index stages, Where where = Where::here()) {
  const detail::ShiftedTurns turns{x.extents()[0], stages, 1};
  detail::require_turns(turns, where);
  return detail::run_shifted<Stage>([&](Index, const auto& state) { return f(weights, state); }, x,
                                    turns);
}

/// Returns, for each micro-batch x[b], what rounds * stages stages make of it in order. `weights`
/// is a tree of tensors (rounds, stages, ...): those of stage round * stages + place. f is called
/// as shifted calls it, with weights (1, stages, ...), each place's of its own round. Fewer
/// micro-batches than stages wait for each other at the end of a round. Communication: that of f,
/// a turn's exchange of a stage's state with its neighbour, and a broadcast of what the last one
/// makes; none for weights that are whole along rounds. Collective over the mesh. Throws UsageError
/// for fewer than one stage, round or micro-batch, ShapeError for a weight of other extents, and
/// what f throws.
template <class Stage, class F, class W, TypedTensor X>
X shifted_in_rounds(const F& f, const W& weights, const X& x, Index stages, Index rounds,
                    Where where = Where::here()) {
  const detail::ShiftedTurns turns{x.extents()[0], stages, rounds};
  detail::require_turns(turns, where);
  using Rounds = ShardedTensor<std::int64_t, typename X::mesh_type, P<_, Stage>>;
  const ProcessMesh<typename X::mesh_type> mesh(x.core().mesh());
  const auto run = [&](Index turn, const auto& state) {
    const DynamicTensor at(
        from_function<Rounds>(mesh, {1, stages}, detail::RoundAt{turn, turns}, where));
    const W own = map_tensors(
        [&](const auto& w) {
          return std::remove_cvref_t<decltype(w)>(
              detail::weights_of_rounds(DynamicTensor(w), at, turns, where).core());
        },
        weights);
    return f(own, state);
  };
  return detail::run_shifted<Stage>(run, x, turns);
}

}  // namespace tessera
