// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a Program is cut into stages.
///
///     cut_pipeline(program, forward, outputs, map, 2).units[0].entries
///
/// Laws: those of program/pipeline/cut.hpp.
#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <tessera/base/memory.hpp>
#include <tessera/program/pipeline/cut.hpp>

namespace tessera {
namespace detail {

class PipelineCutter {
 public:
  PipelineCutter(const Program& program, int forward, const StageMap& map, int stages, Where where)
      : program_(program),
        forward_(forward),
        stages_(stages),
        where_(where),
        stage_(at(program.size()), -1),
        readers_(program.tensors().size()),
        writer_(program.tensors().size(), -1) {
    for (const auto& [layer, stage] : map.layers())
      if (stage < 0 || stage >= stages)
        fail("layer \"" + layer + "\" is put into stage " + std::to_string(stage) +
             ", and there are " + std::to_string(stages) +
             " stages, numbered from 0; name one of them");
    read_stages(map);
    for (int i = 0; i < program.size(); ++i) {
      const ProgramEntry& e = program.entry(i);
      for (const int t : e.operands) readers_[at(t)].push_back(i);
      each_result(e, [&](int t) { writer_[at(t)] = i; });
    }
    fill_forward();
    fill_back();
  }

  PipelineCut cut(const std::vector<int>& outputs) {
    find_passes();
    PipelineCut c;
    c.units.resize(3 * at(stages_));
    c.arguments.resize(at(stages_));
    c.model.stages.resize(at(stages_));
    for (int i = 0; i < program_.size(); ++i) c.unit(place(i)).entries.push_back(i);
    require_single_writers();
    add_flows(c);
    require_order(c);
    end_tensors(c, outputs);
    add_outputs(c, outputs);
    for (std::size_t s = 0; s < c.model.stages.size(); ++s)
      measure(c, static_cast<int>(s), outputs);
    return c;
  }

 private:
  static constexpr PipelinePass passes[] = {PipelinePass::forward, PipelinePass::backward_inputs,
                                            PipelinePass::backward_weights};
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  [[noreturn]] void fail(const std::string& what) const {
    throw UsageError("a pipeline is cut: " + what, where_);
  }
  template <class F> static void each_result(const ProgramEntry& e, const F& f) {
    if (e.result >= 0) f(e.result);
    for (const int t : e.also) f(t);
  }
  bool back(int i) const { return i >= forward_; }

  void read_stages(const StageMap& map) {
    std::vector<bool> used(map.layers().size());
    std::vector<int> entry_of(program_.layers().size());
    for (std::size_t l = 0; l < entry_of.size(); ++l)
      entry_of[l] = map.entry_of(program_.layer_path(static_cast<int>(l)));
    for (int i = 0; i < program_.size(); ++i) {
      const int entry = entry_of[at(program_.entry(i).layer)];
      if (entry < 0) continue;
      used[at(entry)] = true;
      stage_[at(i)] = map.layers()[at(entry)].second;
    }
    for (std::size_t k = 0; k < used.size(); ++k)
      if (!used[k])
        fail("no operator runs in layer \"" + map.layers()[k].first + "\"; the layers are " +
             layer_names());
  }
  std::string layer_names() const {
    std::string text;
    for (std::size_t l = 1; l < program_.layers().size() && l <= 12; ++l)
      text += (l > 1 ? ", " : "") + program_.layer_path(static_cast<int>(l));
    if (text.empty()) return "none: name parts of the function with layer(name, f) or Layer";
    return text + (program_.layers().size() > 13 ? ", ..." : "");
  }

