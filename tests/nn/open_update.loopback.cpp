// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An optimizer whose state is chosen with the weights: the chosen step has the numbers of the plain
// one, its prices, and leaves its state where it was chosen to lie.
#include <doctest/doctest.h>

#include <cmath>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include <tessera/grad.hpp>
#include <tessera/nn.hpp>
#include <tessera/nn/born_as.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/run/choose_of.hpp>
#include <tessera/tessera.hpp>

#include "nn/open_model.hpp"

using namespace tessera;
using namespace open_model;

namespace {
std::mutex mutex;

/// A decoder beside a tensor that no gradient moves.
template <class R> struct Followed {
  Decoder<On<R>> decoder;
  typename On<R>::template Tensor<logical::embed> means;
  static constexpr auto fields = Fields<&Followed::decoder, &Followed::means>{};
  static constexpr auto untrained = Fields<&Followed::means>{};
};
template <class R> struct MadeFollowed {
  Followed<R> operator()(Parameters<Grid>& make) const {
    using Means = decltype(Followed<R>::means);
    return {Made<R>{}(make), make.template tensor<Means>({small.embed}, Initializer::ones())};
  }
};

/// The loss, and weights and optimizer after a step.
struct Training {
  template <class W, class O, class I>
  auto operator()(const W& weights, O optimizer, const I& ids) const {
    auto [loss, gradient] = optimizer.value_and_grad([&](const auto& w) {
      return mean(cross_entropy(next_tokens(w.decoder, ids), ids)) + mean(stop_gradient(w.means));
    })(weights);
    W next = weights;
    optimizer.step(next, gradient);
    return std::tuple(loss, next, optimizer);
  }
};

/// Chooses a step on paper, and runs it on processes beside the plain one.
template <class Rule>
void check(const Rule& rule, const MeshSizes<Grid>& on, const OptimizerOptions& options = {}) {
  using Chosen = Optimizer<Rule, OpenUpdate>;
  Parameters<Grid> paper(dry_mesh<Grid>(on), 3);
  const MadeFollowed<OpenRules> open;
  const auto drawn = open(paper);
  const Choice choice =
      choose(Training{})(drawn, Chosen(rule, drawn, options), like<Ids>(7, 16), on);
  CAPTURE(explain(choice));
  CHECK(choice.found);
  CHECK(choice.gap() == 0);
  CHECK(choice.cost < choice.before);
  int states = 0, split = 0;
  for (const ProgramArgument& argument : choice.given().arguments()) {
    if (!argument.path.starts_with("1.")) continue;
    ++states;
    split += choice.argument(argument.path).used().empty() ? 0 : 1;
    CHECK(choice.free[static_cast<std::size_t>(argument.tensor)]);
  }
  CHECK(states > 10);
  CHECK(split > 3);
  run_loopback(on.shape.processes(), [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, on);
    Parameters<Grid> make(mesh, 3);
    auto weights = born_as(choice, "0", mesh, 3, open);
    auto whole = MadeFollowed<LayerRules<>>{}(make);
    Chosen optimizer(rule, weights, options, {&choice, "1"});
    Optimizer<Rule> plain(rule, whole, options);
    const auto ids = from_function<Ids>(mesh, {7, 16}, SomeIds{});
    auto step = compile(Training{}, choice);
    bool right = true, lies = true;
    for (int i = 0; i < 3; ++i) {
      auto [loss, next, after] = step(weights, optimizer, ids);
      auto [expected, then, later] = Training{}(whole, plain, ids);
      right = right && std::abs(value(loss) - value(expected)) < 1e-9;
      weights = next;
      optimizer = after;
      whole = then;
      plain = later;
    }
    right = right && near(weights, whole);
    for (const double mean : to_host(weights.means).values) right = right && mean == 1;
    optimizer.for_each_open([&](const std::string& path, const TensorCore& state) {
      lies = lies && state.sharding() == choice.argument("1." + path);
    });
    for_each_named_tensor(
        [&](const std::string& path, const auto& w) {
          lies = lies && w.sharding() == choice.argument("0." + path);
        },
        weights);
    const Cost cost = step.choice().cost;
    optimizer.step(weights, weights);  // alone, it updates where the state lies
    plain.step(whole, whole);
    right = right && near(weights, whole);
    const std::lock_guard lock(mutex);
    CHECK(right);
    CHECK(lies);
    CHECK(cost <= choice.cost + choice.cost / 10);  // moves to where tensors lie are not listed
  });
}
}  // namespace

TEST_CASE("Adam's state is chosen with the weights, and trains as the plain one") {
  check(Adam{.rate = 0.01}, sizes<Grid>(2, 2));
}
TEST_CASE("the state of other optimizers is chosen with the weights") {
  check(Sgd{.rate = 0.1, .momentum = 0.9}, sizes<Grid>(4, 1));
  check(AdamW{.rate = 0.01, .decay = 0.5}, sizes<Grid>(4, 1),
        {.clip = 0.1, .decays = matrices_only});
  check(Lars{.rate = 0.1, .decay = 0.5}, sizes<Grid>(2, 2), {.decays = matrices_only});
  check(Adafactor{.rate = 0.01}, sizes<Grid>(2, 2));
}
