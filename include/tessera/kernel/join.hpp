// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Joins ranges of elements in host memory, through a block that stays in the first cache.
/// Transports use it for the partial values of several processes.
///
///     detail::join(DType::f32, Reduction::sum, from, members, n, to, nullptr);
///
/// Laws: to[i] == ((from 0 op from 1) op from 2) ..., in this order on every member; half types are
/// rounded once, at the end; maxima and minima have the same bits in any order, and a NaN result
/// has the bits of the quiet NaN; `to` and `also` may be one of the sources.
#include <algorithm>
#include <limits>

#include <tessera/base/reduction.hpp>
#include <tessera/kernel/copy/stream_copy.hpp>
#include <tessera/kernel/detail/reduce_op.hpp>
#include <tessera/kernel/elements.hpp>

namespace tessera::detail {

template <class C, class T> void put_block(const C* block, Index n, T* to) {
  if constexpr (std::is_same_v<C, T>)
    std::copy_n(block, n, to);
  else
    for (Index i = 0; i < n; ++i) to[i] = static_cast<T>(block[i]);
}

/// Loops have constant lengths, since g++ 12 -O2 vectorizes no others.
template <Reduction R, class T>
void join_blocks(const void* const* from, int members, Index count, void* to, void* also) {
  using C = ComputeType<T>;
  using F = Fold<R, C>;
  constexpr Index length = 8192 / static_cast<Index>(sizeof(C));
  alignas(64) C block[length];
  for (Index start = 0; start < count; start += length) {
    const Index n = min_of(length, count - start);
    const auto source = [&](int member) { return static_cast<const T*>(from[member]) + start; };
    const T* first = source(0);
    if (members == 1)
      for (Index i = 0; i < n; ++i) block[i] = static_cast<C>(first[i]);
    for (int member = 1; member < members; ++member) {
      const T* next = source(member);
      if (member == 1 && n == length)
        for (Index i = 0; i < length; ++i)
          block[i] = F::join(static_cast<C>(first[i]), static_cast<C>(next[i]));
      else if (member == 1)
        for (Index i = 0; i < n; ++i)
          block[i] = F::join(static_cast<C>(first[i]), static_cast<C>(next[i]));
      else if (n == length)
        for (Index i = 0; i < length; ++i) block[i] = F::join(block[i], static_cast<C>(next[i]));
      else
        for (Index i = 0; i < n; ++i) block[i] = F::join(block[i], static_cast<C>(next[i]));
    }
    if constexpr (std::is_floating_point_v<C> && (R == Reduction::max || R == Reduction::min))
      for (Index i = 0; i < n; ++i)
        block[i] = block[i] == block[i] ? block[i] : std::numeric_limits<C>::quiet_NaN();
    put_block(block, n, static_cast<T*>(to) + start);
    if (also != nullptr)
      stream_bytes(static_cast<T*>(also) + start, static_cast<T*>(to) + start,
                   n * static_cast<Index>(sizeof(T)));
  }
}

template <class T>
void join_elements(Reduction reduction, const void* const* from, int members, Index n, void* to,
                   void* also) {
  with_reduction<T>(reduction, [&](auto r) {
    join_blocks<decltype(r)::value, Stored<T>>(from, members, n, to, also);
  });
}

struct JoinKernels {
  void (*run)(Reduction reduction, const void* const* from, int members, Index n, void* to,
              void* also);
  template <class T> static constexpr bool has = true;
  template <class T> static constexpr JoinKernels of() { return {&join_elements<T>}; }
};

/// Joins n elements of each of `members` ranges into `to`, and into `also` unless it is null: other
/// processes read there.
inline void join(DType type, Reduction reduction, const void* const* from, int members, Index n,
                 void* to, void* also = nullptr) {
  if (type == DType::i64 && reduction == Reduction::min)  // meshes agree by it
    return detail::join_blocks<Reduction::min, std::int64_t>(from, members, n, to, also);
  if (type == DType::u64 && reduction == Reduction::sum)  // and add the facts of files
    return detail::join_blocks<Reduction::sum, std::uint64_t>(from, members, n, to, also);
  kernels_of<JoinKernels>(type).run(reduction, from, members, n, to, also);
}
}  // namespace tessera::detail
