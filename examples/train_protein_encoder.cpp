// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 2
// arguments: --made --steps 60 --batch 12 --embed 16 --heads 2 --hidden 32 --layers 2 --lr 0.02 --mesh 1x2 --split sequence --log train_protein_encoder --out train_protein_encoder.safetensors
//
// ESM2's architecture learns to find masked letters of proteins: rotary positions, norms before
// layers, exact gelu, BERT's way to mask. The model is the library's (tessera/nn/encoder.hpp);
// --mesh and --split say how it is spread over processes.
//
//   python3 examples/train_protein_encoder/fetch.py antibodies
//   mpiexec -n 2 train_protein_encoder --sequences antibodies/learn.fasta
//   --held-out antibodies/held_out.fasta --out antibodies.safetensors
//   mpiexec -n 2 protein_encoder --weights antibodies.safetensors
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/comm/complaint.hpp>
#include <tessera/nn/parameter_table.hpp>
#include <tessera/op/compile.hpp>

#include "protein_encoder/report.hpp"
#include "support/by_layers.hpp"
#include "support/learning_log.hpp"
#include "support/progress.hpp"
#include "support/saved_run.hpp"
#include "support/voice.hpp"
#include "train_protein_encoder/baselines.hpp"
#include "train_protein_encoder/trainer.hpp"

