// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Masks choose: what is masked may be NaN, infinite or as large as there is, and changes neither
// values nor gradients. Attention against plain loops, all ways; the mean of the losses that count.
#include "nn/layer_cases.hpp"

namespace {
using namespace nn_test;

template <class U> struct Heads {
  using Q = typename U::template Tensor<logical::batch, logical::sequence, logical::groups,
                                        logical::repeats, logical::head_dim>;
  using K = typename U::template Tensor<logical::batch, logical::sequence, logical::groups,
                                        logical::head_dim>;
  Q q;
  K k, v;
  std::optional<RelativeBias<U>> bias = {};
  static constexpr auto fields = Fields<&Heads::q, &Heads::k, &Heads::v, &Heads::bias>{};
};
constexpr Index buckets = 6, farthest = 5;
constexpr Index texts = 3, places = 5, groups = 2, repeats = 2, elements = 4;

/// Whether a key is valid: of text 1 all but the first two are not, of text 2 none is.
struct Valid {
  KOKKOS_FUNCTION bool operator()(const GlobalIndex& i) const {
    return i[0] == 0 ? i[1] % 2 == 1 : i[0] == 1 && i[1] < 2;
  }
};
/// Small numbers, with others at masked keys.
template <class T> struct Numbers {
  double masked;
  int seed;
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    const Index n = i.linear() * 5 + seed;
    const bool spoilt = i.size() == 4 && !Valid{}(i);
    return static_cast<T>(static_cast<float>(spoilt ? (i[1] % 3 == 0   ? masked
                                                       : i[1] % 3 == 1 ? -masked
                                                                       : 0.5)
                                                    : double(n % 13 - 6) / 4));
  }
};

/// The bucket of a key that comes so far after the query.
Index bucket_of(Index after, bool causal) {
  const Index own = causal ? buckets : buckets / 2, exact = own / 2, n = std::abs(after);
  const Index begin = !causal && after > 0 ? own : 0;
  if (causal && after > 0) return 0;
  if (n < exact) return begin + n;
  const double share =
      std::log(double(n) / double(exact)) / std::log(double(farthest) / double(exact));
  return begin + std::min(exact + static_cast<Index>(share * double(own - exact)), own - 1);
}

/// The heads, and the gradients of a sum of them with weights, by loops in double; in[3], if there
/// is one, is a relative bias.
std::vector<double> by_loops(const Values& in, const std::vector<double>& weights,
                             const AttentionOptions& options) {
  std::vector<double> y(in[0].size()), dq(in[0].size()), dk(in[1].size()), dv(in[2].size()),
      dz(in.size() > 3 ? in[3].size() : 0);
  const auto place_of_bias = [&](Index after, Index g, Index r) {
    return std::size_t((bucket_of(after, options.causal) * groups + g) * repeats + r);
  };
  const auto at = [](Index b, Index s, Index g, Index r) {
    return std::size_t((((b * places + s) * groups + g) * repeats + r) * elements);
  };
  const auto key = [](Index b, Index t, Index g) {
    return std::size_t(((b * places + t) * groups + g) * elements);
  };
  for (Index b = 0; b < texts; ++b)
    for (Index g = 0; g < groups; ++g)
      for (Index r = 0; r < repeats; ++r)
        for (Index s = 0; s < places; ++s) {
          std::vector<std::pair<Index, double>> seen;
          double total = 0, mean = 0;
          const std::size_t q = at(b, s, g, r);
          for (Index t = 0; t < places; ++t) {
            const bool valid = b == 0 ? t % 2 == 1 : b == 1 && t < 2;
            const Index after = t - s - options.first;
            if (!valid || (options.causal && after > 0)) continue;
            if (options.window > 0 && std::abs(after) >= options.window) continue;
            double score = 0;
            for (std::size_t d = 0; d < elements; ++d)
              score += in[0][q + d] * in[1][key(b, t, g) + d];
            if (!dz.empty()) score += in[3][place_of_bias(after, g, r)];
            seen.emplace_back(t, std::exp(score));
            total += std::exp(score);
          }
          for (auto& [t, weight] : seen) {
            weight /= total;
            for (std::size_t d = 0; d < elements; ++d) {
              y[q + d] += weight * in[2][key(b, t, g) + d];
              mean += weight * in[2][key(b, t, g) + d] * weights[q + d];
            }
          }
          for (const auto& [t, weight] : seen) {
            double slope = 0;
            const std::size_t k = key(b, t, g);
            for (std::size_t d = 0; d < elements; ++d) {
              slope += in[2][k + d] * weights[q + d];
              dv[k + d] += weight * weights[q + d];
            }
            if (!dz.empty())
              dz[place_of_bias(t - s - options.first, g, r)] += weight * (slope - mean);
            for (std::size_t d = 0; d < elements; ++d) {
              dq[q + d] += weight * (slope - mean) * in[1][k + d];
              dk[k + d] += weight * (slope - mean) * in[0][q + d];
            }
          }
        }
  for (const auto* part : {&dq, &dk, &dv, &dz}) y.insert(y.end(), part->begin(), part->end());
  return y;
}

