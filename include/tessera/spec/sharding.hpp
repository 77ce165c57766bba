// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A sharding as a value: for each dimension the mesh axes that split it, and the axes over which
/// values are still partial. `PartitionSpec` is the same as a type; spec/block.hpp says who owns
/// what.
///
///     Sharding s{{0}, {}, {1}};           // dimension 0 over axis 0, dimension 2 over axis 1
///
/// Laws: an axis is used at most once; equal shardings are equal values.
#include <initializer_list>
#include <string>

#include <tessera/base/box.hpp>
#include <tessera/base/dtype.hpp>
#include <tessera/base/reduction.hpp>
#include <tessera/mesh/axis_list.hpp>
#include <tessera/mesh/mesh_shape.hpp>

namespace tessera {
namespace detail {
template <> inline constexpr Limit list_limit<AxisList, max_dims> = Limit::dimensions;
}  // namespace detail

namespace detail {
/// Stands in the list of a dimension that a tensor's type leaves Open; no mesh has this axis.
inline constexpr int open_axis = 14;
}  // namespace detail

struct Sharding {
  FixedVector<AxisList, max_dims> dims;
  AxisSet partial;                        ///< values must still be combined over these axes
  Reduction reduction = Reduction::none;  ///< how; `none` exactly when `partial` is empty

  constexpr Sharding() = default;
  constexpr Sharding(std::initializer_list<AxisList> axes) : dims(axes) {}
  /// Returns the sharding of a replicated tensor with `rank` dimensions.
  static constexpr Sharding replicated(int rank) {
    Sharding s;
    s.dims.resize(rank);
    return s;
  }
  constexpr int rank() const { return dims.size(); }
  constexpr AxisList& operator[](int d) { return dims[d]; }
  constexpr const AxisList& operator[](int d) const { return dims[d]; }
  /// Returns all axes that split a dimension.
  constexpr AxisSet used() const {
    AxisSet axes;
    for (int d = 0; d < dims.size(); ++d) axes = axes | dims[d].set();
    return axes;
  }
  constexpr Sharding finished() const {
    Sharding s = *this;
    s.partial = {};
    s.reduction = Reduction::none;
    return s;
  }
  constexpr Sharding with_partial(AxisSet axes, Reduction kind) const {
    Sharding s = *this;
    s.partial = axes;
    s.reduction = axes.empty() ? Reduction::none : kind;
    return s;
  }
  constexpr bool operator==(const Sharding&) const = default;
};

namespace detail {
/// A type's sharding may have dimensions that are Open: each of them is the list {open_axis}.
constexpr bool is_open(const AxisList& axes) { return axes.contains(open_axis); }
constexpr bool has_open(const Sharding& s) {
  for (int d = 0; d < s.rank(); ++d)
    if (is_open(s[d])) return true;
  return false;
}
/// Returns the sharding whose open dimensions are whole.
constexpr Sharding whole_where_open(Sharding s) {
  for (int d = 0; d < s.rank(); ++d)
    if (is_open(s[d])) s[d] = AxisList{};
  return s;
}
/// Returns whether a sharding, or a type of other open dimensions, is as a type promises.
constexpr bool keeps(const Sharding& s, const Sharding& promised) {
  if (s.rank() != promised.rank() || s.partial != promised.partial ||
      s.reduction != promised.reduction)
    return false;
  for (int d = 0; d < s.rank(); ++d)
    if (!is_open(promised[d]) && s[d] != promised[d]) return false;
  return true;
}
/// Returns the sharding whose open dimensions are split as in `like`, as far as their axes are
/// free.
constexpr Sharding filled(const Sharding& promised, const Sharding& like) {
  Sharding s = whole_where_open(promised);
  for (int d = 0; d < s.rank(); ++d)
    if (is_open(promised[d])) s[d] = like[d].without(s.used() | s.partial);
  return s;
}
}  // namespace detail

/// The facts about a tensor that decide its communication: element type, global extents, sharding.
struct TensorDesc {
  DType type = DType::f32;
  Extents extents;
  Sharding sharding;
  constexpr int rank() const { return extents.size(); }
  constexpr bool operator==(const TensorDesc&) const = default;
};

/// Returns "P<data,_,Axes<model,expert>,Unreduced<Sum,pipe>>".
inline std::string to_string(const Sharding& s, const AxisNames& names) {
  const auto name = [&](int axis) {
    if (axis == detail::open_axis) return std::string("Open");
    return axis < names.size() ? std::string(names[axis]) : "axis" + std::to_string(axis);
  };
  std::string text = "P<";
  for (int d = 0; d < s.rank(); ++d) {
    if (d > 0) text += ",";
    const AxisList& axes = s[d];
    if (axes.empty()) text += "_";
    if (axes.size() == 1) text += name(axes[0]);
    if (axes.size() > 1) {
      text += "Axes<";
      for (int i = 0; i < axes.size(); ++i) {
        if (i > 0) text += ",";
        text += name(axes[i]);
      }
      text += ">";
    }
  }
  if (!s.partial.empty()) {
    if (s.rank() > 0) text += ",";
    text += "Unreduced<" + std::string(detail::tag_name(s.reduction));
    for (int a = 0; a < max_axes; ++a)
      if (s.partial.contains(a)) text.append(",").append(name(a));
    text += ">";
  }
  return text + ">";
}

/// Returns "8x512x5120", or "scalar" without dimensions.
inline std::string to_string(const Extents& extents) {
  if (extents.empty()) return "scalar";
  std::string text;
  for (int d = 0; d < extents.size(); ++d) {
    if (d > 0) text += "x";
    text += std::to_string(extents[d]);
  }
  return text;
}

}  // namespace tessera
