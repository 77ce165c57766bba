// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A layer of which each token uses two of many feed-forward networks, the experts: GShard's
/// position-wise mixture of experts. nn/gating.hpp says which two.
///
///     // x (G, S, M) over data; of the weights gate (M, E) whole, in (E, M, H) and out (E, H, M) over data
///     const auto made = mixture_of_experts(x, weights, {.capacity_factor = 1.25});
///     const auto y = x + made.output;                        // tokens that overflow pass by
///     const auto loss = likelihood + 0.01f * made.gating.auxiliary_loss;
///
/// Groups are split before and after the experts, and experts between: the all-to-alls are two
/// changes of spec. Tokens go to buffers and come back in one of two forms with equal results:
/// Dispatch::take copies the rows that are sent, and weighs two rows for each token: work in
/// proportion to S M for a group. Dispatch::one_hot is the paper's: products with tensors of zeros
/// and ones, work in proportion to S E C M, which a matrix unit may do faster than it copies. Both
/// communicate alike, since both are done where the groups lie. Products spread NaN: a token that
/// is not finite spoils its group in the second form, and in the first its own place alone.
///
/// Laws: equals plain loops of GShard's Algorithms 1 and 2 over the whole tensors, for every mesh
/// and spec; the output of a token that no expert got is 0. Errors: those of the operators that it
/// is made of.
#include <string>

#include <tessera/kernel/functions/activation.hpp>
#include <tessera/nn/gating.hpp>
#include <tessera/op/product/epilogue.hpp>
#include <tessera/op/reshard.hpp>

