// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The main job's trainer, in double, with its layers in stages: the losses of one mesh, by every
// schedule, and after it was interrupted and continued with other stages.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <mutex>
#include <vector>

#include <tessera/program/pipeline/simulate.hpp>

#include "../../examples/train_transformer/stages.hpp"
#include "io/npy_cases.hpp"

using namespace train_transformer;

namespace {

using U = Under<double, Grid, by::Tensors>;

Flags flags_of(Index layers, Index experts) {
  Flags flags;
  flags.sizes = {.vocabulary = 11,
                 .context = 5,
                 .embed = 6,
                 .heads = 3,
                 .hidden = 7,
                 .layers = layers,
                 .experts = experts,
                 .batch = 5,
                 .dropout = 0.1};
  flags.steps = 8;
  flags.rate = 0.03;
  flags.update = "cheapest";
  return flags;
}
std::vector<std::int32_t> some_text() {
  std::vector<std::int32_t> text(200);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::int32_t>(i * i % 7);
  return text;
}

/// Losses of the steps after `first`, the loss of text that is held out, and what comes next; from
/// a file, if one is named, and to one.
struct Part {
  Index first = 0, last = 6;
  std::string from = {}, to = {};
};
using Numbers = std::vector<double>;

template <class F> Numbers numbers_on(int processes, const F& f) {
  Numbers all;
  std::mutex mutex;
  run_loopback(processes, [&](std::shared_ptr<Transport> world) {
    const Numbers own = f(world);
    const std::lock_guard lock(mutex);
    CHECK((all.empty() || all == own));  // every process knows
    all = own;
  });
  return all;
}
Rows rows_of(const Sizes& n, Index step) {
  return random_rows(some_text(), n.batch, n.context, n.seed, step);
}
Rows one_row(const Sizes& n) { return rows_from(some_text(), {3}, n.context); }

Numbers on_one_mesh(int d, int m, const Flags& flags, const Part& part = {}) {
  return numbers_on(d * m, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, d, m);
    const Sizes& n = flags.sizes;
    Trainer<U> trainer(mesh, flags);
    if (!part.from.empty()) CHECK(trainer.resume(mesh, part.from, "text") == part.first);
    Numbers own;
    for (Index step = part.first + 1; step <= part.last; ++step)
      own.push_back(value(trainer.step(Batch<U>(mesh, rows_of(n, step), n.context), step)));
    own.push_back(trainer.held_out_loss(mesh, some_text(), 100));
    const auto [out, auxiliary] = scores(
        trainer.weights(), Batch<U>(mesh, one_row(n), n.context).ids, n, Turn{.training = false});
    const auto next = to_host(slice<1>(out, {n.context - 1}, {n.context}));
    own.insert(own.end(), next.values.begin(), next.values.end());
    if (!part.to.empty()) trainer.save(mesh, part.to, part.last, "text");
    return own;
  });
}

Numbers in_stages(int d, int m, const Flags& flags, const PipelineSchedule& schedule,
                  const Part& part = {}) {
  return numbers_on(schedule.parts() * d * m, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Staged>(world, schedule.parts(), d, m);
    const Sizes& n = flags.sizes;
    StagedTrainer<U> trainer(mesh, flags, schedule);
    if (!part.from.empty()) CHECK(trainer.resume(part.from, "text") == part.first);
    Numbers own;
    for (Index step = part.first + 1; step <= part.last; ++step)
      own.push_back(everywhere(mesh, trainer.step(rows_of(n, step), step)).values[0]);
    own.push_back(held_out_mean(some_text(), n.context, n.batch, 100,
                                [&](const Rows& rows, const std::vector<float>& counted) {
                                  return trainer.counted_loss(rows, counted);
                                }));
    for (const double s : to_host(trainer.next_scores(one_row(n))).values) own.push_back(s);
    if (!part.to.empty()) trainer.save(part.to, part.last, "text");
    return own;
  });
}

double apart(const Numbers& a, const Numbers& b) {
  if (a.size() != b.size()) return INFINITY;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (const double d = std::abs(a[i] - b[i]); !(d <= most)) most = d;  // NaN is large
  return most;
}

/// Returns the schedule that words ask for.
PipelineSchedule asked(const Flags& flags, const std::string& name, Index stages, Index m,
                       int processes) {
  Flags own = flags;
  own.schedule = name;
  own.stages = stages;
  own.micro_batches = m;
  return schedule_of(own, processes);
}

}  // namespace

TEST_CASE("pipeline: the trainer in stages has the losses of one mesh") {
  for (const Index experts : {0, 3}) {
    const Flags flags = flags_of(3, experts);
    const Numbers wanted = on_one_mesh(1, 1, flags);
    CAPTURE(experts);
    CHECK(wanted[5] < wanted[0]);
    CHECK(apart(in_stages(1, 1, flags, asked(flags, "gpipe", 3, 5, 3)), wanted) < 1e-10);
    CHECK(apart(in_stages(2, 1, flags, asked(flags, "1f1b", 2, 3, 4)), wanted) < 1e-10);
    CHECK(apart(in_stages(2, 2, flags, asked(flags, "zero-bubble", 2, 2, 8)), wanted) < 1e-10);
    if (experts == 0) continue;
    CHECK(apart(in_stages(1, 2, flags, asked(flags, "zero-bubble-v", 2, 4, 2)), wanted) < 1e-10);
  }
  Flags four = flags_of(5, 2);
  const Numbers wanted = on_one_mesh(1, 2, four);
  CHECK(apart(in_stages(3, 1, four, asked(four, "interleaved", 4, 5, 6)), wanted) < 1e-10);
}

