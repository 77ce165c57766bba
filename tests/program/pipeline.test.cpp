// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: program_lists
// Schedules of pipelines: the known ones against the literature's formulas, and random tables,
// which are carried out by an executor of this test's own or stand still there.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <tessera/program/pipeline/chart.hpp>
#include <tessera/program/pipeline/instructions.hpp>
#include <tessera/program/pipeline/schedules.hpp>
#include <tessera/program/pipeline/search.hpp>

using namespace tessera;

namespace {

using Pass = PipelinePass;
using Table = std::vector<std::vector<PipelineAction>>;

PipelineStage stage_of(std::int64_t f, std::int64_t i, std::int64_t w) {
  // What is kept: 4 bytes from the way forward to that by inputs, and 6 to that by weights, with 2
  // more made in between.
  return {{f, 11, 10}, {i, 3, -2}, {w, 1, -8}};
}

/// Whether `later` waits for `before` by what a chain of stages needs of one micro-batch: stated
/// here anew.
bool needs(const PipelineAction& later, const PipelineAction& before) {
  if (later.micro_batch != before.micro_batch) return false;
  const bool forward = later.pass == Pass::forward;
  const bool inputs = later.pass == Pass::backward || later.pass == Pass::backward_inputs;
  const bool weights = later.pass == Pass::backward_weights;
  if (forward) return before.pass == Pass::forward && before.stage + 1 == later.stage;
  if (inputs && before.pass == Pass::forward) return before.stage == later.stage;
  if (inputs && before.pass != Pass::backward_weights) return before.stage == later.stage + 1;
  return weights && before.pass == Pass::backward_inputs && before.stage == later.stage;
}

/// Carries a table out with no messages: a part does its next action when all that it needs is
/// done. Returns how many are done.
std::size_t done_of(const Table& table) {
  std::vector<std::size_t> next(table.size());
  std::vector<PipelineAction> done;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t p = 0; p < table.size(); ++p)
      while (next[p] < table[p].size()) {
        const PipelineAction& a = table[p][next[p]];
        std::size_t needed = 0, there = 0;
        for (const auto& list : table)
          for (const PipelineAction& b : list) needed += needs(a, b) ? 1 : 0;
        for (const PipelineAction& b : done) there += needs(a, b) ? 1 : 0;
        if (there < needed) break;
        done.push_back(a);
        ++next[p];
        moved = true;
      }
  }
  return done.size();
}

/// Carries instructions out: what is sent has gone when the other part expects it, and arrives
/// then; parts take turns at random. Returns what went wrong.
std::string carry_out(const PipelineModel& model, const PipelineSchedule& s, std::mt19937& random) {
  using Kind = PipelineInstruction::Kind;
  const auto lists = pipeline_instructions(model, s);
  struct Flow {
    std::deque<int> sent, expected;  // micro-batches that wait for the other side
    std::vector<bool> arrived;
  };
  std::vector<Flow> flows(model.flows.size());
  for (Flow& flow : flows) flow.arrived.resize(static_cast<std::size_t>(s.micro_batches));
  const auto match = [&](Flow& flow) -> std::string {
    while (!flow.sent.empty() && !flow.expected.empty()) {
      if (flow.sent.front() != flow.expected.front())
        return "micro-batch " + std::to_string(flow.sent.front()) + " is sent where " +
               std::to_string(flow.expected.front()) + " is expected";
      flow.arrived[static_cast<std::size_t>(flow.sent.front())] = true;
      flow.sent.pop_front();
      flow.expected.pop_front();
    }
    return "";
  };
  std::vector<std::size_t> next(lists.size());
  std::vector<PipelineAction> done;
  for (;;) {
    std::vector<std::size_t> open;
    for (std::size_t p = 0; p < lists.size(); ++p)
      if (next[p] < lists[p].size()) open.push_back(p);
    if (open.empty()) break;
    std::shuffle(open.begin(), open.end(), random);
    bool moved = false;
    for (const std::size_t p : open) {
      const PipelineInstruction& i = lists[p][next[p]];
      if (i.kind == Kind::act) {
        const PipelineAction& a = s.lists[p][static_cast<std::size_t>(i.action)];
        for (std::size_t q = 0; q < s.lists.size(); ++q)
          for (const PipelineAction& b : s.lists[q])
            if (needs(a, b) && std::find(done.begin(), done.end(), b) == done.end())
              return to_string(a) + " runs before " + to_string(b);
        done.push_back(a);
      } else {
        Flow& flow = flows[static_cast<std::size_t>(i.flow)];
        const auto m = static_cast<std::size_t>(i.micro_batch);
        if ((i.kind == Kind::arrived || i.kind == Kind::sent) && !flow.arrived[m]) continue;
        if (i.kind == Kind::send) flow.sent.push_back(i.micro_batch);
        if (i.kind == Kind::receive) flow.expected.push_back(i.micro_batch);
        if (const std::string wrong = match(flow); !wrong.empty()) return wrong;
      }
      ++next[p];
      moved = true;
      break;
    }
    if (!moved) return "all parts wait";
  }
  for (const Flow& flow : flows)
    if (!flow.sent.empty() || !flow.expected.empty()) return "a message is left over";
  return "";
}