namespace tessera {

/// How tokens go to the experts' buffers and come back.
enum class Dispatch { take, one_hot };

/// What a mixture of experts depends on beside its tensors.
struct MixtureOptions {
  double capacity_factor = 1;  ///< f of expert_capacity
  RoutingDraw draw = {};
};

/// The parameters of a mixture of experts, as a tree: gate (M, E), in (E, M, H), out (E, H, M).
template <TypedTensor Gate, TypedTensor In, TypedTensor Out> struct ExpertWeights {
  Gate gate;
  In in;
  Out out;
  static constexpr auto fields =
      Fields<&ExpertWeights::gate, &ExpertWeights::in, &ExpertWeights::out>{};
};

template <class Gate, class In, class Out>
ExpertWeights(Gate, In, Out) -> ExpertWeights<Gate, In, Out>;  // clang 14 deduces no aggregates

/// What the layer returns: its output, of the tokens' type, and where the tokens went.
template <class X, class Logits> struct Mixture {
  X output;                   ///< (G, S, M)
  Top2Gating<Logits> gating;  ///< with the auxiliary loss
  static constexpr auto fields = Fields<&Mixture::output, &Mixture::gating>{};
};

namespace detail {

/// Returns the axes that are not among others; what is open stays so.
constexpr AxisList without(const AxisList& axes, const AxisList& others) {
  return is_open(axes) ? axes : axes.without(others.set());
}
/// The specs of buffers (E, G, C, M) of tokens X where the groups lie, and where the experts of
/// weights W (E, M, H) lie: groups keep there the axes that split neither experts nor H.
template <class X> struct BuffersByGroup {
  static constexpr Sharding value{
      {}, TensorFacts<X>::sharding()[0], {}, TensorFacts<X>::sharding()[2]};
};
template <class X, class W> struct BuffersByExpert {
  static constexpr AxisList experts = TensorFacts<W>::sharding()[0];
  static constexpr Sharding value{
      experts,
      without(without(TensorFacts<X>::sharding()[0], experts), TensorFacts<W>::sharding()[2]),
      {},
      without(TensorFacts<X>::sharding()[2], experts)};
};
template <class X> using ByGroup = spec_of<typename X::mesh_type, BuffersByGroup<X>>;
template <class X, class W> using ByExpert = spec_of<typename X::mesh_type, BuffersByExpert<X, W>>;

template <class X, class Gate, class In, class Out>
void require_experts(const X& x, const Gate& gate, const In& w_in, const Out& w_out, Where where) {
  for (const TensorCore* one : {&x.core(), &gate.core(), &w_in.core(), &w_out.core()})
    mesh_of(*one, {"mixture_of_experts", where});
  if (gate.extent(1) == w_in.extent(0) && gate.extent(1) == w_out.extent(0)) return;
  throw ShapeError("mixture_of_experts: the gate has " + std::to_string(gate.extent(1)) +
                       " experts, the weights have " + std::to_string(w_in.extent(0)) + " and " +
                       std::to_string(w_out.extent(0)) +
                       "; give a gate (M, E) and weights (E, M, H) and (E, H, M)",
                   where);
}

/// The token of its group that lies in each place: (G, E, C), -1 where there is none.
template <class Logits> auto tokens_in_places(const Top2Gating<Logits>& gating, Where where) {
  using Spec = SpecOfDims<Logits, 0, -1, -1>;
  const auto numbers = map_with_index<"gs->gs">(fn::NumberInGroup{}, gating.first, where);
  const auto places = [&](const auto& choice, const auto& position) {
    return scatter<Sum, "gs,gs,gs->gec", Spec>(
        choice, position, numbers, {gating.experts(), gating.capacity}, OutOfRange::drop, where);
  };
  return map<"gec,gec->gec">(fn::TokenOfPlace{}, places(gating.first, gating.first_position),
                             places(gating.second, gating.second_position), where);
}

}  // namespace detail

/// Returns the experts' buffers (E, G, C, M), where the groups lie: each place has the row of x,
/// (G, S, M), of the token that is sent there, or 0. Communication: none where groups and M alone
/// are split. Collective over the mesh. Source: GShard, Algorithm 2 and section 3.2.
template <Dispatch How = Dispatch::take, TypedTensor X, class Logits>
auto to_buffers(const X& x, const Top2Gating<Logits>& gating, Where where = Where::here()) {
  using Out = detail::ByGroup<X>;
  if constexpr (How == Dispatch::take)
    return take<"gsm,gec->egcm", Out>(x, detail::tokens_in_places(gating, where), OutOfRange::drop,
                                      where);
  else
    return einsum<"gsec,gsm->egcm", Out>(dispatch_mask<typename X::value_type>(gating, where), x,
                                         where);
}

/// Returns, for each token, the sum of what lies in its two places of the buffers (E, G, C, M), by
/// its weights: (G, S, M), split as the tokens X; 0 for a token without places. Communication: none
/// where groups and M alone are split. Collective over the mesh. Source: GShard, Algorithm 2.
template <class X, Dispatch How = Dispatch::take, TypedTensor B, class Logits>
auto from_buffers(const B& buffers, const Top2Gating<Logits>& gating, Where where = Where::here()) {
  using T = typename B::value_type;
  using Out = typename X::spec;
  if constexpr (How == Dispatch::take) {
    const auto of = [&](const auto& choice, const auto& position) {
      return take<"egcm,gs,gs->gsm", Out>(buffers, choice, position, OutOfRange::drop, where);
    };
    return map<"gs,gsm,gs,gsm->gsm", Out>(
        at(where), fn::WeighedSum{}, gating.first_weight, of(gating.first, gating.first_position),
        gating.second_weight, of(gating.second, gating.second_position));
  } else {
    return einsum<"gsec,egcm->gsm", Out>(combine_weights<T>(gating, where), buffers, where);
  }
}

namespace detail {
template <Dispatch How, class X, class Gate, class In, class Out, class Activation>
auto run_mixture(const X& x, const Gate& gate, const In& w_in, const Out& w_out,
                 const MixtureOptions& options, const Activation& activation, Where where) {
  using Buffers = ByExpert<X, In>;
  require_experts(x, gate, w_in, w_out, where);
  const auto in_layer = [&](const char* name, const auto& run) {
    const Layer scope(x, name, where);
    return run();
  };
  const auto gating = in_layer("gating", [&] {
    const Index capacity =
        expert_capacity(x.extent(1), gate.extent(1), options.capacity_factor, where);
    return top2_gating(einsum<"gsm,me->gse", SpecOfDims<X, 0, 1, -1>>(x, gate, where), capacity,
                       options.draw, where);
  });
  const auto sent = in_layer(
      "dispatch", [&] { return reshard<Buffers>(to_buffers<How>(x, gating, where), where); });
  const auto made = in_layer("experts", [&] {
    return einsum<"egch,ehm->egcm", Buffers>(
        einsum<"egcm,emh->egch">(sent, w_in, then(activation), where), w_out, where);
  });
  using Logits = typename decltype(gating)::Logits;
  return in_layer("combine", [&] {
    return Mixture<X, Logits>{from_buffers<X, How>(reshard<ByGroup<X>>(made, where), gating, where),
                              gating};
  });
}
}  // namespace detail

/// Returns the mixture of E experts for tokens x, (G, S, M): logits are x gate, (M, E); expert e
/// makes activation(v w_in[e]) w_out[e] of a row v, with w_in (E, M, H) and w_out (E, H, M). Specs
/// are those of the arguments.
/// Communication: where groups are split over axes that also split experts, one all-to-all of the
/// buffers (E, G, C, M) over these axes before the experts, and one after; where they split experts
/// alone or groups alone, none; where other axes split H, the sum over H, as einsum's; and one
/// number for the loss. The axes of the experts are best the minor ones of the groups. Collective
/// over the mesh. Throws ShapeError when extents disagree. Source: GShard, Algorithm 2.
template <Dispatch How = Dispatch::take, TypedTensor X, TypedTensor Gate, TypedTensor In,
          TypedTensor Out, class Activation = fn::Relu>
auto mixture_of_experts(const X& x, const Gate& gate, const In& w_in, const Out& w_out,
                        const MixtureOptions& options = {}, const Activation& activation = {},
                        Where where = Where::here()) {
  constexpr bool ranks = X::rank == 3 && Gate::rank == 2 && In::rank == 3 && Out::rank == 3;
  static_assert(ranks,
                "[tessera] a mixture of experts takes tokens (G, S, M), a gate (M, E) and weights "
                "(E, M, H) and (E, H, M); reshape tokens into groups first");
  static_assert(!X::unfinished,
                "[tessera] the tokens of a mixture of experts are unfinished sums, and its gates "
                "need values; reshard<P<...>>(x) finishes them");
  if constexpr (ranks && !X::unfinished)
    return detail::run_mixture<How>(x, gate, w_in, w_out, options, activation, where);
}

/// The same of parameters that are together.
template <Dispatch How = Dispatch::take, TypedTensor X, class Gate, class In, class Out,
          class Activation = fn::Relu>
auto mixture_of_experts(const X& x, const ExpertWeights<Gate, In, Out>& weights,
                        const MixtureOptions& options = {}, const Activation& activation = {},
                        Where where = Where::here()) {
  return mixture_of_experts<How>(x, weights.gate, weights.in, weights.out, options, activation,
                                 where);
}

}  // namespace tessera
