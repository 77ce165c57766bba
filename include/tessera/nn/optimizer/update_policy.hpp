// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How the update of weights is split over processes that all have the weight: a policy, which is a
/// type, and what it comes to for one weight, which is a pure function.
///
///     ReplicatedUpdate                      // each process updates all that it has
///     ShardedUpdate<data>                   // each its share: reduce-scatter, update, all-gather
///     ShardedUpdate<data_inner>             // within subgroups, and an all-reduce across them
///     CheapestUpdate<data>                  // for each weight whichever the machine model prefers
///     FlatUpdate<ShardedUpdate<data>>       // shares of the weight as one line of elements
///     OpenUpdate                            // where choose(f) puts the state (program/choice.hpp)
///
/// Laws: where a weight is split already, its shares are split further; the new weight is the same
/// under every policy. Source: Xu et al., "Automatic Cross-Replica Sharding of Weight Update in
/// Data-Parallel Training" (2020).
#include <cstdint>
#include <string>

#include <tessera/mesh/mesh.hpp>
#include <tessera/plan/builder.hpp>

namespace tessera {

struct Choice;

/// The same for any mesh, as a value.
struct UpdatePolicy {
  enum class Kind : std::uint8_t { replicated, sharded, cheapest, open };
  Kind kind = Kind::replicated;
  AxisList axes = {};  ///< that split the update, as far as the weight itself does not use them
  bool flat = false;   ///< a weight is one line of elements
  constexpr bool operator==(const UpdatePolicy&) const = default;
};

/// Where one weight is updated: its shares, and whether they are shares of a line of elements.
struct UpdatePlace {
  Sharding sharding;
  bool flat = false;
  constexpr bool operator==(const UpdatePlace&) const = default;
};

/// What the update of one element reads and writes, in bytes, beside the weight and its gradient.
struct UpdateBytes {
  Index auxiliary = 0;  ///< of the optimizer's state, once
};

namespace detail {
template <class M, class... A> constexpr AxisList axis_list_of() {
  static_assert(((M::template index<A> >= 0) && ...),
                "[tessera] the policy of an update names an axis that the Mesh of the weights does "
                "not have; name one of its axes");
  AxisList axes;
  (axes.push_back(M::template index<A>), ...);
  return axes;
}
}  // namespace detail

struct ReplicatedUpdate {
  template <class M> static constexpr UpdatePolicy on() { return {}; }
};
/// The optimizer is an argument of the function whose shardings are chosen, and is returned by it:
/// its state is chosen as a weight is that is not annotated, beside the weight and its gradient,
/// and is updated there. Without a choice it is a ShardedUpdate over all axes.
struct OpenUpdate {
  const Choice* choice = nullptr;  ///< by which the state is born; null: there is none yet
  std::string path = {};           ///< of the optimizer among the function's arguments: "1"
  template <class M> static constexpr UpdatePolicy on() {
    UpdatePolicy policy{UpdatePolicy::Kind::open};
    for (int a = 0; a < M::rank; ++a) policy.axes.push_back(a);
    return policy;
  }
};
template <class... A> struct ShardedUpdate {
  template <class M> static constexpr UpdatePolicy on() {
    return {UpdatePolicy::Kind::sharded, detail::axis_list_of<M, A...>()};
  }
};
template <class... A> struct CheapestUpdate {
  template <class M> static constexpr UpdatePolicy on() {
    return {UpdatePolicy::Kind::cheapest, detail::axis_list_of<M, A...>()};
  }
};
template <class Policy> struct FlatUpdate {
  template <class M> static constexpr UpdatePolicy on() {
    UpdatePolicy policy = Policy::template on<M>();
    policy.flat = true;
    return policy;
  }
};

namespace detail {

/// Returns the largest block of a tensor on any process.
constexpr Index largest_block(const Extents& extents, const Sharding& sharding,
                              const MeshShape& mesh) {
  return block_volume(extents, sharding, mesh, Coordinates(mesh.rank(), 0));
}

/// Returns a weight's sharding with each of the axes added to the dimension where the largest share
/// becomes smallest, the leading one of several; an axis that makes no share smaller, or that the
/// weight uses, is left out.
constexpr Sharding sharded_update(const TensorDesc& weight, AxisList axes, const MeshShape& mesh) {
  Sharding made = weight.sharding.finished();
  for (int i = 0; i < axes.size(); ++i) {
    if (made.used().contains(axes[i])) continue;
    Sharding best = made;
    Index least = largest_block(weight.extents, made, mesh);
    for (int d = 0; d < made.rank(); ++d) {
      Sharding one = made;
      one[d].push_back(axes[i]);
      if (const Index block = largest_block(weight.extents, one, mesh); block < least) {
        least = block;
        best = one;
      }
    }
    made = best;
  }
  return made;
}

/// Returns whether a weight has several dimensions, and its blocks are blocks of the line of its
/// elements, as they lie: no inner dimension is split, and the leading one evenly.
constexpr bool is_line(const TensorDesc& weight, const MeshShape& mesh) {
  const Sharding s = without_unit_axes(weight.sharding, mesh);
  Index parts = 1;
  for (int d = 0; d < s.rank(); ++d) {
    if (d > 0 && !s[d].empty()) return false;
    for (int i = 0; i < s[d].size(); ++i) parts *= mesh[s[d][i]];
  }
  return weight.rank() > 1 && weight.extents[0] % parts == 0;
}
/// Returns a weight as one line of elements.
constexpr TensorDesc line_of(const TensorDesc& weight) {
  return {weight.type, {volume(weight.extents)}, {weight.sharding[0]}};
}

/// Returns the modelled picoseconds of an all-reduce by recursive doubling, which MPI takes for
/// short messages: all of the tensor in each of log2 N rounds (Thakur, Rabenseifner and Gropp 2005,
/// section 4). The planner's price is that of a reduce-scatter and an all-gather.
constexpr std::int64_t doubling_cost(const TensorDesc& open, const MeshShape& mesh,
                                     const PlanOptions& options) {
  const AxisSet group = open.sharding.partial - mesh.unit_axes();
  Index rounds = 0;
  for (Index n = 1; n < mesh.group_size(group); n *= 2) ++rounds;
  const Index bytes = largest_block(open.extents, open.sharding, mesh) *
                      static_cast<Index>(size_of(options.parts_of(Reduction::sum, open.type)));
  const Level level = levels(group, mesh, options.machine).level();
  return saturating_mul(rounds, options.machine.transfer(bytes, 1, level));
}

/// Returns the modelled picoseconds of a weight's update: its gradient is summed over the `axes`
/// that the weight does not use, and ends under the update's sharding; one pass over memory; the
/// weight is gathered.
constexpr std::int64_t update_cost(const TensorDesc& weight, const Sharding& update, AxisList axes,
                                   UpdateBytes bytes, const MeshShape& mesh,
                                   const PlanOptions& options) {
  const auto summed =
      weight.sharding.with_partial(axes.set() - weight.sharding.used(), Reduction::sum);
  const TensorDesc share{weight.type, weight.extents, update};
  const TensorDesc open{weight.type, weight.extents, summed};
  const Index each = 3 * static_cast<Index>(size_of(weight.type)) + 2 * bytes.auxiliary;
  const Index elements = largest_block(weight.extents, update, mesh);
  std::int64_t sum = plan_reshard(open, update, mesh, 0, options).cost;
  if (update == weight.sharding.finished()) sum = min_of(sum, doubling_cost(open, mesh, options));
  return saturating_add(
      saturating_add(sum, plan_reshard(share, weight.sharding, mesh, 0, options).cost),
      options.machine.copy(saturating_mul(elements, each) / 2));
}

}  // namespace detail

/// Returns where a weight is updated. `cheapest` compares all choices among the policy's axes, the
/// fewest first, by the planner's prices (section 3.2: small weights stay replicated). Flat where
/// the policy says so and the weight's blocks are blocks of its line of elements. Pure; the same on
/// every process. Communication: none. Throws nothing of its own.
constexpr UpdatePlace update_place(const TensorDesc& weight, const UpdatePolicy& policy,
                                   UpdateBytes bytes, const MeshShape& mesh,
                                   const PlanOptions& options = {}) {
  const bool flat =
      policy.flat && policy.kind != UpdatePolicy::Kind::replicated && detail::is_line(weight, mesh);
  const TensorDesc one = flat ? detail::line_of(weight) : weight;
  if (policy.kind == UpdatePolicy::Kind::sharded || policy.kind == UpdatePolicy::Kind::open)
    return {detail::sharded_update(one, policy.axes, mesh), flat};
  const UpdatePlace own{weight.sharding.finished(), false};
  if (policy.kind == UpdatePolicy::Kind::replicated) return own;
  UpdatePlace best = own;
  std::int64_t least = detail::update_cost(weight, own.sharding, policy.axes, bytes, mesh, options);
  for (int count = 1; count <= policy.axes.size(); ++count)
    for (unsigned chosen = 1; chosen < 1u << policy.axes.size(); ++chosen) {
      AxisList axes;
      for (int i = 0; i < policy.axes.size(); ++i)
        if ((chosen >> i & 1u) != 0) axes.push_back(policy.axes[i]);
      if (axes.size() != count) continue;
      const Sharding update = detail::sharded_update(one, axes, mesh);
      const std::int64_t cost = detail::update_cost(one, update, policy.axes, bytes, mesh, options);
      if (cost >= least || update == one.sharding.finished()) continue;
      least = cost;
      best = {update, flat};
    }
  return best;
}

}  // namespace tessera