PipelineSchedule random_table(std::mt19937& random, int parts, int stages, int micro_batches) {
  PipelineSchedule s{"random", micro_batches, {}, Table(static_cast<std::size_t>(parts))};
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int stage = 0; stage < stages; ++stage) s.part_of.push_back(below(parts));
  const bool splits = below(2) == 0;
  // Near a good order, so that many are accepted: a key for each action, with noise.
  const int noise = below(14);
  std::vector<std::pair<int, PipelineAction>> all;
  for (int stage = 0; stage < stages; ++stage)
    for (int m = 0; m < micro_batches; ++m) {
      const auto add = [&](Pass pass, int key) {
        all.push_back({2 * key + (noise > 0 ? below(noise) : 0), {pass, stage, m}});
      };
      add(Pass::forward, stage + 2 * m);
      const int back = 2 * stages - stage + 2 * m;
      add(splits ? Pass::backward_inputs : Pass::backward, back);
      if (splits) add(Pass::backward_weights, back + 1 + below(4));
    }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [key, a] : all) s.lists[static_cast<std::size_t>(s.part(a.stage))].push_back(a);
  return s;
}

/// Whether no part waits for a message of its own to be gone: it does so before an action that
/// begins no sooner than the one which reads the message.
bool sends_without_waiting(const PipelineModel& model, const PipelineSchedule& s,
                           const PipelineRun& run) {
  std::size_t part = 0;
  for (const auto& list : pipeline_instructions(model, s)) {
    const std::vector<PipelineSpan>& own = run.parts[part++].spans;
    for (const PipelineInstruction& i : list) {
      if (i.kind != PipelineInstruction::Kind::sent) continue;
      const PipelinePlace to = model.flows[static_cast<std::size_t>(i.flow)].to;
      const auto reader = static_cast<std::size_t>(s.part(to.stage));
      const auto& there = s.lists[reader];
      const auto read = std::find_if(there.begin(), there.end(), [&](const PipelineAction& a) {
        const bool whole = a.pass == Pass::backward && to.pass != Pass::forward;
        return a.stage == to.stage && a.micro_batch == i.micro_batch &&
               (whole || a.pass == to.pass);
      });
      const auto waits = static_cast<std::size_t>(i.action);
      if (waits < own.size() &&
          own[waits].begin <
              run.parts[reader].spans[static_cast<std::size_t>(read - there.begin())].begin)
        return false;
    }
  }
  return true;
}

int most_of(const PipelineRun& run) {
  int most = 0;
  for (const PipelinePart& part : run.parts) most = std::max(most, part.most_held);
  return most;
}

}  // namespace

