// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mixtures of experts against plain loops of GShard's algorithms, forward, and backward against
// central differences of these loops, on several meshes and under several specs.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <mutex>

#include <tessera/op/compile.hpp>

#include "nn/mixture_cases.hpp"

using namespace tessera;

namespace {
using namespace mixture_test;
template <class... D> using Real = ShardedTensor<double, Grid, P<D...>>;

/// Runs all cases under one choice of specs on meshes of 1 to 6 processes; every mesh's answer is
/// that of the first.
template <Dispatch How, class X, class Gate, class In, class Out> void on_meshes() {
  for (const Case& c : cases()) {
    const Inputs differences = plain_gradients(c.shape, c.inputs(), c.draw);
    Inputs of_one;
    for (const auto& size : {std::pair{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 2}}) {
      std::mutex mutex;
      std::string wrong;
      run_loopback(size.first * size.second, [&](std::shared_ptr<Transport> world) {
        const auto mesh = make_mesh<Grid>(world, size.first, size.second);
        Answer answer = run_mixture<How, X, Gate, In, Out>(mesh, c, differences);
        const std::lock_guard lock(mutex);
        if (of_one.empty()) of_one = answer.values;
        wrong += answer.wrong;
        for (std::size_t k = 0; k < of_one.size(); ++k)
          wrong += differing("value on another mesh", answer.values[k], of_one[k], 1e-12);
      });
      CHECK_MESSAGE(wrong.empty(),
                    c.name << " on " << size.first << "x" << size.second << ": " << wrong);
    }
  }
}
}  // namespace

TEST_CASE("the cases overflow, tie, refuse, drop tokens and leave an expert empty") {
  Index full = 0, ties = 0, refused = 0, dropped = 0, empty = 0;
  for (const Case& c : cases()) {
    const Routing r = plain_mixture(c.shape, c.inputs(), c.draw).routing;
    full += r.full, ties += r.ties, refused += r.refused, dropped += r.dropped;
    std::map<Index, Index> sent;
    for (std::size_t t = 0; t < r.first.size(); ++t) ++sent[r.first[t]], ++sent[r.second[t]];
    empty += !r.first.empty() && static_cast<Index>(sent.size()) < c.shape.e;
    // Differences of 1e-6 leave every choice as it is.
    if (c.kind == Case::smooth || c.kind == Case::one_far) CHECK(r.margin > 1e-4);
  }
  CHECK(full > 10);
  CHECK(ties > 10);
  CHECK(refused > 5);
  CHECK(dropped > 5);
  CHECK(empty > 0);
}

TEST_CASE("the capacity is max(1, ceil(2 S f / E))") {
  CHECK(expert_capacity(256, 8) == 64);
  CHECK(expert_capacity(7, 3, 0.5) == 3);
  CHECK(expert_capacity(4, 64) == 1);
  CHECK(expert_capacity(0, 4) == 1);
  CHECK_THROWS_WITH_AS(expert_capacity(4, 4, 0.0), doctest::Contains("factor"), UsageError);
  CHECK_THROWS_WITH_AS(expert_capacity(4, 0), doctest::Contains("at least one expert"), UsageError);
}

TEST_CASE("rows that are taken: groups and experts over one axis") {
  on_meshes<Dispatch::take, Real<data, _, _>, Real<_, _>, Real<data, _, _>, Real<data, _, _>>();
}
TEST_CASE("products with zeros and ones: groups and experts over one axis") {
  on_meshes<Dispatch::one_hot, Real<data, _, _>, Real<_, _>, Real<data, _, _>, Real<data, _, _>>();
}
TEST_CASE("groups over all axes, experts over the minor one, hidden features whole") {
  on_meshes<Dispatch::take, Real<Axes<data, model>, _, _>, Real<_, _>, Real<model, _, _>,
            Real<model, _, _>>();
}
TEST_CASE("experts over all axes, groups over one, the gate's experts split") {
  on_meshes<Dispatch::take, Real<data, _, _>, Real<_, model>, Real<Axes<data, model>, _, _>,
            Real<Axes<data, model>, _, _>>();
}
TEST_CASE("experts over one axis, their hidden features over the other") {
  on_meshes<Dispatch::one_hot, Real<data, _, model>, Real<_, _>, Real<data, _, model>,
            Real<data, model, _>>();
}
TEST_CASE("tokens and features split, groups whole") {
  on_meshes<Dispatch::take, Real<_, data, model>, Real<model, _>, Real<model, _, _>,
            Real<model, _, data>>();
}

