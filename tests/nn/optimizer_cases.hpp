// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Optimizers by plain loops in double on one process, and trees of weights for them: odd extents,
/// blocks that are ragged and empty.
///
///     Loops loops(weights);   loops.adam(gradients, …);   worst_difference(to_host<double>(w).values, loops.w[0]);
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <tessera/nn.hpp>
#include <tessera/tessera.hpp>

namespace optimizer_test {
using namespace tessera;

using Values = std::vector<std::vector<double>>;  // of each tensor
using Tree = std::vector<DynamicTensor>;

/// Extents of the weights: odd, smaller than some meshes, of one element, a line, a scalar.
inline const std::vector<Extents>& weight_extents() {
  static const std::vector<Extents> all{{7, 5}, {11}, {1, 3}, {2, 3, 5}, {1}, {}};
  return all;
}

inline Values random_values(std::uint64_t seed, double scale = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, scale);
  Values values;
  for (const Extents& extents : weight_extents()) {
    values.emplace_back();
    for (Index i = 0; i < volume(extents); ++i) values.back().push_back(normal(random));
  }
  return values;
}

/// Returns the tensor of these elements.
template <class T>
DynamicTensor tensor_of(const DynamicMesh& mesh, const Extents& extents,
                        const std::vector<double>& values, const Sharding& sharding) {
  std::vector<T> typed;
  for (const double v : values) typed.push_back(static_cast<T>(v));
  return from_host<T>(mesh, extents, sharding, std::span<const T>(typed));
}
template <class T>
Tree tree_of(const DynamicMesh& mesh, const Values& values,
             const std::vector<Sharding>& shardings) {
  Tree tree;
  for (std::size_t i = 0; i < values.size(); ++i)
    tree.push_back(tensor_of<T>(mesh, weight_extents()[i], values[i], shardings[i]));
  return tree;
}
/// Weights that are whole everywhere, and weights of which some are split over axis 1, model.
inline std::vector<Sharding> whole_weights() {
  std::vector<Sharding> all;
  for (const Extents& extents : weight_extents())
    all.push_back(Sharding::replicated(extents.size()));
  return all;
}
inline std::vector<Sharding> split_weights() {
  std::vector<Sharding> all = whole_weights();
  all[0][1] = {1};
  all[1][0] = {1};
  all[3][0] = {1};
  return all;
}

/// Optimizers by loops.
struct Loops {
  Values w, m, v;
  Values rows, columns;
  std::vector<bool> decays;  // of each tensor
  int t = 0;