TEST_CASE("pipeline: the known schedules have the idle time of the literature") {
  const int p = 8;
  for (const int m : {8, 16, 64}) {
    CAPTURE(m);
    for (const auto& [f, i, w] : {std::tuple<int, int, int>{1, 1, 1}, {2, 3, 2}, {3, 4, 3}}) {
      const int b = i + w;
      const PipelineModel chain = PipelineModel::chain(p, stage_of(f, i, w));
      // The literature's way back is one: what it makes leaves at its end.
      const PipelineModel whole = PipelineModel::chain(p, stage_of(f, b, 0));
      const PipelineModel twice = PipelineModel::chain(2 * p, stage_of(f, b, 0));
      const PipelineRun all = simulate(whole, gpipe(p, m)),
                        turns = simulate(whole, one_f_one_b(p, m)),
                        inter = simulate(twice, interleaved(p, 2, m)),
                        zero = simulate(chain, zero_bubble(p, m));
      CHECK(all.idle() == (p - 1) * (f + b));
      CHECK(all.bubble() == doctest::Approx(double(p - 1) / (m + p - 1)));
      CHECK(turns.idle() == (p - 1) * (f + b));
      // A part's work of one micro-batch is two stages', so that (p - 1) (F + B) / v is this.
      CHECK(inter.idle() == (p - 1) * 2 * (f + b) / 2);
      CHECK(zero.idle() == (p - 1) * (f + i - w));
      // Ours sends the gradients of inputs before it makes those of weights.
      CHECK(simulate(chain, gpipe(p, m)).idle() == (p - 1) * (f + i));
      CHECK(simulate(chain, one_f_one_b(p, m)).idle() == (p - 1) * (f + i));
      // Each keeps 10 bytes a micro-batch, and 3 more at the peak of a way back.
      CHECK(all.peak_bytes() == 10 * m + 3);
      CHECK(turns.peak_bytes() == 10 * std::min(p, m) + 3);
      CHECK(inter.peak_bytes() == 10 * most_of(inter) + 3);
      CHECK(most_of(all) == m);
      CHECK(most_of(turns) == p);
      CHECK(most_of(inter) == std::min(2 * p + p - 1, 2 * m));
      // What is kept until the way back by weights: no more than 1F1B keeps.
      CHECK(zero.peak_bytes() <= turns.peak_bytes() + 3);
    }
    // The bytes are those of an activation to the next stage and of a gradient to the one before,
    // for each micro-batch.
    std::string table;
    for (const PipelineSchedule& s : {gpipe(p, m), one_f_one_b(p, m), interleaved(p, 2, m),
                                      zero_bubble(p, m), zero_bubble_v(p, m)}) {
      const int stages = s.stages(), each = 2 * p / stages;
      const PipelineRun run =
          simulate(PipelineModel::chain(stages, stage_of(each, each, each), 100), s);
      Index sent = 0, received = 0;
      for (const PipelinePart& part : run.parts)
        sent += part.sent_bytes, received += part.received_bytes;
      int borders = 0;
      for (int stage = 0; stage + 1 < stages; ++stage)
        borders += s.part(stage) != s.part(stage + 1) ? 1 : 0;
      CHECK(sent == 2 * 100 * m * borders);
      CHECK(received == sent);
      table += "\n  " + s.name + ": idle " + std::to_string(100 * run.bubble()) + " %, peak " +
               std::to_string(run.peak_bytes()) + ", bytes " + std::to_string(sent);
    }
    if (std::getenv("TESSERA_SHOW") != nullptr) MESSAGE(m << " micro-batches" << table);
    const PipelineModel twice = PipelineModel::chain(2 * p, stage_of(1, 1, 1));
    const PipelineRun v = simulate(twice, zero_bubble_v(p, m));
    CHECK(v.time ==
          pipeline_bound(twice, zero_bubble_v(p, m).part_of, m));  // no schedule is faster
    CHECK(v.idle() <= p - 1);                                      // of a third of a stage each
  }
}

