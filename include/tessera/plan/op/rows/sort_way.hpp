// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Where lines are sorted. A sorted dimension has three ways: its axes go to other dimensions; it
/// is gathered; or it stays split and processes merge their blocks. All of these, and mixtures
/// where several axes split it, are combinations of plan/search/axis_search.hpp.
///
///     detail::SortWay way = detail::sort_way(along, {x}, {x}, out, mesh, options);
///     way.at;   way.merges
///
/// Laws: see plan/search/factor_search.hpp.
#include <tessera/plan/elementwise.hpp>
#include <tessera/plan/move/merge_split.hpp>
#include <tessera/plan/search/factor_search.hpp>
#include <tessera/plan/work/sort_work.hpp>

namespace tessera::detail {

/// How lines are sorted.
struct SortWay {
  Sharding at;          ///< of all tensors during the sort
  bool merges = false;  ///< the dimension stays split
  std::int64_t cost = max_int64;
};

/// Returns the price of comparing keys, with the copies in memory that this causes.
constexpr std::int64_t comparison_price(const Machine& machine, Index count) {
  return machine.copy(saturating_mul(8, count));
}

/// Returns the price of all rounds of merging between processes that have `elements` elements of
/// `unit` bytes each.
constexpr std::int64_t merge_exchange_price(Index elements, Index unit, AxisSet group,
                                            const MeshShape& mesh, const Machine& machine) {
  const Index bytes = saturating_mul(elements, unit);
  std::int64_t round = machine.transfer(bytes, 1, levels(group, mesh, machine).level());
  round = saturating_add(round, machine.copy(saturating_mul(3, bytes)));
  round = saturating_add(round, comparison_price(machine, elements));
  return saturating_mul(merge_exchange_rounds(mesh.group_size(group)), round);
}

/// The sort of lines for plan/search/factor_search.hpp.
struct SortWork {
  int along;    ///< the factor
  Index limit;  ///< the number of elements wanted of each line
  Index unit;   ///< bytes of one element of all merged tensors together; 0: no merging
  const MeshShape& mesh;
  const PlanOptions& options;

  /// A contract holds for all extents, so extents do not decide here.
  constexpr bool may_merge(const FactorRule& rule, AxisSet stay) const {
    if (unit == 0) return false;
    if (options.contract.bounded() || !stay.several()) return !stay.several();
    return rule.tensors[0].desc.extents[along] % mesh.group_size(stay) == 0;
  }
  constexpr std::int64_t price(const FactorRule& rule, const FactorSplit& split,
                               const FactorParts& parts, const Machine& machine) const {
    const AxisSet stay = split.axes[along];
    const int of_results = rule.result().factors[along];
    if (of_results != along && !split.axes[of_results].empty()) return -1;
    if (!stay.empty() && !may_merge(rule, stay)) return -1;
    const Index elements = parts.elements(0);
    std::int64_t price = comparison_price(machine, comparisons(elements, parts[along], limit));
    for (int t = rule.operands; t < rule.tensors.size(); ++t)
      price = saturating_add(price, machine.copy(saturating_mul(2, parts.bytes(t))));
    if (stay.empty()) return price;
    price = saturating_add(price, merge_exchange_price(elements, unit, stay, mesh, machine));
    return options.contract.accepts(Collective::exchange, stay)
               ? price
               : saturating_add(price, breach_cost);
  }
  constexpr std::int64_t least(const FactorRule&, const FactorParts&, Index, const Machine&) const {
    return 0;
  }
  constexpr std::int64_t saved(int, const Moves&, const Sharding&) const { return 0; }
};

/// Returns the best way to sort. `inputs` (keys first) are moved to the sharding of the sort;
/// `results` (whose own shardings do not matter) have that sharding and are then moved to `out`.
/// `unit`: bytes of one element of all merged tensors together; 0: do not merge.
constexpr SortWay sort_way(int along, const TensorDescs& inputs, const TensorDescs& results,
                           const Sharding& out, const MeshShape& mesh, const PlanOptions& options,
                           Index unit = 0) {
  const Term labels = default_labels(out.rank());
  FactorRule rule;
  rule.holds_all = true;
  for (const TensorDesc& x : inputs) rule.add(x, labels);
  rule.mark({labels[along]}, Splitting::moves);
  Term limited = labels;  // a shorter line is a dimension of its own
  const Index limit = results[0].extents[along];
  if (limit != inputs[0].extents[along]) {
    limited[along] = '*';
    rule.mark({'*'}, Splitting::moves);
  }
  for (const TensorDesc& x : results) rule.add({x.type, x.extents, out}, limited, true);
  const Factors found =
      search_factors(rule, detail::SortWork{along, limit, unit, mesh, options}, mesh, options);
  return {found.shardings[0], !found.shardings[0][along].empty(), found.cost};
}
}  // namespace tessera::detail
