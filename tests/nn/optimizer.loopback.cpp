// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Optimizers against plain loops in double, under every policy of the update, on several meshes.
#include <doctest/doctest.h>

#include <functional>
#include <mutex>

#include <tessera/nn.hpp>
#include <tessera/nn/on_stages.hpp>
#include <tessera/nn/translation/translator.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/pipeline/each_stage.hpp>
#include <tessera/tessera.hpp>

#include "nn/optimizer_cases.hpp"
#include "support/grid.hpp"

using namespace tessera;

namespace {
using namespace optimizer_test;

constexpr int steps = 20;

template <class F> void on_meshes(const F& body) {
  for (const auto& [rows, columns] : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 2}})
    run_loopback(rows * columns,
                 [&, rows = rows, columns = columns](std::shared_ptr<Transport> world) {
                   body(make_mesh(world, {rows, columns}, {"data", "model"}));
                 });
}
template <class F> void on_one_process(const F& body) {
  run_loopback(1, [&](std::shared_ptr<Transport> world) {
    body(make_mesh(world, {1, 1}, {"data", "model"}));
  });
}
DynamicTensor line(const DynamicMesh& mesh, const std::vector<double>& values) {
  return tensor_of<double>(mesh, {static_cast<Index>(values.size())}, values, Sharding{{}});
}
Values gradients_of_step(int step) { return random_values(100 + static_cast<unsigned>(step), 0.5); }

/// The gradients come as they may: whole, split otherwise, under the places of the update.
/// `before`: how many tensors the optimizer has before these weights.
template <class T, class Optimizer>
Tree gradients_for(const Optimizer& optimizer, const DynamicMesh& mesh, int step,
                   std::size_t before = 0) {
  std::vector<Sharding> under = whole_weights();
  if (step % 3 == 1)
    for (std::size_t i = 0; i < under.size(); ++i)
      under[i] = optimizer.gradient_shardings()[before + i].finished();
  if (step % 3 == 2) under[0] = Sharding{{1}, {0}};
  return tree_of<T>(mesh, gradients_of_step(step), under);
}

/// Runs a rule under all policies, and compares with what the loops make. Beside the weights there
/// are tensors that no gradient moves, whose gradients are no numbers. `groups`: matrices alone
/// decay.
template <class Rule, class Step>
void check_rule(const char* name, const Rule& rule, const Step& step, bool groups = false) {
  Loops loops(random_values(1));
  if (groups)
    for (std::size_t k = 0; k < loops.decays.size(); ++k)
      loops.decays[k] = weight_extents()[k].size() > 1;
  const OptimizerOptions options{.decays = groups ? matrices_only : WeightPredicate{}};
  for (int t = 1; t <= steps; ++t) step(loops, gradients_of_step(t), t);
  std::mutex mutex;
  on_meshes([&](const DynamicMesh& mesh) {
    for (const NamedPolicy& p : policies())
      for (const auto& shardings : {whole_weights(), split_weights()}) {
        Followed tree = followed(mesh, tree_of<double>(mesh, random_values(1), shardings), 0.75);
        Optimizer<Rule, UpdatePolicy> optimizer(rule, tree, options, p.policy);
        for (int t = 1; t <= steps; ++t)
          optimizer.step(
              tree, followed(mesh, gradients_for<double>(optimizer, mesh, t, 1), std::nan("")));
        const StepReport report = optimizer.report();
        bool kept = report.updates == steps && report.skipped.empty() && all_are(tree, 0.75);
        double squares = 0;
        for (const auto& one : gradients_of_step(steps)) squares += std::pow(Loops::norm(one), 2);
        double worst = std::abs(report.norm - std::sqrt(squares));
        for (std::size_t i = 0; i < tree.weights.size(); ++i) {
          kept = kept && tree.weights[i].sharding() == shardings[i];
          worst =
              std::max(worst, worst_difference(host_values<double>(tree.weights[i]), loops.w[i]));
        }
        optimizer.for_each_state([&](const std::string& path, const DynamicTensor& state) {
          kept = kept && state.defined() && path.starts_with("weights.");
        });
        const std::lock_guard lock(mutex);
        CHECK(kept);
        CHECK_MESSAGE(worst < 1e-12, name << ", " << std::string(p.name) << " on "
                                          << to_string(mesh.shape(), AxisNames{"data", "model"}));
      }
  });
}
}  // namespace

