// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Which library makes a matrix product on the host, by element type and class of shape. A class is
/// a sample, a product that is measured (product_timing.hpp); a product belongs to the sample whose
/// extents are nearest, as logarithms.
///
///     detail::ProductTable table;              // the fixed rule for all (gemm.hpp, fixed_way)
///     table.set(0, measured);                  // floats
///     detail::ProductWay way = table.way(0, 64, 64, 64, false);
///
/// Laws: a sample belongs to its own class; read_products accepts what product_text wrote for the
/// same key, and nothing else.
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <tessera/base/digest.hpp>
#include <tessera/base/dtype.hpp>
#include <tessera/base/math.hpp>

namespace tessera::detail {

/// A library, and how its products come to several threads: with threads of its own, or as pieces,
/// each on one of the host's threads (as BLIS's always). `fixed`: as the fixed rule says.
enum class ProductWay : std::uint8_t { fixed, blas, onednn, blis, blas_pieces, onednn_pieces };
inline constexpr std::string_view product_way_names[] = {"fixed", "blas",        "onednn",
                                                         "blis",  "blas_pieces", "onednn_pieces"};
inline constexpr int product_ways = 6;

/// A product of m x k by k x n, or many of them side by side in memory: so many (for elements of
/// four bytes) that they come from beyond the second cache.
struct ProductSample {
  Index m, n, k;
  Index batches = 1;
  constexpr bool many() const { return batches > 1; }
};
inline constexpr ProductSample product_samples[] = {
    {8, 8, 8},           {32, 32, 32},       {64, 64, 64},     {128, 128, 128}, {512, 512, 8},
    {1024, 1024, 8},     {4, 512, 512},      {512, 4, 512},    {64, 64, 2048},  {8, 8, 8, 2048},
    {32, 32, 32, 512},   {64, 64, 64, 64},   {256, 256, 256},  {64, 1024, 256}, {1024, 64, 256},
    {128, 128, 128, 16}, {16, 16, 16},       {16, 512, 256},   {512, 16, 256},  {8, 8, 2048},
    {256, 256, 32},      {16, 16, 16, 1024}, {256, 256, 64, 8}};
inline constexpr int product_classes =
    static_cast<int>(sizeof product_samples / sizeof product_samples[0]);

/// The ways of all classes, for one element type.
struct ProductRow {
  ProductWay ways[product_classes] = {};
  constexpr ProductWay& operator[](int i) { return ways[i]; }
  constexpr ProductWay operator[](int i) const { return ways[i]; }
  bool operator==(const ProductRow&) const = default;
};

/// The element types that libraries multiply; half types are multiplied as floats.
inline constexpr DType product_types[] = {DType::f32, DType::f64, DType::c64, DType::c128};
inline constexpr int product_type_count = 4;

/// An extent as a logarithm: 0 below 8, 1 below 16, … 6 from 256 on, 7 from 1024 on.
constexpr int product_level(Index extent) {
  const auto bits = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(extent)));
  return bits > 10 ? 7 : bits > 9 ? 6 : bits > 3 ? bits - 3 : 0;
}

/// Returns the class of products with these logarithms, of the first `classes`; -1 without any.
constexpr int product_class(int m, int n, int k, bool many, int classes = product_classes) {
  const auto square = [](int a) { return a * a; };
  int best = -1, least = 0;
  for (int i = 0; i < classes; ++i) {
    const ProductSample& sample = product_samples[i];
    if (sample.many() != many) continue;
    const int distance = square(m - product_level(sample.m)) + square(n - product_level(sample.n)) +
                         square(k - product_level(sample.k));
    if (best >= 0 && distance >= least) continue;
    best = i;
    least = distance;
  }
  return best;
}

/// Gives the classes from `measured` on the way of the nearest one before.
constexpr void follow_nearest(ProductRow& row, int measured) {
  for (int i = measured; i < product_classes; ++i) {
    const ProductSample& s = product_samples[i];
    const int nearest = product_class(product_level(s.m), product_level(s.n), product_level(s.k),
                                      s.many(), measured);
    row[i] = nearest < 0 ? ProductWay::fixed : row[nearest];
  }
}

/// Whether products of a batch are many: enough for all threads, whose caches do not keep them.
constexpr bool many_products(Index batches, Index threads) {
  return batches >= max_of(Index{4}, threads);
}

