// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How the processes of a Program proceed on a network.
///
///     NetworkRun(program, network, options).take()
///
/// Laws: those of program/network/timing.hpp.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/base/error.hpp>
#include <tessera/plan/text.hpp>
#include <tessera/plan/work/instructions.hpp>
#include <tessera/program/detail/timeline.hpp>
#include <tessera/program/network/rounds.hpp>
#include <tessera/program/network/sharing.hpp>
#include <tessera/program/network/timing.hpp>
#include <tessera/program/text_table.hpp>

namespace tessera {
namespace detail {

/// A call of all processes: of each how long it takes, and for whom it waits.
struct TimedMeeting {
  std::vector<double> seconds;
  std::vector<std::vector<int>> with;  ///< of each process
};

/// What a process does for a plan, in order: work, or a call that begins or ends.
struct TimedAction {
  enum class Kind { work, call, start, wait } kind = Kind::work;
  double seconds = 0;
  int meeting = -1;
};

/// A plan as all processes carry it out.
struct TimedPlan {
  std::vector<TimedAction> actions;
  std::vector<TimedMeeting> meetings;
  LinkUse use;
};

/// Makes TimedPlans of plans.
class PlanTimer {
 public:
  PlanTimer(const Network& network, const NetworkOptions& options)
      : network_(network), options_(options) {}

  TimedPlan time(const Plan& any) const {
    TimedPlan timed{{}, {}, LinkUse(network_)};
    Plan plan = any;
    std::vector<std::vector<Call>> meetings;  // the calls in their order, on each process
    for (plan.process = 0; plan.process < plan.mesh.processes(); ++plan.process) {
      Instructions list = instructions_of(plan);
      if (plan.process == 0) {
        timed.actions = actions_of(plan, list);
        meetings.resize(list.calls.size());
      }
      if (list.calls.size() != meetings.size())
        throw UsageError(
            "simulate: process " + std::to_string(plan.process) + " makes " +
            std::to_string(list.calls.size()) + " calls of an operator, and process 0 makes " +
            std::to_string(meetings.size()) +
            ", as where some have no part in it; simulate programs whose processes make the same "
            "calls");
      for (std::size_t c = 0; c < meetings.size(); ++c)
        meetings[c].push_back(std::move(list.calls[c]));
      if (meetings.empty()) break;
    }
    for (const std::vector<Call>& calls : meetings)
      timed.meetings.push_back(meeting_of(plan.mesh, calls, timed.use));
    return timed;
  }

 private:
  /// Process 0 has a largest block, so that its work takes longest.
  std::vector<TimedAction> actions_of(const Plan& plan, const Instructions& list) const {
    std::vector<TimedAction> actions;
    std::vector<int> kernels(static_cast<std::size_t>(plan.steps.size()));
    for (const KernelCall& kernel : list.kernels) ++kernels[static_cast<std::size_t>(kernel.step)];
    int last = -1;  // the step whose price has been added
    const auto work = [&](std::int64_t picoseconds) {
      if (!options_.computes || picoseconds <= 0) return;
      if (actions.empty() || actions.back().kind != TimedAction::Kind::work) actions.push_back({});
      actions.back().seconds += 1e-12 * static_cast<double>(picoseconds);
    };
    for (const Instruction& i : list.all) {
      const Step& step = plan.steps[i.step];
      using enum Action;
      if (i.action == call || i.action == start)
        actions.push_back({i.action == call ? TimedAction::Kind::call : TimedAction::Kind::start, 0,
                           static_cast<int>(i.first)});
      else if (i.action == wait)
        actions.push_back({TimedAction::Kind::wait, 0, static_cast<int>(i.first)});
      else if (!step.communicates() && i.step != last)
        work(step.cost), last = i.step;
      else if (step.communicates() && i.action == compute)
        work(options_.machine.compute(step.flops, plan.slots[step.out].desc.type) /
             max_of(1, kernels[static_cast<std::size_t>(i.step)]));
      else if (step.communicates() && i.action == copy)
        for (int c = i.first; c < i.first + i.count; ++c)
          work(options_.machine.copy(volume(list.copies[static_cast<std::size_t>(c)].extents) *
                                     static_cast<Index>(size_of(i.type))));
    }
    return actions;
  }
  static Index volume(const Extents& extents) {
    Index all = 1;
    for (const Index n : extents) all = saturating_mul(all, n);
    return all;
  }

