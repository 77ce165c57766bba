// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a pipeline's memory is followed.
///
///     pipeline_peaks(round, schedule, instructions)[0]
///
/// Laws: those of program/pipeline/memory.hpp. It does what PipelineCarrier does (pipeline/), of
/// which only the bytes are left.
#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <tessera/program/pipeline/memory.hpp>

namespace tessera::detail {

/// Memory that several may hold.
class CountedMemory {
 public:
  /// Takes up memory, which the caller holds; returns its number.
  int make(Index bytes) {
    pieces_.push_back({bytes, 1});
    held_ += bytes;
    peak_ = std::max(peak_, held_);
    return static_cast<int>(pieces_.size()) - 1;
  }
  void hold(int piece) { ++at(piece).holders; }
  void drop(int piece) {
    if (piece >= 0 && --at(piece).holders == 0) held_ -= at(piece).bytes;
  }
  int holders(int piece) { return at(piece).holders; }
  /// An operator runs that takes up this much for a while.
  void work(Index bytes) { peak_ = std::max(peak_, held_ + bytes); }
  Index peak() const { return peak_; }

 private:
  struct Piece {
    Index bytes;
    int holders;
  };
  Piece& at(int piece) { return pieces_[static_cast<std::size_t>(piece)]; }

  std::vector<Piece> pieces_;
  Index held_ = 0, peak_ = 0;
};

/// One part of a round.
class PartFollower {
 public:
  PartFollower(const PipelineRound& round, const PipelineSchedule& schedule, int part)
      : round_(round),
        schedule_(schedule),
        part_(part),
        goes_back_(schedule.goes_back()),
        here_(round.micro_batches.size() * at(schedule.stages())),
        sent_(round.micro_batches.size()),
        sums_(round.outputs.size(), -1) {}

