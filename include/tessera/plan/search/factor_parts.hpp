// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What a split of an operator's factors (plan/search/factor_rule.hpp) leaves on a process, the
/// price of local work on it, and a table of the costs of moving tensors to their splits. A search
/// (plan/search/factor_search.hpp) compares splits by these.
///
///     detail::Tolls tolls;
///     tolls[tolls.find(7)].known;              // false: nothing is known of key 7 yet
///
/// Laws: the parts are those of process 0, which has the largest; a toll is found where it was put
/// until all are forgotten.
#include <tessera/plan/move/reshard.hpp>
#include <tessera/plan/search/factor_rule.hpp>

namespace tessera::detail {

/// The parts of the factors and tensors on process 0, which has the largest part.
class FactorParts {
 public:
  using Extents = FixedVector<Index, FactorRule::max_factors>;
  constexpr FactorParts(const FactorRule& rule, const AxisRoles& roles, const MeshShape& mesh,
                        const Extents& whole)
      : rule_(rule), extents_(whole) {
    int parts[FactorRule::max_factors]{};
    for (int axis = 0; axis < roles.size(); ++axis)
      if (const int f = roles[axis]; f >= 0) {
        parts[f] = parts[f] == 0 ? mesh[axis] : parts[f] * mesh[axis];
        extents_[f] = ceil_div(whole[f], parts[f]);
      }
  }
  constexpr Index operator[](int factor) const { return extents_[factor]; }
  /// Returns how many combinations of the factors there are.
  constexpr Index all() const {
    Index product = 1;
    for (const Index n : extents_) product = saturating_mul(product, n);
    return product;
  }
  constexpr Index elements(int tensor) const {
    Index product = 1;
    for (const int f : rule_.tensors[tensor].factors)
      product = saturating_mul(product, extents_[f]);
    return product;
  }
  constexpr Index bytes(int tensor) const {
    return saturating_mul(elements(tensor),
                          static_cast<Index>(size_of(rule_.tensors[tensor].desc.type)));
  }

 private:
  const FactorRule& rule_;
  Extents extents_;
};

/// Local work that reads or writes its tensors as often as the rule says. A value of this kind
/// states the price of the work (negative: impossible with this split) and the part of a tensor's
/// move that the work saves when the tensor is split as `s` during it.
struct CopyWork {
  constexpr std::int64_t price(const FactorRule& rule, const FactorSplit&, const FactorParts& parts,
                               const Machine& machine) const {
    std::int64_t cost = 0;
    for (int t = 0; t < rule.tensors.size(); ++t)
      if (const int times = rule.tensors[t].touched; times > 0)
        cost = saturating_add(cost, machine.copy(saturating_mul(times, parts.bytes(t))));
    return cost;
  }
  /// Returns the least price of any split over `processes`; `whole` are the factors without one.
  constexpr std::int64_t least(const FactorRule& rule, const FactorParts& whole, Index processes,
                               const Machine& machine) const {
    std::int64_t cost = 0;
    for (int t = 0; t < rule.tensors.size(); ++t)
      if (const int times = rule.tensors[t].touched; times > 0)
        cost =
            saturating_add(cost, machine.copy(saturating_mul(times, whole.bytes(t)) / processes));
    return cost;
  }
  constexpr std::int64_t saved(int, const Moves&, const Sharding&) const { return 0; }
};

/// The cost of moving one tensor from one sharding to another.
struct Toll {
  std::uint32_t key = 0;  ///< of tensor and sharding; 0: none
  bool known = false;     ///< else `cost` is a lower bound
  bool stays = false;     ///< the tensor already has this sharding
  std::int64_t cost = 0;
  Index bytes = 0;  ///< on process 0, during the local work
};
/// Tolls by their keys.
class Tolls {
 public:
  /// Returns the place of a key's toll, which is empty until it is computed.
  constexpr int find(std::uint32_t key) {
    auto i = key * 0x9e3779b1u >> 25;
    while (table_[i].key != key && table_[i].key != 0) i = (i + 1) % size;
    if (table_[i].key == 0) ++count_;
    return static_cast<int>(i);
  }
  constexpr Toll& operator[](int place) { return table_[place]; }
  /// Makes room for `more` tolls; forgets all tolls when there is no room.
  constexpr void make_room(int more) {
    if (count_ + more < size) return;
    for (Toll& toll : table_) toll = {};
    count_ = 0;
    ++forgotten_;
  }
  /// Returns how often all tolls were forgotten. Places from before are no longer valid.
  constexpr int forgotten() const { return forgotten_; }

 private:
  static constexpr int size = 128;
  Toll table_[size]{};
  int count_ = 0;
  int forgotten_ = 0;
};
}  // namespace tessera::detail
