// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How the table of a choice is written and read.
///
///     parse_choice(to_string(table))
///
/// Laws: those of program/choice/table.hpp.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/base/error.hpp>
#include <tessera/program/choice/table.hpp>
#include <tessera/program/detail/diff.hpp>
#include <tessera/spec/verdict.hpp>

namespace tessera {

namespace detail {
/// Returns the tensors that operators have, in the order in which they have them first.
inline std::vector<int> tensors_in_order(const Program& program) {
  std::vector<int> rows;
  std::vector<bool> seen(program.tensors().size(), false);
  const auto see = [&](int t) {
    if (t < 0 || seen[static_cast<std::size_t>(t)]) return;
    seen[static_cast<std::size_t>(t)] = true;
    rows.push_back(t);
  };
  for (const ProgramEntry& e : program.entries()) {
    for (const int t : e.operands) see(t);
    see(e.result);
    for (const int t : e.also) see(t);
  }
  return rows;
}
inline ChosenTensor chosen_row(const Program& program, int t) {
  const ProgramTensor& tensor = program.tensor(t);
  std::string name = "argument";
  if (tensor.made >= 0) {
    const ProgramEntry& e = program.entry(tensor.made);
    const std::string path = program.layer_path(e.layer);
    name = (path.empty() ? "" : path + "/") + e.label;
  }
  return {name, tensor.desc.type, tensor.desc.extents, tensor.desc.sharding, false};
}
inline std::string word_of(const ChosenTensor& row) {
  return std::string(name_of(row.type)) + " " + to_string(row.extents) + " " + row.name;
}
/// Returns the sharding of a row on another mesh; false where the mesh lacks one of its axes, or
/// the row is unfinished.
inline bool on_mesh(const ChoiceTable& table, const ChosenTensor& row, const Program& program,
                    Sharding& to) {
  const AxisNames names = program.names();
  to = Sharding::replicated(row.sharding.rank());
  if (!row.sharding.partial.empty()) return false;
  for (int d = 0; d < to.rank(); ++d)
    for (int i = 0; i < row.sharding[d].size(); ++i) {
      const int axis = names.find(table.axes[static_cast<std::size_t>(row.sharding[d][i])]);
      if (axis < 0) return false;
      to[d].push_back(axis);
    }
  return true;
}
inline AxisNames names_of(const ChoiceTable& table) {
  AxisNames names;
  for (const std::string& name : table.axes) names.push_back(name);
  return names;
}
}  // namespace detail

TESSERA_FUNCTION std::string to_string(const ChoiceTable& table) {
  const AxisNames names = detail::names_of(table);
  std::string text = "tessera choice 1\nmesh";
  for (std::size_t a = 0; a < table.axes.size(); ++a)
    text += " " + table.axes[a] + "=" + std::to_string(table.sizes[a]);
  text += std::string("\nobjective ") + (table.objective == Objective::time ? "time" : "payload") +
          "\ncost before=" + std::to_string(table.before) + " after=" + std::to_string(table.cost) +
          " bound=" + std::to_string(table.bound) + "\n";
  const auto on_one_line = [](std::string name) {
    std::replace(name.begin(), name.end(), '\n', ' ');
    return name;
  };
  for (const ChosenLayer& layer : table.layers)
    text += (layer.again ? "again " : "kept ") + on_one_line(layer.name) + "\n";
  for (const ChosenTensor& row : table.tensors) {
    const std::string name = on_one_line(row.name);
    text += std::string(row.free ? "chosen " : "stated ") + std::string(name_of(row.type)) + " " +
            to_string(row.extents) + " " + to_string(row.sharding, names) + " " + name + "\n";
  }
  return text;
}

namespace detail {
TESSERA_FUNCTION std::vector<int> aligned(const Program& program, const ChoiceTable& table) {
  const std::vector<int> rows = tensors_in_order(program);
  std::vector<std::string> here, there;
  for (const int t : rows) here.push_back(word_of(chosen_row(program, t)));
  for (const ChosenTensor& row : table.tensors) there.push_back(word_of(row));
  std::vector<int> result(program.tensors().size(), -1);
  const Alignment alignment(here, there);
  for (const auto& [i, j] : alignment.pairs())
    result[static_cast<std::size_t>(rows[static_cast<std::size_t>(i)])] = j;
  return result;
}
/// Reads the text of a table.
class ChoiceText {
 public:
  explicit ChoiceText(std::string_view text) : text_(text) {}

