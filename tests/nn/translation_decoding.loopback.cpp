// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Translations that are written: in any steps the scores of whole targets, greedy ones by whole
// targets, and beams against the best of all texts.
#include <algorithm>
#include <cmath>

#include <tessera/nn/translation/write.hpp>

#include "nn/translation_case.hpp"
#include "support/few_meshes.hpp"

namespace {
using namespace nn_test;

using ByHeads = TensorParallel<data, model>;
using ByExperts = ExpertParallel<BothAxes>;
using ByPlaces = LayerRules<AxisRule<logical::batch, data>, AxisRule<logical::cache, model>>;
template <class Run> void under_each_rules(const Run& run) {
  run(std::type_identity<ByHeads>{});
  run(std::type_identity<ByExperts>{});
  run(std::type_identity<ByPlaces>{});
}
/// Without dropout, and with experts that drop nothing.
TranslationKind exact(TranslationKind kind) {
  kind.options.dropout = {};
  kind.options.experts = {.k = kind.options.experts.k, .capacity_factor = 0};
  return kind;
}
const TranslationKind kinds[] = {exact(gshard_like), exact(relative), exact(rotary_in_window)};

/// The largest difference between scores of whole targets and of targets read in such steps.
template <class R>
double read_on(const TranslationCase<R>& c, const ProcessMesh<Grid>& mesh,
               const std::vector<Index>& steps) {
  using U = On<R>;
  const auto whole =
      to_host(next_tokens(c.model, encode(c.model, c.source, c.options, c.source_valid).states,
                          c.target, c.options, c.source_valid)
                  .scores);
  auto kept = TranslatorCache<U>::like(
      c.model, encode(c.model, c.source, c.options, c.source_valid).states, 6, c.source_valid);
  const auto ids = to_host(c.target);
  double far = 0;
  Index from = 0;
  for (const Index count : steps) {
    std::vector<std::int32_t> some;
    std::vector<std::vector<Index>> places(c.batch);
    for (Index b = 0; b < c.batch; ++b)
      for (Index i = from; i < from + count; ++i) {
        some.push_back(static_cast<std::int32_t>(ids(b, i)));
        places[static_cast<std::size_t>(b)].push_back(i);
      }
    const auto scores =
        to_host(decode(c.model, kept, from_host<TokenIds<U>>(mesh, {c.batch, count}, some),
                       NewPlaces<U>::at(mesh, places, 6), c.options));
    for (Index b = 0; b < c.batch; ++b)
      for (Index i = 0; i < count; ++i)
        for (Index v = 0; v < scores.extents[2]; ++v)
          far = support::larger(far, std::fabs(scores(b, i, v) - whole(b, from + i, v)));
    from += count;
  }
  return far;
}
}  // namespace

TEST_CASE("a target read in any steps has the scores of the whole model") {
  for (const TranslationKind& kind : kinds)
    under_each_rules([&](auto rules) {
      using R = typename decltype(rules)::type;
      support::on_few_meshes([&](const ProcessMesh<Grid>& mesh) {
        const TranslationCase<R> c(mesh, kind);
        for (const std::vector<Index>& steps :
             {std::vector<Index>{1, 1, 1, 1}, {4}, {3, 1}, {1, 2, 1}})
          CHECK(read_on(c, mesh, steps) < 1e-12);
      });
    });
}

namespace {
/// The bytes that a step of one token sends, whose sources have so many places, of which the first
/// text has two, and whose cache has so many.
template <class R>
Index step_bytes(const ProcessMesh<Grid>& mesh, const TranslationKind& kind, Index source,
                 Index places) {
  using U = On<R>;
  using Lengths = typename U::template Of<std::int32_t, logical::batch>;
  Parameters<Grid> make(mesh, 3);
  const auto model = Translator<U>::like(make, kind.sizes);
  const auto states = random_normal<Activations<U>>(mesh, {2, source, kind.sizes.embed}, 5);
  const std::vector<std::int32_t> lengths{2, static_cast<std::int32_t>(source)};
  const auto valid = places_before<U>(from_host<Lengths>(mesh, {2}, lengths), source);
  auto kept = TranslatorCache<U>::like(model, states, places, valid);
  const void* const memory = kept.source[0].keys.core().read();
  const auto ids = zeros<TokenIds<U>>(mesh, {2, 1});
  const auto at = NewPlaces<U>::at(mesh, {{0}, {0}}, places);
  mesh.ledger().reset();
  (void)decode(model, kept, ids, at, kind.options);
  CHECK(kept.source[0].keys.core().read() == memory);
  return mesh.ledger().total().payload_bytes;
}
}  // namespace