class ProductTable {
 public:
  ProductTable() = default;
  /// One way for all.
  explicit ProductTable(ProductWay way) {
    ProductRow row;
    for (ProductWay& each : row.ways) each = way;
    for (int type = 0; type < product_type_count; ++type) {
      rows_[type] = row;
      for (ProductWay& each : ways_[type]) each = way;
    }
  }
  /// Sets the ways of product_types[type].
  void set(int type, const ProductRow& row) {
    rows_[type] = row;
    for (int i = 0; i < places; ++i)
      ways_[type][i] = row[product_class(i >> 6 & 7, i >> 3 & 7, i & 7, i >= places / 2)];
  }
  const ProductRow& row(int type) const { return rows_[type]; }
  ProductWay way(int type, Index m, Index n, Index k, bool many) const {
    return ways_[type][(many ? places / 2 : 0) + product_level(m) * 64 + product_level(n) * 8 +
                       product_level(k)];
  }
  bool operator==(const ProductTable&) const = default;

 private:
  static constexpr int places = 1024;
  ProductRow rows_[product_type_count];
  ProductWay ways_[product_type_count][places] = {};
};

/// Returns "many 8 x 8 x 8".
inline std::string product_class_text(const ProductSample& sample) {
  return (sample.many() ? "many " : "") + std::to_string(sample.m) + " x " +
         std::to_string(sample.n) + " x " + std::to_string(sample.k);
}
constexpr std::string_view name_of(ProductWay way) {
  return product_way_names[static_cast<std::size_t>(way)];
}

/// Returns a row as a file: `key`, whole lines, says where and of what it was measured.
inline std::string product_text(std::string_view key, const ProductRow& row) {
  std::string text = "tessera products 1\n";
  text += key;
  for (int i = 0; i < product_classes; ++i) {
    text += product_class_text(product_samples[i]) + ": ";
    text += name_of(row[i]);
    text += '\n';
  }
  Digest digest;
  add_to(digest, text);
  return text + "end " + std::to_string(digest.value()) + '\n';
}

/// Reads it. Returns false where it is another key's, or damaged.
inline bool read_products(std::string_view text, std::string_view key, ProductRow& row) {
  ProductRow read{};
  for (int i = 0; i < product_classes; ++i) {
    const std::string name = '\n' + product_class_text(product_samples[i]) + ": ";
    const std::size_t at = text.find(name);
    if (at == text.npos) return false;
    std::string_view word = text.substr(at + name.size());
    word = word.substr(0, word.find('\n'));
    for (int way = 0; way < product_ways; ++way)
      if (word == name_of(static_cast<ProductWay>(way))) read[i] = static_cast<ProductWay>(way);
  }
  if (text != product_text(key, read)) return false;
  row = read;
  return true;
}

/// Returns a table as lines: the ways of each class for each of product_types.
inline std::string to_string(const ProductTable& table) {
  std::string text = "m x n x k";
  std::size_t line = 0;
  const auto add = [&](int column, std::string_view word) {  // each 17 wide, the first 22
    text.append(line + 5 + 17 * static_cast<std::size_t>(column) - text.size(), ' ');
    text += word;
  };
  for (int type = 0; type < product_type_count; ++type)
    add(1 + type, tessera::name_of(product_types[type]));
  for (int i = 0; i < product_classes; ++i) {
    line = text.size() + 1;
    text += '\n' + product_class_text(product_samples[i]);
    for (int type = 0; type < product_type_count; ++type)
      add(1 + type, name_of(table.row(type)[i]));
  }
  return text + '\n';
}

/// A table as integers, sixteen ways each, for processes to agree on.
struct ProductWords {
  static constexpr int each = (product_classes + 15) / 16, count = each * product_type_count;
  std::int64_t words[count] = {};
};
inline ProductWords words_of(const ProductTable& table) {
  ProductWords all;
  for (int type = 0; type < product_type_count; ++type)
    for (int i = 0; i < product_classes; ++i)
      all.words[type * ProductWords::each + i / 16] |= static_cast<std::int64_t>(table.row(type)[i])
                                                       << (3 * (i % 16));
  return all;
}
inline ProductTable table_of(const ProductWords& all) {
  ProductTable table;
  for (int type = 0; type < product_type_count; ++type) {
    ProductRow row;
    for (int i = 0; i < product_classes; ++i)
      row[i] = static_cast<ProductWay>(
          all.words[type * ProductWords::each + i / 16] >> (3 * (i % 16)) & 7);
    table.set(type, row);
  }
  return table;
}

}  // namespace tessera::detail