  TimedMeeting meeting_of(const MeshShape& mesh, const std::vector<Call>& calls,
                          LinkUse& use) const {
    const auto processes = calls.size();
    TimedMeeting meeting{std::vector<double>(processes), {}};
    std::vector<Coordinates> at;
    for (std::size_t p = 0; p < processes; ++p) at.push_back(mesh.coordinates(static_cast<int>(p)));
    const auto member = [&](std::size_t p, int number) {
      return mesh.process(mesh.member(calls[p].group, at[p], number));
    };
    const bool together =
        calls[0].kind != Collective::exchange && calls[0].kind != Collective::collective_permute;
    for (std::size_t p = 0; p < processes; ++p) {
      std::vector<int> with;
      if (together)
        for (int m = 0; m < calls[p].members; ++m) with.push_back(member(p, m));
      else
        for (const auto* pieces : {&calls[p].send, &calls[p].receive})
          for (const Piece& piece : *pieces) with.push_back(member(p, piece.peer));
      meeting.with.push_back(std::move(with));
    }
    int rounds = 0;
    for (const Call& call : calls) rounds = std::max(rounds, rounds_of(call));
    // In a ring every round is as the first.
    const bool alike = together && calls[0].kind != Collective::all_to_all &&
                       calls[0].kind != Collective::broadcast && !doubles(calls[0].members);
    const int differ = alike ? std::min(rounds, 1) : rounds;
    const double times = alike ? rounds : 1;
    std::vector<NetworkMessage> messages;
    for (int round = 0; round < differ; ++round) {
      messages.clear();
      for (std::size_t p = 0; p < processes; ++p) {
        const auto send = [&](int to, double bytes) {
          if (bytes > 0) messages.push_back({static_cast<int>(p), member(p, to), bytes});
        };
        if (!together)
          for (const Piece& piece : calls[p].send)
            send(piece.peer, static_cast<double>(piece.count * size_of(calls[p].type)));
        else if (const RoundMessage m = message_of(calls[p], round); m.to >= 0)
          send(m.to, m.bytes);
      }
      LinkUse own(network_);
      const std::vector<double> took = times_of(network_, messages, own);
      for (std::size_t l = 0; l < own.seconds.size(); ++l) {
        use.seconds[l] += times * own.seconds[l];
        use.bytes[l] += times * own.bytes[l];
      }
      // A round of a group ends with its last message; point to point each waits for its own.
      std::vector<double> ends(processes);
      for (std::size_t m = 0; m < messages.size(); ++m)
        for (const int p : {messages[m].from, messages[m].to}) {
          double& end =
              ends[static_cast<std::size_t>(together ? member(static_cast<std::size_t>(p), 0) : p)];
          end = std::max(end, took[m]);
        }
      for (std::size_t p = 0; p < processes; ++p)
        meeting.seconds[p] += times * ends[together ? static_cast<std::size_t>(member(p, 0)) : p];
    }
    return meeting;
  }

  const Network& network_;
  const NetworkOptions& options_;
};

/// The clocks of all processes while a Program runs.
class NetworkRun {
 public:
  NetworkRun(const Program& program, const Network& network, const NetworkOptions& options)
      : program_(program),
        network_(network),
        timer_(network, options),
        clocks_(static_cast<std::size_t>(program.mesh.processes())),
        waited_(clocks_.size()),
        use_(network) {
    if (program.mesh.processes() > network.processes())
      throw UsageError("simulate: the program is for " + std::to_string(program.mesh.processes()) +
                       " processes, and the network has places for " +
                       std::to_string(network.processes()) + "; give a larger network");
    if (!program.parts().empty())
      throw UsageError(
          "simulate: the program has operators on parts of the mesh, whose times on a network are "
          "not known yet; simulate each part's program by itself");
  }