TEST_CASE("what a step sends does not grow with the source or with what is kept") {
  for (const TranslationKind& kind : kinds)
    under_each_rules([&](auto rules) {
      using R = typename decltype(rules)::type;
      support::on_few_meshes([&](const ProcessMesh<Grid>& mesh) {
        CAPTURE(kind.name);
        CHECK(step_bytes<R>(mesh, kind, 6, 8) == step_bytes<R>(mesh, kind, 300, 50));
      });
    });
}

namespace {
const std::vector<std::vector<std::int32_t>> sources{{3, 1, 4}, {2}, {5, 1, 2, 3, 6}, {}, {7, 7}};
constexpr std::int32_t begin = 1;

/// The scores of the token after each of a target, by the whole model of one text.
template <class U>
std::vector<double> scores_after(const ProcessMesh<Grid>& mesh, const Translator<U>& model,
                                 const std::vector<std::int32_t>& source,
                                 std::vector<std::int32_t> target,
                                 const TranslatorOptions& options) {
  using Lengths = typename U::template Of<std::int32_t, logical::batch>;
  std::vector<std::int32_t> padded = source;
  padded.push_back(0);
  const auto n = static_cast<Index>(padded.size());
  const auto valid = places_before<U>(
      from_host<Lengths>(mesh, {1}, std::vector{static_cast<std::int32_t>(source.size())}), n);
  target.insert(target.begin(), begin);
  const auto m = static_cast<Index>(target.size());
  const auto scores =
      to_host(translate(model, from_host<TokenIds<U>>(mesh, {1, n}, padded),
                        from_host<TokenIds<U>>(mesh, {1, m}, target), options, valid)
                  .scores);
  std::vector<double> last;
  double sum = 0;
  for (Index v = 0; v < scores.extents[2]; ++v) sum += std::exp(scores(0, m - 1, v));
  for (Index v = 0; v < scores.extents[2]; ++v) last.push_back(scores(0, m - 1, v) - std::log(sum));
  return last;
}
}  // namespace

TEST_CASE("greedy translations, many at once, are those of each source by itself") {
  for (const TranslationKind& kind : kinds)
    under_each_rules([&](auto rules) {
      using R = typename decltype(rules)::type;
      on_mesh(2, 2, [&](const ProcessMesh<Grid>& mesh) {
        const TranslationCase<R> c(mesh, kind);
        std::vector<std::vector<std::int32_t>> wanted;
        for (const auto& source : sources) {
          wanted.emplace_back();
          auto& text = wanted.back();
          while (text.size() < 5 && (text.empty() || text.back() != 4)) {
            const auto scores = scores_after(mesh, c.model, source, text, c.options);
            text.push_back(static_cast<std::int32_t>(
                std::max_element(scores.begin(), scores.end()) - scores.begin()));
          }
        }
        for (const Index batch : {2, 8}) {
          std::vector<std::vector<std::int32_t>> told(sources.size());
          GenerateOptions how{.batch = batch, .end = 4, .sampling = {.temperature = 0}};
          how.written = [&](Index text, std::int32_t token) {
            told[static_cast<std::size_t>(text)].push_back(token);
          };
          CHECK(generate(mesh, c.model, sources, {.begin = begin, .most = 5}, how, c.options) ==
                wanted);
          CHECK(told == wanted);
        }
        const auto beams = beam_search(mesh, c.model, sources, begin,
                                       {.beams = 1, .most = 5, .end = 4}, c.options);
        for (std::size_t i = 0; i < sources.size(); ++i) CHECK(beams[i][0].tokens == wanted[i]);
        GenerateOptions drawn{.batch = 2, .sampling = {.seed = 5}};
        const auto by_two =
            generate(mesh, c.model, sources, {.begin = begin, .most = 5}, drawn, c.options);
        drawn.batch = 5;
        CHECK(by_two ==
              generate(mesh, c.model, sources, {.begin = begin, .most = 5}, drawn, c.options));
      });
    });
}