TEST_CASE("pipeline: the known schedules can be carried out, for all small numbers") {
  std::mt19937 random(1);
  int cases = 0;
  for (int parts = 1; parts <= 8; ++parts)
    for (int m = 1; m <= 17; ++m)
      for (int each = 1; each <= 4; ++each) {
        CAPTURE(parts);
        CAPTURE(m);
        CAPTURE(each);
        std::vector<PipelineSchedule> all{interleaved(parts, each, m)};
        if (each == 1)
          for (auto* make : {&gpipe, &one_f_one_b, &zero_bubble}) all.push_back(make(parts, m, {}));
        if (each == 2) all.push_back(zero_bubble_v(parts, m));
        for (const PipelineSchedule& s : all) {
          const PipelineModel model = PipelineModel::chain(s.stages(), stage_of(1, 1, 1), 100, 1);
          CAPTURE(s.name);
          REQUIRE(check_schedule(model, s).why == "");
          REQUIRE(carry_out(model, s, random) == "");
          CHECK(parse_schedule(to_string(s), s.part_of) == s);
          const PipelineRun run = simulate(model, s);
          CHECK(run.time >= pipeline_bound(model, s.part_of, m));
          CHECK(sends_without_waiting(model, s, run));
          ++cases;
        }
      }
  CHECK(cases == 8 * 17 * (4 + 3 + 1));
}

