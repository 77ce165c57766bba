// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Which tables an elimination sums up for each variable, in its order: a variable's bucket has its
/// own costs, its pairs with later variables, and the messages of earlier buckets of which it is
/// the next variable. What is computed with them stands in detail/elimination.hpp.
///
///     const detail::Buckets buckets(network, order, bound, {});
///     buckets.exact();
///
/// Laws: the structure depends on the network's variables and pairs, not on costs; no bucket but
/// one of a single table has more than `bound` entries.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

#include <tessera/solve/cost_network.hpp>
#include <tessera/solve/detail/tables.hpp>

namespace tessera::detail {

class Buckets {
 public:
  /// `late` is empty, or says which variables many parts of the network share; they are the last
  /// of the order. What a message costs at the least for each of their values is taken out of it,
  /// so that messages of units that repeat become equal where their differences do, after a few
  /// units.
  Buckets(const CostNetwork& network, const std::vector<int>& order, std::size_t bound,
          std::vector<char> late = {});

  bool exact() const { return split_ == 0; }
  /// The variables whose buckets were split.
  int split() const { return split_; }
  /// Entries of all buckets together: what an elimination costs where nothing is shared.
  double entries() const { return entries_; }

 protected:
  enum class Kind { unary, pair, message, least, shift };
  struct Operand {
    Kind kind;
    int index;                 // of the variable, the pair, or the bucket that a message comes from
    std::vector<int> scope;    // of the table, outermost first
    std::vector<int> strides;  // for the bucket's variables
  };
  struct Bucket {
    int variable;
    std::vector<int> variables;  // the latest to be eliminated first, its own last
    std::vector<Operand> operands;
    bool part = false;  // of a bucket that was split
    int parent = -1;    // the bucket that its message is for
    int shape = -1, own_shape = -1;
    JoinShape least, rest;  // how a message's least costs are taken out of it, if they are
    std::vector<std::pair<int, int>>
        child_shapes;  // for each message among the operands: the operand, the shape
  };

  std::vector<int> strides_in(const std::vector<int>& scope,
                              const std::vector<int>& variables) const;
  double entries_of(const Bucket& bucket) const;

  const CostNetwork* network_;
  std::vector<Bucket> buckets_;

 private:
  std::vector<std::vector<Operand>> split_operands(std::vector<Operand> operands,
                                                   std::size_t bound) const;
  void add_bucket(int variable, std::vector<Operand> operands, bool part);
  bool is_late(int variable) const { return !late_.empty() && late_[variable] != 0; }

