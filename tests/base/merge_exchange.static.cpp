// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Merge exchange sorts: all sequences of zeros and ones, which suffices (Knuth 3, 5.3.4, theorem
// Z); blocks of which the last ones are short or empty too.
#include <tessera/base/merge_exchange.hpp>

namespace {
using namespace tessera;

/// Whether the rounds sort n values of 0 and 1, the bits of `values`.
constexpr bool sorts(int n, unsigned values) {
  for (int round = 0; round < detail::merge_exchange_rounds(n); ++round) {
    const detail::MergeRound now = detail::merge_exchange_round(n, round);
    for (int i = 0; i < n; ++i) {
      const Index partner = now.partner(i, n);
      if (partner >= 0 && now.partner(partner, n) != i) return false;
      if (partner <= i) continue;
      const unsigned low = values >> i & 1u, high = values >> partner & 1u;
      if (low > high) values ^= 1u << i | 1u << partner;
    }
  }
  return ((values + (values & (0u - values))) & ((1u << n) - 1)) == 0;  // the ones are the last
}
constexpr bool sorts_all(int n) {
  for (unsigned values = 0; values < 1u << n; ++values)
    if (!sorts(n, values)) return false;
  return true;
}
static_assert(sorts_all(1) && sorts_all(2) && sorts_all(3) && sorts_all(4) && sorts_all(5) &&
              sorts_all(6));
static_assert(sorts_all(7));
static_assert(sorts_all(8));
static_assert(sorts_all(9));

/// Sorted blocks of zeros and ones of ceil(n / parts), the last short or empty, that keep their
/// sizes: how many ones each has is all there is to know.
constexpr bool sorts_blocks(int n, int parts, unsigned choice) {
  const int block = (n + parts - 1) / parts;
  int size[8] = {}, ones[8] = {}, total = 0;
  for (int i = 0; i < parts; ++i) {
    const int begin = i * block < n ? i * block : n;
    size[i] = (begin + block < n ? begin + block : n) - begin;
    ones[i] = static_cast<int>(choice % static_cast<unsigned>(size[i] + 1));
    choice /= static_cast<unsigned>(size[i] + 1);
    total += ones[i];
  }
  for (int round = 0; round < detail::merge_exchange_rounds(parts); ++round)
    for (int i = 0; i < parts; ++i) {
      const Index partner = detail::merge_exchange_round(parts, round).partner(i, parts);
      if (partner <= i) continue;
      int& low = ones[i];
      int& high = ones[partner];
      const int both = low + high;
      high = both < size[partner] ? both : size[partner];
      low = both - high;
    }
  for (int i = parts - 1; i >= 0; --i) {
    const int wanted = total < size[i] ? total : size[i];
    if (ones[i] != wanted) return false;
    total -= wanted;
  }
  return true;
}
constexpr bool sorts_all_blocks(int parts, int most) {
  for (int n = 0; n <= most; ++n) {
    unsigned choices = 1;
    for (int i = 0; i < parts; ++i) choices *= static_cast<unsigned>((n + parts - 1) / parts + 1);
    for (unsigned choice = 0; choice < choices; ++choice)
      if (!sorts_blocks(n, parts, choice)) return false;
  }
  return true;
}
static_assert(sorts_all_blocks(2, 9) && sorts_all_blocks(3, 9));
static_assert(sorts_all_blocks(4, 12));
static_assert(sorts_all_blocks(5, 7));
static_assert(sorts_all_blocks(6, 6));

static_assert(detail::merge_exchange_rounds(8) == 6 &&
              detail::merge_exchange_round(8, 0).partner(3, 8) == 7);
static_assert(detail::merge_exchange_rounds(1) == 0 && detail::merge_exchange_rounds(1024) == 55);
}  // namespace
