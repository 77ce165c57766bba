// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Copies between host memory and the memory of the kernels, on this thread's lane.
///
///     detail::copy_to_host(values, block, bytes);
///
/// Laws: when copy_to_host and copy_from_host return, the host may read what was written, and write
/// what was read; after start_copy_… when detail::fence() returns.
#include <cstddef>

#include <Kokkos_Core.hpp>

#include <tessera/base/math.hpp>
#include <tessera/kernel/fence.hpp>
#include <tessera/kernel/lane.hpp>

namespace tessera::detail {

inline void start_copy_to_host(void* host, const void* data, Index bytes) {
  using Host = Kokkos::View<char*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  using Device = Kokkos::View<const char*, KernelMemory, Kokkos::MemoryUnmanaged>;
  const auto n = static_cast<std::size_t>(bytes);
  if (n == 0) return;
  Kokkos::deep_copy(lane().space(), Host(static_cast<char*>(host), n),
                    Device(static_cast<const char*>(data), n));
}
inline void start_copy_from_host(void* data, const void* host, Index bytes) {
  using Host = Kokkos::View<const char*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  using Device = Kokkos::View<char*, KernelMemory, Kokkos::MemoryUnmanaged>;
  const auto n = static_cast<std::size_t>(bytes);
  if (n == 0) return;
  Kokkos::deep_copy(lane().space(), Device(static_cast<char*>(data), n),
                    Host(static_cast<const char*>(host), n));
}

inline void copy_to_host(void* host, const void* data, Index bytes) {
  start_copy_to_host(host, data, bytes);
  fence();  // the host reads it
}
inline void copy_from_host(void* data, const void* host, Index bytes) {
  start_copy_from_host(data, host, bytes);
  fence();  // the host's memory is the caller's
}

}  // namespace tessera::detail
