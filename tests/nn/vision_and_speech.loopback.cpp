// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Vision Transformers and Conformer blocks against Hugging Face's of equal weights
// (tests/nn/vision_and_speech_of_hugging_face/generate.py): states, scores, statistics and all
// gradients, compiled and not, under all rules; what padding may not change; halos; memory.
#include <tessera/nn/speech/conformer_block.hpp>
#include <tessera/nn/vision/vision_transformer.hpp>
#include <tessera/op/compile.hpp>
#include <tessera/program/on_process.hpp>

#include "nn/peer_files.hpp"

namespace {
using namespace nn_test;

template <class U> using Valid = typename U::template Of<bool, logical::batch, logical::sequence>;
template <class U>
using Images = typename U::template Tensor<logical::batch, logical::height, logical::width,
                                           logical::in_channels>;

/// The weights of the elements in a loss: from -1 to 2, evenly, as torch.linspace.
struct Even {
  Index n;
  KOKKOS_FUNCTION double operator()(const GlobalIndex& i) const {
    return -1 + 3 * static_cast<double>(i.linear()) / static_cast<double>(n - 1);
  }
};
template <class Y> auto even_loss(const Y& y) {
  return sum(y * from_function<Y>(mesh_of(y), y.extents(), Even{y.size()}));
}
struct Later {
  Index from;
  KOKKOS_FUNCTION bool operator()(const GlobalIndex& i) const { return i[1] >= from; }
};
std::string file_of(const std::string& name) { return "vision_and_speech_of_hugging_face/" + name; }

/// Calls check(name, rules) for each list of rules.
template <class F> void for_each_rules(const F& check) {
  check("data parallel", std::type_identity<DataParallel<BothAxes>>{});
  check("tensor parallel", std::type_identity<TensorParallel<data, model>>{});
  check("two-dimensional", std::type_identity<TwoDimensional<data, model>>{});
  check("fully sharded", std::type_identity<FullySharded<BothAxes>>{});
  check("space", std::type_identity<SpaceSplit<data, model>>{});
}
/// 2 x 4 and 1 x 8 have processes without places, rows of pixels or heads.
const std::pair<int, int> meshes[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {2, 4}, {1, 8}};

/// Calls check(mesh, name, rules) on each mesh under each list of rules, one process at a time
/// where it holds the lock.
template <class F> void everywhere(const F& check) {
  for (const auto& [rows, columns] : meshes)
    on_mesh(rows, columns, [&](const ProcessMesh<Grid>& mesh) {
      for_each_rules([&](const char* rules, auto identity) { check(mesh, rules, identity); });
    });
}

template <class U> struct VisionInput {
  Images<U> images;
  static constexpr auto fields = Fields<&VisionInput::images>{};
};
template <class U> struct VisionExpected {
  std::vector<Activations<U>> states;
  typename U::template Tensor<logical::batch, logical::vocabulary> scores;
  static constexpr auto fields = Fields<&VisionExpected::states, &VisionExpected::scores>{};
};

template <class R> struct VisionCase {
  using U = On<R>;
  VisionTransformer<U> model, gradient;
  VisionInput<U> input, input_gradient;
  VisionExpected<U> expected;
  VisionOptions options;

  VisionCase(const ProcessMesh<Grid>& mesh, const std::string& name) {
    const bool class_token = name == "vit";
    Parameters<Grid> make(mesh, 1);
    model = gradient = VisionTransformer<U>::like(make, {.height = 9,
                                                         .width = 8,
                                                         .channels = 2,
                                                         .patch = {3, 2},
                                                         .embed = 6,
                                                         .heads = 3,
                                                         .hidden = 7,
                                                         .layers = 2,
                                                         .classes = 5,
                                                         .class_token = class_token});
    input.images = input_gradient.images = zeros<Images<U>>(mesh, 3, 9, 8, 2);
    expected.states.assign(3, zeros<Activations<U>>(mesh, 3, class_token ? 13 : 12, 6));
    expected.scores = zeros<decltype(expected.scores)>(mesh, 3, 5);
    read_peer(mesh, file_of(name), "", model);
    read_peer(mesh, file_of(name), "gradient.", gradient);
    read_peer(mesh, file_of(name), "", input);
    read_peer(mesh, file_of(name), "gradient.", input_gradient);
    read_peer(mesh, file_of(name), "expected.", expected);
  }
  auto step() const {
    return [this](const VisionTransformer<U>& w, const VisionInput<U>& x) {
      return value_and_grad<0, 1>([this](const auto& of, const auto& from) {
        const auto scores = class_scores(of, encode(of, from.images, options));
        return std::tuple(even_loss(scores), scores);
      })(w, x);
    };
  }
};

struct VisionDistances {
  double states, scores, gradients;
};
template <class R>
VisionDistances vision_distances(const ProcessMesh<Grid>& mesh, const std::string& name) {
  const VisionCase<R> c(mesh, name);
  auto compiled = compile(c.step());
  const auto made = mesh.processes() == 4 ? compiled(c.model, c.input) : c.step()(c.model, c.input);
  return {farthest_apart(values_of(hidden_states(c.model, c.input.images, c.options)),
                         values_of(c.expected.states)),
          farthest_apart(values_of(std::get<1>(made.value)), values_of(c.expected.scores)),
          farthest_apart(values_of(made.gradient),
                         values_of(std::tuple(c.gradient, c.input_gradient)))};
}
}  // namespace

