// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Encoder-decoders, dense and with experts: the same under all rules and on every mesh, whatever
// stands after a text's end; compiled, run again, chosen and on paper.
#include <numeric>

#include <tessera/io/checkpoint.hpp>
#include <tessera/nn/born_as.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/run/choose_of.hpp>

#include "nn/packed_case.hpp"
#include "nn/peer_files.hpp"
#include "nn/translation_case.hpp"

namespace {
using namespace nn_test;
const std::pair<int, int> meshes[] = {{2, 1}, {1, 2}, {2, 2}, {3, 2}};
/// Texts and experts over one axis, heads, hidden elements and the vocabulary over the other.
using ByBoth = ExpertTensorParallel<data, model>;
const TranslationKind* const kinds[] = {&gshard_like, &relative, &rotary_in_window};
}  // namespace

TEST_CASE("an encoder-decoder gives the same numbers under all rules and on every mesh") {
  for (const TranslationKind* kind : kinds) {
    Values whole;
    on_mesh(1, 1, [&](const ProcessMesh<Grid>& mesh) {
      whole = TranslationCase<ByBoth>(mesh, *kind).numbers();
    });
    CHECK(whole.size() > 20);
    std::mutex mutex;
    for (const auto& [rows, columns] : meshes)
      on_mesh(rows, columns, [&, kind = kind](const ProcessMesh<Grid>& mesh) {
        for_translation_rules([&]<class R>(const char* rules, std::type_identity<R>) {
          const double far = farthest_apart(TranslationCase<R>(mesh, *kind).numbers(), whole);
          const std::lock_guard lock(mutex);
          CAPTURE(kind->name);
          CAPTURE(rules);
          CAPTURE(mesh.processes());
          CHECK(far < 1e-11);
        });
      });
  }
}

namespace {
/// The scores of each target's places, and all gradients, of texts of which each has a row of its
/// own, or which share rows: a target then lies in its source's row, with its number.
template <class R>
Values packed_translation(const ProcessMesh<Grid>& mesh, const TranslationKind& kind,
                          const Packing& sources, bool documents) {
  using U = On<R>;
  const std::vector<Index> lengths{3, 4, 1, 2, 5, 2, 4};
  Packing targets{sources.rows, 0, {}};
  std::vector<Index> ends(static_cast<std::size_t>(sources.rows));
  std::vector<std::vector<std::int32_t>> texts, nexts;
  for (std::size_t d = 0; d < lengths.size(); ++d) {
    const Packing::Document& from = sources.documents[d];
    Index& end = ends[static_cast<std::size_t>(from.row)];
    targets.documents.push_back({from.row, end, lengths[d], from.number});
    end += lengths[d];
    targets.length = max_of(targets.length, end);
    texts.emplace_back(lengths[d], static_cast<std::int32_t>(d % 5));
    nexts.emplace_back(lengths[d], static_cast<std::int32_t>((d + 3) % 7));
  }
  const auto on = [&](const Packing& rows, const std::vector<std::int32_t>& values) {
    return from_host<TokenIds<U>>(mesh, rows.extents(), values);
  };
  const auto source = on(sources, sources.laid(texts_below(7, 5), 0)),
             target = on(targets, targets.laid(texts, 0)),
             next = on(targets, targets.laid(nexts, 0));
  const auto from = documents_of<U>(mesh, sources), to = documents_of<U>(mesh, targets);
  const auto bools = [](const auto& mask) { return detail::valid_of(mask.numbers, Where{}); };
  Parameters<Grid> make(mesh, 3);
  const auto model = Translator<U>::like(make, kind.sizes);
  const auto numbers = [&](const auto& source_mask, const auto& target_mask) {
    const auto made = value_and_grad([&](const Translator<U>& w) {
      const auto out = translate(w, source, target, kind.options, source_mask, target_mask);
      return std::tuple(translation_loss(out, next, {.balance = 0, .gate_z = 0}, target_mask),
                        out.scores);
    })(model);
    const auto scores = to_host(std::get<1>(made.value)).values;
    Values values;
    for (const Packing::Document& one : targets.documents) {
      const auto begin =
          scores.begin() + (one.row * targets.length + one.first) * kind.sizes.target;
      values.emplace_back(begin, begin + one.length * kind.sizes.target);
    }
    for (auto& gradient : values_of(made.gradient)) values.push_back(std::move(gradient));
    return values;
  };
  return documents ? numbers(from, to) : numbers(bools(from), bools(to));
}
}  // namespace

