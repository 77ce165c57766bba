// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A function over several parts of one world, compiled and alone: the results are the same, and
/// this process sends, and takes up, what the function's Program says of it.
///
///     std::string wrong = compiled_alike({whole, part}, compiled, call, expected, 0);
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <tessera/op/compile.hpp>
#include <tessera/program/peak.hpp>
#include <tessera/tessera.hpp>

#include "support/enumerate.hpp"
#include "support/larger.hpp"
#include "support/observer.hpp"

namespace support {
using namespace tessera;

/// Returns the options of a mesh on which processes compare what they call or, where an observer
/// watches, make no calls but an operator's.
inline MeshOptions options_watched(Random& random) {
  MeshOptions options;
  options.check = random.chance(50) ? Check::communicating : Check::normal;
  if (observer == nullptr) return options;
  options.check = Check::normal;
  options.shared = Shared::off;
  return options;
}

/// Returns by how much the results differ, of the largest; of those on meshes that this process is
/// in.
inline std::string results_apart(const std::vector<DynamicTensor>& got,
                                 const std::vector<DynamicTensor>& expected, double rounding) {
  if (got.size() != expected.size()) return "another number of results";
  std::string wrong;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i].core().mesh() != expected[i].core().mesh() ||
        !(got[i].core().desc() == expected[i].core().desc()))
      return "result " + std::to_string(i) + " is another tensor";
    if (got[i].core().dry()) continue;
    const auto a = to_host<double>(got[i]), b = to_host<double>(expected[i]);
    double most = 1, by = 0;
    for (std::size_t k = 0; k < b.values.size(); ++k) {
      most = std::max(most, std::fabs(b.values[k]));
      by = support::larger(by, std::fabs(a.values[k] - b.values[k]));
    }
    if (!(by <= rounding * most))
      wrong += "result " + std::to_string(i) + " differs by " + std::to_string(by / most) +
               " of the largest; ";
  }
  return wrong;
}

/// Returns what is wrong with call(), a call of the compiled function. `meshes`: all on which the
/// function has operators, the first one the mesh that its Program numbers processes of; but for a
/// function on one of its parts alone.
template <class C, class F>
std::string compiled_alike(const std::vector<std::shared_ptr<MeshCore>>& meshes, C& compiled,
                           const F& call, const std::vector<DynamicTensor>& expected,
                           double rounding) {
  MeshCore& world = *meshes[0];
  detail::ChargedTogether& memory = world.arena().together();
  for (const auto& mesh : meshes) mesh->ledger().reset();
  const bool known = compiled.structures() > 0;
  memory.peak = memory.now;
  const Index before = memory.now;
  if (known && observer != nullptr) observer->begin();
  const std::vector<DynamicTensor> got = call();
  if (compiled.structures() == 0) return results_apart(got, expected, rounding);
  const Program& program = compiled.program();
  bool absent = false;  // a function on one part is planned as on its first process
  for (const auto& mesh : meshes) absent = absent || mesh->absent();
  absent = world.absent() || (absent && program.parts().empty());
  // Such a Program numbers the processes of its part, and MPI those of the world.
  const bool one_part =
      program.parts().empty() && program.mesh.processes() != world.shape().processes();
  std::string wrong;
  if (known && observer != nullptr)
    if (const std::string seen = observer->end_of_parts(program, world); !one_part) wrong += seen;
  Index sent = 0;
  for (const auto& mesh : meshes) sent += mesh->ledger().payload_bytes();
  const auto is = [&](Index measured, Index planned, const char* what) {
    if (measured != planned)
      wrong += "the run " + std::string(what) + " " + std::to_string(measured) +
               " bytes, its Program " + std::to_string(planned) + "\n" + explain_own(program);
  };
  if (world.absent()) is(sent, 0, "sends as a process that has no part");
  if (world.absent()) is(memory.now, before, "holds as a process that has no part");
  if (absent) return wrong + results_apart(got, expected, rounding);
  is(sent, program.own_payload_bytes(), "sends");
  Index others = memory.now;
  for (const ProgramTensor& t : program.tensors())
    if (t.last >= program.size()) others -= t.bytes;
  is(memory.peak, std::max(before, others + program.peak_bytes()), "takes");
  // What each process plans for the others is what they plan for themselves.
  const Program mine = on_process(program, program.process);
  if (mine.own_payload_bytes() != program.own_payload_bytes() ||
      mine.peak_bytes() != program.peak_bytes())
    wrong += "the Program has other numbers when it is stated for its own process; ";
  Spread payload, peak;  // process by process
  for (int p = 0; p < program.mesh.processes(); ++p) {
    const Program there = on_process(program, p);
    payload.add(there.own_payload_bytes(), p);
    peak.add(there.peak_bytes(), p);
  }
  const ProgramSpread spread = over_processes(program);
  if (!(spread.payload == payload) || !(spread.peak == peak))
    wrong += "numbers over all processes are not those of one after the other; ";
  return wrong + results_apart(got, expected, rounding);
}

}  // namespace support
