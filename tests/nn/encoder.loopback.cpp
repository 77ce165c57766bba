// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Encoders against Hugging Face's of equal weights (tests/nn/encoder_of_hugging_face/generate.py),
// all states, probabilities and gradients, under all rules; what padding may not change; memory;
// and ESM2 in training: what is masked, what counting says, and the same losses on every mesh.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <tessera/op/rows/statistics.hpp>

#include "../../examples/protein_encoder/results.hpp"
#include "../../examples/train_protein_encoder/baselines.hpp"
#include "../../examples/train_protein_encoder/trainer.hpp"
#include "nn/packed_case.hpp"
#include "nn/peer_files.hpp"

namespace {
using namespace nn_test;

template <class U> using Valid = typename U::template Of<bool, logical::batch, logical::sequence>;

/// What a file says beside the parameters; states are zero where a text has ended.
template <class U> struct Expected {
  TokenIds<U> ids, targets;
  Valid<U> valid, counts;  ///< where a text is, and where its loss is taken
  std::vector<Activations<U>> states;
  typename U::template Tensor<logical::batch, logical::sequence, logical::vocabulary> probabilities;
  typename U::template Tensor<> loss;
  std::optional<TokenIds<U>> kinds;
  static constexpr auto fields =
      Fields<&Expected::ids, &Expected::targets, &Expected::valid, &Expected::counts,
             &Expected::states, &Expected::probabilities, &Expected::loss, &Expected::kinds>{};
};

/// An encoder of Hugging Face: its file, and what its configuration says.
struct Peer {
  const char* name;
  EncoderSizes sizes;
  EncoderOptions options;
};
const Peer bert{
    "bert",
    {.vocabulary = 11, .places = 6, .kinds = 2, .embed = 6, .heads = 3, .hidden = 7, .layers = 2},
    {.epsilon = 1e-12}};
const Peer esm{"esm",
               {.vocabulary = 9,
                .places = 0,
                .embed = 8,
                .heads = 2,
                .hidden = 7,
                .layers = 2,
                .input_norm = false,
                .last_norm = true},
               {.norm_first = true, .attention = {.rotary = true}}};
const Peer esm_masked{
    "esm_masked",
    esm.sizes,
    {.norm_first = true, .attention = {.rotary = true}, .token_dropout = TokenDropout{.mask = 8}}};

template <class R> struct Case {
  using U = On<R>;
  Encoder<U> model, gradient;
  Expected<U> expected;
  EncoderOptions options;

  Case(const ProcessMesh<Grid>& mesh, const Peer& peer) : options(peer.options) {
    const EncoderSizes& n = peer.sizes;
    Parameters<Grid> make(mesh, 1);
    model = gradient = Encoder<U>::like(make, n);
    const std::string file = std::string("encoder_of_hugging_face/") + peer.name;
    read_peer(mesh, file, "", model);
    read_peer(mesh, file, "gradient.", gradient);
    expected.ids = expected.targets = zeros<TokenIds<U>>(mesh, 3, 5);
    expected.valid = expected.counts = zeros<Valid<U>>(mesh, 3, 5);
    const auto state = zeros<Activations<U>>(mesh, 3, 5, n.embed);
    expected.states.assign(static_cast<std::size_t>(n.layers) + 1, state);
    expected.probabilities = zeros<decltype(expected.probabilities)>(mesh, 3, 5, n.vocabulary);
    expected.loss = zeros<decltype(expected.loss)>(mesh);
    if (n.kinds > 0) expected.kinds = expected.ids;
    read_peer(mesh, file, "expected.", expected);
  }

  /// Calls f with the kinds of tokens where there are some.
  template <class F> auto with_kinds(const F& f) const {
    return expected.kinds ? f(*expected.kinds) : f(OneKind{});
  }
  std::vector<Activations<U>> states(const Encoder<U>& of) const {
    return with_kinds([&](const auto& kinds) {
      return hidden_states(of, expected.ids, options, expected.valid, kinds);
    });
  }
  auto loss(const Encoder<U>& of, const EncoderOptions& own) const {
    const auto last = with_kinds(
        [&](const auto& kinds) { return encode(of, expected.ids, own, expected.valid, kinds); });
    return mean_where(cross_entropy(masked_scores(of, last, own), expected.targets),
                      expected.counts);
  }
  template <class X> X ended(const X& x) const { return nn_test::ended(x, expected.valid); }
  Values gradients(const EncoderOptions& own) const {
    return values_of(
        value_and_grad([&](const Encoder<U>& w) { return loss(w, own); })(model).gradient);
  }
};

/// Calls check(name, rules) for each list of rules.
template <class F> void for_each_rules(const F& check) {
  check("data parallel", std::type_identity<DataParallel<BothAxes>>{});
  check("tensor parallel", std::type_identity<TensorParallel<data, model>>{});
  check("two-dimensional", std::type_identity<TwoDimensional<data, model>>{});
  check("fully sharded", std::type_identity<FullySharded<BothAxes>>{});
  check("sequence", std::type_identity<SequenceSplit<data, model>>{});
}
const std::pair<int, int> meshes[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 2}};

