// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layers against plain loops, central differences, and themselves on other meshes.
#include "nn/layer_cases.hpp"

namespace {
using namespace nn_test;

constexpr Index b = 5, s = 4, m = 6, h = 7;

/// (rows, in) times (in, out), and a bias.
std::vector<double> product(const std::vector<double>& x, const std::vector<double>& w,
                            const std::vector<double>& bias) {
  const std::size_t out = bias.size(), in = w.size() / out;
  std::vector<double> y(x.size() / in * out);
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = bias[i % out];
    for (std::size_t k = 0; k < in; ++k) y[i] += x[i / out * in + k] * w[k * out + i % out];
  }
  return y;
}
double gelu_of(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }

struct DenseCase {
  static constexpr const char* name = "dense";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    auto layer = Dense<U, logical::embed, logical::hidden>::like(make, m, h);
    layer.bias = normal<std::decay_t<decltype(*layer.bias)>>(make, {h});
    return std::tuple(layer, normal<Activations<U>>(make, {b, s, m}));
  }
  template <class Given> static auto run(const Given& given) {
    return dense(std::get<0>(given), std::get<1>(given), fn::Gelu{});
  }
  static std::vector<double> loops(const Values& v) {
    std::vector<double> y = product(v[2], v[0], v[1]);
    for (double& one : y) one = gelu_of(one);
    return y;
  }
};

struct EmbeddingCase {
  static constexpr const char* name = "embedding, and scores by the same table";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    return std::tuple(Embedding<U>::like(make, 11, m),
                      Embedding<U, logical::positions>::like(make, s + 2, m));
  }
  template <class Table, class Places> static auto run(const std::tuple<Table, Places>& given) {
    return rows(std::get<0>(given), std::get<1>(given));
  }
  template <class U, class Places>
  static auto rows(const Embedding<U>& table, const Places& places) {
    const auto ids = from_function<TokenIds<U>>(mesh_of(table.weight), {b, s}, Ids{11});
    const auto x = look_up<typename Activations<U>::spec>(table, ids);
    return logits<
        typename U::template Spec<logical::batch, logical::sequence, logical::vocabulary>>(
        table, add_positions(places, x, 1));
  }
  static std::vector<double> loops(const Values& v) {
    std::vector<double> y;
    for (Index i = 0; i < b * s; ++i)
      for (Index k = 0; k < 11; ++k) {
        const Index id = (i * 7 + 3 + i / 4) % 11;
        double sum = 0;
        for (Index j = 0; j < m; ++j)
          sum += (v[0][static_cast<std::size_t>(id * m + j)] +
                  v[1][static_cast<std::size_t>((i % s + 1) * m + j)]) *
                 v[0][static_cast<std::size_t>(k * m + j)];
        y.push_back(sum);
      }
    return y;
  }
};

/// Rows of a norm by loops: `mean` is subtracted where it is layer norm.
std::vector<double> norm_loops(const std::vector<double>& x, const std::vector<double>& scale,
                               const std::vector<double>* bias, double epsilon) {
  std::vector<double> y;
  const std::size_t n = scale.size();
  for (std::size_t row = 0; row < x.size() / n; ++row) {
    double mean = 0, square = 0;
    for (std::size_t j = 0; j < n; ++j) mean += bias != nullptr ? x[row * n + j] / double(n) : 0;
    for (std::size_t j = 0; j < n; ++j) square += std::pow(x[row * n + j] - mean, 2) / double(n);
    for (std::size_t j = 0; j < n; ++j)
      y.push_back((x[row * n + j] - mean) / std::sqrt(square + epsilon) * scale[j] +
                  (bias != nullptr ? (*bias)[j] : 0));
  }
  return y;
}
struct LayerNormCase {
  static constexpr const char* name = "layer norm";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    using Row = typename U::template Tensor<logical::norm>;
    return std::tuple(LayerNorm<U>{normal<Row>(make, {m}), normal<Row>(make, {m})},
                      normal<Activations<U>>(make, {b, s, m}));
  }
  template <class Given> static auto run(const Given& given) {
    return layer_norm(std::get<0>(given), std::get<1>(given), 1e-2);
  }
  static std::vector<double> loops(const Values& v) { return norm_loops(v[2], v[0], &v[1], 1e-2); }
};
struct RmsNormCase {
  static constexpr const char* name = "RMS norm";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    using Row = typename U::template Tensor<logical::norm>;
    return std::tuple(RmsNorm<U>{normal<Row>(make, {m})}, normal<Activations<U>>(make, {b, s, m}));
  }
  template <class Given> static auto run(const Given& given) {
    return rms_norm(std::get<0>(given), std::get<1>(given), 1e-2);
  }
  static std::vector<double> loops(const Values& v) {
    return norm_loops(v[1], v[0], nullptr, 1e-2);
  }
};

