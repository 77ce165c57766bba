// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Decoding with kept keys and values: the scores of whole texts, however they are read, under rules
// that split heads, batch or places.
#include <algorithm>
#include <numeric>

#include <tessera/nn/decoding/generate.hpp>

#include "nn/decoder_case.hpp"
#include "support/few_meshes.hpp"

namespace {
using namespace nn_test;

using ByHeads = TensorParallel<data, model>;
using ByBatch = DataParallel<Axes<data, model>>;
using ByPlaces = LayerRules<AxisRule<logical::batch, data>, AxisRule<logical::cache, model>>;
using InTwo = TwoDimensional<data, model>;
template <class Run> void under_each_rules(const Run& run) {
  run(std::type_identity<ByHeads>{});
  run(std::type_identity<ByBatch>{});
  run(std::type_identity<ByPlaces>{});
  run(std::type_identity<InTwo>{});
}

/// The scores of whole texts, (batch, sequence, vocabulary), and those of the same texts read in
/// steps; each row of `steps` are the numbers of tokens that are read at once.
template <class R>
std::string read_on(const ProcessMesh<Grid>& mesh, const AttentionOptions& attention) {
  using U = On<R>;
  const Index batch = 5, sequence = 7, places = 9;
  Parameters<Grid> make(mesh, 3);
  DecoderSizes sizes = ragged_decoder;
  sizes.places = places;
  const auto model = Decoder<U>::like(make, sizes);
  using Tokens = TokenIds<U>;
  const auto ids = from_function<Tokens>(mesh, {batch, sequence}, ::nn_test::Ids{sizes.vocabulary});
  const auto numbers = to_host(ids);
  const auto whole = to_host(next_tokens(model, ids, {.attention = attention}));
  for (const std::vector<Index>& steps :
       {std::vector<Index>{1, 1, 1, 1, 1, 1, 1}, {7}, {3, 1, 3}, {2, 5}}) {
    auto kept = DecoderCache<U>::like(mesh, model, batch, places);
    Index from = 0;
    for (const Index count : steps) {
      std::vector<std::int32_t> some,
          last(static_cast<std::size_t>(batch), static_cast<std::int32_t>(count - 1));
      std::vector<std::vector<Index>> at(static_cast<std::size_t>(batch));
      for (Index b = 0; b < batch; ++b)
        for (Index i = 0; i < count; ++i) {
          some.push_back(static_cast<std::int32_t>(numbers(b, from + i)));
          at[static_cast<std::size_t>(b)].push_back(from + i);
        }
      using Row = typename U::template Of<std::int32_t, logical::batch>;
      using Block = typename U::template Of<std::int32_t, logical::batch, logical::sequence>;
      const auto scores = to_host(decode(model, kept, from_host<Block>(mesh, {batch, count}, some),
                                         NewPlaces<U>::at(mesh, at, places),
                                         from_host<Row>(mesh, {batch}, last), attention));
      from += count;
      for (Index b = 0; b < batch; ++b)
        for (Index v = 0; v < sizes.vocabulary; ++v)
          if (const double by = std::abs(static_cast<double>(scores(b, v)) -
                                         static_cast<double>(whole(b, from - 1, v)));
              !(by < 1e-12))
            return "text " + std::to_string(b) + " at " + std::to_string(from) + " differs by " +
                   std::to_string(by);
    }
  }
  return "";
}
}  // namespace

TEST_CASE("decoding: tokens one by one, or some at once, have the scores of whole texts") {
  for (const AttentionOptions& attention :
       {AttentionOptions{}, AttentionOptions{.rotary = true}, AttentionOptions{.window = 3}})
    under_each_rules([&](auto rules) {
      using R = typename decltype(rules)::type;
      support::on_few_meshes([&](const ProcessMesh<Grid>& mesh) {
        const std::string wrong = read_on<R>(mesh, attention);
        CHECK_MESSAGE(wrong.empty(), wrong);
      });
    });
}