struct Text {
  Index batch, sequence;
};
struct Distances {
  double states, probabilities, loss, gradients;
};
template <class R> Distances distances(const ProcessMesh<Grid>& mesh, const Peer& peer) {
  const Case<R> c(mesh, peer);
  std::vector<Activations<On<R>>> states = c.states(c.model);
  const auto scores = masked_scores(c.model, states.back(), c.options);
  for (auto& state : states) state = c.ended(state);
  const auto loss = c.loss(c.model, c.options);
  return {farthest_apart(values_of(states), values_of(c.expected.states)),
          farthest_apart(values_of(c.ended(softmax<"bsv", 'v'>(scores))),
                         values_of(c.expected.probabilities)),
          farthest_apart(values_of(loss), values_of(c.expected.loss)),
          farthest_apart(c.gradients(c.options), values_of(c.gradient))};
}
}  // namespace

TEST_CASE("an encoder is Hugging Face's, in all states, probabilities and gradients") {
  std::mutex mutex;
  for (const Peer* peer : {&bert, &esm, &esm_masked})
    for (const auto& [rows, columns] : meshes)
      on_mesh(rows, columns, [&, peer = peer](const ProcessMesh<Grid>& mesh) {
        for_each_rules([&]<class R>(const char* rules, std::type_identity<R>) {
          const Distances far = distances<R>(mesh, *peer);
          const std::lock_guard lock(mutex);
          CAPTURE(peer->name);
          CAPTURE(rules);
          CAPTURE(mesh.processes());
          CHECK(far.states < 1e-12);
          CHECK(far.probabilities < 1e-12);
          CHECK(far.loss < 1e-12);
          CHECK(far.gradients < 1e-11);
        });
      });
}

TEST_CASE("what stands after a text's end changes nothing of it, to the bit") {
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    const auto check = [&](const Peer& peer) {
      Case<TensorParallel<data, model>> c(mesh, peer);
      const auto states = [&] {
        Values values;
        for (const auto& state : c.states(c.model))
          values.push_back(to_host(c.ended(state)).values);
        return values;
      };
      const Values before = states();
      const Values slopes = c.gradients(c.options);
      c.expected.ids = where(c.expected.valid, c.expected.ids, 3);
      CHECK(states() == before);
      CHECK(farthest_apart(c.gradients(c.options), slopes) < 1e-12);
    };
    check(bert);
    check(esm);
    check(esm_masked);
  });
}

TEST_CASE("texts that are all valid need not say so, where masked tokens are counted too") {
  on_mesh(1, 2, [](const ProcessMesh<Grid>& mesh) {
    using R = SequenceSplit<data, model>;
    const Case<R> c(mesh, esm_masked);
    const auto all = full<Valid<On<R>>>(mesh, {3, 5}, true);
    CHECK(farthest_apart(values_of(encode(c.model, c.expected.ids, c.options)),
                         values_of(encode(c.model, c.expected.ids, c.options, all))) == 0);
  });
}

TEST_CASE("blocks that run again, and attention by blocks, give an encoder's gradients") {
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    const Case<TensorParallel<data, model>> c(mesh, esm);
    EncoderOptions own = c.options;
    own.dropout = {.rate = 0.2, .seed = 4, .step = 2};
    const Values kept = c.gradients(own);
    CHECK(farthest_apart(kept, c.gradients(c.options)) > 1e-3);  // elements are dropped
    own.again = {true, true};
    CHECK(farthest_apart(c.gradients(own), kept) < 1e-12);
    own.again = {};
    own.attention.block = 2;
    CHECK(farthest_apart(c.gradients(own), kept) < 1e-11);
  });
}

