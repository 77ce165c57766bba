// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Elements in host memory. kernel/host_copy.hpp copies between that and the kernels' memory.
///
///     std::vector<HostElement<bool>> truths(8);              // bytes
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include <tessera/base/dtype.hpp>
#include <tessera/kernel/host_copy.hpp>

namespace tessera {

/// The type of an element in a std::vector on the host: the element's own, but for bool a byte of 0
/// or 1, since a std::vector<bool> has no elements in memory.
template <Element T>
using HostElement = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;

namespace detail {

/// Reads bytes as bools: any byte but 0 is true.
class Truths {
 public:
  explicit Truths(std::span<const std::uint8_t> bytes)
      : values_(std::make_unique<bool[]>(bytes.size())), size_(bytes.size()) {
    for (std::size_t i = 0; i < size_; ++i) values_[i] = bytes[i] != 0;
  }
  std::span<const bool> span() const { return {values_.get(), size_}; }

 private:
  std::unique_ptr<bool[]> values_;
  std::size_t size_;
};

}  // namespace detail
}  // namespace tessera