  void fill_forward() {
    for (int i = 0; i < forward_; ++i) {
      if (stage_[at(i)] >= 0) continue;
      for (const int t : program_.entry(i).operands)
        if (const int w = writer_before(t, i); w >= 0)
          stage_[at(i)] = std::max(stage_[at(i)], stage_[at(w)]);
    }
    for (int i = forward_ - 1; i >= 0; --i)
      if (stage_[at(i)] < 0) stage_[at(i)] = first_reader(i, forward_);
  }
  void fill_back() {
    for (int i = forward_; i < program_.size(); ++i) {
      int& own = stage_[at(i)];
      if (own >= 0) continue;
      int kept = -1;
      for (const int t : program_.entry(i).operands) {
        const int w = writer_before(t, i);
        if (w < 0 || stage_[at(w)] < 0) continue;
        if (!back(w)) kept = std::max(kept, stage_[at(w)]);
        if (back(w)) own = own < 0 ? stage_[at(w)] : std::min(own, stage_[at(w)]);
      }
      if (own < 0) own = kept;
    }
    for (int i = program_.size() - 1; i >= forward_; --i)
      if (stage_[at(i)] < 0) stage_[at(i)] = last_reader(i);
  }
  int writer_before(int t, int i) const { return writer_[at(t)] < i ? writer_[at(t)] : -1; }
  int first_reader(int i, int end) const {
    int first = stages_;
    each_result(program_.entry(i), [&](int t) {
      for (const int r : readers_[at(t)])
        if (r > i && r < end && stage_[at(r)] >= 0) first = std::min(first, stage_[at(r)]);
    });
    return first == stages_ ? 0 : first;
  }
  int last_reader(int i) const {
    int last = 0;
    each_result(program_.entry(i), [&](int t) {
      for (const int r : readers_[at(t)])
        if (r > i) last = std::max(last, stage_[at(r)]);
    });
    return last;
  }

  /// Which operators on the way back another stage waits for.
  void find_passes() {
    awaited_.assign(at(program_.size()), false);
    for (int i = program_.size() - 1; i >= forward_; --i)
      each_result(program_.entry(i), [&](int t) {
        for (const int r : readers_[at(t)])
          if (r > i && (stage_[at(r)] != stage_[at(i)] || awaited_[at(r)])) awaited_[at(i)] = true;
      });
  }
  PipelinePlace place(int i) const {
    return {!back(i)          ? PipelinePass::forward
            : awaited_[at(i)] ? PipelinePass::backward_inputs
                              : PipelinePass::backward_weights,
            stage_[at(i)]};
  }
  /// An operator that writes into a tensor that is there must lie in one pass with all others that
  /// have it from then on.
  void require_single_writers() {
    std::vector<int> writes(program_.tensors().size());
    for (int i = 0; i < program_.size(); ++i)
      each_result(program_.entry(i), [&](int t) { ++writes[at(t)]; });
    for (int i = 0; i < program_.size(); ++i)
      each_result(program_.entry(i), [&](int t) {
        const bool argument = program_.tensor(t).made < 0;
        if (argument)
          fail("operator " + name_of_entry(i) +
               " writes a tensor that the function is given; it may read its arguments alone; "
               "return the new tensor");
        if (writes[at(t)] < 2) return;
        for (const int r : readers_[at(t)])
          if (!(place(r) == place(i)))
            fail("operator " + name_of_entry(i) + " writes a tensor in place that operator " +
                 name_of_entry(r) + " of another pass reads; write to a new tensor");
      });
  }
  std::string name_of_entry(int i) const {
    const ProgramEntry& e = program_.entry(i);
    const std::string layer = program_.layer_path(e.layer);
    return "\"" + e.label + "\"" + (layer.empty() ? "" : " of layer \"" + layer + "\"") +
           (e.where.known() ? " at " + to_string(e.where) : "") + " (stage " +
           std::to_string(stage_[at(i)]) + ")";
  }