TEST_CASE("a Vision Transformer is Hugging Face's, in all states, scores and gradients") {
  std::mutex mutex;
  for (const char* name : {"vit", "mean"})
    everywhere(
        [&]<class R>(const ProcessMesh<Grid>& mesh, const char* rules, std::type_identity<R>) {
          const VisionDistances far = vision_distances<R>(mesh, name);
          const std::lock_guard lock(mutex);
          CAPTURE(name);
          CAPTURE(rules);
          CAPTURE(mesh.processes());
          CHECK(far.states < 1e-12);
          CHECK(far.scores < 1e-12);
          CHECK(far.gradients < 1e-11);
        });
}

namespace {
/// What a file says of a Conformer block beside its parameters.
template <class U> struct SpeechInput {
  Activations<U> x;
  static constexpr auto fields = Fields<&SpeechInput::x>{};
};
template <class U> struct SpeechGiven {
  Activations<U> x;
  Valid<U> valid;
  static constexpr auto fields = Fields<&SpeechGiven::x, &SpeechGiven::valid>{};
};
template <class U> struct SpeechExpected {
  Activations<U> y;
  static constexpr auto fields = Fields<&SpeechExpected::y>{};
};

const ConformerSizes speech_sizes{.embed = 6, .heads = 3, .hidden = 8, .window = 5};

template <class R> struct SpeechCase {
  using U = On<R>;
  using Block = ConformerBlock<U>;
  using Input = SpeechInput<U>;
  Block block, gradient;
  SpeechGiven<U> given;
  Input input_gradient;
  SpeechExpected<U> expected;
  ConformerStatistics<U> statistics;
  ConformerOptions options;

  SpeechCase(const ProcessMesh<Grid>& mesh, const std::string& name) {
    Parameters<Grid> make(mesh, 1);
    block = gradient = Block::like(make, speech_sizes);
    const auto x = zeros<Activations<U>>(mesh, 3, 7, 6);
    given.x = input_gradient.x = expected.y = x;
    given.valid = zeros<Valid<U>>(mesh, 3, 7);
    statistics.mean = statistics.variance = zeros<decltype(statistics.mean)>(mesh, 6);
    read_peer(mesh, file_of(name), "", block);
    read_peer(mesh, file_of(name), "gradient.", gradient);
    read_peer(mesh, file_of(name), "input.", given);
    read_peer(mesh, file_of(name), "gradient.", input_gradient);
    read_peer(mesh, file_of(name), "expected.", expected);
    read_peer(mesh, file_of(name), "statistics.", statistics);
  }
  /// The input with NaN where it is not valid.
  Input spoilt() const {
    return {map<"ab,abc->abc", typename Activations<U>::spec>(
        fn::Fixed<fn::Select, 2, double>{{}, NAN}, given.valid, given.x)};
  }
  /// Returns y with zeros where it is not valid, and the batch norm's statistics: those of the
  /// batch while it trains, else those that are given.
  auto run(const Block& of, const Activations<U>& x, bool trains) const {
    if (!trains)
      return std::tuple(
          ended(conformer_block(of, statistics, x, options, given.valid), given.valid), statistics);
    const auto made = conformer_block(of, x, options, given.valid);
    return std::tuple(ended(made.y, given.valid), ConformerStatistics<U>{made.mean, made.variance});
  }
  /// Returns a function of the weights and the input: run's tensors, and a loss's gradients.
  auto step(bool trains) const {
    return [this, trains](const Block& w, const Input& x) {
      return value_and_grad<0, 1>([this, trains](const Block& of, const Input& from) {
        const auto made = run(of, from.x, trains);
        return std::tuple(even_loss(std::get<0>(made)), made);
      })(w, x);
    };
  }
};

/// How far a block is from its file: y and statistics, and all gradients.
struct SpeechDistances {
  double y, gradients;
};
template <class R>
SpeechDistances speech_distances(const ProcessMesh<Grid>& mesh, const std::string& name,
                                 bool trains) {
  const SpeechCase<R> c(mesh, name);
  const auto step = c.step(trains);
  auto compiled = compile(step);
  const auto x = c.spoilt();
  const auto made = mesh.processes() == 4 ? compiled(c.block, x) : step(c.block, x);
  return {farthest_apart(values_of(std::get<1>(made.value)),
                         values_of(std::tuple(c.expected.y, c.statistics))),
          farthest_apart(values_of(made.gradient),
                         values_of(std::tuple(c.gradient, c.input_gradient)))};
}
/// What a block of other sizes and options makes, and its gradients.
template <class R>
Values speech_numbers(const ProcessMesh<Grid>& mesh, const ConformerSizes& sizes,
                      const ConformerOptions& options) {
  SpeechCase<R> c(mesh, "ragged");
  Parameters<Grid> make(mesh, 3);
  c.block = ConformerBlock<On<R>>::like(make, sizes);
  c.options = options;
  const auto made = c.step(true)(c.block, c.spoilt());
  return values_of(std::tuple(std::get<1>(made.value), made.gradient));
}
}  // namespace

