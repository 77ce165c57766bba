// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Rows of text: characters, and the one that comes after each.
///
///     Rows rows = random_rows(text.training(), 16, 128, seed, step);     // ids and next are (16, 128)
///     Rows held = rows_from(text.held_out(), {0, 64, 128}, 128);
///
/// Laws: the same text, seed and step give the same rows.
#include <algorithm>
#include <cstdint>
#include <functional>
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

/// Returns rows number `begin` to `end` - 1 of rows of `length` characters.
inline Rows some_of(const Rows& rows, Index begin, Index end, Index length) {
  const auto part = [&](const std::vector<std::int32_t>& all) {
    return std::vector<std::int32_t>(all.begin() + begin * length, all.begin() + end * length);
  };
  return {part(rows.ids), part(rows.next), end - begin};
}

/// Returns the mean loss over the characters of a held-out text, each with at least half a row
/// before it, but for the first ones. `nats` returns the sum of the losses of rows, each times what
/// is counted of it: 1 or 0.
inline double held_out_mean(
    const std::vector<std::int32_t>& text, Index length, Index batch, Index most_rows,
    const std::function<double(const Rows&, const std::vector<float>&)>& nats) {
  const Index half = (length + 1) / 2;
  const Index rows = (static_cast<Index>(text.size()) - 1 - length) / half + 1;
  const Index stride = half * std::max(Index{1}, tessera::ceil_div(rows, most_rows));
  double sum = 0;
  Index count = 0;
  for (Index begin = 0; begin + length < static_cast<Index>(text.size());) {
    std::vector<Index> places;
    std::vector<float> counted;
    for (; static_cast<Index>(places.size()) < batch &&
           begin + length < static_cast<Index>(text.size());
         begin += stride) {
      places.push_back(begin);
      for (Index i = 0; i < length; ++i)
        counted.push_back(begin == 0 || i >= length - half ? 1.0F : 0.0F);
      count += begin == 0 ? length : half;
    }
    sum += nats(rows_from(text, places, length), counted);
  }
  return count > 0 ? sum / static_cast<double>(count) : 0;
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