  void add_flows(PipelineCut& c) {
    std::vector<std::vector<int>> reader;  // an operator that reads what comes by each flow
    for (int t = 0; t < static_cast<int>(program_.tensors().size()); ++t) {
      const int w = writer_[at(t)];
      std::vector<int> first(at(stages_), -1);  // the pass of each stage that reads it first
      for (const int r : readers_[at(t)]) {
        int& own = first[at(stage_[at(r)])];
        if (own < 0 || place(r).number() < place(own).number()) own = r;
      }
      for (int s = 0; s < stages_; ++s) {
        if (first[at(s)] < 0) continue;
        if (w < 0)
          c.arguments[at(s)].push_back(t);
        else if (stage_[at(w)] != s)
          move(c, t, w, first[at(s)]);
      }
    }
  }
  void move(PipelineCut& c, int t, int from, int to) {
    std::size_t f = 0;
    while (f < c.model.flows.size() &&
           !(c.model.flows[f].from == place(from) && c.model.flows[f].to == place(to)))
      ++f;
    if (f == c.model.flows.size()) {
      c.model.flows.push_back({place(from), place(to)});
      c.moved.emplace_back();
      c.unit(place(from)).flows.push_back(static_cast<int>(f));
      between_.emplace_back(from, to);
    }
    c.moved[f].push_back(t);
    const ProgramTensor& tensor = program_.tensor(t);
    const MeshShape& on = program_.mesh_on(tensor.part);
    const auto block_of = [&](int process) {
      return block_volume(tensor.desc.extents, tensor.desc.sharding, on, on.coordinates(process)) *
             static_cast<Index>(size_of(tensor.desc.type));
    };
    c.model.flows[f].room += bytes_of(t);
    c.model.flows[f].bytes += block_of(program_.place_on(tensor.part, program_.process));
    c.model.flows[f].most_bytes += block_of(0);  // no block is larger than the first
  }
  Index bytes_of(int t) const { return program_.tensor(t).bytes; }

  void require_order(const PipelineCut& c) const {
    std::vector<int> waits(c.units.size());
    std::vector<std::vector<std::size_t>> after(c.units.size());
    const auto add = [&](std::size_t before, std::size_t then) {
      after[before].push_back(then);
      ++waits[then];
    };
    for (std::size_t s = 0; s < at(stages_); ++s) add(3 * s, 3 * s + 1), add(3 * s + 1, 3 * s + 2);
    for (const PipelineFlow& flow : c.model.flows) add(flow.from.number(), flow.to.number());
    std::vector<std::size_t> ready;
    for (std::size_t u = 0; u < waits.size(); ++u)
      if (waits[u] == 0) ready.push_back(u);
    for (std::size_t k = 0; k < ready.size(); ++k)
      for (const std::size_t u : after[ready[k]])
        if (--waits[u] == 0) ready.push_back(u);
    if (ready.size() == waits.size()) return;
    // Some flow goes against the order of stages.
    for (std::size_t f = 0; f < c.model.flows.size(); ++f) {
      const PipelineFlow& flow = c.model.flows[f];
      const bool forward =
          flow.from.pass == PipelinePass::forward && flow.to.pass == PipelinePass::forward;
      const bool back = flow.from.pass != PipelinePass::forward;
      if (waits[flow.to.number()] == 0 || !((forward && flow.from.stage > flow.to.stage) ||
                                            (back && flow.from.stage < flow.to.stage)))
        continue;
      fail("stages wait for each other: operator " + name_of_entry(between_[f].second) +
           " reads what operator " + name_of_entry(between_[f].first) +
           " makes; a layer belongs to the stage of the layers that it reads, or to a later one");
    }
    fail("stages wait for each other; give the layers to stages in the order in which they run");
  }

