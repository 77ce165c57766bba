// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// An operator as it is recorded: by its mesh, and by the mesh that this one is a part of.
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

struct RecordedOperator {
  int own = -1;       ///< its number in what the mesh records; -1: it is not recorded
  int in_whole = -1;  ///< the same of the whole mesh

  /// Returns who is told when its instructions run; null: nobody.
  TraceSink* begin(const Prepared& prepared, MeshCore& mesh, const OperandList& operands,
                   CallSite site) {
    Recorder& recorder = mesh.attachment<Recorder>();
    Recorder* const whole = recorder_of_whole(mesh);
    if (!recorder.on() && whole == nullptr) return nullptr;
    ProgramEntry entry{prepared.plan, std::string(site.label), site.where};
    entry.operation = prepared.operation;
    entry.contract = contract_at(mesh, site);
    if (whole != nullptr) in_whole = whole->begin(entry, mesh, operands);
    if (!recorder.on()) return nullptr;
    own = recorder.begin(std::move(entry), mesh, operands);
    return recorder.traced();
  }
  /// Records a result.
  void end(MeshCore& mesh, const TensorCore& result) const {
    if (own >= 0) mesh.attachment<Recorder>().end(own, result);
    if (in_whole < 0) return;
    if (Recorder* const whole = recorder_of_whole(mesh)) whole->end(in_whole, result);
  }
};

}  // namespace tessera::detail