TEST_CASE("pipeline: the number of stages changes no bit of the trainer's losses") {
  Flags flags = flags_of(4, 2);
  flags.clip = 0;  // the norm of all gradients adds up stages
  const Numbers one = in_stages(1, 2, flags, asked(flags, "gpipe", 1, 3, 2));
  CHECK(in_stages(1, 2, flags, asked(flags, "gpipe", 2, 3, 4)) == one);
  CHECK(in_stages(1, 2, flags, asked(flags, "gpipe", 4, 3, 8)) == one);
  CHECK(in_stages(1, 2, flags, asked(flags, "zero-bubble", 3, 3, 6)) == one);
}

TEST_CASE("pipeline: the trainer goes on with other stages, and without") {
  const support::Folder folder("tessera_staged_training");
  const std::string path = folder.file("run.safetensors");
  const Flags flags = flags_of(3, 2);
  const Numbers wanted = on_one_mesh(1, 1, flags);
  const Numbers begun =
      in_stages(2, 1, flags, asked(flags, "1f1b", 3, 4, 6), {.last = 2, .to = path});
  const Numbers middle =
      on_one_mesh(1, 2, flags, {.first = 2, .last = 4, .from = path, .to = path});
  const Numbers rest =
      in_stages(1, 2, flags, asked(flags, "zero-bubble", 2, 5, 4), {.first = 4, .from = path});
  Numbers all(begun.begin(), begun.begin() + 2);
  all.insert(all.end(), middle.begin(), middle.begin() + 2);
  all.insert(all.end(), rest.begin(), rest.end());
  CHECK(apart(all, wanted) < 1e-10);
}

TEST_CASE("pipeline: what --stages, --schedule and --micro-batches ask for, or why it cannot be") {
  Flags flags = flags_of(5, 0);
  const auto says = [&](const char* text, const std::string& name, Index stages, Index m,
                        int processes) {
    CHECK_THROWS_WITH_AS(asked(flags, name, stages, m, processes), doctest::Contains(text),
                         UsageError);
  };
  says(
      "--schedule is given \"2f2b\"; give gpipe, 1f1b, interleaved, zero-bubble, zero-bubble-v, or",
      "2f2b", 2, 2, 2);
  says("--stages 6 and --layers 5: each stage has a layer at least", "gpipe", 6, 2, 6);
  says("a batch of 5 rows in 7 micro-batches", "gpipe", 2, 7, 2);
  says("lie on 2 parts of as many processes, and there are 3", "1f1b", 2, 2, 3);
  says("--stages 3: a part of zero-bubble-v has two stages", "zero-bubble-v", 3, 2, 3);
  says("two without --mesh; give an even number", "interleaved", 5, 2, 5);
  flags.mesh = {2, 1};
  says("and there are 3 parts of 2 processes; give a multiple of them", "interleaved", 4, 2, 6);
  CHECK(asked(flags, "interleaved", 4, 0, 4).parts() == 2);
  CHECK(asked(flags, "interleaved", 4, 0, 2).parts() == 1);
  CHECK(asked(flags, "1f1b", 2, 0, 2).micro_batches == 5);

  const support::Folder folder("tessera_schedules");
  const std::string path = folder.file("table");
  const auto table = [&](const char* text) { std::ofstream(path) << text; };
  table("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n");
  CHECK(asked(flags, path, 2, 0, 2) == one_f_one_b(2, 2));
  says("the table in", path, 3, 0, 2);
  says("has 2; leave the flag out", path, 2, 3, 2);
  table("0F0 0F1\n1F0 1F1\n");
  says("goes forward alone, and training goes back", path, 2, 0, 2);
  table("0F0 0B0\n2F0 2B0\n");
  says("has stage 2 and says nothing of stage 1; give each stage its actions", path, 3, 0, 2);
  table("0F0 0B0 0F1 0B1\n1F1 1B1 1F0 1B0\n");
  says("wait for each other", path, 2, 0, 2);
  CHECK_THROWS_WITH_AS(read_flags({"--schedule", "gpipe"}), doctest::Contains("give --stages too"),
                       UsageError);
  CHECK_THROWS_WITH_AS(read_flags({"--stages", "2", "--memory", "1"}),
                       doctest::Contains("give more stages"), UsageError);

  std::vector<int> layers(3);
  for (Index l = 0; l < 8; ++l) ++layers[static_cast<std::size_t>(stage_of_block(l, 8, 3))];
  CHECK(layers == std::vector<int>{3, 3, 2});
  CHECK(stage_of_weight("blocks.7.second.in", 8, 3) == 2);
  CHECK(stage_of_weight("positions.weight", 8, 3) == 0);
}
