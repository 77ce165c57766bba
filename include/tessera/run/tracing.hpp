// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Measuring when what runs on a mesh runs.
///
///     Tracing tracing(mesh);
///     y = model(x);
///     const Trace trace = tracing.take();
///     fmt::print("{}", explain(summary(trace)));      // of this process
///
/// Laws: a trace has the operators of a Recording, and the calls of the ledger; where nothing is
/// traced an instruction costs one comparison.
#include <cstdint>
#include <utility>
#include <vector>

#include <tessera/kernel/lane.hpp>
#include <tessera/program/trace.hpp>
#include <tessera/run/detail/recorded.hpp>
#include <tessera/run/recording.hpp>

namespace tessera {
namespace detail {

/// Collects the events of this process.
class TraceEvents final : public TraceSink {
 public:
  /// `first`: the number of the first operator.
  TraceEvents(int process, int first) : process_(process), first_(first) {}
  void add(const TraceEvent& event) override {
    if (event.entry < first_) return;  // of an operator that began before
    events_.push_back(event);
    events_.back().entry -= first_;
    events_.back().begin -= zero_;
    events_.back().end -= zero_;
    events_.back().process = process_;
    events_.back().lane = lane().number();
  }
  std::vector<TraceEvent> take() { return std::exchange(events_, {}); }

 private:
  int process_;
  int first_;
  std::int64_t zero_ = trace_clock();
  std::vector<TraceEvent> events_;
};

/// Returns where a mesh lies that is a part of another.
inline TracedPart traced_part(const DynamicMesh& mesh) {
  TracedPart part;
  if (mesh.core()->attached<PartHome>() == nullptr) return part;
  const std::shared_ptr<MeshCore> whole = whole_of(mesh.core());
  part.processes = members_in(*mesh.core(), *whole);
  const Coordinates at = whole->shape().coordinates(part.processes[0]);
  const AxisSet left = axes_in(*mesh.core(), *whole).set();
  for (int axis = 0; axis < whole->shape().rank(); ++axis)
    if (!left.contains(axis))
      part.place += (part.place.empty() ? "" : ", ") + std::string(whole->names()[axis]) + " " +
                    std::to_string(at[axis]);
  return part;
}
}  // namespace detail

/// Traces every operator on `mesh` and on its parts while it lives, and records it; take() ends it.
/// Times count from a barrier, so that those of several processes fit together as well as the
/// barrier ends at once. On a device a kernel's time is that of its launch, and the process waits
/// for it in a later fence. Communication: a barrier, in no ledger. Collective over the mesh.
/// Throws UsageError when the mesh is recorded already, or dry: there nothing takes time. A part of
/// a mesh may have a trace of its own too, in which processes have the numbers of the whole mesh.
class Tracing {
 public:
  explicit Tracing(const DynamicMesh& mesh, Where where = Where::here())
      : recording_(began(mesh, where)),
        events_(mesh.process(), recorder(mesh).started()),
        part_(detail::traced_part(mesh)) {
    recorder(mesh).trace(&events_);
  }
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;
  /// Throws UsageError when it has been called before.
  Trace take(Where where = Where::here()) {
    Program program = recording_.take(where);
    return {std::move(program), events_.take(), {}, part_};
  }

 private:
  static const DynamicMesh& began(const DynamicMesh& mesh, Where where) {
    if (mesh.core()->dry())
      throw UsageError(
          "a dry mesh is traced, on which nothing takes time; record the program with plan(f) or "
          "Recording, and ask for its simulated_trace()",
          where);
    mesh.core()->barrier(where);
    return mesh;
  }

  static detail::Recorder& recorder(const DynamicMesh& mesh) {
    return mesh.core()->attachment<detail::Recorder>();
  }

  Recording recording_;
  detail::TraceEvents events_;
  TracedPart part_;
};

}  // namespace tessera
