// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// How a schedule is simulated, and its messages placed.
///
///     simulate(model, schedule).time;   pipeline_instructions(model, schedule)[0]
///
/// Laws: those of program/pipeline/simulate.hpp and program/pipeline/instructions.hpp.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <tessera/program/pipeline/detail/action_graph.hpp>
#include <tessera/program/pipeline/instructions.hpp>
#include <tessera/program/pipeline/simulate.hpp>

namespace tessera {
namespace detail {

/// When each action of a graph runs, and its place in one order in which all could run by
/// themselves.
struct PipelineOrder {
  std::vector<PipelineSpan> spans;
  std::vector<int> place;
};

inline std::int64_t time_of(const PipelineModel& model, const PipelineAction& a) {
  const PipelineStage& stage = model.stages[static_cast<std::size_t>(a.stage)];
  return a.pass == PipelinePass::backward ? stage.inputs.time + stage.weights.time
                                          : stage.unit(a.pass).time;
}

/// Precondition: no action waits for itself.
inline PipelineOrder order_of(const PipelineModel& model, const ActionGraph& graph) {
  const auto count = static_cast<std::size_t>(graph.size());
  PipelineOrder order{std::vector<PipelineSpan>(count), std::vector<int>(count)};
  std::vector<char> known(count);
  const auto begin = [&](int a) {
    std::int64_t& begins = order.spans[static_cast<std::size_t>(a)].begin;
    if (std::exchange(known[static_cast<std::size_t>(a)], 1) != 0) return begins;
    for (const ActionGraph::Before& b : graph.before(a)) {
      const PipelineSpan& made = order.spans[static_cast<std::size_t>(b.action)];
      if (b.flow < 0 || graph.part(a) == graph.part(b.action)) {
        begins = std::max(begins, made.end);
        continue;
      }
      const PipelineFlow& flow = model.flows[static_cast<std::size_t>(b.flow)];
      const bool last = flow.from.pass == PipelinePass::backward_weights;
      begins = std::max(begins, (last ? made.end : made.sends) + flow.time);
    }
    return begins;
  };
  int next = 0;
  graph.in_order(begin, [&](int a) {
    PipelineSpan& span = order.spans[static_cast<std::size_t>(a)];
    span.end = span.sends = begin(a) + time_of(model, graph[a]);
    if (graph[a].pass == PipelinePass::backward)
      span.sends -= model.stages[static_cast<std::size_t>(graph[a].stage)].weights.time;
    order.place[static_cast<std::size_t>(a)] = next++;
  });
  return order;
}

/// One message: of which flow and micro-batch, and the actions that make and read it.
struct PipelineMessage {
  int flow = 0, micro_batch = 0;
  int made = 0, read = 0;  ///< actions of the graph
  int expected = 0;        ///< the action of the receiving part before which room is made
  /// The action of the sending part before which it waits for the message to be gone, which begins
  /// no sooner than `read`, so that it need not wait; its last one plus 1: at the end.
  int gone = 0;
};

/// Returns all messages between parts, those of a flow together, in the order in which they are
/// sent.
inline std::vector<PipelineMessage> messages_of(const PipelineModel& model,
                                                const PipelineSchedule& schedule,
                                                const ActionGraph& graph,
                                                const PipelineOrder& order) {
  std::vector<PipelineMessage> all;
  for (int f = 0; f < static_cast<int>(model.flows.size()); ++f) {
    const PipelineFlow& flow = model.flows[static_cast<std::size_t>(f)];
    const int from = schedule.part(flow.from.stage), to = schedule.part(flow.to.stage);
    const bool runs = schedule.goes_back() || (flow.from.pass == PipelinePass::forward &&
                                               flow.to.pass == PipelinePass::forward);
    if (from == to || !runs) continue;
    const std::size_t first = all.size();
    for (int m = 0; m < schedule.micro_batches; ++m)
      all.push_back({f, m, graph.action(flow.from, m), graph.action(flow.to, m), 0, 0});
    std::sort(all.begin() + static_cast<std::ptrdiff_t>(first), all.end(),
              [](const PipelineMessage& a, const PipelineMessage& b) { return a.made < b.made; });
    int latest = graph.begin(to + 1);
    for (std::size_t i = all.size(); i-- > first;) {
      PipelineMessage& message = all[i];
      latest = message.expected = std::min(latest, std::max(message.read - 1, graph.begin(to)));
      const int end = graph.begin(from + 1);
      message.gone = message.made + 1;
      while (message.gone < end && order.place[static_cast<std::size_t>(message.gone)] <
                                       order.place[static_cast<std::size_t>(message.read)])
        ++message.gone;
    }
  }
  return all;
}

inline std::vector<std::vector<PipelineInstruction>> instructions_of(
    const PipelineModel& model, const PipelineSchedule& schedule, const ActionGraph& graph,
    const PipelineOrder& order) {
  using Kind = PipelineInstruction::Kind;
  const std::vector<PipelineMessage> messages = messages_of(model, schedule, graph, order);
  struct Around {
    std::vector<const PipelineMessage*> expected, read, made, gone;
  };
  std::vector<Around> around(static_cast<std::size_t>(graph.size()));
  std::vector<std::vector<const PipelineMessage*>> last(static_cast<std::size_t>(schedule.parts()));
  for (const PipelineMessage& m : messages) {
    const auto at = [&](int a) -> Around& { return around[static_cast<std::size_t>(a)]; };
    at(m.expected).expected.push_back(&m);
    at(m.read).read.push_back(&m);
    at(m.made).made.push_back(&m);
    const int from = graph.part(m.made);
    m.gone < graph.begin(from + 1) ? at(m.gone).gone.push_back(&m)
                                   : last[static_cast<std::size_t>(from)].push_back(&m);
  }
  std::vector<std::vector<PipelineInstruction>> lists(static_cast<std::size_t>(schedule.parts()));
  for (int part = 0; part < schedule.parts(); ++part) {
    std::vector<PipelineInstruction>& list = lists[static_cast<std::size_t>(part)];
    const auto add = [&](Kind kind, int action, const std::vector<const PipelineMessage*>& of) {
      for (const PipelineMessage* m : of) list.push_back({kind, action, m->flow, m->micro_batch});
    };
    const int begin = graph.begin(part), end = graph.begin(part + 1);
    for (int a = begin; a < end; ++a) {
      const Around& here = around[static_cast<std::size_t>(a)];
      add(Kind::sent, a - begin, here.gone);
      add(Kind::receive, a - begin, here.expected);
      add(Kind::arrived, a - begin, here.read);
      list.push_back({Kind::act, a - begin, -1, graph[a].micro_batch});
      add(Kind::send, a - begin, here.made);
    }
    add(Kind::sent, end - begin, last[static_cast<std::size_t>(part)]);
  }
  return lists;
}

/// Follows a part's memory through its instructions. What goes to another stage of the same part
/// counts as room there, from the pass that makes it to the one that reads it.
class PipelineMemory {
 public:
  PipelineMemory(const PipelineModel& model, const PipelineSchedule& schedule, PipelinePart& part)
      : model_(model), schedule_(schedule), part_(part) {}

