// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Cost tables that are known by their contents, and the one operation on them: a sum of tables,
/// minimized over some of its dimensions. An operation on tables that were combined so before is
/// not computed again, so that what repeats in a network, a layer in a chain of layers, costs as
/// much as one.
///
///     detail::Tables tables;
///     const int shape = tables.add_shape({{2, 3}, {{3, 1}, {0, 1}}, {1, 0}});   // min over the second of a + b
///     const int a = tables.add(std::vector<Cost>{5, 7, 6, 3, 4, 9}), b = tables.add(std::vector<Cost>{0, 1, 0});
///     const auto [table, offset] = tables.join(shape, std::vector<int>{a, b});   // {2, 0} and 3
///
/// Laws: equal tables have equal numbers; a joined table's least entry is 0, and what was taken
/// from all its entries is the offset, or `infeasible` where no entry is feasible.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tessera/base/digest.hpp>
#include <tessera/solve/cost.hpp>

namespace tessera::detail {

/// How tables lie in the space of several variables, outermost first, and how the result does: a
/// stride for each variable, 0 where the table does not have it. Variables that the result lacks
/// are minimized over.
struct JoinShape {
  std::vector<int> sizes;
  std::vector<std::vector<int>> operands;
  std::vector<int> result;
};

class Tables {
 public:
  struct Joined {
    int table;
    Cost offset;
  };

  int add(std::span<const Cost> costs) {
    std::uint64_t hash = costs.size();
    for (const Cost cost : costs) hash = stirred(hash, static_cast<std::uint64_t>(cost));
    return find_or_add<Cost>(tables_, table_heads_, costs, hash);
  }
  std::span<const Cost> operator[](int table) const { return tables_.at(table); }

  /// Equal shapes have equal numbers.
  int add_shape(JoinShape shape) {
    std::vector<int> words{static_cast<int>(shape.sizes.size())};
    words.insert(words.end(), shape.sizes.begin(), shape.sizes.end());
    for (const auto& strides : shape.operands)
      words.insert(words.end(), strides.begin(), strides.end());
    words.insert(words.end(), shape.result.begin(), shape.result.end());
    std::uint64_t hash = words.size();
    for (const int word : words) hash = stirred(hash, static_cast<std::uint64_t>(word));
    const int number = find_or_add<int>(shape_words_, shape_heads_, words, hash);
    if (number == static_cast<int>(shapes_.size())) shapes_.push_back(std::move(shape));
    return number;
  }
  const JoinShape& shape(int number) const { return shapes_[number]; }

  /// Time: the product of the sizes times the number of operands, or that of looking it up.
  Joined join(int shape, std::span<const int> operands) {
    key_.assign(1, shape);
    key_.insert(key_.end(), operands.begin(), operands.end());
    std::uint64_t hash = 0;
    for (const int word : key_) hash = stirred(hash, static_cast<std::uint64_t>(word));
    const int number = find_or_add<int>(join_keys_, join_heads_, key_, hash);
    if (number == static_cast<int>(joined_.size()))
      joined_.push_back(compute(shapes_[shape], operands));
    return joined_[number];
  }

  /// Entries of tables that were read, over all operations that were computed: a measure of work
  /// that no clock has.
  std::uint64_t operations() const { return operations_; }
  std::size_t computed_joins() const { return joined_.size(); }

  /// Forgets the tables and what was joined, and keeps the shapes.
  void clear() {
    tables_.clear();
    join_keys_.clear();
    table_heads_.clear();
    join_heads_.clear();
    joined_.clear();
  }
  /// Entries of all tables that are kept.
  std::size_t entries() const { return tables_.items.size(); }

 private:
  template <class T> struct Lists {
    std::vector<T> items;
    std::vector<std::size_t> first{0};
    std::vector<int> next;  // the one before with the same hash, or -1
    std::span<const T> at(int i) const {
      return {items.data() + first[i], first[i + 1] - first[i]};
    }
    void clear() {
      items.clear();
      first.assign(1, 0);
      next.clear();
    }
  };
  using Heads = std::unordered_map<std::uint64_t, int>;

