// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// One run of a pipeline's schedule, on this process.
///
///     PipelineCarrier carrier(known, schedule, whole, parts, own, micro_batches, where);
///     carrier.run(homes);
///
/// Laws: those of pipeline/runner.hpp. What it allocates and frees, program/pipeline/memory.hpp
/// follows.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <tessera/op/between.hpp>
#include <tessera/pipeline/detail/block_message.hpp>
#include <tessera/pipeline/detail/known.hpp>
#include <tessera/pipeline/detail/sums.hpp>
#include <tessera/program/pipeline/memory.hpp>
#include <tessera/program/pipeline/simulate.hpp>
#include <tessera/run/list/replay.hpp>

namespace tessera::detail {

class PipelineCarrier {
 public:
  PipelineCarrier(const PipelineKnown& known, const PipelineSchedule& schedule,
                  const std::shared_ptr<MeshCore>& whole,
                  const std::vector<std::shared_ptr<MeshCore>>& parts, int own,
                  std::vector<ListedMicroBatch>& micro_batches, Where where)
      : known_(known),
        schedule_(schedule),
        parts_(parts),
        own_(own),
        micro_batches_(micro_batches),
        where_(where),
        layers_(*parts[at(own)]),
        messages_(whole, parts[at(own)], where),
        sums_(micro_batches[0].outputs.size()) {
    for (const ListedMicroBatch& one : micro_batches_) replays_.emplace_back(*one.calls);
    goes_back_ = schedule.goes_back();
    here_.resize(micro_batches_.size() * at(schedule.stages()));
  }

  const std::vector<PipelineSpan>& spans() const { return spans_; }
  const std::vector<PipelineArgument>& arguments() const { return arguments_; }
  std::vector<TensorCore> run(const std::vector<std::shared_ptr<MeshCore>>& homes) {
    bring_arguments();
    using Kind = PipelineInstruction::Kind;
    for (const PipelineInstruction& i : known_.instructions[at(own_)]) {
      switch (i.kind) {
        case Kind::receive:
          receive(i);
          break;
        case Kind::arrived:
          messages_.finish_receiving(i.flow, i.micro_batch);
          break;
        case Kind::act: {
          act(schedule_.lists[at(own_)][at(i.action)]);
          break;
        }
        case Kind::send:
          break;  // as soon as the action has ended, below
        case Kind::sent:
          messages_.finish_sending(i.flow, i.micro_batch);
          break;
      }
    }
    here_.clear();
    return results(homes);
  }

 private:
  using Tensors = std::vector<TensorCore>;
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  const PipelineCut& cut(int m) const {
    return known_.structures[at(known_.of_micro_batch[at(m)])].cut;
  }
  const PipelineFlow& flow(int f) const { return known_.model.flows[at(f)]; }
  /// The tensors of a stage, by their numbers in the list of a micro-batch.
  Tensors& here(int m, int stage) {
    Tensors& tensors = here_[at(m) * at(schedule_.stages()) + at(stage)];
    if (tensors.empty()) tensors.resize(replays_[at(m)].tensors());
    return tensors;
  }
  const TensorDesc& desc(int m, int t) const {
    return known_.structures[at(known_.of_micro_batch[at(m)])].program.tensor(t).desc;
  }

  /// Moves what a stage reads, and another part has, before anything else; every process does.
  void bring_arguments() {
    struct Moved {
      TensorCore there;
      int number;
    };
    std::map<std::pair<const Storage*, int>, Moved> moved;
    for (int m = 0; m < schedule_.micro_batches; ++m) {
      std::vector<const TensorCore*> given(replays_[at(m)].tensors());
      for (const auto& [number, x] : micro_batches_[at(m)].given) given[at(number)] = &x;
      for (int s = 0; s < schedule_.stages(); ++s)
        for (const int t : cut(m).arguments[at(s)]) {
          const int part = schedule_.part(s);
          const TensorCore* x = given[at(t)];
          if (x != nullptr && x->mesh() != parts_[at(part)]) {
            const auto [known, fresh] = moved.try_emplace({x->storage().get(), part});
            if (fresh)
              known->second = {
                  reshard_between(*x, desc(m, t).sharding, DynamicMesh(parts_[at(part)]),
                                  {"the argument of another stage", where_}),
                  static_cast<int>(moved.size())};
            x = &known->second.there;
            arguments_.push_back(
                {m, s, t, known->second.number,
                 arena_charge(TensorCore::local_bytes(*parts_[at(own_)], desc(m, t)))});
          }
          // Else a constant that the function has made by itself.
          if (part == own_) here(m, s)[at(t)] = x != nullptr ? *x : replays_[at(m)].listed(t);
        }
    }
  }

