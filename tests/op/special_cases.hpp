// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Operators that reduce over processes, on the special values of each element type: each process
/// compares what it holds with plain rules, bit for bit, and all of them with each other. Each row
/// is spread over all processes, a column each.
///
///     std::string wrong = support::special_operators_wrong(mesh);      // on MeshShape{p}
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/special_values.hpp"

namespace support {

template <class T> class SpecialOperators {
 public:
  explicit SpecialOperators(std::shared_ptr<MeshCore> mesh)
      : mesh_(std::move(mesh)), columns_(mesh_->shape()[0]) {
    use_element<T>();
  }

  std::string wrong() {
    for (int k = 1; k < reductions && wrong_.empty(); ++k) {
      kind_ = static_cast<Reduction>(k);
      if (!defined(kind_, dtype_of<T>)) continue;
      for (const std::vector<T>& set : special_sets<T>(kind_)) {
        take(set);
        if constexpr (IntegerElement<T>) {
          if (kind_ == Reduction::sum) sums<Sum>();
          if (kind_ == Reduction::product) sums<Product>();
        } else {
          if (kind_ == Reduction::sum) reductions_of<Sum>(expected_);
          if (kind_ == Reduction::product) reductions_of<Product>(expected_);
        }
        if (kind_ == Reduction::max) ordered<Max>();
        if (kind_ == Reduction::min) ordered<Min>();
        if constexpr (std::is_same_v<T, bool>) {
          if (kind_ == Reduction::any) reductions_of<Any>(expected_);
          if (kind_ == Reduction::all) reductions_of<All>(expected_);
        }
      }
    }
    return wrong_;
  }

 private:
  static Sharding split(int dims, int dim) {
    Sharding s = Sharding::replicated(dims);
    s[dim].push_back(0);
    return s;
  }
  void take(const std::vector<T>& set) {
    rows_ = pairs_of(set) * columns_;
    const auto cells = static_cast<std::size_t>(rows_ * columns_);
    values_ = std::make_unique<T[]>(cells);
    const auto turned = std::make_unique<T[]>(cells);
    expected_.clear();
    for (Index i = 0; i < rows_; ++i) {
      std::vector<T> row;
      for (Index j = 0; j < columns_; ++j) {
        row.push_back(special_element<T>(set, i, static_cast<int>(j), static_cast<int>(columns_)));
        values_[static_cast<std::size_t>(i * columns_ + j)] = row.back();
        turned[static_cast<std::size_t>(j * rows_ + i)] = row.back();
      }
      T whole = plain_reduce<T>(kind_, row);
      // A sum within a block begins at +0.
      if constexpr (RealElement<T>)
        if (kind_ == Reduction::sum) whole = plain_join<T>(kind_, T(0.0f), whole);
      expected_.push_back(whole);
    }
    x_ = from_host<T>(mesh_, {rows_, columns_}, split(2, 1), span(values_));
    turned_ = from_host<T>(mesh_, {columns_, rows_}, split(2, 0), span(turned));
  }
  std::span<const T> span(const std::unique_ptr<T[]>& values) const {
    return {values.get(), static_cast<std::size_t>(rows_ * columns_)};
  }
  T value(Index i, Index j) const { return values_[static_cast<std::size_t>(i * columns_ + j)]; }

  /// Finished, scattered, and left open and finished later.
  template <class Kind, class V> void reductions_of(const std::vector<V>& expected) {
    const Sharding whole = Sharding::replicated(1);
    check("reduce", reduce<Kind>("ij->i", x_, whole), expected);
    check("reduce, scattered", reduce<Kind>("ij->i", x_, split(1, 0)), expected);
    const DynamicTensor open =
        reduce<Kind>("ij->i", x_, whole.with_partial(AxisSet{0}, Kind::reduction));
    check("reshard from Unreduced", reshard(open, whole), expected);
    check("reshard from Unreduced, scattered", reshard(open, split(1, 0)), expected);
  }
  /// Integers are summed in 64 bits, or in their own type, which wraps.
  template <class Kind> void sums() {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    std::vector<Wide> wide;
    for (Index i = 0; i < rows_; ++i) {
      std::vector<Wide> row;
      for (Index j = 0; j < columns_; ++j) row.push_back(value(i, j));
      wide.push_back(plain_reduce<Wide>(kind_, row));
    }
    reductions_of<Kind>(wide);
    reductions_of<As<Kind, T>>(expected_);
  }
  template <class Kind> void ordered() {
    reductions_of<Kind>(expected_);
    constexpr bool greatest = Kind::reduction == Reduction::max;
    std::vector<std::int64_t> places;
    for (Index i = 0; i < rows_; ++i) {
      const T best = expected_[static_cast<std::size_t>(i)];
      Index j = 0;
      while (!(value(i, j) == best || (best != best && value(i, j) != value(i, j)))) ++j;
      places.push_back(j);
    }
    check(greatest ? "argmax" : "argmin", greatest ? argmax("ij->i", x_) : argmin("ij->i", x_),
          places);
    const DynamicTensor places_of = zeros<std::int64_t>(mesh_, {columns_}, split(1, 0));
    check("scatter",
          reshard(scatter<Kind>("b,bm->vm", {places_of, turned_}, {1}, {}, Sharding::replicated(2)),
                  Sharding::replicated(2)),
          expected_);
    if constexpr (RealElement<T>)
      if (greatest) logarithms();
  }
  void logarithms() {
    std::vector<T> sizes, sums;
    for (Index i = 0; i < rows_; ++i) {
      T size = T(0.0f);
      double most = -std::numeric_limits<double>::infinity(), sum = 0;
      bool nan = false;
      for (Index j = 0; j < columns_; ++j) {
        const auto x = static_cast<double>(value(i, j));
        size = plain_join<T>(Reduction::max, size, static_cast<T>(std::fabs(x)));
        most = std::max(most, x);
        nan = nan || std::isnan(x);
      }
      for (Index j = 0; j < columns_; ++j)
        sum += std::isinf(most) ? static_cast<double>(value(i, j)) == most
                                : std::exp(static_cast<double>(value(i, j)) - most);
      sizes.push_back(size);
      sums.push_back(nan ? std::numeric_limits<T>::quiet_NaN()
                         : static_cast<T>(most + std::log(sum)));
    }
    check("infinite norm", norm<infinite_norm, T>("ij->i", x_), sizes);
    check("logsumexp", logsumexp<T>("ij->i", x_), sums, 8);
  }

  /// Compares this process's block with its part of the whole, and, where it is replicated, with
  /// what the others hold. `units`: how many units of the last place it may be off.
  template <class V>
  void check(const std::string& what, const DynamicTensor& y, const std::vector<V>& whole,
             double units = 0) {
    tessera::detail::fence();
    const auto held = std::make_unique<V[]>(static_cast<std::size_t>(y.local_size()));
    tessera::detail::copy_to_host(held.get(), y.core().data(),
                                  y.local_size() * static_cast<Index>(sizeof(V)));
    const bool replicated = y.sharding() == Sharding::replicated(y.extents().size());
    const bool any_nan =
        columns_ == 1 || kind_ == Reduction::sum || kind_ == Reduction::product || units > 0;
    const Index first = replicated ? 0 : y.box()[0].lo;
    std::uint64_t digest = 0;
    for (Index i = 0; i < y.local_size(); ++i) {
      const V got = held[static_cast<std::size_t>(i)];
      const V wanted = whole[static_cast<std::size_t>(first + i)];
      std::uint64_t bits = 0;
      if (got == got) std::memcpy(&bits, &got, sizeof(V));
      if (replicated) digest = (digest ^ bits) * 1099511628211u + 1;
      bool same = same_bits<V>(got, wanted, any_nan);
      if constexpr (RealElement<V>)
        if (units > 0 && !same) {
          const auto a = static_cast<double>(got), b = static_cast<double>(wanted);
          const double eps = static_cast<double>(std::numeric_limits<V>::epsilon());
          same = std::fabs(a - b) <= units * eps * std::max(1.0, std::fabs(b));
        }
      if (same || !wrong_.empty()) continue;
      wrong_ = what + " by " + std::string(name_of(kind_)) + " of " +
               std::string(name_of(dtype_of<T>)) + " on " + std::to_string(columns_) +
               " processes, element " + std::to_string(first + i) + ": " +
               std::to_string(static_cast<double>(got)) + " in place of " +
               std::to_string(static_cast<double>(wanted));
    }
    if (replicated) mesh_->agree(digest, what, Where::here());
  }

  std::shared_ptr<MeshCore> mesh_;
  Index columns_;
  Index rows_ = 0;
  Reduction kind_ = Reduction::none;
  std::unique_ptr<T[]> values_;
  std::vector<T> expected_;
  DynamicTensor x_, turned_;
  std::string wrong_;
};

/// Runs all ordered types and truth values; returns the first thing that is wrong, or nothing.
/// Collective over the mesh, which has one axis.
inline std::string special_operators_wrong(const std::shared_ptr<MeshCore>& mesh) {
  use_element<std::int64_t>();
  std::string text;
  const auto one = [&](auto zero) {
    if (text.empty()) text = SpecialOperators<decltype(zero)>(mesh).wrong();
  };
  one(float{});
  one(double{});
  one(half{});
  one(bfloat16{});
  one(std::int8_t{});
  one(std::int16_t{});
  one(std::int32_t{});
  one(std::int64_t{});
  one(std::uint8_t{});
  one(std::uint16_t{});
  one(std::uint32_t{});
  one(std::uint64_t{});
  one(bool{});
  return text;
}

}  // namespace support
