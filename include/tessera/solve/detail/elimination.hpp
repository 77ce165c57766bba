// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Elimination of variables, one after the other (bucket elimination; Dechter, Artificial
/// Intelligence 113, 1999). A variable's bucket is the sum of all tables that have it; minimized
/// over the variable, it is a table of the later ones. A bucket of more than `bound` entries is
/// split into several, whose sum is a lower bound (mini-buckets; Dechter and Rish, JACM 50, 2003),
/// after its parts were made to agree on the cost of each value (moment matching; Ihler et al., UAI
/// 2012).
///
///     detail::Elimination elimination(network, detail::elimination_order(network, {}, bound), bound);
///     detail::Tables tables;
///     const Cost least = elimination.forward(tables, costs);          // `costs`: of all values of all variables
///     const Assignment best = elimination.decode(tables, {});
///     const std::vector<Cost> marginals = elimination.backward(tables);
///
/// Laws: where nothing is split, `least` is the least cost, `best` has it, and a value's marginal
/// is the least cost of all assignments with that value; where something is, `least` and the
/// marginals are lower bounds.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <tessera/solve/cost_network.hpp>
#include <tessera/solve/detail/buckets.hpp>
#include <tessera/solve/detail/order.hpp>
#include <tessera/solve/detail/tables.hpp>

namespace tessera::detail {

class Elimination : public Buckets {
 public:
  using Buckets::Buckets;

  /// What it costs where the buckets that have equal inputs are joined once, told without joining
  /// any.
  double distinct_entries(Tables& tables, std::span<const Cost> costs);

  /// Gives up, and returns -infeasible, where it takes more than `most` operations.
  Cost forward(Tables& tables, std::span<const Cost> costs, std::uint64_t most = ~std::uint64_t{0});
  /// After `forward`. Ties go to the value that `preferred` has, if it has any, else to the lowest.
  Assignment decode(const Tables& tables, const Assignment& preferred) const;
  /// After `forward`: for all values of all variables.
  std::vector<Cost> backward(Tables& tables);

  /// From the next call on, other tables are used.
  void forget_tables() {
    for (Bucket& bucket : buckets_) {
      bucket.shape = bucket.own_shape = -1;
      bucket.child_shapes.clear();
    }
  }

 private:
  JoinShape shape_of(const Bucket& bucket, const std::vector<int>& result, int without,
                     bool above) const;
  int number_of(const Operand& operand) const;
  void gather(const Bucket& bucket, int without, int above);
  void read(Tables& tables, std::span<const Cost> costs);
  void find_shape(Tables& tables, Bucket& bucket);
  void match(Tables& tables, std::size_t first, std::size_t last);
  void take_least(Tables& tables, std::size_t b);