namespace train_protein_encoder {

using support::Voice;

struct Sets {
  Texts learn, held_out;
  Index letters = 0;  ///< to learn from
};

Sets sets_of(const Flags& flags, const Vocabulary& words) {
  Sets sets;
  const std::vector<Sequence> all =
      flags.made ? made_sequences(640, flags.seed) : read_sequences(flags.sequences);
  sets.learn = texts_of(all, words);
  if (!flags.held_out.empty()) {
    sets.held_out = texts_of(read_sequences(flags.held_out), words);
  } else {
    Texts rest;
    for (std::size_t i = 0; i < sets.learn.size(); ++i)
      (i % 20 == 19 ? sets.held_out : rest).push_back(sets.learn[i]);
    sets.learn = rest;
  }
  if (sets.held_out.empty())
    throw UsageError("--sequences: " + std::to_string(all.size()) +
                     " sequences, of which each "
                     "twentieth is to be held out; give 20 at least, or --held-out");
  for (const auto& text : sets.learn) sets.letters += std::ssize(text) - 2;
  return sets;
}

/// Returns the first texts that are held out, in batches, with letters masked.
std::vector<MaskedRows> held_out_rows(const Flags& flags, const Texts& texts, Index length,
                                      const Vocabulary& words) {
  std::vector<MaskedRows> batches;
  const Index count = min_of(flags.measured, std::ssize(texts));
  for (Index first = 0; first < count; first += flags.batch) {
    std::vector<Index> some;
    for (Index r = first; r < min_of(first + flags.batch, count); ++r) some.push_back(r);
    batches.push_back(masked_rows(texts, some, length, words, ~static_cast<std::uint64_t>(first)));
  }
  return batches;
}

/// Prints the parameters, and the plan of a step.
template <class U>
void plan(const ProcessMesh<Grid>& on, const Flags& flags, const Kind& kind, const MaskedRows& rows,
          const Voice& say) {
  const auto mesh = dry_mesh(on);
  Trainer<U> trainer(mesh, flags, kind);
  const ParameterTable table = parameter_table(trainer.weights());
  Recording recording(mesh);
  (void)trainer.step(Placed<U>(mesh, rows), 1);
  const Program program = recording.take();
  say("\nThe parameters, of the first block alone\n{}\n{} parameters, {} MiB a process\nThe plan "
      "of a step of {} rows of {} words, before its passes\n{}  peak with the weights {} KiB a "
      "process\n\n",
      of_first_block(table), table.elements(), ceil_div(table.bytes(), Index{1} << 20), rows.rows,
      rows.length, support::by_layers(program), program.peak_bytes() >> 10);
}

template <class U>
void train(const ProcessMesh<Grid>& mesh, const Flags& flags, const Kind& kind, const Sets& sets,
           const Voice& say) {
  const Vocabulary& words = kind.vocabulary;
  const Index length =
      flags.length > 0 ? flags.length : ceil_div(longest_of(sets.learn), Index{8}) * 8;
  const auto rows_at = [&](Index i) {
    return masked_rows(sets.learn, random_texts(sets.learn, flags.batch, flags.seed, i), length,
                       words, Dropout::mixed(flags.seed) ^ static_cast<std::uint64_t>(i));
  };
  plan<U>(mesh, flags, kind, rows_at(1), say);
  if (mesh.dry()) return;

  Trainer<U> trainer(mesh, flags, kind);
  const std::string digest = digest_of(sets.learn);
  const Index first = flags.resume.empty() ? 0 : trainer.resume(flags.resume, digest, flags.seed);
  support::require_steps(first, flags.steps);
  const std::vector<MaskedRows> held_out = held_out_rows(flags, sets.held_out, length, words);
  Baselines counts(sets.learn, words);
  for (const MaskedRows& rows : held_out) counts.add(sets.held_out, rows);

  auto step = compile([&](const Placed<U>& rows, Index i) { return trainer.step(rows, i); });
  const Baselines::Losses by = counts.losses();
  support::LearningLog log({"step"});
  log.level("letters", "letters", by.letters);
  log.level("places", "letters at a place", by.places);
  log.level("neighbours", "letters between two", by.neighbours);
  support::Progress progress(flags.steps - first, say.speaks);
  Index sent = 0, seen = 0;
  for (Index i = first + 1; i <= flags.steps; ++i) {
    const MaskedRows rows = rows_at(i);
    for (const Index text : rows.texts)
      seen += min_of(length, std::ssize(sets.learn[static_cast<std::size_t>(text)])) - 2;
    const Placed<U> placed(mesh, rows);
    const Index before = mesh.ledger().payload_bytes();
    log.add({static_cast<double>(i)}, static_cast<double>(value(step(placed, i))));
    sent += mesh.ledger().payload_bytes() - before;
    progress.show(i - first, fmt::format("loss {:.3f}  {:.1f}k letters/s", log.recent_loss(),
                                         static_cast<double>(seen) / log.seconds() / 1e3));
    if (!flags.log.empty() && i < flags.steps && i % flags.measure == 0)
      log.measure({trainer.loss_of(held_out)});
    if (!flags.save.empty() &&
        (i == flags.steps || (flags.save_every > 0 && i % flags.save_every == 0)))
      trainer.save(flags.save, i, digest, flags.seed);
  }
  const Index each = step.program().own_payload_bytes();
  say("\nProcess 0 sent {} bytes, planned {} x {}\n", sent, flags.steps - first, each);
  if (sent != each * (flags.steps - first))
    throw Error("planned and counted communication differ on a process");
  if (!flags.out.empty()) trainer.write(flags.out);
  const double loss = trainer.loss_of(held_out);
  log.measure({loss});
  if (say.speaks) support::write_log(flags.log, log, "steps", "nats a masked letter");
  Index masked = 0;
  for (const MaskedRows& rows : held_out) masked += rows.counted();
  say("\nNats a letter, of {} that are to be found in {} sequences that were held out\n"
      "  {:.3f}  how often each letter stands anywhere\n"
      "  {:.3f}  how often at its place\n"
      "  {:.3f}  how often between its two neighbours\n"
      "  {:.3f}  the encoder\n",
      masked, min_of(flags.measured, std::ssize(sets.held_out)), by.letters, by.places,
      by.neighbours, loss);
  if (!(loss < by.letters)) throw Error("the encoder has not learned");
}

void run(Environment& env, const std::vector<std::string>& words) {
  Flags flags = read_flags(words);
  const Voice say{env.process() == 0};
  if (flags.help) return say("{}", usage);
  support::fit_mesh(flags.mesh, env.size(), flags.dry);
  const std::string complaint = complaint_of([&] {
    if (!say.speaks || flags.dry) return;
    support::require_writable("--save", flags.save);
    support::require_writable("--out", flags.out);
    support::require_writable_log(flags.log);
  });
  Kind kind = esm2(flags.sizes);
  kind.source = "train_protein_encoder";
  if (flags.token_dropout == "on")
    kind.options.token_dropout = TokenDropout{.mask = kind.vocabulary.mask};
  const Sets sets = sets_of(flags, kind.vocabulary);
  const auto mesh = flags.dry ? dry_mesh<Grid>(flags.mesh.data, flags.mesh.model)
                              : make_mesh<Grid>(env, flags.mesh.data, flags.mesh.model);
  fail_together(*mesh.core(), complaint, Where::here());
  say("{} sequences to learn from, {} letters; {} held out; mesh {}, split by {}\n",
      sets.learn.size(), sets.letters, sets.held_out.size(), to_string(mesh.shape(), Grid::names()),
      flags.split);
  const auto by_rules = [&]<class R>(std::type_identity<R>) {
    train<Under<float, Grid, R>>(mesh, flags, kind, sets, say);
  };
  if (flags.split == "batch") by_rules(std::type_identity<by::Batch>{});
  if (flags.split == "tensors") by_rules(std::type_identity<by::Tensors>{});
  if (flags.split == "two") by_rules(std::type_identity<by::Two>{});
  if (flags.split == "shards") by_rules(std::type_identity<by::Shards>{});
  if (flags.split == "sequence") by_rules(std::type_identity<by::Sequence>{});
}

}  // namespace train_protein_encoder

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return tessera::run_main(
      1, argv, [&](tessera::Environment& env) { train_protein_encoder::run(env, words); });
}
