// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// AllLanes: the instances of Kokkos's execution space on which kernels run. Lane 0 is the space's
/// default instance. A thread launches its kernels on lane 0, or on the lane of its OnLane.
///
///     const detail::OnLane there(detail::lane_of(KernelSpace()));   // this instance's lane: here 0
///     detail::copy(DType::f32, from, to, &box, 1);                  // the instance's kernel
///     detail::lane().wait();                                        // `to` is written
///
/// Laws: kernels of one lane run one after the other, in the order in which they are launched;
/// kernels of two lanes run in any order. lane_of(x) is one object for all equal instances, until
/// Kokkos is finalized.
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <Kokkos_Core.hpp>

#include <tessera/base/error.hpp>
#include <tessera/base/math.hpp>

namespace tessera {

/// The execution space of all kernels: Kokkos's default one, or the one that all sources of a
/// program name.
#if defined(TESSERA_KERNEL_SPACE)
using KernelSpace = TESSERA_KERNEL_SPACE;
#else
using KernelSpace = Kokkos::DefaultExecutionSpace;
#endif
using KernelMemory = KernelSpace::memory_space;

/// Whether kernels run on the host, where each is done when its launch returns.
inline constexpr bool kernels_on_host =
    std::is_same_v<KernelSpace, Kokkos::DefaultHostExecutionSpace>;

namespace detail {
/// An instance, and what is made once for it.
class Lane {
 public:
  Lane(int number, const KernelSpace& space)
      : number_(number), space_(space), threads_(max_of(1, space.concurrency())) {}
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane() { wait(); }

  int number() const { return number_; }
  const KernelSpace& space() const { return space_; }
  /// Returns how many threads its kernels use; stored, since asking Kokkos costs 30 ns.
  Index threads() const { return threads_; }
  /// Returns when all kernels that were launched on it are done. Costs nothing on a host backend.
  void wait() const {
    if constexpr (!kernels_on_host) space_.fence("tessera::fence");
  }
  /// Returns the lane's own T, such as a library's handle: made from the lane at the first request,
  /// and ended with the lane, when its kernels are done.
  template <class T> T& own() {
    static constexpr char key = 0;
    const std::lock_guard lock(mutex_);
    for (const auto& [of, thing] : owned_)
      if (of == &key) return *static_cast<T*>(thing.get());
    owned_.emplace_back(&key, std::make_shared<T>(*this));
    return *static_cast<T*>(owned_.back().second.get());
  }

 private:
  int number_;
  KernelSpace space_;
  Index threads_;
  std::mutex mutex_;  ///< processes that are threads share lane 0
  std::vector<std::pair<const char*, std::shared_ptr<void>>> owned_;
};

/// The most lanes of a program.
inline constexpr int max_lanes = 64;

/// All lanes of the program, by number. They end when Kokkos is finalized.
class AllLanes {
 public:
  static AllLanes& all() {
    static AllLanes& lanes = *new AllLanes;
    return lanes;
  }
  Lane& operator[](int number) { return *lanes_[static_cast<std::size_t>(number)]; }
  int count() const { return count_; }
  Lane& of(const KernelSpace& space) {
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < count_; ++i)
      if ((*this)[i].space() == space) return (*this)[i];
    if (count_ == max_lanes)
      throw UsageError("kernels are put on more than " + std::to_string(max_lanes) +
                       " instances of the execution space, each of which is kept until Kokkos is "
                       "finalized; make a few instances once, and use them again");
    return add(space);
  }

 private:
  AllLanes() {
    add(KernelSpace());
    Kokkos::push_finalize_hook([this] {
      for (std::unique_ptr<Lane>& lane : lanes_) lane.reset();
      count_ = 0;
    });
  }
  Lane& add(const KernelSpace& space) {
    auto& lane = lanes_[static_cast<std::size_t>(count_)];
    lane = std::make_unique<Lane>(count_, space);
    ++count_;
    return *lane;
  }

  std::mutex mutex_;
  std::array<std::unique_ptr<Lane>, max_lanes> lanes_;
  std::atomic<int> count_{0};
};

inline constinit thread_local Lane* lane_of_thread = nullptr;  ///< null: lane 0

/// Returns the lane of an instance. Throws UsageError when there would be more than max_lanes.
inline Lane& lane_of(const KernelSpace& instance) { return detail::AllLanes::all().of(instance); }

/// Returns the lane on which this thread launches its kernels.
inline Lane& lane() {
  Lane* const named = detail::lane_of_thread;
  return named != nullptr ? *named : detail::AllLanes::all()[0];
}

/// While it lives, this thread launches its kernels on a lane.
class [[nodiscard]] OnLane {
 public:
  explicit OnLane(Lane& lane) : OnLane(&lane) {}
  explicit OnLane(Lane* lane) : before_(std::exchange(detail::lane_of_thread, lane)) {}  // null: 0
  OnLane(const OnLane&) = delete;
  OnLane& operator=(const OnLane&) = delete;
  ~OnLane() { detail::lane_of_thread = before_; }

 private:
  Lane* before_;
};
}  // namespace detail

}  // namespace tessera
