// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cross-entropy, batch norm and the convolution block against plain loops, central differences, and
// themselves on other meshes; what a model is at the start.
#include "nn/layer_cases.hpp"

namespace {
using namespace nn_test;

struct CrossEntropyCase {
  static constexpr const char* name = "cross-entropy of the tokens that count";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    using Scores =
        typename U::template Tensor<logical::batch, logical::sequence, logical::vocabulary>;
    return std::tuple(normal<Scores>(make, {5, 4, 11}), Mark<U>{});
  }
  /// Says the rules, of which scores alone know too little.
  template <class U> struct Mark { static constexpr auto fields = Fields<>{}; };
  template <class X, class U> static auto run(const std::tuple<X, Mark<U>>& given) {
    const auto mesh = mesh_of(std::get<0>(given));
    const auto targets = from_function<TokenIds<U>>(mesh, {5, 4}, Ids{11});
    const auto valid =
        from_function<typename U::template Of<bool, logical::batch, logical::sequence>>(
            mesh, {5, 4}, SomeTrue{});
    return mean_where(cross_entropy(std::get<0>(given), targets), valid);
  }
  static std::vector<double> loops(const Values& v) {
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < 20; ++i) {
      if (i % 5 == 1) continue;
      double total = 0;
      for (std::size_t k = 0; k < 11; ++k) total += std::exp(v[0][i * 11 + k]);
      sum += std::log(total) - v[0][i * 11 + (i * 7 + 3 + i / 4) % 11];
      ++count;
    }
    return {sum / count};
  }
};

struct SmoothedCase : CrossEntropyCase {
  static constexpr const char* name = "smoothed cross-entropy with z";
  template <class X, class U> static auto run(const std::tuple<X, Mark<U>>& given) {
    const auto mesh = mesh_of(std::get<0>(given));
    return cross_entropy(std::get<0>(given), from_function<TokenIds<U>>(mesh, {5, 4}, Ids{11}),
                         {.smoothing = 0.2, .z = 0.3});
  }
  static std::vector<double> loops(const Values& v) {
    std::vector<double> losses;
    for (std::size_t i = 0; i < 20; ++i) {
      double total = 0, sum = 0;
      for (std::size_t k = 0; k < 11; ++k) total += std::exp(v[0][i * 11 + k]);
      total = std::log(total);
      for (std::size_t k = 0; k < 11; ++k) sum += total - v[0][i * 11 + k];
      const double hit = total - v[0][i * 11 + (i * 7 + 3 + i / 4) % 11];
      losses.push_back(0.8 * hit + 0.2 * sum / 11 + 0.3 * total * total);
    }
    return losses;
  }
};

/// Batch norm by loops, of rows of `n` channels.
std::vector<double> batch_norm_loops(const std::vector<double>& x, const std::vector<double>& scale,
                                     const std::vector<double>& bias) {
  const std::size_t n = scale.size(), rows = x.size() / n;
  std::vector<double> y(x.size());
  for (std::size_t j = 0; j < n; ++j) {
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < rows; ++i) mean += x[i * n + j] / double(rows);
    for (std::size_t i = 0; i < rows; ++i)
      variance += std::pow(x[i * n + j] - mean, 2) / double(rows);
    for (std::size_t i = 0; i < rows; ++i)
      y[i * n + j] = (x[i * n + j] - mean) / std::sqrt(variance + 1e-2) * scale[j] + bias[j];
  }
  return y;
}
struct BatchNormCase {
  static constexpr const char* name = "batch norm";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    using Row = typename U::template Tensor<logical::embed>;
    return std::tuple(BatchNorm<U, logical::embed>{normal<Row>(make, {6}), normal<Row>(make, {6})},
                      normal<Activations<U>>(make, {5, 4, 6}));
  }
  template <class Given> static auto run(const Given& given) {
    return batch_norm(std::get<0>(given), std::get<1>(given), 1e-2).y;
  }
  static std::vector<double> loops(const Values& v) { return batch_norm_loops(v[2], v[0], v[1]); }
};

