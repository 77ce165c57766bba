// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A memory space of Kokkos that behaves like a device's, on the host: only what runs while it is
/// open may touch it. Anything else that does ends the program with the allocation's name and the
/// stack. support/late_space.hpp has the execution space that opens it.
///
///     Kokkos::View<float*, Far> x("x", 10);
///     x.data()[0] = 1;              // ends: the host touches device memory: byte 0 of 40, "x"
///
/// Laws: all allocations lie in one range of addresses, which is accessible to a thread exactly
/// while it has an OpenFar. On processors without memory protection keys that holds for a whole
/// program: a thread that runs kernels opens the range for all.
#include <execinfo.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>

#include <Kokkos_Core.hpp>

namespace support {

/// The addresses of the pretended device.
class FarRange {
 public:
  static FarRange& one() {
    static FarRange& range = *new FarRange;  // views may end after static objects
    return range;
  }
  void* allocate(std::size_t bytes, const char* label) {
    const std::lock_guard lock(mutex_);
    const std::size_t size = (bytes + page - 1) / page * page;
    auto found = free_.begin();
    while (found != free_.end() && found->second < size) ++found;
    if (found == free_.end()) throw std::bad_alloc();
    const auto [offset, room] = *found;
    free_.erase(found);
    if (room > size) free_[offset + size] = room - size;
    if (offset + size > end_) {
      end_ = offset + size;
      if (key_ >= 0 || open_ > 0) protect(PROT_READ | PROT_WRITE);
    }
    Allocation& made = given_[offset];
    made.bytes = bytes;
    std::snprintf(made.label, sizeof made.label, "%s", label);
    return base_ + offset;
  }
  void release(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto offset = static_cast<std::size_t>(static_cast<char*>(memory) - base_);
    const auto gone = given_.extract(offset);
    std::size_t size = (gone.mapped().bytes + page - 1) / page * page;
    ::madvise(base_ + offset, size, MADV_DONTNEED);  // opening the range costs by its pages
    auto next = free_.lower_bound(offset);
    if (next != free_.end() && next->first == offset + size) {
      size += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += size;
        return;
      }
    }
    free_[offset] = size;
  }
  void open() {
    if (key_ >= 0) {
      if (++opened_ == 1) ::pkey_set(key_, 0);
      return;
    }
    const std::lock_guard lock(mutex_);
    if (++open_ == 1) protect(PROT_READ | PROT_WRITE);
  }
  void close() {
    if (key_ >= 0 && --opened_ == 0) ::pkey_set(key_, PKEY_DISABLE_ACCESS);
    const std::lock_guard lock(mutex_);
    if (key_ < 0 && --open_ == 0) protect(PROT_NONE);
    watch();
  }
  bool holds(const void* address) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const auto begin = reinterpret_cast<std::uintptr_t>(base_);
    return at >= begin && at < begin + room_;
  }

 private:
  struct Allocation {
    std::size_t bytes = 0;
    char label[64] = {};
  };
  static constexpr std::size_t page = 4096;
  static constexpr std::size_t room_ = std::size_t{1} << 36;

  FarRange() {
    void* const range =
        ::mmap(nullptr, room_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) throw std::bad_alloc();
    base_ = static_cast<char*>(range);
    free_[0] = room_;
    watch();
  }
  void protect(int how) {
    const int failed =
        key_ >= 0 ? ::pkey_mprotect(base_, end_, how, key_) : ::mprotect(base_, end_, how);
    if (end_ > 0 && failed != 0) std::perror("far_memory.hpp: mprotect");
  }
  /// Answers faults, also where a test's framework has put its own answer in between.
  void watch() {
    struct sigaction now = {};
    ::sigaction(SIGSEGV, nullptr, &now);
    if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == &FarRange::fault) return;
    before_ = now;
    struct sigaction answer = {};
    answer.sa_sigaction = &FarRange::fault;
    answer.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigaction(SIGSEGV, &answer, nullptr);
  }
  /// Tells about the fault, which then happens once more and is answered as it was before.
  static void fault(int, siginfo_t* info, void*) {
    FarRange& range = one();
    if (range.holds(info->si_addr)) {
      const auto at = static_cast<std::size_t>(static_cast<char*>(info->si_addr) - range.base_);
      auto found =
          range.given_.upper_bound(at);  // of the thread that stands here: nobody changes it
      char text[256];
      int length;
      if (found == range.given_.begin()) {
        length = std::snprintf(text, sizeof text, "the host touches device memory\n");
      } else {
        --found;
        length = std::snprintf(text, sizeof text,
                               "the host touches device memory: byte %zu of %zu, \"%s\"; a copy or "
                               "a kernel must do that\n",
                               at - found->first, found->second.bytes, found->second.label);
      }
      if (::write(STDERR_FILENO, text, static_cast<std::size_t>(length)) >= 0) {
        void* stack[40];
        ::backtrace_symbols_fd(stack, ::backtrace(stack, 40), STDERR_FILENO);
      }
    }
    ::sigaction(SIGSEGV, &range.before_, nullptr);
  }

  static inline thread_local int opened_ = 0;
  /// Negative: there are none, or a test does without.
  const int key_ =
      std::getenv("TESSERA_TEST_NO_KEYS") != nullptr ? -1 : ::pkey_alloc(0, PKEY_DISABLE_ACCESS);
  char* base_ = nullptr;
  std::size_t end_ = 0;                      ///< of what was ever given out
  int open_ = 0;                             ///< where there are no keys
  std::map<std::size_t, std::size_t> free_;  ///< offsets and sizes
  std::map<std::size_t, Allocation> given_;
  std::mutex mutex_;
  struct sigaction before_ = {};
};

