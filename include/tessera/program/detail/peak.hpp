// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The body of program/peak.hpp.
///
///     peak_over_processes(program)
#include <unordered_map>
#include <vector>

#include <tessera/program/detail/over_processes.hpp>
#include <tessera/program/peak.hpp>

namespace tessera {

TESSERA_FUNCTION Index peak_over_processes(const Program& program) {
  if (!program.parts().empty()) return over_processes(program).peak.most;
  std::vector<Plan> plans;        // each different one once
  std::vector<std::size_t> plan;  // of each operator
  std::vector<Index> own;         // the plans' peaks on the Program's process
  std::unordered_map<const Plan*, std::size_t> known;
  detail::ProcessClasses classes(program.mesh);
  for (const ProgramEntry& e : program.entries()) {
    const auto [at, fresh] = known.emplace(e.plan.get(), plans.size());
    plan.push_back(at->second);
    if (!fresh) continue;
    plans.push_back(*e.plan);
    own.push_back(e.plan->peak_bytes);
    classes.add(*e.plan);
  }
  std::vector<std::size_t> kinds;  // a tensor of each description
  for (std::size_t t = 0; t < program.tensors().size(); ++t) {
    const ProgramTensor& tensor = program.tensors()[t];
    bool seen = false;
    for (const std::size_t kind : kinds) {
      const ProgramTensor& other = program.tensors()[kind];
      seen = seen || (other.adopted == tensor.adopted && other.desc == tensor.desc);
    }
    if (!seen) kinds.push_back(t);
    if (!seen) classes.add(tensor.desc);
  }
  // What is held before an operator begins, and its own peak.
  const auto peak_at = [&](const Coordinates& at) {
    std::vector<Index> more(plan.size() + 1);
    for (const ProgramTensor& t : program.tensors()) {
      const int begins = t.begins();
      const int ends = static_cast<int>(min_of(t.last + 1, program.size()));
      if (begins >= ends) continue;
      const Index change = detail::charge_of(t, program.mesh, at) - t.bytes;
      more[static_cast<std::size_t>(begins)] += change;
      more[static_cast<std::size_t>(ends)] -= change;
    }
    Index most = 0, change = 0;
    for (std::size_t i = 0; i < plan.size(); ++i) {
      change += more[i];
      most = max_of(most, detail::saturating_add(program.entries()[i].held_before + change,
                                                 plans[plan[i]].peak_bytes));
    }
    return most;
  };
  Index most = peak_at(program.mesh.coordinates(program.process));
  classes.visit([&](int process, const Coordinates& at, Index) {
    bool within = true;
    for (std::size_t i = 0; i < plans.size(); ++i) {
      if (plans[i].process != process) detail::move_to_process(plans[i], process);
      within = within && plans[i].peak_bytes <= own[i];
    }
    for (const std::size_t kind : kinds) {
      const ProgramTensor& t = program.tensors()[kind];
      within = within && detail::charge_of(t, program.mesh, at) <= t.bytes;
    }
    if (!within) most = max_of(most, peak_at(at));
  });
  return most;
}

}  // namespace tessera
