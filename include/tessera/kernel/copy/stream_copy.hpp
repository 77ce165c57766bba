// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Copies to memory that another processor read last and will read next. It writes past the caches:
/// else each line is first fetched back from the reader's cache, which takes several times as long
/// as the copy (benchmarks/comm/collectives.bench.cpp, column `on`).
///
///     stream_bytes(stage, data, bytes);
///     ready.store(step + 1, std::memory_order_release);     // whoever sees it sees the bytes
///
/// A large result, which is read only when its first bytes would have left the caches, goes past
/// them too (put_bytes).
///
/// Laws: it copies what memcpy copies; a release store after it publishes the copy.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <tessera/base/math.hpp>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tessera::detail {

/// Copies of fewer bytes go through the caches.
inline constexpr Index stream_least = 2048;

inline void stream_bytes(void* target, const void* source, Index bytes) {
  auto* to = static_cast<std::byte*>(target);
  const auto* from = static_cast<const std::byte*>(source);
  if (bytes <= 0) return;
#if defined(__SSE2__)
  if (bytes >= stream_least) {
    const auto head = static_cast<Index>(-reinterpret_cast<std::uintptr_t>(to) % 64);
    std::memcpy(to, from, static_cast<std::size_t>(head));
    Index i = head;
    for (; i + 64 <= bytes; i += 64)
      for (Index k = i; k < i + 64; k += 16)
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + k),
                         _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k)));
    std::memcpy(to + i, from + i, static_cast<std::size_t>(bytes - i));
    _mm_sfence();  // orders the writes past the caches
    return;
  }
#endif
  std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

/// Results of this many bytes and more are not near any more when they are read, and go past the
/// caches. Measured on two cores with 1 MiB of L2 each that gather at once: 64 MiB in 8.4 ms where
/// memmove takes 14, 16 MiB in 1.2 to 1.5 and 1.8 to 5.8, 4 MiB alike.
inline constexpr Index stream_result_least = Index{4} << 20;

/// Copies a part of a result of `whole` bytes; nothing where it lies there already.
inline void put_bytes(void* target, const void* source, Index bytes, Index whole) {
  if (bytes <= 0 || target == source) return;
  if (whole >= stream_result_least) return stream_bytes(target, source, bytes);
  std::memmove(target, source, static_cast<std::size_t>(bytes));
}

}  // namespace tessera::detail