TEST_CASE("random numbers of second choices depend on seed, step and token alone") {
  double sum = 0;
  Index alike = 0, outside = 0;
  for (Index token = 0; token < 4000; ++token) {
    const double number = detail::routing_number({5, 2}, token);
    sum += number;
    outside += !(0 <= number && number < 1);
    alike += number == detail::routing_number({5, 3}, token);
    alike += number == detail::routing_number({6, 2}, token);
    alike += number == detail::routing_number({5, 2}, token + 1);
  }
  CHECK(std::fabs(sum / 4000 - 0.5) < 0.02);
  CHECK(alike == 0);
  CHECK(outside == 0);
}

TEST_CASE("a compiled layer takes each step's random numbers") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    const auto x = random_normal<Real<data, _, _>>(mesh, {4, 8, 3}, 1);
    const ExpertWeights weights{random_normal<Real<_, _>>(mesh, {3, 4}, 2),
                                random_normal<Real<data, _, _>>(mesh, {4, 3, 5}, 3),
                                random_normal<Real<data, _, _>>(mesh, {4, 5, 3}, 4)};
    const auto layer = [](const auto& t, const auto& w, std::int64_t step) {
      return mixture_of_experts(t, w, {.draw = {7, step}});
    };
    auto compiled = compile(layer);
    Index refused_otherwise = 0;
    std::vector<std::int64_t> before;
    for (std::int64_t step = 0; step < 4; ++step) {
      const auto made = compiled(x, weights, step), wanted = layer(x, weights, step);
      CHECK(to_host(made.output).values == to_host(wanted.output).values);
      const auto places = to_host(made.gating.second_position).values;
      refused_otherwise += step > 0 && places != before;
      before = places;
    }
    CHECK(compiled.structures() == 1);
    CHECK(refused_otherwise > 0);
  });
}

TEST_CASE("half types: gates and weights are floats") {
  using Tokens = ShardedTensor<bfloat16, Grid, P<data, _, _>>;
  using Gate = ShardedTensor<bfloat16, Grid, P<_, _>>;
  const auto c = std::find_if(cases().begin(), cases().end(),
                              [](const Case& one) { return one.kind == Case::ties; });
  run_loopback(2, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    const auto rows = run_mixture<Dispatch::take, Tokens, Gate, Tokens, Tokens>(mesh, *c, {});
    const auto products =
        run_mixture<Dispatch::one_hot, Tokens, Gate, Tokens, Tokens>(mesh, *c, {});
    CHECK(rows.wrong == "");
    CHECK(products.wrong == "");
    for (std::size_t k = 0; k < rows.values.size(); ++k)
      CHECK(differing("value of the other form", rows.values[k], products.values[k], 0.05) == "");
  });
}

TEST_CASE("what is wrong is said") {
  run_loopback(1, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 1, 1);
    const auto x = ones<Real<data, _, _>>(mesh, 2, 3, 4);
    const auto gate = ones<Real<_, _>>(mesh, 4, 3);
    const auto w_in = ones<Real<data, _, _>>(mesh, 2, 4, 5);
    const auto w_out = ones<Real<data, _, _>>(mesh, 2, 5, 4);
    CHECK_THROWS_WITH_AS(mixture_of_experts(x, gate, w_in, w_out),
                         doctest::Contains("the gate has 3 experts, the weights have 2 and 2"),
                         ShapeError);
    CHECK_THROWS_WITH_AS(
        mixture_of_experts(x, ones<Real<_, _>>(mesh, 4, 2), w_in, w_out, {.capacity_factor = -1}),
        doctest::Contains("factor"), UsageError);
    CHECK_THROWS_WITH_AS(mixture_of_experts(x, Real<_, _>(), w_in, w_out),
                         doctest::Contains("mixture_of_experts"), UsageError);
    CHECK_THROWS_WITH_AS(top2_gating(x, 0), doctest::Contains("4 experts of capacity 0"),
                         UsageError);
  });
}