  explicit Loops(const Values& weights) : w(weights), m(weights), v(weights) {
    for (auto* state : {&m, &v})
      for (auto& one : *state) std::fill(one.begin(), one.end(), 0.0);
    rows.resize(w.size());
    columns.resize(w.size());
    decays.assign(w.size(), true);
  }
  void sgd(const Values& g, double rate, double momentum, double decay, bool nesterov) {
    ++t;
    for (std::size_t k = 0; k < w.size(); ++k)
      for (std::size_t i = 0; i < w[k].size(); ++i) {
        const double slope = g[k][i] + (decays[k] ? decay * w[k][i] : 0);
        m[k][i] = momentum * m[k][i] + slope;
        w[k][i] -= rate * (nesterov ? slope + momentum * m[k][i] : m[k][i]);
      }
  }
  void adam(const Values& g, double rate, double b1, double b2, double eps, double decay,
            bool decoupled) {
    ++t;
    for (std::size_t k = 0; k < w.size(); ++k)
      for (std::size_t i = 0; i < w[k].size(); ++i) {
        const double slope = g[k][i] + (decoupled || !decays[k] ? 0 : decay * w[k][i]);
        m[k][i] = b1 * m[k][i] + (1 - b1) * slope;
        v[k][i] = b2 * v[k][i] + (1 - b2) * slope * slope;
        if (decoupled && decays[k]) w[k][i] -= rate * decay * w[k][i];
        w[k][i] -= rate * (m[k][i] / (1 - std::pow(b1, t))) /
                   (std::sqrt(v[k][i] / (1 - std::pow(b2, t))) + eps);
      }
  }
  static double norm(const std::vector<double>& x) {
    double sum = 0;
    for (const double one : x) sum += one * one;
    return std::sqrt(sum);
  }
  void lars(const Values& g, double rate, double momentum, double decay, double trust) {
    ++t;
    for (std::size_t k = 0; k < w.size(); ++k) {
      const double wn = norm(w[k]), gn = norm(g[k]), by = decays[k] ? decay : 0;
      const double local = decays[k] && wn > 0 && gn > 0 ? trust * wn / (gn + by * wn) : 1;
      for (std::size_t i = 0; i < w[k].size(); ++i) {
        m[k][i] = momentum * m[k][i] + rate * local * (g[k][i] + by * w[k][i]);
        w[k][i] -= m[k][i];
      }
    }
  }
  void adafactor(const Values& g, double rate) {
    ++t;
    const double beta = std::min(0.99, 1 - std::pow(t, -0.8));
    for (std::size_t k = 0; k < w.size(); ++k) {
      const Extents& e = weight_extents()[k];
      const std::size_t size = w[k].size();
      std::vector<double> u(size);
      if (e.size() < 2) {
        for (std::size_t i = 0; i < size; ++i) {
          v[k][i] = beta * v[k][i] + (1 - beta) * (g[k][i] * g[k][i] + 1e-30);
          u[i] = g[k][i] / std::sqrt(v[k][i]);
        }
      } else {
        const auto n = static_cast<std::size_t>(e[e.size() - 2]),
                   c = static_cast<std::size_t>(e[e.size() - 1]), batches = size / (n * c);
        rows[k].resize(batches * n);
        columns[k].resize(batches * c);
        for (std::size_t b = 0; b < batches; ++b) {
          const auto at = [&](std::size_t i, std::size_t j) { return (b * n + i) * c + j; };
          const auto square = [&](std::size_t i, std::size_t j) {
            return g[k][at(i, j)] * g[k][at(i, j)] + 1e-30;
          };
          double mean = 0;
          for (std::size_t i = 0; i < n; ++i) {
            double sum = 0;
            for (std::size_t j = 0; j < c; ++j) sum += square(i, j);
            double& r = rows[k][b * n + i];
            r = beta * r + (1 - beta) * sum / static_cast<double>(c);
            mean += r / static_cast<double>(n);
          }
          for (std::size_t j = 0; j < c; ++j) {
            double sum = 0;
            for (std::size_t i = 0; i < n; ++i) sum += square(i, j);
            double& r = columns[k][b * c + j];
            r = beta * r + (1 - beta) * sum / static_cast<double>(n);
          }
          for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < c; ++j)
              u[at(i, j)] =
                  g[k][at(i, j)] / std::sqrt(rows[k][b * n + i] * columns[k][b * c + j] / mean);
        }
      }
      const double root = std::sqrt(static_cast<double>(size));
      const double scale = rate * std::max(1e-3, norm(w[k]) / root) / std::max(1.0, norm(u) / root);
      for (std::size_t i = 0; i < size; ++i) w[k][i] -= scale * u[i];
    }
  }
};

template <class T> std::vector<double> host_values(const DynamicTensor& x) {
  std::vector<double> values;
  for (const T v : to_host<T>(x).values) values.push_back(static_cast<double>(v));
  return values;
}
/// Weights between tensors that no gradient moves.
struct Followed {
  DynamicTensor means;
  Tree weights, counts;
  static constexpr auto fields = Fields<&Followed::means, &Followed::weights, &Followed::counts>{};
  static constexpr auto untrained = Fields<&Followed::means, &Followed::counts>{};
};
/// Returns weights between tensors of such a value, one in float, one half split.
inline Followed followed(const DynamicMesh& mesh, const Tree& weights, double value) {
  return {tensor_of<float>(mesh, {3}, std::vector<double>(3, value), Sharding{{}}),
          weights,
          {tensor_of<double>(mesh, {2, 7}, std::vector<double>(14, value), Sharding{{}, {1}}),
           tensor_of<half>(mesh, {}, {value}, Sharding{})}};
}
/// Returns whether all that no gradient moves has that value.
inline bool all_are(const Followed& tree, double value) {
  const auto same = [&](const std::vector<double>& values) {
    return std::ranges::count(values, value) == static_cast<std::ptrdiff_t>(values.size());
  };
  return same(host_values<float>(tree.means)) && same(host_values<double>(tree.counts[0])) &&
         same(host_values<half>(tree.counts[1]));
}

/// Returns the greatest |a - b| / (1 + |b|).
inline double worst_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return 1e300;
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a[i] - b[i]) / (1 + std::abs(b[i]));
    worst = d > worst || std::isnan(d) ? (std::isnan(d) ? 1e300 : d) : worst;
  }
  return worst;
}

/// Policies over the axes data (0) and model (1).
struct NamedPolicy {
  const char* name;
  UpdatePolicy policy;
};
inline const std::vector<NamedPolicy>& policies() {
  using Kind = UpdatePolicy::Kind;
  static const std::vector<NamedPolicy> all{{"replicated", {}},
                                            {"sharded over data", {Kind::sharded, {0}}},
                                            {"sharded over both", {Kind::sharded, {0, 1}}},
                                            {"sharded over model", {Kind::sharded, {1}}},
                                            {"cheapest", {Kind::cheapest, {0, 1}}},
                                            {"flat over data", {Kind::sharded, {0}, true}},
                                            {"flat over both", {Kind::sharded, {0, 1}, true}}};
  return all;
}

}  // namespace optimizer_test
