// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Who owns what, as a grid of text: one cell a block, with the processes that hold it. Arithmetic
/// alone, no communication.
///
///     std::string picture = visualize(x);
///
///     float 8x6 P<data,model> on data=2 x model=2
///                0..2  3..5
///         0..3   0     1
///         4..7   2     3
///
/// Laws: the blocks shown for a dimension are disjoint and cover it.
#include <string>
#include <vector>

#include <tessera/plan/explain.hpp>
#include <tessera/tensor/sharded_tensor.hpp>

namespace tessera {
namespace detail {

/// "0,4,8" or "0-7": the processes whose block is `box`.
inline std::string owners_text(const std::vector<int>& owners) {
  std::string text;
  for (std::size_t i = 0; i < owners.size();) {
    std::size_t j = i;
    while (j + 1 < owners.size() && owners[j + 1] == owners[j] + 1) ++j;
    if (!text.empty()) text += ',';
    text += std::to_string(owners[i]);
    if (j > i) text += j == i + 1 ? ',' : '-';
    if (j > i) text += std::to_string(owners[j]);
    i = j + 1;
  }
  return text;
}
inline std::string interval_text(const Interval& interval) {
  if (interval.size() == 0) return "none";
  if (interval.size() == 1) return std::to_string(interval.lo);
  return std::to_string(interval.lo) + ".." + std::to_string(interval.hi - 1);
}
/// The non-empty parts of one dimension, in order.
inline std::vector<Interval> parts_of(const TensorDesc& desc, int d, const MeshShape& mesh) {
  std::vector<Interval> parts;
  for (int p = 0; p < mesh.processes(); ++p) {
    const Interval part = block(desc.extents[d], desc.sharding[d], mesh, mesh.coordinates(p));
    if (part.size() > 0 && std::find(parts.begin(), parts.end(), part) == parts.end())
      parts.push_back(part);
  }
  std::sort(parts.begin(), parts.end(),
            [](const Interval& x, const Interval& y) { return x.lo < y.lo; });
  return parts;
}
}  // namespace detail

/// Returns the ownership of a tensor `desc` on a mesh: rows are the blocks of the leading
/// dimensions, columns those of the last one.
inline std::string visualize(const TensorDesc& desc, const MeshShape& mesh,
                             const AxisNames& names) {
  std::string text = to_string(desc, names) + " on " + to_string(mesh, names) + "\n";
  const int rank = desc.rank();
  std::vector<std::vector<Interval>> parts;
  for (int d = 0; d < rank; ++d) parts.push_back(detail::parts_of(desc, d, mesh));
  std::vector<Box> rows{Box{}};
  for (int d = 0; d + 1 < rank; ++d) {
    std::vector<Box> longer;
    for (const Box& row : rows)
      for (const Interval& part : parts[static_cast<std::size_t>(d)]) {
        longer.push_back(row);
        longer.back().side.push_back(part);
      }
    rows.swap(longer);
  }
  const std::vector<Interval> columns = rank > 0 ? parts.back() : std::vector<Interval>{{0, 1}};
  detail::TextTable table;
  std::vector<std::string> header{""};
  if (rank > 0) {
    for (const Interval& column : columns) header.push_back(detail::interval_text(column));
    table.row(header);
  }
  for (const Box& row : rows) {
    std::string name;
    for (int d = 0; d < row.rank(); ++d)
      name += (d > 0 ? " x " : "") + detail::interval_text(row[d]);
    std::vector<std::string> cells{name};
    for (const Interval& column : columns) {
      Box box = row;
      if (rank > 0) box.side.push_back(column);
      std::vector<int> owners;
      for (int p = 0; p < mesh.processes(); ++p)
        if (block(desc.extents, desc.sharding, mesh, mesh.coordinates(p)) == box)
          owners.push_back(p);
      cells.push_back(detail::owners_text(owners));
    }
    table.row(std::move(cells));
  }
  return text + table.text("  ");
}
template <TypedTensor A> std::string visualize(const A& x) {
  return visualize(x.desc(), x.core().mesh()->shape(), x.core().mesh()->names());
}
inline std::string visualize(const DynamicTensor& x) {
  return visualize(x.desc(), x.core().mesh()->shape(), x.core().mesh()->names());
}

}  // namespace tessera
