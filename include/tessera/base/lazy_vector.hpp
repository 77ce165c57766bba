// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A FixedVector that neither makes nor copies the elements that it has room for but does not hold:
/// for large elements, of which there are mostly few.
///
///     detail::LazyVector<Step, 40> steps;  // no step is made
///     steps.push_back(step);               // one is copied
///
/// Laws: it holds what a FixedVector would. A constant has no unmade elements, so constant
/// evaluation makes them all.
#include <memory>
#include <type_traits>

#include <tessera/base/fixed_vector.hpp>

namespace tessera::detail {

template <class T, int N> class LazyVector {
 public:
  constexpr LazyVector() = default;
  constexpr LazyVector(std::initializer_list<T> values) {
    for (const T& value : values) push_back(value);
  }
  constexpr LazyVector(const LazyVector& other) {
    for (const T& value : other) push_back(value);
  }
  constexpr LazyVector& operator=(const LazyVector& other) {
    if (this == &other) return *this;
    size_ = 0;
    for (const T& value : other) push_back(value);
    return *this;
  }

  constexpr int size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T& operator[](int i) { return room_.elements[i]; }
  constexpr const T& operator[](int i) const { return room_.elements[i]; }
  constexpr T& back() { return room_.elements[size_ - 1]; }
  constexpr const T& back() const { return room_.elements[size_ - 1]; }
  constexpr T* begin() { return room_.elements; }
  constexpr T* end() { return room_.elements + size_; }
  constexpr const T* begin() const { return room_.elements; }
  constexpr const T* end() const { return room_.elements + size_; }

  constexpr T& push_back(const T& value) {
    if (size_ >= N) detail::more_than_a_list_holds(detail::list_limit<T, N>, 0, N);
    return *std::construct_at(room_.elements + size_++, value);
  }
  constexpr void pop_back() { --size_; }
  constexpr int find(const T& value) const {
    for (int i = 0; i < size_; ++i)
      if ((*this)[i] == value) return i;
    return -1;
  }
  constexpr bool operator==(const LazyVector& other) const {
    if (size_ != other.size_) return false;
    for (int i = 0; i < size_; ++i)
      if (!((*this)[i] == other[i])) return false;
    return true;
  }

 private:
  static_assert(std::is_trivially_destructible_v<T>);
  union Room {
    char none;
    T elements[N];
    constexpr Room() : none{} {}
    constexpr explicit Room(bool) : elements{} {}
  };
  int size_ = 0;
  Room room_ = std::is_constant_evaluated() ? Room(true) : Room();
};

}  // namespace tessera::detail