struct ConvolutionCase {
  static constexpr const char* name = "convolution, batch norm, tanh";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    auto block = ConvolutionBlock<U>::like(make, {3, 3}, 2, 3);
    block.norm.bias = normal<std::decay_t<decltype(block.norm.bias)>>(make, {3});
    using Images =
        typename U::template Tensor<logical::batch, logical::sequence, _, logical::in_channels>;
    return std::tuple(block, normal<Images>(make, {3, 4, 5, 2}));
  }
  template <class Given> static auto run(const Given& given) {
    return convolution_block(std::get<0>(given), std::get<1>(given),
                             {.low = {1, 1}, .high = {1, 1}}, fn::Tanh{}, 1e-2)
        .y;
  }
  static std::vector<double> loops(const Values& v) {
    std::vector<double> y;
    for (int n = 0; n < 3; ++n)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 5; ++j)
          for (int o = 0; o < 3; ++o) {
            double sum = 0;
            for (int k = -1; k <= 1; ++k)
              for (int l = -1; l <= 1; ++l)
                for (int c = 0; c < 2; ++c)
                  if (i + k >= 0 && i + k < 4 && j + l >= 0 && j + l < 5)
                    sum += v[3][std::size_t(((n * 4 + i + k) * 5 + j + l) * 2 + c)] *
                           v[0][std::size_t((((k + 1) * 3 + l + 1) * 2 + c) * 3 + o)];
            y.push_back(sum);
          }
    y = batch_norm_loops(y, v[1], v[2]);
    for (double& one : y) one = std::tanh(one);
    return y;
  }
};
}  // namespace

TEST_CASE("losses and batch norm equal plain loops, and gradients differences, under all rules") {
  check_layer<CrossEntropyCase>();
  check_layer<SmoothedCase>();
  check_layer<BatchNormCase>();
  check_layer<ConvolutionCase>();
}

TEST_CASE(
    "cross-entropy with z, or of tokens that are left out, is a number where scores are not") {
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    using U = On<TensorParallel<data, model>>;
    using Scores =
        typename U::template Tensor<logical::batch, logical::sequence, logical::vocabulary>;
    const auto scores = map_with_index(
        [](const GlobalIndex& i, double) { return i[2] == 3 ? -INFINITY : double(i.linear() % 7); },
        zeros<Scores>(mesh, {2, 3, 5}));
    const auto hit = full<TokenIds<U>>(mesh, {2, 3}, 1),
               missed = full<TokenIds<U>>(mesh, {2, 3}, 3);
    const auto plain = to_host(cross_entropy(scores, hit)),
               with_z = to_host(cross_entropy(scores, hit, {.z = 0.5}));
    const auto even =
        to_host(cross_entropy(map(fn::FinitePart{}, scores), missed, {.smoothing = 1}));
    for (std::size_t i = 0; i < plain.values.size(); ++i) {
      double total = 0, sum = 0;
      for (std::size_t v = 0; v < 5; ++v)
        if (v != 3) total += std::exp(double((5 * i + v) % 7)), sum += double((5 * i + v) % 7);
      CHECK(with_z.values[i] ==
            doctest::Approx(plain.values[i] + 0.5 * std::pow(std::log(total), 2)));
      CHECK(even.values[i] == doctest::Approx(std::log(total + 1) - sum / 5));
    }
    CHECK_THROWS_WITH_AS((void)cross_entropy(scores, hit, {.smoothing = 1.5}),
                         doctest::Contains("smoothing of 1.5"), UsageError);
    CHECK_THROWS_WITH_AS((void)cross_entropy(scores, hit, {.z = -1}), doctest::Contains("z of -1"),
                         UsageError);
  });
}

TEST_CASE("batch norm's statistics, and what it is after training") {
  on_mesh(3, 2, [](const ProcessMesh<Grid>& mesh) {
    using U = On<SequenceSplit<data, model>>;
    Parameters<Grid> make(mesh, 5);
    const auto norm = BatchNorm<U, logical::embed>::like(make, 6);
    const auto x = normal<Activations<U>>(make, {5, 4, 6});
    const auto [y, mean_of, variance_of] = batch_norm(norm, x);
    CHECK(worst(to_host(mean_of).values, to_host(mean<"bsm->m">(x)).values) < 1e-13);
    CHECK(worst(to_host(variance_of).values, to_host(variance<"bsm->m">(x)).values) < 1e-13);
    const BatchStatistics<U, logical::embed> now{mean_of, variance_of};
    CHECK(worst(to_host(batch_norm(norm, now, x)).values, to_host(y).values) < 1e-13);
    const auto moved = now.moved({zeros_like(mean_of), zeros_like(mean_of)}, 0.75);
    CHECK(worst(to_host(moved.mean).values, to_host(0.75 * mean_of).values) < 1e-15);
  });
}

