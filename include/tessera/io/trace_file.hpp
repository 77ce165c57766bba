// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A trace as a file, which ui.perfetto.dev and chrome://tracing show.
///
///     Tracing tracing(mesh);
///     y = project(x, w);
///     write_trace(mesh, "run.json", tracing.take());      // of all processes
///
/// Laws: the file has the events of every process; the old file is unchanged where writing fails.
#include <cstdint>
#include <string>

#include <tessera/io/detail/replacement.hpp>
#include <tessera/program/trace.hpp>
#include <tessera/run/tracing.hpp>
#include <tessera/tensor/process_mesh.hpp>

namespace tessera {

/// Writes a trace that has all events: a simulated one, or a process's own. Throws FileError.
inline void write_trace(const std::string& path, const Trace& trace) {
  const std::string text = to_json(trace);
  detail::Replacement file;
  file.take_name(path);
  file.make(text, 0);
  file.commit();
}

/// Writes the traces of all processes of a mesh to one file: each process its own events.
/// Communication: a few integers, in no ledger. Collective over the mesh. Throws FileError, the
/// same on every process.
inline void write_trace(const DynamicMesh& on, const std::string& path, const Trace& trace,
                        Where where = Where::here()) {
  MeshCore& mesh = *on.core();
  const std::string lines = detail::trace_lines(trace);
  const std::string head(detail::trace_begin), tail(detail::trace_end);
  const Index before = static_cast<Index>(head.size());
  Index offset = before, end = before;
  const auto sizes = mesh.gather_facts({static_cast<std::int64_t>(lines.size())}, where);
  for (int p = 0; p < mesh.shape().processes(); ++p) {
    if (p == mesh.process()) offset = end;
    end += sizes[static_cast<std::size_t>(p)];
  }
  const Index after = static_cast<Index>(tail.size());
  detail::write_together(mesh, path, {head, end + after - before}, {"write_trace", where},
                         [&](detail::File& file) {
                           file.write(lines.data(), static_cast<Index>(lines.size()), offset);
                           if (mesh.process() == 0) file.write(tail.data(), after, end);
                         });
}

}  // namespace tessera
