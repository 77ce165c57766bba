// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The parameters of a tree as a table, and how few of a Program's tensors are annotated.
///
///     const ParameterTable table = parameter_table(model);
///     std::string text = to_string(table);            // path, elements, sharding, bytes a process
///     std::string few = annotated(model, program);    // "12 annotated of 1840 tensors in the Program, 0.65 %"
///
/// Laws: elements and bytes add up to the last line's; of a model on a dry mesh it is that of the
/// model itself. Communication: none. Its functions throw nothing of their own.
#include <cstdio>
#include <string>
#include <vector>

#include <tessera/plan/text.hpp>
#include <tessera/program/program.hpp>
#include <tessera/program/text_table.hpp>
#include <tessera/spec/block.hpp>
#include <tessera/tensor/tree.hpp>

namespace tessera {

struct ParameterRow {
  std::string path;
  TensorDesc desc;
  Index elements = 0;
  Index bytes = 0;  ///< of the process with most
  bool operator==(const ParameterRow&) const = default;
};
struct ParameterTable {
  std::vector<ParameterRow> rows;
  std::vector<std::string> axes;  ///< the mesh's, by which shardings are printed

  Index elements() const { return total(&ParameterRow::elements); }
  /// Returns the bytes of the process with most; it has most of every parameter.
  Index bytes() const { return total(&ParameterRow::bytes); }

 private:
  Index total(Index ParameterRow::*number) const {
    Index sum = 0;
    for (const ParameterRow& row : rows) sum += row.*number;
    return sum;
  }
};

namespace detail {
inline ParameterRow parameter_row(const std::string& path, const TensorCore& x) {
  const TensorDesc& desc = x.desc();
  Coordinates first;  // whose blocks are the largest
  first.resize(x.mesh()->shape().rank(), 0);
  return {path, desc, volume(desc.extents),
          block_volume(desc.extents, desc.sharding, x.mesh()->shape(), first) *
              static_cast<Index>(size_of(desc.type))};
}
inline std::string annotated(Index parameters, const Program& program) {
  const auto all = static_cast<Index>(program.tensors().size());
  char share[32];
  std::snprintf(share, sizeof share, "%.2f",
                all > 0 ? 100.0 * static_cast<double>(parameters) / static_cast<double>(all) : 0.0);
  return std::to_string(parameters) + " annotated of " + std::to_string(all) +
         " tensors in the Program, " + share + " %";
}
}  // namespace detail

/// Returns the table of a tree's tensors, which are defined. Communication: none.
template <class Tree> ParameterTable parameter_table(const Tree& tree) {
  ParameterTable table;
  for_each_named_tensor(
      [&](const std::string& path, const auto& x) {
        if (table.axes.empty())
          for (const auto& name : x.core().mesh()->names()) table.axes.emplace_back(name);
        table.rows.push_back(detail::parameter_row(path, x.core()));
      },
      tree);
  return table;
}

/// Returns the table as text, the totals in its last line.
inline std::string to_string(const ParameterTable& table) {
  AxisNames names;
  for (const std::string& name : table.axes) names.push_back(name);
  detail::TextTable text;
  text.row({"parameter", "type", "extents", "sharding", "elements", "bytes a process"});
  for (const ParameterRow& row : table.rows)
    text.row({row.path, std::string(name_of(row.desc.type)), to_string(row.desc.extents),
              to_string(row.desc.sharding, names), std::to_string(row.elements),
              detail::bytes_text(row.bytes)});
  text.row(
      {"in all", "", "", "", std::to_string(table.elements()), detail::bytes_text(table.bytes())});
  return text.text("  ");
}

/// Returns how many tensors the tree has, whose shardings were declared, of how many a Program that
/// reads it has: all others' follow. Source: Xu et al., GSPMD (2021), section 5, counts annotations
/// so.
template <class Tree> std::string annotated(const Tree& tree, const Program& program) {
  Index parameters = 0;
  for_each_tensor([&](const auto&) { ++parameters; }, tree);
  return detail::annotated(parameters, program);
}

}  // namespace tessera