TEST_CASE("descent, with momentum and Nesterov's") {
  check_rule("sgd", Sgd{.rate = 0.1, .decay = 0.01},
             [](Loops& l, const Values& g, int) { l.sgd(g, 0.1, 0, 0.01, false); });
  check_rule("momentum", Sgd{.rate = 0.05, .momentum = 0.9},
             [](Loops& l, const Values& g, int) { l.sgd(g, 0.05, 0.9, 0, false); });
  check_rule("nesterov", Sgd{.rate = 0.05, .momentum = 0.9, .decay = 0.01, .nesterov = true},
             [](Loops& l, const Values& g, int) { l.sgd(g, 0.05, 0.9, 0.01, true); });
  check_rule(
      "groups", Sgd{.rate = 0.1, .decay = 0.3},
      [](Loops& l, const Values& g, int) { l.sgd(g, 0.1, 0, 0.3, false); }, true);
}
TEST_CASE("Adam and AdamW") {
  const WarmupCosine rate{.peak = 0.1, .warmup = 5, .steps = 15, .floor = 0.01};
  check_rule("adam", Adam{.rate = rate, .decay = 0.1}, [&](Loops& l, const Values& g, int t) {
    l.adam(g, rate(t), 0.9, 0.999, 1e-8, 0.1, false);
  });
  check_rule("adamw", AdamW{.rate = 0.01, .beta2 = 0.95, .decay = 0.1},
             [](Loops& l, const Values& g, int) { l.adam(g, 0.01, 0.9, 0.95, 1e-8, 0.1, true); });
  check_rule(
      "groups", AdamW{.rate = 0.05, .decay = 0.3},
      [](Loops& l, const Values& g, int) { l.adam(g, 0.05, 0.9, 0.999, 1e-8, 0.3, true); }, true);
}
TEST_CASE("LARS") {
  check_rule("lars", Lars{.rate = 2.0, .decay = 1e-2, .trust = 0.02},
             [](Loops& l, const Values& g, int) { l.lars(g, 2.0, 0.9, 1e-2, 0.02); });
  check_rule(
      "groups", Lars{.rate = 0.05, .decay = 0.3, .trust = 0.5},
      [](Loops& l, const Values& g, int) { l.lars(g, 0.05, 0.9, 0.3, 0.5); }, true);
}
TEST_CASE("Adafactor") {
  const InverseSquareRoot rate{.rate = 1.0, .constant = 10};
  check_rule("adafactor", Adafactor{.rate = rate},
             [&](Loops& l, const Values& g, int t) { l.adafactor(g, rate(t)); });
}

TEST_CASE("schedules") {
  const WarmupCosine cosine{.peak = 2, .warmup = 4, .steps = 12, .floor = 1};
  CHECK(cosine(1) == doctest::Approx(0.5));
  CHECK(cosine(4) == doctest::Approx(2));
  CHECK(cosine(8) == doctest::Approx(1.5));
  CHECK(cosine(12) == doctest::Approx(1));
  CHECK(cosine(100) == doctest::Approx(1));
  const InverseSquareRoot root{};
  CHECK(root(1) == doctest::Approx(0.01));
  CHECK(root(10000) == doctest::Approx(0.01));
  CHECK(root(40000) == doctest::Approx(0.005));
  const Schedule number = 0.25;
  CHECK(number(7) == 0.25);
}

TEST_CASE("narrow weights, with a master and without") {
  Loops loops(random_values(1));
  for (int t = 1; t <= steps; ++t)
    loops.adam(gradients_of_step(t), 0.02, 0.9, 0.999, 1e-8, 0, false);
  std::mutex mutex;
  run_loopback(6, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh(world, {3, 2}, {"data", "model"});
    const auto worst_of = [&]<class T>(T, const UpdatePolicy& policy, bool master) {
      Tree weights = tree_of<T>(mesh, random_values(1), split_weights());
      Optimizer<Adam, UpdatePolicy> optimizer(Adam{.rate = 0.02}, weights, {.master = master},
                                              policy);
      for (int t = 1; t <= steps; ++t)
        optimizer.step(weights, gradients_for<T>(optimizer, mesh, t));
      double worst = 0;
      for (std::size_t i = 0; i < weights.size(); ++i)
        worst = std::max(worst, worst_difference(host_values<T>(weights[i]), loops.w[i]));
      return worst;
    };
    for (const NamedPolicy& p : policies()) {
      // Gradients are rounded to 11 and 8 bits, and sums of twenty steps of at most 0.02 are made.
      const double f32 = worst_of(float{}, p.policy, true), f16 = worst_of(half{}, p.policy, true),
                   bf16 = worst_of(bfloat16{}, p.policy, true),
                   alone = worst_of(bfloat16{}, p.policy, false);
      const std::lock_guard lock(mutex);
      CHECK_MESSAGE(f32 < 2e-6, std::string(p.name));
      CHECK_MESSAGE(f16 < 2e-3, std::string(p.name));
      CHECK_MESSAGE(bf16 < 1e-2, std::string(p.name));
      CHECK_MESSAGE(alone < 5e-2, std::string(p.name));
    }
  });
}

