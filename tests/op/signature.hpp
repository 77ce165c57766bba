// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The signature law, watched: the calls that MPI sees are the calls of the plan, or of the
/// Program.
///
///     support::Signature signature;   support::observer = &signature;   // then run cases
#include <string>
#include <vector>

#include <tessera/run/program_parts.hpp>

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
  std::string end_of_parts(const tessera::Program& program,
                           const tessera::MeshCore& world) override {
    pmpi::record(false);
    return told(planned_calls(program, world));
  }
  /// The calls of the process that the Program is of; where the mesh is a part of another, it is
  /// this process's.
  static std::vector<std::string> planned_calls(const tessera::Program& program,
                                                const tessera::MeshCore& world) {
    std::vector<std::string> planned;
    if (world.absent()) return planned;
    // MPI numbers processes as the mesh does that is a part of none. A Program on another mesh
    // alone numbers all of them.
    const bool alone = !(program.mesh == world.shape());
    const tessera::MeshCore& whole = alone ? world : tessera::detail::whole_mesh(world);
    const tessera::AxisList axes = tessera::detail::axes_in(world, whole);
    const auto lifted = [&](tessera::AxisSet set) {
      tessera::AxisSet all;
      for (int a = 0; a < axes.size(); ++a)
        if (set.contains(a)) all.insert(axes[a]);
      return all;
    };
    for (const tessera::ProgramEntry& e : program.entries()) {
      if (!program.takes_part(e)) continue;
      const bool other = alone || (!program.parts().empty() && program.part_at(e.part).other);
      const tessera::MeshShape& shape = other ? program.mesh_on(e.part) : whole.shape();
      const int place = other              ? program.place_on(e.part, program.process)
                        : &whole == &world ? program.process
                                           : whole.process();
      std::vector<int> numbers(other ? static_cast<std::size_t>(shape.processes()) : 0);
      for (int p = 0; other && p < program.mesh.processes(); ++p)
        if (const int there = program.place_on(e.part, p); there >= 0)
          numbers[static_cast<std::size_t>(there)] = p;
      for (tessera::Call call : tessera::instructions_of(*e.plan).calls) {
        if (!other) {
          if (call.group.divided >= 0) {
            const int own = call.group.divided;
            const int there = program.parts().empty() ? own : program.part_at(e.part).axes[own];
            call.group.divided = static_cast<std::int8_t>(axes[there]);
          }
          call.group.axes = lifted(program.axes_on(e.part, call.group.axes));
        }
        for (const std::string& text :
             pmpi::texts_of(call, shape, shape.coordinates(place), numbers))
          planned.push_back(text);
      }
    }
    return planned;
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
