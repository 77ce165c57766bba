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
#include <tessera/program/detail/timeline.hpp>
#include <tessera/program/network/detail/plan_timer.hpp>
#include <tessera/program/network/sharing.hpp>
#include <tessera/program/network/timing.hpp>
#include <tessera/program/text_table.hpp>

namespace tessera {
namespace detail {

/// What a process did in its trace, in order: for one operator after another work, which took what
/// it took, and calls. An operator that lets others run meanwhile comes again. What the process did
/// between operators is work of the next one.
class TracedWork {
 public:
  struct Segment {
    int entry = 0;  ///< the operator, in the trace's Program
    std::vector<TimedAction> actions;
  };

  TracedWork() = default;
  TracedWork(const Trace& trace, bool computes) {
    known_.resize(static_cast<std::size_t>(trace.program.size()));
    std::int64_t end = 0, within = 0;  // of the segment before; of what is in this one
    std::vector<TimedAction> actions;
    for (const TraceEvent& event : trace.events) {
      require(event, trace);
      if (event.kind != TraceKind::part) {
        within += event.time();
        if (event.communicates())
          actions.push_back({kind_of(event.kind), 0, event.call});
        else if (computes)
          actions.push_back({TimedAction::Kind::work, seconds(event.time()), -1});
        continue;
      }
      known_[static_cast<std::size_t>(event.entry)] = true;
      Segment segment{event.entry, {}};
      if (computes)  // what no event within the segment has, and the time before it
        segment.actions.push_back(
            {TimedAction::Kind::work, seconds(event.time() - within + event.begin - end), -1});
      segment.actions.insert(segment.actions.end(), actions.begin(), actions.end());
      segments_.push_back(std::move(segment));
      actions.clear();
      within = 0;
      end = event.end;
    }
  }
  const std::vector<Segment>& segments() const { return segments_; }
  /// Returns whether the trace has something of an operator.
  bool knows(int entry) const { return !known_.empty() && known_[static_cast<std::size_t>(entry)]; }
  /// Returns of how many operators it has something.
  int operators() const { return static_cast<int>(std::count(known_.begin(), known_.end(), true)); }

 private:
  static void require(const TraceEvent& event, const Trace& trace) {
    if (event.process != trace.events.front().process)
      throw UsageError("simulate: the trace has events of the processes " +
                       std::to_string(trace.events.front().process) + " and " +
                       std::to_string(event.process) +
                       ", so it is foretold by plans, or of several runs; give the trace of one "
                       "process of a run, or the program");
    if (event.entry < 0 || event.entry >= trace.program.size())
      throw UsageError("simulate: the trace has an event of operator " +
                       std::to_string(event.entry) + ", and its program has " +
                       std::to_string(trace.program.size()) +
                       "; give a trace as Tracing has taken it");
  }
  static double seconds(std::int64_t nanoseconds) {
    return 1e-9 * static_cast<double>(nanoseconds);
  }
  static TimedAction::Kind kind_of(TraceKind kind) {
    return kind == TraceKind::call    ? TimedAction::Kind::call
           : kind == TraceKind::start ? TimedAction::Kind::start
                                      : TimedAction::Kind::wait;
  }

  std::vector<Segment> segments_;
  std::vector<bool> known_;
};

/// The clocks of all processes, by their places, while a Program runs.
class NetworkRun {
 public:
  NetworkRun(const Program& program, const Network& network, const NetworkOptions& options,
             TracedWork traced = {})
      : program_(program),
        network_(network),
        traced_(std::move(traced)),
        timer_(network, options, program.mesh.processes()),
        clocks_(static_cast<std::size_t>(program.mesh.processes())),
        waited_(clocks_.size()),
        busy_(clocks_.size()),
        begins_(clocks_.size()),
        use_(network) {
    if (program.mesh.processes() > network.processes())
      throw UsageError("simulate: the program is for " + std::to_string(program.mesh.processes()) +
                       " processes, and the network has places for " +
                       std::to_string(network.processes()) + "; give a larger network");
    if (!fits(options.machine.order, program.mesh))
      throw UsageError("simulate: the machine's order names " +
                       std::to_string(options.machine.order.axes.size()) +
                       " axes, and the program's mesh has " + std::to_string(program.mesh.rank()) +
                       "; give the machine of that mesh");
    for (int p = 0; p < program.mesh.processes(); ++p)
      places_.push_back(device(options.machine.order, program.mesh, program.mesh.coordinates(p)));
    for (const ProgramPart& part : program.parts()) places_of_parts_.push_back(places_of(part));
    for (const ProgramEntry& entry : program.entries()) ++known_[key(entry)].runs;
  }

