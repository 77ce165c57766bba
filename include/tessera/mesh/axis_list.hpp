// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Mesh axes as values: a set (a group of processes), and an ordered list (the axes that split a
/// dimension).
///
///     AxisList rows{0, 2};             // axis 0 major, axis 2 minor
///     rows.set() == AxisSet{0, 2}
///
/// Laws: a list holds an axis at most once; equality of lists depends on the order, of sets it does
/// not.
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include <tessera/base/fixed_vector.hpp>

namespace tessera {

/// Most axes a mesh may have.
inline constexpr int max_axes = 6;
namespace detail {
template <> inline constexpr Limit list_limit<int, max_axes> = Limit::mesh_axes;
template <> inline constexpr Limit list_limit<std::string_view, max_axes> = Limit::mesh_axes;
}  // namespace detail

/// A set of mesh axes, by their index in the mesh.
struct AxisSet {
  std::uint32_t bits = 0;

  constexpr AxisSet() = default;
  constexpr AxisSet(std::initializer_list<int> axes) {
    for (int axis : axes) insert(axis);
  }
  static constexpr AxisSet from_bits(std::uint32_t bits) {
    AxisSet set;
    set.bits = bits;
    return set;
  }
  constexpr bool empty() const { return bits == 0; }
  /// Returns whether the set has more than one axis.
  constexpr bool several() const { return (bits & (bits - 1)) != 0; }
  constexpr bool contains(int axis) const { return (bits >> axis & 1u) != 0; }
  constexpr void insert(int axis) { bits |= 1u << axis; }
  constexpr void erase(int axis) { bits &= ~(1u << axis); }
  constexpr int size() const {
    int count = 0;
    for (std::uint32_t rest = bits; rest != 0; rest &= rest - 1) ++count;
    return count;
  }
  constexpr bool operator==(const AxisSet&) const = default;
  friend constexpr AxisSet operator|(AxisSet a, AxisSet b) { return from_bits(a.bits | b.bits); }
  friend constexpr AxisSet operator&(AxisSet a, AxisSet b) { return from_bits(a.bits & b.bits); }
  friend constexpr AxisSet operator-(AxisSet a, AxisSet b) { return from_bits(a.bits & ~b.bits); }
};

/// The mesh axes that split one dimension, major first. Packed: four bits an axis, the count on
/// top, so that comparing and hashing are integer operations.
class AxisList {
 public:
  constexpr AxisList() = default;
  constexpr AxisList(std::initializer_list<int> axes) {
    const int count = static_cast<int>(axes.size());
    if (count > max_axes) detail::more_than_a_list_holds(detail::Limit::mesh_axes, count, max_axes);
    for (int axis : axes) push_back(axis);
  }
  constexpr int size() const { return static_cast<int>(bits_ >> 24); }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr int operator[](int i) const { return static_cast<int>(bits_ >> (4 * i) & 0xfu); }
  constexpr void push_back(int axis) {
    const int count = size();
    if (count >= max_axes) detail::more_than_a_list_holds(detail::Limit::mesh_axes, 0, max_axes);
    bits_ |= static_cast<std::uint32_t>(axis) << (4 * count);
    bits_ += 1u << 24;
  }
  constexpr AxisList first(int count) const {
    AxisList result;
    result.bits_ = (bits_ & ((1u << (4 * count)) - 1)) | static_cast<std::uint32_t>(count) << 24;
    return result;
  }
  constexpr AxisSet set() const {
    AxisSet result;
    for (int i = 0; i < size(); ++i) result.insert((*this)[i]);
    return result;
  }
  constexpr bool contains(int axis) const {
    for (int i = 0; i < size(); ++i)
      if ((*this)[i] == axis) return true;
    return false;
  }
  /// Returns this list without the axes in `gone`, in the same order.
  constexpr AxisList without(AxisSet gone) const {
    AxisList result;
    for (int i = 0; i < size(); ++i)
      if (!gone.contains((*this)[i])) result.push_back((*this)[i]);
    return result;
  }
  /// Returns how many leading axes two lists share.
  constexpr int common_prefix(AxisList other) const {
    const int limit = size() < other.size() ? size() : other.size();
    const int alike = std::countr_zero(bits_ ^ other.bits_) / 4;
    return alike < limit ? alike : limit;
  }
  constexpr bool starts_with(AxisList prefix) const {
    return common_prefix(prefix) == prefix.size();
  }
  constexpr std::uint32_t bits() const { return bits_; }
  constexpr bool operator==(const AxisList&) const = default;

 private:
  std::uint32_t bits_ = 0;
};

}  // namespace tessera
