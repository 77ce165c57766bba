// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Copies between host memory and the memory of the kernels.
///
///     detail::copy_to_host(values.data(), t.core().read(), bytes);
///
/// Laws: when they return, the host may read what was written, and write what was read.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include <Kokkos_Core.hpp>

#include <tessera/base/dtype.hpp>
#include <tessera/kernel/fence.hpp>
#include <tessera/kernel/lane.hpp>

namespace tessera {

/// The type of an element in a std::vector on the host: the element's own, but for bool a byte of 0
/// or 1, since a std::vector<bool> has no elements in memory.
template <Element T>
using HostElement = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

namespace detail {

/// Reads bytes as bools: any byte but 0 is true.
class Truths {
 public:
  explicit Truths(std::span<const std::uint8_t> bytes)
      : values_(std::make_unique<bool[]>(bytes.size())), size_(bytes.size()) {
    for (std::size_t i = 0; i < size_; ++i) values_[i] = bytes[i] != 0;
  }
  std::span<const bool> span() const { return {values_.get(), size_}; }

 private:
  std::unique_ptr<bool[]> values_;
  std::size_t size_;
};

inline void copy_to_host(void* host, const void* data, Index bytes) {
  using Host = Kokkos::View<char*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  using Device = Kokkos::View<const char*, KernelMemory, Kokkos::MemoryUnmanaged>;
  const auto n = static_cast<std::size_t>(bytes);
  if (n == 0) return;
  Kokkos::deep_copy(lane().space(), Host(static_cast<char*>(host), n),
                    Device(static_cast<const char*>(data), n));
  fence();  // the host reads it
}
inline void copy_from_host(void* data, const void* host, Index bytes) {
  using Host = Kokkos::View<const char*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;
  using Device = Kokkos::View<char*, KernelMemory, Kokkos::MemoryUnmanaged>;
  const auto n = static_cast<std::size_t>(bytes);
  if (n == 0) return;
  Kokkos::deep_copy(lane().space(), Device(static_cast<char*>(data), n),
                    Host(static_cast<const char*>(host), n));
  fence();  // the host's memory is the caller's
}

}  // namespace detail
}  // namespace tessera
