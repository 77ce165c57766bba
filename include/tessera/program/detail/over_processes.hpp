// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The numbers of plans and Programs on one process after another.
///
///     detail::ProgramNumbers(program).over_all()
///
/// Laws: processes whose blocks have equal extents are visited once, on parts too.
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tessera/base/compiled.hpp>
#include <tessera/plan/process_classes.hpp>
#include <tessera/program/over_processes.hpp>

namespace tessera {

namespace detail {
inline void add_process(PlanSpread& spread, const Plan& p, Index alike) {
  for (int i = 0; i < p.steps.size(); ++i) {
    StepSpread& step = spread.steps[static_cast<std::size_t>(i)];
    step.payload.add(p.steps[i].payload, p.process, alike);
    step.network.add(p.steps[i].network_payload, p.process, alike);
    step.messages.add(p.steps[i].messages, p.process, alike);
    step.flops.add(p.steps[i].flops, p.process, alike);
  }
  spread.payload.add(p.own_payload_bytes(), p.process, alike);
  spread.network.add(p.network_bytes(), p.process, alike);
  spread.messages.add(p.messages(), p.process, alike);
  spread.flops.add(p.flops(), p.process, alike);
  spread.peak.add(p.peak_bytes, p.process, alike);
}

/// Returns the numbers of the plan's own process, as if there were no other processes.
inline PlanSpread own_numbers(const Plan& plan) {
  PlanSpread spread;
  spread.steps.resize(static_cast<std::size_t>(plan.steps.size()));
  add_process(spread, plan, 1);
  return spread;
}

/// Returns the arena memory of a program's tensor on the process at `at`.
inline Index charge_of(const ProgramTensor& t, const MeshShape& mesh, const Coordinates& at) {
  if (t.adopted) return 0;
  return arena_charge(saturating_mul(block_volume(t.desc.extents, t.desc.sharding, mesh, at),
                                     static_cast<Index>(size_of(t.desc.type))));
}

/// Walks through a program on one process after another.
class ProgramNumbers {
 public:
  explicit ProgramNumbers(const Program& program) : program_(program) {
    std::unordered_map<const Plan*, std::size_t> known;
    for (const ProgramEntry& e : program.entries()) {
      const auto [at, fresh] = known.emplace(e.plan.get(), plans_.size());
      use_.push_back(at->second);
      if (!fresh) continue;
      plans_.push_back(*e.plan);
      parts_.push_back(e.part);
    }
    std::map<std::pair<std::uint32_t, Collective>, std::size_t> axes;
    const auto key = [&](std::size_t plan, const Step& s) {
      return std::pair(program.axes_on(parts_[plan], s.group).bits, s.collective);
    };
    for (std::size_t i = 0; i < plans_.size(); ++i)
      for (const Step& s : plans_[i].steps)
        if (s.communicates()) axes.try_emplace(key(i, s));
    for (auto& [of, number] : axes) {
      number = spread_.axes.size();
      spread_.axes.push_back({AxisSet::from_bits(of.first), of.second, {}, {}, {}});
    }
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      axes_of_.emplace_back();
      for (const Step& s : plans_[i].steps)
        axes_of_.back().push_back(s.communicates() ? axes.at(key(i, s)) : 0);
    }
    spread_.entries.resize(use_.size());
    spread_.layers.resize(program.layers().size());
  }

  ProgramSpread over_all() {
    classes().visit([&](int process, const Coordinates&, Index alike) { add(process, alike); });
    return spread_;
  }
  template <class Number> Spread over_steps(const Number& number) {
    Spread spread;
    const auto of = [&](int process, const Coordinates&, Index alike) {
      std::vector<Index> of_plan;
      for (std::size_t i = 0; i < plans_.size(); ++i) {
        of_plan.push_back(0);
        if (!move(i, process)) continue;
        for (const Step& s : plans_[i].steps)
          if (s.communicates())
            of_plan.back() = saturating_add(of_plan.back(), number_of(number, parts_[i], s));
      }
      Index sum = 0;
      for (const std::size_t plan : use_) sum = saturating_add(sum, of_plan[plan]);
      spread.add(sum, process, alike);
    };
    classes().visit(of);
    return spread;
  }
  ProgramSpread of_own() {
    add(program_.process, 1);
    return spread_;
  }

