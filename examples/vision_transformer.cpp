// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 4
// arguments: --made --split space --steps 40 --batch 9 --embed 12 --heads 3 --hidden 20 --layers 2 --lr 0.01
//
// A Vision Transformer learns to tell photographs of clothes apart. The model is the library's
// (tessera/nn/vision/vision_transformer.hpp); --mesh and --split say how it is spread over
// processes: --split space divides each image by rows.
//
//   python3 examples/vision_transformer/fetch.py images
//   mpiexec -n 2 vision_transformer --images images
//   vision_transformer --images images --dry --mesh 4x8 --split space
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/nn/vision/vision_transformer.hpp>
#include <tessera/op/compile.hpp>

#include "support/by_layers.hpp"
#include "support/progress.hpp"
#include "support/voice.hpp"
#include "vision_transformer/flags.hpp"
#include "vision_transformer/images.hpp"

namespace vision {

using support::Voice;

inline VisionSizes sizes_of(const Flags& flags, const Images& images) {
  const Extents& e = images.learn.extents;
  return {.height = e[1],
          .width = e[2],
          .channels = e[3],
          .patch = {flags.patch, flags.patch},
          .embed = flags.embed,
          .heads = flags.heads,
          .hidden = flags.hidden,
          .layers = flags.layers,
          .classes = images.classes(),
          .class_token = flags.pool == "token"};
}

/// A model in training.
template <class U> class Trainer {
 public:
  using Model = VisionTransformer<U>;

  Trainer(const ProcessMesh<Grid>& mesh, const Flags& flags, const Images& images)
      : flags_(flags),
        weights_(born(mesh, flags, images)),
        optimizer_(AdamW{.rate = WarmupCosine{.peak = flags.rate,
                                              .warmup = flags.steps / 20 + 1,
                                              .steps = flags.steps + 1,
                                              .floor = flags.rate / 50},
                         .decay = flags.decay},
                   weights_, {.clip = 1, .decays = matrices_only}) {}

  const Model& weights() const { return weights_; }

  /// Improves the weights; returns the cross-entropy before that, a scalar.
  auto step(const Batch<U>& batch, Index number) {
    const VisionOptions options{.dropout = {.rate = flags_.dropout,
                                            .seed = flags_.seed,
                                            .step = static_cast<std::uint64_t>(number)}};
    const auto run = value_and_grad([&](const Model& weights) {
      return mean(cross_entropy(scores(weights, batch, options), batch.classes,
                                {.smoothing = flags_.smoothing}));
    })(weights_);
    const Layer scope(batch.pixels, "optimizer");
    optimizer_.step(weights_, run.gradient);
    return run.value;
  }
  /// Returns the classes that the model finds in images, (batch).
  auto found(const Batch<U>& batch) const { return argmax<"bc->b">(scores(weights_, batch, {})); }

 private:
  static auto scores(const Model& weights, const Batch<U>& batch, const VisionOptions& options) {
    const auto images = cast<float>(batch.pixels) * (1 / 127.5f) - 1.0f;  // -1 to 1
    return class_scores(weights, encode(weights, images, options));
  }
  static Model born(const ProcessMesh<Grid>& mesh, const Flags& flags, const Images& images) {
    Parameters<Grid> make(mesh, flags.seed);
    return Model::like(make, sizes_of(flags, images));
  }

  Flags flags_;
  Model weights_;
  Optimizer<AdamW> optimizer_;
};

/// Returns which part of the images that were held out is put into its class: `found` names the
/// classes of a batch, which is filled up by the first images again.
template <class U, class Found>
double accuracy(const ProcessMesh<Grid>& mesh, const ImageSet& set, Index each, Found& found) {
  Index right = 0;
  for (Index first = 0; first < set.count(); first += each) {
    std::vector<Index> rows;
    for (Index r = 0; r < each; ++r) rows.push_back((first + r) % set.count());
    const auto classes = to_host(found(Batch<U>(mesh, set, rows))).values;
    for (Index r = 0; r < each && first + r < set.count(); ++r)
      right +=
          classes[static_cast<std::size_t>(r)] == set.classes[static_cast<std::size_t>(first + r)];
  }
  return static_cast<double>(right) / static_cast<double>(set.count());
}

template <class U>
void train(const ProcessMesh<Grid>& mesh, const Flags& flags, const Images& images,
           const Voice& say) {
  const auto dry = dry_mesh(mesh);
  Trainer<U> paper(dry, flags, images);
  const std::vector<Index> some(static_cast<std::size_t>(flags.batch), 0);
  Recording recording(dry);
  paper.step(Batch<U>(dry, images.learn, some), 1);
  const Program planned = recording.take();
  say("\nThe plan of one step, before its passes\n{}  peak beyond the weights {} KiB\n",
      support::by_layers(planned), planned.peak_bytes() >> 10);
  say("\nThe weights\n{}\n", to_string(parameter_table(paper.weights())));
  if (mesh.dry()) return;

  Trainer<U> trainer(mesh, flags, images);
  auto step = compile([&](const Batch<U>& batch, Index i) { return trainer.step(batch, i); });
  auto found = compile([&](const Batch<U>& batch) { return trainer.found(batch); });
  const auto held_out = [&] {
    return 100 * accuracy<U>(mesh, images.held_out, flags.batch, found);
  };
  const double before = held_out();
  support::Progress progress(flags.steps, say.speaks);
  Index sent = 0;
  double smooth = 0;  // the mean of about the last twenty losses
  for (Index i = 1; i <= flags.steps; ++i) {
    const Batch<U> batch(mesh, images.learn, random_rows(images.learn, flags.batch, flags.seed, i));
    const Index at_first = mesh.ledger().payload_bytes();
    const double loss = value(step(batch, i));
    sent += mesh.ledger().payload_bytes() - at_first;
    smooth = i == 1 ? loss : 0.95 * smooth + 0.05 * loss;
    progress.show(i, fmt::format("loss {:.3f}", smooth));
  }
  const Index each = step.program().own_payload_bytes();
  say("\nProcess 0 sent {} bytes, planned {} x {}\n", sent, flags.steps, each);
  if (sent != each * flags.steps)
    throw Error("planned and counted communication differ on a process");
  const double after = held_out();
  say("Of {} images that were held out {:.2f} % are put into their class, {:.2f} % before\n",
      images.held_out.count(), after, before);
  if (!(after > before)) throw Error("the model has not learned");
}

void run(Environment& env, const std::vector<std::string>& words) {
  Flags flags = read_flags(words);
  const Voice say{env.process() == 0};
  if (flags.help) return say("{}", usage);
  support::fit_mesh(flags.mesh, env.size(), flags.dry);
  const Images images = flags.made ? made_images(flags.seed)
                                   : read_images(make_mesh<Grid>(env, env.size(), 1), flags.images);
  say("{} images to learn from, {} held out, {}, {} classes\n", images.learn.count(),
      images.held_out.count(), to_string(images.learn.extents), images.classes());
  const auto mesh = flags.dry ? dry_mesh<Grid>(flags.mesh.data, flags.mesh.model)
                              : make_mesh<Grid>(env, flags.mesh.data, flags.mesh.model);
  say("mesh {}, {} processes; split by {}\n", to_string(mesh.shape(), Grid::names()),
      mesh.processes(), flags.split);
  const auto with = [&]<class R>(std::type_identity<R>) {
    train<Under<float, Grid, R>>(mesh, flags, images, say);
  };
  if (flags.split == "batch") with(std::type_identity<DataParallel<Axes<data, model>>>{});
  if (flags.split == "tensors") with(std::type_identity<TensorParallel<data, model>>{});
  if (flags.split == "shards") with(std::type_identity<FullySharded<Axes<data, model>>>{});
  if (flags.split == "space") with(std::type_identity<SpaceSplit<data, model>>{});
}

}  // namespace vision

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return tessera::run_main(1, argv, [&](tessera::Environment& env) { vision::run(env, words); });
}
