// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a schedule is carried out.
///
///     runner.run(micro_batches, homes)
///
/// Laws: those of pipeline/runner.hpp.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <tessera/comm/blackboard.hpp>
#include <tessera/pipeline/detail/carrier.hpp>
#include <tessera/pipeline/runner.hpp>

namespace tessera::detail {

/// Returns whether two cuts have the same flows of as many tensors.
inline bool same_flows(const PipelineCut& a, const PipelineCut& b) {
  bool same = a.model.flows.size() == b.model.flows.size() && a.made == b.made;
  for (std::size_t f = 0; same && f < a.model.flows.size(); ++f)
    same = a.model.flows[f].from == b.model.flows[f].from &&
           a.model.flows[f].to == b.model.flows[f].to && a.moved[f].size() == b.moved[f].size();
  return same;
}
/// Takes the larger of each number.
inline void widen(PipelineModel& m, const PipelineModel& other) {
  for (std::size_t s = 0; s < m.stages.size(); ++s)
    for (const PipelinePass pass :
         {PipelinePass::forward, PipelinePass::backward_inputs, PipelinePass::backward_weights}) {
      PipelineUnit& own = m.stages[s].unit(pass);
      const PipelineUnit& its = other.stages[s].unit(pass);
      own = {std::max(own.time, its.time), std::max(own.peak, its.peak),
             std::max(own.held, its.held)};
    }
  for (std::size_t f = 0; f < m.flows.size(); ++f) {
    m.flows[f].bytes = std::max(m.flows[f].bytes, other.flows[f].bytes);
    m.flows[f].most_bytes = std::max(m.flows[f].most_bytes, other.flows[f].most_bytes);
    m.flows[f].room = std::max(m.flows[f].room, other.flows[f].room);
  }
}

TESSERA_FUNCTION PipelineRunner::PipelineRunner(std::shared_ptr<MeshCore> whole,
                                                std::vector<std::shared_ptr<MeshCore>> parts,
                                                StageMap map, PipelineSchedule schedule,
                                                Where where)
    : whole_(std::move(whole)),
      parts_(std::move(parts)),
      map_(std::move(map)),
      schedule_(std::move(schedule)),
      where_(where) {
  if (static_cast<int>(parts_.size()) != schedule_.parts())
    throw UsageError("a pipeline on " + whole_->to_string() + ": the schedule " + schedule_.name +
                         " has " + std::to_string(schedule_.parts()) + " parts, and the mesh " +
                         std::to_string(parts_.size()) +
                         "; make the schedule for the axis along which the stages lie",
                     where_);
  while (parts_[at_own()]->absent()) ++own_;
}

TESSERA_FUNCTION const PipelineModel& PipelineRunner::model() const {
  if (known_.empty())
    throw UsageError("a pipeline is asked for its model before a call has run; call it first",
                     where_);
  return known_[last_].model;
}

inline std::string PipelineRunner::words() const {
  return "a pipeline of " + std::to_string(schedule_.stages()) + " stages by the schedule " +
         schedule_.name + " with " + std::to_string(schedule_.micro_batches) + " micro-batches";
}

TESSERA_FUNCTION const PipelineKnown& PipelineRunner::known(
    const std::vector<ListedMicroBatch>& micro_batches) {
  Digest digest;
  for (const auto& list : schedule_.lists)
    for (const PipelineAction& a : list) {
      digest.add(static_cast<std::uint64_t>(a.pass));
      digest.add(static_cast<std::uint64_t>(a.stage));
      digest.add(static_cast<std::uint64_t>(a.micro_batch));
    }
  for (const ListedMicroBatch& one : micro_batches) {
    digest.add(one.calls->structure());
    for (const int o : one.outputs) digest.add(static_cast<std::uint64_t>(o));
  }
  // Announced at each call: a process that knows its lists already would not wait for one that does
  // not.
  (void)whole_->begin_operator(
      {mix(0, digest.value()), 0, 0}, [this] { return words(); }, where_);
  last_ = 0;
  while (last_ < known_.size() && known_[last_].digest != digest.value()) ++last_;
  if (last_ == known_.size()) {
    whole_->always_agree(
        digest.value(), [this] { return words(); }, where_);
    PipelineKnown made = make(micro_batches, digest.value());
    constexpr std::size_t most = 256;  // as compiled functions keep
    if (known_.size() == most) known_.erase(known_.begin());
    known_.push_back(std::move(made));
    last_ = known_.size() - 1;
  }
  return known_[last_];
}

inline PipelineKnown PipelineRunner::make(const std::vector<ListedMicroBatch>& micro_batches,
                                          std::uint64_t digest) const {
  PipelineKnown known;
  known.digest = digest;
  for (const TensorCore& result : micro_batches[0].results)
    known.results.push_back(result.defined() ? result.desc() : TensorDesc{});
  for (const ListedMicroBatch& one : micro_batches) {
    const std::uint64_t structure = one.calls->structure();
    known.outputs.push_back(one.outputs);
    std::size_t s = 0;
    while (s < known.structures.size() && known.structures[s].structure != structure) ++s;
    known.of_micro_batch.push_back(static_cast<int>(s));
    if (s < known.structures.size()) continue;
    CutStructure made{structure, one.calls->program(), {}};
    for (const int o : one.outputs)
      if (o < 0 || made.program.tensor(o).made < 0)
        throw UsageError(words() +
                             ": its function returns a tensor that none of its operators makes, "
                             "and a result belongs to the stage that makes it; return what the "
                             "function has computed",
                         where_);
    made.cut =
        cut_pipeline(made.program, one.forward, one.outputs, map_, schedule_.stages(), where_);
    known.structures.push_back(std::move(made));
  }
  known.model = known.structures[0].cut.model;
  for (const CutStructure& other : known.structures)
    if (!same_flows(known.structures[0].cut, other.cut))
      throw UsageError(
          words() +
              ": two micro-batches call other operators, so that other tensors go from "
              "stage to stage; their sizes may differ, and nothing else",
          where_);
  for (const CutStructure& other : known.structures) widen(known.model, other.cut.model);
  const Machine& machine = whole_->options().machine;
  // The same on all processes, as the instructions must be: those of one part share collectives.
  for (PipelineFlow& flow : known.model.flows)
    flow.time = machine.transfer(
        flow.most_bytes, 1,
        level_between(*parts_[static_cast<std::size_t>(schedule_.part(flow.from.stage))],
                      *parts_[static_cast<std::size_t>(schedule_.part(flow.to.stage))], *whole_));
  known.instructions = pipeline_instructions(known.model, schedule_, where_);
  return known;
}

TESSERA_FUNCTION std::vector<TensorCore> PipelineRunner::run(
    std::vector<ListedMicroBatch>& micro_batches,
    const std::vector<std::shared_ptr<MeshCore>>& homes) {
  if (static_cast<int>(micro_batches.size()) != schedule_.micro_batches)
    throw UsageError(words() + " is given " + std::to_string(micro_batches.size()) +
                         "; give as many as the schedule has",
                     where_);
  const TakenBy none(nullptr);
  const PipelineKnown& known = this->known(micro_batches);
  PipelineCarrier carrier(known, schedule_, whole_, parts_, own_, micro_batches, where_);
  std::vector<TensorCore> results = carrier.run(homes);
  spans_ = carrier.spans();
  arguments_ = carrier.arguments();
  homes_.clear();
  for (const std::shared_ptr<MeshCore>& home : homes) {
    const auto it = std::find(parts_.begin(), parts_.end(), home);
    homes_.push_back(it == parts_.end() ? -1 : static_cast<int>(it - parts_.begin()));
  }
  return results;
}

inline std::vector<PipelineOutput> PipelineRunner::ends() const {
  const PipelineKnown& known = known_[last_];
  const MeshCore& mesh = *own();
  const PlanOptions options = plan_options(mesh);
  const Planning planning{mesh.shape(), mesh.process(), options};
  std::vector<PipelineOutput> ends(homes_.size());
  for (std::size_t o = 0; o < ends.size(); ++o) {
    if (known.outputs[0][o] < 0) continue;
    const TensorDesc& sum = known.results[o];
    TensorDesc finished = sum;
    finished.sharding = sum.sharding.finished();
    const Term letters = letters_of(sum);
    const auto converting = [&](const TensorDesc& from, DType to) {
      const ops::Map map{{{letters}, letters}, to, Linearity::linear, from.sharding};
      return map.plan({from}, planning).peak_bytes;
    };
    TensorDesc wide = sum;
    wide.type = facts_of(sum.type).compute;
    ends[o] = {.home = homes_[o],
               .bytes = arena_charge(TensorCore::local_bytes(mesh, finished)),
               .copying = converting(sum, wide.type)};
    if (wide.type != sum.type) {
      ends[o].wide = arena_charge(TensorCore::local_bytes(mesh, wide));
      ends[o].rounding = converting(wide, sum.type);
    }
    if (!(finished.sharding == sum.sharding))
      ends[o].finishing = ops::Reshard{finished.sharding}.plan({sum}, planning).peak_bytes;
  }
  return ends;
}

TESSERA_FUNCTION PipelineRun PipelineRunner::planned() const {
  PipelineRun run = simulate(model(), schedule_, where_);
  const PipelineKnown& known = known_[last_];
  PipelineRound round{{}, arguments_, ends()};
  for (std::size_t m = 0; m < known.of_micro_batch.size(); ++m) {
    const CutStructure& s = known.structures[static_cast<std::size_t>(known.of_micro_batch[m])];
    round.micro_batches.push_back({&s.program, &s.cut, &known.outputs[m]});
  }
  const std::vector<Index> peaks = pipeline_peaks(round, schedule_, known.instructions);
  for (std::size_t p = 0; p < peaks.size(); ++p) {
    PipelinePart& part = run.parts[p];
    part.peak_bytes = peaks[p];
    part.sent_bytes = part.received_bytes = 0;  // of micro-batches as large as they are
    for (const PipelineInstruction& i : known.instructions[p]) {
      if (i.flow < 0) continue;
      const auto m = static_cast<std::size_t>(i.micro_batch), f = static_cast<std::size_t>(i.flow);
      const Index bytes = round.micro_batches[m].cut->model.flows[f].bytes;
      if (i.kind == PipelineInstruction::Kind::send) part.sent_bytes += bytes;
      if (i.kind == PipelineInstruction::Kind::receive) part.received_bytes += bytes;
    }
  }
  return run;
}

TESSERA_FUNCTION PipelineRun PipelineRunner::measured() const {
  (void)model();
  if (whole_->dry() || whole_->alone())
    throw UsageError(
        "a pipeline on a dry or fake mesh is asked when its actions ran, and other "
        "parts do not exist there; simulate its model",
        where_);
  std::vector<std::uint64_t> times;  // of all parts' actions, one after the other
  for (int p = 0; p < schedule_.parts(); ++p)
    for (std::size_t i = 0; i < schedule_.lists[static_cast<std::size_t>(p)].size(); ++i) {
      const bool own = p == own_ && this->own()->process() == 0;
      for (const std::int64_t PipelineSpan::*at :
           {&PipelineSpan::begin, &PipelineSpan::sends, &PipelineSpan::end})
        times.push_back(own ? static_cast<std::uint64_t>(spans_[i].*at) : 0);
    }
  whole_->sum_facts(times, where_);
  std::int64_t begin = max_int64;
  for (const std::uint64_t t : times) begin = std::min(begin, static_cast<std::int64_t>(t));
  PipelineRun run = planned();
  run.time = 0;
  std::size_t next = 0, number = 0;
  for (const auto& list : schedule_.lists) {
    PipelinePart& part = run.parts[number++];
    part.spans.clear();
    part.busy = 0;
    for (std::size_t i = 0; i < list.size(); ++i, next += 3) {
      const auto picoseconds = [&](std::uint64_t t) {
        return 1000 * (static_cast<std::int64_t>(t) - begin);
      };
      part.spans.push_back(
          {picoseconds(times[next]), picoseconds(times[next + 2]), picoseconds(times[next + 1])});
      part.busy += part.spans.back().end - part.spans.back().begin;
      run.time = std::max(run.time, part.spans.back().end);
    }
  }
  return run;
}

}  // namespace tessera::detail