 private:
  struct Numbers {
    Index payload = 0, network = 0, messages = 0, flops = 0, duplicated = 0, peak = 0;
    void take(const Numbers& n) {
      payload = saturating_add(payload, n.payload);
      network = saturating_add(network, n.network);
      messages = saturating_add(messages, n.messages);
      flops = saturating_add(flops, n.flops);
      duplicated = saturating_add(duplicated, n.duplicated);
      peak = max_of(peak, n.peak);
    }
    void give(TotalSpread& spread, int process, Index alike) const {
      spread.payload.add(payload, process, alike);
      spread.network.add(network, process, alike);
      spread.messages.add(messages, process, alike);
      spread.flops.add(flops, process, alike);
      spread.duplicated.add(duplicated, process, alike);
      spread.peak.add(peak, process, alike);
    }
  };

  /// Restates a plan for a process; false: that takes no part in it.
  bool move(std::size_t plan, int process) {
    const int place = program_.place_on(parts_[plan], process);
    if (place >= 0 && plans_[plan].process != place) detail::move_to_process(plans_[plan], place);
    return place >= 0;
  }
  /// A step says axes of the program's mesh.
  template <class Number> Index number_of(const Number& number, int part, const Step& s) const {
    if (program_.parts().empty()) return number(s);
    Step seen = s;
    seen.group = program_.axes_on(part, s.group);
    return number(seen);
  }
  ProcessClasses classes() const {
    ProcessClasses all(program_.mesh);
    if (program_.parts().empty()) {
      for (const Plan& plan : plans_) all.add(plan);
      for (const ProgramTensor& t : program_.tensors()) all.add(t.desc);
      return all;
    }
    std::vector<ProcessClasses> of_parts;
    for (const ProgramPart& part : program_.parts()) of_parts.emplace_back(part.mesh);
    for (std::size_t i = 0; i < plans_.size(); ++i)
      if (!program_.part_at(parts_[i]).other)
        of_parts[static_cast<std::size_t>(parts_[i])].add(plans_[i]);
    for (const ProgramTensor& t : program_.tensors())
      if (!program_.part_at(t.part).other) of_parts[static_cast<std::size_t>(t.part)].add(t.desc);
    for (std::size_t k = 0; k < of_parts.size(); ++k) {
      const ProgramPart& part = program_.parts()[k];
      if (part.other) {
        all.add_all();
        continue;
      }
      std::vector<bool> members;
      for (const int place : part.places) members.push_back(place >= 0);
      all.add_members(members);
      all.add(of_parts[k], part.axes);
    }
    return all;
  }
  void add(int process, Index alike) {
    std::vector<Numbers> of_plan;
    std::vector<bool> takes;
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      takes.push_back(move(i, process));
      of_plan.emplace_back();
      const Plan& plan = plans_[i];
      if (takes.back())
        of_plan.back() = {
            plan.own_payload_bytes(),        plan.network_bytes(), plan.messages(), plan.flops(),
            Program::duplicated_flops(plan), plan.peak_bytes};
    }
    const std::vector<Index> more = held_more(process);
    Numbers all;
    std::vector<Numbers> layers(program_.layers().size());
    std::vector<Numbers> axes(spread_.axes.size());
    for (std::size_t i = 0; i < use_.size(); ++i) {
      const ProgramEntry& e = program_.entries()[i];
      Numbers one = of_plan[use_[i]];
      if (takes[use_[i]]) one.peak = saturating_add(e.held_before + more[i], one.peak);
      one.give(spread_.entries[i], process, alike);
      all.take(one);
      for (int l = e.layer; l >= 0; l = program_.layers()[static_cast<std::size_t>(l)].parent)
        layers[static_cast<std::size_t>(l)].take(one);
      const Plan& plan = plans_[use_[i]];
      for (int k = 0; k < plan.steps.size() && takes[use_[i]]; ++k)
        if (const Step& s = plan.steps[k]; s.communicates())
          axes[axes_of_[use_[i]][static_cast<std::size_t>(k)]].take(
              {s.payload, s.network_payload, s.messages, 0, 0, 0});
    }
    all.give(spread_, process, alike);
    for (std::size_t l = 0; l < layers.size(); ++l)
      layers[l].give(spread_.layers[l], process, alike);
    for (std::size_t a = 0; a < axes.size(); ++a) {
      spread_.axes[a].payload.add(axes[a].payload, process, alike);
      spread_.axes[a].network.add(axes[a].network, process, alike);
      spread_.axes[a].messages.add(axes[a].messages, process, alike);
    }
  }
  /// Returns, for each operator, how many more bytes a process holds when it begins than the
  /// program's own process does.
  std::vector<Index> held_more(int process) const {
    std::vector<Index> more(use_.size() + 1);
    if (process == program_.process) return more;
    for (const ProgramTensor& t : program_.tensors()) {
      const int begins = t.begins();
      const int ends = static_cast<int>(min_of(t.last + 1, program_.size()));
      if (begins >= ends) continue;
      const Index change = program_.charge(t, process) - t.bytes;
      more[static_cast<std::size_t>(begins)] += change;
      more[static_cast<std::size_t>(ends)] -= change;
    }
    for (std::size_t i = 1; i < more.size(); ++i) more[i] += more[i - 1];
    return more;
  }

