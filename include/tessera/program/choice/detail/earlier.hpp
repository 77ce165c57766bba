// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A choice that repeats an earlier one, or stays near it.
///
///     Choice choice = EarlierChoices(program, planning, options).make();
///
/// Laws: with a previous choice the cost is not above that without it; of the tensors that are
/// split otherwise none can be kept, beside those that are kept, at the same cost.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/error.hpp>
#include <tessera/program/choice.hpp>
#include <tessera/program/choice/detail/free_tensors.hpp>
#include <tessera/program/choice/detail/search.hpp>
#include <tessera/program/choice/detail/table.hpp>

namespace tessera::detail {

// What program/choice/detail/search.hpp defines, which may include this header first.
inline Choice chosen_anew(const Program& program, const PlanOptions& planning,
                          const ChooseOptions& options);

class EarlierChoices {
 public:
  EarlierChoices(const Program& program, const PlanOptions& planning, const ChooseOptions& options)
      : program_(program), planning_(planning), options_(options) {}

  Choice make() {
    const FreeTensors tensors(program_, planning_, options_);
    if (options_.stated != nullptr) repeat(tensors, *options_.stated);
    choice_ = chosen_anew(program_, planning_, options_);
    if (options_.previous != nullptr) stay(tensors, *options_.previous);
    return std::move(choice_);
  }

 private:
  using Pins = std::vector<TensorPin>;

  /// Pins what the table chose.
  void repeat(const FreeTensors& tensors, const ChoiceTable& table) {
    const std::vector<int> row = aligned(program_, table);
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (row[i] < 0) continue;
      const ChosenTensor& was = table.tensors[static_cast<std::size_t>(row[i])];
      Sharding to;
      if (!was.free || !on_mesh(table, was, program_, to)) continue;
      const int t = static_cast<int>(i);
      if (tensors.is_free(t) && !takes_place(t))
        options_.pins.push_back({t, to});
      else if (program_.tensor(t).made < 0)
        require_born(t, to);
    }
  }
  /// Returns whether a tensor takes an argument's place, and lies as that does.
  bool takes_place(int t) const {
    return std::any_of(program_.pins().begin(), program_.pins().end(),
                       [&](const TensorPin& pin) { return pin.tensor == t && pin.like >= 0; });
  }
  void require_born(int t, const Sharding& to) const {
    const ProgramTensor& tensor = program_.tensor(t);
    if (OpenSharding(to).allows(tensor.desc.sharding, program_.mesh)) return;
    throw ShardingError("an argument of " + to_string(tensor.desc.extents) + " lies " +
                        to_string(tensor.desc.sharding, program_.names()) +
                        ", and the choice that is repeated has it " +
                        to_string(to, program_.names()) +
                        "; arguments are made as a choice says, by choice.argument(path); make it "
                        "so, or choose for arguments that lie as these do");
  }
  /// Keeps what the table has, where that costs no more.
  void stay(const FreeTensors& tensors, const ChoiceTable& table) {
    const std::vector<int> row = aligned(program_, table);
    Pins apart;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const int t = static_cast<int>(i);
      Sharding to;
      if (row[i] < 0 || !tensors.is_free(t) ||
          !on_mesh(table, table.tensors[static_cast<std::size_t>(row[i])], program_, to))
        continue;
      (choice_.chosen[i] == to ? options_.pins : apart).push_back({t, to});
    }
    for (bool kept = true; kept && !apart.empty();) {  // what is kept may let others be kept
      const Pins before = std::move(apart);
      apart.clear();
      kept = keep_of(before, 0, before.size(), apart);
    }
  }
  /// Keeps those of pins[from, to) that cost nothing; the others are put into `apart`. Returns
  /// whether any is kept.
  bool keep_of(const Pins& pins, std::size_t from, std::size_t to, Pins& apart) {
    if (from == to) return false;
    const Pins before = options_.pins;
    options_.pins.insert(options_.pins.end(), pins.begin() + static_cast<std::ptrdiff_t>(from),
                         pins.begin() + static_cast<std::ptrdiff_t>(to));
    if (try_pins()) return true;
    options_.pins = before;
    if (to - from == 1) return apart.push_back(pins[from]), false;
    const std::size_t middle = from + (to - from) / 2;
    const bool first = keep_of(pins, from, middle, apart);
    return keep_of(pins, middle, to, apart) || first;
  }
  bool try_pins() {
    try {
      Choice kept = chosen_anew(program_, planning_, options_);
      if (kept.cost > choice_.cost || (choice_.found && !kept.found)) return false;
      kept.bound = choice_.bound;  // of the question without these pins
      kept.question = choice_.question;
      choice_ = std::move(kept);
      return true;
    } catch (const ShardingError&) {  // other pins, or the limits, leave no place
      return false;
    }
  }

  const Program& program_;
  const PlanOptions& planning_;
  ChooseOptions options_;
  Choice choice_;
};

inline Choice chosen_beside_earlier(const Program& program, const PlanOptions& planning,
                                    const ChooseOptions& options) {
  return EarlierChoices(program, planning, options).make();
}

}  // namespace tessera::detail
