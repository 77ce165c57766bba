// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The main job's trainer, in double: the same losses on every mesh under all rules, compiled or
// not, and after it was interrupted and continued elsewhere.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <vector>

#include <tessera/op/compile.hpp>

#include "../../examples/train_transformer/trainer.hpp"
#include "../../examples/train_transformer/write.hpp"
#include "io/npy_cases.hpp"
#include "support/larger.hpp"

using namespace train_transformer;

namespace {

Flags flags_of(const char* update) {
  Flags flags;
  flags.sizes = {.vocabulary = 11,
                 .context = 5,
                 .embed = 6,
                 .heads = 3,
                 .hidden = 7,
                 .layers = 2,
                 .experts = 3,
                 .batch = 5,
                 .dropout = 0.1};
  flags.steps = 20;
  flags.rate = 0.03;
  flags.update = update;
  return flags;
}

std::vector<std::int32_t> some_text() {
  std::vector<std::int32_t> text(200);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::int32_t>(i % 7);
  return text;
}
/// Losses of the steps after `first`, up to `last`: from a file, if one is named, and to one.
struct Part {
  Index first = 0, last = 20;
  std::string from = {}, to = {};
  bool compiled = false;
  Index block = 0;  ///< keys of attention at a time
  std::vector<Recompute> again = {};
};

template <class Rules>
std::vector<double> losses_on(int d, int m, const char* update, const Part& part) {
  using U = Under<double, Grid, Rules>;
  std::vector<double> all;
  std::mutex mutex;
  run_loopback(d * m, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, d, m);
    Flags flags = flags_of(update);
    flags.sizes.block = part.block;
    flags.sizes.again = part.again;
    Trainer<U> trainer(mesh, flags);
    if (!part.from.empty()) CHECK(trainer.resume(mesh, part.from, "text") == part.first);
    const std::vector<std::int32_t> text = some_text();
    auto compiled =
        compile([&](const Batch<U>& batch, Index step) { return trainer.step(batch, step); });
    std::vector<double> own;
    for (Index step = part.first + 1; step <= part.last; ++step) {
      const Sizes& n = flags.sizes;
      const Batch<U> batch(mesh, random_rows(text, n.batch, n.context, n.seed, step), n.context);
      own.push_back(value(part.compiled ? compiled(batch, step) : trainer.step(batch, step)));
    }
    if (!part.to.empty()) trainer.save(mesh, part.to, part.last, "text");
    own.push_back(trainer.held_out_loss(mesh, text, 100));
    const std::lock_guard lock(mutex);
    all = own;
  });
  return all;
}

/// The losses of 20 steps, and by what the closest choice of an expert was made.
struct Steps {
  std::vector<double> losses;
  double margin = INFINITY;
};
template <class Rules, class Rule>
Steps steps_on(int d, int m, const Rule& rule, UpdatePolicy::Kind update) {
  using U = Under<double, Grid, Rules>;
  Steps all;
  std::mutex mutex;
  run_loopback(d * m, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, d, m);
    const Sizes n = flags_of("replicated").sizes;
    Parameters<Grid> make(mesh, n.seed);
    Model<U> weights = Model<U>::like(make, n);
    Optimizer<Rule, UpdatePolicy> optimizer(rule, weights, {.clip = 1}, {update, {0, 1}});
    Steps own;
    for (Index number = 1; number <= 20; ++number) {
      const Turn turn{number, true};
      const Batch<U> batch(mesh, random_rows(some_text(), n.batch, n.context, n.seed, number),
                           n.context);
      (void)scores(weights, batch.ids, n, turn, [&](const auto& gating) {
        own.margin = std::min(own.margin, value(routing_statistics(gating).margin));
      });
      const auto run = optimizer.value_and_grad(
          [&](const Model<U>& w) { return losses(w, batch.ids, batch.next, n, turn); })(weights);
      optimizer.step(weights, run.gradient);
      own.losses.push_back(value(std::get<1>(run.value)));
    }
    const std::lock_guard lock(mutex);
    all = own;
  });
  return all;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = support::larger(largest, std::abs(a[i] - b[i]));
  return largest;
}

}  // namespace