  void receive(const PipelineInstruction& i) {
    const PipelineFlow& f = flow(i.flow);
    for (const int t : cut(i.micro_batch).moved[at(i.flow)]) {
      TensorCore& x = here(i.micro_batch, f.to.stage)[at(t)];
      x = replays_[at(i.micro_batch)].fresh(t);
      messages_.receive(i.flow, i.micro_batch, x, *parts_[at(schedule_.part(f.from.stage))]);
    }
  }

  void act(const PipelineAction& a) {
    const bool whole = a.pass == PipelinePass::backward;
    PipelineSpan span;
    span.begin = steady_nanoseconds();
    pass({whole ? PipelinePass::backward_inputs : a.pass, a.stage}, a.micro_batch);
    span.sends = steady_nanoseconds();
    if (whole) pass({PipelinePass::backward_weights, a.stage}, a.micro_batch);
    span.end = whole ? steady_nanoseconds() : span.sends;
    spans_.push_back(span);
  }
  void pass(PipelinePlace place, int m) {
    const CutUnit& unit = cut(m).unit(place);
    Tensors& tensors = here(m, place.stage);
    for (std::size_t k = 0; k < unit.entries.size(); ++k) {
      replays_[at(m)].run(unit.entries[k], tensors, layers_);
      messages_.progress();
      for (const int t : unit.over[k]) tensors[at(t)] = TensorCore();
    }
    layers_.open(nullptr);
    send(unit, m, tensors);
    for (const int t : unit.ends) tensors[at(t)] = TensorCore();
    const std::vector<int>& outputs = micro_batches_[at(m)].outputs;
    for (const CutOutput& o : unit.outputs) {
      TensorCore& made = tensors[at(outputs[at(o.number)])];
      std::shared_ptr<Storage> memory = made.storage();
      if (o.last) made = TensorCore();
      sums_.add(at(o.number),
                Replay::seen_as(micro_batches_[at(m)].results[at(o.number)], std::move(memory)),
                where_);
    }
    if (place.pass == PipelinePass::backward_weights || !goes_back_) tensors.clear();
  }
  void send(const CutUnit& unit, int m, const Tensors& tensors) {
    for (const int f : unit.flows) {
      const int to = flow(f).to.stage;
      for (const int t : cut(m).moved[at(f)]) {
        if (schedule_.part(to) == own_)
          here(m, to)[at(t)] = tensors[at(t)];
        else
          messages_.send(f, m, tensors[at(t)], *parts_[at(schedule_.part(to))]);
      }
    }
  }

  std::vector<TensorCore> results(const std::vector<std::shared_ptr<MeshCore>>& homes) {
    std::vector<TensorCore> all;
    for (std::size_t o = 0; o < sums_.size(); ++o) {
      const int part = schedule_.part(cut(0).made[o].stage);
      TensorCore sum = sums_.take(o, where_);
      if (!sum.defined()) {
        TensorDesc made = known_.results[o];
        made.sharding = made.sharding.finished();
        sum = TensorCore::make(parts_[at(part)], made, where_);
      }
      const bool away = homes[o] != nullptr && homes[o] != parts_[at(part)];
      all.push_back(away ? reshard_between(sum, sum.sharding(), DynamicMesh(homes[o]),
                                           {"the gradient of another stage", where_})
                         : sum);
    }
    return all;
  }

  const PipelineKnown& known_;
  const PipelineSchedule& schedule_;
  const std::vector<std::shared_ptr<MeshCore>>& parts_;
  int own_;
  bool goes_back_ = false;
  std::vector<ListedMicroBatch>& micro_batches_;
  Where where_;
  std::vector<Replay> replays_;
  OpenAgain layers_;
  std::vector<Tensors> here_;  ///< of each micro-batch and stage
  BlockMessages messages_;     ///< ends before the tensors do
  OutputSums sums_;
  std::vector<PipelineSpan> spans_;  ///< of the actions, in nanoseconds of the process's clock
  std::vector<PipelineArgument> arguments_;
};

}  // namespace tessera::detail