  void end_tensors(PipelineCut& c, const std::vector<int>& outputs) {
    ends_.assign(at(stages_), std::vector<std::size_t>(program_.tensors().size(), 0));
    for (int i = 0; i < program_.size(); ++i) {
      const std::size_t unit = place(i).step();
      const auto has = [&](int t) {
        std::size_t& last = ends_[at(stage_[at(i)])][at(t)];
        last = std::max(last, unit + 1);
      };
      for (const int t : program_.entry(i).operands) has(t);
      each_result(program_.entry(i), has);
    }
    for (int s = 0; s < stages_; ++s)
      for (int t = 0; t < static_cast<int>(program_.tensors().size()); ++t)
        if (const std::size_t last = ends_[at(s)][at(t)]; last > 0 && writer_[at(t)] >= 0) {
          const PipelinePlace made = place(writer_[at(t)]);
          const bool returned = in(outputs, t) && made.stage == s && last == made.step() + 1;
          if (!returned) c.units[3 * at(s) + last - 1].ends.push_back(t);
        }
    for (int s = 0; s < stages_; ++s)
      for (const PipelinePass pass : passes) find_last_readers(c, {pass, s});
  }
  void add_outputs(PipelineCut& c, const std::vector<int>& outputs) const {
    for (std::size_t o = 0; o < outputs.size(); ++o) {
      const int t = outputs[o];
      const bool known = t >= 0 && writer_[at(t)] >= 0;
      c.made.push_back(known ? place(writer_[at(t)]) : PipelinePlace{});
      if (!known) continue;
      const bool read = ends_[at(c.made[o].stage)][at(t)] > c.made[o].step() + 1;
      const bool again = std::find(outputs.begin() + static_cast<std::ptrdiff_t>(o) + 1,
                                   outputs.end(), t) != outputs.end();
      c.unit(c.made[o]).outputs.push_back({static_cast<int>(o), !read && !again});
    }
  }
  void find_last_readers(PipelineCut& c, PipelinePlace p) const {
    CutUnit& unit = c.unit(p);
    std::vector<bool> ends(program_.tensors().size());
    for (const int t : unit.ends) ends[at(t)] = true;
    for (const int f : unit.flows)
      for (const int t : c.moved[at(f)]) {
        if (!in(unit.ends, t)) c.model.flows[at(f)].kept += bytes_of(t);
        ends[at(t)] = false;
      }
    unit.over.resize(unit.entries.size());
    for (std::size_t k = unit.entries.size(); k-- > 0;) {
      const auto over = [&](int t) {
        if (ends[at(t)]) unit.over[k].push_back(t), ends[at(t)] = false;
      };
      const ProgramEntry& e = program_.entry(unit.entries[k]);
      for (const int t : e.operands) over(t);
      each_result(e, over);
    }
  }
  static bool in(const std::vector<int>& list, int t) {
    return std::find(list.begin(), list.end(), t) != list.end();
  }

  /// Follows a stage's memory through its passes, one micro-batch by itself. What arrives lies in
  /// room that the schedule counts until the end of the pass that reads it first.
  void measure(PipelineCut& c, int s, const std::vector<int>& outputs) const {
    std::vector<bool> there(program_.tensors().size());
    for (const PipelinePass pass : passes) {
      const CutUnit& unit = c.unit({pass, s});
      PipelineUnit& sums = c.model.stages[at(s)].unit(pass);
      Index held = 0, room = 0;
      const auto drop = [&](int t) {
        if (there[at(t)]) held -= bytes_of(t), there[at(t)] = false;
      };
      for (std::size_t f = 0; f < c.moved.size(); ++f)
        if (c.model.flows[f].to == PipelinePlace{pass, s})
          for (const int t : c.moved[f]) room += bytes_of(t), there[at(t)] = true;
      for (std::size_t k = 0; k < unit.entries.size(); ++k) {
        const ProgramEntry& e = program_.entry(unit.entries[k]);
        const auto made = [&](int t) {
          if (!there[at(t)]) held += bytes_of(t), there[at(t)] = true;
        };
        sums.time = saturating_add(sums.time, e.plan->cost);
        if (e.result >= 0 && program_.tensor(e.result).awaits) made(e.result);
        sums.peak = std::max(sums.peak, saturating_add(held, e.plan->peak_bytes));
        each_result(e, made);
        sums.peak = std::max(sums.peak, held);
        for (const int t : unit.over[k]) drop(t);
      }
      for (const int t : unit.ends) drop(t);
      for (const CutOutput& o : unit.outputs)  // which are added to what there is
        if (o.last) drop(outputs[at(o.number)]);
      sums.held = held + room;
    }
  }

  const Program& program_;
  int forward_, stages_;
  Where where_;
  std::vector<int> stage_;
  std::vector<std::vector<int>> readers_;
  std::vector<int> writer_;  ///< the last operator that makes each tensor; -1: none
  std::vector<bool> awaited_;
  std::vector<std::pair<int, int>> between_;    ///< who makes and who reads each flow
  std::vector<std::vector<std::size_t>> ends_;  ///< 1 + the last pass, by stage and tensor
};
}  // namespace detail

TESSERA_FUNCTION PipelineCut cut_pipeline(const Program& program, int forward,
                                          const std::vector<int>& outputs, const StageMap& map,
                                          int stages, Where where) {
  return detail::PipelineCutter(program, forward, map, stages, where).cut(outputs);
}

}  // namespace tessera
