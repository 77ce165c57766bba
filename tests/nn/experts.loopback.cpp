// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layers of experts against plain loops: gatings of any k, with masks, biases and losses; buffers
// that overflow, and rows that are sorted, of which nothing is dropped; gradients; bytes.
#include <algorithm>
#include <numeric>

#include <tessera/nn/experts/expert_layer.hpp>
#include <tessera/op/compile.hpp>

#include "nn/layer_cases.hpp"
#include "support/few_meshes.hpp"

namespace {
using namespace nn_test;

/// A batch of texts, some shorter, and a layer of experts.
struct Shape {
  const char* name;
  Index batch, sequence, embed, experts, hidden;
  ExpertOptions options;
  bool masked = true, biased = false, skewed = false;
};
const std::vector<Shape>& shapes() {
  static const std::vector<Shape> all{
      {"two with few places", 6, 5, 4, 5, 3, {.k = 2, .capacity_factor = 0.8, .texts = 2}},
      {"one, by a bias", 4, 5, 3, 4, 3, {.k = 1, .capacity_factor = 1}, true, true},
      {"three, drawn", 3, 7, 4, 6, 2, {.k = 3, .capacity_factor = 1, .draw = RoutingDraw{5, 2}}},
      {"dropless, two", 5, 4, 4, 5, 3, {.k = 2, .capacity_factor = 0}},
      {"dropless, one far", 4, 6, 3, 7, 2, {.k = 1, .capacity_factor = 0}, false, false, true},
      {"dropless, all", 3, 3, 4, 4, 3, {.k = 4, .capacity_factor = 0, .texts = 3}},
      {"dropless, one token", 1, 1, 3, 5, 2, {.k = 2, .capacity_factor = 0}, false},
      {"dropless, counted", 7, 4, 4, 6, 3, {.k = 2, .capacity_factor = 0, .counted = true}},
      {"counted, drawn",
       3,
       7,
       4,
       6,
       2,
       {.k = 2, .capacity_factor = 0, .counted = true, .draw = RoutingDraw{5, 2}}},
      {"counted, one far",
       5,
       6,
       3,
       4,
       2,
       {.k = 1, .capacity_factor = 0, .counted = true},
       true,
       true,
       true},
  };
  return all;
}
bool valid_at(const Shape& z, Index b, Index s) { return !z.masked || s < z.sequence - b % 3; }

/// What the plain loops find.
struct Plain {
  std::vector<double> output;
  double balance = 0, z = 0;
  std::vector<Index> load;
  Index dropped = 0;
};
Plain plain(const Shape& n, const Values& in) {
  const auto &x = in[0], &gate = in[1], &w_in = in[2], &w_out = in[3];
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  const Index texts = n.options.texts, groups = n.batch / texts, tokens = texts * n.sequence,
              k = n.options.k;
  const Index capacity =
      n.options.capacity_factor == 0
          ? tokens
          : std::max<Index>(
                1, static_cast<Index>(std::ceil(double(k) * double(tokens) *
                                                n.options.capacity_factor / double(n.experts))));
  Plain to{std::vector<double>(x.size()), 0, 0, std::vector<Index>(at(n.experts)), 0};
  Index all_valid = 0;
  for (Index g = 0; g < groups; ++g) {
    std::vector<Index> count(at(n.experts)), firsts(at(n.experts));
    std::vector<double> mean(at(n.experts));
    std::vector<std::vector<double>> gates(at(tokens));
    std::vector<std::vector<Index>> chosen(at(tokens));
    Index here = 0;
    for (Index t = 0; t < tokens; ++t) {
      if (!valid_at(n, g * texts + t / n.sequence, t % n.sequence)) continue;
      ++here;
      std::vector<double> score(at(n.experts));
      double sum = 0;
      for (Index e = 0; e < n.experts; ++e) {
        double logit = 0;
        for (Index m = 0; m < n.embed; ++m)
          logit += x[at((g * tokens + t) * n.embed + m)] * gate[at(m * n.experts + e)];
        sum += score[at(e)] = std::exp(logit);
      }
      to.z += std::log(sum) * std::log(sum);
      for (Index e = 0; e < n.experts; ++e) mean[at(e)] += score[at(e)] /= sum;
      std::vector<Index> order(at(n.experts));
      std::iota(order.begin(), order.end(), Index{});
      const auto by = [&](Index e) { return score[at(e)] + (n.biased ? in[4][at(e)] : 0); };
      std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return by(a) > by(b); });
      order.resize(at(k));
      ++firsts[at(order[0])];
      gates[at(t)] = score;
      chosen[at(t)] = order;
    }
    all_valid += here;
    for (Index e = 0; e < n.experts && here > 0; ++e)
      to.balance += double(firsts[at(e)]) / double(here) * mean[at(e)] / double(here) /
                    double(n.experts * groups);
    for (Index j = 0; j < k; ++j)
      for (Index t = 0; t < tokens; ++t) {
        if (chosen[at(t)].empty()) continue;
        const Index e = chosen[at(t)][at(j)];
        double total = 0;
        for (const Index one : chosen[at(t)]) total += gates[at(t)][at(one)];
        const double weight = gates[at(t)][at(e)] / (k == 1 ? 1 : total);
        ++to.load[at(e)];
        bool sent = count[at(e)]++ < capacity;
        if (j > 0 && n.options.draw) {
          RoutingDraw draw = *n.options.draw;
          draw.seed += 0x9E37'79B9'7F4A'7C15u * static_cast<std::uint64_t>(j - 1);
          sent = sent && double(k) * weight > detail::routing_number(draw, g * tokens + t);
        }
        to.dropped += !sent;
        if (!sent) continue;
        for (Index h = 0; h < n.hidden; ++h) {
          double mid = 0;
          for (Index m = 0; m < n.embed; ++m)
            mid +=
                x[at((g * tokens + t) * n.embed + m)] * w_in[at((e * n.embed + m) * n.hidden + h)];
          for (Index m = 0; m < n.embed && mid > 0; ++m)
            to.output[at((g * tokens + t) * n.embed + m)] +=
                weight * mid * w_out[at((e * n.hidden + h) * n.embed + m)];
        }
      }
  }
  to.z /= double(std::max<Index>(all_valid, 1));
  return to;
}