const AttentionOptions ways[] = {
    {},
    {.block = 2},
    {.causal = true},
    {.causal = true, .block = 2, .queries = 3},
    {.causal = true, .first = -2},
    {.causal = true, .first = -2, .block = 2, .queries = 1},
    {.causal = true, .first = -9, .block = 2},
    {.window = 2},
    {.window = 3, .block = 2, .queries = 2},
    {.causal = true, .window = 2, .block = 1, .queries = 2},
    {.causal = true, .window = 3},
    {.causal = true, .first = 4, .window = 3, .block = 2, .queries = 1},
    {.first = 9, .window = 2, .block = 2},
};

template <class T, class R>
void check_attention(const ProcessMesh<Grid>& mesh, double masked, bool biased) {
  using U = Under<T, Grid, R>;
  using H = Heads<U>;
  using Mask = typename U::template Of<bool, logical::batch, logical::sequence>;
  const auto numbers = [&](double other, AttentionOptions options) {
    options.farthest = farthest;
    const Extents queries{texts, places, groups, repeats, elements},
        keys{texts, places, groups, elements};
    H given{from_function<typename H::Q>(mesh, queries, Numbers<T>{other, 1}),
            from_function<typename H::K>(mesh, keys, Numbers<T>{other, 2}),
            from_function<typename H::K>(mesh, keys, Numbers<T>{other, 3})};
    if (biased)
      given.bias = RelativeBias<U>{from_function<typename RelativeBias<U>::Table>(
          mesh, {buckets, groups, repeats}, Numbers<T>{0, 5})};
    const auto valid = from_function<Mask>(mesh, {texts, places}, Valid{});
    const auto weights = from_function<typename H::Q>(mesh, queries, Numbers<T>{0, 4});
    const auto [loss, made] = value_and_grad([&](const H& x) {
      const auto y = x.bias ? blocked_attention(x.q, x.k, x.v, options, valid, *x.bias)
                            : blocked_attention(x.q, x.k, x.v, options, valid);
      return std::tuple(sum(cast<double>(y) * cast<double>(weights)), y);
    })(given);
    std::vector<double> all, expected;
    append(all, cast<double>(std::get<1>(loss)));
    for_each_tensor([&](const auto& x) { append(all, cast<double>(x)); }, made);
    Values in;
    for_each_tensor([&](const auto& x) { in.push_back(to_host(cast<double>(x)).values); }, given);
    expected = by_loops(in, to_host(cast<double>(weights)).values, options);
    return std::pair(all, expected);
  };
  for (const AttentionOptions& options : ways) {
    const auto [spoilt, unused] = numbers(masked, options);
    const auto [made, expected] = numbers(0.25, options);
    CAPTURE(biased);
    CAPTURE(options.causal);
    CAPTURE(options.first);
    CAPTURE(options.window);
    CAPTURE(options.block);
    CHECK(spoilt == made);
    const double bound = std::is_same_v<T, bfloat16> ? 6e-2 : std::is_same_v<T, half> ? 1e-2 : 1e-5;
    CHECK(worst(made, expected) < bound);
  }
}
}  // namespace

TEST_CASE("masked keys and values may be anything, in every way of attention") {
  const auto all_types = []<class R>(std::type_identity<R>, int rows, int columns) {
    on_mesh(rows, columns, [](const ProcessMesh<Grid>& mesh) {
      for (const double masked : {double(NAN), double(INFINITY), 3e38})
        for (const bool biased : {false, true}) {
          check_attention<float, R>(mesh, masked, biased);
          check_attention<half, R>(mesh, masked, biased);
          check_attention<bfloat16, R>(mesh, masked, biased);
        }
    });
  };
  all_types(std::type_identity<SequenceSplit<data, model>>{}, 2, 2);
  all_types(std::type_identity<TensorParallel<data, model>>{}, 1, 2);
}