TEST_CASE(
    "a Conformer block is Hugging Face's, whatever padding holds, while it trains and after") {
  std::mutex mutex;
  everywhere([&]<class R>(const ProcessMesh<Grid>& mesh, const char* rules, std::type_identity<R>) {
    const SpeechDistances whole = speech_distances<R>(mesh, "conformer", true),
                          ragged = speech_distances<R>(mesh, "ragged", true),
                          after = speech_distances<R>(mesh, "evaluated", false);
    const std::lock_guard lock(mutex);
    CAPTURE(rules);
    CAPTURE(mesh.processes());
    for (const SpeechDistances& far : {whole, ragged, after}) {
      CHECK(far.y < 1e-12);
      CHECK(far.gradients < 1e-11);
    }
  });
}

TEST_CASE("a Conformer block's positions, windows and dropout are the same under all rules") {
  ConformerSizes relative = speech_sizes, even = speech_sizes, wide = speech_sizes;
  relative.buckets = 4;
  even.window = 4;
  wide.window = 17;  // reaches beyond every block
  const std::pair<ConformerSizes, ConformerOptions> others[] = {
      {relative, {}},
      {even, {.attention = {.rotary = true}}},
      {wide, {.dropout = {.rate = 0.2, .seed = 4}}},
      {speech_sizes, {.attention = {.causal = true}}}};
  std::vector<Values> alone(std::size(others));
  const auto numbers = [&]<class R>(const ProcessMesh<Grid>& mesh, std::size_t i,
                                    std::type_identity<R>) {
    return speech_numbers<R>(mesh, others[i].first, others[i].second);
  };
  on_mesh(1, 1, [&](const ProcessMesh<Grid>& mesh) {
    for (std::size_t i = 0; i < alone.size(); ++i)
      alone[i] = numbers(mesh, i, std::type_identity<DataParallel<BothAxes>>{});
  });
  std::mutex mutex;
  everywhere(
      [&]<class R>(const ProcessMesh<Grid>& mesh, const char* rules, std::type_identity<R> on) {
        for (std::size_t i = 0; i < alone.size(); ++i) {
          const double far = farthest_apart(numbers(mesh, i, on), alone[i]);
          const std::lock_guard lock(mutex);
          CAPTURE(rules);
          CAPTURE(mesh.processes());
          CAPTURE(i);
          CHECK(far < 1e-11);
        }
      });
}

TEST_CASE(
    "a causal Conformer block sees no later places, another one does, and masks may be left out") {
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    using R = SpaceSplit<data, model>;
    SpeechCase<R> c(mesh, "conformer");
    const auto first_places = [&](const Activations<On<R>>& x) {
      return values_of(slice<1>(std::get<0>(c.run(c.block, x, false)), {0}, {4}));
    };
    const auto later = from_function<Valid<On<R>>>(mesh, {3, 7}, Later{4});
    const auto other = c.given.x - ended(c.given.x, later);  // zeros from place 4 on
    CHECK(farthest_apart(first_places(c.given.x), first_places(other)) > 1e-3);
    c.options.attention.causal = true;
    CHECK(first_places(c.given.x) == first_places(other));
    const auto without_mask = conformer_block(c.block, c.given.x).y;
    CHECK(farthest_apart(values_of(without_mask), values_of(c.expected.y)) < 1e-12);
  });
}

