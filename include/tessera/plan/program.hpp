// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A Program: the ordered list of plans that a run, or a dry run, went through, with the lifetimes
/// of its tensors.
///
///     Program p = plan(feed_forward)(like<X>(8, 512, 5120), ...);
///     p.payload_bytes(AxisSet{1});   p.peak_bytes();   p.duplicated_flops()
///
/// Laws: a dry run of f on process r records the same Program as a run of f on process r.
#include <memory>
#include <string>
#include <vector>

#include <tessera/base/where.hpp>
#include <tessera/plan/plan.hpp>

namespace tessera {

/// One operator that ran.
struct ProgramEntry {
  std::shared_ptr<const Plan> plan;
  std::string label;  ///< the equation or the function's name
  Where where;
  Index held_before = 0;  ///< bytes of tensors alive on this process when it began
};

class Program {
 public:
  MeshShape mesh;
  int process = 0;

  /// The names are copied: a Program outlives the mesh it ran on.
  void set_names(const AxisNames& names) { names_.assign(names.begin(), names.end()); }
  AxisNames names() const {
    AxisNames names;
    for (const std::string& name : names_) names.push_back(name);
    return names;
  }

  void record(ProgramEntry entry) {
    peak_ = max_of(peak_, saturating_add(entry.held_before, entry.plan->peak_bytes));
    entries_.push_back(std::move(entry));
  }
  void clear() {
    entries_.clear();
    peak_ = 0;
  }

  const std::vector<ProgramEntry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  int count(Collective kind) const {
    int n = 0;
    for (const ProgramEntry& e : entries_) n += e.plan->count(kind);
    return n;
  }
  Index payload_bytes() const {
    return sum([](const Plan& p) { return p.payload_bytes(); });
  }
  Index payload_bytes(Collective kind) const {
    return sum([&](const Plan& p) { return p.payload_bytes(kind); });
  }
  /// Returns the payload of the steps that communicate over exactly the axes of `group`.
  Index payload_bytes(AxisSet group) const {
    return sum([&](const Plan& p) {
      Index bytes = 0;
      for (const Step& s : p.steps)
        if (s.kind == StepKind::communicate && s.group == group)
          bytes = saturating_add(bytes, s.payload);
      return bytes;
    });
  }
  /// Returns the payload that goes between nodes.
  Index network_bytes() const {
    return sum([](const Plan& p) { return p.network_bytes(); });
  }
  Index messages() const {
    return sum([](const Plan& p) { return p.messages(); });
  }
  Index flops() const {
    return sum([](const Plan& p) { return p.flops(); });
  }
  std::int64_t cost() const {
    return sum([](const Plan& p) { return p.cost; });
  }
  /// Returns the flops that other processes do as well: what this process would save if replicated
  /// work were split.
  Index duplicated_flops() const {
    return sum([](const Plan& p) {
      Index extra = 0;
      for (const Step& s : p.steps) extra = saturating_add(extra, s.flops - s.flops / copies(p, s));
      return extra;
    });
  }
  /// Returns the most bytes held at once: tensors alive and an operator's own workspace.
  Index peak_bytes() const { return peak_; }

  /// Returns how many processes do the same local work in a step.
  static Index copies(const Plan& plan, const Step& step) {
    if (step.flops == 0) return 1;
    AxisSet split;
    for (int slot : step.in) {
      split =
          split | plan.slots[slot].desc.sharding.used() | plan.slots[slot].desc.sharding.partial;
    }
    return plan.mesh.group_size(plan.mesh.axes() - split);
  }

 private:
  template <class F> Index sum(const F& f) const {
    Index total = 0;
    for (const ProgramEntry& e : entries_) total = saturating_add(total, f(*e.plan));
    return total;
  }

  std::vector<std::string> names_;
  std::vector<ProgramEntry> entries_;
  Index peak_ = 0;
};

}  // namespace tessera