namespace {
/// As Numbers, with others at the last keys, whatever is valid.
template <class T> struct LastSpoilt {
  double last;
  int seed;
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    const bool spoilt = i.size() == 4 && i[1] >= 3 && i[0] != 1;
    return static_cast<T>(
        static_cast<float>(spoilt ? last : double((i.linear() * 5 + seed) % 13 - 6) / 4));
  }
};
template <class T, class R> void check_causal(const ProcessMesh<Grid>& mesh, bool of_keys) {
  using H = Heads<Under<T, Grid, R>>;
  const Extents queries{texts, places, groups, repeats, elements},
      keys{texts, places, groups, elements};
  for (AttentionOptions options : ways) {
    if (!options.causal) continue;
    for (const Index tile : {0, 2}) {
      options.queries = tile;
      const auto numbers = [&](double last) {
        const H given{
            from_function<typename H::Q>(mesh, queries, LastSpoilt<T>{0, 1}),
            from_function<typename H::K>(mesh, keys, LastSpoilt<T>{of_keys ? last : 0, 2}),
            from_function<typename H::K>(mesh, keys, LastSpoilt<T>{of_keys ? 0 : last, 3})};
        const auto made = value_and_grad([&](const H& x) {
          const auto y = blocked_attention(x.q, x.k, x.v, options);
          // Those of the first three queries, and of the text whose keys are all finite.
          const auto seen = map_with_index(
              [first = options.first](const GlobalIndex& i, T one) {
                return i[0] == 1 || i[1] + first < 3 ? one : T{};
              },
              stop_gradient(y));
          const auto weight = map_with_index(
              [first = options.first](const GlobalIndex& i, T) {
                return T(i[0] == 1 || i[1] + first < 3 ? 1.0f : 0.0f);
              },
              stop_gradient(y));
          const auto loss =
              custom_gradient([seen](const auto&) { return sum(seen); },
                              [weight](const auto& dy, const auto&) {
                                return map<",bsgrd->bsgrd">(fn::Multiply{}, dy, weight);
                              })(y);
          return std::tuple(loss, seen, y);
        })(given);
        std::vector<double> all;
        append(all, cast<double>(std::get<1>(made.value)));
        for_each_tensor([&](const auto& x) { append(all, cast<double>(x)); }, made.gradient);
        return std::pair(all, to_host(cast<double>(std::get<2>(made.value))).values);
      };
      const auto [spoilt, heads] = numbers(NAN);
      CAPTURE(options.first);
      CAPTURE(options.block);
      CAPTURE(tile);
      CHECK(spoilt == numbers(0).first);
      bool nan = true;  // of those that see them
      for (std::size_t n = 0; n < heads.size(); ++n) {
        const Index s = Index(n) / (groups * repeats * elements) % places,
                    b = Index(n) / (groups * repeats * elements * places);
        nan = nan && std::isnan(heads[n]) == (b != 1 && s + options.first >= 3);
      }
      CHECK(nan);
    }
  }
}
}  // namespace

TEST_CASE("causal attention is not spoilt by what comes later") {
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    for (const bool of_keys : {true, false}) {
      check_causal<float, SequenceSplit<data, model>>(mesh, of_keys);
      check_causal<half, TensorParallel<data, model>>(mesh, of_keys);
    }
  });
}

TEST_CASE("a score below what half types hold does not lose against a masked one") {
  on_mesh(1, 1, [](const ProcessMesh<Grid>& mesh) {
    using H = Heads<Under<half, Grid, Whole>>;
    using Mask = Under<half, Grid, Whole>::Of<bool, logical::batch, logical::sequence>;
    const auto q = full<H::Q>(mesh, {1, 1, 1, 1, 1}, half(-240)),
               expected = full<H::Q>(mesh, {1, 1, 1, 1, 1}, half(7));
    const auto k = full<H::K>(mesh, {1, 2, 1, 1}, half(250)),
               v = full<H::K>(mesh, {1, 2, 1, 1}, half(7));
    const auto valid =
        from_function<Mask>(mesh, {1, 2}, [](const GlobalIndex& i) { return i[1] == 0; });
    for (const AttentionOptions& options : ways)
      if (options.first == 0)
        CHECK(to_host(blocked_attention(q, k, v, options, valid)) == to_host(expected));
  });
}

TEST_CASE("a layer of attention to a text with masked places, and its gradients") {
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    using U = On<TensorParallel<data, model>>;
    Parameters<Grid> make(mesh, 5);
    const auto layer = Attention<U>::like(make, {.embed = 6, .heads = 2});
    const auto x = normal<Activations<U>>(make, {texts, places, 6}),
               context = normal<Activations<U>>(make, {texts, places, 6});
    const auto valid = from_function<U::Of<bool, logical::batch, logical::sequence>>(
        mesh, {texts, places}, Valid{});
    const auto numbers = [&](double masked, const AttentionOptions& options) {
      const auto text = map<"bte,bt->bte">(
          [masked](double one, bool kept) { return kept ? one : masked; }, context, valid);
      std::vector<double> all;
      append(all, value_and_grad([&](const auto& w, const auto& a, const auto& b) {
                    return loss_of(attention(w, a, b, options, valid));
                  })(layer, x, text)
                      .gradient);
      return all;
    };
    for (const AttentionOptions& options : ways)
      CHECK(numbers(NAN, options) == numbers(0, options));
  });
}