namespace {
/// A step of a Conformer block, on paper.
template <class R> Program speech_program(Index sequence) {
  using U = On<R>;
  const auto mesh = dry_mesh<Grid>(2, 4);
  Parameters<Grid> make(mesh, 1);
  const auto block =
      ConformerBlock<U>::like(make, {.embed = 8, .heads = 4, .hidden = 16, .window = 5});
  const auto x = zeros<Activations<U>>(mesh, 4, sequence, 8);
  const auto valid = zeros<Valid<U>>(mesh, 4, sequence);
  Recording recording(mesh);
  (void)value_and_grad<0, 1>([&](const auto& of, const auto& from) {
    return sum(conformer_block(of, from, {}, valid).y);
  })(block, x);
  return recording.take();
}
/// The plans of its convolution: forward, by the input, by the kernel.
std::vector<const Plan*> convolutions(const Program& program) {
  std::vector<const Plan*> plans;
  for (const ProgramEntry& entry : program.entries())
    if (entry.label.ends_with("bxi,xio->bxo")) plans.push_back(entry.plan.get());
  return plans;
}
}  // namespace

TEST_CASE("a Conformer's convolution along a split sequence sends halos alone") {
  for (const Index sequence : {64, 4096}) {
    const Program program = speech_program<SpaceSplit<data, model>>(sequence);
    const auto plans = convolutions(program);
    REQUIRE(plans.size() == 3);
    for (std::size_t i = 0; i < 3; ++i)
      for (int p = 0; p < 8; ++p) {
        const Plan plan = on_process(*plans[i], p);
        CAPTURE(i);
        CAPTURE(p);
        CHECK(plan.count(Collective::exchange) == 1);
        CHECK(plan.count(all_gather) == 0);
        CHECK(plan.count(all_reduce) == (i == 2 ? 1 : 0));
        // 2 places to each neighbour, of 2 texts and 8 channels, in double.
        const Index neighbours = p % 4 == 0 || p % 4 == 3 ? 1 : 2;
        CHECK(plan.own_payload_bytes(Collective::exchange) == neighbours * 2 * 2 * 8 * 8);
        if (i < 2) CHECK(plan.messages() == neighbours);
      }
    int gathers = 0;  // of keys and values, there and back, and the mask
    for (const ProgramEntry& entry : program.entries()) gathers += entry.plan->count(all_gather);
    CHECK(gathers == 5);
  }
  // Where the channels are split as the elements of a feed-forward layer are, it sends nothing.
  const Program program = speech_program<TensorParallel<data, model>>(64);
  const auto plans = convolutions(program);
  REQUIRE(plans.size() == 3);
  CHECK(plans[0]->payload_bytes() == 0);
  CHECK(plans[1]->payload_bytes() == 0);
  CHECK(plans[2]->count(Collective::exchange) + plans[2]->count(all_gather) == 0);
}

TEST_CASE("a Vision Transformer's patches are local where they divide the rows of a process") {
  using U = On<SpaceSplit<data, model>>;
  const auto mesh = dry_mesh<Grid>(2, 4);
  Parameters<Grid> make(mesh, 1);
  const auto model = VisionTransformer<U>::like(make, {.height = 32,
                                                       .width = 32,
                                                       .patch = {4, 4},
                                                       .embed = 8,
                                                       .heads = 4,
                                                       .hidden = 16,
                                                       .layers = 1,
                                                       .class_token = false});
  Recording recording(mesh);
  (void)encode(model, zeros<Images<U>>(mesh, 4, 32, 32, 3));
  Index payload = 0;
  int operators = 0;
  const Program program = recording.take();
  for (const ProgramEntry& entry : program.entries())
    if (program.layers()[static_cast<std::size_t>(entry.layer)].name == "patches") {
      payload += entry.plan->payload_bytes();
      ++operators;
    }
  CHECK(operators > 0);
  CHECK(payload == 0);
}