TEST_CASE("decoding: attention with biases and fewer keys than queries is that of all at once") {
  under_each_rules([](auto rules) {
    using R = typename decltype(rules)::type;
    support::on_few_meshes([](const ProcessMesh<Grid>& mesh) {
      using U = On<R>;
      Parameters<Grid> make(mesh, 3);
      auto layer = Attention<U>::like(make, {.embed = 12, .heads = 6, .groups = 2, .bias = true});
      for_each_tensor(
          [&](auto& weight) {
            weight = random_normal<std::decay_t<decltype(weight)>>(mesh, weight.extents(), 8);
          },
          layer);
      using X = Activations<U>;
      const auto x = random_normal<X>(mesh, {3, 5, 12}, 5);
      const auto whole = to_host(attention(layer, x, x, {.causal = true}));
      auto kept =
          KeyValueCache<U>::like(mesh, {.batch = 3, .places = 6, .groups = 2, .head_dim = 2});
      Index from = 0;
      for (const Index count : {2, 1, 2}) {
        std::vector<std::vector<Index>> places(3);
        for (auto& row : places)
          for (Index i = 0; i < count; ++i) row.push_back(from + i);
        const auto y = to_host(cached_attention(layer, X(slice<1>(x, {from}, {from + count})), kept,
                                                NewPlaces<U>::at(mesh, places, 6)));
        for (Index b = 0; b < 3; ++b)
          for (Index i = 0; i < count; ++i)
            for (Index m = 0; m < 12; ++m)
              CHECK(y(b, i, m) == doctest::Approx(whole(b, from + i, m)).epsilon(1e-12));
        from += count;
      }
    });
  });
}

TEST_CASE("decoding: what is sent does not grow with what is kept, and a cache lies where it lay") {
  under_each_rules([](auto rules) {
    using R = typename decltype(rules)::type;
    support::on_few_meshes([](const ProcessMesh<Grid>& mesh) {
      using U = On<R>;
      Parameters<Grid> make(mesh, 3);
      const auto layer = Attention<U>::like(make, {.embed = 16, .heads = 4});
      using X = Activations<U>;
      const auto x = random_normal<X>(mesh, {4, 1, 16}, 5);
      const auto step = [&](Index places) {
        auto kept = KeyValueCache<U>::like(
            mesh, {.batch = 4, .places = places, .groups = 4, .head_dim = 4});
        const auto at = NewPlaces<U>::at(mesh, {{1}, {2}, {0}, {3}}, places);
        const void* const memory = kept.keys.core().read();
        mesh.ledger().reset();
        (void)cached_attention(layer, x, kept, at);
        CHECK(kept.keys.core().read() == memory);
        return mesh.ledger().total().payload_bytes;
      };
      CHECK(step(6) == step(600));
    });
  });
}

namespace {
/// The next token by plain loops.
std::int32_t drawn(std::vector<double> scores, const Sampling& how, std::int32_t text,
                   std::int32_t place) {
  const auto largest = [&] {
    return static_cast<std::int32_t>(std::max_element(scores.begin(), scores.end()) -
                                     scores.begin());
  };
  if (how.temperature == 0) return largest();
  for (double& x : scores) x /= how.temperature;
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  if (how.top_k > 0)
    for (std::size_t i = static_cast<std::size_t>(how.top_k); i < order.size(); ++i)
      scores[order[i]] = -INFINITY;
  double sum = 0, before = 0;
  for (const double x : scores) sum += std::exp(x - scores[order[0]]);
  for (const std::size_t i : order) {
    const double p = std::exp(scores[i] - scores[order[0]]) / sum;
    if (before >= how.top_p) scores[i] = -INFINITY;
    before += p;
  }
  const fn::WithGumbel gumbel{how.seed};
  for (std::size_t i = 0; i < scores.size(); ++i)
    scores[i] = gumbel(GlobalIndex{{0, static_cast<Index>(i)}, 0, 2}, scores[i], text, place);
  return largest();
}
const std::vector<TextRequest> some_requests{
    {{3, 1, 4, 1, 5}, 4}, {{9}, 7},       {{2, 6, 5, 3, 5, 8, 9}, 1},
    {{7, 9}, 0},          {{3, 2, 3}, 6}, {{8}, 3}};

/// The texts, each by itself, from the scores of whole texts.
template <class U>
std::vector<std::vector<std::int32_t>> one_by_one(const ProcessMesh<Grid>& mesh,
                                                  const Decoder<U>& model,
                                                  const GenerateOptions& options) {
  std::vector<std::vector<std::int32_t>> all;
  for (std::size_t r = 0; r < some_requests.size(); ++r) {
    std::vector<std::int32_t> text = some_requests[r].begin;
    all.emplace_back();
    while (static_cast<Index>(all[r].size()) < some_requests[r].most) {
      const auto n = static_cast<Index>(text.size());
      const auto scores = to_host(next_tokens(model, from_host<TokenIds<U>>(mesh, {1, n}, text)));
      std::vector<double> own;
      for (Index v = 0; v < scores.extents[2]; ++v) own.push_back(scores(0, n - 1, v));
      text.push_back(
          drawn(own, options.sampling, static_cast<std::int32_t>(r), static_cast<std::int32_t>(n)));
      all[r].push_back(text.back());
      if (text.back() == options.end) break;
    }
  }
  return all;
}
}  // namespace