  const Program& program_;
  std::vector<Plan> plans_;       // each different one once, moved from process to process
  std::vector<int> parts_;        // of each of them
  std::vector<std::size_t> use_;  // the plan of each operator, as an index of plans_
  std::vector<std::vector<std::size_t>> axes_of_;  // of each plan's steps
  ProgramSpread spread_;
};
}  // namespace detail

TESSERA_FUNCTION PlanSpread over_processes(const Plan& plan) {
  PlanSpread spread;
  spread.steps.resize(static_cast<std::size_t>(plan.steps.size()));
  detail::ProcessClasses classes(plan.mesh);
  classes.add(plan);
  Plan p = plan;
  classes.visit([&](int process, const Coordinates&, Index alike) {
    if (p.process != process) detail::move_to_process(p, process);
    detail::add_process(spread, p, alike);
  });
  return spread;
}

TESSERA_FUNCTION ProgramSpread over_processes(const Program& program) {
  return detail::ProgramNumbers(program).over_all();
}

/// Returns, over all processes, the sum of a number of each communicating step: number(step).
template <class Number> Spread over_processes(const Program& program, const Number& number) {
  return detail::ProgramNumbers(program).over_steps(number);
}

TESSERA_FUNCTION Index Program::charge(const ProgramTensor& t, int of) const {
  const int place = place_on(t.part, of);
  if (place < 0) return 0;
  const MeshShape& on = mesh_on(t.part);
  return detail::charge_of(t, on, on.coordinates(place));
}

TESSERA_FUNCTION Index Program::payload_bytes() const {
  return over_processes(*this, [](const Step& s) { return s.payload; }).most;
}

TESSERA_FUNCTION Index Program::payload_bytes(Collective kind) const {
  return over_processes(*this, [&](const Step& s) { return s.collective == kind ? s.payload : 0; })
      .most;
}

TESSERA_FUNCTION Index Program::payload_bytes(AxisSet group) const {
  return over_processes(*this, [&](const Step& s) { return s.group == group ? s.payload : 0; })
      .most;
}

}  // namespace tessera
