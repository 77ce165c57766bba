// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Mixtures of experts in plain loops, as GShard's Algorithms 1 and 2 state them, and cases of
/// which some overflow, tie, refuse a second choice or leave an expert empty.
///
///     const Plain wanted = plain_mixture(c.shape, c.inputs, options);
///     const std::string wrong = wrong_mixture<Dispatch::take, X, Gate, In, Out>(mesh, c);
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <tessera/grad.hpp>
#include <tessera/nn/mixture_of_experts.hpp>
#include <tessera/tessera.hpp>

#include "support/grid.hpp"

namespace mixture_test {
using namespace tessera;
using Values = std::vector<double>;

/// G groups of S tokens of M features, E experts with H hidden features, and the capacity's factor.
struct Shape {
  Index g, s, m, e, h;
  double factor;
  Extents of(int input) const {
    return input == 0   ? Extents{g, s, m}
           : input == 1 ? Extents{m, e}
           : input == 2 ? Extents{e, m, h}
                        : Extents{e, h, m};
  }
};
/// The tokens, the gate, and both weights of the experts.
using Inputs = std::vector<Values>;

inline std::size_t at(Index i) { return static_cast<std::size_t>(i); }

/// What Algorithm 1 finds for the tokens of all groups.
struct Routing {
  Values gates, first_weight, second_weight;
  std::vector<Index> first, second, first_position, second_position, counts;
  double auxiliary_loss = 0, margin = 1;
  Index full = 0, refused = 0, dropped = 0, ties = 0;
};

/// Algorithm 1, line by line, of each group; the loss is the mean over groups.
inline Routing algorithm1(const Shape& z, const Values& logits, Index capacity,
                          const RoutingDraw& draw) {
  Routing to;
  for (Index g = 0; g < z.g; ++g) {
    std::vector<Index> c(at(z.e), 0);  // (1)
    Values gates(at(z.s * z.e)), m(at(z.e), 0.0);
    for (Index s = 0; s < z.s; ++s) {  // (2), (3)
      const double* l = &logits[at((g * z.s + s) * z.e)];
      double sum = 0;
      for (Index e = 0; e < z.e; ++e) sum += std::exp(l[e] - *std::max_element(l, l + z.e));
      for (Index e = 0; e < z.e; ++e) {
        gates[at(s * z.e + e)] = std::exp(l[e] - *std::max_element(l, l + z.e)) / sum;
        m[at(e)] += gates[at(s * z.e + e)] / static_cast<double>(z.s);
      }
    }
    struct Top {
      double g1, g2;
      Index e1, e2;
    };
    const auto top2 = [&](Index s) {
      const double* x = &gates[at(s * z.e)];
      const Index e1 = std::max_element(x, x + z.e) - x;
      Index e2 = -1;
      for (Index e = 0; e < z.e; ++e)
        if (e != e1 && (e2 < 0 || x[e] > x[e2])) e2 = e;
      double third = -1;
      for (Index e = 0; e < z.e; ++e)
        if (e != e1 && e != e2) third = std::max(third, x[e]);
      const double g1 = x[e1], g2 = e2 < 0 ? 0 : x[e2];
      to.margin = std::min({to.margin, g1 - g2, g2 - third});
      return Top{g1, g2, e1, e2 < 0 ? 1 : e2};
    };
    for (Index s = 0; s < z.s; ++s) {  // (4)
      const auto [g1, g2, e1, e2] = top2(s);
      to.ties += g1 == g2;
      to.first_weight.push_back(g1 / (g1 + g2));
      to.first.push_back(e1);
      to.first_position.push_back(c[at(e1)] < capacity ? c[at(e1)] : -1);  // (7) to (10)
      to.full += c[at(e1)] >= capacity;
      ++c[at(e1)];  // (11)
    }
    for (Index e = 0; e < z.e; ++e)  // (13)
      if (z.s > 0)
        to.auxiliary_loss += static_cast<double>(c[at(e)]) / static_cast<double>(z.s) * m[at(e)] /
                             static_cast<double>(z.e * z.g);
    to.counts.insert(to.counts.end(), c.begin(), c.end());
    for (Index s = 0; s < z.s; ++s) {  // (14)
      const auto [g1, g2, e1, e2] = top2(s);
      const double weight = g2 / (g1 + g2), number = detail::routing_number(draw, g * z.s + s);
      to.second_weight.push_back(weight);
      to.second.push_back(e2);
      to.margin = std::min(to.margin, std::fabs(2 * weight - number));
      const Index count = z.e > 1 ? c[at(e2)] : 0;
      const bool drawn = 2 * weight > number;
      to.refused += !drawn && count < capacity && z.e > 1;
      to.second_position.push_back(count < capacity && drawn ? count : -1);  // (18) to (20)
      if (z.e > 1) ++c[at(e2)];                                              // (21)
      to.dropped += to.first_position[at(g * z.s + s)] < 0 && to.second_position.back() < 0;
    }
    to.gates.insert(to.gates.end(), gates.begin(), gates.end());
  }
  return to;
}

struct Plain {
  Routing routing;
  Values output;
};

/// Algorithm 2, of tokens one by one: a token's output is the sum over the experts that it is sent
/// to of its weight times relu(x w_in) w_out.
inline Plain plain_mixture(const Shape& z, const Inputs& in, const RoutingDraw& draw) {
  const Values &x = in[0], &gate = in[1], &w_in = in[2], &w_out = in[3];
  Values logits(at(z.g * z.s * z.e), 0.0);
  for (Index t = 0; t < z.g * z.s; ++t)
    for (Index e = 0; e < z.e; ++e)
      for (Index m = 0; m < z.m; ++m)
        logits[at(t * z.e + e)] += x[at(t * z.m + m)] * gate[at(m * z.e + e)];
  const Index capacity =
      std::max<Index>(1, static_cast<Index>(std::ceil(2 * static_cast<double>(z.s) * z.factor /
                                                      static_cast<double>(z.e))));
  Plain to{algorithm1(z, logits, capacity, draw), Values(x.size(), 0.0)};
  const auto expert = [&](Index t, Index e, double weight) {
    for (Index h = 0; h < z.h; ++h) {
      double sum = 0;
      for (Index m = 0; m < z.m; ++m) sum += x[at(t * z.m + m)] * w_in[at((e * z.m + m) * z.h + h)];
      for (Index m = 0; m < z.m && sum > 0; ++m)
        to.output[at(t * z.m + m)] += weight * sum * w_out[at((e * z.h + h) * z.m + m)];
    }
  };
  for (Index t = 0; t < z.g * z.s; ++t) {
    const Routing& r = to.routing;
    if (r.first_position[at(t)] >= 0) expert(t, r.first[at(t)], r.first_weight[at(t)]);
    if (r.second_position[at(t)] >= 0) expert(t, r.second[at(t)], r.second_weight[at(t)]);
  }
  return to;
}

constexpr double balance = 0.3;  ///< the auxiliary loss's share
/// By what each element of the output counts in the loss.
inline Values output_weights(const Shape& z) {
  Values c(at(z.g * z.s * z.m));
  for (std::size_t i = 0; i < c.size(); ++i) c[i] = std::sin(1.0 + 0.7 * static_cast<double>(i));
  return c;
}
inline double plain_loss(const Shape& z, const Inputs& in, const RoutingDraw& draw) {
  const Plain p = plain_mixture(z, in, draw);
  const Values c = output_weights(z);
  double loss = balance * p.routing.auxiliary_loss;
  for (std::size_t i = 0; i < c.size(); ++i) loss += c[i] * p.output[i];
  return loss;
}
/// The gradients of plain_loss by central differences.
inline Inputs plain_gradients(const Shape& z, const Inputs& in, const RoutingDraw& draw) {
  Inputs to = in;
  const double step = 1e-6;
  for (std::size_t k = 0; k < in.size(); ++k)
    for (std::size_t i = 0; i < in[k].size(); ++i) {
      Inputs up = in, down = in;
      up[k][i] += step;
      down[k][i] -= step;
      to[k][i] = (plain_loss(z, up, draw) - plain_loss(z, down, draw)) / (2 * step);
    }
  return to;
}

struct Case {
  const char* name;
  Shape shape;
  enum Kind { smooth, ties, all_equal, one_far } kind = smooth;
  RoutingDraw draw = {11, 3};

