// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How traces are foretold, summed up and written.
///
///     to_json(trace)
///
/// Laws: those of program/trace.hpp.
#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/base/text/json_text.hpp>
#include <tessera/plan/process_classes.hpp>
#include <tessera/plan/text.hpp>
#include <tessera/program/detail/explain.hpp>
#include <tessera/program/summary.hpp>
#include <tessera/program/text_table.hpp>
#include <tessera/program/trace.hpp>

namespace tessera {
namespace detail {

/// The clocks of all processes of a mesh.
class Clocks {
 public:
  explicit Clocks(const MeshShape& mesh)
      : mesh_(mesh), now_(static_cast<std::size_t>(mesh.processes()), 0) {}

  std::int64_t& of(int process) { return now_[static_cast<std::size_t>(process)]; }
  /// Returns when the last member of each process's group over some axes is there.
  std::vector<std::int64_t> meet(AxisSet axes) const {
    std::vector<std::int64_t> last(now_.size(), 0);
    std::vector<std::size_t> leader;
    for (int p = 0; p < mesh_.processes(); ++p) {
      Coordinates at = mesh_.coordinates(p);
      for (int axis = 0; axis < mesh_.rank(); ++axis)
        if (axes.contains(axis)) at[axis] = 0;
      leader.push_back(static_cast<std::size_t>(mesh_.process(at)));
      last[leader.back()] = max_of(last[leader.back()], now_[static_cast<std::size_t>(p)]);
    }
    for (std::size_t p = now_.size(); p-- > 0;) last[p] = last[leader[p]];
    return last;
  }

 private:
  const MeshShape& mesh_;
  std::vector<std::int64_t> now_;  ///< picoseconds
};

/// What a step takes on one process: picoseconds, and bytes of payload.
struct LocalStep {
  std::int64_t cost = 0;
  Index payload = 0;
};
/// Returns these for each step of a plan and each process. Communication costs all the same.
inline std::vector<std::vector<LocalStep>> steps_of_all(Plan plan, const Machine& machine) {
  std::vector<std::vector<LocalStep>> all(static_cast<std::size_t>(plan.steps.size()));
  for (int p = 0; p < plan.mesh.processes(); ++p) {
    if (plan.process != p) move_to_process(plan, p);
    for (int k = 0; k < plan.steps.size(); ++k) {
      const Step& step = plan.steps[k];
      const bool computes = !step.communicates() && step.flops > 0;
      all[static_cast<std::size_t>(k)].push_back(
          {computes ? work_price(plan, step, machine, plan.mesh.coordinates(p)) : step.cost,
           step.payload});
    }
  }
  return all;
}

/// Microseconds, the unit of the format.
inline std::string micros(std::int64_t nanoseconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%lld.%03lld", static_cast<long long>(nanoseconds / 1000),
                static_cast<long long>(nanoseconds % 1000));
  return text;
}

/// Writes the events of a trace, track by track.
class TraceWriter {
 public:
  explicit TraceWriter(const Trace& trace)
      : program_(trace.program),
        names_(trace.program.names()),
        part_(trace.part),
        beside_(trace.tracks) {
    for (const TraceEvent& e : trace.events) tracks_[{e.process, e.lane}].push_back(e);
  }

