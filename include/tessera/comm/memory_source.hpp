// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Where an arena's private chunks come from: the host's heap here, Kokkos's default memory space
/// in comm/device_memory.hpp.
///
///     detail::HostMemory host;  void* p = host.allocate(1 << 20);  host.release(p, 1 << 20);
///
/// Laws: every allocation is released once, with the same size.
#include <cstddef>
#include <new>

#include <tessera/base/math.hpp>
#include <tessera/comm/memory_left.hpp>

namespace tessera::detail {

class MemorySource {
 public:
  MemorySource() = default;
  MemorySource(const MemorySource&) = delete;
  MemorySource& operator=(const MemorySource&) = delete;
  virtual ~MemorySource() = default;
  /// Returns `bytes` bytes, or nullptr when there is not enough memory.
  virtual void* allocate(Index bytes) = 0;
  virtual void release(void* memory, Index bytes) noexcept = 0;
  /// Returns how many bytes are left, or max_int64 when that is not known.
  virtual Index left() const { return max_int64; }
};

/// The C++ heap.
class HostMemory final : public MemorySource {
 public:
  void* allocate(Index bytes) override {
    return ::operator new(static_cast<std::size_t>(bytes), std::nothrow);
  }
  void release(void* memory, Index) noexcept override { ::operator delete(memory); }
  Index left() const override { return memory_left(); }
};
}  // namespace tessera::detail