  Inputs inputs() const {
    std::mt19937 random(static_cast<unsigned>(shape.g * 100 + shape.s * 10 + shape.e));
    std::normal_distribution<double> normal;
    Inputs in;
    for (int k = 0; k < 4; ++k) {
      in.emplace_back(at(volume(shape.of(k))));
      for (double& v : in.back()) {
        v = normal(random);
        if (kind == ties && k < 2) v = std::clamp(std::round(v), -1.0, 1.0);
        if (kind == all_equal && k == 1) v = 0;
        if (kind == one_far && k == 0) v = 0.5 + std::fabs(v);
      }
    }
    if (kind == one_far)  // the last expert is nobody's first or second choice
      for (Index m = 0; m < shape.m; ++m) in[1][at((m + 1) * shape.e - 1)] = -30;
    return in;
  }
};
inline const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"as many places as choices", {4, 6, 3, 4, 5, 1}},
      {"half as many", {5, 7, 3, 3, 4, 0.5}},
      {"capacity 1", {3, 4, 2, 6, 2, 0.01}},
      {"one expert", {2, 5, 3, 1, 2, 1}},
      {"two experts", {3, 5, 2, 2, 3, 0.6}},
      {"more than enough places", {7, 8, 2, 5, 3, 4}},
      {"ties", {6, 9, 2, 4, 3, 0.7}, Case::ties},
      {"all gates equal", {3, 6, 2, 4, 3, 1}, Case::all_equal},
      {"an expert without tokens", {4, 5, 3, 4, 2, 0.8}, Case::one_far},
      {"one group of one token", {1, 1, 3, 4, 2, 1}},
      {"no groups", {0, 4, 2, 3, 2, 1}},
      {"groups of no tokens", {2, 0, 2, 3, 2, 1}},
  };
  return all;
}

