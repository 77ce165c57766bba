// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A sharding of which some dimensions are left to a choice (program/choice.hpp).
///
///     const OpenSharding rows{{0}, Open{}};      // P<data, Open>: dimension 0 over axis 0
///     rows.allows(Sharding{{0}, {1}}, MeshShape{2, 4}) == true;    // dimension 1 may be split
///     rows.allows(Sharding{{}, {1}}, MeshShape{2, 4}) == false;
///
/// Laws: a Sharding is an OpenSharding that allows itself alone, but for axes of one process.
#include <initializer_list>
#include <string>
#include <type_traits>

#include <tessera/spec/partition_spec.hpp>

namespace tessera {

/// What is said of one dimension: the axes that split it, none of them, or nothing.
struct OpenEntry {
  AxisList axes;
  bool open = false;
  constexpr OpenEntry() = default;
  constexpr OpenEntry(Open) : open(true) {}                  // NOLINT: an entry of a list
  constexpr OpenEntry(Replicated) {}                         // NOLINT
  constexpr OpenEntry(const AxisList& list) : axes(list) {}  // NOLINT
  constexpr OpenEntry(std::initializer_list<int> list) : axes(list) {}
  constexpr bool operator==(const OpenEntry&) const = default;
};

struct OpenSharding {
  FixedVector<OpenEntry, max_dims> dims;

  constexpr OpenSharding() = default;
  constexpr OpenSharding(std::initializer_list<OpenEntry> entries) : dims(entries) {}
  /// Takes the sharding of a type, whose dimensions may be open. Any other sharding has no open
  /// ones.
  constexpr OpenSharding(const Sharding& s) {  // NOLINT
    for (int d = 0; d < s.rank(); ++d)
      dims.push_back(detail::is_open(s[d]) ? OpenEntry(Open{}) : OpenEntry(s[d]));
  }
  /// Returns that of which nothing is said.
  static constexpr OpenSharding any(int rank) {
    OpenSharding made;
    for (int d = 0; d < rank; ++d) made.dims.push_back(Open{});
    return made;
  }
  constexpr int rank() const { return dims.size(); }
  /// Returns the sharding whose open dimensions are whole.
  constexpr Sharding closed() const {
    Sharding s;
    for (const OpenEntry& entry : dims) s.dims.push_back(entry.axes);
    return s;
  }
  /// Returns the sharding whose open dimensions are those of `other`, of as many dimensions.
  constexpr Sharding filled(const Sharding& other) const {
    Sharding s = closed();
    for (int d = 0; d < rank(); ++d)
      if (dims[d].open) s[d] = other[d];
    return s;
  }
  /// Returns whether a finished sharding is as is said here. Axes of one process split nothing.
  constexpr bool allows(const Sharding& s, const MeshShape& mesh) const {
    if (s.rank() != rank() || !s.partial.empty()) return false;
    for (int d = 0; d < rank(); ++d)
      if (!dims[d].open && !(wide(s[d], mesh) == wide(dims[d].axes, mesh))) return false;
    return true;
  }
  constexpr bool operator==(const OpenSharding&) const = default;

 private:
  static constexpr AxisList wide(const AxisList& axes, const MeshShape& mesh) {
    AxisList kept;
    for (int i = 0; i < axes.size(); ++i)
      if (mesh[axes[i]] > 1) kept.push_back(axes[i]);
    return kept;
  }
};

/// Returns "P<data,Open>".
inline std::string to_string(const OpenSharding& s, const AxisNames& names) {
  Sharding marked = s.closed();
  for (int d = 0; d < s.rank(); ++d)
    if (s.dims[d].open) marked[d] = AxisList{detail::open_axis};
  return to_string(marked, names);
}

}  // namespace tessera
