// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Traces of a run, against its Program and its ledger.
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <tessera/io/trace_file.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"
#include "support/json.hpp"

namespace support {

/// Returns what is wrong with a process's trace, given what its ledger counted meanwhile.
inline std::string fault_of(const tessera::Trace& trace, tessera::Index calls,
                            tessera::Index payload) {
  using namespace tessera;
  std::vector<int> parts(static_cast<std::size_t>(trace.program.size()), 0);
  std::vector<TraceEvent> inside;
  Index seen = 0, bytes = 0;
  std::int64_t last = 0, communication = 0, in_all = 0;
  std::map<std::pair<int, int>, int> open;
  for (const TraceEvent& e : trace.events) {
    if (e.end < e.begin) return "an event ends before it begins";
    if (e.entry < 0 || e.entry >= trace.program.size()) return "an event of no operator";
    if (e.kind == TraceKind::part) {
      ++parts[static_cast<std::size_t>(e.entry)];
      in_all += e.time();
      for (const TraceEvent& i : inside)
        if (i.entry != e.entry || i.begin < e.begin || i.end > e.end)
          return "an event outside its operator";
      inside.clear();
      continue;
    }
    if (!inside.empty() && e.begin < last) return "events overlap";
    last = e.end;
    inside.push_back(e);
    const Plan& plan = *trace.program.entry(e.entry).plan;
    if (e.step < 0 || e.step >= plan.steps.size()) return "an event of no step";
    if (!e.communicates()) continue;
    communication += e.time();
    if (!plan.steps[e.step].communicates()) return "a call of a step that makes none";
    if (e.kind == TraceKind::start) ++open[{e.entry, e.call}];
    if (e.kind == TraceKind::wait && --open[{e.entry, e.call}] < 0)
      return "a wait for what was not started";
    if (e.kind == TraceKind::wait) continue;
    ++seen;
    bytes += e.bytes;
  }
  if (!inside.empty()) return "events after the last operator";
  for (int i = 0; i < trace.program.size(); ++i)
    if ((parts[static_cast<std::size_t>(i)] > 0) !=
        trace.program.takes_part(trace.program.entry(i)))
      return "an operator without an event, or with one of others";
  if (seen != calls)
    return std::to_string(seen) + " calls, the ledger has " + std::to_string(calls);
  if (bytes != payload)
    return std::to_string(bytes) + " bytes, the ledger has " + std::to_string(payload);
  const TraceSummary sum = summary(trace);
  if (sum.layers.at(0).communication != communication || sum.layers[0].time != in_all)
    return "the summary's sums are others";
  Index summed = 0;
  for (const CollectiveTime& c : sum.collectives) summed += c.payload;
  if (summed != payload) return "the summary's payload is another";
  if (!is_json(to_json(trace))) return "no JSON: " + to_json(trace);
  return "";
}

/// Runs f traced, and returns its trace; adds what is wrong with it to `faults`. `parts`: of the
/// mesh, on which f works too.
template <class F>
tessera::Trace traced(const tessera::DynamicMesh& mesh, std::string& faults, const F& f,
                      std::vector<tessera::DynamicMesh> parts = {}) {
  parts.push_back(mesh);
  tessera::Index calls = 0, payload = 0;
  const auto count = [&](int sign) {
    for (const tessera::DynamicMesh& one : parts) {
      const tessera::Traffic total = one.core()->ledger().total();
      calls += sign * total.calls;
      payload += sign * total.payload_bytes;
    }
  };
  count(-1);
  tessera::Tracing tracing(mesh);
  f();
  tessera::Trace trace = tracing.take();
  count(1);
  faults += fault_of(trace, calls, payload);
  return trace;
}

inline std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace support
