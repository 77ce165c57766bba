// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Vision Transformers and Conformer blocks against Hugging Face's of equal weights
// (tests/nn/vision_and_speech_of_hugging_face/generate.py): states, scores, statistics and all
// gradients, compiled and not, under all rules; what padding may not change; halos; memory.
#include <tessera/nn/speech/conformer_block.hpp>
#include <tessera/nn/vision/vision_transformer.hpp>
#include <tessera/op/compile.hpp>

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

template <class R> struct SpeechCase {
  using U = On<R>;
  using Block = ConformerBlock<U>;
  using Input = SpeechInput<U>;
  Block block, gradient;
  SpeechGiven<U> given;
  Input input_gradient;
  SpeechExpected<U> expected;
  ConformerStatistics<U> statistics;

  SpeechCase(const ProcessMesh<Grid>& mesh, const std::string& name) {
    Parameters<Grid> make(mesh, 1);
    block = gradient = Block::like(make, {.embed = 6, .heads = 3, .hidden = 8, .window = 5});
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
  /// Returns a function of the weights and the input: the gradients by them of the loss of
  /// run(block, x), a tree whose first tensor is y, and the tree.
  template <class Run> auto step(const Run& run) const {
    return [this, run](const Block& w, const Input& x) {
      return value_and_grad<0, 1>([this, run](const Block& of, const Input& from) {
        const auto made = run(of, from.x);
        const auto y = ended(std::get<0>(made), given.valid);
        return std::tuple(even_loss(y), std::tuple(y, std::get<1>(made)));
      })(w, x);
    };
  }
};

/// How far a block is from its file: y and statistics, and all gradients.
struct SpeechDistances {
  double y, gradients;
};
template <class R, class Run>
SpeechDistances speech_distances(const SpeechCase<R>& c, const Run& run) {
  const auto step = c.step(run);
  auto compiled = compile(step);
  const auto x = c.spoilt();
  const auto made = mesh_of(x.x).processes() == 4 ? compiled(c.block, x) : step(c.block, x);
  return {farthest_apart(values_of(std::get<1>(made.value)),
                         values_of(std::tuple(c.expected.y, c.statistics))),
          farthest_apart(values_of(made.gradient),
                         values_of(std::tuple(c.gradient, c.input_gradient)))};
}
/// A block while it trains, with a mask or without one, and by given statistics.
template <class R>
SpeechDistances training(const ProcessMesh<Grid>& mesh, const std::string& name) {
  const SpeechCase<R> c(mesh, name);
  return speech_distances(c, [&](const auto& block, const auto& x) {
    const auto made = conformer_block(block, x, {}, c.given.valid);
    return std::tuple(made.y, ConformerStatistics<On<R>>{made.mean, made.variance});
  });
}
template <class R> SpeechDistances evaluated(const ProcessMesh<Grid>& mesh) {
  const SpeechCase<R> c(mesh, "evaluated");
  return speech_distances(c, [&](const auto& block, const auto& x) {
    return std::tuple(conformer_block(block, c.statistics, x, {}, c.given.valid), c.statistics);
  });
}
}  // namespace

TEST_CASE(
    "a Conformer block is Hugging Face's, whatever padding holds, while it trains and after") {
  std::mutex mutex;
  everywhere([&]<class R>(const ProcessMesh<Grid>& mesh, const char* rules, std::type_identity<R>) {
    const SpeechDistances whole = training<R>(mesh, "conformer"),
                          ragged = training<R>(mesh, "ragged"), after = evaluated<R>(mesh);
    const std::lock_guard lock(mutex);
    CAPTURE(rules);
    CAPTURE(mesh.processes());
    for (const SpeechDistances& far : {whole, ragged, after}) {
      CHECK(far.y < 1e-12);
      CHECK(far.gradients < 1e-11);
    }
  });
}
