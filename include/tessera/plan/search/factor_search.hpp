// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Chooses what each axis of a mesh splits during an operator's local work, by its factor rule
/// (plan/search/factor_rule.hpp): the combination of least integer cost. The candidates include
/// GShard 3.3.2's three cases of a product (resharding, partial sums, gathering one operand).
///
///     detail::Factors choice = detail::search_factors(rule, detail::CopyWork{}, mesh, options);
///     choice.shardings[t];                                        // of each tensor, meanwhile
///
/// A price adds the local work, which the operator states, and the tolls: the cost of moving each
/// operand to its sharding during the work, and each result to its final sharding. A toll is
/// computed once for each sharding of a tensor.
///
/// Laws: see plan/search/axis_search.hpp; the choice depends on global extents, shardings, mesh and
/// options only. Axes of size 1 are left out, unless a contract can be kept with them alone.
#include <tessera/plan/builder.hpp>
#include <tessera/plan/search/axis_search.hpp>
#include <tessera/plan/search/best_way.hpp>
#include <tessera/plan/search/factor_parts.hpp>

namespace tessera::detail {

/// How the tensors are split while the local work runs, unfinished axes included.
struct Factors {
  FixedVector<Sharding, 2 * max_operands> shardings;
  AxisRoles roles;  ///< of the axes
  std::int64_t cost = max_int64;
  std::int64_t work = 0;  ///< the part of the cost that is local work
};
/// The best split whose axes split what they split in some tensor, then a cheaper one, if any.
using Splits = FixedVector<Factors, 2>;

/// The problem of plan/search/axis_search.hpp for an operator with letters. Its variants are the
/// orders of axes that split one factor together, each named by the tensor that has this order.
template <class Work> class FactorProblem {
 public:
  constexpr FactorProblem(const FactorAxes& axes, const Work& work, const PlanOptions& options)
      : axes_(axes),
        rule_(axes.rule()),
        work_(work),
        options_(options),
        message_(min_of(options.machine.message_ps, options.machine.network_message_ps)),
        payload_(
            min_of(options.machine.payload_ps_per_kib, options.machine.network_payload_ps_per_kib)),
        whole_(rule_.letters.size(), 1) {
    for (int t = 0; t < rule_.tensors.size(); ++t) own_.push_back(own(t));
  }

  constexpr int axes() const { return axes_.mesh().rank(); }
  constexpr int candidates(int axis) const { return axes_.own(axis); }
  constexpr int free_candidates(int axis) const {
    return axes_.candidates(axis).size() - axes_.own(axis);
  }
  constexpr int fallback(int axis) const { return candidates(axis) - 1; }
  constexpr bool bounded() const { return options_.contract.bounded(); }
  constexpr bool needs_alone() const { return options_.needs_alone; }
  constexpr const LeastTolls& least_tolls() {
    const FactorParts whole(rule_, {}, axes_.mesh(), whole_);
    const std::int64_t work = work_.least(rule_, whole, axes_.mesh().processes(), options_.machine);
    return least_.emplace(axes_, options_.machine, work);
  }
  constexpr Variants variants(const Pick& pick) {
    look_at(axes_.roles(pick));
    return split_.joined ? axes_.orders(split_) : Variants{rule_.operands};
  }
  constexpr Worth bound(const Pick& pick, int variant) {
    look_at(axes_.roles(pick));
    first_ = variant;
    int number = 0;  // of the combination
    for (int axis = 0; axis < pick.size() && number < exhaustive_limit; ++axis)
      number = pick[axis] < candidates(axis) ? number * candidates(axis) + pick[axis]
                                             : exhaustive_limit;  // a free one
    if (number >= exhaustive_limit) return worth_of(last_parted());
    std::uint8_t& place = places_[number][variant];
    if (place == 0) {
      if (known_.size() == known_.capacity) return worth_of(last_parted());
      known_.push_back(parted());
      place = static_cast<std::uint8_t>(known_.size());
    } else if (known_[place - 1].forgotten != tolls_.forgotten()) {
      known_[place - 1] = parted();
    }
    return worth_of(known_[place - 1]);
  }
  constexpr bool moves(const Pick& pick, int variant) {
    look_at(axes_.roles(pick));
    first_ = variant;
    for (const std::uint8_t place : parted().tolls)
      if (way_of(tolls_[place].key).leaves) return true;
    return false;
  }
  /// Returns the best possible worth of an assignment of the axes.
  constexpr Worth bound_of(const AxisRoles& roles, int first) {
    look_at(roles);
    first_ = first;
    return worth_of(last_parted());
  }
  /// Returns the price of the local work alone.
  constexpr std::int64_t work_of(const AxisRoles& roles, int first) {
    look_at(roles);
    first_ = first;
    return last_parted().price;
  }
  constexpr bool refine() {
    if (unknown_ == nullptr) return false;
    const int t = tensor_of(unknown_->key);
    const FactorTensor& tensor = rule_.tensors[t];
    const Sharding s = axes_.sharding(t, split_, first_);
    unknown_->known = true;
    unknown_->stays = tensor.desc.sharding == s;
    unknown_->cost = 0;
    if (unknown_->stays) return true;
    TensorDesc from = tensor.desc;
    if (tensor.made) from.sharding = s;
    legs_.tensor = t;
    const Moves moves = reshard_moves(from, tensor.made ? tensor.desc.sharding : s,
                                      options_.parts_of(from.sharding.reduction, from.type),
                                      axes_.mesh(), options_.machine, options_.contract, &legs_);
    unknown_->cost = moves.cost;
    if (!moves.list.empty()) unknown_->cost -= work_.saved(t, moves, s);
    if constexpr (requires { work_.held(moves, true, Index{}); })
      if (!moves.list.empty()) unknown_->bytes = work_.held(moves, tensor.made, unknown_->bytes);
    return true;
  }

 private:
  static constexpr int max_tensors = 2 * max_operands;
  // A key has, for each axis, four bits with its effect on the tensor: the dimension that it
  // splits, from 1, or `unfinished`; then, where several axes split a dimension, their order, else
  // 15; then the tensor.
  static constexpr std::uint32_t unfinished = 9;
  static constexpr std::uint32_t of_axes = (1u << 24) - 1;
  static constexpr std::uint32_t does(int axis, std::uint32_t what) { return what << (4 * axis); }
  static constexpr bool in_order(std::uint32_t key) { return (key >> 24 & 15u) == 15u; }
  static constexpr int tensor_of(std::uint32_t key) { return static_cast<int>(key >> 28); }

  /// The parts of an assignment's worth: its price without tolls, and the places of its tolls.
  struct Parted {
    std::int64_t price = -1;  ///< of the local work; negative when it is impossible
    Index held = 0;           ///< bytes, when the work holds all tensors
    int forgotten = 0;        ///< Tolls::forgotten() when this was made
    FixedVector<std::uint8_t, max_tensors> tolls;
  };
  /// Makes an assignment the one that the bounds below are of.
  constexpr void look_at(const AxisRoles& roles) {
    if (roles == roles_) return;
    roles_ = roles;
    split_ = axes_.together(roles);
    last_first_ = -1;
  }
  /// Returns the parts of the assignment's worth, in the order of tensor `first_`.
  constexpr Parted parted() {
    const FactorParts parts(rule_, roles_, axes_.mesh(), whole_);
    Parted parted;
    parted.price = work_.price(rule_, split_, parts, options_.machine);
    if (parted.price < 0) return parted;
    tolls_.make_room(rule_.tensors.size());
    parted.forgotten = tolls_.forgotten();
    for (int t = 0; t < rule_.tensors.size(); ++t) {
      const std::uint32_t wanted = key(t, roles_);
      if (rule_.holds_all) parted.held = saturating_add(parted.held, parts.bytes(t));
      if ((wanted & of_axes) == own_[t].key && in_order(wanted)) continue;
      const int place = tolls_.find(wanted);
      Toll& toll = tolls_[place];
      if (toll.key == 0) toll = {wanted, false, false, least_toll(wanted, parts), parts.bytes(t)};
      parted.tolls.push_back(static_cast<std::uint8_t>(place));
    }
    return parted;
  }
  constexpr const Parted& last_parted() {
    if (last_first_ != first_ || last_.forgotten != tolls_.forgotten()) last_ = parted();
    last_first_ = first_;
    return last_;
  }
  constexpr Worth worth_of(const Parted& parted) {
    unknown_ = nullptr;
    if (parted.price < 0) return {};
    Worth worth{true, false, parted.price};
    Index held = parted.held;
    for (const std::uint8_t place : parted.tolls) {
      Toll& toll = tolls_[place];
      worth.cost = saturating_add(worth.cost, toll.cost);
      if (toll.known && !toll.stays && !rule_.holds_all) held = saturating_add(held, toll.bytes);
      if (!toll.known && (unknown_ == nullptr || unknown_->cost < toll.cost)) unknown_ = &toll;
    }
    worth.over = held > options_.workspace_limit;
    return worth;
  }

  /// A tensor under its own sharding.
  struct Own {
    std::uint32_t key = 0;
    AxisSet passes;    ///< the axes over which it may be unfinished
    bool even = true;  ///< each dimension is split evenly, over any axes
    Extents block{};   ///< of process 0
    Index elements = 1;
    std::uint8_t place[FactorRule::max_factors]{};  ///< a factor's code in a key
  };
  constexpr Own own(int t) {
    const FactorTensor& tensor = rule_.tensors[t];
    const Sharding& s = tensor.desc.sharding;
    Own own;
    own.passes = tensor.made ? axes_.mesh().axes() : axes_.kept(t);
    if (tensor.made)
      for (int f = 0; f < rule_.letters.size(); ++f)
        if (rule_.splitting[f] == Splitting::opens) own.place[f] = unfinished;
    for (int d = 0; d < s.rank(); ++d) {
      const Index n = tensor.desc.extents[d];
      const int f = tensor.factors[d];
      whole_[f] = n;
      own.place[f] = static_cast<std::uint8_t>(d + 1);
      own.block.push_back(ceil_div(n, axes_.mesh().parts(s[d])));
      own.elements = saturating_mul(own.elements, own.block[d]);
      own.even = own.even && divides(axes_.mesh().processes(), n);
      for (int i = 0; i < s[d].size(); ++i) own.key |= does(s[d][i], own.place[f]);
    }
    for (int axis = 0; axis < axes(); ++axis)
      if (s.partial.contains(axis)) own.key |= does(axis, unfinished);
    return own;
  }
  constexpr std::uint32_t key(int t, const AxisRoles& roles) const {
    const Own& own = own_[t];
    std::uint32_t key = 0;
    for (int axis = 0; axis < roles.size(); ++axis)
      if (const int role = roles[axis]; role >= 0)
        key |= does(axis, own.place[role]);
      else if (role == passes_through && own.passes.contains(axis))
        key |= does(axis, unfinished);
    int order = 15;
    if (split_.joined)
      for (const int f : rule_.tensors[t].factors)
        if (split_.axes[f].several()) order = first_ + 1;
    return key | static_cast<std::uint32_t>(order) << 24 | static_cast<std::uint32_t>(t) << 28;
  }
  /// What the axes of the mesh do to a tensor on its way, of which a toll's key tells both ends.
  struct Way {
    bool leaves = false;  ///< an axis leaves what it splits, so that elements travel
    int sources = 1;      ///< the processes whose elements, or parts of sums, each process needs
    int slices = 1;       ///< the parts that can be cut before anything travels
    int summed = 1;       ///< the processes whose parts of sums are joined
    int alone = -1;       ///< the one axis that goes from a dimension of its own to another
    int changed = 0;      ///< how many axes do something else
  };
  constexpr Way way_of(std::uint32_t key) const {
    const bool made = rule_.tensors[tensor_of(key)].made;
    const std::uint32_t own = own_[tensor_of(key)].key;
    Way way;
    int moved = -1;
    bool moves = false;
    for (int axis = 0; axis < axes(); ++axis) {
      const std::uint32_t from = (made ? key : own) >> (4 * axis) & 15u;
      const std::uint32_t to = (made ? own : key) >> (4 * axis) & 15u;
      const int size = axes_.mesh()[axis];
      if (from == to || size == 1) continue;
      way.leaves = way.leaves || from != 0;
      if (from == 0) way.slices *= size;
      if (from == unfinished) way.summed *= size;
      if (from != 0 && (to == 0 || from == unfinished)) way.sources *= size;
      moves = from != 0 && to != 0 && from != unfinished;
      moved = axis;
      ++way.changed;
    }
    if (way.changed != 1 || !moves) return way;  // of several, one may undo what another does
    way.sources = axes_.mesh()[moved];
    const std::uint32_t ends[2] = {own >> (4 * moved) & 15u, key >> (4 * moved) & 15u};
    way.alone = moved;
    for (int axis = 0; axis < axes(); ++axis)
      for (const std::uint32_t end : ends)
        if (axis != moved && (own >> (4 * axis) & 15u) == end) way.alone = -1;
    return way;
  }
  /// Returns a lower bound of a toll: the rounds of messages in which a process hears of all others
  /// that it needs, and the data that process 0 must receive. Where blocks are even, it sends as
  /// much as it receives in every collective, so each element that it lacks costs; and of each
  /// element of a sum it sends a part, unless the sum stays with it.
  constexpr std::int64_t least_toll(std::uint32_t key, const FactorParts& parts) const {
    const FactorTensor& tensor = rule_.tensors[tensor_of(key)];
    const Own& own = own_[tensor_of(key)];
    const Way way = way_of(key);
    if (way.changed == 0) return 0;  // or another order of axes
    const Index part = parts.elements(tensor_of(key));
    const auto unit = static_cast<Index>(size_of(tensor.desc.type));
    if (!way.leaves)  // it is cut
      return options_.machine.copy(saturating_mul(tensor.made ? own.elements : part, unit));
    const std::int64_t known =
        least_ ? max_of(message_, least_->toll(tensor_of(key), roles_)) : message_;
    const bool alone = way.alone >= 0 && options_.machine.order.axes.empty();
    if (!own.even && !alone && way.changed > 1) return known;
    const Index held = tensor.made ? part : own.elements;
    Index arrives = held / way.slices;
    if (way.summed > 1) {
      arrives -= ceil_div(arrives, way.summed);
    } else {
      Index kept = 1;
      for (int d = 0; d < tensor.factors.size(); ++d)
        kept = saturating_mul(kept, min_of(parts[tensor.factors[d]], own.block[d]));
      if (alone)
        return max_of(known, least_all_to_all(way.alone, saturating_mul(held, unit),
                                              saturating_mul(kept, unit)));
      arrives = (tensor.made ? own.elements : part) - kept;
    }
    return max_of(known,
                  saturating_add(saturating_mul(max_of(1, rounds(way.sources)), message_),
                                 saturating_mul(saturating_mul(arrives, unit) / 1024, payload_)));
  }
  /// Returns a lower bound of an all-to-all over an axis, in which process 0 keeps `kept` of `held`
  /// bytes, and sends no other process more: each node hears of it at least once.
  constexpr std::int64_t least_all_to_all(int over, Index held, Index kept) const {
    const Machine& machine = options_.machine;
    const MeshShape& mesh = axes_.mesh();
    const int members = mesh[over];
    Index stride = 1, near = members;  // of the members, how many share the node of process 0
    for (int axis = over + 1; axis < axes(); ++axis) stride *= mesh[axis];
    if (!machine.one_node(mesh)) near = min_of(near, ceil_div(machine.processes_per_node, stride));
    const Index far = near < members ? max_of(0, held - saturating_mul(near, kept)) : 0;
    const std::int64_t within = saturating_add(
        saturating_mul(near - 1, message_), saturating_mul((held - kept - far) / 1024, payload_));
    return saturating_add(
        within,
        machine.transfer(far, members > near ? ceil_div(members, near) - 1 : 0, Level::network));
  }

  const FactorAxes& axes_;
  const FactorRule& rule_;
  const Work& work_;
  const PlanOptions& options_;
  std::int64_t message_, payload_;
  FactorParts::Extents whole_;
  FixedVector<Own, max_tensors> own_;
  std::optional<LeastTolls> least_;  ///< once free candidates are tried
  Tolls tolls_;
  LegMemo legs_;
  FixedVector<Parted, 2 * exhaustive_limit> known_;
  std::uint8_t places_[exhaustive_limit][max_operands + 1]{};  ///< index in known_, plus one
  Parted last_;  ///< of the last assignment that known_ does not hold
  int last_first_ = -1;
  // These belong to the last bound.
  FactorSplit split_;
  AxisRoles roles_;
  int first_ = 0;
  Toll* unknown_ = nullptr;
};

template <class Work>
constexpr Splits search_splits_once(const FactorRule& rule, const Work& work, const MeshShape& mesh,
                                    const PlanOptions& options) {
  const FactorAxes axes(rule, mesh, options.free_choice);
  FactorProblem<Work> problem(axes, work, options);
  Splits splits;
  const AxisSearch<FactorProblem<Work>> search(problem);
  for (const FoundPick& found : search.found()) {
    Factors& split = splits.push_back({{}, axes.roles(found.pick), found.worth.cost});
    split.work = problem.work_of(split.roles, found.variant);
    const FactorSplit together = axes.together(split.roles);
    for (int t = 0; t < rule.tensors.size(); ++t)
      split.shardings.push_back(axes.sharding(t, together, found.variant));
  }
  return splits;
}

/// Returns the best splits of the tensors during the local work, which best_plan compares.
template <class Work>
constexpr Splits search_splits(const FactorRule& rule, const Work& work, const MeshShape& mesh,
                               const PlanOptions& options) {
  if (mesh.unit_axes().empty()) return detail::search_splits_once(rule, work, mesh, options);
  FactorRule fewer = rule;
  for (FactorTensor& tensor : fewer.tensors)
    tensor.desc.sharding = without_unit_axes(tensor.desc.sharding, mesh);
  const Splits best = detail::search_splits_once(fewer, work, mesh, options);
  if (!options.contract.bounded() || breaches(best.back().cost) == 0) return best;
  // The contract may allow only the moves of meshes without axes of size 1.
  const Splits other = detail::search_splits_once(rule, work, mesh, options);
  return breaches(other.back().cost) < breaches(best.back().cost) ? other : best;
}
/// Returns the best split whose axes split what they split in some tensor.
template <class Work>
constexpr Factors search_factors(const FactorRule& rule, const Work& work, const MeshShape& mesh,
                                 PlanOptions options) {
  options.free_choice = false;
  return detail::search_splits(rule, work, mesh, options)[0];
}

/// Returns the price of one assignment of the axes: `roles[axis]` is a factor of the rule,
/// splits_nothing or passes_through.
template <class Work>
constexpr std::int64_t price_of_factors(const FactorRule& rule, const Work& work,
                                        const AxisRoles& roles, const MeshShape& mesh,
                                        const PlanOptions& options) {
  const FactorAxes axes(rule, mesh);
  detail::FactorProblem<Work> problem(axes, work, options);
  Worth least;
  for (const int first : axes.orders(axes.together(roles))) {
    Worth worth = problem.bound_of(roles, first);
    while (problem.refine()) worth = problem.bound_of(roles, first);
    if (worth.better_than(least)) least = worth;
  }
  return least.cost;
}
}  // namespace tessera::detail
