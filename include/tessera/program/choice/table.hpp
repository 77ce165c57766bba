// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What a choice says, without its Program: a table that is printed, compared, kept beside a
/// source (io/choice_file.hpp), and given to another choice.
///
///     ChoiceTable table = table_of(choice);          // program/choice/difference.hpp
///     table == parse_choice(to_string(table));
///     ChooseOptions{.previous = keep(table)};    // stays as it is where nothing else costs less
///
/// A tensor is found again by its name, the layer and label of its operator, its type and extents,
/// and its place among the others: the rows of two tables are aligned so that as many as possible
/// stand for each other.
///
/// Laws: parse_choice(to_string(t)) is t; a table fits its own Program in every row.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/choice/chosen_layer.hpp>
#include <tessera/program/choice/options.hpp>
#include <tessera/solve/cost.hpp>

namespace tessera {

/// One tensor of a choice.
struct ChosenTensor {
  std::string name;  ///< "argument", or the layer and label of the operator that makes it
  DType type = DType::f32;
  Extents extents;
  Sharding sharding;
  bool free = false;  ///< chosen; else it was stated
  bool operator==(const ChosenTensor&) const = default;
};

struct ChoiceTable {
  std::vector<std::string> axes;  ///< the mesh's, by which shardings are printed
  std::vector<int> sizes;         ///< of the axes
  Objective objective = Objective::time;
  Cost before = 0, cost = 0, bound = 0;
  std::vector<ChosenTensor> tensors;     ///< in the order in which operators have them first
  std::vector<ChosenLayer> layers = {};  ///< those that were open
  bool operator==(const ChoiceTable&) const = default;
};

/// Returns a table as the text of a file, one line for each open layer and each tensor.
TESSERA_FUNCTION std::string to_string(const ChoiceTable& table);
/// Returns the table of a text. Throws FileError, which names the line, where it is none.
TESSERA_FUNCTION ChoiceTable parse_choice(std::string_view text);
namespace detail {
/// Returns for each tensor of a Program the row of the table that stands for it; -1: none.
TESSERA_FUNCTION std::vector<int> aligned(const Program& program, const ChoiceTable& table);
}  // namespace detail

/// Returns a table for ChooseOptions.
inline std::shared_ptr<const ChoiceTable> keep(ChoiceTable table) {
  return std::make_shared<const ChoiceTable>(std::move(table));
}

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/choice/detail/table.hpp>
#endif
