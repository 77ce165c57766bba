// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Who owns what, as a grid of text: one cell for each block, with the processes that hold it.
/// Arithmetic alone, no communication.
///
///     std::string picture = visualize(x);
///
///     float 8x6 P<data,model> on data=2 x model=2
///                0..2  3..5
///         0..3   0     1
///         4..7   2     3
///
/// Laws: the blocks and gaps shown for a dimension are disjoint and cover it; the size of the text
/// is bounded for any mesh.
#include <string>
#include <utility>
#include <vector>

#include <tessera/program/explain.hpp>
#include <tessera/program/text_table.hpp>
#include <tessera/show/detail/ownership.hpp>
#include <tessera/tensor/sharded_tensor.hpp>

namespace tessera {
namespace detail {

/// A block's name, "0..3 x 4..7", or a gap's.
inline std::string block_name(const BlockOrGap& shown) {
  if (shown.gap()) return "... " + shown.count_text() + " " + shown.size_text() + " ...";
  std::string name;
  for (int d = 0; d < shown.box.rank(); ++d)
    name += (d > 0 ? " x " : "") + interval_text(shown.box[d]);
  return name;
}
}  // namespace detail

/// Returns the ownership of a tensor `desc` on a mesh: rows are the blocks of the leading
/// dimensions, columns those of the last one. Where there are more than 16 rows or columns (6 where
/// there are more than 256 blocks) it shows the first three, the last three, and the first of each
/// of up to four sizes; "... 58 more of 128 ..." stands for those in between, and "3 ... 60" for
/// their processes, from the lowest to the highest.
inline std::string visualize(const TensorDesc& desc, const MeshShape& mesh,
                             const AxisNames& names) {
  std::string text = to_string(desc, names) + " on " + to_string(mesh, names) + "\n";
  const int rank = desc.rank(), leading = rank > 0 ? rank - 1 : 0;
  const detail::BlockSequence row_blocks(desc, mesh, 0, leading);
  const detail::BlockSequence column_blocks(desc, mesh, leading, rank);
  const Index blocks = row_blocks.count() * column_blocks.count();
  const std::vector<detail::BlockOrGap> columns = column_blocks.shown(detail::limit_for(blocks));
  const detail::Holders holders(desc, mesh);
  Index drawn = 0;
  detail::TextTable table;
  std::vector<std::string> header{""};
  for (const detail::BlockOrGap& column : columns) header.push_back(detail::block_name(column));
  if (rank > 0) table.row(std::move(header));
  for (const detail::BlockOrGap& row : row_blocks.shown(detail::limit_for(blocks))) {
    std::vector<std::string> cells{detail::block_name(row)};
    for (const detail::BlockOrGap& column : columns) {
      drawn += !row.gap() && !column.gap();
      const Index lowest = row.lowest + column.lowest, highest = row.highest + column.highest;
      cells.push_back(row.gap() || column.gap()
                          ? holders.lowest(lowest) + " ... " + holders.highest(highest)
                          : holders.text(lowest));
    }
    table.row(std::move(cells));
  }
  text += table.text("  ");
  if (drawn < blocks)
    text += "  " + std::to_string(drawn) + " of " + std::to_string(blocks) +
            " blocks; gaps name their lowest and highest process\n";
  const std::string idle = detail::idle_text(desc, mesh, blocks);
  return idle.empty() ? text : text + "  without elements: " + idle + "\n";
}
template <TypedTensor A> std::string visualize(const A& x) {
  return visualize(x.desc(), x.core().mesh()->shape(), x.core().mesh()->names());
}
inline std::string visualize(const DynamicTensor& x) {
  return visualize(x.desc(), x.core().mesh()->shape(), x.core().mesh()->names());
}

}  // namespace tessera