  void follow(const std::vector<PipelineAction>& actions,
              const std::vector<PipelineInstruction>& list) {
    using Kind = PipelineInstruction::Kind;
    for (const PipelineInstruction& i : list) {
      if (i.kind == Kind::act) {
        act(actions[at(i.action)]);
        continue;
      }
      const PipelineFlow& flow = model_.flows[at(i.flow)];
      const bool within = i.kind == Kind::send &&
                          actions[at(i.action)].pass == PipelinePass::backward &&
                          flow.from.pass == PipelinePass::backward_inputs;
      if (i.kind == Kind::receive) {
        part_.received_bytes += flow.bytes;
        hold(flow.room);
      } else if (i.kind == Kind::send) {
        part_.sent_bytes += flow.bytes;
        if (!within) hold(flow.room - flow.kept);  // else act() has counted it
      } else if (i.kind == Kind::sent) {
        hold(flow.kept - flow.room);
      }
    }
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  void hold(Index bytes) {
    held_ += bytes;
    part_.peak_bytes = std::max(part_.peak_bytes, held_);
  }
  void act(const PipelineAction& a) {
    const bool whole = a.pass == PipelinePass::backward;
    const bool goes_back = whole || a.pass == PipelinePass::backward_inputs;
    run({whole ? PipelinePass::backward_inputs : a.pass, a.stage});
    if (whole) {
      for (const PipelineFlow& flow : model_.flows)
        if (flow.from == PipelinePlace{PipelinePass::backward_inputs, a.stage} &&
            schedule_.part(flow.to.stage) != schedule_.part(a.stage))
          hold(flow.room - flow.kept);
      run({PipelinePass::backward_weights, a.stage});
    }
    in_flight_ += a.pass == PipelinePass::forward ? 1 : goes_back ? -1 : 0;
    part_.most_held = std::max(part_.most_held, in_flight_);
  }
  void run(PipelinePlace place) {
    const PipelineUnit& unit = model_.stages[at(place.stage)].unit(place.pass);
    part_.peak_bytes = std::max(part_.peak_bytes, held_ + unit.peak);
    Index change = unit.held;
    for (const PipelineFlow& flow : model_.flows) {
      if (flow.to == place) change -= flow.room;
      if (flow.from == place && schedule_.part(flow.to.stage) == schedule_.part(place.stage))
        change += flow.room;
    }
    hold(change);
  }

  const PipelineModel& model_;
  const PipelineSchedule& schedule_;
  PipelinePart& part_;
  Index held_ = 0;
  int in_flight_ = 0;
};
}  // namespace detail

TESSERA_FUNCTION std::vector<std::vector<PipelineInstruction>> pipeline_instructions(
    const PipelineModel& model, const PipelineSchedule& schedule, Where where) {
  require_schedule(model, schedule, where);
  const detail::ActionGraph graph(model, schedule);
  return detail::instructions_of(model, schedule, graph, detail::order_of(model, graph));
}

TESSERA_FUNCTION PipelineRun simulate(const PipelineModel& model, const PipelineSchedule& schedule,
                                      Where where) {
  require_schedule(model, schedule, where);
  const detail::ActionGraph graph(model, schedule);
  const detail::PipelineOrder order = detail::order_of(model, graph);
  const auto lists = detail::instructions_of(model, schedule, graph, order);
  PipelineRun run;
  for (int p = 0; p < schedule.parts(); ++p) {
    PipelinePart part;
    for (int a = graph.begin(p); a < graph.begin(p + 1); ++a) {
      const PipelineSpan span = order.spans[static_cast<std::size_t>(a)];
      part.spans.push_back(span);
      part.busy += span.end - span.begin;
      run.time = std::max(run.time, span.end);
    }
    const auto at = static_cast<std::size_t>(p);
    detail::PipelineMemory(model, schedule, part).follow(schedule.lists[at], lists[at]);
    run.parts.push_back(std::move(part));
  }
  return run;
}

}  // namespace tessera
