// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// What took how long: the times of a run, or those that a machine model foretells.
///
///     const Trace trace = simulated_trace(program);         // run/tracing.hpp: of a run
///     fmt::print("{}", explain(summary(trace)));            // communication by layer and collective
///     to_json(trace)                                        // for ui.perfetto.dev; io/trace_file.hpp writes it
///
/// Laws: the events of one process and lane do not overlap, except that each lies in a part of its
/// operator; the calls of a run's trace are those of the ledger, of a simulated one those of the
/// steps, each of which stands for all rounds.
#include <string>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/mesh/machine.hpp>
#include <tessera/program/program.hpp>
#include <tessera/program/trace_event.hpp>

namespace tessera {

/// Stretches of time beside those of processes, such as what a stage of a pipeline did
/// (program/pipeline/stage_tracks.hpp).
struct TraceTrack {
  struct Span {
    std::int64_t begin = 0, end = 0;  ///< nanoseconds since the trace began
    std::string name;
  };
  std::string name;
  std::vector<Span> spans;
};
/// Where the mesh of a trace lies, if it is a part of another.
struct TracedPart {
  std::vector<int> processes;  ///< the numbers that its processes have in the whole mesh
  std::string place;           ///< "stage 1"
};

/// The events of one process of a run, or of all processes of a simulation.
struct Trace {
  Program program;
  std::vector<TraceEvent> events;  ///< each process's, in the order in which they ended
  std::vector<TraceTrack> tracks = {};
  TracedPart part = {};
};

/// Returns the times of a Program on every process, as a machine model has them: an operator's
/// steps one after the other, a call when all members of its group have come to it. Communication:
/// none.
TESSERA_FUNCTION Trace simulated_trace(const Program& program, const Machine& machine = {});

/// The time of a layer, the layers within it included: nanoseconds, of all processes together.
struct LayerTime {
  std::string path;  ///< "encoder.0/attention"; empty for the whole trace
  int depth = 0;
  int operators = 0;               ///< of the Program
  std::int64_t time = 0;           ///< in operators
  std::int64_t communication = 0;  ///< calls, their starts, and waits for them
  std::int64_t computing = 0;      ///< kernels, and waits for the device
  std::int64_t copying = 0;
};
/// The time of one kind of collective over one group of axes, of all processes together.
struct CollectiveTime {
  AxisSet axes;
  Collective collective = Collective::all_gather;
  int calls = 0;
  Index payload = 0;  ///< bytes
  std::int64_t time = 0;
};
struct TraceSummary {
  MeshShape mesh;
  std::vector<std::string> names;  ///< of the mesh's axes
  int processes = 0;               ///< that have events
  std::int64_t elapsed = 0;        ///< until the last event ends
  std::vector<LayerTime> layers;   ///< the whole trace first, then as by_layer() lists them
  std::vector<CollectiveTime> collectives;  ///< the longest first
};
TESSERA_FUNCTION TraceSummary summary(const Trace& trace);

/// Returns the summary as two tables.
TESSERA_FUNCTION std::string explain(const TraceSummary& summary);

/// Returns the trace in the Trace Event Format, which ui.perfetto.dev and chrome://tracing show: a
/// track for each process and lane, on it layers, in these operators, in these what they did; and
/// the calls that are under way; and the tracks beside them. Source: "Trace Event Format", Google,
/// 2016.
TESSERA_FUNCTION std::string to_json(const Trace& trace);

namespace detail {
/// What stands before the events of a trace, and after them. Each event ends with ",\n" but the
/// last, which is trace_end's.
inline constexpr std::string_view trace_begin = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
inline constexpr std::string_view trace_end =
    "{\"ph\":\"M\",\"pid\":0,\"name\":\"process_labels\",\"args\":{\"labels\":\"tessera\"}}\n]}\n";
/// Returns the events alone.
TESSERA_FUNCTION std::string trace_lines(const Trace& trace);
}  // namespace detail

}  // namespace tessera

#if TESSERA_BODIES
#include <tessera/program/detail/trace.hpp>
#endif
