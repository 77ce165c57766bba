// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How plans and Programs become text.
///
///     detail::explain(plan, names, numbers, true)
///
/// Laws: those of program/explain.hpp.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/process_classes.hpp>
#include <tessera/plan/text.hpp>
#include <tessera/program/detail/over_processes.hpp>
#include <tessera/program/explain.hpp>
#include <tessera/program/overruled.hpp>
#include <tessera/program/payload_bound.hpp>
#include <tessera/program/summary.hpp>
#include <tessera/program/text_table.hpp>

namespace tessera {

namespace detail {
inline std::string step_name(const Step& step, const AxisNames& names) {
  if (step.loop)
    return std::string(name_of(step.loop.kind)) + " over " + to_string(step.group, names) +
           (step.loop.both_ways ? " both ways" : "") +
           (step.loop.layers.empty() ? ""
                                     : " in layers over " + to_string(step.loop.layers, names));
  if (step.kind != StepKind::communicate) return std::string(name_of(step.kind));
  return std::string(name_of(step.collective)) + " over " + to_string(step.group, names) +
         (step.near.empty() ? "" : " in levels") + (step.merges ? " and merge" : "");
}

/// Where a slot lies: its sharding, or its place.
inline std::string place_text(const Slot& slot, const AxisNames& names) {
  switch (slot.place.kind) {
    case Placement::Kind::root:
      return "on process " + std::to_string(slot.place.root);
    case Placement::Kind::boxes:
      return "in boxes";
    case Placement::Kind::sharded:
      break;
  }
  return to_string(slot.desc.sharding, names);
}

inline std::string tensor_text(const Slot& slot, const AxisNames& names) {
  return std::string(name_of(slot.desc.type)) + " " + to_string(slot.desc.extents) + " " +
         place_text(slot, names);
}

inline std::string slot_text(const Slot& slot, const AxisNames& names) {
  return (slot.labels.empty() ? "scalar" : to_text(slot.labels)) + " " + place_text(slot, names) +
         (slot.panel_dim >= 0 ? " in " + std::to_string(slot.panels) + " panels" : "") +
         (slot.own_part >= 0 ? ", the own part left" : "");
}

/// The halo within which a slot lies: " stored with halo 1_1x0_2", or nothing.
inline std::string stored_text(const Plan& plan, const Slot& slot) {
  if (slot.stored < 0) return "";
  std::string text;
  for (const HaloDim& d : plan.halos[slot.stored])
    text += (text.empty() ? " stored with halo " : "x") + std::to_string(d.low) + "_" +
            std::to_string(d.high);
  return text;
}

/// The part of a slot that a process owns, and the part that it holds.
struct OwnAndHas {
  Box own, has;
};

inline OwnAndHas has_of(const Plan& plan, const Slot& slot, const Coordinates& at) {
  const Box own = block(slot.desc.extents, slot.desc.sharding, plan.mesh, at);
  return {own, slot.region < 0 ? own : needed(plan.regions[slot.region], plan.mesh, at)};
}

/// The output of a step. For a step that takes the border of a block in several pieces, the output
/// of all pieces together.
inline OwnAndHas has_of(const Plan& plan, const Step& step, const Coordinates& at) {
  Slot made = plan.slots[step.out];
  if (step.region >= 0 && made.region >= 0 && !step.adjoint) made.region = step.region;  // so far
  if (!step.overlaps) return has_of(plan, made, at);
  const Slot& source = plan.slots[step.in[0]];
  const Box own = block(source.desc.extents, source.desc.sharding, plan.mesh, at);
  Box all = own;
  for (int k = 0; k < step.in.size(); ++k) {
    const Box piece = needed(plan.regions[plan.slots[step.output(k)].region], plan.mesh, at);
    for (int d = 0; !piece.empty() && d < all.rank(); ++d)
      all[d] = {min_of(all[d].lo, piece[d].lo), max_of(all[d].hi, piece[d].hi)};
  }
  return {own, all};
}

/// How far the part of a slot that a process holds reaches beyond its block: " with halo 1_1x0_2",
/// low_high for each dimension, the most of all processes (or on the plan's own); negative where it
/// holds less. Empty where all hold exactly their blocks.
template <class Made> std::string halo_text(const Plan& plan, const Made& made, bool own_only) {
  const OwnAndHas here = has_of(plan, made, plan.mesh.coordinates(plan.process));
  if (here.own.rank() != here.has.rank()) return " with halo, empty";
  Extents low(here.own.rank(), -max_int64), high = low;
  bool beyond = false, some = false;
  const auto take = [&](const OwnAndHas& one) {
    beyond = beyond || !(one.own == one.has);
    if (one.has.empty() && !(one.own == one.has)) return;
    some = true;
    for (int d = 0; d < low.size(); ++d) {
      low[d] = max_of(low[d], one.own[d].lo - one.has[d].lo);
      high[d] = max_of(high[d], one.has[d].hi - one.own[d].hi);
    }
  };
  take(here);
  ProcessClasses classes(plan.mesh);
  classes.add(plan);
  if (!own_only)
    classes.visit([&](int, const Coordinates& at, Index) { take(has_of(plan, made, at)); });
  if (!beyond) return "";
  if (!some) return " with halo, empty";
  std::string text = " with halo ";
  for (int d = 0; d < low.size(); ++d)
    text += (d > 0 ? "x" : "") + std::to_string(low[d]) + "_" + std::to_string(high[d]);
  return text;
}

inline std::string messages_text(Index messages) {
  return std::to_string(messages) + (messages == 1 ? " message" : " messages");
}

/// The most on one process, and which process has it, where processes differ.
template <class Text> std::string most_text(const Spread& s, const Text& text) {
  return text(s.most) + (s.even() ? "" : " (process " + std::to_string(s.process) + ")");
}

/// A product's payload over the least that any plan needs: ", 1.50 of its lower bound"; what a move
/// sends above the least: ", 504 B above its lower bound".
inline std::string bound_text(const Plan& plan, Index payload) {
  const Index least = payload_bound(plan);
  if (payload == 0 || saturated(payload)) return "";
  if (plan.kind != OperatorKind::einsum)
    return least == 0 || payload <= least
               ? ""
               : ", " + bytes_text(payload - least) + " above its lower bound";
  if (least == 0) return ", its lower bound 0 B";
  const Index percent = (payload * 100 + least / 2) / least;
  const Index rest = percent % 100;
  return ", " + std::to_string(percent / 100) + (rest < 10 ? ".0" : ".") + std::to_string(rest) +
         " of its lower bound";
}

/// A plan's table with these numbers: of its own process, or the most on one process.
inline std::string explain(const Plan& plan, const AxisNames& names, const PlanSpread& numbers,
                           bool own) {
  std::string text = std::string(name_of(plan.kind));
  if (plan.kind == OperatorKind::reduce) text += " " + std::string(name_of(plan.reduction));
  if (plan.kind == OperatorKind::scatter)
    text += plan.reduction == Reduction::none ? " set" : " " + std::string(name_of(plan.reduction));
  text += " on " + to_string(plan.mesh, names) +
          (own ? ", process " + std::to_string(plan.process) : ", most on one process") + "\n";
  TextTable table;
  for (int i = 0; i < plan.operands; ++i)
    table.row({"operand " + std::to_string(i + 1), to_text(plan.slots[i].labels),
               tensor_text(plan.slots[i], names) + halo_text(plan, plan.slots[i], own) +
                   stored_text(plan, plan.slots[i])});
  for (int i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    const StepSpread& number = numbers.steps[static_cast<std::size_t>(i)];
    std::vector<std::string> cells{step_name(step, names), "->",
                                   slot_text(plan.slots[step.out], names) +
                                       halo_text(plan, step, own) +
                                       stored_text(plan, plan.slots[step.out])};
    if (step.communicates())
      cells.push_back(bytes_text(number.payload.most) + ", " + messages_text(number.messages.most) +
                      (step.level == Level::network
                           ? ", " + bytes_text(number.network.most) + " between nodes"
                           : "") +
                      (step.rounds > 1 ? " in " + std::to_string(step.rounds) + " rounds" : "") +
                      (step.loop ? ", " + flops_text(number.flops.most) : ""));
    else
      cells.push_back(number.flops.most > 0 ? flops_text(number.flops.most) : std::string());
    table.row(std::move(cells));
  }
  text += table.text("  ");
  for (const Overruled& one : overruled(plan)) text += "  " + to_string(one, names) + "\n";
  if (plan.over_limit > 0)
    text +=
        "  the workspace limit is exceeded by " + bytes_text(plan.over_limit) + " (process 0)\n";
  Slot result = plan.slots[plan.result];
  result.desc = plan.result_desc();
  if (plan.result < plan.operands) result.place = {};
  return text + "  result " + tensor_text(result, names) + halo_text(plan, result, own) +
         "; payload " + most_text(numbers.payload, bytes_text) +
         (own ? "" : bound_text(plan, numbers.payload.most)) + ", workspace " +
         most_text(numbers.peak, bytes_text) + ", " + most_text(numbers.flops, flops_text) + "\n";
}
}  // namespace detail

TESSERA_FUNCTION std::string explain(const Plan& plan, const AxisNames& names) {
  return detail::explain(plan, names, over_processes(plan), false);
}

TESSERA_FUNCTION std::string explain_own(const Plan& plan, const AxisNames& names) {
  return detail::explain(plan, names, detail::own_numbers(plan), true);
}

namespace detail {
/// One row for each group of axes and collective.
inline TextTable axes_table(const Program& program, const ProgramSpread& numbers) {
  TextTable table;
  const std::vector<CollectiveTotal> totals = by_axes(program);
  for (std::size_t i = 0; i < totals.size(); ++i) {
    const AxesSpread& s = numbers.axes[i];
    table.row({"over " + to_string(s.axes, program.names()), std::string(name_of(s.collective)),
               bytes_text(s.payload.most) + " in " + messages_text(s.messages.most) +
                   (s.network.most > 0 ? ", " + bytes_text(s.network.most) + " between nodes" : ""),
               time_text(totals[i].cost)});
  }
  return table;
}

/// One row for each layer, indented by its depth.
inline TextTable layer_table(const Program& program, const ProgramSpread& numbers) {
  TextTable table;
  table.row({"layer", "operators", "payload", "messages", "work", "duplicated", "peak memory",
             "model time"});
  for (const LayerTotal& t : by_layer(program)) {
    if (t.depth == 0) continue;
    const TotalSpread& s = numbers.layers[static_cast<std::size_t>(t.layer)];
    const auto& name = t.path.substr(t.path.rfind('/') + 1);
    table.row({std::string(2 * static_cast<std::size_t>(t.depth - 1), ' ') + name,
               std::to_string(t.operators), bytes_text(s.payload.most),
               std::to_string(s.messages.most), flops_text(s.flops.most),
               flops_text(s.duplicated.most), bytes_text(s.peak.most), time_text(t.cost)});
  }
  return table;
}

/// Returns the name of a program's part: "stage=0", "manual model", "the mesh".
inline std::string part_text(const Program& program, int part) {
  const std::string& name = program.part_at(part).name;
  return name.empty() ? "the mesh" : name;
}

/// A program's table with these numbers; `whom` says whose they are.
inline std::string explain(const Program& program, const ProgramSpread& numbers,
                           const std::string& whom, int most) {
  const AxisNames names = program.names();
  std::string text = "program on " + to_string(program.mesh, names) + ", " + whom + ": " +
                     std::to_string(program.size()) + " operators\n";
  const bool layered = program.layers().size() > 1;
  TextTable table;
  int layer = 0, part = 0;
  const auto end_layer = [&] {  // a table for each run of operators of one layer and part
    std::string path = program.layer_path(layer);
    if (!program.parts().empty()) path += (path.empty() ? "" : ", ") + part_text(program, part);
    const std::string rows = table.text(path.empty() ? "  " : "    ");
    if (!rows.empty() && !path.empty()) text += "  " + path + "\n";
    text += rows;
    table = {};
  };
  for (int i = 0; i < program.size(); ++i) {
    const ProgramEntry& e = program.entry(i);
    const TotalSpread& number = numbers.entries[static_cast<std::size_t>(i)];
    if (e.layer != layer || e.part != part) end_layer();
    layer = e.layer;
    part = e.part;
    const AxisNames there = program.names_on(part);
    std::string moves;
    for (const Step& step : e.plan->steps)
      if (step.communicates()) moves += (moves.empty() ? "" : ", ") + step_name(step, there);
    const bool gone = e.result >= 0 && program.tensor(e.result).awaits;  // to another part
    const std::string made = gone ? to_string(program.tensor(e.result).desc,
                                              program.names_on(program.tensor(e.result).part)) +
                                        " on " + part_text(program, program.tensor(e.result).part)
                                  : to_string(e.plan->result_desc(), there);
    table.row({std::string(name_of(e.plan->kind)), e.label, made, moves.empty() ? "-" : moves,
               bytes_text(number.payload.most),
               number.flops.most > 0 ? flops_text(number.flops.most) : "-"});
  }
  end_layer();
  if (layered) text += layer_table(program, numbers).text("  ");
  text += axes_table(program, numbers).text("  ");
  std::vector<DuplicatedWork> twice = duplicated_work(program);
  std::stable_sort(
      twice.begin(), twice.end(),
      [](const DuplicatedWork& a, const DuplicatedWork& b) { return a.extra > b.extra; });
  for (std::size_t i = 0; i < twice.size() && static_cast<int>(i) < most; ++i)
    text += "  duplicated: " + flops_text(twice[i].extra) + " of " + flops_text(twice[i].flops) +
            " in #" + std::to_string(twice[i].entry + 1) + " " +
            program.entry(twice[i].entry).label + ", done alike by " +
            std::to_string(twice[i].copies) + " processes\n";
  return text + "  payload " + most_text(numbers.payload, bytes_text) + " in " +
         most_text(numbers.messages, messages_text) +
         (numbers.network.most > 0
              ? ", " + most_text(numbers.network, bytes_text) + " of it between nodes"
              : "") +
         ", " + most_text(numbers.flops, flops_text) + " of which " +
         most_text(numbers.duplicated, flops_text) + " duplicated, peak memory " +
         most_text(numbers.peak, bytes_text) + ", model time " + time_text(program.cost()) + "\n";
}
}  // namespace detail

TESSERA_FUNCTION std::string explain(const Program& program, int most) {
  return detail::explain(program, over_processes(program), "most on one process", most);
}

TESSERA_FUNCTION std::string explain_own(const Program& program, int most) {
  return detail::explain(program, detail::ProgramNumbers(program).of_own(),
                         "process " + std::to_string(program.process), most);
}

}  // namespace tessera
