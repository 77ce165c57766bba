// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention against plain loops over heads, central differences, and itself on other meshes: three
// groups of heads over two processes, a text and another one of other length, and masks.
#include "nn/layer_cases.hpp"

namespace {
using namespace nn_test;

/// Attention by loops; valid(b, t) says which keys count.
struct Loops {
  Index b, s, t, m, c, g, r, d;
  bool causal, rotary;
  template <class Valid>
  std::vector<double> operator()(const Values& v, const std::vector<double>& x,
                                 const std::vector<double>& y, const Valid& valid) const {
    const auto at = [](const std::vector<double>& all, Index i) {
      return all[static_cast<std::size_t>(i)];
    };
    std::vector<double> out(static_cast<std::size_t>(b * s * m));
    for (Index i = 0; i < b; ++i)
      for (Index head = 0; head < g * r; ++head) {
        const Index group = head / r;
        const auto part = [&](const std::vector<double>& from, Index n, Index width,
                              const std::vector<double>& weight, Index heads, Index which) {
          std::vector<double> made;
          for (Index p = 0; p < n; ++p)
            for (Index e = 0; e < d; ++e) {
              double sum = 0;
              for (Index k = 0; k < width; ++k)
                sum += at(from, (i * n + p) * width + k) * at(weight, (k * heads + which) * d + e);
              made.push_back(sum);
            }
          return made;
        };
        const auto turned = [&](std::vector<double> q) {
          const std::vector<double> before = q;
          for (std::size_t k = 0; rotary && k < q.size(); ++k) {
            const Index e = static_cast<Index>(k) % d, place = static_cast<Index>(k) / d;
            const double angle =
                double(place) * std::pow(1e4, -double(e % (d / 2)) / double(d / 2));
            const double partner =
                e < d / 2 ? -before[k + std::size_t(d / 2)] : before[k - std::size_t(d / 2)];
            q[k] = before[k] * std::cos(angle) + partner * std::sin(angle);
          }
          return q;
        };
        const auto q = turned(part(x, s, m, v[0], g * r, head));
        const auto key = turned(part(y, t, c, v[1], g, group)), val = part(y, t, c, v[2], g, group);
        for (Index p = 0; p < s; ++p) {
          std::vector<double> weight;
          double total = 0;
          for (Index k = 0; k < t; ++k) {
            double score = 0;
            for (Index e = 0; e < d; ++e) score += at(q, p * d + e) * at(key, k * d + e);
            const bool seen = valid(i, k) && !(causal && k > p);
            weight.push_back(seen ? std::exp(score / std::sqrt(double(d))) : 0);
            total += weight.back();
          }
          for (Index e = 0; e < d; ++e) {
            double made = 0;
            for (Index k = 0; k < t; ++k) made += at(weight, k) / total * at(val, k * d + e);
            for (Index j = 0; j < m; ++j)
              out[static_cast<std::size_t>((i * s + p) * m + j)] +=
                  made * at(v[3], (head * d + e) * m + j);
          }
        }
      }
    return out;
  }
};

struct CausalCase {
  static constexpr const char* name = "causal attention, rotary, two heads a key";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    return std::tuple(
        Attention<U>::like(make, {.embed = 5, .heads = 6, .groups = 3, .head_dim = 4}),
        normal<Activations<U>>(make, {3, 4, 5}));
  }
  template <class Given> static auto run(const Given& given) {
    const auto& x = std::get<1>(given);
    return attention(std::get<0>(given), x, x, {.causal = true, .rotary = true});
  }
  static std::vector<double> loops(const Values& v) {
    return Loops{3, 4, 4, 5, 5, 3, 2, 4, true, true}(v, v[4], v[4],
                                                     [](Index, Index) { return true; });
  }
};
struct CrossCase {
  static constexpr const char* name = "attention to another text, with padding";
  template <class U> static auto arguments(Parameters<Grid>& make) {
    return std::tuple(Attention<U>::like(make, {.embed = 6, .heads = 3, .context = 4}),
                      normal<Activations<U>>(make, {3, 4, 6}),
                      normal<Activations<U>>(make, {3, 5, 4}));
  }
  template <class A, class X> static auto run(const std::tuple<A, X, X>& given) {
    return padded(std::get<0>(given), std::get<1>(given), std::get<2>(given));
  }
  template <class U, class X>
  static auto padded(const Attention<U>& layer, const X& x, const X& context) {
    using Valid = typename U::template Of<bool, logical::batch, logical::sequence>;
    const auto valid = from_function<Valid>(mesh_of(x), {3, 5}, SomeTrue{});
    return attention(layer, x, context, {}, valid);
  }
  static std::vector<double> loops(const Values& v) {
    return Loops{3, 4, 5, 6, 4, 3, 1, 2, false, false}(
        v, v[4], v[5], [](Index i, Index k) { return (i * 5 + k) % 5 != 1; });
  }
};
}  // namespace

TEST_CASE("attention equals plain loops, and its gradients differences, under all rules") {
  check_layer<CausalCase>();
  check_layer<CrossCase>();
}

TEST_CASE("a query whose keys are all masked gets zeros, and passes no gradient on") {
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    using U = On<TensorParallel<data, model>>;
    Parameters<Grid> make(mesh, 5);
    const auto layer = Attention<U>::like(make, {.embed = 6, .heads = 3});
    const auto x = normal<Activations<U>>(make, {3, 4, 6});
    const auto none = zeros<U::Of<bool, logical::batch, logical::sequence>>(mesh, 3, 4);
    const auto f = [&](const auto& given) {
      return loss_of(attention(layer, given, given, {.causal = true}, none));
    };
    const auto [loss, gradient] = value_and_grad(f)(x);
    CHECK(value(loss) == 0);
    CHECK(value(max(abs(gradient))) == 0);
  });
}

TEST_CASE("attention of wrong sizes says so") {
  const auto mesh = dry_mesh<Grid>(2, 2);
  using U = On<Whole>;
  Parameters<Grid> make(mesh, 5);
  CHECK_THROWS_WITH_AS(Attention<U>::like(make, {.embed = 6, .heads = 4, .groups = 3}),
                       doctest::Contains("4 heads in groups: 3"), UsageError);
  CHECK_THROWS_WITH_AS(Attention<U>::like(make, {.embed = 6, .heads = 4}),
                       doctest::Contains("6 elements in heads: 4"), UsageError);
  const auto x = make.tensor<U::Tensor<_, _, _, _>>({2, 3, 2, 3}, Initializer::zeros());
  CHECK_THROWS_WITH_AS(rotary(x), doctest::Contains("has 3 elements"), ShapeError);
}
