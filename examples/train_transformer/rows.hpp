// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Rows of text: characters, and the one that comes after each.
///
///     Rows rows = random_rows(text.training(), 16, 128, seed, step);     // ids and next are (16, 128)
///     Rows held = rows_from(text.held_out(), {0, 64, 128}, 128);
///
/// Laws: the same text, seed and step give the same rows.
#include <cstdint>
#include <vector>

#include "../support/text.hpp"

namespace train_transformer {

using tessera::Index;

struct Rows {
  std::vector<std::int32_t> ids, next;
  Index count = 0;
};

/// Returns the rows of `length` characters that begin at these places.
inline Rows rows_from(const std::vector<std::int32_t>& text, const std::vector<Index>& places,
                      Index length) {
  Rows rows;
  rows.count = static_cast<Index>(places.size());
  for (const Index place : places) {
    const auto begin = text.begin() + place;
    rows.ids.insert(rows.ids.end(), begin, begin + length);
    rows.next.insert(rows.next.end(), begin + 1, begin + length + 1);
  }
  return rows;
}

/// Returns `count` rows at places drawn for this seed and step.
inline Rows random_rows(const std::vector<std::int32_t>& text, Index count, Index length,
                        std::uint64_t seed, Index step) {
  const auto places = static_cast<std::uint64_t>(text.size()) - static_cast<std::uint64_t>(length);
  std::vector<Index> begins;
  for (Index i = 0; i < count; ++i)
    begins.push_back(static_cast<Index>(
        support::mixed(support::mixed(seed) ^ static_cast<std::uint64_t>(step * count + i)) %
        places));
  return rows_from(text, begins, length);
}

}  // namespace train_transformer
