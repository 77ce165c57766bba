// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a schedule is searched for, and the time that none can beat.
///
///     search_schedule(model, part_of, 8).gap()
///
/// Laws: those of program/pipeline/search.hpp.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/digest.hpp>
#include <tessera/plan/text.hpp>
#include <tessera/program/pipeline/detail/chart.hpp>
#include <tessera/program/pipeline/detail/simulate.hpp>
#include <tessera/program/pipeline/schedules.hpp>
#include <tessera/program/pipeline/search.hpp>

namespace tessera {
namespace detail {

/// The longest ways to and from each pass of each stage, for one micro-batch by itself.
struct PipelineWays {
  struct Unit {
    int part = 0;
    std::int64_t time = 0, head = 0, tail = 0;
  };
  std::vector<Unit> units;  ///< by PipelinePlace::number
  /// Of each stage, the longest way from the begin of its forward pass to the end of its way back
  /// by inputs.
  std::vector<std::int64_t> held;

  PipelineWays(const PipelineModel& model, const std::vector<int>& part_of) {
    struct Edge {
      std::size_t from, to;
      std::int64_t time;
    };
    std::vector<Edge> edges;
    for (std::size_t s = 0; s < part_of.size(); ++s) {
      const PipelineStage& stage = model.stages[s];
      for (const PipelineUnit* unit : {&stage.forward, &stage.inputs, &stage.weights})
        units.push_back({part_of[s], unit->time, 0, 0});
      edges.push_back({3 * s, 3 * s + 1, 0});
      edges.push_back({3 * s + 1, 3 * s + 2, 0});
    }
    for (const PipelineFlow& flow : model.flows) {
      const std::size_t from = flow.from.number(), to = flow.to.number();
      edges.push_back({from, to, units[from].part == units[to].part ? 0 : flow.time});
    }
    // As often as there are units at most; the flows of a model that can run have no cycle.
    bool changed = true;
    for (std::size_t round = 0; changed && round <= units.size(); ++round) {
      changed = false;
      for (const Edge& e : edges) {
        const std::int64_t head = units[e.from].head + units[e.from].time + e.time,
                           tail = units[e.to].tail + units[e.to].time + e.time;
        changed = changed || head > units[e.to].head || tail > units[e.from].tail;
        units[e.to].head = std::max(units[e.to].head, head);
        units[e.from].tail = std::max(units[e.from].tail, tail);
      }
    }
    std::stable_sort(edges.begin(), edges.end(), [&](const Edge& a, const Edge& b) {
      return units[a.from].head < units[b.from].head;
    });
    for (std::size_t s = 0; s < part_of.size(); ++s) {
      // How long after the forward pass began each unit can begin; -1: it does not follow.
      std::vector<std::int64_t> since(units.size(), -1);
      since[3 * s] = 0;
      changed = true;
      for (std::size_t round = 0; changed && round <= units.size(); ++round) {
        changed = false;
        for (const Edge& e : edges) {
          if (since[e.from] < 0) continue;
          const std::int64_t until = since[e.from] + units[e.from].time + e.time;
          changed = changed || until > since[e.to];
          since[e.to] = std::max(since[e.to], until);
        }
      }
      held.push_back(since[3 * s + 1] + units[3 * s + 1].time);
    }
  }
};

/// Returns when a machine has done its jobs and what follows each of them is done too, at the
/// earliest, where a job may be interrupted. There are `count` of each unit.
inline std::int64_t one_machine(std::vector<PipelineWays::Unit> units, std::int64_t count) {
  std::sort(units.begin(), units.end(),
            [](const auto& a, const auto& b) { return a.head < b.head; });
  std::vector<std::int64_t> left(units.size());
  for (std::size_t i = 0; i < units.size(); ++i) left[i] = units[i].time * count;
  std::int64_t now = 0, latest = 0;
  for (;;) {
    std::size_t best = units.size(), next = units.size();
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (left[i] == 0) continue;
      if (units[i].head > now) {
        next = std::min(next, i);
      } else if (best == units.size() || units[i].tail > units[best].tail) {
        best = i;
      }
    }
    if (best == units.size()) {
      if (next == units.size()) return latest;
      now = units[next].head;
      continue;
    }
    const std::int64_t until =
        next == units.size() ? left[best] : std::min(left[best], units[next].head - now);
    now += until;
    left[best] -= until;
    if (left[best] == 0) latest = std::max(latest, now + units[best].tail);
  }
}

/// Returns the least time for a part of which each micro-batch holds memory from its way forward to
/// its way back by weights, each of them for a time at least, and all within a limit.
inline std::int64_t held_bound(const PipelineModel& model, const PipelineWays& ways, int part,
                               std::int64_t count, Index limit) {
  double held = 0;
  std::int64_t first = max_int64, last = max_int64;
  for (std::size_t s = 0; s < model.stages.size(); ++s) {
    const PipelineStage& stage = model.stages[s];
    const PipelineWays::Unit &forward = ways.units[3 * s], &inputs = ways.units[3 * s + 1],
                             &weights = ways.units[3 * s + 2];
    const Index kept = stage.forward.held, then = kept + stage.inputs.held;
    if (forward.part != part || kept <= 0) continue;
    // While a stage goes forward it holds its peak, which is no less than what it keeps.
    const std::int64_t without = stage.forward.peak >= kept ? 0 : forward.time;
    held += static_cast<double>(kept) * static_cast<double>(ways.held[s] - without);
    if (then > 0) held += static_cast<double>(then) * static_cast<double>(weights.time);
    first = std::min(first, forward.head + without);
    last = std::min(last, then > 0 ? weights.tail : inputs.tail);
  }
  if (held == 0 || limit <= 0) return 0;
  const double least = held * static_cast<double>(count) / static_cast<double>(limit);
  return first + static_cast<std::int64_t>(std::min(least, 9e18)) + last;
}

/// Tries changes of a schedule.
class ScheduleSearcher {
 public:
  ScheduleSearcher(const PipelineModel& model, const ScheduleSearch& options, FoundSchedule& found)
      : model_(model), options_(options), found_(found) {}