TEST_CASE("decoding: texts that enter and leave are those of each by itself") {
  const std::vector<Sampling> ways{{.temperature = 0},
                                   {.seed = 5},
                                   {.temperature = 0.3, .seed = 6},
                                   {.top_k = 3, .seed = 7},
                                   {.temperature = 1.5, .top_k = 6, .top_p = 0.7, .seed = 8}};
  under_each_rules([&](auto rules) {
    using R = typename decltype(rules)::type;
    support::on_few_meshes([&](const ProcessMesh<Grid>& mesh) {
      using U = On<R>;
      Parameters<Grid> make(mesh, 3);
      DecoderSizes sizes = ragged_decoder;
      sizes.places = 12;
      const auto model = Decoder<U>::like(make, sizes);
      for (const Sampling& how : ways) {
        GenerateOptions options{.sampling = how};
        options.end = 4;
        const auto expected = one_by_one(mesh, model, options);
        for (const auto& [batch, chunk] : {std::pair<Index, Index>{2, 3}, {8, 1}, {3, 32}}) {
          options.batch = batch;
          options.chunk = chunk;
          std::vector<std::vector<std::int32_t>> told(some_requests.size());
          options.written = [&](Index text, std::int32_t token) {
            told[static_cast<std::size_t>(text)].push_back(token);
          };
          CHECK(generate(mesh, model, some_requests, options) == expected);
          CHECK(told == expected);
        }
      }
    });
  });
}

TEST_CASE("decoding: tokens are drawn as often as their probabilities say") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 1, 2);
    using Scores = ShardedTensor<float, Grid, P<_, model>>;
    using Places = ShardedTensor<std::int32_t, Grid, P<_>>;
    const Index draws = 40'000, tokens = 7;
    const auto scores = map_with_index(
        [](const GlobalIndex& i, float) {
          return static_cast<float>(i[1] % 4) / 2 - static_cast<float>(i[1] == 6 ? INFINITY : 0);
        },
        zeros<Scores>(mesh, {draws, tokens}));
    const auto places = iota<Places>(mesh, {draws}, 0);
    const auto count = [&](const Sampling& how) {
      std::vector<double> counts(static_cast<std::size_t>(tokens));
      for (const std::int32_t t : to_host(next_token(scores, how, places, places)).values)
        counts[static_cast<std::size_t>(t)] += 1;
      return counts;
    };
    const auto close = [&](const std::vector<double>& counts, const std::vector<double>& weights) {
      const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
      for (std::size_t t = 0; t < counts.size(); ++t) {
        const double p = weights[t] / sum, mean = p * static_cast<double>(draws);
        if (std::abs(counts[t] - mean) > 5 * std::sqrt(mean * (1 - p)) + 1e-9) return false;
      }
      return true;
    };
    const double e = std::exp(0.5);
    CHECK(close(count({.seed = 1}), {1, e, e * e, e * e * e, 1, e, 0}));
    CHECK(close(count({.temperature = 0.5, .seed = 2}),
                {1, e * e, std::pow(e, 4), std::pow(e, 6), 1, e * e, 0}));
    CHECK(close(count({.top_k = 2, .seed = 3}), {0, 0, e * e, e * e * e, 0, 0, 0}));
    CHECK(close(count({.top_p = 0.5, .seed = 4}), {0, 0, e * e, e * e * e, 0, 0, 0}));
    CHECK(close(count({.top_p = 0.3, .seed = 4}), {0, 0, 0, 1, 0, 0, 0}));
    CHECK(count({.temperature = 1e-30, .seed = 4}) == std::vector<double>{0, 0, 0, 4e4, 0, 0, 0});
    CHECK(count({.seed = 1}) == count({.seed = 1}));
    const auto half = [&](const Sampling& how) {  // of scores at which a step of the type is 1/8
      const auto far = cast<bfloat16>(scores + 20.0f);
      std::vector<double> counts(static_cast<std::size_t>(tokens));
      for (const std::int32_t t : to_host(next_token(far, how, places, places)).values)
        counts[static_cast<std::size_t>(t)] += 1;
      return counts;
    };
    CHECK(close(half({.seed = 1}), {1, e, e * e, e * e * e, 1, e, 0}));
    CHECK(close(half({.top_p = 0.5, .seed = 4}), {0, 0, e * e, e * e * e, 0, 0, 0}));
    CHECK(count({.seed = 1}) != count({.seed = 5}));
  });
}