struct FeedForwardCase {
  static constexpr const char* name = "feed-forward, gelu";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    return std::tuple(FeedForward<U>::like(make, m, h), normal<Activations<U>>(make, {b, s, m}));
  }
  template <class Given> static auto run(const Given& given) {
    return feed_forward(std::get<0>(given), std::get<1>(given), fn::Gelu{});
  }
  static std::vector<double> loops(const Values& v) {
    std::vector<double> y = product(v[4], v[0], v[1]);
    for (double& one : y) one = gelu_of(one);
    return product(y, v[2], v[3]);
  }
};
struct GatedCase {
  static constexpr const char* name = "feed-forward, SwiGLU";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    return std::tuple(GatedFeedForward<U>::like(make, m, h),
                      normal<Activations<U>>(make, {b, s, m}));
  }
  template <class Given> static auto run(const Given& given) {
    return feed_forward(std::get<0>(given), std::get<1>(given), fn::Silu{});
  }
  static std::vector<double> loops(const Values& v) {
    const std::vector<double> none(h), gate = product(v[3], v[0], none);
    std::vector<double> y = product(v[3], v[1], none);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] *= gate[i] / (1 + std::exp(-gate[i]));
    return product(y, v[2], std::vector<double>(m));
  }
};

struct RotaryCase {
  static constexpr const char* name = "rotary";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    return std::tuple(
        normal<typename U::template Tensor<logical::batch, logical::sequence, logical::groups,
                                           logical::head_dim>>(make, {b, s, 3, 4}));
  }
  template <class Given> static auto run(const Given& given) {
    return rotary(std::get<0>(given), 2, 100);
  }
  static std::vector<double> loops(const Values& v) {
    std::vector<double> y = v[0];
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t j = i % 4, place = i / 12 % static_cast<std::size_t>(s) + 2;
      const double angle = double(place) * std::pow(100.0, -double(j % 2) / 2);
      y[i] = v[0][i] * std::cos(angle) + (j < 2 ? -v[0][i + 2] : v[0][i - 2]) * std::sin(angle);
    }
    return y;
  }
};

struct DropoutCase {
  static constexpr const char* name = "dropout";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    return std::tuple(normal<Activations<U>>(make, {b, s, m}));
  }
  template <class Given> static auto run(const Given& given) {
    return dropout(std::get<0>(given), Dropout{.rate = 0.3, .seed = 4, .step = 2}.at(1));
  }
  static std::vector<double> loops(const Values& v) {
    const Dropout drop = Dropout{.rate = 0.3, .seed = 4, .step = 2}.at(1);
    std::vector<double> y = v[0];
    for (std::size_t i = 0; i < y.size(); ++i) {
      const auto w = detail::random_words(static_cast<Index>(i), 40,
                                          Dropout::mixed(drop.seed ^ Dropout::mixed(drop.step)));
      const double u = detail::unit_interval(detail::join_words(w.word[0], w.word[1]));
      y[i] = u < 0.3 ? 0 : y[i] / 0.7;
    }
    return y;
  }
};
}  // namespace

TEST_CASE("layers equal plain loops, and their gradients differences, under all rules") {
  check_layer<DenseCase>();
  check_layer<EmbeddingCase>();
  check_layer<LayerNormCase>();
  check_layer<RmsNormCase>();
  check_layer<FeedForwardCase>();
  check_layer<GatedCase>();
  check_layer<RotaryCase>();
  check_layer<DropoutCase>();
}
