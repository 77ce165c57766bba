// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layers against plain loops, central differences, and themselves on other meshes.
#include <array>
#include <cstdint>

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
  /// From the definitions: SplitMix64 and Philox 4x32-10, written out here.
  static std::uint64_t split_mix(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }
  static std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c, std::uint64_t key) {
    std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p = std::uint64_t{0xD2511F53u} * c[0],
                          q = std::uint64_t{0xCD9E8D57u} * c[2];
      c = {static_cast<std::uint32_t>(q >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(q),
           static_cast<std::uint32_t>(p >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p)};
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return c;
  }
  static std::vector<double> loops(const Values& v) {
    const std::uint64_t place = split_mix(4 ^ split_mix(1 + 1)),
                        key = split_mix(place ^ split_mix(2));
    std::vector<double> y = v[0];
    for (std::size_t i = 0; i < y.size(); ++i) {
      const auto w = philox({static_cast<std::uint32_t>(i), 0, 40, 0}, key);
      const double u = std::ldexp(double((std::uint64_t{w[0]} << 32 | w[1]) >> 11), -53);
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

TEST_CASE("dropout drops its rate of the elements, others for each seed, step and place") {
  run_loopback(4, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 2);
    constexpr Index n = 200;
    const auto x = ones<ShardedTensor<double, Grid, P<data, model>>>(mesh, n, n);
    constexpr double rate = 0.3, all = double(n * n);
    const auto dropped = [&](const Dropout& drop) {
      std::vector<bool> gone;
      bool right = true;
      for (const double y : to_host(dropout(x, drop)).values) {
        gone.push_back(y == 0);
        right = right && (y == 0 || std::fabs(y - 1 / (1 - rate)) < 1e-15);
      }
      CHECK(right);
      return gone;
    };
    const std::vector<bool> first = dropped(Dropout{.rate = rate, .seed = 1, .step = 1}.at(1));
    for (const auto& [seed, step, place] :
         {std::array<std::uint64_t, 3>{2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {1, 1, 1}}) {
      const std::vector<bool> other =
          dropped(Dropout{.rate = rate, .seed = seed, .step = step}.at(place));
      double one = 0, both = 0, next = 0;
      for (std::size_t i = 0; i < other.size(); ++i) {
        one += other[i];
        both += other[i] && first[i];
        next += other[i] && other[(i + 1) % other.size()];
      }
      const bool same = seed == 1 && step == 1 && place == 1;
      // Five deviations of the counts of independent elements.
      const auto near = [&](double count, double p) {
        return std::fabs(count - all * p) < 5 * std::sqrt(all * p * (1 - p));
      };
      CHECK(near(one, rate));
      CHECK(near(both, same ? rate : rate * rate));
      CHECK(near(next, rate * rate));
      CHECK((other == first) == same);
    }
  });
}
