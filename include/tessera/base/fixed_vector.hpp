// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A vector of at most N elements without allocation, usable in constant expressions.
///
///     FixedVector<int, 4> v{1, 2};
///     v.push_back(3);                     // v.size() == 3
///
/// Laws: equality looks at the first size() elements only.
#include <cstddef>
#include <initializer_list>
#include <stdexcept>

namespace tessera {
namespace detail {
[[noreturn]] inline void capacity_exceeded() {
  throw std::length_error(
      "[tessera] a FixedVector is full; this is a limit of the library's fixed-capacity plans");
}
}  // namespace detail

template <class T, int N> class FixedVector {
 public:
  using value_type = T;
  static constexpr int capacity = N;

  constexpr FixedVector() = default;
  constexpr FixedVector(std::initializer_list<T> values) {
    for (const T& value : values) push_back(value);
  }
  constexpr FixedVector(int count, const T& value) { resize(count, value); }

  constexpr int size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T& operator[](int i) { return data_[i]; }
  constexpr const T& operator[](int i) const { return data_[i]; }
  constexpr T& back() { return data_[size_ - 1]; }
  constexpr const T& back() const { return data_[size_ - 1]; }
  constexpr T* begin() { return data_; }
  constexpr T* end() { return data_ + size_; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T* data() const { return data_; }

  constexpr T& push_back(const T& value) {
    if (size_ >= N) detail::capacity_exceeded();
    data_[size_] = value;
    return data_[size_++];
  }
  constexpr void pop_back() { --size_; }
  constexpr void clear() { size_ = 0; }
  constexpr void resize(int count, const T& value = T{}) {
    if (count > N) detail::capacity_exceeded();
    for (int i = size_; i < count; ++i) data_[i] = value;
    size_ = count;
  }
  constexpr int find(const T& value) const {
    for (int i = 0; i < size_; ++i)
      if (data_[i] == value) return i;
    return -1;
  }
  constexpr bool contains(const T& value) const { return find(value) >= 0; }
  constexpr bool operator==(const FixedVector& other) const {
    if (size_ != other.size_) return false;
    for (int i = 0; i < size_; ++i)
      if (!(data_[i] == other.data_[i])) return false;
    return true;
  }

 private:
  T data_[N]{};
  int size_ = 0;
};

}  // namespace tessera