TEST_CASE("packed sources and targets give what each pair gives alone") {
  TranslationKind dense = gshard_like;
  dense.sizes.experts = 0;
  dense.options.dropout = {};
  for (const TranslationKind& kind : {dense, relative, rotary_in_window}) {
    Values alone;
    on_mesh(1, 1, [&](const ProcessMesh<Grid>& mesh) {
      alone = packed_translation<ByBoth>(mesh, kind, own_rows(), false);
    });
    std::mutex mutex;
    for (const auto& [rows, columns] : {std::pair{1, 1}, {3, 2}})
      on_mesh(rows, columns, [&](const ProcessMesh<Grid>& mesh) {
        const double far =
            farthest_apart(packed_translation<ByBoth>(mesh, kind, shared_rows(), true), alone);
        const std::lock_guard lock(mutex);
        CAPTURE(kind.name);
        CHECK(far < 1e-11);
      });
  }
}

namespace {
/// What a file of generate.py says beside the parameters; states and scores are zero where a text
/// has ended.
template <class U> struct Expected {
  using Mask = typename U::template Of<bool, logical::batch, logical::sequence>;
  TokenIds<U> source, target, next;
  Mask source_valid, target_valid;
  Activations<U> states;
  typename U::template Tensor<logical::batch, logical::sequence, logical::vocabulary> scores;
  typename U::template Tensor<> loss;
  static constexpr auto fields =
      Fields<&Expected::source, &Expected::target, &Expected::next, &Expected::source_valid,
             &Expected::target_valid, &Expected::states, &Expected::scores, &Expected::loss>{};
};
const TranslationKind t5{"t5",
                         {.source = 11,
                          .target = 11,
                          .buckets = 6,
                          .embed = 6,
                          .heads = 3,
                          .hidden = 7,
                          .encoder_layers = 2,
                          .decoder_layers = 3,
                          .tied_tables = true,
                          .biases = false},
                         {.epsilon = 1e-6, .attention = {.farthest = 5}}};
const TranslationKind bart{
    "bart",
    {.source = 11,
     .target = 11,
     .places = 10,
     .embed = 6,
     .heads = 3,
     .hidden = 7,
     .encoder_layers = 2,
     .decoder_layers = 2,
     .tied_tables = true,
     .input_norms = true,
     .last_norms = false},
    {.norm_first = false, .gelu = true, .embedding_scale = std::sqrt(6.0), .first_place = 2}};

struct Distances {
  double states, scores, loss, gradients;
};
template <class R> Distances distances(const ProcessMesh<Grid>& mesh, const TranslationKind& peer) {
  using U = On<R>;
  Parameters<Grid> make(mesh, 1);
  auto model = Translator<U>::like(make, peer.sizes), gradient = model;
  const std::string file = std::string("translation_of_hugging_face/") + peer.name;
  read_peer(mesh, file, "", model);
  read_peer(mesh, file, "gradient.", gradient);
  Expected<U> wanted;
  wanted.source = zeros<TokenIds<U>>(mesh, 3, 6);
  wanted.target = wanted.next = zeros<TokenIds<U>>(mesh, 3, 4);
  wanted.source_valid = zeros<decltype(wanted.source_valid)>(mesh, 3, 6);
  wanted.target_valid = zeros<decltype(wanted.target_valid)>(mesh, 3, 4);
  wanted.states = zeros<Activations<U>>(mesh, 3, 6, peer.sizes.embed);
  wanted.scores = zeros<decltype(wanted.scores)>(mesh, 3, 4, peer.sizes.target);
  wanted.loss = zeros<decltype(wanted.loss)>(mesh);
  read_peer(mesh, file, "expected.", wanted);
  const auto scores = [&](const Translator<U>& w) {
    return translate(w, wanted.source, wanted.target, peer.options, wanted.source_valid,
                     wanted.target_valid);
  };
  const auto [loss, slopes] = value_and_grad([&](const Translator<U>& w) {
    return translation_loss(scores(w), wanted.next, {.smoothing = 0.1}, wanted.target_valid);
  })(model);
  const auto states = encode(model, wanted.source, peer.options, wanted.source_valid).states;
  return {farthest_apart(values_of(ended(states, wanted.source_valid)), values_of(wanted.states)),
          farthest_apart(values_of(ended(scores(model).scores, wanted.target_valid)),
                         values_of(wanted.scores)),
          farthest_apart(values_of(loss), values_of(wanted.loss)),
          farthest_apart(values_of(slopes), values_of(gradient))};
}
}  // namespace