TEST_CASE("clipping by the norm of all gradients, and the loss's scale") {
  std::mutex mutex;
  on_meshes([&](const DynamicMesh& mesh) {
    for (const NamedPolicy& p : policies()) {
      Tree weights = tree_of<double>(mesh, random_values(1), split_weights());
      Optimizer<Sgd, UpdatePolicy> optimizer(Sgd{.rate = 1.0}, weights,
                                             {.clip = 0.5, .scale = {.value = 8}}, p.policy);
      Values g = gradients_of_step(1);
      double norm = 0;
      for (const auto& one : g)
        for (const double x : one) norm += x * x;
      norm = std::sqrt(norm);
      Values scaled = g;
      for (auto& one : scaled)
        for (double& x : one) x *= optimizer.loss_scale();
      optimizer.step(weights, tree_of<double>(mesh, scaled, whole_weights()));
      Loops loops(random_values(1));
      for (auto& one : g)
        for (double& x : one) x *= 0.5 / norm;
      loops.sgd(g, 1, 0, 0, false);
      double worst = std::abs(optimizer.report().norm - norm);
      for (std::size_t i = 0; i < weights.size(); ++i)
        worst = std::max(worst, worst_difference(host_values<double>(weights[i]), loops.w[i]));
      const std::lock_guard lock(mutex);
      CHECK_MESSAGE(worst < 1e-12, std::string(p.name));
    }
  });
}

TEST_CASE("clipping where the squares of doubles overflow, or vanish") {
  run_loopback(6, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh(world, {3, 2}, {"data", "model"});
    for (const double size : {1e200, 1e-200, 1e300, 1e-270, 1e154, 1e15}) {
      Tree weights = tree_of<double>(mesh, random_values(1), split_weights());
      // The clipped gradients are 0.5 size in norm, and the step is 0.5 in norm.
      Optimizer<Sgd, UpdatePolicy> optimizer(Sgd{.rate = 1 / size}, weights, {.clip = 0.5 * size},
                                             policies()[0].policy);
      Values g = gradients_of_step(1);
      double norm = 0;
      for (const auto& one : g)
        for (const double x : one) norm += x * x;
      norm = std::sqrt(norm);
      Values far = g;
      for (auto& one : far)
        for (double& x : one) x *= size;
      optimizer.step(weights, tree_of<double>(mesh, far, whole_weights()));
      Loops loops(random_values(1));
      for (auto& one : g)
        for (double& x : one) x *= 0.5 / norm;
      loops.sgd(g, 1, 0, 0, false);
      double worst = std::abs(optimizer.report().norm / size - norm);
      for (std::size_t i = 0; i < weights.size(); ++i)
        worst = std::max(worst, worst_difference(host_values<double>(weights[i]), loops.w[i]));
      CHECK_MESSAGE(worst < 1e-12, std::to_string(size));
    }
  });
}

TEST_CASE("rules of norms where the squares of doubles overflow, or vanish") {
  run_loopback(2, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh(world, {2, 1}, {"data", "model"});
    const auto stepped = [&](const auto& rule, double weights, double gradients,
                             const OptimizerOptions& options = {}) {
      DynamicTensor w = tensor_of<double>(mesh, {2}, {weights, 2 * weights}, Sharding{{0}});
      Optimizer<std::decay_t<decltype(rule)>, UpdatePolicy> optimizer(rule, w, options);
      optimizer.step(w, tensor_of<double>(mesh, {2}, {gradients, gradients}, Sharding{{}}));
      std::vector<double> values = host_values<double>(w);
      for (double& x : values) x /= weights;
      return values;
    };
    // The trust is 0.1 |w| / |g|, so that w loses 0.1 sqrt(5 / 2) of its size.
    const std::vector<double> wanted{1 - 0.1 * std::sqrt(2.5), 2 - 0.1 * std::sqrt(2.5)};
    const Lars lars{.rate = 1.0, .trust = 0.1};
    for (const double size : {1.0, 1e160, 1e-170, 1e300, 1e-260}) {
      CAPTURE(size);
      CHECK(worst_difference(stepped(lars, 1, size), wanted) < 1e-12);
      CHECK(worst_difference(stepped(lars, size, 1), wanted) < 1e-12);
      CHECK(worst_difference(stepped(lars, size, size), wanted) < 1e-12);
    }
    // The norm of these gradients is no double, and that of the clipped ones is one.
    CHECK(worst_difference(stepped(lars, 1, 1.5e308, {.clip = 1}), wanted) < 1e-12);
    // Adafactor's step is a part of the weight's size.
    const Adafactor adafactor{.rate = 0.1};
    const std::vector<double> part = stepped(adafactor, 1, 1);
    CHECK(part[0] < 0.95);
    CHECK(worst_difference(stepped(adafactor, 1e160, 1), part) < 1e-12);
  });
}