  /// Keeps a schedule if it is better than the best one so far; returns whether it is.
  bool offer(const PipelineSchedule& s) {
    const auto idle = [](const auto& list) { return list.empty(); };
    if (std::all_of(s.lists.begin(), s.lists.end(), idle)) return false;
    ++found_.tried;
    if (check_schedule(model_, s).any()) return false;
    PipelineRun run = simulate(model_, s);
    const Index over = std::max<Index>(0, run.peak_bytes() - options_.memory_limit);
    if (best_over_ >= 0 && std::pair(over, run.time) > std::pair(best_over_, found_.run.time))
      return false;
    best_over_ = over;
    found_.schedule = s;
    found_.run = std::move(run);
    return true;
  }
  /// Moves single actions of the best schedule to other places of their lists.
  void improve() {
    if (best_over_ < 0) return;
    for (int i = 0; i < options_.tries && !proved(); ++i) {
      PipelineSchedule s = found_.schedule;
      auto& list = s.lists[random(s.lists.size())];
      if (list.empty()) continue;  // a part without a stage
      const std::size_t from = random(list.size());
      const std::size_t reach = 1 + random(8), to = random(2) == 0
                                                        ? from - std::min(from, reach)
                                                        : std::min(list.size() - 1, from + reach);
      const auto at = [&](std::size_t k) { return list.begin() + static_cast<std::ptrdiff_t>(k); };
      if (from < to)
        std::rotate(at(from), at(from + 1), at(to + 1));
      else
        std::rotate(at(to), at(from), at(from + 1));
      (void)offer(s);
    }
  }
  bool within_limit() const { return best_over_ == 0; }

