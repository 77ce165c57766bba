// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What the candidates of plan/search/factor_rule.hpp cost at least, whatever the other axes do: a
/// search (plan/search/axis_search.hpp) leaves out candidates and combinations by it, before it
/// prices anything.
///
///     detail::LeastTolls least(axes, machine, work);   // `work`: the least price of the local work
///     least.of(0, 2);                                  // axis 0 has its third candidate
///     least.of(pick);                                  // each axis has the candidate of the pick
///
/// An axis that leaves what it does to a tensor makes each process receive, on average, all but its
/// part of what it needs: the blocks along such an axis are disjoint, and what a process needs does
/// not depend on its place there. A sum over an axis needs as much, and more where it ends whole.
///
/// Laws: where blocks are even, no combination costs less.
#include <tessera/base/lazy_vector.hpp>
#include <tessera/mesh/machine.hpp>
#include <tessera/plan/search/factor_rule.hpp>

namespace tessera::detail {

class LeastTolls {
 public:
  constexpr LeastTolls(const FactorAxes& axes, const Machine& machine, std::int64_t work)
      : axes_(axes),
        work_(work),
        message_(min_of(machine.message_ps, machine.network_message_ps)),
        payload_(min_of(machine.payload_ps_per_kib, machine.network_payload_ps_per_kib)) {
    for (const FactorTensor& tensor : axes.rule().tensors) {
      const Sizes sizes = sizes_of(tensor);
      for (int axis = 0; axis < axes.mesh().rank(); ++axis)
        tolls_.push_back(tolls_of(tensor, sizes, axis));
    }
  }
  constexpr std::int64_t of(int axis, int candidate) const {
    const int role = axes_.candidates(axis)[candidate];
    std::int64_t cost = work_;
    for (int t = 0; t < axes_.rule().tensors.size(); ++t)
      cost = saturating_add(cost, toll(t, axis, role));
    return cost;
  }
  constexpr std::int64_t of(const FixedVector<int, max_axes>& pick) const {
    return saturating_add(work_, without_work(axes_.roles(pick)));
  }
  constexpr std::int64_t without_work(const AxisRoles& roles) const {
    std::int64_t cost = 0;
    for (int t = 0; t < axes_.rule().tensors.size(); ++t)
      cost = saturating_add(cost, toll(t, roles));
    return cost;
  }
  /// Returns what moving tensor t costs at least.
  constexpr std::int64_t toll(int t, const AxisRoles& roles) const {
    std::int64_t most = 0;
    for (int axis = 0; axis < roles.size(); ++axis) most = max_of(most, toll(t, axis, roles[axis]));
    return most;
  }

 private:
  /// The elements of a tensor; its share of one process, where all axes split it; and a block, on
  /// average.
  struct Sizes {
    Index all = 0, share = 0, block = 0;
  };
  /// What it costs at least that an axis leaves what it does to a tensor.
  struct OfAxis {
    int own = -1;             ///< the dimension that it splits
    bool open = false;        ///< the tensor is unfinished over it
    std::int64_t summed = 0;  ///< a sum is finished
    /// An operand: from its own dimension to none, and to another. A result: from each dimension.
    std::int64_t gathered = 0, moved = 0;
    FixedVector<std::int64_t, max_dims> left;
  };
  constexpr Sizes sizes_of(const FactorTensor& tensor) const {
    Sizes sizes;
    sizes.all = sizes.block = volume(tensor.desc.extents);
    sizes.share = sizes.all / axes_.mesh().processes();
    for (int d = 0; d < tensor.desc.rank(); ++d)
      if (const AxisList split = tensor.desc.sharding[d]; !split.empty())
        sizes.block /= axes_.mesh().parts(split);
    return sizes;
  }
  constexpr OfAxis tolls_of(const FactorTensor& tensor, const Sizes& sizes, int axis) const {
    const Index members = axes_.mesh()[axis];
    OfAxis of;
    of.open = tensor.desc.sharding.partial.contains(axis);
    for (int d = 0; d < tensor.desc.rank(); ++d)
      if (tensor.desc.sharding[d].contains(axis)) of.own = d;
    const auto price = [&](Index elements) {
      const Index bytes = saturating_mul(elements, static_cast<Index>(size_of(tensor.desc.type)));
      return members == 1 ? 0 : saturating_add(message_, saturating_mul(bytes / 1024, payload_));
    };
    const auto beyond = [&](Index elements, int d) {  // all but the first of the axis's blocks
      const Index n = tensor.desc.extents[d];
      return n == 0 ? 0 : elements / n * (n - ceil_div(n, members));
    };
    if (!tensor.made) {
      if (of.open) of.summed = price(saturating_mul(sizes.share, members - 1));
      if (of.own < 0) return of;
      of.gathered = price(beyond(saturating_mul(sizes.share, members), of.own));
      of.moved = price(beyond(sizes.share, of.own));
      return of;
    }
    of.summed = price(saturating_mul(max_of(sizes.share, sizes.block / members), members - 1));
    for (int d = 0; d < tensor.desc.rank(); ++d) of.left.push_back(price(beyond(sizes.block, d)));
    return of;
  }
  constexpr std::int64_t toll(int t, int axis, int role) const {
    const FactorTensor& tensor = axes_.rule().tensors[t];
    const OfAxis& of = tolls_[t * axes_.mesh().rank() + axis];
    const auto is_at = [&](int d) {
      return tensor.factors[d] == role || tensor.major[d] == role || tensor.also[d] == role;
    };
    const bool opens = role == passes_through || (role >= 0 && axes_.opens(role));
    if (tensor.made && opens) return of.open ? 0 : of.summed;
    if (!tensor.made && of.open) return role == passes_through ? 0 : of.summed;
    if ((!tensor.made && of.own < 0) || (tensor.made && role < 0)) return 0;
    if (role >= 0 && of.own >= 0 && is_at(of.own)) return 0;
    if (role >= 0)
      for (int d = 0; d < tensor.factors.size(); ++d)
        if (is_at(d)) return tensor.made ? of.left[d] : of.moved;
    return of.gathered;
  }

  const FactorAxes& axes_;
  std::int64_t work_, message_, payload_;
  LazyVector<OfAxis, 2 * max_operands * max_axes> tolls_;
};
}  // namespace tessera::detail