  std::vector<char> late_;
  std::vector<int> place_;                     // of each variable in the order
  std::vector<std::vector<Operand>> waiting_;  // for each variable, while buckets are made
  int split_ = 0;
  double entries_ = 0;
};

inline std::vector<int> Buckets::strides_in(const std::vector<int>& scope,
                                            const std::vector<int>& variables) const {
  std::vector<int> strides(variables.size(), 0);
  int stride = 1;
  for (std::size_t d = scope.size(); d-- > 0;) {
    strides[std::ranges::find(variables, scope[d]) - variables.begin()] = stride;
    stride *= network_->values(scope[d]);
  }
  return strides;
}

/// Puts each operand into the first part that stays within the bound, the largest operands first.
inline std::vector<std::vector<Buckets::Operand>> Buckets::split_operands(
    std::vector<Operand> operands, std::size_t bound) const {
  std::ranges::stable_sort(operands, std::greater{},
                           [](const Operand& o) { return o.scope.size(); });
  std::vector<std::vector<Operand>> parts;
  std::vector<std::vector<int>> scopes;
  for (Operand& operand : operands) {
    std::size_t p = 0;
    for (; p < parts.size(); ++p) {
      double size = 1;
      for (const int v : scopes[p]) size *= network_->values(v);
      for (const int v : operand.scope)
        if (std::ranges::find(scopes[p], v) == scopes[p].end()) size *= network_->values(v);
      if (size <= static_cast<double>(bound)) break;
    }
    if (p == parts.size()) {
      parts.emplace_back();
      scopes.emplace_back();
    }
    for (const int v : operand.scope)
      if (std::ranges::find(scopes[p], v) == scopes[p].end()) scopes[p].push_back(v);
    parts[p].push_back(std::move(operand));
  }
  return parts;
}

inline double Buckets::entries_of(const Bucket& bucket) const {
  double size = static_cast<double>(bucket.operands.size());
  for (const int v : bucket.variables) size *= network_->values(v);
  return size;
}

inline void Buckets::add_bucket(int variable, std::vector<Operand> operands, bool part) {
  Bucket bucket;
  bucket.variable = variable;
  bucket.operands = std::move(operands);
  bucket.part = part;
  if (part)
    bucket.operands.push_back({Kind::shift, static_cast<int>(buckets_.size()), {variable}, {}});
  for (const Operand& operand : bucket.operands)
    bucket.variables.insert(bucket.variables.end(), operand.scope.begin(), operand.scope.end());
  std::ranges::sort(bucket.variables, std::greater{}, [&](int v) { return place_[v]; });
  bucket.variables.erase(std::unique(bucket.variables.begin(), bucket.variables.end()),
                         bucket.variables.end());
  for (Operand& operand : bucket.operands)
    operand.strides = strides_in(operand.scope, bucket.variables);
  std::ranges::stable_sort(bucket.operands, {},
                           [](const Operand& o) { return std::pair(o.kind, o.strides); });
  entries_ += entries_of(bucket);
  if (bucket.variables.size() > 1) {
    const std::vector<int> scope(bucket.variables.begin(), bucket.variables.end() - 1);
    waiting_[scope.back()].push_back({Kind::message, static_cast<int>(buckets_.size()), scope, {}});
    std::vector<int> shared;
    std::ranges::copy_if(scope, std::back_inserter(shared), [&](int v) { return is_late(v); });
    if (!shared.empty() && shared.size() < scope.size()) {
      const auto strides = [&](const std::vector<int>& of) { return strides_in(of, scope); };
      JoinShape shape{.sizes = {}, .operands = {strides(scope)}, .result = strides(shared)};
      for (const int v : scope) shape.sizes.push_back(network_->values(v));
      bucket.least = shape;
      shape.operands.push_back(shape.result);
      shape.result = strides(scope);
      bucket.rest = shape;
      waiting_[shared.back()].push_back(
          {Kind::least, static_cast<int>(buckets_.size()), shared, {}});
    }
  }
  for (const Operand& operand : bucket.operands)
    if (operand.kind == Kind::message)
      buckets_[operand.index].parent = static_cast<int>(buckets_.size());
  buckets_.push_back(std::move(bucket));
}

inline Buckets::Buckets(const CostNetwork& network, const std::vector<int>& order,
                        std::size_t bound, std::vector<char> late)
    : network_(&network), late_(std::move(late)), place_(order.size()), waiting_(order.size()) {
  for (std::size_t i = 0; i < order.size(); ++i) place_[order[i]] = static_cast<int>(i);
  for (int v = 0; v < network.variables(); ++v) waiting_[v].push_back({Kind::unary, v, {v}, {}});
  for (std::size_t p = 0; p < network.pairs().size(); ++p) {
    const auto& pair = network.pairs()[p];
    waiting_[place_[pair.a] < place_[pair.b] ? pair.a : pair.b].push_back(
        {Kind::pair, static_cast<int>(p), {pair.a, pair.b}, {}});
  }
  for (const int v : order) {
    auto parts = split_operands(std::move(waiting_[v]), bound);
    if (parts.size() > 1) ++split_;
    for (auto& part : parts) add_bucket(v, std::move(part), parts.size() > 1);
  }
}

}  // namespace tessera::detail