TEST_CASE("a Vision Transformer's blocks run again, and peaks are planned") {
  using R = SpaceSplit<data, model>;
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    const auto gradients = [&](const VisionOptions& options) {
      VisionCase<R> c(mesh, "vit");
      c.options = options;
      return values_of(c.step()(c.model, c.input).gradient);
    };
    const Dropout drop{.rate = 0.2, .seed = 4, .step = 2};
    const Values kept = gradients({.dropout = drop});
    CHECK(farthest_apart(kept, gradients({})) > 1e-3);  // elements are dropped
    CHECK(farthest_apart(gradients({.dropout = drop, .again = {true, true}}), kept) < 1e-12);

    const auto peak_on = [](const ProcessMesh<Grid>& on, bool images) {
      const VisionCase<R> vision(on, "vit");
      const SpeechCase<R> speech(on, "ragged");
      const auto x = speech.spoilt();
      on.arena().reset_peak();
      Recording recording(on);
      if (images)
        (void)vision.step()(vision.model, vision.input);
      else
        (void)speech.step(true)(speech.block, x);
      return recording.take().peak_bytes();
    };
    for (const bool images : {true, false}) {
      const Index ran = peak_on(mesh, images), measured = mesh.arena().peak();
      CHECK(ran == measured);
      if (mesh.process() == 0) CHECK(ran == peak_on(dry_mesh<Grid>(2, 2), images));
    }
  });
}

namespace {
/// Multiples of 1/8 up to 1, where a longer tensor has the element the same; NaN where texts of 7,
/// 5 and 3 places have ended, if they do.
template <class T> struct Eighths {
  bool end = false;
  KOKKOS_FUNCTION T operator()(const GlobalIndex& i) const {
    if (end && i[1] >= 7 - 2 * i[0]) return static_cast<T>(NAN);
    const Index place = (i[0] * 7 + i[1]) * 11 + i.back();
    return static_cast<T>(static_cast<float>(place * 5 % 17 - 8) / 8);
  }
};
struct NotEnded {
  KOKKOS_FUNCTION bool operator()(const GlobalIndex& i) const { return i[1] < 7 - 2 * i[0]; }
};
template <class Tree> Values doubles_of(const Tree& tree) {
  Values values;
  for_each_tensor([&](const auto& x) { values.push_back(to_host(cast<double>(x)).values); }, tree);
  return values;
}

/// What a model of elements T makes of the same numbers, and its gradients.
template <class T> Values vision_in(const ProcessMesh<Grid>& mesh) {
  using U = Under<T, Grid, TensorParallel<data, model>>;
  Parameters<Grid> make(mesh, 3);
  const auto weights = VisionTransformer<U>::like(make, {.height = 4,
                                                         .width = 4,
                                                         .channels = 2,
                                                         .patch = {2, 2},
                                                         .embed = 6,
                                                         .heads = 3,
                                                         .hidden = 7,
                                                         .layers = 1,
                                                         .classes = 5});
  const auto images = from_function<Images<U>>(mesh, {3, 4, 4, 2}, Eighths<T>{});
  const auto made = value_and_grad<0, 1>([](const auto& w, const auto& from) {
    const auto scores = class_scores(w, encode(w, from));
    return std::tuple(mean(scores * scores), scores);
  })(weights, images);
  return doubles_of(std::tuple(std::get<1>(made.value), made.gradient));
}
/// Padded to `length` places; of y and the gradient by x the seven that every length has.
template <class T> Values speech_in(const ProcessMesh<Grid>& mesh, Index length) {
  using U = Under<T, Grid, TensorParallel<data, model>>;
  Parameters<Grid> make(mesh, 3);
  const auto block = ConformerBlock<U>::like(make, speech_sizes);
  const auto x = from_function<Activations<U>>(mesh, {3, length, 6}, Eighths<T>{true});
  const auto valid = from_function<Valid<U>>(mesh, {3, length}, NotEnded{});
  const auto made = value_and_grad<0, 1>([&](const auto& w, const auto& from) {
    const auto all = conformer_block(w, from, {.attention = {.rotary = true}}, valid);
    const auto y = detail::where_valid(all.y, valid, Where{});
    return std::tuple(sum(y * y) * static_cast<T>(0.015625f), y, all.mean, all.variance);
  })(block, x);
  const auto shared = [](const auto& t) { return slice<1>(t, {0}, {7}); };
  return doubles_of(std::tuple(shared(std::get<1>(made.value)), std::get<2>(made.value),
                               std::get<3>(made.value), std::get<0>(made.gradient),
                               shared(std::get<1>(made.gradient))));
}
}  // namespace

