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

#include <tessera/comm/complaint.hpp>
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
  const auto together = [&](const std::string& complaint) {
    fail_together<FileError>(mesh, complaint.empty() ? complaint : "write_trace: " + complaint,
                             where);
  };
  const bool first = mesh.process() == 0;
  std::string lines;
  detail::Replacement file;
  together(complaint_of([&] {
    lines = detail::trace_lines(trace);
    file.take_name(path);
  }));
  Index offset = static_cast<Index>(detail::trace_begin.size()), end = offset;
  const auto sizes = mesh.gather_facts({static_cast<std::int64_t>(lines.size())}, where);
  for (int p = 0; p < mesh.shape().processes(); ++p) {
    if (p == mesh.process()) offset = end;
    end += sizes[static_cast<std::size_t>(p)];
  }
  const std::string head(detail::trace_begin), tail(detail::trace_end);
  together(complaint_of([&] {
    if (first)
      file.make(head, end + static_cast<Index>(tail.size()) - static_cast<Index>(head.size()));
  }));
  file.set_number(mesh.gather_facts({file.number()}, where).front());
  together(complaint_of([&] {
    detail::File mine = detail::File::open(file.name(), O_WRONLY);
    mine.write(lines.data(), static_cast<Index>(lines.size()), offset);
    if (first) mine.write(tail.data(), static_cast<Index>(tail.size()), end);
    mine.sync();
    mine.close();
  }));
  together(complaint_of([&] {
    if (first) file.commit();
  }));
}

}  // namespace tessera
