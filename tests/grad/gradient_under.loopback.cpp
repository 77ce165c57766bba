// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gradients under shardings of one's choice, finished or left open, of every operator that has one:
// those that value_and_grad makes; and the calls that end them.
#include <doctest/doctest.h>

#include <functional>
#include <mutex>
#include <random>

#include <tessera/grad.hpp>
#include <tessera/tessera.hpp>

#include "grad/gradient_cases.hpp"
#include "grad/typed.hpp"

using namespace tessera;

namespace {
using namespace gradient_test;

/// Some axes that a sharding does not use, over which a sum may be left open.
Sharding some_open(Sharding s, std::mt19937& random) {
  AxisSet open;
  for (int axis = 0; axis < 2; ++axis)
    if (!s.used().contains(axis) && random() % 2 == 0) open.insert(axis);
  return s.with_partial(open, Reduction::sum);
}
}  // namespace

TEST_CASE("gradients under any sharding have the elements of value_and_grad's") {
  std::mt19937 random(41);
  int left_open = 0;
  for (const GradientCase& c : gradient_cases()) {
    CAPTURE(std::string(c.name));
    std::vector<std::vector<double>> at;
    for (std::size_t k = 0; k < c.inputs.size(); ++k) at.push_back(values_of(c, k, random));
    const auto seed = random();
    std::mutex mutex;
    for (const auto& [rows, columns] : {std::pair{2, 2}, {3, 2}})
      run_loopback(
          rows * columns, [&, rows = rows, columns = columns](std::shared_ptr<Transport> world) {
            const auto mesh = make_mesh(world, {rows, columns}, {"data", "model"});
            std::mt19937 shardings(seed);
            Dynamic x;
            std::vector<Sharding> under;
            for (std::size_t k = 0; k < at.size(); ++k) {
              const int rank = c.inputs[k].size();
              x.push_back(whole(mesh, c.inputs[k], at[k], random_sharding(rank, shardings)));
              under.push_back(some_open(random_sharding(rank, shardings), shardings));
            }
            const auto f = [&](const Dynamic& in) { return c.f(mesh, in); };
            const auto wanted = value_and_grad(f)(x);
            const auto got = value_and_grad_under(f, under)(x);
            for (std::size_t k = 0; k < at.size(); ++k) {
              const Sharding made = got.gradient[k].sharding();
              const auto a = to_host<double>(wanted.gradient[k]),
                         b = to_host<double>(reshard(got.gradient[k], made.finished()));
              const std::lock_guard lock(mutex);
              left_open += !made.partial.empty();
              CHECK(made.finished() == under[k].finished());
              CHECK((made.partial - under[k].partial).empty());
              CHECK_MESSAGE(worst_difference(b.values, a.values) < 1e-11,
                            std::string(c.name)
                                << ", input " << k << " under "
                                << to_string(under[k], AxisNames{"data", "model"}) << " of "
                                << to_string(x[k].desc(), AxisNames{"data", "model"}));
            }
          });
  }
  CHECK(left_open > 0);  // of products and convolutions, the draw decides how many
}

TEST_CASE("products and convolutions leave open the sums that their caller leaves open") {
  struct Case {
    Extents input, weight;
    std::function<DynamicTensor(const Dynamic&)> f;
  };
  const std::vector<Case> cases = {
      {{6, 4}, {4, 3}, [](const Dynamic& x) { return einsum("ik,kj->ij", x[0], x[1]); }},
      {{6, 7, 2}, {3, 2, 4}, [](const Dynamic& x) {
         return convolve("bwi,wio->bwo", x[0], x[1], {.low = {1}, .high = {1}});
       }}};
  AxisSet over_data;
  over_data.insert(0);
  for (const Case& c : cases)
    run_loopback(4, [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh(world, {2, 2}, {"data", "model"});
      const Sharding alike = Sharding::replicated(c.weight.size());
      Sharding by_rows = Sharding::replicated(c.input.size());
      by_rows[0] = {0};
      const auto x = random_normal<double>(mesh, c.input, by_rows, 1);
      const auto w = random_normal<double>(mesh, c.weight, alike, 2);
      const auto f = [&](const Dynamic& in) { return weighed(mesh, c.f({x, in[0]})); };
      const auto gradient = [&](const Sharding& under) {
        return value_and_grad_under(f, {under})(Dynamic{w}).gradient[0];
      };
      const auto open = gradient(alike.with_partial(over_data, Reduction::sum));
      CHECK(open.sharding().partial == over_data);
      CHECK(worst_difference(to_host<double>(reshard(open, alike)).values,
                             to_host<double>(gradient(alike)).values) < 1e-12);
    });
}

TEST_CASE("gradients of several tensors never share memory") {
  run_loopback(2, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh(world, {2, 1}, {"data", "model"});
    const Sharding rows{{0}};
    const Dynamic w{random_normal<double>(mesh, {5}, rows, 1),
                    random_normal<double>(mesh, {5}, rows, 2)};
    const auto f = [](const Dynamic& in) { return reduce<Sum>("i->", in[0] + in[1]); };
    auto gradients = value_and_grad_under(f, {rows, rows})(w).gradient;
    CHECK(gradients[0].core().storage() != gradients[1].core().storage());
    const std::vector<double> ones(5, 1.0);
    for (const DynamicTensor& g : gradients) CHECK(to_host<double>(g).values == ones);
  });
}

TEST_CASE("the gradient of what was gathered ends in a reduce-scatter") {
  const auto mesh = dry_mesh<Grid>(8, 1);
  const auto x = zeros<Real<data, _>>(mesh, {4096, 64});
  const auto shards = zeros<Real<data, _>>(mesh, {64, 32});
  const auto calls = [&](const auto& f) {
    Recording recording(mesh);
    (void)value_and_grad(f)(shards);
    const Program made = recording.take();
    return std::pair(made.count(Collective::reduce_scatter), made.count(Collective::all_reduce));
  };
  const auto loss = [&](const auto& w) { return sum<"ij->">(tanh(einsum<"ik,kj->ij">(x, w))); };
  const auto gathered = [&](const auto& w) { return loss(replicate(w)); };
  const auto narrow = [&](const auto& w) { return loss(cast<double>(replicate(cast<float>(w)))); };
  const auto turned = [&](const auto& w) {
    return loss(transpose<"ji->ij">(transpose<"ij->ji">(replicate(w))));
  };
  CHECK(calls(gathered) == std::pair(1, 1));  // and the loss
  CHECK(calls(narrow) == std::pair(1, 1));
  CHECK(calls(turned) == std::pair(1, 1));
  // Used twice, once times a number: one sum for both. Between are functions that pass none on.
  CHECK(calls([&](const auto& w) {
          const auto whole = replicate(w);
          return loss(whole) + loss(whole * 2.0);
        }) == std::pair(1, 2));
  CHECK(calls([&](const auto& w) {
          const auto whole = replicate(w);
          return loss(sin(whole)) + loss(cos(whole));
        }) == std::pair(2, 2));
  CHECK_THROWS_WITH_AS(value_and_grad_under(loss, {})(shards), doctest::Contains("0 shardings"),
                       UsageError);
}