/// The layer's output, losses and gradients, and what it counts.
template <class R> struct Run {
  using U = On<R>;
  using Mask = typename U::template Of<bool, logical::batch, logical::sequence>;
  Shape n;
  Activations<U> x;
  Experts<U> layer;
  Mask valid;

  Run(const ProcessMesh<Grid>& mesh, const Shape& shape, double outside = 0) : n(shape) {
    Parameters<Grid> make(mesh, 11);
    x = normal<Activations<U>>(make, {n.batch, n.sequence, n.embed});
    layer = Experts<U>::like(
        make,
        {.embed = n.embed, .experts = n.experts, .hidden = n.hidden, .choice_bias = n.biased});
    if (n.skewed)  // expert 1 gets nearly all
      layer.gate = decltype(layer.gate)(map_with_index(
          [](const GlobalIndex& i, double g) { return i[1] == 1 ? 3 + g : g / 8; }, layer.gate));
    if (n.skewed) x = abs(x);
    if (n.biased)
      layer.choice_bias = from_function<typename Experts<U>::Bias>(
          mesh, {n.experts}, [](const GlobalIndex& i) { return double(i[0] % 3) / 4; });
    const Shape z = shape;
    valid = from_function<Mask>(mesh, {n.batch, n.sequence}, [z](const GlobalIndex& i) {
      return !z.masked || i[1] < z.sequence - i[0] % 3;
    });
    using X = Activations<U>;
    x = X(map<"ab,abc->abc", typename X::spec>(fn::Fixed<fn::Select, 2, double>{{}, outside}, valid,
                                               x));
  }
  Values inputs() const {
    Values in{to_host(x).values};
    for (auto& one : values_of(layer)) in.push_back(std::move(one));
    return in;
  }
  auto made(const Activations<U>& tokens, const Experts<U>& weights) const {
    return expert_layer(weights, tokens, n.options, fn::Relu{}, valid);
  }
  /// Output, losses, then gradients by x and the weights.
  Values numbers() const {
    const auto [y, gradient] =
        value_and_grad<0, 1>([&](const Activations<U>& tokens, const Experts<U>& weights) {
          const auto out = made(tokens, weights);
          return std::tuple(loss_of(out.output) + 0.3 * out.balance_loss + 0.1 * out.z_loss,
                            out.output, out.balance_loss, out.z_loss);
        })(x, layer);
    Values all = values_of(std::tuple(std::get<1>(y), std::get<2>(y), std::get<3>(y)));
    for (auto& one : values_of(gradient)) all.push_back(std::move(one));
    return all;
  }
};

