// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The signature law, watched: the calls that MPI sees are the calls of the plan, or of the
/// Program.
///
///     support::Signature signature;   support::observer = &signature;   // then run cases
#include <string>
#include <vector>

#include "support/observer.hpp"
#include "support/pmpi.hpp"

namespace support {

/// Compares what PMPI sees with the planned calls.
struct Signature final : Observer {
  long calls = 0;
  void begin() override { pmpi::record(true); }
  std::string end(const tessera::MeshCore& mesh, const std::vector<tessera::Call>& made) override {
    pmpi::record(false);
    std::vector<std::string> planned;
    for (const tessera::Call& call : made)
      for (const std::string& text : pmpi::texts_of(call, mesh.shape(), mesh.coordinates()))
        planned.push_back(text);
    return told(planned);
  }
  std::string end_of_parts(const tessera::Program& program) override {
    pmpi::record(false);
    std::vector<std::string> planned;
    for (const tessera::ProgramEntry& e : program.entries()) {
      if (!program.takes_part(e)) continue;
      // MPI numbers processes as the world does; axes of a part are axes of its mesh.
      const bool other = !program.parts().empty() && program.part_at(e.part).other;
      const tessera::MeshShape& shape = other ? program.mesh_on(e.part) : program.mesh;
      const int place = other ? program.place_on(e.part, program.process) : program.process;
      for (tessera::Call call : tessera::instructions_of(*e.plan).calls) {
        if (!other && !program.parts().empty()) {
          const tessera::AxisList& axes = program.part_at(e.part).axes;
          call.group.axes = program.axes_on(e.part, call.group.axes);
          if (call.group.divided >= 0)
            call.group.divided = static_cast<std::int8_t>(axes[call.group.divided]);
        }
        for (const std::string& text : pmpi::texts_of(call, shape, shape.coordinates(place)))
          planned.push_back(text);
      }
    }
    return told(planned);
  }

 private:
  std::string told(const std::vector<std::string>& planned) {
    calls += static_cast<long>(planned.size());
    if (planned == pmpi::calls()) return "";
    std::string text = "MPI sees other calls than planned:";
    for (const std::string& call : pmpi::calls()) text += "\n  seen     " + call;
    for (const std::string& call : planned) text += "\n  planned  " + call;
    return text;
  }
};

}  // namespace support
