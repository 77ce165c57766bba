// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// An operator as it is recorded and traced: by its mesh, and by the meshes that this one lies in.
///
///     recorded.begin(prepared, mesh, operands, site);
///     if (recorded.traced()) recorded.tell(mesh, event);   …   recorded.end(mesh, y);
///
/// Laws: where nobody records, they do nothing.
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include <tessera/run/plan_cache.hpp>
#include <tessera/run/recording.hpp>
#include <tessera/run/require_operands.hpp>

namespace tessera::detail {

/// Returns the nanoseconds of the clock that traces are measured by.
inline std::int64_t trace_clock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class RecordedOperator {
 public:
  void begin(const Prepared& prepared, MeshCore& mesh, const OperandList& operands, CallSite site) {
    visit_around(mesh, [&](MeshCore& on) {
      if (on.attached<Recorder>() == nullptr) return;
      Recorder& recorder = on.attachment<Recorder>();
      if (!recorder.on()) return;
      ProgramEntry entry{prepared.plan, std::string(site.label), site.where};
      entry.operation = prepared.operation;
      entry.contract = contract_at(mesh, site);
      numbers_.push_back({&on, recorder.begin(std::move(entry), mesh, operands)});
      traced_ = traced_ || (recorder.traced() != nullptr && !mesh.absent());
    });
  }
  /// Records a result.
  void end(MeshCore& mesh, const TensorCore& result) const {
    if (numbers_.empty()) return;
    visit_around(mesh, [&](MeshCore& on) {
      if (const int number = number_on(on); number >= 0)
        on.attachment<Recorder>().end(number, result);
    });
  }
  /// Returns whether somebody traced when it began, and this process takes part in it.
  bool traced() const { return traced_; }
  /// Adds an event to the traces that have not ended; each gets its own number of the operator.
  void tell(MeshCore& mesh, TraceEvent event) const {
    visit_around(mesh, [&](MeshCore& on) {
      event.entry = number_on(on);
      if (event.entry < 0) return;
      TraceSink* const sink = on.attachment<Recorder>().traced();
      if (sink != nullptr) sink->add(event);
    });
  }

 private:
  /// Returns its number in what `mesh` records; -1: it is not recorded.
  int number_on(const MeshCore& mesh) const {
    for (const Number& one : numbers_)
      if (one.mesh == &mesh) return one.number;
    return -1;
  }

  struct Number {
    const MeshCore* mesh = nullptr;
    int number = -1;
  };
  FixedVector<Number, most_recorders> numbers_;  ///< in what each mesh records
  bool traced_ = false;
};

}  // namespace tessera::detail