TEST_CASE("a gradient that is not finite: its step is skipped, and nothing is lost") {
  std::mutex mutex;
  run_loopback(6, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh(world, {3, 2}, {"data", "model"});
    const auto run = [&]<class Rule>(const Rule& rule) {
      for (const NamedPolicy& p : policies()) {
        Tree weights = tree_of<double>(mesh, random_values(1), whole_weights());
        Tree others = weights;
        Optimizer<Rule, UpdatePolicy> optimizer(rule, weights, {.scale = LossScale::automatic(16)},
                                                p.policy);
        Optimizer<Rule, UpdatePolicy> other(rule, others, {}, p.policy);
        std::vector<double> bad{std::nan(""), INFINITY, -INFINITY};
        for (int t = 1; t <= 6; ++t) {
          Values g = gradients_of_step(t);
          other.step(others, tree_of<double>(mesh, g, whole_weights()));
          if (t % 2 == 0) {  // a step that is not taken in between
            Values broken = g;
            broken[1][10] = bad[static_cast<std::size_t>(t) / 2 - 1];
            broken[3][0] = NAN;
            optimizer.step(weights, tree_of<double>(mesh, broken, whole_weights()));
          }
          const double scale = optimizer.loss_scale();  // a power of two
          for (auto& one : g)
            for (double& x : one) x *= scale;
          optimizer.step(weights, tree_of<double>(mesh, g, whole_weights()));
        }
        const StepReport report = optimizer.report();
        bool good = report.calls == 9 && report.updates == 6 && report.skipped.size() == 3;
        for (std::size_t k = 0; good && k < 3; ++k)
          good = report.skipped[k].step == static_cast<Index>(3 * k + 2) &&
                 report.skipped[k].paths == std::vector<std::string>{"1", "3"};
        good = good && report.scale == 2 && optimizer.report().skipped.empty();
        for (std::size_t i = 0; i < weights.size(); ++i)
          good = good && host_values<double>(weights[i]) == host_values<double>(others[i]);
        const std::lock_guard lock(mutex);
        CHECK_MESSAGE(good, std::string(p.name));
      }
    };
    run(Sgd{.rate = 0.1});
    run(Sgd{.rate = 0.1, .momentum = 0.9});
    run(Adam{.rate = 0.1});
    run(Lars{});
    run(Adafactor{});
  });
}

TEST_CASE("resuming forgets the steps since then, looked at or not") {
  on_one_process([](const DynamicMesh& mesh) {
    for (const bool reported : {false, true}) {
      DynamicTensor w = line(mesh, {1, 2, 3});
      Optimizer<Adam, UpdatePolicy> optimizer(Adam{.rate = 0.1}, w,
                                              {.scale = LossScale::automatic(16)});
      const auto facts = optimizer.facts();
      optimizer.step(w, line(mesh, {NAN, 1, 1}));
      if (reported) (void)optimizer.updates();
      optimizer.resume(facts);
      CHECK(optimizer.report().skipped.empty());
      optimizer.step(w, line(mesh, {16, 16, 16}));
      CHECK(worst_difference(host_values<double>(w), {0.9, 1.9, 2.9}) < 1e-6);
      const StepReport report = optimizer.report();
      CHECK(report.calls == 1);
      CHECK(report.updates == 1);
      CHECK(report.scale == 16);
      CHECK(report.skipped.empty());
      auto broken = facts;
      broken.erase("optimizer.good_steps");
      broken["optimizer.calls"] = "7";
      CHECK_THROWS_AS(optimizer.resume(broken), UsageError);
      CHECK(optimizer.report().calls == 1);  // nothing changed
    }
  });
}

TEST_CASE("finite gradients whose norm is no double are clipped, and their step is taken") {
  on_one_process([](const DynamicMesh& mesh) {
    DynamicTensor w = line(mesh, {1, 2});
    Optimizer<Sgd, UpdatePolicy> optimizer(Sgd{.rate = 0.1}, w,
                                           {.clip = 1, .scale = LossScale::automatic(16)});
    optimizer.step(w, line(mesh, {1.5e308, 1.5e308}));
    const double part = 0.1 / std::sqrt(2.0);
    CHECK(worst_difference(host_values<double>(w), {1 - part, 2 - part}) < 1e-12);
    const StepReport report = optimizer.report();
    CHECK(report.updates == 1);
    CHECK(report.skipped.empty());
    CHECK(report.scale == 16);
    CHECK(report.norm / 1e307 == doctest::Approx(15 * std::sqrt(2.0) / 16));
  });
}

