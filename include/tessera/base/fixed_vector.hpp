// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A vector of at most N elements without allocation, usable in constant expressions.
///
///     FixedVector<int, 4> v{1, 2};
///     v.push_back(3);                     // v.size() == 3
///
/// Laws: equality looks at the first size() elements only. A list that is full says which limit of
/// the library that is: of a tensor's dimensions, a mesh's axes or an operator's operands.
#include <cstddef>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include <tessera/base/error.hpp>

namespace tessera {
namespace detail {
/// What a list of fixed capacity holds, for the message where it is full.
enum class Limit : unsigned char { steps_of_a_plan, dimensions, mesh_axes, operands };
/// A list of N elements T holds these. The headers that define a limit specialize it.
template <class T, int N> inline constexpr Limit list_limit = Limit::steps_of_a_plan;

/// Throws the error of a list that has room for `most` and is given `given`, or one more than fit.
/// A plan that does not fit throws std::length_error: run/run.hpp says what that means for a call.
[[noreturn]] inline void more_than_a_list_holds(Limit what, int given, int most) {
  const std::string many =
      given > most ? std::to_string(given) : "more than " + std::to_string(most);
  const std::string limit = std::to_string(most);
  if (what == Limit::dimensions)
    throw ShapeError("a tensor is given " + many + " dimensions; a tensor has at most " + limit +
                     "; merge neighbouring dimensions with reshape");
  if (what == Limit::mesh_axes)
    throw MeshError("a mesh or a dimension is given " + many + " axes; a mesh has at most " +
                    limit + "; join two axes into one whose size is the product of theirs");
  if (what == Limit::operands)
    throw UsageError("an operator is given " + many + " operands; an operator takes at most " +
                     limit + "; split the call into several, as a sum of sums");
  throw std::length_error("[tessera] a plan needs " + many + " entries of a list that holds " +
                          limit + "; reshard some of the operands first");
}
}  // namespace detail

template <class T, int N> class FixedVector {
 public:
  using value_type = T;
  static constexpr int capacity = N;

  constexpr FixedVector() = default;
  constexpr FixedVector(std::initializer_list<T> values) {
    const int count = static_cast<int>(values.size());
    if (count > N) detail::more_than_a_list_holds(detail::list_limit<T, N>, count, N);
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
    if (size_ >= N) detail::more_than_a_list_holds(detail::list_limit<T, N>, 0, N);
    data_[size_] = value;
    return data_[size_++];
  }
  constexpr void pop_back() { --size_; }
  constexpr void clear() { size_ = 0; }
  constexpr void resize(int count, const T& value = T{}) {
    if (count > N) detail::more_than_a_list_holds(detail::list_limit<T, N>, count, N);
    for (int i = size_; i < count; ++i) data_[i] = value;
    size_ = count;
  }
  /// Leaves the first `count` elements, where there are more.
  constexpr void truncate(int count) {
    if (count < size_) size_ = count;
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
