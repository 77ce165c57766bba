// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 4
// arguments: --steps 6 --layers 2 --width 24 --heads 3 --hidden 20 --experts 4 --k 2 --tokens 96 --group 24 --held-out 6 --measure 3 --log translate --save translate.safetensors --translate translate.translations.safetensors
//
// GShard's task in small: a Transformer with mixtures of experts learns to translate many languages
// into English. The model is that of nn/translation; --mesh and --split say how it is spread over
// processes.
//
//   python3 examples/translate/fetch.py && python3 examples/translate/prepare.py
//   mpiexec -n 4 translate --ids ~/.cache/tessera/translate/ids --experts 16 --translate
//   experts.safetensors translate --dry --mesh 64x8 --experts 512 --width 1024 --heads 16
//   --head-dim 128 --hidden 8192 --layers 6
#include <fmt/format.h>

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/comm/complaint.hpp>
#include <tessera/nn/parameter_table.hpp>
#include <tessera/op/compile.hpp>

#include "support/by_layers.hpp"
#include "support/learning_log.hpp"
#include "support/progress.hpp"
#include "support/saved_run.hpp"
#include "support/voice.hpp"
#include "translate/trainer.hpp"
#include "translate/translations.hpp"

namespace translation {

using support::Voice;

struct Texts {
  Text learn, held_out;
};

Texts texts_of(const Flags& flags) {
  if (flags.ids.empty()) return {made_text(4, 3000, 1), made_text(4, 40, 2)};
  return {read_text(flags.ids + "/learn.safetensors", flags.languages),
          read_text(flags.ids + "/held_out.safetensors", flags.languages)};
}

/// Prints the parameters, and the plan of a step.
template <class U>
void plan(const ProcessMesh<Grid>& on, const Flags& flags, const Text& text, const Batches& batches,
          const Voice& say) {
  const auto mesh = dry_mesh(on);
  Trainer<U> trainer(mesh, flags, text);
  const ParameterTable table = parameter_table(trainer.weights());
  Batch batch = batches.at(1);
  Recording recording(mesh);
  (void)trainer.step(Placed<U>(mesh, batch), batches.texts(batch.length), 1);
  const Program program = recording.take();
  say("\n{} parameters, {} MiB a process\nThe plan of a step of {} sentences of {} tokens, before "
      "its passes\n{}  peak with the weights {} KiB a process\n",
      table.elements(), ceil_div(table.bytes(), Index{1} << 20), batch.rows, batch.length,
      support::by_layers(program), program.peak_bytes() >> 10);
}

/// Takes the steps of a run after the first ones, of which one is left at least.
template <class U>
void take_steps(const ProcessMesh<Grid>& mesh, const Flags& flags, const Texts& texts,
                const Batches& batches, Index first, Trainer<U>& trainer, support::LearningLog& log,
                const Voice& say) {
  const std::string digest = digest_of(texts.learn);
  auto compiled = compile([&](const Placed<U>& batch, Index rows, Index number) {
    return trainer.step(batch, rows, number);
  });
  Index tokens = 0;
  support::Progress progress(flags.steps - first, say.speaks);
  for (Index i = first + 1; i <= flags.steps; ++i) {
    const Batch batch = batches.at(i);
    const Placed<U> placed(mesh, batch);
    const Index before = mesh.ledger().payload_bytes();
    const Scalar<U> nats = compiled(placed, batches.texts(batch.length), i);
    const Index sent = mesh.ledger().payload_bytes() - before;
    if (const Index planned = compiled.program().own_payload_bytes(); planned != sent)
      throw Error(
          fmt::format("planned and counted communication differ on a process: {} and {} "
                      "bytes",
                      planned, sent));
    tokens += batch.tokens;
    log.add({static_cast<double>(i), static_cast<double>(tokens)},
            static_cast<double>(value(nats)));
    progress.show(i - first, fmt::format("loss {:.3f}  {:.2f}k tokens/s", log.recent_loss(),
                                         static_cast<double>(tokens) / log.seconds() / 1e3));
    const bool last = i == flags.steps;
    if (!flags.log.empty() && !last && i % flags.measure == 0)
      log.measure(trainer.losses_of(texts.held_out, std::max<Index>(1, flags.held_out / 8)));
    if (!flags.save.empty() && (last || (flags.save_every > 0 && i % flags.save_every == 0)))
      trainer.save(flags.save, i, digest);
  }
  say("\nThe last step, compiled\n{}", explain_passes(compiled));
  if (flags.settings.experts > 0) {
    const Batch batch = batches.at(flags.steps);
    say("\nIn the last batch {:.1f} % of the choices of experts find no place\n",
        100 * trainer.dropped(batch, batches.texts(batch.length), flags.steps));
  }
}

/// Takes the steps of a run, and measures what was learned; of a run that has taken all it measures
/// alone. Throws UsageError where it has taken more.
template <class U>
void learn(const ProcessMesh<Grid>& mesh, const Flags& flags, const Texts& texts,
           const Batches& batches, Trainer<U>& trainer, const Voice& say) {
  const Index first =
      flags.resume.empty() ? 0 : trainer.resume(flags.resume, digest_of(texts.learn));
  support::require_steps(first, flags.steps, 0);
  std::vector<std::string> names;
  for (const Language& language : texts.learn.languages)
    names.push_back("held_out_" + language.name);
  support::LearningLog log({"step", "tokens"}, std::move(names));
  if (first < flags.steps)
    take_steps<U>(mesh, flags, texts, batches, first, trainer, log, say);
  else
    say("\nThe run has taken its {} steps\n", first);
  const std::vector<double> learned =
      trainer.losses_of(as_many_as(texts.held_out, texts.learn), flags.held_out);
  const std::vector<double> held_out = trainer.losses_of(texts.held_out, flags.held_out);
  if (first < flags.steps) log.measure(held_out);
  say("\nNats a token of what was learned from, without dropout, and of what was held out\n"
      "{:10} {:>10} {:>10} {:>8} {:>9}\n",
      "language", "sentences", "characters", "learned", "held out");
  for (std::size_t l = 0; l < held_out.size(); ++l) {
    const Language& language = texts.learn.languages[l];
    say("{:10} {:>10} {:>10} {:>8.3f} {:>9.3f}\n", language.name, language.sentences(),
        language.characters, learned[l], held_out[l]);
  }
  if (say.speaks && first < flags.steps)
    support::write_log(flags.log, log, "tokens of English", "nats a token");
}

template <class U>
void translate_held_out(const Flags& flags, const Text& held_out, const Trainer<U>& trainer,
                        const Voice& say) {
  Translations all;
  Index texts = 0, done = 0;
  const auto count = [&](const Rows& rows) { return std::min(flags.held_out, rows.count()); };
  for (const Language& language : held_out.languages)
    for (const Rows& rows : language.rows) texts += count(rows);
  say("\nTranslating {} sentences\n", texts);
  support::Progress progress(texts, say.speaks);
  for (const Language& language : held_out.languages)
    trainer.translations(language, held_out, flags.held_out, flags.beams,
                         [&](const Batch& batch, Index, const std::vector<std::vector<Id>>& made) {
                           for (const auto& tokens : made)
                             all.add(language.name, batch.length, tokens);
                           progress.show(done += batch.rows, language.name);
                         });
  if (say.speaks) all.write(flags.translate);
  say("{}: python3 examples/translate/score.py --model NAME {}\n", flags.translate,
      flags.translate);
}

template <class U>
void run_on(const ProcessMesh<Grid>& mesh, const Flags& flags, const Texts& texts,
            const Voice& say) {
  const Batches batches(texts.learn, flags.batches);
  plan<U>(mesh, flags, texts.learn, batches, say);
  if (mesh.dry()) return;
  Trainer<U> trainer(mesh, flags, texts.learn);
  learn<U>(mesh, flags, texts, batches, trainer, say);
  if (!flags.translate.empty()) translate_held_out<U>(flags, texts.held_out, trainer, say);
}

void run(Environment& env, const std::vector<std::string>& words) {
  Flags flags = read_flags(words);
  const Voice say{env.process() == 0};
  if (flags.help) return say("{}", usage);
  support::fit_mesh(flags.mesh, env.size(), flags.dry);
  const std::string complaint = complaint_of([&] {
    if (!say.speaks || flags.dry) return;
    support::require_writable("--save", flags.save);
    support::require_writable("--translate", flags.translate);
    support::require_writable_log(flags.log);
  });
  const Texts texts = texts_of(flags);
  const auto mesh = flags.dry ? dry_mesh<Grid>(flags.mesh.data, flags.mesh.model)
                              : make_mesh<Grid>(env, flags.mesh.data, flags.mesh.model);
  fail_together(*mesh.core(), complaint, Where::here());
  say("{} languages, {} and {} tokens; mesh {}, split by {}\n", texts.learn.languages.size(),
      texts.learn.source_vocabulary, texts.learn.english_vocabulary,
      to_string(mesh.shape(), Grid::names()), flags.split);
  const auto by_rules = [&]<class R>(std::type_identity<R>) {
    run_on<Under<float, Grid, R>>(mesh, flags, texts, say);
  };
  if (flags.split == "experts") by_rules(std::type_identity<by::Experts>{});
  if (flags.split == "tensors") by_rules(std::type_identity<by::Tensors>{});
}

}  // namespace translation

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return tessera::run_main(1, argv,
                           [&](tessera::Environment& env) { translation::run(env, words); });
}