  NetworkTimes take() {
    NetworkTimes times;
    for (int i = 0; i < program_.size(); ++i) times.operators.push_back({entry_name(program_, i)});
    int begun = 0;  // operators
    const auto begin_until = [&](int end) {
      for (; begun < end; ++begun)
        if (!traced_.knows(begun)) run_planned(begun, times);
    };
    for (const TracedWork::Segment& segment : traced_.segments()) {
      begin_until(segment.entry);
      begun = std::max(begun, segment.entry + 1);
      counted(times.operators[static_cast<std::size_t>(segment.entry)], [&] {
        carry_out(segment.entry, segment.actions, ends_[segment.entry], clocks_, &waited_);
        end_beside(segment.entry);
      });
    }
    begin_until(program_.size());
    times.traced = traced_.operators();
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
  /// The times of a plan, once they are known, and how many operators of a part have that plan.
  struct Known {
    int runs = 0;
    std::unique_ptr<TimedPlan> timed;
  };
  static std::pair<const Plan*, int> key(const ProgramEntry& entry) {
    return {entry.plan.get(), entry.part};
  }
  /// When the calls of an operator end that have begun, at each of its places.
  using CallEnds = std::map<int, std::vector<double>>;
  double latest() const { return *std::max_element(clocks_.begin(), clocks_.end()); }
  double least_waited() const { return *std::min_element(waited_.begin(), waited_.end()); }
  template <class V> static auto& at(V& of, int place) {
    return of[static_cast<std::size_t>(place)];
  }

  /// Returns the places of a part's processes in the order of its mesh. In a manual function each
  /// process has a part of its own; the list then has all parts, one after the other. Processes are
  /// in one part where they have the same coordinates on the axes that its mesh lacks.
  std::vector<int> places_of(const ProgramPart& part) const {
    AxisSet fixed = part.other ? AxisSet{} : program_.mesh.axes() - part.axes.set();
    std::map<int, std::size_t> meshes;
    std::vector<int> places;
    for (int p = 0; p < program_.mesh.processes(); ++p) {
      const int number = part.places[static_cast<std::size_t>(p)];
      if (number < 0) continue;
      const int mesh = program_.mesh.place_in_group(fixed, program_.mesh.coordinates(p));
      const auto [found, fresh] = meshes.emplace(mesh, places.size());
      if (fresh) places.resize(places.size() + static_cast<std::size_t>(part.mesh.processes()));
      places[found->second + static_cast<std::size_t>(number)] =
          places_[static_cast<std::size_t>(p)];
    }
    return places;
  }

  /// Adds to an operator's times what f makes the Program longer.
  template <class F> void counted(NetworkTimes::Operator& one, const F& f) {
    const double before = latest(), exposed = least_waited();
    f();
    one.seconds += latest() - before;
    one.exposed += least_waited() - exposed;
  }
  /// Waits for those that operator i is the last to run beside.
  void end_beside(int i) {
    const auto beside = under_way_.find(i);
    if (beside == under_way_.end()) return;
    for (const std::vector<double>& ends : beside->second) wait_for(ends);
    under_way_.erase(beside);
  }
  /// Carries an operator out as its plan says.
  void run_planned(int i, NetworkTimes& times) {
    const ProgramEntry& entry = program_.entry(i);
    counted(times.operators[static_cast<std::size_t>(i)], [&] {
      CallEnds ends;
      const std::vector<TimedAction>& actions = timed(i).actions;
      if (entry.meanwhile > 0) {  // it ends after as many others
        std::vector<double> clocks = clocks_;
        carry_out(i, actions, ends, clocks, nullptr);
        under_way_[std::min(i + entry.meanwhile, program_.size() - 1)].push_back(std::move(clocks));
      } else {
        carry_out(i, actions, ends, clocks_, &waited_);
      }
      end_beside(i);
    });
  }

  const std::vector<int>& places(int number) const {
    return places_of_parts_.empty() ? places_ : at(places_of_parts_, program_.entry(number).part);
  }
  /// Returns the times of an operator's plan.
  const TimedPlan& timed(int number) {
    const ProgramEntry& entry = program_.entry(number);
    Known& known = known_.at(key(entry));
    if (known.timed == nullptr)
      known.timed = std::make_unique<TimedPlan>(
          timer_.time(*entry.plan, places(number), static_cast<double>(known.runs), use_));
    return *known.timed;
  }
  /// Lets an operator's processes go on by what they do, and those wait that do. `ends`: when its
  /// calls end that have begun.
  void carry_out(int number, const std::vector<TimedAction>& actions, CallEnds& ends,
                 std::vector<double>& clocks, std::vector<double>* waited) {
    const std::vector<TimedMeeting>& meetings = timed(number).meetings;
    for (const TimedAction& action : actions) {
      if (action.kind == TimedAction::Kind::work) {
        for (const int place : places(number)) at(clocks, place) += action.seconds;
        continue;
      }
      const bool begins = action.kind != TimedAction::Kind::wait;
      if (begins ? action.meeting < 0 || action.meeting >= static_cast<int>(meetings.size())
                 : ends.count(action.meeting) == 0)
        throw UsageError("simulate: the trace has " +
                         std::string(begins ? "call " : "a wait for call ") +
                         std::to_string(action.meeting) + " of " + entry_name(program_, number) +
                         ", whose plan has " + std::to_string(meetings.size()) + " calls, " +
                         std::to_string(ends.size()) +
                         " of which have begun; give a trace as Tracing has taken it");
      std::vector<double>& end = ends[action.meeting];
      if (begins) end = ends_of(at(meetings, action.meeting), places(number), clocks);
      for (std::size_t i = 0; action.kind != TimedAction::Kind::start && i < end.size(); ++i)
        wait_until(end[i], at(clocks, places(number)[i]),
                   waited == nullptr ? nullptr : &at(*waited, places(number)[i]));
    }
  }
  static void wait_until(double end, double& clock, double* waited) {
    if (end <= clock) return;
    if (waited != nullptr) *waited += end - clock;
    clock = end;
  }
  void wait_for(const std::vector<double>& ends) {
    for (std::size_t p = 0; p < clocks_.size(); ++p) wait_until(ends[p], clocks_[p], &waited_[p]);
  }
  /// Returns when a call ends at each place that makes it. No place makes another call before.
  std::vector<double> ends_of(const TimedMeeting& meeting, const std::vector<int>& places,
                              std::vector<double>& clocks) {
    const auto ready = [&](int place) { return std::max(at(clocks, place), at(busy_, place)); };
    for (std::size_t i = 0; i < places.size(); ++i) {
      double& begin = at(begins_, meeting.group[i]);
      begin = std::max(begin, ready(places[i]));
      if (!meeting.with.empty())
        for (const int other : meeting.with[i]) begin = std::max(begin, ready(other));
    }
    std::vector<double> ends;
    for (std::size_t i = 0; i < places.size(); ++i)
      ends.push_back(at(begins_, meeting.group[i]) + meeting.seconds[i]);
    for (std::size_t i = 0; i < places.size(); ++i) {
      at(busy_, places[i]) = ends[i];
      at(begins_, meeting.group[i]) = 0;
    }
    return ends;
  }

  const Program& program_;
  const Network& network_;
  TracedWork traced_;
  PlanTimer timer_;
  std::vector<int> places_;  ///< the place of each process of the program
  std::vector<std::vector<int>> places_of_parts_;
  std::vector<double> clocks_, waited_;  ///< at each place
  std::vector<double> busy_;             ///< when the last call of each place ends
  std::vector<double> begins_;           ///< when a call begins, at the place of its group's first
  std::map<int, CallEnds> ends_;         ///< of traced operators
  std::map<int, std::vector<std::vector<double>>>
      under_way_;  ///< when calls end, by the last operator that runs beside them
  LinkUse use_;
  std::map<std::pair<const Plan*, int>, Known> known_;
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

TESSERA_FUNCTION NetworkTimes simulate(const Trace& trace, const Network& network,
                                       const NetworkOptions& options) {
  return detail::NetworkRun(trace.program, network, options,
                            detail::TracedWork(trace, options.computes))
      .take();
}

TESSERA_FUNCTION std::string explain(const NetworkTimes& times, int rows) {
  std::string text = "simulated: " + detail::seconds_text(times.seconds) + ", of which " +
                     detail::seconds_text(times.exposed) + " wait for communication\n";
  if (times.traced > 0)
    text += "  work: as traced of " + std::to_string(times.traced) + " of " +
            std::to_string(times.operators.size()) + " operators\n";
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