  std::string text() {
    int named = -1;
    for (auto& [track, events] : tracks_) {
      process_ = number_of(track.first);
      lane_ = track.second;
      if (process_ != named)
        name("process_name", "process " + std::to_string(process_) + place(track.first));
      named = process_;
      name("thread_name", "lane " + std::to_string(lane_));
      std::vector<Slice> slices = slices_of(events);
      std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
      });
      for (const Slice& s : slices)
        line("X", s.begin, s.name, s.category, ",\"dur\":" + micros(s.end - s.begin) + s.facts);
      under_way(events);
    }
    write_beside();
    return std::move(out_);
  }

 private:
  /// The number of the process under which the tracks beside those of processes are shown.
  static constexpr int beside = 1 << 20;
  static constexpr std::string_view start_of = "start of ";

  /// Returns the number of a process in the whole mesh.
  int number_of(int process) const {
    return part_.processes.empty() ? process : part_.processes[static_cast<std::size_t>(process)];
  }
  void write_beside() {
    process_ = beside;
    for (lane_ = 0; lane_ < static_cast<int>(beside_.size()); ++lane_) {
      const TraceTrack& track = beside_[static_cast<std::size_t>(lane_)];
      if (lane_ == 0) name("process_name", "tracks");
      name("thread_name", track.name);
      for (const TraceTrack::Span& s : track.spans)
        line("X", s.begin, s.name, "track", ",\"dur\":" + micros(s.end - s.begin));
    }
  }

  struct Slice {
    std::int64_t begin, end;
    std::string name;
    std::string_view category;
    std::string facts;
  };

  void name(const char* what, const std::string& text) {
    out_ += "{\"ph\":\"M\"" + track() + ",\"name\":\"" + what +
            "\",\"args\":{\"name\":" + json_text(text) + "}},\n";
  }
  void line(const char* phase, std::int64_t at, const std::string& name, std::string_view category,
            const std::string& rest) {
    out_ += std::string("{\"ph\":\"") + phase + "\"" + track() + ",\"ts\":" + micros(at) +
            ",\"name\":" + json_text(name) + ",\"cat\":\"" + std::string(category) + "\"" + rest +
            "},\n";
  }
  std::string track() const {
    return ",\"pid\":" + std::to_string(process_) + ",\"tid\":" + std::to_string(lane_);
  }
  /// Returns " (data 1, model 0)" of a process of the trace's own mesh.
  std::string place(int process) const {
    const Coordinates at = program_.mesh.coordinates(process);
    std::string text = part_.place.empty() ? "" : " (" + part_.place;
    for (int axis = 0; axis < program_.mesh.rank(); ++axis)
      text += (text.empty() ? " (" : ", ") +
              (axis < names_.size() ? std::string(names_[axis]) : std::to_string(axis)) + " " +
              std::to_string(at[axis]);
    return text.empty() ? text : text + ")";
  }

  Slice slice_of(const TraceEvent& e) const {
    const ProgramEntry& entry = program_.entry(e.entry);
    const Plan& plan = *entry.plan;
    Slice s{e.begin, e.end, "", "", ""};
    if (e.kind == TraceKind::part) {
      s.name = std::string(name_of(plan.kind));
      if (entry.label != s.name) s.name += " " + entry.label;
      s.category = "operator";
      s.facts = ",\"args\":{\"operator\":" + std::to_string(e.entry);
      if (entry.layer > 0) s.facts += ",\"layer\":" + json_text(program_.layer_path(entry.layer));
      if (entry.where.known()) s.facts += ",\"where\":" + json_text(to_string(entry.where));
      s.facts += "}";
      return s;
    }
    s.name = e.step < 0 ? "" : step_name(plan.steps[e.step], program_.names_on(entry.part));
    if (e.kind == TraceKind::start) s.name = std::string(start_of) + s.name;
    if (e.kind == TraceKind::wait) s.name = "wait for " + s.name;
    if (e.kind == TraceKind::copy) s.name = "copies of " + s.name;
    if (e.kind == TraceKind::fence) s.name = "wait for the device";
    s.category = e.communicates()            ? "communication"
                 : e.kind == TraceKind::copy ? "copy"
                                             : "compute";
    s.facts = ",\"args\":{\"step\":" + std::to_string(e.step + 1);
    if (e.call >= 0) s.facts += ",\"payload_bytes\":" + std::to_string(e.bytes);
    s.facts += "}";
    return s;
  }

  /// Returns the slices of a track: its events, and the layers around its operators.
  std::vector<Slice> slices_of(const std::vector<TraceEvent>& events) const {
    std::vector<Slice> slices;
    std::vector<std::pair<int, std::int64_t>> open;  // layers from the outermost, with their begins
    std::int64_t end = 0;
    const auto close = [&](std::size_t kept) {
      for (; open.size() > kept; open.pop_back()) {
        const ProgramLayer& layer = program_.layers()[static_cast<std::size_t>(open.back().first)];
        slices.push_back({open.back().second, end, layer.name, "layer", ""});
      }
    };
    for (const TraceEvent& e : events) {
      slices.push_back(slice_of(e));
      if (e.kind != TraceKind::part) continue;
      std::vector<int> path;
      for (int layer = program_.entry(e.entry).layer; layer > 0;
           layer = program_.layers()[static_cast<std::size_t>(layer)].parent)
        path.insert(path.begin(), layer);
      std::size_t same = 0;
      while (same < open.size() && same < path.size() && open[same].first == path[same]) ++same;
      close(same);
      for (; same < path.size(); ++same) open.push_back({path[same], e.begin});
      end = e.end;
    }
    close(0);
    return slices;
  }

  /// Writes when calls that were started are under way.
  void under_way(const std::vector<TraceEvent>& events) {
    std::map<std::pair<int, int>, const TraceEvent*> started;
    for (const TraceEvent& e : events) {
      if (e.kind == TraceKind::start && e.call >= 0) started[{e.entry, e.call}] = &e;
      if (e.kind != TraceKind::wait) continue;
      const auto begun = started.find({e.entry, e.call});
      if (begun == started.end()) continue;
      const std::string name = slice_of(*begun->second).name.substr(start_of.size());
      const std::string id = ",\"id\":\"" + std::to_string(process_) + "." +
                             std::to_string(e.entry) + "." + std::to_string(e.call) + "\"";
      line("b", begun->second->begin, name, "under way", id);
      line("e", e.end, name, "under way", id);
      started.erase(begun);
    }
  }

  const Program& program_;
  AxisNames names_;
  const TracedPart& part_;
  const std::vector<TraceTrack>& beside_;
  std::map<std::pair<int, int>, std::vector<TraceEvent>> tracks_;
  int process_ = 0;
  int lane_ = 0;
  std::string out_;
};

