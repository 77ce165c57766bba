// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a schedule is checked.
///
///     check_schedule(model, schedule).why
///
/// Laws: those of program/pipeline/check.hpp.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <tessera/program/pipeline/check.hpp>
#include <tessera/program/pipeline/detail/action_graph.hpp>

namespace tessera {
namespace detail {

/// Returns what is wrong with the lists themselves: empty where each stage goes forward and back
/// once by each micro-batch, on its part.
inline std::string fault_of_lists(const PipelineModel& model, const PipelineSchedule& s) {
  const auto stages = static_cast<std::size_t>(s.stages());
  if (model.stages.size() != stages)
    return "the schedule has " + std::to_string(stages) + " stages, and the model " +
           std::to_string(model.stages.size()) + "; make it for as many";
  for (std::size_t i = 0; i < stages; ++i)
    if (s.part_of[i] < 0 || s.part_of[i] >= s.parts())
      return "stage " + std::to_string(i) + " lies in part " + std::to_string(s.part_of[i]) +
             ", and the schedule has " + std::to_string(s.parts()) +
             " parts, numbered from 0; name one of them";
  const auto micro_batches = static_cast<std::size_t>(s.micro_batches);
  std::vector<unsigned> done(stages * micro_batches);  // a bit for each pass: F, I, W
  for (int part = 0; part < s.parts(); ++part)
    for (const PipelineAction& a : s.lists[static_cast<std::size_t>(part)]) {
      const std::string word = "part " + std::to_string(part) + " does " + to_string(a);
      if (a.stage < 0 || a.stage >= s.stages())
        return word + ", and there are " + std::to_string(stages) +
               " stages, numbered from 0; name one of them";
      if (a.micro_batch < 0 || a.micro_batch >= s.micro_batches)
        return word + ", and there are " + std::to_string(micro_batches) +
               " micro-batches, numbered from 0; name one of them";
      if (s.part(a.stage) != part)
        return word + ", and stage " + std::to_string(a.stage) + " lies in part " +
               std::to_string(s.part(a.stage)) + "; a stage's actions stand in its part's list";
      unsigned& bits = done[static_cast<std::size_t>(a.stage) * micro_batches +
                            static_cast<std::size_t>(a.micro_batch)];
      const unsigned own = a.pass == PipelinePass::forward           ? 1U
                           : a.pass == PipelinePass::backward        ? 6U
                           : a.pass == PipelinePass::backward_inputs ? 2U
                                                                     : 4U;
      if ((bits & own) != 0)
        return word +
               (own == 1U
                    ? " twice; each micro-batch goes forward once"
                    : " when it has gone back already; each micro-batch goes back once: by B, "
                      "or by I and W");
      bits |= own;
    }
  const unsigned all = s.goes_back() ? 7U : 1U;
  for (std::size_t i = 0; i < done.size(); ++i)
    if (done[i] != all) {
      const auto stage = static_cast<int>(i / micro_batches);
      const auto micro_batch = static_cast<int>(i % micro_batches);
      const PipelinePass pass = (done[i] & 1U) == 0   ? PipelinePass::forward
                                : done[i] == 1U       ? PipelinePass::backward
                                : (done[i] & 2U) == 0 ? PipelinePass::backward_inputs
                                                      : PipelinePass::backward_weights;
      return "no part does " + to_string(PipelineAction{pass, stage, micro_batch}) +
             "; each stage goes forward and back by each micro-batch; add it to the list of part " +
             std::to_string(s.part(stage));
    }
  return "";
}

/// Returns the actions of a cycle, each of which waits for the next. Precondition: there is one
/// among the actions that are not `done`.
inline std::vector<int> cycle_among(const ActionGraph& graph, const std::vector<bool>& done) {
  const auto waits_for = [&](int a) {
    for (const ActionGraph::Before& b : graph.before(a))
      if (!done[static_cast<std::size_t>(b.action)]) return b.action;
    return -1;
  };
  int a = 0;
  while (done[static_cast<std::size_t>(a)]) ++a;
  std::vector<int> path;
  while (std::find(path.begin(), path.end(), a) == path.end()) {
    path.push_back(a);
    a = waits_for(a);
  }
  path.erase(path.begin(), std::find(path.begin(), path.end(), a));
  return path;
}
}  // namespace detail

TESSERA_FUNCTION PipelineFault check_schedule(const PipelineModel& model,
                                              const PipelineSchedule& schedule) {
  if (std::string why = detail::fault_of_lists(model, schedule); !why.empty())
    return {std::move(why), {}};
  const detail::ActionGraph graph(model, schedule);
  std::vector<bool> done(static_cast<std::size_t>(graph.size()));
  const int visited = graph.in_order([](int) { return 0; },
                                     [&](int a) { done[static_cast<std::size_t>(a)] = true; });
  if (visited == graph.size()) return {};
  PipelineFault fault;
  const std::vector<int> cycle = detail::cycle_among(graph, done);
  const auto word = [&](int a) {
    return to_string(graph[a]) + " of part " + std::to_string(graph.part(a));
  };
  fault.why = "some actions wait for each other: ";
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const int a = cycle[i], next = cycle[(i + 1) % cycle.size()];
    fault.cycle.push_back(graph[a]);
    const bool listed = next + 1 == a && graph.part(a) == graph.part(next);
    fault.why += word(a) + (listed ? " comes after " : " needs what is made by ") + word(next) +
                 (i + 1 < cycle.size() ? ", " : "");
  }
  fault.why += "; put one of them earlier in its part's list";
  return fault;
}

TESSERA_FUNCTION void require_schedule(const PipelineModel& model, const PipelineSchedule& schedule,
                                       Where where) {
  if (const PipelineFault fault = check_schedule(model, schedule); fault.any())
    throw UsageError("the schedule " + schedule.name + " cannot be carried out: " + fault.why,
                     where);
}

}  // namespace tessera
