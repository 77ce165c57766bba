// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Memory that kernels of one call use between them. On a device it belongs to the lane and the
/// thread, and is given back without waiting: kernels that get it later run later. (The default
/// instance may be each thread's own, such as CUDA's default stream for each thread.)
///
///     const Scratch<double> partial(outputs * lanes);
///     launch("tessera::first", n, 1, First{partial.data()});
///     launch("tessera::second", n, 1, Second{partial.data()});
///
/// Laws: contents are unspecified; a lane's repeated pattern of requests allocates nothing new.
#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <tessera/kernel/lane.hpp>

namespace tessera::detail {

/// The scratch memory of a lane.
class LaneMemory {
 public:
  using Piece = Kokkos::View<char*, KernelMemory>;

  explicit LaneMemory(const Lane& lane) : lane_(lane) {}
  Piece take(Index bytes) {
    const std::lock_guard lock(mutex_);
    const auto size = static_cast<std::size_t>(bytes);
    const auto mine = std::this_thread::get_id();
    auto best = free_.end();
    for (auto p = free_.begin(); p != free_.end(); ++p)
      if (p->of == mine && p->piece.size() >= size &&
          (best == free_.end() || p->piece.size() < best->piece.size()))
        best = p;
    if (best == free_.end()) {
      lane_.wait();  // kernels may still use the memory that makes room for more
      std::erase_if(free_, [&](const Free& one) { return one.of == mine; });
      return Piece(Kokkos::view_alloc("tessera::scratch", Kokkos::WithoutInitializing), size);
    }
    std::swap(*best, free_.back());
    Piece piece = std::move(free_.back().piece);
    free_.pop_back();
    return piece;
  }
  void give(Piece piece) {
    const std::lock_guard lock(mutex_);
    if constexpr (!kernels_on_host) free_.push_back({std::this_thread::get_id(), std::move(piece)});
  }

 private:
  struct Free {
    std::thread::id of;
    Piece piece;
  };

  const Lane& lane_;
  std::mutex mutex_;
  std::vector<Free> free_;
};

/// n elements, which the kernels launched on this lane meanwhile may use.
template <class T> class Scratch {
 public:
  explicit Scratch(Index n)
      : memory_(lane().own<LaneMemory>()), piece_(memory_.take(n * Index{sizeof(T)})) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { memory_.give(std::move(piece_)); }
  T* data() const { return reinterpret_cast<T*>(piece_.data()); }

 private:
  LaneMemory& memory_;
  LaneMemory::Piece piece_;
};

}  // namespace tessera::detail