  template <class T>
  static int find_or_add(Lists<T>& lists, Heads& heads, std::span<const T> words,
                         std::uint64_t hash) {
    const int added = static_cast<int>(lists.next.size());
    const auto [place, is_new] = heads.try_emplace(hash, added);
    if (!is_new)
      for (int i = place->second; i >= 0; i = lists.next[i])
        if (std::ranges::equal(lists.at(i), words)) return i;
    lists.next.push_back(is_new ? -1 : place->second);
    place->second = added;
    lists.items.insert(lists.items.end(), words.begin(), words.end());
    lists.first.push_back(lists.items.size());
    return added;
  }

  Joined compute(const JoinShape& shape, std::span<const int> operands) {
    const int rank = static_cast<int>(shape.sizes.size()), inner = rank - 1,
              count = static_cast<int>(operands.size());
    std::size_t size = 1, result_size = 1;
    for (int d = 0; d < rank; ++d) {
      size *= static_cast<std::size_t>(shape.sizes[d]);
      if (shape.result[d] != 0) result_size *= static_cast<std::size_t>(shape.sizes[d]);
    }
    operations_ += size * static_cast<std::uint64_t>(count);
    result_.assign(result_size, infeasible);
    at_.resize(count);
    for (int k = 0; k < count; ++k) at_[k] = tables_.at(operands[k]).data();
    index_.assign(rank, 0);
    const int length = shape.sizes[inner];
    row_.resize(length);
    Cost* out = result_.data();
    for (;;) {
      add_row(shape, length, inner);
      if (shape.result[inner] == 0) {
        Cost least = *out;
        for (int i = 0; i < length; ++i) least = std::min(least, row_[i]);
        *out = least;
      } else {
        for (int i = 0; i < length; ++i)
          out[i * shape.result[inner]] = std::min(out[i * shape.result[inner]], row_[i]);
      }
      int d = inner - 1;
      for (; d >= 0; --d) {
        const int steps = ++index_[d] < shape.sizes[d] ? 1 : 1 - shape.sizes[d];
        for (int k = 0; k < count; ++k) at_[k] += steps * shape.operands[k][d];
        out += steps * shape.result[d];
        if (steps == 1) break;
        index_[d] = 0;
      }
      if (d < 0) break;
    }
    Cost least = infeasible;
    for (const Cost cost : result_) least = std::min(least, cost);
    if (!is_feasible(least)) {
      std::ranges::fill(result_, infeasible);
      return {add(result_), infeasible};
    }
    for (Cost& cost : result_) cost = is_feasible(cost) ? cost - least : infeasible;
    return {add(result_), least};
  }
  void add_row(const JoinShape& shape, int length, int inner) {
    for (std::size_t k = 0; k < at_.size(); ++k) {
      const int stride = shape.operands[k][inner];
      const Cost* const from = at_[k];
      Cost* const row = row_.data();
      if (k == 0)
        for (int i = 0; i < length; ++i) row[i] = from[i * stride];
      else if (stride == 0)
        for (int i = 0; i < length; ++i) row[i] = add_costs(row[i], *from);
      else if (stride == 1)
        for (int i = 0; i < length; ++i) row[i] = add_costs(row[i], from[i]);
      else
        for (int i = 0; i < length; ++i) row[i] = add_costs(row[i], from[i * stride]);
    }
  }

  Lists<Cost> tables_;
  Lists<int> shape_words_, join_keys_;
  Heads table_heads_, shape_heads_, join_heads_;
  std::vector<JoinShape> shapes_;
  std::vector<Joined> joined_;
  std::uint64_t operations_ = 0;
  std::vector<Cost> result_, row_;
  std::vector<const Cost*> at_;
  std::vector<int> index_, key_;
};

}  // namespace tessera::detail