TESSERA_FUNCTION std::string trace_lines(const Trace& trace) { return TraceWriter(trace).text(); }

/// Returns "23 %" of the whole.
inline std::string share_text(std::int64_t part, std::int64_t whole) {
  return part == 0 || whole == 0 ? "" : std::to_string((part * 100 + whole / 2) / whole) + " %";
}
inline std::string nanoseconds_text(std::int64_t nanoseconds) {
  return nanoseconds == 0 ? "-" : time_text(saturating_mul(nanoseconds, 1000));
}
}  // namespace detail

TESSERA_FUNCTION Trace simulated_trace(const Program& program, const Machine& machine) {
  Trace trace{program, {}, {}, {}};
  const int processes = program.mesh.processes();
  detail::Clocks clocks(program.mesh);
  std::vector<TraceEvent> parts(static_cast<std::size_t>(processes));
  std::vector<std::vector<TraceEvent>> made(static_cast<std::size_t>(processes));
  for (int i = 0; i < program.size(); ++i) {
    const int part = program.entry(i).part;
    const std::vector<std::vector<detail::LocalStep>> steps =
        detail::steps_of_all(*program.entry(i).plan, machine);
    for (int p = 0; p < processes; ++p)
      parts[static_cast<std::size_t>(p)] = {clocks.of(p), 0, TraceKind::part, p, 0, i};
    int call = 0;
    for (int k = 0; k < static_cast<int>(steps.size()); ++k) {
      const Step& step = program.entry(i).plan->steps[k];
      const bool communicates = step.communicates();
      const auto met = communicates ? clocks.meet(program.axes_on(part, step.group))
                                    : std::vector<std::int64_t>();
      for (int p = 0; p < processes; ++p) {
        const auto at = static_cast<std::size_t>(p);
        const int place = program.place_on(part, p);
        if (place < 0) continue;
        const detail::LocalStep& own =
            steps[static_cast<std::size_t>(k)][static_cast<std::size_t>(place)];
        std::int64_t& now = clocks.of(p);
        const auto add = [&](TraceKind kind, std::int64_t end, int number, Index bytes) {
          if (end > now) made[at].push_back({now, end, kind, p, 0, i, k, number, bytes});
          now = end;
        };
        if (communicates) {
          add(TraceKind::wait, met[at], call, 0);
          add(TraceKind::call, detail::saturating_add(now, own.cost), call, own.payload);
        } else {
          add(step.flops > 0 ? TraceKind::kernel : TraceKind::copy,
              detail::saturating_add(now, own.cost), -1, 0);
        }
      }
      call += communicates ? 1 : 0;
    }
    for (int p = 0; p < processes; ++p) {
      if (program.place_on(part, p) < 0) continue;
      auto& events = made[static_cast<std::size_t>(p)];
      events.push_back(parts[static_cast<std::size_t>(p)]);
      events.back().end = clocks.of(p);
      for (TraceEvent& e : events) {
        e.begin = (e.begin + 500) / 1000;  // from picoseconds
        e.end = (e.end + 500) / 1000;
        trace.events.push_back(e);
      }
      events.clear();
    }
  }
  return trace;
}