TEST_CASE("the trainer: one source, the same losses on every mesh under all rules") {
  const auto alone = losses_on<by::Batch>(1, 1, "replicated", {});
  REQUIRE(alone.size() == 21);
  CHECK(alone[19] < alone[0]);
  CHECK(largest_difference(losses_on<by::Batch>(2, 2, "sharded", {}), alone) < 1e-10);
  CHECK(largest_difference(losses_on<by::Batch>(3, 1, "cheapest", {.compiled = true}), alone) <
        1e-10);
  CHECK(largest_difference(losses_on<by::Tensors>(2, 2, "cheapest", {}), alone) < 1e-10);
  CHECK(largest_difference(losses_on<by::Tensors>(3, 2, "sharded", {.compiled = true}), alone) <
        1e-10);
  CHECK(largest_difference(losses_on<by::Tensors>(1, 2, "replicated", {}), alone) < 1e-10);
  CHECK(largest_difference(losses_on<by::Shards>(2, 2, "replicated", {.compiled = true}), alone) <
        1e-10);
  CHECK(largest_difference(losses_on<by::Shards>(4, 2, "cheapest", {}), alone) < 1e-10);
  // Layers that run again, a mixture among them, and attention by blocks.
  CHECK(largest_difference(losses_on<by::Tensors>(2, 1, "cheapest", {.again = {true, true}}),
                           alone) < 1e-10);
  CHECK(largest_difference(
            losses_on<by::Batch>(1, 2, "sharded",
                                 {.compiled = true, .block = 2, .again = {false, true}}),
            alone) < 1e-10);
}

TEST_CASE(
    "20 steps of descent and of Adam are the same on 1 to 8 processes, and no choice is close") {
  const auto check = [](const char* name, const auto& rule) {
    CAPTURE(name);
    using Kind = UpdatePolicy::Kind;
    const Steps alone = steps_on<by::Batch>(1, 1, rule, Kind::replicated);
    REQUIRE(alone.losses.size() == 20);
    CHECK(alone.losses[19] < alone.losses[0]);
    double worst = 0, least = alone.margin;
    const auto compare = [&](const Steps& split) {
      worst = support::larger(worst, largest_difference(split.losses, alone.losses));
      least = std::min(least, split.margin);
    };
    compare(steps_on<by::Batch>(2, 1, rule, Kind::sharded));
    compare(steps_on<by::Tensors>(1, 2, rule, Kind::replicated));
    compare(steps_on<by::Shards>(2, 2, rule, Kind::cheapest));
    compare(steps_on<by::Tensors>(2, 2, rule, Kind::sharded));
    compare(steps_on<by::Tensors>(3, 2, rule, Kind::cheapest));
    compare(steps_on<by::Shards>(4, 2, rule, Kind::replicated));
    MESSAGE(std::string(name) << ": losses differ by " << worst
                              << " at most, the smallest gate margin is " << least);
    CHECK(worst < 1e-10);
    CHECK(least >
          1e-6);  // far beyond what rounding changes in a gate, so that no choice depends on it
  };
  check("descent with momentum", Sgd{.rate = 0.05, .momentum = 0.9});
  check("Adam", Adam{.rate = 0.01});
}

TEST_CASE("the trainer: texts that cannot be learnt from say why") {
  const support::Folder folder("tessera_texts");
  const auto says = [&](const std::string& name, const char* what) {
    CHECK_THROWS_WITH_AS(support::load_text(name, 5), doctest::Contains(what), UsageError);
  };
  says(folder.file("none.txt"), "there is no file or folder");
  std::ofstream(folder.file("empty.txt"));
  says(folder.file("empty.txt"), "is empty");
  std::ofstream(folder.file("short.txt")) << "twelve chars";
  says(folder.file("short.txt"), "is too short: 11 characters to learn from and 1 held out");
  const std::string one = folder.file("one");
  std::filesystem::create_directory(one);
  says(one, "holds no text");
  std::ofstream(one + "/a.txt") << "some text in it";
  says(one, "holds one file");
}