  Index peak(const std::vector<PipelineAction>& actions,
             const std::vector<PipelineInstruction>& list) {
    using Kind = PipelineInstruction::Kind;
    bring_arguments();
    for (const PipelineInstruction& i : list) {
      if (i.kind == Kind::receive) receive(i);
      if (i.kind == Kind::act) act(actions[at(i.action)]);
      if (i.kind == Kind::sent) gone(i);
    }
    finish();
    return memory_.peak();
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  const Program& program(int m) const { return *round_.micro_batches[at(m)].program; }
  const PipelineCut& cut(int m) const { return *round_.micro_batches[at(m)].cut; }
  /// The memory of each tensor of a stage; -1: there is none that counts.
  std::vector<int>& here(int m, int stage) {
    std::vector<int>& tensors = here_[at(m) * at(schedule_.stages()) + at(stage)];
    if (tensors.empty()) tensors.assign(program(m).tensors().size(), -1);
    return tensors;
  }
  void drop(int& piece) { memory_.drop(std::exchange(piece, -1)); }

  void bring_arguments() {
    std::vector<std::pair<int, int>> known;  // the number, and the memory
    for (const PipelineArgument& a : round_.arguments) {
      if (schedule_.part(a.stage) != part_) continue;
      auto it = std::find_if(known.begin(), known.end(),
                             [&](const auto& one) { return one.first == a.number; });
      if (it == known.end())
        it = known.insert(known.end(), {a.number, memory_.make(a.bytes)});
      else
        memory_.hold(it->second);
      here(a.micro_batch, a.stage)[at(a.tensor)] = it->second;
    }
  }
  void receive(const PipelineInstruction& i) {
    const PipelineCut& c = cut(i.micro_batch);
    for (const int t : c.moved[at(i.flow)])
      here(i.micro_batch, c.model.flows[at(i.flow)].to.stage)[at(t)] =
          memory_.make(program(i.micro_batch).tensor(t).bytes);
  }
  void act(const PipelineAction& a) {
    if (a.pass != PipelinePass::backward) return pass({a.pass, a.stage}, a.micro_batch);
    pass({PipelinePass::backward_inputs, a.stage}, a.micro_batch);
    pass({PipelinePass::backward_weights, a.stage}, a.micro_batch);
  }
  void pass(PipelinePlace place, int m) {
    const CutUnit& unit = cut(m).unit(place);
    std::vector<int>& tensors = here(m, place.stage);
    for (std::size_t k = 0; k < unit.entries.size(); ++k) {
      const ProgramEntry& e = program(m).entry(unit.entries[k]);
      const auto made = [&](int t) {
        if (t >= 0 && tensors[at(t)] < 0) tensors[at(t)] = memory_.make(program(m).tensor(t).bytes);
      };
      if (e.result >= 0 && program(m).tensor(e.result).awaits) made(e.result);
      memory_.work(e.plan->peak_bytes);
      made(e.result);
      for (const int t : e.also) made(t);
      for (const int t : unit.over[k]) drop(tensors[at(t)]);
    }
    for (const int f : unit.flows) send(m, f, tensors);
    for (const int t : unit.ends) drop(tensors[at(t)]);
    const std::vector<int>& outputs = *round_.micro_batches[at(m)].outputs;
    for (const CutOutput& o : unit.outputs) {
      int& made = tensors[at(outputs[at(o.number)])];
      if (!o.last && made >= 0) memory_.hold(made);
      add(o.number, o.last ? std::exchange(made, -1) : made);
    }
    if (place.pass != PipelinePass::backward_weights && goes_back_) return;
    for (int& piece : tensors) drop(piece);
    tensors.clear();
  }
  int output(int m, int o) const { return (*round_.micro_batches[at(m)].outputs)[at(o)]; }
  void send(int m, int f, const std::vector<int>& tensors) {
    const int to = cut(m).model.flows[at(f)].to.stage;
    for (const int t : cut(m).moved[at(f)]) {
      const int piece = tensors[at(t)];
      if (piece >= 0) memory_.hold(piece);
      if (schedule_.part(to) == part_)
        here(m, to)[at(t)] = piece;
      else
        sent_[at(m)].emplace_back(f, piece);
    }
  }
  void gone(const PipelineInstruction& i) {
    for (auto& [flow, piece] : sent_[at(i.micro_batch)])
      if (flow == i.flow) drop(piece);
  }
  Index summand_bytes(int o) const { return program(0).tensor(output(0, o)).bytes; }
  void add(int o, int piece) {
    int& sum = sums_[at(o)];
    if (sum >= 0) return memory_.drop(piece);
    const PipelineOutput& end = round_.outputs[at(o)];
    if (piece < 0 || memory_.holders(piece) > 1 || end.wide >= 0) {
      memory_.work(end.copying);
      memory_.drop(piece);
      piece = memory_.make(end.wide >= 0 ? end.wide : summand_bytes(o));
    }
    sum = piece;
  }
  void finish() {
    for (std::size_t o = 0; o < sums_.size(); ++o) {
      const PipelineOutput& end = round_.outputs[o];
      const bool own = schedule_.part(cut(0).made[o].stage) == part_;
      if (own && sums_[o] >= 0 && end.wide >= 0) {
        memory_.work(end.rounding);
        const int rounded = memory_.make(summand_bytes(static_cast<int>(o)));
        memory_.drop(std::exchange(sums_[o], rounded));
      }
      if (own && sums_[o] < 0)
        sums_[o] = memory_.make(end.bytes);
      else if (own && end.finishing >= 0) {
        memory_.work(end.finishing);
        const int finished = memory_.make(end.bytes);
        memory_.drop(std::exchange(sums_[o], finished));
      }
      if (end.home == part_ && !own) (void)memory_.make(end.bytes);
      if (own && end.home >= 0 && end.home != part_) drop(sums_[o]);
    }
  }

  const PipelineRound& round_;
  const PipelineSchedule& schedule_;
  int part_;
  bool goes_back_;
  CountedMemory memory_;
  std::vector<std::vector<int>> here_;                  ///< one list for each micro-batch and stage
  std::vector<std::vector<std::pair<int, int>>> sent_;  ///< each micro-batch's flows and memories
  std::vector<int> sums_;
};

TESSERA_FUNCTION std::vector<Index> pipeline_peaks(
    const PipelineRound& round, const PipelineSchedule& schedule,
    const std::vector<std::vector<PipelineInstruction>>& instructions) {
  std::vector<Index> peaks;
  for (int p = 0; p < schedule.parts(); ++p)
    peaks.push_back(PartFollower(round, schedule, p)
                        .peak(schedule.lists[static_cast<std::size_t>(p)],
                              instructions[static_cast<std::size_t>(p)]));
  return peaks;
}

}  // namespace tessera::detail