template <class F> void for_expert_rules(const F& check) {
  check("whole", std::type_identity<DataParallel<BothAxes>>{});
  check("two-dimensional", std::type_identity<TwoDimensional<data, model>>{});
  check("experts", std::type_identity<ExpertParallel<BothAxes>>{});
  check("experts and tensors", std::type_identity<ExpertTensorParallel<data, model>>{});
  check("experts apart",
        std::type_identity<
            LayerRules<AxisRule<logical::batch, data>, AxisRule<logical::experts, model>>>{});
  check("sequence", std::type_identity<SequenceSplit<data, model>>{});
}
}  // namespace

TEST_CASE("layers of experts are plain loops over tokens, on every mesh and under all rules") {
  for (const Shape& n : shapes()) {
    CAPTURE(n.name);
    Values whole;
    on_mesh(1, 1, [&](const ProcessMesh<Grid>& mesh) {
      const Run<Whole> run(mesh, n);
      whole = run.numbers();
      const Values in = run.inputs();
      const Plain wanted = plain(n, in);
      CHECK(worst(whole[0], wanted.output) < 1e-12);
      CHECK(worst(whole[1], {wanted.balance}) < 1e-12);
      CHECK(worst(whole[2], {wanted.z}) < 1e-12);
      const auto made = run.made(run.x, run.layer);
      const auto load = to_host(made.load).values;
      CHECK(std::vector<Index>(load.begin(), load.end()) == wanted.load);
      CHECK(value(made.dropped) == wanted.dropped);
      CHECK((n.options.capacity_factor == 0 && !n.options.draw) == (wanted.dropped == 0));
      // Gradients by central differences of the loops.
      const auto weights =
          to_host(random_normal<Activations<On<Whole>>>(mesh, run.x.extents(), 99)).values;
      const auto loss = [&](const Values& at) {
        const Plain p = plain(n, at);
        double sum = 0.3 * p.balance + 0.1 * p.z;
        for (std::size_t i = 0; i < weights.size(); ++i) sum += weights[i] * p.output[i];
        return sum;
      };
      for (std::size_t t = 0; t < 4; ++t) {
        std::vector<double> slopes;
        for (std::size_t i = 0; i < in[t].size(); ++i) {
          Values up = in, down = in;
          up[t][i] += 1e-6;
          down[t][i] -= 1e-6;
          slopes.push_back((loss(up) - loss(down)) / 2e-6);
        }
        CHECK(worst(whole[3 + t], slopes) < 1e-7);
      }
      if (n.biased) CHECK(worst(whole[7], std::vector<double>(whole[7].size())) == 0);
    });
    std::mutex mutex;
    for (const auto& [rows, columns] : {std::pair{2, 1}, {1, 2}, {2, 2}, {3, 2}})
      on_mesh(rows, columns, [&](const ProcessMesh<Grid>& mesh) {
        for_expert_rules([&]<class R>(const char* rules, std::type_identity<R>) {
          const double far = farthest_apart(Run<R>(mesh, n).numbers(), whole);
          const std::lock_guard lock(mutex);
          CAPTURE(n.name);
          CAPTURE(rules);
          CAPTURE(mesh.processes());
          CHECK(far < 1e-12);
        });
      });
  }
}

TEST_CASE("two choices, the second one drawn, are those of GShard's gating") {
  on_mesh(2, 1, [](const ProcessMesh<Grid>& mesh) {
    using Logits = ShardedTensor<double, Grid, P<data, _, _>>;
    const auto logits = random_normal<Logits>(mesh, {3, 8, 5}, 4);
    const auto gshard = top2_gating(logits, 3, {9, 1});
    const auto gating = top_k_gating(logits, {.k = 2, .capacity = 3, .draw = RoutingDraw{9, 1}});
    const auto kind = [](const auto& x, Index k) {
      std::vector<double> all;
      const auto host = to_host(x);
      for (std::size_t i = static_cast<std::size_t>(k); i < host.values.size(); i += 2)
        all.push_back(static_cast<double>(host.values[i]));
      return all;
    };
    const auto of = [](const auto& x) {
      const auto host = to_host(x).values;
      return std::vector<double>(host.begin(), host.end());
    };
    CHECK(kind(gating.experts, 0) == of(gshard.first));
    CHECK(kind(gating.experts, 1) == of(gshard.second));
    CHECK(kind(gating.positions, 0) == of(gshard.first_position));
    CHECK(kind(gating.positions, 1) == of(gshard.second_position));
    CHECK(worst(kind(gating.weights, 1), of(gshard.second_weight)) < 1e-14);
    CHECK(worst(of(gating.balance_loss), of(gshard.auxiliary_loss)) < 1e-14);
  });
}

