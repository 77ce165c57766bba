// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Objects that must be closed before Kokkos and MPI end: meshes and transports register here, and
/// comm/environment.hpp closes those still open, in the order in which they were made.
///
///     id = Closing::all().enter([this] { close(); });   ...   Closing::all().leave(id);
///
/// Laws: an object that has left the list is not called; the functions run without the lock.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

namespace tessera::detail {

class Closing {
 public:
  /// The one list of this program. It holds functions, but no memory of Kokkos's.
  static Closing& all() {
    static Closing closing;
    return closing;
  }

  /// `late` ones are closed after all others: transports after meshes.
  std::uint64_t enter(std::function<void()> close, bool late = false) {
    const std::lock_guard lock(mutex_);
    const std::uint64_t id = ++next_ + (late ? late_ids : 0);
    entries_.emplace(id, std::move(close));
    return id;
  }
  void leave(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    entries_.erase(id);
  }
  /// Returns how many objects on the list are not late: the open meshes.
  std::size_t meshes() {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(
        std::distance(entries_.begin(), entries_.upper_bound(late_ids)));
  }
  /// The reason for closing, from now on.
  std::string_view& reason() { return reason_; }
  /// Closes everything still open, or all but the late ones.
  void run(bool late_ones = true) {
    for (;;) {
      std::function<void()> close;
      {
        const std::lock_guard lock(mutex_);
        if (entries_.empty() || (!late_ones && entries_.begin()->first > late_ids)) return;
        close = std::move(entries_.begin()->second);
        entries_.erase(entries_.begin());
      }
      close();
    }
  }

 private:
  static constexpr std::uint64_t late_ids = std::uint64_t{1} << 62;
  std::mutex mutex_;
  std::map<std::uint64_t, std::function<void()>> entries_;
  std::uint64_t next_ = 0;
  std::string_view reason_ = "it is closed";
};

}  // namespace tessera::detail
