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
double apart(const Values& a, const Values& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    most = std::max(most, worst(a[i], b[i]));
  return most;
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
          const double far = apart(Run<R>(mesh, n).numbers(), whole);
          const std::lock_guard lock(mutex);
          CAPTURE(n.name);
          CAPTURE(rules);
          CAPTURE(mesh.processes());
          CHECK(far < 1e-12);
        });
      });
  }
}