TEST_CASE("the trainer: interrupted, and continued on another mesh under other rules") {
  const support::Folder folder("tessera_training");
  const std::string path = folder.file("run.safetensors");
  const auto alone = losses_on<by::Tensors>(1, 1, "replicated", {});
  const auto begun =
      losses_on<by::Tensors>(2, 2, "sharded", {.last = 3, .to = path, .compiled = true});
  const auto middle =
      losses_on<by::Shards>(3, 1, "replicated", {.first = 3, .last = 5, .from = path, .to = path});
  const auto rest = losses_on<by::Batch>(1, 2, "cheapest", {.first = 5, .from = path});
  std::vector<double> all(begun.begin(), begun.begin() + 3);
  all.insert(all.end(), middle.begin(), middle.begin() + 2);
  all.insert(all.end(), rest.begin(), rest.end());
  CHECK(largest_difference(all, alone) < 1e-10);
  // A run of other data, and a model of another size.
  run_loopback(1, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 1, 1);
    using U = Under<double, Grid, by::Batch>;
    Flags flags = flags_of("replicated");
    Trainer<U> trainer(mesh, flags);
    CHECK_THROWS_WITH_AS(
        trainer.resume(mesh, path, "another"),
        doctest::Contains("has another text (text) than this one (another); give --text"),
        UsageError);
    flags.sizes.hidden = 8;
    Trainer<U> wider(mesh, flags);
    CHECK_THROWS_WITH_AS(wider.resume(mesh, path, "text"),
                         doctest::Contains("is a checkpoint of other tensors"), FileError);
  });
}

namespace {
/// What the trainer's model says of a text that it reads in pieces: by how much its scores differ
/// from those of the whole text, and what it writes.
struct Read {
  double far = 0;
  std::vector<Id> text;
};
template <class Rules> Read read_on(int d, int m) {
  using U = Under<double, Grid, Rules>;
  Read all;
  std::mutex mutex;
  run_loopback(d * m, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, d, m);
    Sizes n = flags_of("replicated").sizes;
    n.capacity = static_cast<double>(n.experts);  // no expert is too full
    Parameters<Grid> make(mesh, n.seed);
    const auto model = Model<U>::like(make, n);
    const std::vector<Id> ids{3, 1, 4, 1, 5};
    const auto whole = to_host(std::get<0>(
        scores(model, from_host<Ids<U>>(mesh, {1, 5}, ids), n, Turn{.training = false})));
    Read own;
    Reader<U> reader(mesh, model, n, 1, n.context);
    Index place = 0;
    for (const Index count : {2, 1, 2}) {
      std::vector<Index> places;
      std::vector<Id> some;
      for (Index i = 0; i < count; ++i, ++place) {
        places.push_back(place);
        some.push_back(ids[static_cast<std::size_t>(place)]);
      }
      using Row = typename U::template Of<Id, logical::batch>;
      const auto next = to_host(reader(from_host<Ids<U>>(mesh, {1, count}, some),
                                       NewPlaces<U>::at(mesh, {places}, n.context),
                                       full<Row>(mesh, {1}, static_cast<Id>(count - 1))));
      for (Index v = 0; v < n.vocabulary; ++v)
        own.far = support::larger(own.far, std::abs(next(0, v) - whole(0, place - 1, v)));
    }
    own.text = write<U>(mesh, model, n, ids, 12);
    const std::lock_guard lock(mutex);
    all.far = support::larger(all.far, own.far);
    CHECK((all.text.empty() || all.text == own.text));
    all.text = own.text;
  });
  return all;
}
}  // namespace

TEST_CASE("the trainer's model reads on what it would read at once, and writes the same anywhere") {
  const Read alone = read_on<by::Batch>(1, 1);
  CHECK(alone.far < 1e-12);
  CHECK(alone.text.size() == 12);
  for (const Read& other : {read_on<by::Batch>(2, 2), read_on<by::Tensors>(2, 2),
                            read_on<by::Tensors>(1, 3), read_on<by::Shards>(2, 1)}) {
    CHECK(other.far < 1e-12);
    CHECK(other.text == alone.text);
  }
}