TEST_CASE("the scale of the loss is the same until the next step, whatever is reported between") {
  on_one_process([](const DynamicMesh& mesh) {
    for (const int asked : {0, 1, 2, 3}) {
      CAPTURE(asked);
      DynamicTensor w = line(mesh, {1});
      OptimizerOptions options{.scale = LossScale::automatic(16)};
      options.scale.interval = 1;
      Optimizer<Sgd, UpdatePolicy> optimizer(Sgd{.rate = 0.1}, w, options);
      const std::vector<double> wanted{16, 16, 32, 64, 32};
      for (std::size_t t = 0; t < wanted.size(); ++t) {
        const double scale = optimizer.loss_scale();
        CHECK(scale == wanted[t]);
        if (asked == 1) (void)optimizer.report();
        if (asked == 2) (void)optimizer.updates();
        if (asked == 3) {  // a run that goes on from the facts has the scales of this one
          const auto facts = optimizer.facts();
          optimizer = Optimizer<Sgd, UpdatePolicy>(Sgd{.rate = 0.1}, w, options);
          optimizer.resume(facts);
        }
        CHECK(optimizer.loss_scale() == scale);
        optimizer.step(w, line(mesh, {t == 2 ? INFINITY : scale}));
      }
      CHECK(worst_difference(host_values<double>(w), {0.6}) < 1e-12);
      CHECK(optimizer.report().scale == 128);
      CHECK(optimizer.updates() == 4);
      // Facts that were written with one scale.
      auto facts = optimizer.facts();
      CHECK(facts.erase("optimizer.next_loss_scale") == 1);
      facts["optimizer.loss_scale"] = "8";
      optimizer.resume(facts);
      CHECK(optimizer.loss_scale() == 8);
      CHECK(optimizer.report().scale == 8);
    }
  });
}

TEST_CASE("clipping that does not look for gradients that are not finite lets them through") {
  on_one_process([](const DynamicMesh& mesh) {
    OptimizerOptions options{.clip = 1, .finite = false, .scale = LossScale::automatic(2)};
    options.scale.interval = 1;
    DynamicTensor w = line(mesh, {1, 2});
    Optimizer<Sgd, UpdatePolicy> optimizer(Sgd{.rate = 0.1}, w, options);
    optimizer.step(w, line(mesh, {6, 8}));
    CHECK(optimizer.report().norm == doctest::Approx(5));
    optimizer.step(w, line(mesh, {NAN, 8}));
    const std::vector<double> after = host_values<double>(w);
    CHECK(std::isnan(after[0]));
    CHECK(after[1] == doctest::Approx(2 - 0.1 * 0.8 - 0.1 * 4));  // nothing bounds that step
    const StepReport report = optimizer.report();
    CHECK(report.calls == 2);
    CHECK(report.updates == 2);
    CHECK(report.skipped.empty());
    CHECK(report.scale == 2);
  });
}

TEST_CASE("a compiled function takes one step where steps may be skipped, or several where not") {
  on_one_process([](const DynamicMesh& mesh) {
    for (const double first : {1.0, std::nan("")}) {
      const DynamicTensor a = line(mesh, {first, 1}), b = line(mesh, {1, 3});
      DynamicTensor w = line(mesh, {1, 2}), alone = w;
      const OptimizerOptions options{.finite = false};
      Optimizer<Adam, UpdatePolicy> optimizer(Adam{.rate = 0.1}, w, options),
          other(Adam{.rate = 0.1}, alone, options);
      auto both = compile([&](const DynamicTensor& x, const DynamicTensor& y) {
        optimizer.step(w, x);
        optimizer.step(w, y);
      });
      for (int t = 0; t < 2; ++t) {
        both(a, b);
        other.step(alone, a);
        other.step(alone, b);
      }
      for (int i = 0; i < 2; ++i) {
        const double x = host_values<double>(w)[static_cast<std::size_t>(i)],
                     y = host_values<double>(alone)[static_cast<std::size_t>(i)];
        CHECK((x == y || (std::isnan(x) && std::isnan(y))));
      }
      CHECK(optimizer.updates() == 4);

      DynamicTensor v = line(mesh, {1, 2});
      Optimizer<Adam, UpdatePolicy> careful(Adam{.rate = 0.1}, v);
      const auto twice = [&] {
        careful.step(v, a);
        careful.step(v, b);
      };
      CHECK_THROWS_WITH_AS(compile(twice)(), doctest::Contains("takes a second step in a compiled"),
                           UsageError);
    }
  });
}