TEST_CASE("decoding: what cannot be written is refused in words") {
  run_loopback(2, [](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<Grid>(world, 2, 1);
    using U = On<ByBatch>;
    Parameters<Grid> make(mesh, 3);
    const auto model = Decoder<U>::like(make, ragged_decoder);
    const auto says = [&](const std::vector<TextRequest>& requests, const GenerateOptions& options,
                          const std::string& part) {
      try {
        (void)generate(mesh, model, requests, options);
      } catch (const Error& e) {
        return std::string(e.what()).find(part) != std::string::npos;
      }
      return false;
    };
    CHECK(says({{{}, 3}}, {}, "text 0 has no beginning"));
    CHECK(says({{{1}, 3}}, {.batch = 0}, "0 texts at once"));
    CHECK(says({{{1}, 3}}, {.chunk = -1}, "-1 tokens of a beginning at once"));
    CHECK(says({{{1, 2, 3}, 4}}, {}, "text 0 has 3 tokens, and 4 more are asked for"));
    CHECK(says({{{1}, max_int64}}, {}, "more are asked for, and the model has positions for 5"));
    CHECK(says({{{1}, 2}, {{1, 11}, 2}}, {}, "text 1 begins with token 11 at place 1"));
    CHECK(generate(mesh, model, {{{1, 1, 1, 1, 1, 1, 1}, 0}, {{}, 0}}).size() == 2);
    CHECK(says({{{1}, 2}}, {.sampling = {.top_k = -1}}, "top_k of -1"));
    CHECK(says({{{1}, 2}}, {.sampling = {.top_p = 1.5}}, "top_p of 1.5"));
    CHECK(says({{{1}, 2}}, {.sampling = {.top_p = std::nan("")}}, "top_p of nan"));
    {
      auto kept = DecoderCache<U>::like(mesh, model, 1, 9);
      using Block = TokenIds<U>;
      CHECK_THROWS_WITH_AS(
          (void)decode(model, kept, zeros<Block>(mesh, {1, 2}),
                       NewPlaces<U>::at(mesh, {{4, 5}}, 9)),
          doctest::Contains("a token stands at place 5, and the model has positions for 5"),
          ShapeError);
      CHECK_THROWS_WITH_AS(
          (void)decode(model, kept, zeros<Block>(mesh, {1, 2}),
                       NewPlaces<U>::at(mesh, {{3, 4}}, 8)),
          doctest::Contains("the cache has 9 places, and the new tokens' are of a cache of 8"),
          ShapeError);
    }
    CHECK(says({{{1}, 2}}, {.sampling = {.temperature = -1}}, "a temperature of -1"));
    CHECK(says({{{1}, 2}}, {.sampling = {.top_p = 0}}, "top_p of 0"));
    CHECK_THROWS_WITH_AS((void)NewPlaces<U>::at(mesh, {{0, 2}}, 5),
                         doctest::Contains("is given place 2, the first of its text having 0"),
                         ShapeError);
    CHECK_THROWS_WITH_AS((void)NewPlaces<U>::at(mesh, {{4}, {5}}, 5),
                         doctest::Contains("in a cache of 5 places"), ShapeError);
    CHECK_THROWS_WITH_AS((void)NewPlaces<U>::at(mesh, {{0, 1}, {3}}, 5),
                         doctest::Contains("one text has 2 new tokens, and another 1"), ShapeError);
  });
}