TEST_CASE("tokens that are not valid may be anything, and change nothing") {
  for (const Shape& n : shapes()) {
    if (!n.masked) continue;
    on_mesh(2, 2, [&](const ProcessMesh<Grid>& mesh) {
      using R = ExpertTensorParallel<data, model>;
      CHECK(Run<R>(mesh, n, NAN).numbers() == Run<R>(mesh, n, 5).numbers());
    });
  }
}

TEST_CASE("a layer of experts compiles, and what it sends is planned; counted it is no more") {
  for (Shape n : shapes()) {
    if (n.options.capacity_factor != 0) continue;
    n.options.counted = false;
    on_mesh(2, 2, [&](const ProcessMesh<Grid>& mesh) {
      using R = ExpertParallel<BothAxes>;
      const Run<R> bound(mesh, n);
      Run<R> counted = bound;
      counted.n.options.counted = true;
      const auto sent = [&](const Run<R>& run) {
        mesh.ledger().reset();
        (void)run.made(run.x, run.layer);
        return mesh.ledger().total().payload_bytes;
      };
      Recording recording(mesh);
      (void)bound.made(bound.x, bound.layer);
      const Program program = recording.take();
      const auto most = sent(bound);
      CHECK(most == static_cast<Index>(program.own_payload_bytes()));
      CHECK(sent(counted) <= most + 8 * 64);  // and the counts themselves
      auto layer = compile([&](const auto& x, const auto& w) { return bound.made(x, w); });
      const auto compiled = layer(bound.x, bound.layer);
      const auto again = layer(bound.x, bound.layer);
      const auto plain_run = bound.made(bound.x, bound.layer);
      CHECK(farthest_apart({to_host(compiled.output).values}, {to_host(plain_run.output).values}) <
            1e-12);
      CHECK(to_host(again.output).values == to_host(compiled.output).values);
      CHECK(layer.structures() == 1);
      auto by_bound = compile([&](const auto& x, const auto& w) { return counted.made(x, w); });
      CHECK(to_host(by_bound(bound.x, bound.layer).output).values ==
            to_host(compiled.output).values);
    });
  }
  // Balanced loads: far fewer places than a bound has.
  const Shape many{"many", 16, 16, 4, 8, 3, {.k = 2, .capacity_factor = 0}, false};
  on_mesh(2, 2, [&](const ProcessMesh<Grid>& mesh) {
    using R = ExpertParallel<BothAxes>;
    Run<R> run(mesh, many);
    const auto sent = [&] {
      mesh.ledger().reset();
      (void)run.made(run.x, run.layer);
      return mesh.ledger().payload_bytes(Collective::all_to_all);
    };
    const auto bound = sent();
    run.n.options.counted = true;
    CHECK(2 * sent() < bound);
  });
}

TEST_CASE("a holder has no more places than a token's experts there could need") {
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    const auto sent = [&](Index k) {
      const Run<ExpertParallel<BothAxes>> run(mesh,
                                              {"", 4, 3, 4, 4, 3, {.k = k, .capacity_factor = 0}});
      mesh.ledger().reset();
      (void)run.made(run.x, run.layer);
      return mesh.ledger().payload_bytes(Collective::all_to_all);
    };
    const Index of_one = sent(1);
    CHECK(of_one > 0);
    CHECK(sent(4) == of_one);  // an expert for each holder
  });
}

TEST_CASE("weights of gates whose squares are 0 have the gradients of doubles") {
  on_mesh(1, 1, [](const ProcessMesh<Grid>& mesh) {
    const auto gradient = [&]<class T>(T) {
      using Logits = ShardedTensor<T, Grid, P<_, _, _>>;
      const auto logits = from_host<Logits>(mesh, {1, 1, 4}, std::vector<T>{0, -55, -56, -57});
      const auto bias =
          from_host<ShardedTensor<T, Grid, P<_>>>(mesh, {4}, std::vector<T>{-2, 1, 1, 0});
      const auto by = value_and_grad([&](const Logits& x) {
                        return sum(square(top_k_gating(x, {.k = 2}, AllValid{}, bias).weights));
                      })(logits)
                          .gradient;
      return to_host(cast<double>(by)).values;
    };
    const auto exact = gradient(double{});
    CHECK(std::fabs(exact[1]) > 0.1);
    CHECK(worst(gradient(float{}), exact) < 1e-5);
  });
}