TEST_CASE("running statistics of half types stay between what they are moved from and to") {
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    const auto of = [&]<class T>(T) {
      using U = Under<T, Grid, TwoDimensional<data, model>>;
      using Row = typename U::template Tensor<logical::embed>;
      const auto row = [&](double x) { return full<Row>(mesh, {6}, T(x)); };
      BatchStatistics<U, logical::embed> running{row(1), row(2)};
      const BatchStatistics<U, logical::embed> batch{row(1), row(2)}, far{row(0), row(-2)};
      for (int step = 0; step < 100; ++step) running = running.moved(batch, 0.999);
      for (const T m : to_host(running.mean).values) CHECK(m == T(1.0));
      for (const T v : to_host(running.variance).values) CHECK(v == T(2.0));
      const auto moved = running.moved(far, 0.99);
      for (const T m : to_host(moved.mean).values) CHECK(m == T(0.99));
      for (const T v : to_host(moved.variance).values) CHECK(v == T(1.96));
    };
    of(half{});
    of(bfloat16{});
  });
}

TEST_CASE("gradients of gradients of norms and cross-entropy") {
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    using U = On<TwoDimensional<data, model>>;
    Parameters<Grid> make(mesh, 5);
    const auto norm = LayerNorm<U>::like(make, 6);
    const auto x = normal<Activations<U>>(make, {3, 4, 6}),
               along = normal<Activations<U>>(make, {3, 4, 6});
    const auto ids = from_function<TokenIds<U>>(mesh, {3, 4}, Ids{6});
    const auto f = [&](const auto& v) {
      return mean(cross_entropy(layer_norm(norm, v, 0.1), ids));
    };
    const auto slope = [&](const auto& v) { return sum(value_and_grad(f)(v).gradient * along); };
    const auto second = to_host(value_and_grad(slope)(x).gradient).values;
    const auto difference = to_host(1e4 * 0.5 *
                                    (value_and_grad(f)(x + 1e-4 * along).gradient -
                                     value_and_grad(f)(x - 1e-4 * along).gradient));
    CHECK(worst(second, difference.values) < 1e-8);
  });
}

namespace {
/// Compares a Hessian times a direction with differences of gradients: of a norm by x and by its
/// scale.
template <class X, class Row, class Norm>
void check_second(const ProcessMesh<Grid>& mesh, const Norm& norm) {
  const auto x = random_normal<X>(mesh, {3, 4, 6}, 5), along = random_normal<X>(mesh, {3, 4, 6}, 6);
  const auto weights = random_normal<X>(mesh, {3, 4, 6}, 7);
  const auto scale = random_normal<Row>(mesh, {6}, 8), across = random_normal<Row>(mesh, {6}, 9);
  const auto f = [&](const X& v, const Row& s) {
    const auto y = norm(v, s);
    return sum(y * y * y * weights);
  };
  const auto slope = [&](const X& v, const Row& s) {
    const auto [by_x, by_scale] = value_and_grad<0, 1>(f)(v, s).gradient;
    return sum(by_x * along) + sum(by_scale * across);
  };
  const auto [x2, s2] = value_and_grad<0, 1>(slope)(x, scale).gradient;
  const auto at = [&](double step) {
    return value_and_grad<0, 1>(f)(x + step * along, scale + step * across).gradient;
  };
  const auto [x_up, s_up] = at(1e-4);
  const auto [x_down, s_down] = at(-1e-4);
  CHECK(worst(to_host(x2).values, to_host(5e3 * (x_up - x_down)).values) < 1e-6);
  CHECK(worst(to_host(s2).values, to_host(5e3 * (s_up - s_down)).values) < 1e-6);
}
/// The same gradients where the norm is written into a tensor.
template <class X, class Row, class Norm>
void check_written(const ProcessMesh<Grid>& mesh, const Norm& norm) {
  const auto x = random_normal<X>(mesh, {3, 4, 6}, 5),
             weights = random_normal<X>(mesh, {3, 4, 6}, 7);
  const auto scale = random_normal<Row>(mesh, {6}, 8);
  const auto f = [&](const X& v, const Row& s) {
    const auto y = norm(v, s);
    return sum(y * y * y * weights);
  };
  const auto written = [&](const X& v, const Row& s) {
    auto y = zeros_like(v);
    into(y, [&] { return norm(v, s); });
    return sum(y * y * y * weights);
  };
  const auto [x1, s1] = value_and_grad<0, 1>(f)(x, scale).gradient;
  const auto [x3, s3] = value_and_grad<0, 1>(written)(x, scale).gradient;
  CHECK(worst(to_host(x3).values, to_host(x1).values) < 1e-12);
  CHECK(worst(to_host(s3).values, to_host(s1).values) < 1e-12);
}
}  // namespace

