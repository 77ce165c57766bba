// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Reduces one range of elements of several members, through a block that stays in the first cache.
///
///     reduce_sources(DType::f32, Reduction::sum, sources, members, n, to, also);
///
/// Laws: to[i] == ((source 0 op source 1) op source 2) ..., in this order on every member; `also`
/// may be one of the sources.
#include <cstddef>
#include <cstring>

#include <tessera/base/dtype.hpp>
#include <tessera/comm/detail/local_collective.hpp>

namespace tessera::detail {

/// Loops have constant lengths, since g++ 12 -O2 vectorizes no others.
template <class T, Reduction reduction>
void reduce_blocks(const std::byte* const* sources, int members, Index count, std::byte* to,
                   std::byte* also) {
  constexpr Index length = 8192 / static_cast<Index>(sizeof(T));
  alignas(64) T block[length];
  for (Index start = 0; start < count; start += length) {
    const Index n = min_of(length, count - start);
    const auto from = [&](int member) {
      return reinterpret_cast<const T*>(sources[member]) + start;
    };
    const auto bytes = static_cast<std::size_t>(n) * sizeof(T);
    if (members == 1) std::memcpy(block, from(0), bytes);
    for (int member = 1; member < members; ++member) {
      const T* first = member == 1 ? from(0) : block;
      const T* next = from(member);
      if (member == 1 && n == length)
        for (Index i = 0; i < length; ++i) block[i] = combine(reduction, first[i], next[i]);
      else if (n == length)
        for (Index i = 0; i < length; ++i) block[i] = combine(reduction, block[i], next[i]);
      else
        for (Index i = 0; i < n; ++i) block[i] = combine(reduction, first[i], next[i]);
    }
    std::memcpy(to + start * static_cast<Index>(sizeof(T)), block, bytes);
    if (also != nullptr) std::memcpy(also + start * static_cast<Index>(sizeof(T)), block, bytes);
  }
}

inline void reduce_sources(DType type, Reduction reduction, const std::byte* const* sources,
                           int members, Index count, std::byte* to, std::byte* also) {
  with_basic_type(type, [&](auto zero) {
    using T = decltype(zero);
    if (reduction == Reduction::max)
      reduce_blocks<T, Reduction::max>(sources, members, count, to, also);
    else if (reduction == Reduction::min)
      reduce_blocks<T, Reduction::min>(sources, members, count, to, also);
    else
      reduce_blocks<T, Reduction::sum>(sources, members, count, to, also);
  });
}

}  // namespace tessera::detail