TEST_CASE("an encoder of packed documents gives what each gives alone, and their gradients") {
  std::mutex mutex;
  for (const Peer* peer : {&bert, &esm}) {
    const auto numbers = [&]<class R>(std::type_identity<R>, const ProcessMesh<Grid>& mesh,
                                      const Packing& packing, bool documents, Index block) {
      EncoderOptions options = peer->options;
      options.attention.block = block;
      Parameters<Grid> make(mesh, 3);
      const auto weights = Encoder<On<R>>::like(make, peer->sizes);
      return packed_numbers<R>(mesh, weights, packing, documents,
                               static_cast<std::int32_t>(peer->sizes.vocabulary),
                               [&](const auto& w, const auto& ids, const auto& mask) {
                                 return masked_scores(w, encode(w, ids, options, mask), options);
                               });
    };
    Values alone;
    on_mesh(1, 1, [&](const ProcessMesh<Grid>& mesh) {
      alone = numbers(std::type_identity<Whole>{}, mesh, own_rows(), false, 0);
    });
    for (const auto& [rows, columns] : meshes)
      on_mesh(rows, columns, [&](const ProcessMesh<Grid>& mesh) {
        for_each_rules([&]<class R>(const char* rules, std::type_identity<R> on) {
          const Index block = mesh.processes() % 2 == 0 ? 0 : 4;
          const double far = farthest_apart(numbers(on, mesh, shared_rows(), true, block), alone);
          const std::lock_guard lock(mutex);
          CAPTURE(peer->name);
          CAPTURE(rules);
          CAPTURE(mesh.processes());
          CHECK(far < 1e-11);
        });
      });
  }
}

TEST_CASE("the example's sequences have the means, states and letters of each alone when packed") {
  using protein_encoder::Batch;
  const protein_encoder::Kind kind =
      protein_encoder::esm2({.embed = 8, .heads = 2, .hidden = 6, .layers = 2});
  const auto all = protein_encoder::texts_in(kind.vocabulary, {{"a", "EVQLVQS"},
                                                               {"b", "D_VMT"},
                                                               {"c", "E_QL_SGPEV"},
                                                               {"d", "A"},
                                                               {"e", "DVVMTQTP"},
                                                               {"f", "_VVA"}});
  run_loopback(4, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<protein_encoder::Grid>(world, 2, 2);
    using U = Under<float, protein_encoder::Grid, protein_encoder::by::Two>;
    const protein_encoder::Run<U> run(mesh, kind, true, true);
    const auto numbers = [&](const std::vector<Batch>& work) {
      protein_encoder::Results results(all, kind, 16, true);
      for (const Batch& batch : work)
        results.add(batch, run(run.model(), protein_encoder::given<U>(mesh, batch)));
      Values values;
      for (const protein_encoder::Rows& rows : {results.means(), results.states(), results.found()})
        values.emplace_back(rows.values.begin(), rows.values.end());
      return values;
    };
    const std::vector<Batch> packed =
        protein_encoder::packed_batches(all, kind.vocabulary, 2, 20, 100);
    CHECK(packed.size() == 2);
    CHECK(packed[0].rows.most() > 1);
    const Values alone = numbers(protein_encoder::batches(all, kind.vocabulary, 4, 100));
    CHECK(alone[0].size() == 6 * 8);
    CHECK(alone[2].size() == 4 * 33);
    CHECK(farthest_apart(numbers(packed), alone) < 1e-5);
    const Batch planned = protein_encoder::empty_batch(3, 9, 20);
    CHECK(planned.most() == 2);
    CHECK(planned.rows.extents() == Extents{3, 20});
    CHECK(planned.weights.size() == 3 * 2 * 20);
  });
}