TESSERA_FUNCTION TraceSummary summary(const Trace& trace) {
  const Program& program = trace.program;
  TraceSummary s;
  s.mesh = program.mesh;
  for (const auto& name : program.names()) s.names.emplace_back(name);
  const auto& layers = program.layers();
  std::vector<LayerTime> totals(layers.size());
  std::map<std::pair<std::uint32_t, Collective>, CollectiveTime> collectives;
  std::set<int> processes;
  for (const TraceEvent& e : trace.events) {
    processes.insert(e.process);
    s.elapsed = max_of(s.elapsed, e.end);
    const ProgramEntry& entry = program.entry(e.entry);
    for (int layer = entry.layer; layer >= 0;
         layer = layers[static_cast<std::size_t>(layer)].parent) {
      LayerTime& total = totals[static_cast<std::size_t>(layer)];
      if (e.kind == TraceKind::part) total.time += e.time();
      if (e.communicates()) total.communication += e.time();
      if (e.kind == TraceKind::kernel || e.kind == TraceKind::fence) total.computing += e.time();
      if (e.kind == TraceKind::copy) total.copying += e.time();
    }
    if (!e.communicates()) continue;
    const Step& step = entry.plan->steps[e.step];
    const AxisSet axes = program.axes_on(entry.part, step.group);
    CollectiveTime& total = collectives[{axes.bits, step.collective}];
    total.axes = axes;
    total.collective = step.collective;
    total.time += e.time();
    if (e.kind == TraceKind::wait) continue;  // its call has been counted
    ++total.calls;
    total.payload = detail::saturating_add(total.payload, e.bytes);
  }
  s.processes = static_cast<int>(processes.size());
  for (const LayerTotal& layer : by_layer(program)) {
    LayerTime total = totals[static_cast<std::size_t>(layer.layer)];
    total.path = layer.path;
    total.depth = layer.depth;
    total.operators = layer.operators;
    s.layers.push_back(std::move(total));
  }
  for (const auto& [key, total] : collectives) s.collectives.push_back(total);
  std::stable_sort(s.collectives.begin(), s.collectives.end(),
                   [](const auto& a, const auto& b) { return a.time > b.time; });
  return s;
}

TESSERA_FUNCTION std::string explain(const TraceSummary& s) {
  AxisNames names;
  for (const std::string& name : s.names) names.push_back(name);
  const auto time = [](std::int64_t t) { return detail::nanoseconds_text(t); };
  detail::TextTable layers;
  layers.row({"layer", "operators", "time", "communication", "", "computing", "", "copies", ""});
  for (const LayerTime& l : s.layers)
    layers.row({std::string(static_cast<std::size_t>(2 * l.depth), ' ') +
                    (l.path.empty() ? "in all" : l.path.substr(l.path.rfind('/') + 1)),
                std::to_string(l.operators), time(l.time), time(l.communication),
                detail::share_text(l.communication, l.time), time(l.computing),
                detail::share_text(l.computing, l.time), time(l.copying),
                detail::share_text(l.copying, l.time)});
  detail::TextTable collectives;
  collectives.row({"communication", "calls", "payload", "time", ""});
  for (const CollectiveTime& c : s.collectives)
    collectives.row({std::string(name_of(c.collective)) + " over " + to_string(c.axes, names),
                     std::to_string(c.calls), detail::bytes_text(c.payload), time(c.time),
                     detail::share_text(c.time, s.layers[0].time)});
  return "trace of " + std::to_string(s.processes) +
         (s.processes == 1 ? " process" : " processes") + " on " + to_string(s.mesh, names) + ": " +
         time(s.elapsed) + "; the times below are of all of them together\n" + layers.text("  ") +
         (s.collectives.empty() ? "" : collectives.text("  "));
}

TESSERA_FUNCTION std::string to_json(const Trace& trace) {
  return std::string(detail::trace_begin) + detail::trace_lines(trace) +
         std::string(detail::trace_end);
}

}  // namespace tessera
