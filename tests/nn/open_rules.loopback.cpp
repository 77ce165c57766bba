// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A decoder of which nothing is annotated: its step of training is chosen on paper, its weights are
// born as chosen, it has the numbers of the whole one, and the list of rules that is printed for it
// is compiled here.
#include <doctest/doctest.h>

#include <cmath>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/grad.hpp>
#include <tessera/nn.hpp>
#include <tessera/nn/born_as.hpp>
#include <tessera/nn/chosen_rules.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/run/choose_of.hpp>
#include <tessera/tessera.hpp>

#include "nn/open_model.hpp"
#include "support/golden.hpp"

using namespace tessera;
using namespace open_model;

namespace {
std::mutex mutex;

/// The loss, and the weights after a step of gradient descent.
struct Training {
  template <class W, class I> auto operator()(const W& weights, const I& ids) const {
    auto [loss, gradient] = value_and_grad(
        [&](const auto& w) { return mean(cross_entropy(next_tokens(w, ids), ids)); })(weights);
    W next = weights;
    for_each_tensor([](auto& w, const auto& g) { w = w - 0.25 * g; }, next, gradient);
    return std::pair(loss, next);
  }
};
/// Layers under one list of rules, and one that lies against it.
template <class R, class Other> struct Layers {
  Embedding<On<R>> table;
  LayerNorm<On<R>> norm;
  std::vector<FeedForward<On<R>>> inner;
  Dense<On<Other>, logical::embed, logical::hidden> last;
  static constexpr auto fields =
      Fields<&Layers::table, &Layers::norm, &Layers::inner, &Layers::last>{};
};
template <class R, class Other> Layers<R, Other> some_layers(Parameters<Grid>& make) {
  return {Embedding<On<R>>::like(make, 64, 32),
          LayerNorm<On<R>>::like(make, 32),
          {FeedForward<On<R>>::like(make, 32, 96)},
          Dense<On<Other>, logical::embed, logical::hidden>::like(make, 32, 8)};
}
struct Forward {
  template <class L, class I> auto operator()(const L& layers, const I& ids) const {
    const auto x = layer_norm(layers.norm, look_up(layers.table, ids));
    return dense(layers.last, feed_forward(layers.inner[0], x, fn::Relu{}));
  }
};
using TwoD = TwoDimensional<data, model>;
namespace printed {
#include "golden/chosen_rules.txt"
}
}  // namespace

TEST_CASE(
    "a decoder without annotations is chosen on paper, born so, and trains as the whole one") {
  const auto on = sizes<Grid>(2, 2);
  Parameters<Grid> paper(dry_mesh<Grid>(on), 3);
  const Made<OpenRules> open;
  const Choice choice = choose(Training{})(open(paper), like<Ids>(7, 16), on);
  CHECK(choice.cost < choice.before);
  CHECK(choice.argument("0.blocks.0.feed_forward.in.weight") != Sharding{{}, {}});
  run_loopback(4, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, on);
    Parameters<Grid> make(mesh, 3);
    auto weights = born_as(choice, "0", mesh, 3, open);
    auto whole = Made<LayerRules<>>{}(make);
    const auto ids = from_function<Ids>(mesh, {7, 16}, SomeIds{});
    auto step = compile(Training{}, choice);
    bool right = near(weights, whole);
    for (int i = 0; i < 2; ++i) {
      auto [loss, next] = step(weights, ids);
      auto [expected, then] = Training{}(whole, ids);
      right = right && std::abs(value(loss) - value(expected)) < 1e-9;
      weights = next;
      whole = then;
    }
    right = right && near(weights, whole);
    bool lies = true;
    for_each_named_tensor(
        [&](const std::string& path, const auto& w) {
          lies = lies && w.sharding() == choice.argument("0." + path);
        },
        weights);
    // An optimizer keeps its state as the weights lie, and its steps run as those of any tensors.
    Optimizer optimizer(Adam{.rate = 0.01}, weights), plain(Adam{.rate = 0.01}, whole);
    optimizer.step(weights, weights);
    plain.step(whole, whole);
    right = right && near(weights, whole);
    const std::lock_guard lock(mutex);
    CHECK(right);
    CHECK(lies);
  });
}

TEST_CASE("the rules that are printed for a choice compile, and split the model so") {
  const auto on = sizes<Grid>(2, 4);
  Parameters<Grid> make(dry_mesh<Grid>(on), 3);
  using Other = LayerRules<AxisRule<logical::embed, model>, AxisRule<logical::hidden, data>>;
  const auto layers = some_layers<TwoD, Other>(make);
  const std::string text =
      layer_rules_of(choose(Forward{})(layers, like<Ids>(8, 16), on), "0", layers);
  CHECK(support::golden("chosen_rules.txt", text) == text);
  const auto alike = [](const auto& a, const auto& b) {
    return std::is_same_v<std::decay_t<decltype(a)>, std::decay_t<decltype(b)>>;
  };
  const auto again = some_layers<printed::Chosen, printed::Chosen>(make);
  for_each_tensor([&](const auto& a, const auto& b) { CHECK(alike(a, b)); },
                  std::tie(layers.table, layers.norm, layers.inner),
                  std::tie(again.table, again.norm, again.inner));
  CHECK(std::is_same_v<decltype(layers.last.weight)::spec, printed::last_weight>);
  CHECK(std::is_same_v<decltype(layers.last.bias)::value_type::spec, printed::last_bias>);
}
