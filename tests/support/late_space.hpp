// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// An execution space of Kokkos that behaves like a device, on the host: a kernel or a copy runs
/// when its instance is fenced, and not before, and the host cannot touch its memory
/// (support/far_memory.hpp). A program whose kernels run on it takes the ways of a device, shows
/// every missing fence (it then reads old data, each time), and ends where the host reads or writes
/// device memory. Included before the library's headers.
///
///     Late a(Late::new_instance);   // kernels of `a` wait for a.fence()
///
/// Laws: kernels of one instance run in order, in the thread that fences; the default instance is
/// the thread's own.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <Kokkos_Core.hpp>

#include "far_memory.hpp"

namespace support {

class Late {
 public:
  using execution_space = Late;
  using memory_space = Far;
  using device_type = Kokkos::Device<Late, memory_space>;
  using array_layout = Kokkos::LayoutRight;
  using size_type = memory_space::size_type;
  using index_type = memory_space::index_type;
  using scratch_memory_space = Kokkos::ScratchMemorySpace<Kokkos::DefaultHostExecutionSpace>;
  struct NewInstance {};
  static constexpr NewInstance new_instance{};

  Late() = default;
  explicit Late(NewInstance) : queue_(std::make_shared<Queue>()) {
    static std::atomic<std::uint32_t> number{1};
    queue_->number = ++number;
  }
  static const char* name() { return "Late"; }
  int concurrency() const { return 4; }
  /// The number by which tools know the instance; 1: a default instance.
  std::uint32_t impl_instance_id() const noexcept { return queue().number; }
  friend bool operator==(const Late& a, const Late& b) { return a.queue_ == b.queue_; }

  void launch(std::function<void()> kernel) const { queue().kernels.push_back(std::move(kernel)); }
  std::size_t waiting() const { return queue().kernels.size(); }
  void fence(const std::string& name = "Late::fence") const;

 private:
  struct Queue {
    std::uint32_t number = 1;
    std::deque<std::function<void()>> kernels;
  };
  Queue& queue() const {
    static thread_local Queue own;
    return queue_ != nullptr ? *queue_ : own;
  }
  std::shared_ptr<Queue> queue_;  ///< null: the thread's own
};

}  // namespace support

template <> struct Kokkos::Tools::Experimental::DeviceTypeTraits<support::Late> {
  static constexpr DeviceType id = DeviceType::Unknown;
  static int device_id(const support::Late&) { return 0; }
};

inline void support::Late::fence(const std::string& name) const {
  const auto run_all = [this] {
    auto& kernels = queue().kernels;
    if (kernels.empty()) return;
    const OpenFar open;
    for (; !kernels.empty(); kernels.pop_front()) kernels.front()();
  };
  Kokkos::Tools::Experimental::Impl::profile_fence_event<Late>(
      name, Kokkos::Tools::Experimental::Impl::DirectFenceIDHandle{impl_instance_id()}, run_all);
}

template <class Functor, class... Traits>
class Kokkos::Impl::ParallelFor<Functor, Kokkos::RangePolicy<Traits...>, support::Late> {
 public:
  using Policy = Kokkos::RangePolicy<Traits...>;
  ParallelFor(const Functor& functor, const Policy& policy) : functor_(functor), policy_(policy) {}
  void execute() const {
    policy_.space().launch([functor = functor_, begin = policy_.begin(), end = policy_.end()] {
      for (auto i = begin; i < end; ++i) functor(i);
    });
  }

 private:
  Functor functor_;
  Policy policy_;
};

namespace support {
/// What Kokkos's copies do: between the two memories or within this one.
struct LateCopy {
  LateCopy(void* to, const void* from, std::size_t bytes) {
    Late().fence("Late: copy");
    const OpenFar open;
    std::memmove(to, from, bytes);
  }
  LateCopy(const Late& late, void* to, const void* from, std::size_t bytes) {
    late.launch([=] { std::memmove(to, from, bytes); });
  }
  template <class Other>
  LateCopy(const Other& other, void* to, const void* from, std::size_t bytes) {
    other.fence("Late: copy of another space");
    LateCopy(to, from, bytes);
  }
};
}  // namespace support

template <class Space>
struct Kokkos::Impl::DeepCopy<support::Far, Kokkos::HostSpace, Space> : support::LateCopy {
  using LateCopy::LateCopy;
};
template <class Space>
struct Kokkos::Impl::DeepCopy<Kokkos::HostSpace, support::Far, Space> : support::LateCopy {
  using LateCopy::LateCopy;
};
template <class Space>
struct Kokkos::Impl::DeepCopy<support::Far, support::Far, Space> : support::LateCopy {
  using LateCopy::LateCopy;
};
template <> struct Kokkos::Impl::ZeroMemset<support::Late> {
  ZeroMemset(const support::Late& late, void* to, std::size_t bytes) {
    late.launch([=] { std::memset(to, 0, bytes); });
  }
};

#define KOKKOS_IMPL_PUBLIC_INCLUDE
#include <impl/Kokkos_SharedAlloc_timpl.hpp>  // bodies of what Kokkos holds for each memory space
#undef KOKKOS_IMPL_PUBLIC_INCLUDE

#define TESSERA_KERNEL_SPACE support::Late
