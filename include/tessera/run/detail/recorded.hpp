// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// An operator as it is recorded: by its mesh, and by the meshes that this one lies in.
///
///     TraceSink* sink = recorded.begin(prepared, mesh, operands, site);   …   recorded.end(mesh, y);
///
/// Laws: where nobody records, both do nothing.
#include <string>
#include <utility>

#include <tessera/run/plan_cache.hpp>
#include <tessera/run/recording.hpp>
#include <tessera/run/require_operands.hpp>

namespace tessera::detail {

class RecordedOperator {
 public:
  /// Returns who is told when its instructions run; null: nobody.
  TraceSink* begin(const Prepared& prepared, MeshCore& mesh, const OperandList& operands,
                   CallSite site) {
    TraceSink* traced = nullptr;
    visit_around(mesh, [&](MeshCore& on) {
      if (on.attached<Recorder>() == nullptr) return;
      Recorder& recorder = on.attachment<Recorder>();
      if (!recorder.on()) return;
      if (&on != &mesh && recorder.traced() != nullptr) return recorder.traced()->leave_out();
      ProgramEntry entry{prepared.plan, std::string(site.label), site.where};
      entry.operation = prepared.operation;
      entry.contract = contract_at(mesh, site);
      numbers_.push_back({&on, recorder.begin(std::move(entry), mesh, operands)});
      if (&on == &mesh) traced = recorder.traced();
    });
    return traced;
  }
  /// Records a result.
  void end(MeshCore& mesh, const TensorCore& result) const {
    if (numbers_.empty()) return;
    visit_around(mesh, [&](MeshCore& on) {
      if (const int number = number_on(on); number >= 0)
        on.attachment<Recorder>().end(number, result);
    });
  }

  /// Returns its number in what `mesh` records; -1: it is not recorded.
  int number_on(const MeshCore& mesh) const {
    for (const Number& one : numbers_)
      if (one.mesh == &mesh) return one.number;
    return -1;
  }

 private:
  struct Number {
    const MeshCore* mesh = nullptr;
    int number = -1;
  };
  FixedVector<Number, most_recorders> numbers_;  ///< in what each mesh records
};

}  // namespace tessera::detail
