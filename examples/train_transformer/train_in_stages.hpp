// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// A run whose layers are in stages.
///
///     run_in_stages(env, flags, text, schedule, "", say);
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/comm/complaint.hpp>
#include <tessera/io/trace_file.hpp>
#include <tessera/program/pipeline/chart.hpp>
#include <tessera/program/pipeline/stage_tracks.hpp>
#include <tessera/show/pipeline_svg.hpp>

#include "../support/by_layers.hpp"
#include "report.hpp"
#include "stages.hpp"

namespace train_transformer {

/// What one step is on paper, on this process and for all stages.
struct PlannedStep {
  Program program;  ///< of this process's part
  PipelineRun run;
  Index payload = 0;  ///< bytes that this process sends
};
template <class U>
PlannedStep plan_stages(const Flags& flags, const ProcessMesh<Staged>& on,
                        const PipelineSchedule& schedule) {
  const auto mesh = dry_mesh(on);
  StagedTrainer<U> trainer(mesh, flags, schedule);
  const Sizes& n = flags.sizes;
  const std::vector<Id> ids(static_cast<std::size_t>(n.batch * n.context));
  const Index before = trainer.payload_bytes();
  Recording recording(StagedTrainer<U>::own_part(mesh));
  (void)on_every_part(mesh, trainer.step({ids, ids, n.batch}, 1));
  return {recording.take(), trainer.planned(), trainer.payload_bytes() - before};
}

/// Traces the steps of a process's part, and when the stages of all parts acted.
class StagedTracing {
  using Clock = std::chrono::steady_clock;

 public:
  explicit StagedTracing(const ProcessMesh<Staged>& mesh)
      : tracing_((mesh.core()->barrier(Where::here()), mesh.part<stage>(mesh.coordinate<stage>()))),
        start_(Clock::now()) {}
  /// Says that a step begins, and that it has ended.
  void begin() { begins_.push_back(std::chrono::nanoseconds(Clock::now() - start_).count()); }
  void end(const PipelineRun& run) { runs_.push_back(run); }
  /// Returns the trace, on process 0 with a track for each stage.
  Trace take(const ProcessMesh<Staged>& mesh, const PipelineSchedule& schedule) {
    Trace trace = tracing_.take();
    if (mesh.process() != 0) return trace;
    for (std::size_t k = 0; k < runs_.size(); ++k) {
      // The first operator of a step's layers begins when its part's first action does.
      std::int64_t first = max_int64;
      for (const TraceEvent& e : trace.events)
        if (e.begin >= begins_[k] && trace.program.entry(e.entry).layer > 0)
          first = std::min(first, e.begin);
      const std::int64_t own = runs_[k].parts[0].spans[0].begin / 1000;
      std::vector<TraceTrack> tracks = stage_tracks(schedule, runs_[k], first - own);
      for (std::size_t s = 0; s < tracks.size(); ++s)
        if (k == 0)
          trace.tracks.push_back(tracks[s]);
        else
          trace.tracks[s].spans.insert(trace.tracks[s].spans.end(), tracks[s].spans.begin(),
                                       tracks[s].spans.end());
    }
    return trace;
  }

 private:
  Tracing tracing_;
  Clock::time_point start_;
  std::vector<std::int64_t> begins_;
  std::vector<PipelineRun> runs_;
};

/// Returns so many characters that follow a text of `context` and more. A pipeline keeps no keys
/// and values, and reads the whole row for each character.
template <class U>
std::vector<Id> written(StagedTrainer<U>& trainer, std::vector<Id> text, Index count,
                        const Sizes& n) {
  for (Index i = 0; i < count; ++i) {
    Rows seen = rows_from(text, {std::ssize(text) - n.context}, n.context - 1);
    seen.ids.push_back(text.back());  // the last one has nothing after it yet
    seen.next.push_back(0);
    text.push_back(trainer.next_character(seen, i));
  }
  return {text.end() - count, text.end()};
}

template <class U>
void train_in_stages(const ProcessMesh<Staged>& mesh, const Flags& flags, const support::Text& text,
                     const PipelineSchedule& schedule, const Voice& say) {
  const PlannedStep planned = plan_stages<U>(flags, mesh, schedule);
  say("\nThe plan of one step on part 0, before its passes\n{}  peak beyond the weights {} KiB\n",
      support::by_layers(planned.program), planned.program.peak_bytes() >> 10);
  say("\nThe schedule, by the machine's model\n{}", explain(schedule, planned.run));
  if (mesh.dry()) return;
  if (!flags.log.empty() && say.speaks)
    support::write_text(flags.log + ".schedule.svg", draw_svg(schedule, planned.run));

  StagedTrainer<U> trainer(mesh, flags, schedule);
  say("\nThe weights\n{}\n", to_string(parameter_table(trainer.weights())));
  Job job;
  const std::string digest = digest_of(text);
  if (!flags.resume.empty()) job.first = trainer.resume(flags.resume, digest);
  job.gemm_seconds =
      seconds_of_products<typename U::value_type>(mesh, flags, planned.program, job.first, say);
  std::optional<StagedTracing> tracing;
  job.step = [&](const Rows& rows, Index i) {
    if (tracing) tracing->begin();
    const auto nats = trainer.step(rows, i);
    if (tracing) tracing->end(trainer.measured());
    return static_cast<double>(everywhere(mesh, nats).values[0]);
  };
  job.held_out = [&](Index most_rows) {
    return held_out_mean(text.held_out(), flags.sizes.context, flags.sizes.batch, most_rows,
                         [&](const Rows& rows, const std::vector<float>& counted) {
                           return trainer.counted_loss(rows, counted);
                         });
  };
  job.write = [&](const std::vector<Id>& before, Index count) {
    return written(trainer, before, count, flags.sizes);
  };
  job.save = [&](Index i) { trainer.save(flags.save, i, digest); };
  job.payload_bytes = [&] { return trainer.payload_bytes(); };
  job.trace = [&] { tracing.emplace(mesh); };
  job.end_trace = [&] {
    const Trace trace = tracing->take(mesh, schedule);
    write_trace(mesh, flags.trace, trace);
    const PipelineRun run = trainer.measured();
    say("\nThe last steps on process 0, {}\n{}\nThe last step's schedule as it ran\n{}",
        flags.trace, explain(summary(trace)), explain(schedule, run));
  };
  job.report = [&] { return planned.payload; };
  learn(job, flags, text, say);
}

/// Trains in stages on the processes of an environment, or plans that for --dry. Throws `complaint`
/// on all processes where one has any.
inline void run_in_stages(Environment& env, const Flags& flags, const support::Text& text,
                          const PipelineSchedule& schedule, const std::string& complaint,
                          const Voice& say) {
  const int parts = schedule.parts(), d = flags.mesh.data, m = flags.mesh.model;
  const auto mesh = flags.dry ? dry_mesh<Staged>(parts, d, m) : make_mesh<Staged>(env, parts, d, m);
  fail_together(*mesh.core(), complaint, Where::here());
  say("mesh {}, {} processes; split by {}, {} stages by {}\n",
      to_string(mesh.shape(), Staged::names()), mesh.processes(), flags.split, schedule.stages(),
      schedule.name);
  const auto with = [&]<class Rules>(Rules*) {
    train_in_stages<Under<float, Grid, Rules>>(mesh, flags, text, schedule, say);
  };
  if (flags.split == "batch") with(static_cast<by::Batch*>(nullptr));
  if (flags.split == "tensors") with(static_cast<by::Tensors*>(nullptr));
  if (flags.split == "shards") with(static_cast<by::Shards*>(nullptr));
}

}  // namespace train_transformer