  ChoiceTable table() {
    ChoiceTable table;
    next();
    if (line_ != "tessera choice 1") fail("a table begins with \"tessera choice 1\"");
    next();
    if (word() != "mesh") fail("the second line names the mesh, as in \"mesh data=2 model=4\"");
    while (!line_.empty()) {
      const std::string_view axis = word();
      const std::size_t equals = axis.find('=');
      if (equals == std::string_view::npos || table.axes.size() == max_axes)
        fail("an axis has a size, as in \"data=2\", and a mesh has at most 6");
      table.axes.emplace_back(axis.substr(0, equals));
      table.sizes.push_back(static_cast<int>(number(axis.substr(equals + 1))));
    }
    next();
    if (word() != "objective")
      fail("the third line is \"objective time\" or \"objective payload\"");
    if (line_ != "time" && line_ != "payload") fail("the objective is time or payload");
    table.objective = line_ == "time" ? Objective::time : Objective::payload;
    next();
    if (word() != "cost") fail("the fourth line is \"cost before=… after=… bound=…\"");
    table.before = stated("before=");
    table.cost = stated("after=");
    table.bound = stated("bound=");
    while (next())
      if (const bool again = line_.substr(0, 6) == "again "; again || line_.substr(0, 5) == "kept ")
        table.layers.push_back({std::string(line_.substr(again ? 6 : 5)), again});
      else
        table.tensors.push_back(row(table));
    return table;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw FileError("a choice cannot be read: line " + std::to_string(number_) + ": " + why +
                    "; write it by to_string(table_of(choice)), or choose anew");
  }
  bool next() {
    ++number_;
    if (text_.empty()) return line_ = {}, false;
    const std::size_t end = text_.find('\n');
    line_ = text_.substr(0, end);
    text_ = end == std::string_view::npos ? std::string_view{} : text_.substr(end + 1);
    return true;
  }
  std::string_view word() {
    const std::size_t end = line_.find(' ');
    const std::string_view one = line_.substr(0, end);
    line_ = end == std::string_view::npos ? std::string_view{} : line_.substr(end + 1);
    return one;
  }
  Index number(std::string_view digits) const {
    Index value = 0;
    const auto [end, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (wrong != std::errc() || end != digits.data() + digits.size() || value < 0)
      fail("\"" + std::string(digits) + "\" is no whole number");
    return value;
  }
  Cost stated(std::string_view name) {
    const std::string_view one = word();
    if (one.substr(0, name.size()) != name) fail(std::string(name) + " is missing");
    return number(one.substr(name.size()));
  }
  ChosenTensor row(const ChoiceTable& table) {
    ChosenTensor row;
    const std::string_view how = word(), type = word();
    if (how != "chosen" && how != "stated")
      fail("a tensor is chosen or stated, a layer again or kept");
    row.free = how == "chosen";
    int t = 0;
    while (t < dtypes && name_of(static_cast<DType>(t)) != type) ++t;
    if (t == dtypes) fail("\"" + std::string(type) + "\" is no element type");
    row.type = static_cast<DType>(t);
    std::string_view extents = word();
    while (!extents.empty() && extents != "scalar") {
      const std::size_t x = extents.find('x');
      if (row.extents.size() == max_dims) fail("a tensor has at most 8 dimensions");
      row.extents.push_back(number(extents.substr(0, x)));
      extents = x == std::string_view::npos ? std::string_view{} : extents.substr(x + 1);
    }
    row.sharding = sharding(word(), table);
    if (row.sharding.rank() != row.extents.size() ||
        !check(row.sharding, static_cast<int>(table.axes.size())).ok())
      fail("the sharding does not fit the extents, or uses an axis twice");
    row.name = std::string(line_);
    return row;
  }
  int axis(std::string_view name, const ChoiceTable& table) const {
    const auto at = std::find(table.axes.begin(), table.axes.end(), name);
    if (at == table.axes.end()) fail("the mesh has no axis \"" + std::string(name) + "\"");
    return static_cast<int>(at - table.axes.begin());
  }
  /// Reads "P<data,_,Axes<model,expert>,Unreduced<Sum,pipe>>".
  Sharding sharding(std::string_view text, const ChoiceTable& table) const {
    Sharding s;
    if (text.substr(0, 2) != "P<" || text.back() != '>') fail("a sharding is written P<…>");
    text = text.substr(2, text.size() - 3);
    while (!text.empty()) {
      const bool list = text.substr(0, 5) == "Axes<", rest = text.substr(0, 10) == "Unreduced<";
      const std::size_t end = text.find(list || rest ? '>' : ',');
      std::string_view entry = text.substr(0, end);
      text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
      if ((list || rest) && !text.empty() && text[0] == ',') text = text.substr(1);
      if (s.rank() == max_dims && !rest) fail("a tensor has at most 8 dimensions");
      AxisList axes;
      if (list || rest) entry = entry.substr(list ? 5 : 10);
      if (rest) {
        const std::size_t comma = entry.find(',');
        const std::string_view tag = entry.substr(0, comma);
        entry = comma == std::string_view::npos ? std::string_view{} : entry.substr(comma + 1);
        int r = 0;
        while (r < 8 && tag_name(static_cast<Reduction>(r)) != tag) ++r;
        if (r == 8) fail("\"" + std::string(tag) + "\" is no reduction");
        s.reduction = static_cast<Reduction>(r);
      }
      while (!entry.empty() && entry != "_") {
        const std::size_t comma = entry.find(',');
        if (axes.size() == max_axes) fail("a mesh has at most 6 axes");
        axes.push_back(axis(entry.substr(0, comma), table));
        entry = comma == std::string_view::npos ? std::string_view{} : entry.substr(comma + 1);
      }
      if (rest)
        s.partial = axes.set();
      else
        s.dims.push_back(axes);
    }
    return s;
  }

  std::string_view text_, line_;
  int number_ = 0;
};
}  // namespace detail

TESSERA_FUNCTION ChoiceTable parse_choice(std::string_view text) {
  return detail::ChoiceText(text).table();
}

}  // namespace tessera
