// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// The actions of a schedule with what each of them waits for.
///
///     const ActionGraph graph(model, schedule);
///     for (const ActionGraph::Before& b : graph.before(a)) b.action;
///
/// Laws: an action waits for the one before it in its part's list, for what its own stage has made
/// of the micro-batch, and for what its flows bring. Precondition: each pass of each stage and
/// micro-batch has one action, or, where none goes back, each way forward.
#include <cstddef>
#include <vector>

#include <tessera/program/pipeline/model.hpp>

namespace tessera::detail {

class ActionGraph {
 public:
  /// What an action waits for.
  struct Before {
    int action = 0;
    int flow = -1;  ///< of the model; -1: none
  };

  ActionGraph(const PipelineModel& model, const PipelineSchedule& schedule) : schedule_(schedule) {
    for (const auto& list : schedule.lists) {
      begin_.push_back(size());
      for (const PipelineAction& a : list) actions_.push_back(a);
    }
    begin_.push_back(size());
    units_.assign(3 * at(schedule.stages()) * at(schedule.micro_batches), -1);
    for (int a = 0; a < size(); ++a) {
      const PipelineAction& action = actions_[at(a)];
      if (action.pass == PipelinePass::backward) {
        of({PipelinePass::backward_inputs, action.stage}, action.micro_batch) = a;
        of({PipelinePass::backward_weights, action.stage}, action.micro_batch) = a;
      } else {
        of({action.pass, action.stage}, action.micro_batch) = a;
      }
    }
    before_.resize(actions_.size());
    for (int part = 0; part < schedule.parts(); ++part)
      for (int a = begin_[at(part)] + 1; a < begin_[at(part) + 1]; ++a) add(a, a - 1, -1);
    for (int s = 0; s < schedule.stages(); ++s)
      for (int m = 0; m < schedule.micro_batches; ++m) {
        const int inputs = action({PipelinePass::backward_inputs, s}, m);
        add(inputs, action({PipelinePass::forward, s}, m), -1);
        add(action({PipelinePass::backward_weights, s}, m), inputs, -1);
      }
    for (int f = 0; f < static_cast<int>(model.flows.size()); ++f)
      for (int m = 0; m < schedule.micro_batches; ++m)
        add(action(model.flows[at(f)].to, m), action(model.flows[at(f)].from, m), f);
  }

  int size() const { return static_cast<int>(actions_.size()); }
  const PipelineAction& operator[](int a) const { return actions_[at(a)]; }
  const std::vector<Before>& before(int a) const { return before_[at(a)]; }
  int part(int a) const { return schedule_.part(actions_[at(a)].stage); }
  /// Returns the number of a part's first action.
  int begin(int part) const { return begin_[at(part)]; }
  /// Returns the action that carries out a pass of a stage with a micro-batch.
  int action(PipelinePlace place, int micro_batch) const {
    return const_cast<ActionGraph*>(this)->of(place, micro_batch);
  }

  /// Calls visit(a) for all actions, each after those that it waits for; of those that may come
  /// next, the one whose key(a) is least. Returns how many actions were visited: fewer than all
  /// where some wait for each other.
  template <class Key, class Visit> int in_order(const Key& key, const Visit& visit) const;

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  int& of(PipelinePlace place, int micro_batch) {
    return units_[place.number() * at(schedule_.micro_batches) + at(micro_batch)];
  }
  void add(int a, int before, int flow) {
    if (a != before && a >= 0 && before >= 0) before_[at(a)].push_back({before, flow});
  }

  const PipelineSchedule& schedule_;
  std::vector<PipelineAction> actions_;
  std::vector<int> begin_;
  std::vector<int> units_;
  std::vector<std::vector<Before>> before_;
};

template <class Key, class Visit>
int ActionGraph::in_order(const Key& key, const Visit& visit) const {
  std::vector<int> waits(actions_.size());
  std::vector<std::vector<int>> after(actions_.size());
  for (int a = 0; a < size(); ++a)
    for (const Before& b : before(a)) {
      ++waits[at(a)];
      after[at(b.action)].push_back(a);
    }
  // At most one action of each part may come next, so the parts are looked through.
  std::vector<int> next(begin_.begin(), begin_.end() - 1);
  int visited = 0;
  for (;;) {
    int best = -1;
    for (std::size_t part = 0; part < next.size(); ++part) {
      const int a = next[part];
      if (a >= begin_[part + 1] || waits[at(a)] > 0) continue;
      if (best < 0 || key(a) < key(best)) best = a;
    }
    if (best < 0) return visited;
    visit(best);
    ++visited;
    ++next[at(part(best))];
    for (const int a : after[at(best)]) --waits[at(a)];
  }
}

}  // namespace tessera::detail