  NetworkTimes take() {
    NetworkTimes times;
    for (int i = 0; i < program_.size(); ++i) {
      const double before = latest(), exposed = least_waited();
      run(*program_.entry(i).plan);
      times.operators.push_back(
          {entry_name(program_, i), latest() - before, least_waited() - exposed});
    }
    times.seconds = latest();
    times.exposed = least_waited();
    for (int link = 0; link < network_.links(); ++link) {
      const auto l = static_cast<std::size_t>(link);
      if (use_.seconds[l] <= times.busy) continue;
      times.busiest = link;
      times.link = network_.name(link);
      times.busy = use_.seconds[l];
      times.link_bytes = use_.bytes[l];
    }
    return times;
  }

 private:
  double latest() const { return *std::max_element(clocks_.begin(), clocks_.end()); }
  double least_waited() const { return *std::min_element(waited_.begin(), waited_.end()); }

  void run(const Plan& plan) {
    auto& timed = known_[&plan];
    if (timed == nullptr) timed = std::make_unique<TimedPlan>(timer_.time(plan));
    std::vector<std::vector<double>> ends(timed->meetings.size());
    for (const TimedAction& action : timed->actions) {
      if (action.kind == TimedAction::Kind::work) {
        for (double& clock : clocks_) clock += action.seconds;
        continue;
      }
      auto& end = ends[static_cast<std::size_t>(action.meeting)];
      if (action.kind != TimedAction::Kind::wait)
        end = ends_of(timed->meetings[static_cast<std::size_t>(action.meeting)]);
      if (action.kind == TimedAction::Kind::start) continue;
      for (std::size_t p = 0; p < clocks_.size(); ++p)
        if (const double wait = end[p] - clocks_[p]; wait > 0) {
          waited_[p] += wait;
          clocks_[p] = end[p];
        }
    }
    for (std::size_t l = 0; l < use_.seconds.size(); ++l) {
      use_.seconds[l] += timed->use.seconds[l];
      use_.bytes[l] += timed->use.bytes[l];
    }
  }
  std::vector<double> ends_of(const TimedMeeting& meeting) const {
    std::vector<double> ends;
    for (std::size_t p = 0; p < clocks_.size(); ++p) {
      double begin = clocks_[p];
      for (const int other : meeting.with[p])
        begin = std::max(begin, clocks_[static_cast<std::size_t>(other)]);
      ends.push_back(begin + meeting.seconds[p]);
    }
    return ends;
  }

  const Program& program_;
  const Network& network_;
  PlanTimer timer_;
  std::vector<double> clocks_, waited_;  ///< of each process
  LinkUse use_;
  std::map<const Plan*, std::unique_ptr<TimedPlan>> known_;
};

/// Returns "12.5 us".
inline std::string seconds_text(double seconds) {
  const char* unit = seconds < 1e-6 ? " ns" : seconds < 1e-3 ? " us" : seconds < 1 ? " ms" : " s";
  const double amount = seconds < 1e-6   ? seconds * 1e9
                        : seconds < 1e-3 ? seconds * 1e6
                        : seconds < 1    ? seconds * 1e3
                                         : seconds;
  char text[32];
  std::snprintf(text, sizeof text, "%.4g%s", amount, unit);
  return text;
}
}  // namespace detail

TESSERA_FUNCTION NetworkTimes simulate(const Program& program, const Network& network,
                                       const NetworkOptions& options) {
  return detail::NetworkRun(program, network, options).take();
}

TESSERA_FUNCTION std::string explain(const NetworkTimes& times, int rows) {
  std::string text = "simulated: " + detail::seconds_text(times.seconds) + ", of which " +
                     detail::seconds_text(times.exposed) + " wait for communication\n";
  std::vector<const NetworkTimes::Operator*> longest;
  for (const NetworkTimes::Operator& one : times.operators) longest.push_back(&one);
  std::stable_sort(longest.begin(), longest.end(),
                   [](const auto* a, const auto* b) { return a->seconds > b->seconds; });
  detail::TextTable table;
  table.row({"operator", "time", "waiting"});
  for (std::size_t i = 0; i < longest.size() && static_cast<int>(i) < rows; ++i)
    table.row({longest[i]->name, detail::seconds_text(longest[i]->seconds),
               detail::seconds_text(longest[i]->exposed)});
  text += table.text("  ");
  if (times.busiest >= 0)
    text += "  busiest link: " + times.link + ", busy for " + detail::seconds_text(times.busy) +
            " with " + detail::bytes_text(static_cast<Index>(times.link_bytes)) + "\n";
  return text;
}

}  // namespace tessera