TEST_CASE("tokens go to experts by one all-to-all and come back by one, forward and backward") {
  const auto mesh = dry_mesh<Grid>(2, 2);
  using R = ExpertParallel<BothAxes>;
  for (const double factor : {1.0, 0.0}) {
    const Shape n{"", 8, 6, 4, 8, 3, {.k = 2, .capacity_factor = factor, .texts = 2}};
    const Run<R> run(mesh, n);
    const auto program = [&](const auto& f) {
      Recording recording(mesh);
      (void)f(run.x, run.layer);
      return recording.take();
    };
    const auto forward = [&](const auto& x, const auto& w) { return run.made(x, w); };
    const auto step = value_and_grad<0, 1>([&](const auto& x, const auto& w) {
      const auto made = run.made(x, w);
      return loss_of(made.output) + made.balance_loss + made.z_loss;
    });
    const Index numbers = factor == 0 ? 1 : 0;  // those of rows' experts, which have no gradient
    CHECK(program(forward).count(Collective::all_to_all) == 2 + numbers);
    CHECK(program(step).count(Collective::all_to_all) == 4 + numbers);
    CHECK(program(step).count(Collective::all_gather) == 0);
  }
}

TEST_CASE("a choice's bias moves against the load, and half types have gates in float") {
  on_mesh(2, 1, [](const ProcessMesh<Grid>& mesh) {
    using Row = ShardedTensor<double, Grid, P<_>>;
    using Load = ShardedTensor<std::int64_t, Grid, P<_>>;
    const auto bias = from_host<Row>(mesh, {4}, std::vector<double>{0.5, 0, -1, 2});
    const auto load = from_host<Load>(mesh, {4}, std::vector<std::int64_t>{5, 2, 1, 0});
    CHECK(worst(to_host(balanced_bias(bias, load, 0.25)).values, {0.25, 0, -0.75, 2.25}) == 0);
    using U = Under<bfloat16, Grid, ExpertParallel<BothAxes>>;
    Parameters<Grid> make(mesh, 3);
    const auto layer = Experts<U>::like(make, {.embed = 4, .experts = 3, .hidden = 5});
    const auto x = random_normal<Activations<U>>(mesh, {2, 3, 4}, 5);
    const auto sorted = expert_layer(layer, x, {.capacity_factor = 0});
    const auto placed = expert_layer(layer, x, {.capacity_factor = 5});
    const auto a = to_host(cast<float>(sorted.output)), b = to_host(cast<float>(placed.output));
    for (std::size_t i = 0; i < a.values.size(); ++i)
      CHECK(a.values[i] == doctest::Approx(b.values[i]).epsilon(0.02));
    static_assert(std::is_same_v<decltype(sorted.z_loss)::value_type, float>);
  });
}

TEST_CASE("calls that a layer of experts refuses") {
  const auto mesh = dry_mesh<Grid>(2, 1);
  using U = On<DataParallel<data>>;
  Parameters<Grid> make(mesh, 3);
  const auto layer = Experts<U>::like(make, {.embed = 4, .experts = 3, .hidden = 5});
  const auto x = zeros<Activations<U>>(mesh, {2, 3, 4});
  CHECK_THROWS_WITH_AS(expert_layer(layer, x, {.k = 0, .capacity_factor = 0}),
                       doctest::Contains("0 of 3 experts for a token"), UsageError);
  CHECK_THROWS_WITH_AS(expert_layer(layer, x, {.capacity_factor = -1}), doctest::Contains("factor"),
                       UsageError);
  CHECK_THROWS_WITH_AS(expert_layer(layer, x, {.texts = 3}),
                       doctest::Contains("2 texts in groups of 3"), ShapeError);
  auto other = layer;
  other.gate = zeros<decltype(other.gate)>(mesh, 4, 2);
  CHECK_THROWS_WITH_AS(expert_layer(other, x), doctest::Contains("the gate has 2 experts"),
                       ShapeError);
}