TEST_CASE("a text that attends to itself, with masked places, and all gradients") {
  const auto check = []<class R>(std::type_identity<R>, int rows, int columns) {
    on_mesh(rows, columns, [](const ProcessMesh<Grid>& mesh) {
      using U = On<R>;
      Parameters<Grid> make(mesh, 5);
      const auto layer = Attention<U>::like(make, {.embed = 6, .heads = 2});
      const auto x = normal<Activations<U>>(make, {texts, places, 6});
      const auto valid =
          from_function<typename U::template Of<bool, logical::batch, logical::sequence>>(
              mesh, {texts, places}, Valid{});
      const auto numbers = [&](double masked, const AttentionOptions& options) {
        const auto text = map<"bte,bt->bte", typename Activations<U>::spec>(
            [masked](double one, bool kept) { return kept ? one : masked; }, x, valid);
        const auto made = value_and_grad<0, 1>([&](const auto& w, const auto& a) {
          const auto y = attention(w, a, a, options, valid);
          const auto seen = map<"bte,bt->bte", typename Activations<U>::spec>(
              [](double, bool kept) { return kept; }, stop_gradient(x), valid);
          return mean_where(y * y, seen);
        })(layer, text);
        std::vector<double> all;
        append(all, made.value);
        append(all, std::get<0>(made.gradient));
        append(all, std::get<1>(made.gradient));
        return all;
      };
      for (const AttentionOptions& options : ways) {
        const std::vector<double> wanted = numbers(0, options);
        for (const double masked : {double(NAN), -double(INFINITY)})
          CHECK(numbers(masked, options) == wanted);
      }
    });
  };
  check(std::type_identity<TensorParallel<data, model>>{}, 1, 2);
  check(std::type_identity<SequenceSplit<data, model>>{}, 2, 2);
}

namespace {
/// Scores of rows of seven, each fifth of which is not finite.
template <class T> struct Rows {
  bool spoilt;
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    const Index row = i[0] * 4 + i[1];
    if (spoilt && row % 5 == 1) return static_cast<T>(row % 2 == 0 ? NAN : -INFINITY);
    return static_cast<T>(static_cast<float>((i.linear() * 5) % 13) / 8);
  }
};
template <class T> void check_losses(const ProcessMesh<Grid>& mesh) {
  using U = Under<T, Grid, TensorParallel<data, model>>;
  using X = typename U::template Tensor<logical::batch, logical::sequence, logical::vocabulary>;
  using Line = typename U::template Tensor<logical::batch, logical::sequence>;
  const auto valid =
      from_function<typename U::template Of<bool, logical::batch, logical::sequence>>(mesh, {5, 4},
                                                                                      SomeTrue{});
  const auto targets = from_function<TokenIds<U>>(mesh, {5, 4}, Ids{7});
  const auto numbers = [&](bool spoilt) {
    const auto x = from_function<X>(mesh, {5, 4, 7}, Rows<T>{spoilt});
    const auto line = from_function<Line>(mesh, {5, 4}, Rows<T>{spoilt});
    const auto of_scores =
        value_and_grad([&](const X& v) { return mean_where(cross_entropy(v, targets), valid); })(x);
    const auto alone = value_and_grad([&](const Line& v) { return mean_where(v, valid); })(line);
    std::vector<double> all;
    append(all, cast<double>(of_scores.value));
    append(all, cast<double>(of_scores.gradient));
    append(all, cast<double>(alone.value));
    append(all, cast<double>(alone.gradient));
    return all;
  };
  const auto made = numbers(true);
  CHECK(made == numbers(false));
  double total = 0;
  for (Index n = 0; n < 20; ++n)
    if (n % 5 != 1) total += double(n * 5 % 13) / 8;
  CHECK(made[1 + 5 * 4 * 7] == doctest::Approx(total / 16).epsilon(4e-3));
}
}  // namespace

TEST_CASE("rows that do not count may be anything") {
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    check_losses<double>(mesh);
    check_losses<half>(mesh);
    check_losses<bfloat16>(mesh);
    // Counts and sums of halves do not stop at 2048.
    using Line = ShardedTensor<half, Grid, P<data>>;
    const auto ones = full<Line>(mesh, {5000}, half(1));
    const auto all = full<ShardedTensor<bool, Grid, P<data>>>(mesh, {5000}, true);
    CHECK(static_cast<float>(value(mean_where(ones, all))) == 1);
  });
}