TEST_CASE("images and speech in narrow elements, and texts that are padded to other lengths") {
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    const Values images = vision_in<float>(mesh), speech = speech_in<float>(mesh, 7);
    CHECK(farthest_apart(vision_in<half>(mesh), images) < 1e-2);
    CHECK(farthest_apart(vision_in<bfloat16>(mesh), images) < 6e-2);
    CHECK(farthest_apart(speech_in<half>(mesh, 7), speech) < 1e-2);
    CHECK(farthest_apart(speech_in<bfloat16>(mesh, 7), speech) < 6e-2);
    for (const Index length : {8, 13})
      CHECK(farthest_apart(speech_in<float>(mesh, length), speech) < 1e-5);
  });
}

TEST_CASE("a batch norm's mask that is split otherwise than x is moved once") {
  on_mesh(2, 2, [](const ProcessMesh<Grid>& mesh) {
    using U = On<SpaceSplit<data, model>>;
    using Other = ShardedTensor<bool, Grid, P<_, data>>;
    Parameters<Grid> make(mesh, 3);
    const auto norm = BatchNorm<U, logical::hidden>::like(make, 6);
    const auto x = from_function<Activations<U>>(mesh, {3, 7, 6}, Eighths<double>{true});
    const auto valid = from_function<Valid<U>>(mesh, {3, 7}, NotEnded{});
    const auto other = from_function<Other>(mesh, {3, 7}, NotEnded{});
    const auto made = [&](const auto& mask, Index* payload) {
      Recording recording(mesh);
      const auto run = value_and_grad<0, 1>([&](const auto& w, const auto& from) {
        const auto all = batch_norm(w, from, mask);
        return std::tuple(even_loss(all.y * all.y), all.y, all.mean, all.variance);
      })(norm, x);
      *payload = recording.take().payload_bytes();
      return values_of(std::tuple(std::get<1>(run.value), run.gradient));
    };
    Index alike = 0, differently = 0;
    CHECK(made(other, &differently) == made(valid, &alike));
    Recording recording(mesh);
    (void)reshard<typename Valid<U>::spec>(other);
    const Index move = recording.take().payload_bytes();
    CHECK(move > 0);
    CHECK(differently == alike + move);
  });
}

TEST_CASE("a batch norm of no valid places is zero, and calls that are refused") {
  const auto mesh = dry_mesh<Grid>(2, 2);
  using U = On<SpaceSplit<data, model>>;
  Parameters<Grid> make(mesh, 1);
  const auto vision = [&](const VisionSizes& n) { return VisionTransformer<U>::like(make, n); };
  CHECK_THROWS_WITH_AS(vision({.patch = {4}}),
                       doctest::Contains("patches of 4 in images of 224x224"), ShapeError);
  CHECK_THROWS_WITH_AS(vision({.height = 8, .patch = {16, 16}}),
                       doctest::Contains("patches of 16x16 in images of 8x224"), ShapeError);
  const auto model = vision(
      {.height = 8, .width = 6, .patch = {2, 3}, .embed = 6, .heads = 3, .hidden = 7, .layers = 1});
  const auto images = [&](Index height, Index width) {
    return zeros<Images<U>>(mesh, 3, height, width, 3);
  };
  CHECK_THROWS_WITH_AS(encode(model, images(6, 8)),
                       doctest::Contains("images of 6x8 have 3x2 patches of 2x3, and the model has "
                                         "positions for 4x2"),
                       ShapeError);
  CHECK(encode(model, images(9, 8)).extent(1) == 9);  // what is left over is not seen
  CHECK_THROWS_WITH_AS(class_scores(model, encode(model, images(8, 6))),
                       doctest::Contains("the model has no classes"), UsageError);
  CHECK_THROWS_WITH_AS(ConformerBlock<U>::like(make, {.window = 0}),
                       doctest::Contains("the convolution's window has 0 places"), UsageError);
  on_mesh(2, 2, [](const ProcessMesh<Grid>& run) {
    Parameters<Grid> weights(run, 1);
    const auto norm = BatchNorm<U, logical::hidden>::like(weights, 6);
    const auto x = full<Activations<U>>(run, {3, 7, 6}, NAN);
    const auto made = batch_norm(norm, x, zeros<Valid<U>>(run, 3, 7));
    for (const auto& values : values_of(made))
      for (const double v : values) CHECK(v == 0);
  });
}