TEST_CASE("the example reads numbers of words as the letters that they are") {
  const protein_encoder::Vocabulary words = protein_encoder::esm2({}).vocabulary;
  const std::string path =
      (std::filesystem::temp_directory_path() / ("tessera_ids_" + std::to_string(::getpid())))
          .string();
  const auto read = [&](const char* lines) {
    std::ofstream(path) << lines;
    return protein_encoder::read_ids(path, words);
  };
  const auto texts = read("5 32  4\n\n 7\t32\n");
  const auto letters = protein_encoder::texts_in(words, {{"a", "A_L"}, {"b", "V_"}});
  REQUIRE(texts.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) CHECK(texts[i].ids == letters[i].ids);
  CHECK(texts[1].name == "line 3");
  const auto named = [&](const std::string& what) {
    const std::string said =
        "--ids: line 2 of " + path + " has \"" + what +
        "\"; give numbers of the encoder's words, 0 to 32 without its padding, 1";
    return doctest::Contains(said.c_str());
  };
  CHECK_THROWS_WITH_AS(read("4\n4 33\n"), named("33"), UsageError);
  CHECK_THROWS_WITH_AS(read("4\n1 4\n"), named("1"), UsageError);
  CHECK_THROWS_WITH_AS(read("4\n4 5x\n"), named("5x"), UsageError);
  CHECK_THROWS_WITH_AS(read("\n"), doctest::Contains("has no sequence"), UsageError);
  CHECK_THROWS_WITH_AS(protein_encoder::longest_first(texts, 4),
                       doctest::Contains("--ids: \"line 1\" has 3 words, and there are 2 places"),
                       UsageError);
  std::filesystem::remove(path);
  CHECK_THROWS_WITH_AS(protein_encoder::read_ids(path, words), doctest::Contains("cannot be read"),
                       UsageError);
}

/// The peak of an encoder's states and scores, as it runs or on paper.
template <class R> Index peak_of(const ProcessMesh<Grid>& mesh, Index layers, Text text) {
  using U = On<R>;
  Parameters<Grid> make(mesh, 1);
  const auto model = Encoder<U>::like(
      make,
      {.vocabulary = 11, .places = 64, .embed = 6, .heads = 3, .hidden = 7, .layers = layers});
  const Extents extents{text.batch, text.sequence};
  const auto ids = from_function<TokenIds<U>>(mesh, extents, Ids{11});
  const auto valid = from_function<Valid<U>>(mesh, extents, SomeTrue{});
  mesh.arena().reset_peak();
  Recording recording(mesh);
  (void)masked_scores(model, encode(model, ids, {}, valid));
  return recording.take().peak_bytes();
}

TEST_CASE("an encoder's memory is planned, and no state of a layer outlives the next") {
  for (const auto& [rows, columns] : {std::pair{1, 1}, {2, 2}, {3, 2}})
    on_mesh(rows, columns, [rows = rows, columns = columns](const ProcessMesh<Grid>& mesh) {
      for_each_rules([&]<class R>(const char* rules, std::type_identity<R>) {
        const Index ran = peak_of<R>(mesh, 2, {5, 7}), measured = mesh.arena().peak();
        CAPTURE(std::string(rules));
        CHECK(ran == measured);
        if (mesh.process() == 0) CHECK(ran == peak_of<R>(dry_mesh<Grid>(rows, columns), 2, {5, 7}));
      });
    });
  const auto peak = [](Index layers, Text text) {
    return peak_of<DataParallel<BothAxes>>(dry_mesh<Grid>(2, 2), layers, text);
  };
  const Text some{8, 64};  // whose states are larger than a layer's weights
  CHECK(peak(9, some) - peak(3, some) == peak(9, {4, 64}) - peak(3, {4, 64}));
}