/// Returns "" where two lists of numbers agree to `eps`.
template <class A, class B>
std::string differing(const char* what, const A& got, const B& wanted, double eps) {
  if (got.size() != wanted.size()) return std::string(what) + " has another size; ";
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double a = static_cast<double>(got[i]), b = static_cast<double>(wanted[i]);
    if (!(std::fabs(a - b) <= eps * (1 + std::fabs(b))))
      return std::string(what) + " " + std::to_string(i) + " is " + std::to_string(a) + ", not " +
             std::to_string(b) + "; ";
  }
  return "";
}

/// What a mesh makes of a case: output, loss and gradients.
struct Answer {
  std::string wrong;
  Inputs values;
};

/// Runs a case forward and backward, with elements of X, and compares it with the plain loops.
template <Dispatch How, class X, class Gate, class In, class Out>
Answer run_mixture(const ProcessMesh<typename X::mesh_type>& mesh, const Case& c,
                   const Inputs& differences) {
  using T = typename X::value_type;
  using Wide = ComputeType<T>;  // of gates and losses
  const double eps = std::is_same_v<Wide, double> ? 1e-12 : 2e-5;
  const double eps_of_output = std::is_same_v<T, Wide> ? 10 * eps : 0.05;
  const Shape& z = c.shape;
  const Inputs in = c.inputs();
  const auto tensor = [&]<class Tensor>(Tensor*, int k, const Values& v) {
    const std::vector<T> elements(v.begin(), v.end());
    return from_host<Tensor>(mesh, z.of(k), std::span<const T>(elements));
  };
  const X x = tensor(static_cast<X*>(nullptr), 0, in[0]);
  const Gate gate = tensor(static_cast<Gate*>(nullptr), 1, in[1]);
  const In w_in = tensor(static_cast<In*>(nullptr), 2, in[2]);
  const Out w_out = tensor(static_cast<Out*>(nullptr), 3, in[3]);
  const X counts = tensor(static_cast<X*>(nullptr), 0, output_weights(z));
  const auto layer = [&](const X& t, const Gate& g, const In& v, const Out& w) {
    const auto made = mixture_of_experts<How>(t, g, v, w, {z.factor, c.draw});
    const auto loss = cast<Wide>(sum<"gsm->", P<>>(made.output * counts)) +
                      static_cast<Wide>(balance) * made.gating.auxiliary_loss;
    return std::tuple(loss, made);
  };
  const auto [value, gradients] = value_and_grad<0, 1, 2, 3>(layer)(x, gate, w_in, w_out);
  const auto& made = std::get<1>(value);
  const auto statistics = routing_statistics(made.gating);

  const Plain wanted = plain_mixture(z, in, c.draw);
  const Routing& r = wanted.routing;
  const auto list = [](const auto& y) {
    const auto host = to_host(y);
    return std::vector(host.values.begin(), host.values.end());
  };
  Answer to;
  const auto same = [&](const char* what, const auto& got, const auto& expected, double within) {
    to.wrong += differing(what, list(got), expected, within);
  };
  const auto& gating = made.gating;
  same("gate", gating.gates, r.gates, eps);
  same("first choice", gating.first, r.first, 0);
  same("second choice", gating.second, r.second, 0);
  same("first position", gating.first_position, r.first_position, 0);
  same("second position", gating.second_position, r.second_position, 0);
  same("first weight", gating.first_weight, r.first_weight, eps);
  same("second weight", gating.second_weight, r.second_weight, eps);
  same("count", gating.choices, r.counts, 0);
  same("auxiliary loss", gating.auxiliary_loss, Values{r.auxiliary_loss}, eps);
  same("output", made.output, wanted.output, eps_of_output);
  std::vector<Index> chosen(at(z.e), 0), sent(at(z.e), 0);
  for (std::size_t i = 0; i < r.counts.size(); ++i) chosen[i % at(z.e)] += r.counts[i];
  for (std::size_t i = 0; i < r.first.size(); ++i) {
    if (r.first_position[i] >= 0) ++sent[at(r.first[i])];
    if (r.second_position[i] >= 0) ++sent[at(r.second[i])];
  }
  same("statistics: first choices", statistics.first_choices, chosen, 0);
  same("statistics: sent", statistics.sent, sent, 0);
  same("statistics: dropped", statistics.dropped, std::vector<Index>{r.dropped}, 0);
  if (!r.first.empty()) same("margin", statistics.margin, Values{r.margin}, eps);
  const auto keep = [&](const auto& y) {
    const auto values = list(y);
    to.values.emplace_back(values.begin(), values.end());
  };
  keep(made.output);
  keep(std::get<0>(value));
  std::apply([&](const auto&... one) { (keep(one), ...); }, gradients);
  if (std::is_same_v<T, double> && c.kind != Case::ties && c.kind != Case::all_equal)
    for (std::size_t k = 0; k < differences.size(); ++k)
      to.wrong += differing("gradient", to.values[2 + k], differences[k], 1e-7);
  return to;
}

}  // namespace mixture_test