TEST_CASE("an encoder-decoder is Hugging Face's T5 and BART, in states, scores and gradients") {
  std::mutex mutex;
  for (const TranslationKind* peer : {&t5, &bart})
    for (const auto& [rows, columns] : {std::pair{1, 1}, {1, 2}, {2, 2}, {3, 2}})
      on_mesh(rows, columns, [&, peer = peer](const ProcessMesh<Grid>& mesh) {
        const auto check = [&]<class R>(const char* rules, std::type_identity<R>) {
          const Distances far = distances<R>(mesh, *peer);
          const std::lock_guard lock(mutex);
          CAPTURE(peer->name);
          CAPTURE(rules);
          CAPTURE(mesh.processes());
          CHECK(far.states < 1e-12);
          CHECK(far.scores < 1e-12);
          CHECK(far.loss < 1e-12);
          CHECK(far.gradients < 1e-11);
        };
        check("two-dimensional", std::type_identity<TwoDimensional<data, model>>{});
        check("sequence", std::type_identity<SequenceSplit<data, model>>{});
        check("experts and tensors", std::type_identity<ByBoth>{});
      });
}

TEST_CASE("buckets of distances are T5's") {
  on_mesh(1, 1, [](const ProcessMesh<Grid>& mesh) {
    using Line = ShardedTensor<std::int32_t, Grid, P<_>>;
    for (const bool both : {false, true}) {
      Line wanted = zeros<Line>(mesh, 401);
      read_peer(mesh, "translation_of_hugging_face/t5",
                std::string("buckets.") + (both ? "both_ways" : "before"), wanted);
      const fn::RelativeBucket bucket{.both_ways = both};
      for (Index d = -200; d <= 200; ++d) CHECK(bucket.of(d) == to_host(wanted)(d + 200));
    }
  });
}

namespace {
constexpr std::int32_t filler = 7;  ///< the row of the tables that only ended places look up
}  // namespace

TEST_CASE("what stands after a text's end, NaN too, changes nothing of it") {
  for (const TranslationKind* kind : {&relative, &rotary_in_window})
    on_mesh(2, 2, [&, kind = kind](const ProcessMesh<Grid>& mesh) {
      const auto check = [&]<class R>(std::type_identity<R>) {
        TranslationKind untied = *kind;
        untied.sizes.tied_scores = false;  // or a row of NaN would be among the scores
        TranslationCase<R> c(mesh, untied);
        c.source = where(c.source_valid, minimum(c.source, 6), filler);
        c.target = where(c.target_valid, minimum(c.target, 6), filler);
        const auto numbers = [&](double row) {
          const auto spoil = [row](auto& table) {
            using W = std::decay_t<decltype(table)>;
            table = W(map_with_index(
                [row](const GlobalIndex& i, double x) { return i[0] == filler ? row : x; },
                stop_gradient(table)));
          };
          spoil(c.model.source->weight);
          spoil(c.model.target.weight);
          return c.numbers();
        };
        const Values finite = numbers(3), other = numbers(NAN);
        CHECK(finite == other);
      };
      check(std::type_identity<ByBoth>{});
      check(std::type_identity<SequenceSplit<data, model>>{});
    });
}

