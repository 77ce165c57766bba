// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The element outside a tensor, given as any number, truth value or element.
///
///     pad(x, {1, 1}, {1, 1}, {}, -1);             // x a DynamicTensor: -1 as its elements are
///
/// Laws: a value that is no such element is an error: nothing is converted silently.
#include <cstddef>
#include <cstring>

#include <tessera/op/call/scalar.hpp>
#include <tessera/plan/check/shape_verdict.hpp>

namespace tessera::detail {

/// One element of a type that is known when the program runs.
class FillValue {
 public:
  /// Zero.
  FillValue() = default;
  template <Element T> explicit FillValue(T value) {
    static_assert(sizeof(T) <= sizeof(bytes_));
    std::memcpy(bytes_, &value, sizeof(T));
    outside_ = value == T{} ? Outside::zero : value == T(1) ? Outside::one : Outside::other;
    for (std::byte b : bytes_) plain_ = plain_ && b == std::byte{};
  }
  /// The element, or null when it is zero bytes.
  const void* data() const { return plain_ ? nullptr : bytes_; }
  /// Returns the element, which is a T.
  template <Element T> T get() const {
    T element{};
    std::memcpy(&element, bytes_, sizeof(T));
    return element;
  }
  Outside outside() const { return outside_; }

 private:
  alignas(16) std::byte bytes_[16] = {};
  Outside outside_ = Outside::zero;
  bool plain_ = true;
};

/// A value beside a tensor whose element type is known when the program runs; zero where none is
/// given.
class OutsideValue {
 public:
  OutsideValue() = default;
  template <Scalar S> OutsideValue(S value) : convert_(&convert<S>) {  // NOLINT: taken for a value
    static_assert(sizeof(S) <= sizeof(bytes_));
    std::memcpy(bytes_, &value, sizeof(S));
  }
  /// Returns it as an element of the type. Throws UsageError when it is not one.
  detail::FillValue as(DType type, CallSite site) const {
    return convert_ == nullptr ? detail::FillValue() : convert_(bytes_, type, site);
  }

 private:
  template <class S>
  static detail::FillValue convert(const std::byte* bytes, DType type, CallSite site) {
    S value;
    std::memcpy(&value, bytes, sizeof(S));
    return with_type(type, [&](auto zero) {
      return detail::FillValue(element_of_type<decltype(zero)>(value, site));
    });
  }
  alignas(16) std::byte bytes_[16] = {};
  detail::FillValue (*convert_)(const std::byte*, DType, CallSite) = nullptr;
};

}  // namespace tessera::detail