  // What `forward` leaves: the numbers of the tables of variables, pairs and buckets.
  std::vector<int> unary_, pair_, message_, taken_, negative_, shift_;
  std::vector<int> numbers_;
  Cost least_ = 0;
};

/// The shape of a sum of a bucket's tables, without one of them, and with one from above where that
/// is wanted.
inline JoinShape Elimination::shape_of(const Bucket& bucket, const std::vector<int>& result,
                                       int without, bool above) const {
  JoinShape shape;
  for (const int v : bucket.variables) shape.sizes.push_back(network_->values(v));
  for (std::size_t k = 0; k < bucket.operands.size(); ++k)
    if (static_cast<int>(k) != without) shape.operands.push_back(bucket.operands[k].strides);
  const std::vector<int> scope(bucket.variables.begin(), bucket.variables.end() - 1);
  if (above) shape.operands.push_back(strides_in(scope, bucket.variables));
  shape.result = strides_in(result, bucket.variables);
  return shape;
}

inline int Elimination::number_of(const Operand& operand) const {
  const std::vector<int>& of = operand.kind == Kind::unary     ? unary_
                               : operand.kind == Kind::pair    ? pair_
                               : operand.kind == Kind::message ? message_
                               : operand.kind == Kind::least   ? taken_
                                                               : shift_;
  return of[operand.index];
}

inline void Elimination::gather(const Bucket& bucket, int without, int above) {
  numbers_.clear();
  for (std::size_t k = 0; k < bucket.operands.size(); ++k) {
    if (static_cast<int>(k) == without) continue;
    numbers_.push_back(number_of(bucket.operands[k]));
  }
  if (above >= 0) numbers_.push_back(above);
}

/// Moves costs of single values between the parts of a bucket until all parts have the same
/// marginals.
inline void Elimination::match(Tables& tables, std::size_t first, std::size_t last) {
  const int values = network_->values(buckets_[first].variable);
  const Cost parts = static_cast<Cost>(last - first);
  std::vector<Cost> zero(values, 0), sum(values, 0);
  for (std::size_t b = first; b < last; ++b) shift_[b] = tables.add(zero);
  std::vector<std::vector<Cost>> marginals;
  for (std::size_t b = first; b < last; ++b) {
    Bucket& bucket = buckets_[b];
    if (bucket.own_shape < 0)
      bucket.own_shape = tables.add_shape(shape_of(bucket, {bucket.variable}, -1, false));
    gather(bucket, -1, -1);
    const auto joined = tables.join(bucket.own_shape, numbers_);
    const auto table = tables[joined.table];
    marginals.emplace_back(table.begin(), table.end());
    for (int i = 0; i < values; ++i) sum[i] = add_costs(sum[i], table[i]);
  }
  for (std::size_t b = first; b < last; ++b) {
    std::vector<Cost>& shift = marginals[b - first];
    for (int i = 0; i < values; ++i) {
      if (!is_feasible(sum[i])) {
        shift[i] = 0;
        continue;
      }
      const Cost share = sum[i] / parts;
      shift[i] = (b == first ? sum[i] - share * (parts - 1) : share) - shift[i];
    }
    shift_[b] = tables.add(shift);
  }
}

inline void Elimination::read(Tables& tables, std::span<const Cost> costs) {
  unary_.clear();
  pair_.clear();
  for (int v = 0; v < network_->variables(); ++v)
    unary_.push_back(tables.add(
        costs.subspan(network_->first(v), static_cast<std::size_t>(network_->values(v)))));
  for (const auto& pair : network_->pairs()) pair_.push_back(tables.add(network_->costs(pair)));
  message_.assign(buckets_.size(), -1);
  taken_.assign(buckets_.size(), -1);
  negative_.assign(buckets_.size(), -1);
  shift_.assign(buckets_.size(), -1);
}

inline void Elimination::find_shape(Tables& tables, Bucket& bucket) {
  if (bucket.shape >= 0) return;
  const std::vector<int> scope(bucket.variables.begin(), bucket.variables.end() - 1);
  bucket.shape = tables.add_shape(shape_of(bucket, scope, -1, false));
}

inline double Elimination::distinct_entries(Tables& tables, std::span<const Cost> costs) {
  read(tables, costs);
  double entries = 0;
  std::map<std::vector<int>, int> joins;
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    find_shape(tables, buckets_[b]);
    gather(buckets_[b], -1, -1);
    numbers_.push_back(buckets_[b].shape);
    const auto [place, is_new] =
        joins.try_emplace(numbers_, -2 - static_cast<int>(joins.size()));  // no table's number
    message_[b] = taken_[b] = place->second;
    if (is_new) entries += entries_of(buckets_[b]);
  }
  return entries;
}

inline void Elimination::take_least(Tables& tables, std::size_t b) {
  const Bucket& bucket = buckets_[b];
  if (bucket.least.sizes.empty()) return;
  taken_[b] = tables.join(tables.add_shape(bucket.least), std::vector<int>{message_[b]}).table;
  const auto taken = tables[taken_[b]];
  std::vector<Cost> negative(taken.begin(), taken.end());
  for (Cost& cost : negative) cost = is_feasible(cost) ? -cost : 0;
  negative_[b] = tables.add(negative);
  message_[b] =
      tables.join(tables.add_shape(bucket.rest), std::vector<int>{message_[b], negative_[b]}).table;
}