TEST_CASE("a step in a compiled function that fails is none, and the next one goes on") {
  on_one_process([](const DynamicMesh& mesh) {
    const DynamicTensor w = line(mesh, {1, 2}), g = line(mesh, {1, 3});
    Optimizer<Sgd, UpdatePolicy> optimizer(Sgd{.rate = 0.5}, w);
    bool fails = true;
    auto step = compile([&](const DynamicTensor& old) {
      DynamicTensor x = old;
      optimizer.step(x, g);
      if (fails) throw std::runtime_error("of the user");
      return x;
    });
    CHECK_THROWS_AS((void)step(w), std::runtime_error);
    CHECK_THROWS_AS((void)step(w), std::runtime_error);
    fails = false;
    CHECK(host_values<double>(step(w)) == std::vector<double>{0.5, 0.5});
    CHECK(optimizer.updates() == 1);
    CHECK(optimizer.report().calls == 1);
  });
}

TEST_CASE("state goes to another mesh and policy: lines of elements too, and the loss's scale") {
  // What is written on one mesh is read on the next, and the run goes on as if nothing had been.
  std::vector<std::pair<std::string, HostTensor<double>>> state;
  std::map<std::string, std::string> facts;
  Values weights = random_values(1), wanted;
  std::mutex mutex;
  const std::vector<std::pair<MeshShape, UpdatePolicy>> runs = {
      {{1, 1}, {}},
      {{3, 2}, {UpdatePolicy::Kind::sharded, {0}, true}},
      {{2, 2}, {UpdatePolicy::Kind::sharded, {0, 1}, false}},
      {{4, 1}, {UpdatePolicy::Kind::sharded, {0}, true}},
      {{2, 1}, {UpdatePolicy::Kind::sharded, {0}, false}}};
  const auto gradients = [](int t, double scale) {
    Values g = gradients_of_step(t);
    for (auto& one : g)
      for (double& x : one) x *= scale;
    return g;
  };
  const auto options = [] {
    OptimizerOptions made{.scale = LossScale::automatic(16)};
    made.scale.interval = 2;
    return made;
  };
  run_loopback(1, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh(world, {1, 1}, {"data", "model"});
    Tree tree = tree_of<double>(mesh, weights, whole_weights());
    Optimizer<Adam, UpdatePolicy> optimizer(Adam{.rate = 0.1}, tree, options(), UpdatePolicy{});
    for (int t = 1; t <= 5; ++t)
      optimizer.step(tree,
                     tree_of<double>(mesh, gradients(t, optimizer.loss_scale()), whole_weights()));
    for (const DynamicTensor& w : tree) wanted.push_back(host_values<double>(w));
    CHECK(optimizer.report().scale == 64);  // twice two good steps
  });
  for (std::size_t r = 0; r < runs.size(); ++r)
    run_loopback(runs[r].first.processes(), [&, r](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh(world, runs[r].first, {"data", "model"});
      Tree tree = tree_of<double>(mesh, weights, whole_weights());
      Optimizer<Adam, UpdatePolicy> optimizer(Adam{.rate = 0.1}, tree, options(), runs[r].second);
      if (r > 0) {
        std::size_t next = 0;
        optimizer.for_each_state([&](const std::string& path, DynamicTensor& one) {
          CHECK(path == state[next].first);
          REQUIRE(one.extents() == state[next].second.extents);
          one = from_host<double>(mesh, one.extents(), one.sharding(),
                                  std::span<const double>(state[next].second.values));
          ++next;
        });
        optimizer.resume(facts);
      }
      world->barrier();  // all have read
      optimizer.step(
          tree, tree_of<double>(mesh, gradients(static_cast<int>(r) + 1, optimizer.loss_scale()),
                                whole_weights()));
      std::vector<std::pair<std::string, HostTensor<double>>> kept;
      optimizer.for_each_state([&](const std::string& path, const DynamicTensor& one) {
        kept.push_back({path, to_host<double>(one)});
      });
      Values made;
      for (const DynamicTensor& w : tree) made.push_back(host_values<double>(w));
      const auto said = optimizer.facts();
      if (mesh.process() != 0) return;
      const std::lock_guard lock(mutex);
      state = kept;
      facts = said;
      weights = made;
    });
  for (std::size_t i = 0; i < weights.size(); ++i)
    CHECK(worst_difference(weights[i], wanted[i]) < 1e-12);
  CHECK(facts == std::map<std::string, std::string>{{"optimizer.calls", "5"},
                                                    {"optimizer.updates", "5"},
                                                    {"optimizer.loss_scale", "64"},
                                                    {"optimizer.next_loss_scale", "64"},
                                                    {"optimizer.good_steps", "1"}});
  run_loopback(1, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh(world, {1, 1}, {"data", "model"});
    Tree tree = tree_of<double>(mesh, weights, whole_weights());
    Optimizer<Adam, UpdatePolicy> optimizer(Adam{}, tree, options(), UpdatePolicy{});
    facts["optimizer.updates"] = "5x";
    CHECK_THROWS_WITH_AS(optimizer.resume(facts),
                         doctest::Contains("whose optimizer.updates is \"5x\""), UsageError);
    facts.erase("optimizer.updates");
    CHECK_THROWS_WITH_AS(optimizer.resume(facts), doctest::Contains("without optimizer.updates"),
                         UsageError);
  });
}

