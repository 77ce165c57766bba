// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How the known schedules are made.
///
///     one_f_one_b(4, 8).lists[3]
///
/// Laws: those of program/pipeline/schedules.hpp.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <tessera/program/pipeline/detail/action_graph.hpp>
#include <tessera/program/pipeline/schedules.hpp>

namespace tessera {
namespace detail {

inline void require_counts(const char* name, int parts, int each, int micro_batches, Where where) {
  const auto refuse = [&](const std::string& what) {
    throw UsageError(std::string("the schedule ") + name + " is asked for with " + what +
                         "; it has at least one of each",
                     where);
  };
  if (parts < 1) refuse(std::to_string(parts) + " parts");
  if (each < 1) refuse(std::to_string(each) + " stages a part");
  if (micro_batches < 1) refuse(std::to_string(micro_batches) + " micro-batches");
}

/// Returns a schedule with empty lists, of stages that lie in the parts in turns.
inline PipelineSchedule empty_schedule(std::string name, int parts, int each, int micro_batches) {
  PipelineSchedule s{std::move(name), micro_batches, {}, {}};
  for (int stage = 0; stage < parts * each; ++stage) s.part_of.push_back(stage % parts);
  s.lists.resize(static_cast<std::size_t>(parts));
  return s;
}

/// Puts a part's list together: `ahead` actions forward, then one forward and one back by turns,
/// then the rest back.
inline std::vector<PipelineAction> in_turns(const std::vector<PipelineAction>& forward,
                                            const std::vector<PipelineAction>& back,
                                            std::size_t ahead) {
  std::vector<PipelineAction> list;
  std::size_t f = 0, b = 0;
  while (f < std::min(ahead, forward.size())) list.push_back(forward[f++]);
  while (f < forward.size()) {
    list.push_back(forward[f++]);
    list.push_back(back[b++]);
  }
  while (b < back.size()) list.push_back(back[b++]);
  return list;
}

/// What list_schedule is in the middle of.
class ListScheduler {
 public:
  ListScheduler(const PipelineModel& model, PipelineSchedule& s, const PipelinePolicy& policy)
      : model_(model),
        s_(s),
        policy_(policy),
        free_(s.lists.size()),
        held_(s.lists.size()),
        units_(3 * s.part_of.size() * at(s.micro_batches)),
        incoming_(3 * s.part_of.size()),
        next_(3 * s.part_of.size()) {
    for (const PipelineFlow& flow : model.flows) incoming_[flow.to.number()].push_back(&flow);
    first_.assign(s.lists.size(), s.stages());
    of_part_.assign(s.lists.size(), 0);
    for (int stage = s.stages() - 1; stage >= 0; --stage) {
      first_[at(s.part(stage))] = stage;
      ++of_part_[at(s.part(stage))];
    }
  }

  /// Returns whether all actions found a place.
  bool run() {
    const std::size_t all = (policy_.split ? 3 : 2) * s_.part_of.size() * at(s_.micro_batches);
    for (std::size_t done = 0; done < all; ++done) {
      Choice best;
      for (int part = 0; part < s_.parts(); ++part) {
        const Choice own = best_of(part);
        if (own.found && (!best.found || own.begin < best.begin)) best = own;
      }
      if (!best.found) return false;
      place(best);
    }
    return true;
  }

 private:
  static constexpr std::int64_t unknown = -1;
  struct Choice {
    bool found = false;
    std::int64_t begin = 0;
    int rank = 0;  ///< 0: back by inputs, 1: forward, 2: back by weights
    PipelineAction action;
  };
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  /// When the pass of a stage with a micro-batch ends; `unknown` + 1 based: 0 is not yet.
  std::int64_t& end_of(PipelinePlace p, int m) {
    return units_[p.number() * at(s_.micro_batches) + at(m)];
  }

