// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How long the calls of a plan take on a network, and what a process does between them.
///
///     PlanTimer(network, options, processes).time(plan, places, 1, use)
///
/// Laws: those of program/network/timing.hpp. A process is named by its place on the network.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/base/digest.hpp>
#include <tessera/base/error.hpp>
#include <tessera/plan/work/instructions.hpp>
#include <tessera/program/network/options.hpp>
#include <tessera/program/network/rounds.hpp>
#include <tessera/program/network/sharing.hpp>
#include <tessera/program/on_process.hpp>

namespace tessera::detail {

/// The calls that all processes of a mesh make together. Two calls are kept once where they differ
/// only in the process that makes them and in where their pieces lie.
class CallsTogether {
 public:
  /// Takes the call of the next process.
  void add(Call call) {
    Fingerprint print;
    for (const auto word :
         {static_cast<std::uint64_t>(call.kind), call.group.key(),
          static_cast<std::uint64_t>(call.type), static_cast<std::uint64_t>(call.even),
          static_cast<std::uint64_t>(call.send.size())})
      print.add(word);
    for (const auto* pieces : {&call.send, &call.receive})
      for (const Piece& piece : *pieces) {
        print.add(static_cast<std::uint64_t>(piece.peer));
        print.add(static_cast<std::uint64_t>(piece.count));
      }
    own_.push_back(call.own);
    const auto [known, fresh] = known_.emplace(std::pair(print.first, print.second), calls_.size());
    if (fresh) calls_.push_back(std::move(call));
    which_.push_back(known->second);
  }
  const Call& of(int process) const { return calls_[which_[static_cast<std::size_t>(process)]]; }
  /// Returns the number of a process in its group.
  int own(int process) const { return own_[static_cast<std::size_t>(process)]; }
  const std::vector<Call>& unlike() const { return calls_; }

 private:
  std::vector<Call> calls_;
  std::vector<std::size_t> which_;  ///< the number in calls_ of each process's call
  std::vector<int> own_;            ///< each process's number in its group
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> known_;
};

/// A call of all processes. A process waits for all of its group or, point to point, for those with
/// whom it exchanges. The lists are in the order of the plan's places.
struct TimedMeeting {
  std::vector<double> seconds;  ///< that the call takes each process
  std::vector<int> group;       ///< the place of its group's first process; point to point: its own
  std::vector<std::vector<int>> with;  ///< its peers' places; empty: groups make the call
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
};

/// Makes TimedPlans of plans.
class PlanTimer {
 public:
  PlanTimer(const Network& network, const NetworkOptions& options, int processes)
      : options_(options),
        network_(network),
        shared_(network),
        ends_(static_cast<std::size_t>(processes)),
        group_at_(ends_.size()) {}

  /// Returns the times of a plan. `places` are those of its mesh's processes in order, followed by
  /// those of further meshes that carry out the plan at the same time. Adds to `use` what links
  /// carry when the plan runs `runs` times.
  TimedPlan time(const Plan& any, const std::vector<int>& places, double runs, LinkUse& use) {
    TimedPlan timed;
    Plan plan = on_process(any, 0);       // whose blocks are largest, but for boxes of one's choice
    std::vector<CallsTogether> meetings;  // in the order of the calls
    for (plan.process = 0; plan.process < plan.mesh.processes(); ++plan.process) {
      Instructions list = instructions_of(plan);
      if (plan.process == 0) {
        timed.actions = actions_of(plan, list);
        meetings.resize(list.calls.size());
      }
      if (list.calls.size() != meetings.size())
        throw UsageError("simulate: process " + std::to_string(plan.process) + " makes " +
                         std::to_string(list.calls.size()) +
                         " calls of an operator, and process 0 makes " +
                         std::to_string(meetings.size()) +
                         "; simulate programs whose processes make the same calls");
      for (std::size_t c = 0; c < meetings.size(); ++c) meetings[c].add(std::move(list.calls[c]));
      if (meetings.empty()) break;  // the lists of all processes have the same calls
    }
    for (const CallsTogether& calls : meetings)
      timed.meetings.push_back(meeting_of(plan.mesh, calls, places, runs, use));
    return timed;
  }