TEST_CASE("second derivatives of norms, and gradients of norms that are written into tensors") {
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    const auto centred = [](const auto& v, const auto& s) { return layer_norm(v, s, s, 0.3); };
    const auto by_size = [](const auto& v, const auto& s) { return rms_norm(v, s, 0.3); };
    using Whole = ShardedTensor<double, Grid, P<data, _, _>>;
    using Split = ShardedTensor<double, Grid, P<data, _, model>>;
    using Row = ShardedTensor<double, Grid, P<_>>;
    using Part = ShardedTensor<double, Grid, P<model>>;
    check_second<Whole, Row>(mesh, centred);
    check_second<Split, Row>(mesh, centred);
    check_second<Split, Part>(mesh, centred);
    check_second<Whole, Part>(mesh, by_size);
    check_second<Split, Part>(mesh, by_size);
    check_written<Whole, Row>(mesh, centred);
    check_written<Split, Part>(mesh, by_size);
    const auto moved = [](const auto& v, const auto& s) {
      return reshard<P<data, _, model>>(layer_norm<P<_, data, _>>(v, s, s, 0.3));
    };
    check_second<Split, Part>(mesh, moved);
  });
}

TEST_CASE("parameters are the same on every mesh, and as they are said to be") {
  std::vector<double> whole;
  for (const auto& [rows, columns] : {std::pair{1, 1}, {3, 2}})
    on_mesh(rows, columns, [&](const ProcessMesh<Grid>& mesh) {
      using X = ShardedTensor<double, Grid, P<data, model>>;
      Parameters<Grid> make(mesh, 12);
      const auto normal = make.tensor<X>({100, 90}, Initializer::fan_in(100));
      const auto cut = make.tensor<X>({100, 90}, Initializer::truncated_normal(0.5));
      const auto even = make.tensor<X>({100, 90}, Initializer::uniform(-1, 3));
      std::vector<double> all;
      append(all, std::tuple(normal, cut, even));
      const double deviation = value(standard_deviation(normal)), mean_of = value(mean(normal)),
                   of_cut = value(standard_deviation(cut)), most = value(max(abs(cut))),
                   lo = value(min(even)), hi = value(max(even)), middle = value(mean(even));
      if (mesh.process() != 0) return;
      CHECK(std::fabs(deviation - 0.1) < 0.003);
      CHECK(std::fabs(mean_of) < 0.003);
      CHECK(std::fabs(of_cut - 0.5) < 0.01);
      CHECK(most < 1 / 0.8796);
      CHECK(lo >= -1);
      CHECK(lo < -0.99);
      CHECK(hi < 3);
      CHECK(std::fabs(middle - 1) < 0.05);
      if (whole.empty()) whole = all;
      CHECK(all == whole);
    });
}

TEST_CASE("dropout of a wrong rate says so, and of rate 0 is the tensor itself") {
  const auto mesh = dry_mesh<Grid>(2, 2);
  const auto x = zeros<ShardedTensor<float, Grid, P<data, _>>>(mesh, 4, 4);
  CHECK_THROWS_WITH_AS(dropout(x, {.rate = 1}), doctest::Contains("no probability below 1"),
                       UsageError);
  CHECK(dropout(x, {}).core().storage() == x.core().storage());
}