  /// Returns when what a pass needs is there; `unknown` where it has no place yet.
  std::int64_t ready(PipelinePlace p, int m) {
    std::int64_t when = 0;
    const auto wait = [&](PipelinePlace before, std::int64_t transfer) {
      const std::int64_t end = end_of(before, m);
      if (end == 0)
        when = unknown;
      else if (when != unknown)
        when = std::max(when, end - 1 + transfer);
    };
    if (p.pass == PipelinePass::backward_inputs) wait({PipelinePass::forward, p.stage}, 0);
    if (p.pass == PipelinePass::backward_weights) wait({PipelinePass::backward_inputs, p.stage}, 0);
    for (const PipelineFlow* flow : incoming_[p.number()])
      if (!(flow->from == p))
        wait(flow->from, s_.part(flow->from.stage) == s_.part(p.stage) ? 0 : flow->time);
    return when;
  }
  /// How many stages' micro-batches a part holds more when it goes forward by a stage.
  int holds(int stage) const {
    const auto part = at(s_.part(stage));
    return !policy_.whole ? 1 : first_[part] == stage ? of_part_[part] : 0;
  }
  bool may_go_forward(int stage) const {
    const int more = holds(stage);
    return policy_.most_held == 0 || more == 0 ||
           held_[at(s_.part(stage))] + more <= policy_.most_held;
  }
  /// Returns whether the first is to be preferred; both may begin at the same time.
  bool before(const Choice& a, const Choice& b) const {
    if (a.rank != b.rank) return a.rank < b.rank;
    if (a.action.stage != b.action.stage && policy_.depth_first)
      return a.action.stage > b.action.stage;
    if (a.action.micro_batch != b.action.micro_batch)
      return a.action.micro_batch < b.action.micro_batch;
    return a.action.stage > b.action.stage;
  }
  Choice best_of(int part) {
    Choice best;
    for (int stage = 0; stage < s_.stages(); ++stage) {
      if (s_.part(stage) != part) continue;
      for (const PipelinePass pass :
           {PipelinePass::backward_inputs, PipelinePass::forward, PipelinePass::backward_weights}) {
        if (pass == PipelinePass::backward_weights && !policy_.split) continue;
        const int m = next_[PipelinePlace{pass, stage}.number()];
        if (m >= s_.micro_batches) continue;
        if (pass == PipelinePass::forward && !may_go_forward(stage)) continue;
        std::int64_t when = ready({pass, stage}, m);
        if (pass == PipelinePass::backward_inputs && !policy_.split && when != unknown)
          for (const PipelineFlow* flow :
               incoming_[PipelinePlace{PipelinePass::backward_weights, stage}.number()])
            if (end_of(flow->from, m) == 0) when = unknown;
        if (when == unknown) continue;
        const int rank = pass == PipelinePass::backward_inputs ? 0
                         : pass == PipelinePass::forward       ? 1
                                                               : 2;
        const PipelinePass as =
            pass == PipelinePass::backward_inputs && !policy_.split ? PipelinePass::backward : pass;
        const Choice own{true, std::max(when, free_[at(part)]), rank, {as, stage, m}};
        if (!best.found || own.begin < best.begin || (own.begin == best.begin && before(own, best)))
          best = own;
      }
    }
    return best;
  }
  void place(const Choice& c) {
    const PipelineAction& a = c.action;
    const auto part = at(s_.part(a.stage));
    const PipelineStage& stage = model_.stages[at(a.stage)];
    const bool whole = a.pass == PipelinePass::backward;
    const PipelinePlace place{whole ? PipelinePass::backward_inputs : a.pass, a.stage};
    free_[part] = c.begin + stage.unit(place.pass).time + (whole ? stage.weights.time : 0);
    end_of(place, a.micro_batch) = free_[part] + 1 - (whole ? stage.weights.time : 0);
    if (whole) end_of({PipelinePass::backward_weights, a.stage}, a.micro_batch) = free_[part] + 1;
    ++next_[place.number()];
    s_.lists[part].push_back(a);
    held_[part] += a.pass == PipelinePass::forward                     ? holds(a.stage)
                   : whole || a.pass == PipelinePass::backward_weights ? -1
                                                                       : 0;
  }