 private:
  /// A step's price is divided among its kernels; one without kernels pays it at once.
  std::vector<TimedAction> actions_of(const Plan& plan, const Instructions& list) const {
    std::vector<TimedAction> actions;
    const auto steps = static_cast<std::size_t>(plan.steps.size());
    std::vector<int> kernels(steps);
    for (const KernelCall& kernel : list.kernels) ++kernels[static_cast<std::size_t>(kernel.step)];
    std::vector<std::int64_t> each(steps);  // the price of each kernel
    for (std::size_t s = 0; s < steps; ++s) {
      if (kernels[s] == 0) continue;
      const Step& step = plan.steps[static_cast<int>(s)];
      each[s] = (step.communicates()
                     ? work_of_loop(count_loop(plan, step, plan.mesh.coordinates(plan.process)),
                                    plan.slots[step.in[0]].desc.type, options_.machine)
                     : step.cost) /
                kernels[s];
    }
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
          work(each[static_cast<std::size_t>(i.step)]);
          break;
        case Action::copy:
        case Action::accumulate:
          for (int c = i.first; step.communicates() && c < i.first + i.count; ++c)
            work(options_.machine.copy(
                saturating_mul(volume(list.copies[static_cast<std::size_t>(c)].extents), size)));
          [[fallthrough]];
        default:
          if (!step.communicates() && kernels[static_cast<std::size_t>(i.step)] == 0 &&
              i.step != last)
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

  TimedMeeting meeting_of(const MeshShape& mesh, const CallsTogether& calls,
                          const std::vector<int>& places, double runs, LinkUse& use) {
    TimedMeeting meeting{std::vector<double>(places.size()), {}, {}};
    const Call& first = calls.unlike().front();
    const bool together =
        first.kind != Collective::exchange && first.kind != Collective::collective_permute;
    // Calls visit(process, place, member) for each process of each mesh; member(i) is the place of
    // member i of the process's group.
    const auto visit_processes = [&](const auto& visit) {
      for (std::size_t mesh_at = 0; mesh_at < places.size();
           mesh_at += static_cast<std::size_t>(mesh.processes()))
        for (int p = 0; p < mesh.processes(); ++p) {
          const Coordinates at = mesh.coordinates(p);
          visit(p, places[mesh_at + static_cast<std::size_t>(p)], [&](int number) {
            const int member = mesh.process(mesh.member(calls.of(p).group, at, number));
            return places[mesh_at + static_cast<std::size_t>(member)];
          });
        }
    };
    visit_processes([&](int p, int place, const auto& member) {
      meeting.group.push_back(together ? member(0) : place);
      group_at_[static_cast<std::size_t>(place)] = meeting.group.back();
      if (together) return;
      meeting.with.emplace_back();
      for (const auto* pieces : {&calls.of(p).send, &calls.of(p).receive})
        for (const Piece& piece : *pieces) meeting.with.back().push_back(member(piece.peer));
    });
    const bool links = options_.ways == CollectiveWays::links;
    int rounds = 0;
    for (const Call& call : calls.unlike()) rounds = std::max(rounds, rounds_of(call, links));
    const bool alike = alike_rounds(first, links);
    const bool all_to_all = links && first.kind == Collective::all_to_all;
    const bool rings = links && (first.kind == Collective::all_gather || reduces(first.kind));
    const double times = alike ? rounds : 1;
    for (int round = 0; round < (alike ? std::min(rounds, 1) : rounds); ++round) {
      messages_.clear();
      visit_processes([&](int p, int place, const auto& member) {
        const Call& call = calls.of(p);
        const auto send = [&](int to, double bytes) {
          if (bytes > 0) add_message(place, member(to), bytes);
        };
        if (!together)
          for (const Piece& piece : call.send)
            send(piece.peer, static_cast<double>(piece.count * size_of(call.type)));
        else if (rings)  // half of it each way
          for (const bool backwards : {false, true}) {
            const RoundMessage m = ring_message_of(call, calls.own(p), round, backwards);
            send(m.to, m.bytes / 2);
          }
        else if (const RoundMessage m = message_of(call, calls.own(p), round); m.to >= 0)
          send(m.to, m.bytes);
      });
      if (all_to_all) {  // has more messages than one list need hold
        shared_.add_at_once(messages_);
        continue;
      }
      const bool at_once = links && !together;
      const std::vector<double>& took = at_once ? shared_.times_at_once(messages_, use, runs)
                                                : shared_.times_of(messages_, use, times * runs);
      // A group's round ends with its last message. Point to point, each process waits for its own.
      for (std::size_t m = 0; m < messages_.size(); ++m)
        for (const int place : {messages_[m].from, messages_[m].to}) {
          double& end = end_of(group_at_[static_cast<std::size_t>(place)]);
          end = std::max(end, took[m]);
        }
      for (std::size_t i = 0; i < places.size(); ++i)
        meeting.seconds[i] += times * end_of(meeting.group[i]);
      for (const int group : meeting.group) end_of(group) = 0;
    }
    if (all_to_all) meeting.seconds.assign(places.size(), shared_.take_at_once(use, runs));
    return meeting;
  }
  /// Notes a message. Over links of one's own it goes both ways, half each, where there are two.
  void add_message(int from, int to, double bytes) {
    if (options_.ways == CollectiveWays::links &&
        network_.two_ways(network_.host_of(from), network_.host_of(to))) {
      messages_.push_back({from, to, bytes / 2});
      messages_.push_back({from, to, bytes / 2, true});
    } else {
      messages_.push_back({from, to, bytes});
    }
  }
  double& end_of(int group) { return ends_[static_cast<std::size_t>(group)]; }

  const NetworkOptions& options_;
  const Network& network_;
  SharedLinks shared_;
  std::vector<NetworkMessage> messages_;
  std::vector<double> ends_;   ///< when a group's round ends, at the place of its first process
  std::vector<int> group_at_;  ///< the place of the first process of each place's group
};

}  // namespace tessera::detail
