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
#include <memory>
#include <utility>

namespace tessera::detail {

template <class T> class CopyOnWrite {
 public:
  CopyOnWrite() : value_(std::make_shared<T>()) {}
  CopyOnWrite(const T& value) : value_(std::make_shared<T>(value)) {}  // NOLINT: as the value
  CopyOnWrite(const CopyOnWrite&) = default;
  CopyOnWrite& operator=(const CopyOnWrite&) = default;
  // A value that is moved from is empty, and not without memory.
  CopyOnWrite(CopyOnWrite&& other) : value_(std::exchange(other.value_, std::make_shared<T>())) {}
  CopyOnWrite& operator=(CopyOnWrite&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }

  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }
  /// Returns the value, to be changed.
  T& own() {
    if (value_.use_count() != 1) value_ = std::make_shared<T>(*value_);
    std::atomic_thread_fence(std::memory_order_acquire);  // what the last other one read, it has
    return *value_;
  }

 private:
  std::shared_ptr<T> value_;
};

}  // namespace tessera::detail