TEST_CASE("an encoder-decoder's blocks that run again, and attention by blocks, change nothing") {
  for (const TranslationKind* kind : kinds)
    on_mesh(2, 2, [&, kind = kind](const ProcessMesh<Grid>& mesh) {
      TranslationCase<ByBoth> c(mesh, *kind);
      const Values kept = c.numbers();
      c.options.again = {true, false, true, true};
      CHECK(farthest_apart(c.numbers(), kept) < 1e-12);
      c.options.again = {};
      c.options.attention.block = 2;
      CHECK(farthest_apart(c.numbers(), kept) < 1e-11);
    });
}

TEST_CASE("an encoder-decoder's step compiles, and its peak is planned") {
  for (const TranslationKind* kind : {&gshard_like, &relative})
    on_mesh(2, 2, [&, kind = kind](const ProcessMesh<Grid>& mesh) {
      using R = ByBoth;
      {
        const TranslationCase<R> c(mesh, *kind);
        const auto step = value_and_grad([&](const Translator<On<R>>& w) { return c.loss(w); });
        auto compiled = compile(step);
        Values plain = values_of(step(c.model).gradient);
        CHECK(farthest_apart(values_of(compiled(c.model).gradient), plain) < 1e-12);
        CHECK(farthest_apart(values_of(compiled(c.model).gradient), plain) < 1e-12);
        CHECK(compiled.structures() == 1);
      }
      const auto peak_on = [&](const ProcessMesh<Grid>& on) {
        const TranslationCase<R> own(on, *kind);
        on.arena().reset_peak();
        Recording recording(on);
        (void)value_and_grad([&](const Translator<On<R>>& w) { return own.loss(w); })(own.model);
        return recording.take().peak_bytes();
      };
      const Index ran = peak_on(mesh), measured = mesh.arena().peak();
      CHECK(ran == measured);
      if (mesh.process() == 0) CHECK(ran == peak_on(dry_mesh<Grid>(2, 2)));
    });
}

namespace {
/// The loss and the gradient of a step, of a model of any types.
struct OneStep {
  TranslatorOptions options;
  template <class W, class I, class J>
  auto operator()(const W& weights, const I& source, const J& target) const {
    return value_and_grad([&](const W& w) {
      return translation_loss(translate(w, source, target, options), target);
    })(weights);
  }
};
}  // namespace

TEST_CASE("an encoder-decoder without annotations is chosen on paper, and steps as the whole one") {
  using Free = On<OpenRules>;
  using Texts = ShardedTensor<std::int32_t, Grid, P<data, _>>;
  for (TranslationKind kind : {gshard_like, relative}) {
    kind.sizes.hidden = 64;
    kind.options.experts.texts = 2;
    const OneStep step{kind.options};
    const auto made = [&](auto& make) { return Translator<Free>::like(make, kind.sizes); };
    Parameters<Grid> paper(dry_mesh<Grid>(2, 2), 3);
    const Choice choice =
        choose(step)(made(paper), like<Texts>(6, 5), like<Texts>(6, 4), sizes<Grid>(2, 2));
    CHECK(choice.cost <= choice.before);
    on_mesh(2, 2, [&](const ProcessMesh<Grid>& mesh) {
      const auto source = from_function<Texts>(mesh, {6, 5}, Ids{9}),
                 target = from_function<Texts>(mesh, {6, 4}, Ids{9});
      Parameters<Grid> make(mesh, 3);
      const auto whole = step(Translator<On<ByBoth>>::like(make, kind.sizes), source, target);
      auto chosen = compile(step, choice);
      const auto free = chosen(born_as(choice, "0", mesh, 3, made), source, target);
      CHECK(std::fabs(double(value(free.value)) - double(value(whole.value))) < 1e-12);
      CHECK(farthest_apart(values_of(free.gradient), values_of(whole.gradient)) < 1e-11);
    });
  }
}