/// While it lives, device memory is accessible.
class [[nodiscard]] OpenFar {
 public:
  OpenFar() { FarRange::one().open(); }
  OpenFar(const OpenFar&) = delete;
  OpenFar& operator=(const OpenFar&) = delete;
  ~OpenFar() { FarRange::one().close(); }
};

class Late;

class Far {
 public:
  using memory_space = Far;
  using execution_space = Late;
  using device_type = Kokkos::Device<Late, Far>;
  using size_type = std::size_t;
  using index_type = std::ptrdiff_t;

  static constexpr const char* name() { return "Far"; }

  void* allocate(std::size_t bytes) const { return allocate("", bytes); }
  void* allocate(const char* label, std::size_t bytes, std::size_t logical = 0) const {
    void* const memory = FarRange::one().allocate(bytes, label);
    if (Kokkos::Profiling::profileLibraryLoaded())
      Kokkos::Profiling::allocateData(Kokkos::Tools::make_space_handle(name()), label, memory,
                                      logical > 0 ? logical : bytes);
    return memory;
  }
  template <class Space> void* allocate(const Space&, std::size_t bytes) const {
    return allocate(bytes);
  }
  template <class Space>
  void* allocate(const Space&, const char* label, std::size_t bytes,
                 std::size_t logical = 0) const {
    return allocate(label, bytes, logical);
  }
  void deallocate(void* memory, std::size_t bytes) const { deallocate("", memory, bytes); }
  void deallocate(const char* label, void* memory, std::size_t bytes,
                  std::size_t logical = 0) const {
    if (memory == nullptr) return;
    if (Kokkos::Profiling::profileLibraryLoaded())
      Kokkos::Profiling::deallocateData(Kokkos::Tools::make_space_handle(name()), label, memory,
                                        logical > 0 ? logical : bytes);
    FarRange::one().release(memory);
  }
};

}  // namespace support

template <> struct Kokkos::Impl::MemorySpaceAccess<Kokkos::HostSpace, support::Far> {
  enum : bool { assignable = false, accessible = false };
};
template <> struct Kokkos::Impl::MemorySpaceAccess<support::Far, Kokkos::HostSpace> {
  enum : bool { assignable = false, accessible = false };
};
/// Kernels are host code here, so that Kokkos's own check of every element's memory space, which
/// takes host code for the host's, says nothing: the pages do.
template <>
struct Kokkos::Impl::RuntimeCheckMemoryAccessViolation<support::Far,
                                                       Kokkos::DefaultHostExecutionSpace, false> {
  explicit RuntimeCheckMemoryAccessViolation(const char*) {}
};
template <>
struct Kokkos::Impl::RuntimeCheckBasicViewMemoryAccessViolation<
    support::Far, Kokkos::DefaultHostExecutionSpace, false> {
  explicit RuntimeCheckBasicViewMemoryAccessViolation(const SharedAllocationTracker&) {}
};

KOKKOS_IMPL_HOST_INACCESSIBLE_SHARED_ALLOCATION_SPECIALIZATION(support::Far);
