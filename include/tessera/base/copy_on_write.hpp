// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A value whose copies share its memory until one of them is changed.
///
///     detail::CopyOnWrite<std::vector<int>> a, b = a;   // one vector
///     b.own().push_back(1);                             // two
///
/// Laws: as of a plain value; own() copies where another shares. Copies that threads have are
/// independent, as those of a plain value are.
#include <atomic>
#include <utility>

namespace tessera::detail {

template <class T> class CopyOnWrite {
 public:
  CopyOnWrite() : shared_(new Shared) {}
  CopyOnWrite(const T& value) : shared_(new Shared{value}) {}  // NOLINT: as the value
  CopyOnWrite(const CopyOnWrite& other) : shared_(other.shared_) {
    shared_->users.fetch_add(1, std::memory_order_relaxed);
  }
  // A value that is moved from is empty, and not without memory.
  CopyOnWrite(CopyOnWrite&& other) : shared_(new Shared) { swap(other); }
  CopyOnWrite& operator=(const CopyOnWrite& other) {
    CopyOnWrite copy(other);
    swap(copy);
    return *this;
  }
  CopyOnWrite& operator=(CopyOnWrite&& other) noexcept {
    swap(other);
    return *this;
  }
  ~CopyOnWrite() {
    if (shared_->users.fetch_sub(1, std::memory_order_acq_rel) == 1) delete shared_;
  }

  const T& operator*() const { return shared_->value; }
  const T* operator->() const { return &shared_->value; }
  /// Returns the value, to be changed.
  T& own() {
    if (shared_->users.load(std::memory_order_acquire) != 1) {
      CopyOnWrite copy(shared_->value);
      swap(copy);
    }
    return shared_->value;
  }

 private:
  struct Shared {  // counted by itself: std::make_shared costs each type a hundred templates
    T value{};
    std::atomic<long> users{1};
  };
  void swap(CopyOnWrite& other) noexcept { std::swap(shared_, other.shared_); }

  Shared* shared_;
};

}  // namespace tessera::detail