  const PipelineModel& model_;
  PipelineSchedule& s_;
  const PipelinePolicy& policy_;
  std::vector<std::int64_t> free_;  ///< when each part has ended what it has
  std::vector<int> held_;
  std::vector<int> first_, of_part_;  ///< each part's first stage, and how many it has
  std::vector<std::int64_t>
      units_;  ///< 1 + the end of each pass of each micro-batch; 0: it has no place
  std::vector<std::vector<const PipelineFlow*>> incoming_;
  std::vector<int> next_;  ///< the next micro-batch of each pass of each stage
};
}  // namespace detail

TESSERA_FUNCTION PipelineSchedule list_schedule(const PipelineModel& model,
                                                const std::vector<int>& part_of, int parts,
                                                int micro_batches, const PipelinePolicy& policy) {
  PipelineSchedule s{"of a list scheduler", micro_batches, part_of, {}};
  s.lists.resize(static_cast<std::size_t>(parts));
  if (!detail::ListScheduler(model, s, policy).run())
    for (std::vector<PipelineAction>& list : s.lists) list.clear();
  return s;
}

TESSERA_FUNCTION PipelineSchedule gpipe(int stages, int micro_batches, Where where) {
  detail::require_counts("gpipe", stages, 1, micro_batches, where);
  PipelineSchedule s = detail::empty_schedule("GPipe", stages, 1, micro_batches);
  for (int stage = 0; stage < stages; ++stage)
    for (const PipelinePass pass : {PipelinePass::forward, PipelinePass::backward})
      for (int m = 0; m < micro_batches; ++m)
        s.lists[static_cast<std::size_t>(stage)].push_back({pass, stage, m});
  return s;
}

TESSERA_FUNCTION PipelineSchedule one_f_one_b(int stages, int micro_batches, Where where) {
  detail::require_counts("one_f_one_b", stages, 1, micro_batches, where);
  PipelineSchedule s = interleaved(stages, 1, micro_batches, where);
  s.name = "1F1B";
  return s;
}

TESSERA_FUNCTION PipelineSchedule interleaved(int parts, int each, int micro_batches, Where where) {
  detail::require_counts("interleaved", parts, each, micro_batches, where);
  PipelineSchedule s = detail::empty_schedule("interleaved", parts, each, micro_batches);
  // Groups of `parts` micro-batches or a few more: a smaller one would not keep all parts busy, and
  // could wait for one that waits for it.
  const int groups = std::max(1, micro_batches / parts);
  const int largest = (micro_batches + groups - 1) / groups;
  for (int part = 0; part < parts; ++part) {
    std::vector<PipelineAction> forward, back;
    for (int g = 0, first = 0; g < groups; ++g) {
      const int end = first + (micro_batches - first + groups - g - 1) / (groups - g);
      for (int k = 0; k < each; ++k)
        for (int m = first; m < end; ++m) {
          forward.push_back({PipelinePass::forward, k * parts + part, m});
          back.push_back({PipelinePass::backward, (each - 1 - k) * parts + part, m});
        }
      first = end;
    }
    const int left = parts - 1 - part;
    const int ahead = each == 1 ? left : 2 * left + (each - 1) * largest;
    s.lists[static_cast<std::size_t>(part)] =
        detail::in_turns(forward, back, static_cast<std::size_t>(ahead));
  }
  return s;
}

TESSERA_FUNCTION PipelineSchedule zero_bubble(int stages, int micro_batches, Where where) {
  detail::require_counts("zero_bubble", stages, 1, micro_batches, where);
  PipelineSchedule s = detail::empty_schedule("zero-bubble", stages, 1, micro_batches);
  for (int stage = 0; stage < stages; ++stage) {
    std::vector<PipelineAction>& list = s.lists[static_cast<std::size_t>(stage)];
    int forward = 0, weights = 0;
    const auto go_forward = [&] {
      if (forward < micro_batches) list.push_back({PipelinePass::forward, stage, forward++});
    };
    for (int k = stage; k < stages; ++k) go_forward();
    for (int m = 0; m < micro_batches; ++m) {
      list.push_back({PipelinePass::backward_inputs, stage, m});
      if (m >= weights + stage) list.push_back({PipelinePass::backward_weights, stage, weights++});
      go_forward();
    }
    while (weights < micro_batches)
      list.push_back({PipelinePass::backward_weights, stage, weights++});
  }
  return s;
}

TESSERA_FUNCTION PipelineSchedule zero_bubble_v(int parts, int micro_batches, Where where) {
  detail::require_counts("zero_bubble_v", parts, 2, micro_batches, where);
  PipelineSchedule s{"zero-bubble V", micro_batches, {}, {}};
  for (int stage = 0; stage < 2 * parts; ++stage)
    s.part_of.push_back(stage < parts ? stage : 2 * parts - 1 - stage);
  const PipelineStage unit{{1}, {1}, {1}};
  PipelinePolicy policy;
  policy.most_held = 2 * parts;
  s.lists =
      list_schedule(PipelineModel::chain(2 * parts, unit), s.part_of, parts, micro_batches, policy)
          .lists;
  return s;
}

}  // namespace tessera