TEST_CASE("the sum of small batches' gradients is that of one large batch") {
  std::mutex mutex;
  on_meshes([&](const DynamicMesh& mesh) {
    const std::vector<double> values = random_values(3)[0];
    std::vector<double> inputs;
    std::mt19937_64 random(9);
    for (int i = 0; i < 84; ++i) inputs.push_back(std::normal_distribution<double>()(random));
    const auto batch = [&](Index from, Index count) {
      return tensor_of<double>(mesh, {count, 7},
                               {inputs.begin() + from * 7, inputs.begin() + (from + count) * 7},
                               Sharding{{0}, {}});
    };
    const auto loss = [](const DynamicTensor& w, const DynamicTensor& x) {
      const DynamicTensor y = tanh(einsum("ik,kj->ij", x, w));
      return reduce<Mean>("ij->", y * y);
    };
    const auto make = [&] { return tensor_of<double>(mesh, {7, 5}, values, Sharding{{}, {1}}); };
    DynamicTensor small = make(), large = make();
    const UpdatePolicy policy{UpdatePolicy::Kind::sharded, {0}};
    Optimizer<Adam, UpdatePolicy> one(Adam{.rate = 0.01}, small, {}, policy),
        other(Adam{.rate = 0.01}, large, {}, policy);
    for (int t = 0; t < 3; ++t) {
      GradientSum sum;
      for (Index k = 0; k < 4; ++k)
        sum.add(one.value_and_grad(loss)(small, batch(3 * k, 3)).gradient);
      one.step(small, sum.mean());
      other.step(large, other.value_and_grad(loss)(large, batch(0, 12)).gradient);
    }
    const double worst = worst_difference(host_values<double>(small), host_values<double>(large));
    const std::lock_guard lock(mutex);
    CHECK(worst < 1e-12);
    CHECK_THROWS_WITH_AS(GradientSum{}.mean(), doctest::Contains("no gradients"), UsageError);
  });
}

TEST_CASE("unfinished gradients of small batches are added as they are, or finished first") {
  run_loopback(2, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh(world, {2, 1}, {"data", "model"});
    const auto x = random_normal<float>(mesh, {6, 8}, Sharding{{0}, {}}, 1);
    const auto loss = [&](const DynamicTensor& w) {
      const DynamicTensor y = einsum("ik,kj->ij", x, w);
      return reduce<Mean>("ij->", y * y);
    };
    const auto make = [&] { return random_normal<float>(mesh, {8, 4}, Sharding{{}, {}}, 2); };
    DynamicTensor added = make(), mixed = make(), alone = make();
    const UpdatePolicy flat{UpdatePolicy::Kind::sharded, {0}, true};
    Optimizer<Sgd, UpdatePolicy> one(Sgd{.rate = 0.5}, added, {}, flat),
        other(Sgd{.rate = 0.5}, mixed, {}, flat), plain(Sgd{.rate = 0.5}, alone, {}, flat);
    const auto open = one.value_and_grad(loss)(added).gradient;
    REQUIRE(!open[0].sharding().partial.empty());
    const auto closed = std::vector{reshard(open[0], Sharding{{}, {}})};
    GradientSum sum, both;
    sum.add(open);
    sum.add(open);
    both.add(closed);
    both.add(open);
    auto means = sum.mean();
    CHECK(means[0].sharding() == open[0].sharding());
    one.step(added, means);
    other.step(mixed, both.mean());
    plain.step(alone, closed);
    CHECK(worst_difference(host_values<float>(added), host_values<float>(alone)) < 1e-6);
    CHECK(worst_difference(host_values<float>(mixed), host_values<float>(alone)) < 1e-6);
  });
}