TEST_CASE("pipeline: of 100,000 random tables each runs, or a cycle of it is named") {
  std::mt19937 random(20);
  int accepted = 0, refused = 0, wrong = 0;
  for (int i = 0; i < 100'000; ++i) {
    const int parts = 1 + static_cast<int>(random() % 4),
              stages = 1 + static_cast<int>(random() % 5), m = 1 + static_cast<int>(random() % 4);
    const PipelineSchedule s = random_table(random, parts, stages, m);
    const PipelineModel model = PipelineModel::chain(stages, stage_of(2, 1, 1), 8, 1);
    const PipelineFault fault = check_schedule(model, s);
    std::size_t all = 0;
    for (const auto& list : s.lists) all += list.size();
    if (!fault.any()) {
      ++accepted;
      const std::string text = carry_out(model, s, random);
      wrong += text.empty() ? 0 : 1;
      if (!text.empty() && wrong < 4) MESSAGE(text << " in\n" << to_string(s));
      continue;
    }
    ++refused;
    bool right = done_of(s.lists) < all && !fault.cycle.empty();
    for (std::size_t k = 0; k < fault.cycle.size(); ++k) {  // each waits for the next
      const PipelineAction &a = fault.cycle[k], &b = fault.cycle[(k + 1) % fault.cycle.size()];
      const auto& list = s.lists[static_cast<std::size_t>(s.part(a.stage))];
      const auto at = std::find(list.begin(), list.end(), a);
      const bool after = at != list.end() && at != list.begin() && *(at - 1) == b;
      right = right && at != list.end() && (after || needs(a, b));
      right = right && fault.why.find(to_string(a)) != std::string::npos;
    }
    wrong += right ? 0 : 1;
    if (!right && wrong < 4) MESSAGE(fault.why << " in\n" << to_string(s));
  }
  CHECK(wrong == 0);
  CHECK(accepted > 20'000);
  CHECK(refused > 20'000);
}

TEST_CASE("pipeline: what a table lacks, or has twice, is named") {
  const PipelineModel model = PipelineModel::chain(2, stage_of(1, 1, 1));
  const auto why = [&](const char* text, std::vector<int> part_of = {0, 1}) {
    return check_schedule(model, parse_schedule(text, std::move(part_of))).why;
  };
  CHECK(why("0F0,0B0\n1F0,1B0") == "");
  CHECK(why("0F0,0I0,0W0\n1F0,1B0") == "");
  CHECK(why("0F0 0B0\n1F0") ==
        "no part does 1B0; each stage goes forward and back by each micro-batch; add it to the "
        "list of part 1");
  CHECK(why("0F0,0I0\n1F0,1B0").find("no part does 0W0") == 0);
  CHECK(why("0F0,0F0,0B0\n1F0,1B0").find("part 0 does 0F0 twice") == 0);
  CHECK(why("0F0,0B0,0W0\n1F0,1B0").find("part 0 does 0W0 when it has gone back already") == 0);
  CHECK(why("0F0,0B0,1F0\n1B0").find("part 0 does 1F0, and stage 1 lies in part 1") == 0);
  CHECK(why("0F0,0B0,2F0\n1F0,1B0").find("part 0 does 2F0, and there are 2 stages") == 0);
  CHECK(why("0F0,0B0\n1F0,1B0", {0, 2})
            .find("stage 1 lies in part 2, and the schedule has 2 parts") == 0);
  CHECK(why("0F0,0B0\n1F0,1B0", {0}).find("the schedule has 1 stages, and the model 2") == 0);
  CHECK(why("0F0,0B0\n1B0,1F0")
            .find("1B0 of part 1 needs what is made by 1F0 of part 1, 1F0 of part 1 comes after "
                  "1B0 of part 1") != std::string::npos);
  for (const char* text : {"0F", "F0", "0X0", "0F0x", "0f0", "-1F0", "0F0;1F0"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_schedule(text, {0}), UsageError);
  }
  CHECK_THROWS_AS(simulate(model, parse_schedule("0F0,0B0\n1B0,1F0", {0, 1})), UsageError);
  CHECK_THROWS_AS(gpipe(0, 4), UsageError);
  CHECK_THROWS_AS(interleaved(2, 0, 4), UsageError);
  CHECK_THROWS_AS(zero_bubble(2, 0), UsageError);
}

TEST_CASE("pipeline: the search finds what trying all tables finds, and its bound holds") {
  std::mt19937 random(3);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int best = 0, cases = 0, splits = 0, proved = 0;
  for (int round = 0; round < 80; ++round) {
    const bool split = round % 2 == 0;
    PipelineModel model = PipelineModel::chain(2, stage_of(1, 1, 1), below(4), below(3));
    for (PipelineStage& s : model.stages) {
      s.forward = {1 + below(4), 10, 10};
      s.inputs = {1 + below(4), 2, -below(10)};
      s.weights = {1 + below(4), 2 + below(6), -10 - s.inputs.held};
    }
    const Index limit = below(2) == 0 ? max_int64 : 16 + below(16);
    const std::vector<Pass> passes =
        split ? std::vector{Pass::forward, Pass::backward_inputs, Pass::backward_weights}
              : std::vector{Pass::forward, Pass::backward};
    std::vector<std::vector<PipelineAction>>
        orders[2];  // of each part: all lists of two micro-batches
    for (int part = 0; part < 2; ++part) {
      std::vector<int> pick(passes.size(), 0);
      pick.resize(2 * passes.size(), 1);
      do {
        std::size_t at[2] = {0, 0};
        std::vector<PipelineAction> list;
        for (const int m : pick) list.push_back({passes[at[m]++], part, m});
        orders[part].push_back(list);
      } while (std::next_permutation(pick.begin(), pick.end()));
    }
    std::int64_t least = max_int64;
    for (const auto& a : orders[0])
      for (const auto& b : orders[1]) {
        const PipelineSchedule s{"", 2, {0, 1}, {a, b}};
        if (check_schedule(model, s).any()) continue;
        const PipelineRun run = simulate(model, s);
        if (run.peak_bytes() <= limit) least = std::min(least, run.time);
      }
    const FoundSchedule found =
        search_schedule(model, {0, 1}, 2, {.memory_limit = limit, .split_backward = split});
    CAPTURE(limit);
    CAPTURE(split);
    CHECK(found.any() == (least != max_int64));
    if (!found.any()) continue;
    ++cases;
    CHECK(found.run.peak_bytes() <= limit);
    CHECK(found.run.time >= least);
    CHECK(found.bound <= least);
    best += found.run.time == least ? 1 : 0;
    splits += split ? 1 : 0;  // the bound is of all tables, with I and W
    proved += split && found.run.time == found.bound ? 1 : 0;
  }
  CHECK(cases >= 60);
  CHECK(best == cases);
  CHECK(proved * 2 >= splits);
}

TEST_CASE("pipeline: the bound holds where a stage does not need the one before it") {
  // Stage 2 needs stage 0, which takes long, and stage 1, which alone has memory: it may wait.
  PipelineModel model;
  model.stages.assign(3, {{1, 0, 0}, {1, 0, 0}, {0, 0, 0}});
  model.stages[0].forward.time = 100;
  model.stages[0].inputs.time = 0;
  model.stages[1].forward = {1, 10, 10};
  model.stages[1].inputs = {1, 0, -10};
  for (const int s : {0, 1}) {
    model.flows.push_back({{Pass::forward, s}, {Pass::forward, 2}});
    model.flows.push_back({{Pass::backward_inputs, 2}, {Pass::backward_inputs, s}});
  }
  const FoundSchedule found = search_schedule(model, {0, 1, 2}, 10, {.memory_limit = 10});
  REQUIRE(found.any());
  CHECK(found.run.time <= 1021);
  CHECK(found.bound <= 1003);  // all of part 0 first, the others in turns
  CHECK(found.gap() >= 0);
}

TEST_CASE("pipeline: schedules are searched for where a part has no stage") {
  const PipelineModel model = PipelineModel::chain(2, {{1}, {1}, {1}});
  for (const std::vector<int>& part_of : {std::vector{0, 2}, {1, 2}}) {
    const FoundSchedule found = search_schedule(model, part_of, 4, {.split_backward = false});
    REQUIRE(found.any());
    CHECK(found.run.time >= found.bound);
    CHECK(!check_schedule(model, found.schedule).any());
  }
  FoundSchedule found;
  found.schedule.lists = {{{Pass::forward, 0, 0}}};
  found.run.time = 3'000'000;
  found.bound = 2'000'000;
  CHECK(explain(found).find("no schedule takes less than 2 us (33.3 % less)") != std::string::npos);
}

TEST_CASE("pipeline: what has been sent lies in memory while a way back goes on") {
  // The gradient of stage 1's input, 7 bytes, leaves before its weights', which need 20 at once.
  PipelineModel model = PipelineModel::chain(2, {{1, 10, 10}, {1, 0, 0}, {1, 20, -10}}, 7);
  const PipelineRun run = simulate(model, parse_schedule("0F0,0B0\n1F0,1B0", {0, 1}));
  CHECK(run.parts[1].peak_bytes == 10 + 7 + 20);
  CHECK(run.parts[0].peak_bytes == 10 + 20);  // what it sent is gone, what came was in W's room
}

TEST_CASE("pipeline: a chart") {
  const PipelineModel model = PipelineModel::chain(
      2, {{1'000'000, 2048, 1024}, {1'000'000, 0, 0}, {1'000'000, 0, -1024}}, 512);
  const PipelineSchedule s = one_f_one_b(2, 3);
  CHECK(explain(s, simulate(model, s)) ==
        R"(1F1B: 2 stages on 2 parts, 3 micro-batches, 11 us; parts stand idle 18.2 % of it
  part 0  F0F1..B0--F2B1--..B2--  busy 81.8 %  peak 4 KiB    sends 1.5 KiB
  part 1  ..F0B0--F1B1--F2B2--..  busy 81.8 %  peak 2.5 KiB  sends 1.5 KiB
)");
}
