// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Plans and Programs as short tables of text. fmt formatters that call these are op/format.hpp's.
///
///     std::string text = explain(plan, names);
///
/// Laws: the text is a function of the plan and the axis names alone, so that it can be compared as
/// a golden file.
#include <algorithm>
#include <string>
#include <vector>

#include <tessera/plan/overruled.hpp>
#include <tessera/plan/summary.hpp>

namespace tessera {

namespace detail {
/// Returns n in the largest unit of which there is at least one, with at most one decimal, cut.
template <int N>
std::string scaled_text(std::int64_t n, std::int64_t step, const char* const (&units)[N]) {
  int unit = 0;
  std::int64_t scale = 1;
  while (unit + 1 < N && n / scale >= step) {
    scale *= step;
    ++unit;
  }
  const std::int64_t whole = n / scale;
  const std::int64_t tenths = (n - whole * scale) * 10 / scale;
  return std::to_string(whole) + (tenths > 0 ? "." + std::to_string(tenths) : "") + " " +
         units[unit];
}
}  // namespace detail

/// Returns bytes as "768 B", "1.5 KiB", "80 MiB".
inline std::string bytes_text(Index bytes) {
  static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  return detail::scaled_text(bytes, 1024, units);
}
/// Returns an operation count as "12.5 Gflop".
inline std::string flops_text(Index flops) {
  static constexpr const char* units[] = {"flop", "kflop", "Mflop", "Gflop", "Tflop", "Pflop"};
  return detail::scaled_text(flops, 1000, units);
}
/// Returns a model time in picoseconds as "3.2 us".
inline std::string time_text(std::int64_t picoseconds) {
  static constexpr const char* units[] = {"ps", "ns", "us", "ms", "s"};
  return detail::scaled_text(picoseconds, 1000, units);
}

/// Returns "data=2 x model=4".
inline std::string to_string(const MeshShape& mesh, const AxisNames& names) {
  std::string text;
  for (int a = 0; a < mesh.rank(); ++a)
    text += (a > 0 ? " x " : "") +
            (a < names.size() ? std::string(names[a]) : "axis" + std::to_string(a)) + "=" +
            std::to_string(mesh[a]);
  return text;
}

/// Returns "data,model".
inline std::string to_string(AxisSet axes, const AxisNames& names) {
  std::string text;
  for (int a = 0; a < max_axes; ++a)
    if (axes.contains(a))
      text += (text.empty() ? "" : ",") +
              (a < names.size() ? std::string(names[a]) : "axis" + std::to_string(a));
  return text;
}

/// Returns "f32 8x512x5120 P<data,_,model>".
inline std::string to_string(const TensorDesc& desc, const AxisNames& names) {
  return std::string(name_of(desc.type)) + " " + to_string(desc.extents) + " " +
         to_string(desc.sharding, names);
}

namespace detail {
/// Rows of text with columns as wide as their widest cell.
class TextTable {
 public:
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text(const std::string& indent) const {
    std::vector<std::size_t> width;
    for (const auto& r : rows_)
      for (std::size_t c = 0; c < r.size(); ++c) {
        if (c >= width.size()) width.push_back(0);
        width[c] = std::max(width[c], r[c].size());
      }
    std::string out;
    for (const auto& r : rows_) {
      std::string line = indent;
      for (std::size_t c = 0; c < r.size(); ++c)
        line += r[c] + std::string(width[c] - r[c].size() + 2, ' ');
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
    return out;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

inline std::string step_name(const Step& step, const AxisNames& names) {
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
         (slot.panel_dim >= 0 ? " in " + std::to_string(slot.panels) + " panels" : "");
}
/// How far what a process has of a slot reaches beyond its block: " with halo 1_1x0_2", low_high
/// for each dimension; negative where it has less. Nothing of a slot that is its block.
inline std::string halo_text(const Box& own, const Box& has) {
  if (own == has) return "";
  if (has.empty() || own.rank() != has.rank()) return " with halo, empty";
  std::string text = " with halo ";
  for (int d = 0; d < has.rank(); ++d)
    text += (d > 0 ? "x" : "") + std::to_string(own[d].lo - has[d].lo) + "_" +
            std::to_string(has[d].hi - own[d].hi);
  return text;
}
inline std::string halo_text(const Plan& plan, const Slot& slot) {
  if (slot.region < 0) return "";
  const Coordinates at = plan.mesh.coordinates(plan.process);
  return halo_text(block(slot.desc.extents, slot.desc.sharding, plan.mesh, at),
                   needed(plan.regions[slot.region], plan.mesh, at));
}
/// What a step has made when it is done. Of one that takes the border of a block in several pieces,
/// what they make together.
inline std::string halo_text(const Plan& plan, const Step& step) {
  Slot made = plan.slots[step.out];
  if (step.region >= 0 && made.region >= 0 && !step.adjoint) made.region = step.region;  // so far
  if (!step.overlaps) return halo_text(plan, made);
  const Coordinates at = plan.mesh.coordinates(plan.process);
  const Slot& source = plan.slots[step.in[0]];
  const Box own = block(source.desc.extents, source.desc.sharding, plan.mesh, at);
  Box all = own;
  for (int k = 0; k < step.in.size(); ++k) {
    const Box piece = needed(plan.regions[plan.slots[step.output(k)].region], plan.mesh, at);
    for (int d = 0; !piece.empty() && d < all.rank(); ++d)
      all[d] = {min_of(all[d].lo, piece[d].lo), max_of(all[d].hi, piece[d].hi)};
  }
  return halo_text(own, all);
}
}  // namespace detail

/// Returns the plan as a table: the operands, a row a step with what it moves and computes on this
/// process; which operands' sharding was overruled, and by what; totals.
inline std::string explain(const Plan& plan, const AxisNames& names) {
  std::string text = std::string(name_of(plan.kind));
  if (plan.kind == OperatorKind::reduce) text += " " + std::string(name_of(plan.reduction));
  if (plan.kind == OperatorKind::scatter)
    text += plan.reduction == Reduction::none ? " set" : " " + std::string(name_of(plan.reduction));
  text += " on " + to_string(plan.mesh, names) + ", process " + std::to_string(plan.process) + "\n";
  detail::TextTable table;
  for (int i = 0; i < plan.operands; ++i)
    table.row({"operand " + std::to_string(i + 1), to_text(plan.slots[i].labels),
               detail::tensor_text(plan.slots[i], names) + detail::halo_text(plan, plan.slots[i])});
  for (const Step& step : plan.steps) {
    std::vector<std::string> cells{
        detail::step_name(step, names), "->",
        detail::slot_text(plan.slots[step.out], names) + detail::halo_text(plan, step)};
    if (step.kind == StepKind::communicate)
      cells.push_back(bytes_text(step.payload) + ", " + std::to_string(step.messages) +
                      (step.messages == 1 ? " message" : " messages") +
                      (step.level == Level::network
                           ? ", " + bytes_text(step.network_payload) + " between nodes"
                           : "") +
                      (step.rounds > 1 ? " in " + std::to_string(step.rounds) + " rounds" : ""));
    else
      cells.push_back(step.flops > 0 ? flops_text(step.flops) : std::string());
    table.row(std::move(cells));
  }
  text += table.text("  ");
  for (const Overruled& one : overruled(plan)) text += "  " + to_string(one, names) + "\n";
  Slot result = plan.slots[plan.result];
  result.desc = plan.result_desc();
  if (plan.result < plan.operands) result.place = {};
  text += "  result " + detail::tensor_text(result, names) + detail::halo_text(plan, result) +
          "; payload " + bytes_text(plan.payload_bytes()) + ", workspace " +
          bytes_text(plan.peak_bytes) + ", " + flops_text(plan.flops()) + "\n";
  return text;
}

namespace detail {
inline std::string messages_text(Index messages) {
  return std::to_string(messages) + (messages == 1 ? " message" : " messages");
}
/// A row a group of axes and collective.
inline TextTable axes_table(const Program& program) {
  TextTable table;
  for (const CollectiveTotal& t : by_axes(program))
    table.row(
        {"over " + to_string(t.axes, program.names()), std::string(name_of(t.collective)),
         bytes_text(t.payload) + " in " + messages_text(t.messages) +
             (t.network_payload > 0 ? ", " + bytes_text(t.network_payload) + " between nodes" : ""),
         time_text(t.cost)});
  return table;
}
/// A row a layer, indented by its depth.
inline TextTable layer_table(const Program& program) {
  TextTable table;
  table.row({"layer", "operators", "payload", "messages", "work", "duplicated", "peak memory",
             "model time"});
  for (const LayerTotal& t : by_layer(program)) {
    if (t.depth == 0) continue;
    const auto& name = t.path.substr(t.path.rfind('/') + 1);
    table.row({std::string(2 * static_cast<std::size_t>(t.depth - 1), ' ') + name,
               std::to_string(t.operators), bytes_text(t.payload), std::to_string(t.messages),
               flops_text(t.flops), flops_text(t.duplicated), bytes_text(t.peak),
               time_text(t.cost)});
  }
  return table;
}
}  // namespace detail

/// Returns a Program as a table: a row an operator; then its layers, the payload of each group of
/// axes and collective, the work that several processes do alike (the `most` largest), totals.
inline std::string explain(const Program& program, int most = 8) {
  const AxisNames names = program.names();
  std::string text = "program on " + to_string(program.mesh, names) + ", process " +
                     std::to_string(program.process) + ": " + std::to_string(program.size()) +
                     " operators\n";
  const bool layered = program.layers().size() > 1;
  detail::TextTable table;
  int layer = 0;
  const auto end_layer = [&] {  // a table for each run of operators of one layer
    const std::string path = program.layer_path(layer);
    const std::string rows = table.text(path.empty() ? "  " : "    ");
    if (!rows.empty() && !path.empty()) text += "  " + path + "\n";
    text += rows;
    table = {};
  };
  for (const ProgramEntry& e : program.entries()) {
    if (e.layer != layer) end_layer();
    layer = e.layer;
    std::string moves;
    for (const Step& step : e.plan->steps)
      if (step.kind == StepKind::communicate)
        moves += (moves.empty() ? "" : ", ") + detail::step_name(step, names);
    table.row({std::string(name_of(e.plan->kind)), e.label, to_string(e.plan->result_desc(), names),
               moves.empty() ? "-" : moves, bytes_text(e.plan->payload_bytes()),
               e.plan->flops() > 0 ? flops_text(e.plan->flops()) : "-"});
  }
  end_layer();
  if (layered) text += detail::layer_table(program).text("  ");
  text += detail::axes_table(program).text("  ");
  std::vector<DuplicatedWork> twice = duplicated_work(program);
  std::stable_sort(
      twice.begin(), twice.end(),
      [](const DuplicatedWork& a, const DuplicatedWork& b) { return a.extra > b.extra; });
  for (std::size_t i = 0; i < twice.size() && static_cast<int>(i) < most; ++i)
    text += "  duplicated: " + flops_text(twice[i].extra) + " of " + flops_text(twice[i].flops) +
            " in #" + std::to_string(twice[i].entry + 1) + " " +
            program.entry(twice[i].entry).label + ", done alike by " +
            std::to_string(twice[i].copies) + " processes\n";
  text += "  payload " + bytes_text(program.payload_bytes()) + " in " +
          detail::messages_text(program.messages()) +
          (program.network_bytes() > 0
               ? ", " + bytes_text(program.network_bytes()) + " of it between nodes"
               : "") +
          ", " + flops_text(program.flops()) + " of which " +
          flops_text(program.duplicated_flops()) + " duplicated, peak memory " +
          bytes_text(program.peak_bytes()) + ", model time " + time_text(program.cost()) + "\n";
  return text;
}

}  // namespace tessera