TEST_CASE("compiled steps are those outside, to the bit") {
  std::mutex mutex;
  run_loopback(6, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh(world, {3, 2}, {"data", "model"});
    const auto run = [&]<class Rule>(const Rule& rule) {
      for (const NamedPolicy& p : policies()) {
        Tree weights = tree_of<float>(mesh, random_values(1), split_weights());
        Tree others = tree_of<float>(mesh, random_values(1), split_weights());
        const OptimizerOptions options{.clip = 3, .decays = matrices_only};
        Optimizer<Rule, UpdatePolicy> optimizer(rule, weights, options, p.policy),
            other(rule, others, options, p.policy);
        auto step = compile([&](const Tree& g) { optimizer.step(weights, g); });
        int structures = 0;
        for (int t = 1; t <= 5; ++t) {
          Values values = gradients_of_step(t);
          if (t == 3) values[0][3] = NAN;
          const Tree g = tree_of<float>(mesh, values, whole_weights());
          step(g);
          other.step(others, g);
          structures = step.structures();
        }
        bool good = structures == 1 && optimizer.report().skipped.size() == 1 &&
                    optimizer.report().updates == 4 && other.report().skipped.size() == 1;
        for (std::size_t i = 0; i < weights.size(); ++i)
          good = good && host_values<float>(weights[i]) == host_values<float>(others[i]);
        const std::lock_guard lock(mutex);
        CHECK_MESSAGE(good, std::string(p.name) << ", structures " << structures);
      }
    };
    run(Adam{.rate = 0.1});
    run(Lars{});
    run(Adafactor{});
  });
}

namespace {
struct stage : Axis<> {};
using Staged = Mesh<stage, data>;
}  // namespace
TEST_CASE("matrices of layers, and of those of all stages: what is not born as one number") {
  run_loopback(1, [](std::shared_ptr<Transport> world) {
    const auto check = [](const auto& model) {
      int constants = 0, matrices = 0;
      for_each_named_tensor(
          [&](const std::string& path, const auto& w) {
            const auto values = to_host(w).values;
            const bool constant =
                std::ranges::count(values, values[0]) == static_cast<std::ptrdiff_t>(values.size());
            (constant ? constants : matrices) += 1;
            CHECK_MESSAGE(matrices_only(path, w.desc()) != constant, path);
          },
          model);
      CHECK(constants > 1);
      CHECK(matrices > 0);
    };
    using U = Under<float, Grid, LayerRules<>>;
    Parameters<Grid> make(make_mesh<Grid>(world, 1, 1), 1);
    const EncoderSizes sizes{
        .vocabulary = 11, .places = 5, .kinds = 2, .embed = 4, .heads = 2, .hidden = 6};
    check(Encoder<U>::like(make, sizes));
    check(Translator<U>::like(make, {.source = 5,
                                     .target = 5,
                                     .buckets = 4,
                                     .embed = 4,
                                     .heads = 2,
                                     .hidden = 4,
                                     .encoder_layers = 2,
                                     .decoder_layers = 2,
                                     .experts = 2,
                                     .choice_bias = true,
                                     .tied_scores = false}));
    check(ConvolutionBlock<U>::like(make, {3, 3}, 2, 4));
    Parameters<Staged> staged(make_mesh<Staged>(world, 1, 1), 1);
    check(of_all_stages(staged, {3}, [&](auto& each) {
      return EncoderBlock<OfStages<Under<float, Staged, LayerRules<>>, stage>>::like(each, sizes);
    }));
  });
}

TEST_CASE("what an optimizer refuses") {
  run_loopback(1, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh(world, {1, 1}, {"data", "model"});
    Tree weights = tree_of<double>(mesh, random_values(1), whole_weights());
    Optimizer<Sgd, UpdatePolicy> optimizer(Sgd{}, weights);
    Tree fewer = weights;
    fewer.pop_back();
    CHECK_THROWS_WITH_AS(optimizer.step(fewer, weights), doctest::Contains("of 6 weights"),
                         UsageError);
    Tree swapped = weights;
    std::swap(swapped[0], swapped[1]);
    CHECK_THROWS_WITH_AS(optimizer.step(swapped, weights), doctest::Contains("the weight 0 is"),
                         ShapeError);
    CHECK_THROWS_WITH_AS(optimizer.step(weights, swapped),
                         doctest::Contains("gradient of the weight 0"), ShapeError);
    CHECK_THROWS_WITH_AS((Optimizer<Sgd, UpdatePolicy>(Sgd{}, Tree{})),
                         doctest::Contains("without tensors"), UsageError);
    const Tree integers{zeros<std::int32_t>(mesh, {3}, Sharding::replicated(1))};
    CHECK_THROWS_WITH_AS((Optimizer<Sgd, UpdatePolicy>(Sgd{}, integers)),
                         doctest::Contains("the weight 0 is"), UsageError);
    CHECK_THROWS_WITH_AS((Optimizer<Sgd, UpdatePolicy>(Sgd{}, followed(mesh, {}, 1))),
                         doctest::Contains("whose tensors are all untrained"), UsageError);
  });
}
