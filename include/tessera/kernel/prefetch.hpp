// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Requests the cache lines that are about to be read or written, where another core holds them, or
/// where rows lie apart: without it the lines arrive one after the other, with it several at once.
/// It saves only microseconds, so it is done for small copies, and for rows.
///
///     const detail::StridedCopy column{.extents = {4}, .from_strides = {8}, .to_strides = {1}};
///     detail::prefetch_source(8, from, &column, 1);              // elements of 8 bytes
///     detail::prefetch_to_write(to, 32);
///
/// Laws: memory is unchanged.
#include <tessera/kernel/copy/copy_box.hpp>
#include <tessera/kernel/detail/simd.hpp>
#include <tessera/kernel/lane.hpp>

namespace tessera::detail {
/// The bytes requested ahead: more would evict each other from the first cache.
inline constexpr Index most_prefetched = Index{32} << 10;

/// Requests what copies of elements of `unit` bytes read. Does nothing on a device.
TESSERA_INLINE inline void prefetch_source(Index unit, const void* from, const StridedCopy* copies,
                                           int count) {
  if constexpr (!kernels_on_host) return;
  Index left = detail::most_prefetched;
  for (int c = 0; c < count; ++c) {
    const detail::CopyBox box = detail::collapse_copy(copies[c]);
    if (box.size == 0) continue;
    const detail::CopyDim inner = box.dim[box.rank - 1];
    const Index run = inner.from == 1 ? inner.extent : 1;
    for (Index i = 0; i < box.size; i += run) {
      Index f, t;
      box.locate(i, f, t);
      const char* const begin = static_cast<const char*>(from) + f * unit;
      const char* const end = begin + run * unit;
      for (const char* line = begin; line < end; line += 64) __builtin_prefetch(line);
      __builtin_prefetch(end - 1);
      if ((left -= round_up(run * unit, 64)) <= 0) return;
    }
  }
}

/// Requests `bytes` bytes that will be written. Does nothing on a device.
TESSERA_INLINE inline void prefetch_to_write(void* to, Index bytes) {
  if constexpr (!kernels_on_host) return;
  char* const begin = static_cast<char*>(to);
  for (Index i = 0; i < min_of(bytes, detail::most_prefetched); i += 64)
    __builtin_prefetch(begin + i, 1);
}

/// Requests a row that will be read and lies where no processor guesses it, at most its first 2
/// KiB. Always inlined: g++ 12 finds that a function that only requests has no effect, and drops
/// calls of it.
TESSERA_INLINE inline void prefetch_row(const void* row, Index bytes) {
  const char* const begin = static_cast<const char*>(row);
  for (Index i = 0; i < min_of(bytes, 2048); i += 64) __builtin_prefetch(begin + i);
}
}  // namespace tessera::detail