TEST_CASE("experts report, and calls that an encoder-decoder refuses") {
  on_mesh(2, 1, [](const ProcessMesh<Grid>& mesh) {
    using R = ByBoth;
    const TranslationCase<R> c(mesh, gshard_like), dense(mesh, relative);
    const auto made = c.scores(c.model);
    CHECK(made.experts.load.size() == 2);
    CHECK(value(*made.experts.dropped) > 0);
    const auto load = to_host(made.experts.load[0]).values;  // the encoder's: 18 valid tokens
    CHECK(std::accumulate(load.begin(), load.end(), Index{}) == 2 * 18);
    CHECK(!dense.scores(dense.model).experts.z_loss);
    TranslationCase<R> biased(mesh, rotary_in_window);
    const auto report = biased.scores(biased.model).experts;
    balance_choices(biased.model, report, 0.5);
    const auto bias = to_host(*biased.model.encoder.blocks[1].experts->choice_bias).values;
    const auto loads = to_host(report.load[0]).values;
    for (std::size_t e = 0; e < 3; ++e)  // of 18 tokens, each with one expert
      CHECK(bias[e] == (loads[e] > 6 ? -0.5 : loads[e] < 6 ? 0.5 : 0));
    ExpertReport<On<R>> of_one = report;
    of_one.load.pop_back();
    CHECK_THROWS_WITH_AS(balance_choices(biased.model, of_one, 0.5),
                         doctest::Contains("has 2 layers of experts, and the report is of 1"),
                         UsageError);
    CHECK(to_host(*biased.model.encoder.blocks[1].experts->choice_bias).values == bias);
    Optimizer<AdamW> optimizer(AdamW{.rate = 0.1, .decay = 0.5}, biased.model);
    optimizer.step(biased.model, biased.model);  // no optimizer moves it
    CHECK(to_host(*biased.model.encoder.blocks[1].experts->choice_bias).values == bias);
  });
  const auto mesh = dry_mesh<Grid>(2, 2);
  using U = On<ByBoth>;
  Parameters<Grid> make(mesh, 1);
  CHECK_THROWS_WITH_AS(
      Translator<U>::like(make, {.source = 3, .target = 4, .tied_tables = true}),
      doctest::Contains("one table is to be for 3 tokens of sources and 4 of targets"), UsageError);
  CHECK_THROWS_WITH_AS(Translator<U>::like(make, {.buckets = 3}),
                       doctest::Contains("3 buckets of distances"), UsageError);
  const auto small = Translator<U>::like(make, {.source = 5,
                                                .target = 5,
                                                .places = 3,
                                                .embed = 4,
                                                .heads = 2,
                                                .hidden = 4,
                                                .encoder_layers = 2,
                                                .decoder_layers = 1,
                                                .experts = 2});
  const auto ids = zeros<TokenIds<U>>(mesh, 3, 4);
  CHECK_THROWS_WITH_AS(encode(small, ids),
                       doctest::Contains("4 places from place 0 on, and the table has 3 rows"),
                       ShapeError);
  const auto fewer = zeros<TokenIds<U>>(mesh, 3, 2);
  CHECK_THROWS_WITH_AS(encode(small, fewer, {.experts = {.texts = 2}}),
                       doctest::Contains("a batch of 3 texts in groups of 2"), ShapeError);
  CHECK_THROWS_WITH_AS(encode(small, fewer, {.experts = {.k = 3}}),
                       doctest::Contains("3 of 2 experts for a token"), UsageError);
}