inline Cost Elimination::forward(Tables& tables, std::span<const Cost> costs, std::uint64_t most) {
  read(tables, costs);
  least_ = 0;
  const std::uint64_t before = tables.operations();
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    if (tables.operations() - before > most) return -infeasible;
    Bucket& bucket = buckets_[b];
    if (bucket.part && shift_[b] < 0) {
      std::size_t last = b + 1;
      while (last < buckets_.size() && buckets_[last].variable == bucket.variable) ++last;
      match(tables, b, last);
    }
    find_shape(tables, bucket);
    gather(bucket, -1, -1);
    const auto joined = tables.join(bucket.shape, numbers_);
    message_[b] = joined.table;
    take_least(tables, b);
    least_ = add_costs(least_, joined.offset);
  }
  return least_ = is_feasible(least_) ? least_ : infeasible;
}

inline Assignment Elimination::decode(const Tables& tables, const Assignment& preferred) const {
  Assignment assignment(static_cast<std::size_t>(network_->variables()), 0);
  std::vector<Cost> sums;
  for (std::size_t b = buckets_.size(); b-- > 0;) {
    const int variable = buckets_[b].variable;
    if (b + 1 == buckets_.size() || buckets_[b + 1].variable != variable)
      sums.assign(static_cast<std::size_t>(network_->values(variable)), 0);
    for (const Operand& operand : buckets_[b].operands) {
      if (operand.kind == Kind::shift) continue;
      std::size_t at = 0;
      const auto& variables = buckets_[b].variables;
      for (std::size_t d = 0; d + 1 < variables.size(); ++d)
        at += static_cast<std::size_t>(operand.strides[d]) *
              static_cast<std::size_t>(assignment[variables[d]]);
      const auto table = tables[number_of(operand)];
      for (std::size_t i = 0; i < sums.size(); ++i)
        sums[i] =
            add_costs(sums[i], table[at + i * static_cast<std::size_t>(operand.strides.back())]);
    }
    const auto least = std::ranges::min_element(sums);
    assignment[variable] = static_cast<int>(least - sums.begin());
    if (!preferred.empty() && sums[static_cast<std::size_t>(preferred[variable])] == *least)
      assignment[variable] = preferred[variable];
  }
  return assignment;
}

inline std::vector<Cost> Elimination::backward(Tables& tables) {
  std::vector<Cost> marginals(network_->all_values(), -infeasible);
  std::vector<int> above(buckets_.size(), -1);
  for (std::size_t b = buckets_.size(); b-- > 0;) {
    Bucket& bucket = buckets_[b];
    const bool inner = bucket.parent >= 0;
    if (negative_[b] >= 0)  // what comes from above counts what was taken out of the message
      above[b] =
          tables.join(tables.add_shape(bucket.rest), std::vector<int>{above[b], negative_[b]})
              .table;
    if (bucket.child_shapes.empty())
      for (std::size_t k = 0; k < bucket.operands.size(); ++k)
        if (bucket.operands[k].kind == Kind::message)
          bucket.child_shapes.push_back(
              {static_cast<int>(k), tables.add_shape(shape_of(bucket, bucket.operands[k].scope,
                                                              static_cast<int>(k), inner))});
    for (const auto& [k, shape] : bucket.child_shapes) {
      gather(bucket, k, above[b]);
      above[bucket.operands[k].index] = tables.join(shape, numbers_).table;
    }
    gather(bucket, -1, above[b]);
    const int own = tables.add_shape(shape_of(bucket, {bucket.variable}, -1, inner));
    const auto table = tables[tables.join(own, numbers_).table];
    for (std::size_t i = 0; i < table.size(); ++i) {
      Cost& marginal = marginals[network_->first(bucket.variable) + i];
      const Cost found =
          is_feasible(least_) && is_feasible(table[i]) ? table[i] + least_ : infeasible;
      marginal = std::max(marginal, found);
    }
  }
  return marginals;
}

}  // namespace tessera::detail