TEST_CASE("ESM2 of 15 billion parameters, on paper, is split and sends as in the pjit article") {
  // "Tensor Parallelism with jax.pjit" (2022): 48 layers of width 5120 on 2 x 4, GSPMD's rules.
  using U = On<TwoDimensional<data, model>>;
  const auto mesh = dry_mesh<Grid>(2, 4);
  Parameters<Grid> make(mesh, 1);
  const auto esm2 = Encoder<U>::like(make, {.vocabulary = 33,
                                            .places = 0,
                                            .embed = 5120,
                                            .heads = 40,
                                            .hidden = 20480,
                                            .layers = 48,
                                            .input_norm = false,
                                            .last_norm = true});
  const auto& block = esm2.blocks[42];
  const auto spec_is = []<class X, class Spec>(const X&, Spec) {
    return std::is_same_v<typename X::spec, Spec>;
  };
  CHECK(spec_is(block.attention.query, P<data, model, _, _>{}));
  CHECK(spec_is(block.attention.key, P<data, model, _>{}));
  CHECK(spec_is(block.attention.out, P<model, _, _, data>{}));
  CHECK(spec_is(block.feed_forward.in.weight, P<data, model>{}));
  CHECK(spec_is(block.feed_forward.out.weight, P<model, data>{}));
  CHECK(spec_is(block.feed_forward_norm.scale, P<_>{}));
  CHECK(block.attention.query.extents() == Extents{5120, 40, 1, 128});
  const ParameterTable table = parameter_table(esm2);
  CHECK(table.elements() == 15129098273);
  CHECK(table.bytes() < table.elements() / 100 * 101);  // of 8 bytes each, on 8 processes

  const auto ids = zeros<TokenIds<U>>(mesh, 32, 512);
  Recording recording(mesh);
  (void)encode(esm2, ids, {.norm_first = true, .attention = {.rotary = true}});
  const Program program = recording.take();
  const auto calls = [&](const std::string& layer, const std::string& label) {
    std::string text;
    for (const ProgramEntry& entry : program.entries())
      if (program.layers()[static_cast<std::size_t>(entry.layer)].name == layer &&
          entry.label == label)
        for (const Step& step : entry.plan->steps)
          if (step.communicates())
            text += std::string(name_of(step.collective)) + " over " +
                    to_string(step.group, program.names()) + "; ";
    return text;
  };
  CHECK(calls("block 42", "aby,yz->abz") ==
        "all-gather over model; all-gather over data; all-gather over data; reduce-scatter over "
        "model; ");
  CHECK(calls("block 42", "bsm,mgrd->bsgrd") == "all-gather over model; all-gather over data; ");
  CHECK(calls("block 42", "bsgrd,grdm->bsm") ==
        "all-gather over data; reduce-scatter over model; ");
}

TEST_CASE("letters are masked as in BERT, by the key alone, and words that are none are not") {
  namespace train = train_protein_encoder;
  const protein_encoder::Vocabulary words = protein_encoder::esm2({}).vocabulary;
  const train::Texts texts = train::texts_of(
      {{"long", std::string(4000, 'W')}, {"short", "AC" + std::string(200, 'X')}}, words);
  const auto rows = train::masked_rows(texts, {0, 1}, 4002, words, 5);
  CHECK(rows.extents() == Extents{2, 4002});
  Index masked = 0, kept = 0, other = 0;
  for (std::size_t i = 0; i < rows.ids.size(); ++i) {
    if (rows.targets[i] < 0) continue;
    CHECK(rows.targets[i] == texts[i / 4002][i % 4002]);
    (rows.ids[i] == words.mask ? masked : rows.ids[i] == rows.targets[i] ? kept : other) += 1;
    CHECK(words.word(rows.targets[i]).size() == 1);  // neither an end nor a mask
  }
  const auto near = [](Index count, double expected) {  // four deviations
    return std::fabs(static_cast<double>(count) - expected) < 4 * std::sqrt(expected);
  };
  CHECK(rows.counted() == masked + kept + other);
  CHECK(near(rows.counted(), 600));
  CHECK(near(masked, 480));
  CHECK(near(kept, 60 + 3));  // a letter that is drawn may be the own one
  CHECK(near(other, 60 - 3));
  for (std::size_t i = 4002 + 3; i < 4002 + 203; ++i)
    CHECK(rows.targets[i] == -1);  // X stands for any letter
  CHECK(rows.ids[4002 + 203] == words.end);
  CHECK(rows.ids[4002 + 204] == words.padding);
  CHECK(train::masked_rows(texts, {0, 1}, 4002, words, 5).ids == rows.ids);
  CHECK(train::masked_rows(texts, {0, 1}, 4002, words, 6).ids != rows.ids);
  const auto part = train::masked_rows(texts, {0}, 100, words, 5);
  CHECK(part.ids.size() == 100);
  CHECK(part.firsts[0] > 0);

  // At the first place stand A, C and A; between the beginning and an A once A, and once C.
  const train::Texts few = train::texts_of({{"", "AAC"}, {"", "CAC"}, {"", "AC"}}, words);
  const protein_encoder::Id a = words.letter('A'), c = words.letter('C');
  train::Baselines counts(few, words);
  counts.add(few,
             {1, 5, {words.begin, words.mask, a, c, words.end}, {-1, a, -1, -1, -1}, {0}, {0}});
  const double any = 5.0 / (8 + 33);
  CHECK(counts.losses().letters == doctest::Approx(-std::log(any)));
  CHECK(counts.losses().places == doctest::Approx(-std::log((2 + any) / (3 + 1))));
  CHECK(counts.losses().neighbours == doctest::Approx(-std::log((1 + any) / (2 + 1))));
}

