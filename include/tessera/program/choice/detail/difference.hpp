// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How the table of a choice is made and compared.
///
///     table_of(choice)
///
/// Laws: those of program/choice/difference.hpp.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/program/choice/detail/choose.hpp>
#include <tessera/program/choice/detail/table.hpp>
#include <tessera/program/choice/difference.hpp>

namespace tessera {

namespace detail {
/// Returns a line for each open layer that runs again and was kept, or the other way round.
inline std::string layers_that_differ(const std::vector<ChosenLayer>& now,
                                      const std::vector<ChosenLayer>& before) {
  std::string text;
  LayersByName were(before);
  for (const ChosenLayer& layer : now) {
    const bool again = were.next(layer.name);
    if (again != layer.again)
      text +=
          "  layer " + layer.name + (again ? ": ran again, is kept\n" : ": was kept, runs again\n");
  }
  return text;
}
}  // namespace detail

TESSERA_FUNCTION ChoiceTable table_of(const Choice& choice) {
  const Program& given = choice.question->program();
  ChoiceTable table{{}, {}, choice.objective, choice.before, choice.cost, choice.bound, {}};
  for (const auto& name : given.names()) table.axes.emplace_back(name);
  for (int a = 0; a < given.mesh.rank(); ++a) table.sizes.push_back(given.mesh[a]);
  for (const int t : detail::tensors_in_order(given)) {
    ChosenTensor row = detail::chosen_row(given, t);
    row.sharding = choice.chosen[static_cast<std::size_t>(t)];
    row.free = choice.free[static_cast<std::size_t>(t)];
    table.tensors.push_back(row);
  }
  table.layers = choice.layers;
  return table;
}

TESSERA_FUNCTION std::string difference(const Choice& choice, const ChoiceTable& before) {
  const detail::ChoiceQuestion& question = *choice.question;
  const Program& program = question.program();
  const AxisNames names = program.names(), were = detail::names_of(before);
  const std::vector<int> row = detail::aligned(program, before);
  std::vector<bool> found(before.tensors.size(), false);
  detail::TextTable table;
  int changed = 0, appeared = 0;
  MinMarginals why;
  for (const int t : detail::tensors_in_order(program)) {
    const int at = row[static_cast<std::size_t>(t)];
    const Sharding& now = choice.chosen[static_cast<std::size_t>(t)];
    const std::string what = detail::tensor_text(program, t);
    const std::string extents = to_string(program.tensor(t).desc.extents);
    if (at < 0) {
      ++appeared;
      table.row({"#" + std::to_string(t), what, extents, "new", "", to_string(now, names), ""});
      continue;
    }
    found[static_cast<std::size_t>(at)] = true;
    const ChosenTensor& was = before.tensors[static_cast<std::size_t>(at)];
    if (to_string(was.sharding, were) == to_string(now, names)) continue;
    ++changed;
    std::string price =
        choice.free[static_cast<std::size_t>(t)] ? "as it was: not possible" : "stated";
    Sharding old;
    if (detail::on_mesh(before, was, program, old) && question.has_choice(t)) {
      if (why.least.empty()) why = min_marginals(question.network());
      const std::vector<Cost> prices = detail::prices_of_homes(question, why, t);
      const std::vector<Sharding> shardings = question.shardings(t);
      Cost least = infeasible;
      for (std::size_t i = 0; i < shardings.size(); ++i)
        if (shardings[i] == old) least = prices[i];
      if (is_feasible(least))
        price = std::string("as it was: ") + (why.exact ? "" : "at least ") +
                detail::price_text(choice.objective, least);
    }
    table.row({"#" + std::to_string(t), what, extents, to_string(was.sharding, were), "->",
               to_string(now, names), price});
  }
  int gone = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i]) continue;
    ++gone;
    const ChosenTensor& was = before.tensors[i];
    table.row(
        {"", was.name, to_string(was.extents), to_string(was.sharding, were), "->", "gone", ""});
  }
  const std::string layers = detail::layers_that_differ(choice.layers, before.layers);
  return "choice: " + detail::counted(changed, "tensor") + " split otherwise, " +
         std::to_string(appeared) + " new, " + std::to_string(gone) + " gone; " +
         detail::price_text(before.objective, before.cost) + " before, " +
         detail::price_text(choice.objective, choice.cost) + " now\n" + layers + table.text("  ");
}

TESSERA_FUNCTION std::string specs_of(const Choice& choice) {
  const Program& program = choice.question->program();
  const AxisNames names = program.names();
  std::string text;
  std::vector<std::string> taken;
  for (const int t : detail::tensors_in_order(program)) {
    if (!choice.free[static_cast<std::size_t>(t)]) continue;
    std::string name;
    for (const char c : detail::tensor_text(program, t))
      name += (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ? c : '_';
    if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name = "t_" + name;
    const auto same = std::count(taken.begin(), taken.end(), name);
    taken.push_back(name);
    if (same > 0) name += "_" + std::to_string(same + 1);
    text += "using " + name + " = " + to_string(choice.chosen[static_cast<std::size_t>(t)], names) +
            ";  // " + detail::tensor_text(program, t) + ", " +
            to_string(program.tensor(t).desc.extents) + "\n";
  }
  return text;
}

}  // namespace tessera
