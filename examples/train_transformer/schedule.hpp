// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The schedule that --stages, --schedule and --micro-batches ask for, and which layers each stage
/// has.
///
///     const PipelineSchedule schedule = schedule_of(flags, processes);      // its parts divide them
///     stage_of_block(2, 5, 2) == 0;    // of five layers the first stage has three
///
/// Laws: numbers that do not go together are a UsageError that names the flags.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/program/pipeline/check.hpp>
#include <tessera/program/pipeline/cut.hpp>
#include <tessera/program/pipeline/schedules.hpp>

#include "flags.hpp"

namespace train_transformer {

/// Returns the stage of layer `block` of `layers`: stages have as many as each other, or one more.
inline int stage_of_block(Index block, Index layers, int stages) {
  const Index each = layers / stages, more = layers % stages;
  const Index longer = more * (each + 1);  // layers in stages of one more
  return static_cast<int>(block < longer ? block / (each + 1) : more + (block - longer) / each);
}

/// Returns the stage of a weight by its path in the model.
inline int stage_of_weight(std::string_view path, Index layers, int stages) {
  constexpr std::string_view blocks = "blocks.";
  if (path.starts_with(blocks))
    return stage_of_block(std::stoll(std::string(path.substr(blocks.size()))), layers, stages);
  return path.starts_with("norm") || path.starts_with("head") ? stages - 1 : 0;
}

/// Returns which layers of scores() belong to which stage, and, where there is a loss, that too.
inline StageMap stage_map(Index layers, int stages, bool loss) {
  StageMap map{{"embedding", 0}, {"head", stages - 1}};
  for (Index l = 0; l < layers; ++l)
    map.add("block " + std::to_string(l), stage_of_block(l, layers, stages));
  if (loss) map.add("loss", stages - 1);
  return map;
}

/// Returns the way forward of one micro-batch through stages on these parts.
inline PipelineSchedule once_forward(const PipelineSchedule& s) {
  PipelineSchedule once{"forward, once", 1, s.part_of, {}};
  once.lists.resize(s.lists.size());
  for (int stage = 0; stage < s.stages(); ++stage)
    once.lists[static_cast<std::size_t>(s.part(stage))].push_back(
        {PipelinePass::forward, stage, 0});
  return once;
}

namespace detail {
[[noreturn]] inline void refuse(const std::string& text) { throw UsageError(text); }

/// Reads the table of a file: the part of a stage is the line that names it first.
inline PipelineSchedule read_table(const std::string& path) {
  std::ifstream in(path);
  if (!in)
    refuse("--schedule is given \"" + path +
           "\"; give gpipe, 1f1b, interleaved, zero-bubble, zero-bubble-v, or a file with a line "
           "for each part, such as 0F0,0F1,0B0,0B1");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  PipelineSchedule s = parse_schedule(text, {});
  std::vector<int> part_of;
  for (std::size_t p = 0; p < s.lists.size(); ++p)
    for (const PipelineAction& a : s.lists[p]) {
      const auto stage = static_cast<std::size_t>(a.stage);
      if (stage >= 10000)
        refuse("--schedule: the table in " + path + " names stage " + std::to_string(a.stage) +
               "; number stages from 0");
      if (stage >= part_of.size()) part_of.resize(stage + 1, -1);
      if (part_of[stage] < 0) part_of[stage] = static_cast<int>(p);
    }
  for (std::size_t stage = 0; stage < part_of.size(); ++stage)
    if (part_of[stage] < 0)
      refuse("--schedule: the table in " + path + " has stage " +
             std::to_string(part_of.size() - 1) + " and says nothing of stage " +
             std::to_string(stage) + "; give each stage its actions");
  s.part_of = std::move(part_of);
  s.name = path;
  if (!s.goes_back())
    refuse("--schedule: the table in " + path +
           " goes forward alone, and training goes back; add actions B, or I and W");
  return s;
}

/// Returns how many parts a schedule by name has. An interleaved one has the processes that --mesh
/// leaves for the axis, and without them half as many as stages.
inline int parts_of(const Flags& flags, int stages, int processes) {
  if (flags.schedule == "zero-bubble-v") {
    if (stages % 2 != 0)
      refuse("--stages " + std::to_string(stages) +
             ": a part of zero-bubble-v has two stages; give an even number");
    return stages / 2;
  }
  if (flags.schedule != "interleaved") return stages;
  const Index each = static_cast<Index>(flags.mesh.data) * flags.mesh.model;
  const bool given = each > 0 && !flags.dry;
  const int parts = given ? static_cast<int>(max_of(Index{1}, processes / each)) : stages / 2;
  if (parts < 1 || stages % parts != 0)
    refuse("--stages " + std::to_string(stages) +
           ": each part of interleaved has as many stages, " +
           (given ? "and there are " + std::to_string(parts) + " parts of " + std::to_string(each) +
                        " processes; give a multiple of them"
                  : "two without --mesh; give an even number"));
  return parts;
}
}  // namespace detail

/// Returns the schedule that flags ask for, on parts of as many of the processes. Throws UsageError
/// where there is none.
inline PipelineSchedule schedule_of(const Flags& flags, int processes) {
  using detail::refuse;
  const int stages = static_cast<int>(flags.stages);
  const std::string asked = "--stages " + std::to_string(stages);
  if (flags.stages > flags.sizes.layers)
    refuse(asked + " and --layers " + std::to_string(flags.sizes.layers) +
           ": each stage has a layer at least; give fewer stages, or more layers");
  const std::string& name = flags.schedule;
  const bool named = name == "gpipe" || name == "1f1b" || name == "interleaved" ||
                     name == "zero-bubble" || name == "zero-bubble-v";
  PipelineSchedule schedule;
  if (!named) {
    schedule = detail::read_table(name);
    if (schedule.stages() != stages)
      refuse(asked + ": the table in " + name + " has " + std::to_string(schedule.stages()) +
             " stages; give as many");
    if (flags.micro_batches > 0 && flags.micro_batches != schedule.micro_batches)
      refuse("--micro-batches " + std::to_string(flags.micro_batches) + ": the table in " + name +
             " has " + std::to_string(schedule.micro_batches) + "; leave the flag out");
    require_schedule(PipelineModel::chain(stages, {{1}, {1}, {1}}), schedule);
  } else {
    const int parts = detail::parts_of(flags, stages, processes);
    // Four for each part: the parts stand idle for less than a fifth of the time.
    const int m =
        static_cast<int>(flags.micro_batches > 0 ? flags.micro_batches
                                                 : min_of(flags.sizes.batch, Index{4} * parts));
    schedule = name == "gpipe"         ? gpipe(stages, m)
               : name == "1f1b"        ? one_f_one_b(stages, m)
               : name == "interleaved" ? interleaved(parts, stages / parts, m)
               : name == "zero-bubble" ? zero_bubble(stages, m)
                                       : zero_bubble_v(parts, m);
  }
  if (schedule.micro_batches > flags.sizes.batch)
    refuse("--micro-batches: a batch of " + std::to_string(flags.sizes.batch) + " rows in " +
           std::to_string(schedule.micro_batches) +
           " micro-batches; each has a row at least: give a larger --batch, or fewer of them");
  if (!flags.dry && processes % schedule.parts() != 0)
    refuse(asked + " by " + name + ": the stages lie on " + std::to_string(schedule.parts()) +
           " parts of as many processes, and there are " + std::to_string(processes) +
           "; start a multiple of the parts");
  return schedule;
}

}  // namespace train_transformer