 private:
  bool proved() const { return best_over_ == 0 && found_.run.time <= found_.bound; }
  std::size_t random(std::size_t below) {
    state_ = stirred(state_, 0x51ED'270B'9C3F'A8E5u);
    return static_cast<std::size_t>((state_ >> 11) % below);
  }

  const PipelineModel& model_;
  const ScheduleSearch& options_;
  FoundSchedule& found_;
  Index best_over_ = -1;
  std::uint64_t state_ = 1;
};

inline std::vector<PipelineSchedule> known_schedules(int stages, int parts, int micro_batches,
                                                     bool split) {
  std::vector<PipelineSchedule> all;
  if (stages == parts) {
    all.push_back(gpipe(parts, micro_batches));
    if (split) all.push_back(zero_bubble(parts, micro_batches));
  }
  if (stages % parts == 0) all.push_back(interleaved(parts, stages / parts, micro_batches));
  if (stages == 2 * parts && split) all.push_back(zero_bubble_v(parts, micro_batches));
  return all;
}
}  // namespace detail

TESSERA_FUNCTION std::int64_t pipeline_bound(const PipelineModel& model,
                                             const std::vector<int>& part_of, int micro_batches,
                                             Index memory_limit) {
  const detail::PipelineWays ways(model, part_of);
  std::int64_t bound = 0;
  for (const detail::PipelineWays::Unit& unit : ways.units)
    bound = std::max(bound, unit.head + unit.time + unit.tail);
  const int parts = part_of.empty() ? 0 : 1 + *std::max_element(part_of.begin(), part_of.end());
  for (int part = 0; part < parts; ++part) {
    std::vector<detail::PipelineWays::Unit> own;
    for (const detail::PipelineWays::Unit& unit : ways.units)
      if (unit.part == part) own.push_back(unit);
    bound = std::max(bound, detail::one_machine(own, micro_batches));
    if (memory_limit != max_int64)
      bound = std::max(bound, detail::held_bound(model, ways, part, micro_batches, memory_limit));
  }
  return bound;
}

TESSERA_FUNCTION FoundSchedule search_schedule(const PipelineModel& model,
                                               const std::vector<int>& part_of, int micro_batches,
                                               const ScheduleSearch& options, Where where) {
  detail::require_counts("that is searched for", part_of.empty() ? 0 : 1, 1, micro_batches, where);
  if (part_of.size() != model.stages.size())
    throw UsageError("a schedule is searched for " + std::to_string(part_of.size()) +
                         " stages, and the model has " + std::to_string(model.stages.size()) +
                         "; name a part for each of them",
                     where);
  if (*std::min_element(part_of.begin(), part_of.end()) < 0)
    throw UsageError("a schedule is searched for a stage in part " +
                         std::to_string(*std::min_element(part_of.begin(), part_of.end())) +
                         "; parts are numbered from 0",
                     where);
  const int stages = static_cast<int>(part_of.size());
  const int parts = 1 + *std::max_element(part_of.begin(), part_of.end());
  FoundSchedule found;
  found.bound = pipeline_bound(model, part_of, micro_batches, options.memory_limit);
  detail::ScheduleSearcher searcher(model, options, found);
  for (PipelineSchedule& known :
       detail::known_schedules(stages, parts, micro_batches, options.split_backward))
    if (known.part_of == part_of) (void)searcher.offer(known);
  const int most = stages * micro_batches;
  for (int held = 1; held <= most; held = held < 2 * stages ? held + 1 : 2 * held)
    for (int kind = 0; kind < 8; ++kind) {
      const PipelinePolicy policy{held, (kind & 1) != 0, (kind & 2) != 0, (kind & 4) != 0};
      if (policy.split && !options.split_backward) continue;
      if (policy.whole && stages == parts) continue;  // it is the same
      (void)searcher.offer(list_schedule(model, part_of, parts, micro_batches, policy));
    }
  searcher.improve();
  if (!searcher.within_limit()) found.schedule = {}, found.run = {};
  found.schedule.name = found.any() ? "that was found" : "";
  return found;
}

TESSERA_FUNCTION std::string explain(const FoundSchedule& found) {
  const std::string tried = std::to_string(found.tried) + " schedules were tried";
  if (!found.any()) return tried + "; none keeps within the limit on memory\n";
  return detail::time_text(found.run.time) + ", of which parts stand idle " +
         detail::percent_text(found.run.bubble()) + "; no schedule takes less than " +
         detail::time_text(found.bound) + " (" + detail::percent_text(1 - 1 / (1 + found.gap())) +
         " less); peak " + detail::bytes_text(found.run.peak_bytes()) + "; " + tried + "\n";
}

}  // namespace tessera