TEST_CASE("beams of translations find the best of all texts, in rows and interleaved") {
  for (const TranslationKind& kind : kinds)
    on_mesh(1, 2, [&](const ProcessMesh<Grid>& mesh) {
      const TranslationCase<ByHeads> c(mesh, kind);
      const Index tokens = kind.sizes.target;
      BeamOptions how{.beams = tokens, .most = 2, .end = 2, .length_penalty = 0.6};
      for (const bool flat : {false, true}) {
        how.flat = flat;
        const auto found = beam_search(mesh, c.model, sources, begin, how, c.options);
        for (std::size_t i = 0; i < sources.size(); ++i) {
          std::vector<Hypothesis> all;
          const auto first = scores_after(mesh, c.model, sources[i], {}, c.options);
          for (std::int32_t v = 0; v < tokens; ++v) {
            const double p = first[static_cast<std::size_t>(v)];
            if (v == how.end) {
              all.push_back({{v}, p, p});
              continue;
            }
            const auto second = scores_after(mesh, c.model, sources[i], {v}, c.options);
            for (std::int32_t w = 0; w < tokens; ++w) {
              const double q = p + second[static_cast<std::size_t>(w)];
              all.push_back({{v, w}, q, q / std::pow(7.0 / 6, 0.6)});
            }
          }
          std::sort(all.begin(), all.end(),
                    [](const Hypothesis& a, const Hypothesis& b) { return a.score > b.score; });
          for (std::size_t k = 0; k < 3; ++k) {
            CHECK(found[i][k].tokens == all[k].tokens);
            CHECK(std::fabs(found[i][k].score - all[k].score) < 1e-11);
          }
        }
      }
    });
}

TEST_CASE("beams of translations are the same in rows and interleaved") {
  for (const TranslationKind& kind : kinds)
    support::on_few_meshes([&](const ProcessMesh<Grid>& mesh) {
      const TranslationCase<ByHeads> c(mesh, kind);
      for (const Index beams : {2, 3}) {
        BeamOptions how{.beams = beams, .most = 5, .end = 3, .length_penalty = 0.7};
        const auto rows = beam_search(mesh, c.model, sources, begin, how, c.options);
        how.flat = true;
        const auto flat = beam_search(mesh, c.model, sources, begin, how, c.options);
        for (std::size_t i = 0; i < sources.size(); ++i) {
          CHECK(rows[i].size() == flat[i].size());
          for (std::size_t k = 0; k < std::min(rows[i].size(), flat[i].size()); ++k) {
            CHECK(rows[i][k].tokens == flat[i][k].tokens);
            CHECK(std::fabs(rows[i][k].score - flat[i][k].score) < 1e-11);
          }
        }
      }
    });
}

TEST_CASE("translations that are refused in words") {
  on_mesh(1, 1, [](const ProcessMesh<Grid>& mesh) {
    const TranslationCase<ByHeads> c(mesh, gshard_like);  // with 7 positions, the first in row 1
    const auto says = [&](const std::vector<std::vector<std::int32_t>>& texts, std::int32_t first,
                          Index most, const std::string& part) {
      try {
        (void)generate(mesh, c.model, texts, {.begin = first, .most = most}, {}, c.options);
      } catch (const Error& e) {
        return std::string(e.what()).find(part) != std::string::npos;
      }
      return false;
    };
    CHECK(says({{1}, {1, 11}}, 1, 2, "place 1 of source 1 is token 11"));
    CHECK(says({{1}}, 11, 2, "the beginning of all targets is token 11"));
    CHECK(says({{1}}, 1, 7, "a token stands at place 6, and the model has positions for 6"));
    CHECK(generate(mesh, c.model, {}, {.most = 2}).empty());
    CHECK_THROWS_WITH_AS(beam_search(mesh, c.model, {{1}}, 1, {.beams = 0}),
                         doctest::Contains("0 beams"), UsageError);
    using U = On<ByHeads>;
    auto kept = TranslatorCache<U>::like(
        c.model, encode(c.model, c.source, c.options, c.source_valid).states, 4);
    kept.target.pop_back();
    CHECK_THROWS_WITH_AS(decode(c.model, kept, zeros<TokenIds<U>>(mesh, {5, 1}),
                                NewPlaces<U>::at(mesh, {{0}, {0}, {0}, {0}, {0}}, 4)),
                         doctest::Contains("the model has 3 layers"), ShapeError);
    const auto refuses = [&](const TranslationKind& kind, const AttentionOptions& attention,
                             const char* part) {
      const TranslationCase<ByHeads> other(mesh, kind);
      auto cache = TranslatorCache<U>::like(
          other.model, encode(other.model, other.source, other.options, other.source_valid).states,
          4);
      TranslatorOptions options = other.options;
      options.attention = attention;
      CHECK_THROWS_WITH_AS(decode(other.model, cache, zeros<TokenIds<U>>(mesh, {5, 1}),
                                  NewPlaces<U>::at(mesh, {{0}, {0}, {0}, {0}, {0}}, 4), options),
                           doctest::Contains(part), UsageError);
    };
    refuses(rotary_in_window, {.window = -1}, "window is -1");
    refuses(relative, {.farthest = 3}, "is 3, and of 6 buckets");
  });
}
