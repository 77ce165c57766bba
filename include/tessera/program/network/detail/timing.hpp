// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How the processes of a Program proceed on a network.
///
///     NetworkRun(program, network, options).take()
///
/// Laws: those of program/network/timing.hpp.
#include <algorithm>
#include <cstdint>
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
#include <tessera/program/on_process.hpp>
#include <tessera/program/text_table.hpp>

namespace tessera {
namespace detail {

/// A call of all processes: of each how long it takes, and for whom it waits: for all of its group,
/// or, point to point, for those with whom it exchanges.
struct TimedMeeting {
  std::vector<double> seconds;
  std::vector<int> group;              ///< of each process the first one in its group
  std::vector<std::vector<int>> with;  ///< of each process; empty: the groups make the call
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
    Plan plan = on_process(any, 0);           // which has a largest block: its work takes longest
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
  /// A step's price is divided among its kernels; one without kernels pays it at once.
  std::vector<TimedAction> actions_of(const Plan& plan, const Instructions& list) const {
    std::vector<TimedAction> actions;
    std::vector<int> kernels(static_cast<std::size_t>(plan.steps.size()));
    const auto kernels_of = [&](int step) -> int& {
      return kernels[static_cast<std::size_t>(step)];
    };
    for (const KernelCall& kernel : list.kernels) ++kernels_of(kernel.step);
    int last = -1;  // the step without kernels whose price has been added
    const auto work = [&](std::int64_t picoseconds) {
      if (!options_.computes || picoseconds <= 0) return;
      if (actions.empty() || actions.back().kind != TimedAction::Kind::work) actions.push_back({});
      actions.back().seconds += 1e-12 * static_cast<double>(picoseconds);
    };
    const auto call = [&](TimedAction::Kind kind, const Instruction& i) {
      actions.push_back({kind, 0, static_cast<int>(i.first)});
    };
    for (const Instruction& i : list.all) {
      const Step& step = plan.steps[i.step];
      const Machine& machine = options_.machine;
      const auto size = static_cast<Index>(size_of(i.type));
      switch (i.action) {
        case Action::call:
          call(TimedAction::Kind::call, i);
          break;
        case Action::start:
          call(TimedAction::Kind::start, i);
          break;
        case Action::wait:
          call(TimedAction::Kind::wait, i);
          break;
        case Action::compute:
          work((step.communicates() ? machine.compute(step.flops, plan.slots[step.out].desc.type)
                                    : step.cost) /
               kernels_of(i.step));
          break;
        case Action::copy:
        case Action::accumulate:
          for (int c = i.first; step.communicates() && c < i.first + i.count; ++c)
            work(machine.copy(
                saturating_mul(volume(list.copies[static_cast<std::size_t>(c)].extents), size)));
          [[fallthrough]];
        default:
          if (!step.communicates() && kernels_of(i.step) == 0 && i.step != last)
            work(step.cost), last = i.step;
      }
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
    TimedMeeting meeting{std::vector<double>(processes), {}, {}};
    std::vector<Coordinates> at;
    std::vector<int> places;
    for (std::size_t p = 0; p < processes; ++p) {
      at.push_back(mesh.coordinates(static_cast<int>(p)));
      places.push_back(device(options_.machine.order, mesh, at[p]));
    }
    const auto member = [&](std::size_t p, int number) {
      return mesh.process(mesh.member(calls[p].group, at[p], number));
    };
    const bool together =
        calls[0].kind != Collective::exchange && calls[0].kind != Collective::collective_permute;
    for (std::size_t p = 0; p < processes; ++p) {
      meeting.group.push_back(member(p, 0));
      if (together) continue;
      meeting.with.emplace_back();
      for (const auto* pieces : {&calls[p].send, &calls[p].receive})
        for (const Piece& piece : *pieces) meeting.with.back().push_back(member(p, piece.peer));
    }
    int rounds = 0;
    for (const Call& call : calls) rounds = std::max(rounds, rounds_of(call));
    const bool alike = alike_rounds(calls[0]);
    const int differ = alike ? std::min(rounds, 1) : rounds;
    const double times = alike ? rounds : 1;
    const auto end_of = [&](std::size_t p) {
      return static_cast<std::size_t>(together ? meeting.group[p] : static_cast<int>(p));
    };
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
      std::vector<NetworkMessage> placed = messages;
      for (NetworkMessage& m : placed) {
        m.from = places[static_cast<std::size_t>(m.from)];
        m.to = places[static_cast<std::size_t>(m.to)];
      }
      const std::vector<double> took = times_of(network_, placed, own);
      for (std::size_t l = 0; l < own.seconds.size(); ++l) {
        use.seconds[l] += times * own.seconds[l];
        use.bytes[l] += times * own.bytes[l];
      }
      // A round of a group ends with its last message; point to point each waits for its own.
      std::vector<double> ends(processes);
      for (std::size_t m = 0; m < messages.size(); ++m)
        for (const int p : {messages[m].from, messages[m].to}) {
          double& end = ends[end_of(static_cast<std::size_t>(p))];
          end = std::max(end, took[m]);
        }
      for (std::size_t p = 0; p < processes; ++p) meeting.seconds[p] += times * ends[end_of(p)];
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
        busy_(clocks_.size()),
        use_(network) {
    if (program.mesh.processes() > network.processes())
      throw UsageError("simulate: the program is for " + std::to_string(program.mesh.processes()) +
                       " processes, and the network has places for " +
                       std::to_string(network.processes()) + "; give a larger network");
    if (!program.parts().empty())
      throw UsageError(
          "simulate: the program has operators on parts of the mesh or in manual functions, whose "
          "times on a network are "
          "not known yet; simulate the plan of one part's function, made on a mesh of its own");
  }

  NetworkTimes take() {
    NetworkTimes times;
    for (int i = 0; i < program_.size(); ++i) {
      const ProgramEntry& entry = program_.entry(i);
      const double before = latest(), exposed = least_waited();
      if (entry.meanwhile > 0) {  // it ends after as many others
        const std::vector<double> clocks = clocks_, waited = waited_;
        run(*entry.plan);
        under_way_[i + entry.meanwhile].push_back(std::exchange(clocks_, clocks));
        waited_ = waited;
      } else {
        run(*entry.plan);
      }
      for (const std::vector<double>& ends : under_way_[i]) wait_for(ends);
      under_way_.erase(i);
      times.operators.push_back(
          {entry_name(program_, i), latest() - before, least_waited() - exposed});
    }
    for (const auto& rest : under_way_)
      for (const std::vector<double>& ends : rest.second) wait_for(ends);
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
        end = busy_ = ends_of(timed->meetings[static_cast<std::size_t>(action.meeting)]);
      if (action.kind != TimedAction::Kind::start) wait_for(end);
    }
    for (std::size_t l = 0; l < use_.seconds.size(); ++l) {
      use_.seconds[l] += timed->use.seconds[l];
      use_.bytes[l] += timed->use.bytes[l];
    }
  }
  void wait_for(const std::vector<double>& ends) {
    for (std::size_t p = 0; p < clocks_.size(); ++p)
      if (const double wait = ends[p] - clocks_[p]; wait > 0) {
        waited_[p] += wait;
        clocks_[p] = ends[p];
      }
  }
  std::vector<double> ends_of(const TimedMeeting& meeting) const {
    const auto ready = [&](int p) {
      return std::max(clocks_[static_cast<std::size_t>(p)], busy_[static_cast<std::size_t>(p)]);
    };
    std::vector<double> begins(clocks_.size()), ends(clocks_.size());
    for (std::size_t p = 0; p < clocks_.size(); ++p) {
      const int own = static_cast<int>(p);
      double& begin = begins[meeting.with.empty() ? static_cast<std::size_t>(meeting.group[p]) : p];
      begin = std::max(begin, ready(own));
      if (!meeting.with.empty())
        for (const int other : meeting.with[p]) begin = std::max(begin, ready(other));
    }
    for (std::size_t p = 0; p < clocks_.size(); ++p)
      ends[p] = begins[meeting.with.empty() ? static_cast<std::size_t>(meeting.group[p]) : p] +
                meeting.seconds[p];
    return ends;
  }

  const Program& program_;
  const Network& network_;
  PlanTimer timer_;
  std::vector<double> clocks_, waited_;  ///< of each process
  std::vector<double> busy_;             ///< until when its last call is under way
  std::map<int, std::vector<std::vector<double>>>
      under_way_;  ///< ends, by the last operator meanwhile
  LinkUse use_;
  std::map<const Plan*, std::unique_ptr<TimedPlan>> known_;
};

/// Returns "12.5 us".
inline std::string seconds_text(double seconds) {
  return time_text(static_cast<std::int64_t>(std::min(seconds, 9e6) * 1e12));
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