namespace {
/// The losses of the steps after `first` up to `last`, and that of other rows; goes on from a file
/// if it is not the beginning, and writes it.
template <class R>
std::vector<double> esm2_losses(int rows, int columns, Index first, Index last,
                                const std::string& file) {
  namespace train = train_protein_encoder;
  std::vector<double> all;
  std::mutex mutex;
  run_loopback(rows * columns, [&](std::shared_ptr<Transport> world) {
    const auto mesh = make_mesh<protein_encoder::Grid>(world, rows, columns);
    using U = Under<double, protein_encoder::Grid, R>;
    train::Flags flags;
    flags.sizes = {.embed = 8, .heads = 2, .hidden = 6, .layers = 2};
    flags.steps = 8;
    flags.dropout = 0.1;
    protein_encoder::Kind kind = protein_encoder::esm2(flags.sizes);
    kind.options.token_dropout = TokenDropout{.mask = kind.vocabulary.mask};
    train::Trainer<U> trainer(mesh, flags, kind);
    const train::Texts texts = train::texts_of(train::made_sequences(12, 1), kind.vocabulary);
    const auto rows_at = [&](Index i) {
      return train::masked_rows(texts, train::random_texts(texts, 5, 1, i), 13, kind.vocabulary,
                                static_cast<std::uint64_t>(i));
    };
    std::vector<double> own;
    if (first > 0) CHECK(trainer.resume(file, "texts", 1) == first);
    for (Index i = first + 1; i <= last; ++i)
      own.push_back(value(trainer.step(train::Placed<U>(mesh, rows_at(i)), i)));
    if (first == 0) trainer.save(file, last, "texts", 1);
    own.push_back(trainer.loss_of({rows_at(100), rows_at(101)}));
    const std::lock_guard lock(mutex);
    all = own;
  });
  return all;
}
}  // namespace

TEST_CASE("ESM2 in training has the same losses on every mesh, and where it is continued") {
  namespace by = protein_encoder::by;
  const std::string file =
      (std::filesystem::temp_directory_path() / ("tessera_esm2_" + std::to_string(::getpid())))
          .string();
  const std::vector<double> alone = esm2_losses<by::Two>(1, 1, 0, 8, file);
  CHECK(alone[7] < alone[0]);
  const auto far = [&](const std::vector<double>& made) {
    double most = made.empty() ? INFINITY : 0;
    for (std::size_t i = 0; i < made.size(); ++i)
      most = support::larger(most, std::fabs(made[i] - alone[alone.size() - made.size() + i]));
    return most;
  };
  CHECK(far(esm2_losses<by::Sequence>(1, 2, 0, 8, file)) < 1e-10);
  (void)esm2_losses<by::Two>(2, 2, 0, 3, file);
  CHECK(far(esm2_losses<by::Sequence>(1, 2, 3, 8, file)) < 1e-10);
  std::filesystem::remove(file);
}

TEST_CASE("calls that an encoder refuses") {
  const auto mesh = dry_mesh<Grid>(2, 2);
  using U = On<Whole>;
  Parameters<Grid> make(mesh, 1);
  const auto model = Encoder<U>::like(
      make, {.vocabulary = 11, .places = 4, .embed = 6, .heads = 3, .layers = 1, .head = false});
  const auto ids = zeros<TokenIds<U>>(mesh, 3, 4);
  CHECK_THROWS_WITH_AS(encode(model, zeros<TokenIds<U>>(mesh, 3, 5)),
                       doctest::Contains("5 places from place 0 on, and the table has 4 rows"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(encode(model, ids, {.first_place = 2}),
                       doctest::Contains("4 places from place 2 on, and the table has 4 rows"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(encode(model, ids, {}, AllValid{}, ids),
                       doctest::Contains("kinds of tokens are given, and the encoder has no table"),
                       UsageError);
  CHECK_THROWS_WITH_AS(masked_scores(model, encode(model, ids)),
                       doctest::Contains("the encoder has no head"), UsageError);
  CHECK_THROWS_WITH_AS(encode(model, ids, {.token_dropout = TokenDropout{}}, ids),
                       doctest::Contains("rows here hold several documents"), UsageError);
}
