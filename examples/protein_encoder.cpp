// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 4
// arguments: --split two --batch 3 --embed 24 --heads 3 --hidden 20 --out protein_encoder.npy --found protein_encoder.found.npy
//
// An encoder of proteins with real weights: states of sequences, and the letters that may stand at
// places that are masked. --mesh and --split say how it is spread over processes.
//
//   python3 examples/protein_encoder/fetch.py antiberty weights
//   mpiexec -n 4 protein_encoder --weights weights/antiberty.safetensors --split tensors
//
// On paper, ESM2 of 15 billion parameters on 2 x 4 and on 16 x 16:
//
//   protein_encoder --dry --mesh 2x4 --split two --layers 48 --embed 5120 --heads 40 --hidden 20480
//   --batch 8
//
// Short sequences share rows with --pack 512, and have the states that each has alone.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tessera/comm/complaint.hpp>
#include <tessera/io/trace_file.hpp>
#include <tessera/nn/parameter_table.hpp>
#include <tessera/op/compile.hpp>

#include "protein_encoder/flags.hpp"
#include "protein_encoder/report.hpp"
#include "protein_encoder/results.hpp"
#include "support/by_layers.hpp"
#include "support/output_file.hpp"
#include "support/progress.hpp"
#include "support/voice.hpp"

namespace protein_encoder {

using support::Voice;

/// Prints the parameters, and the plan of a batch of such a size.
template <class U>
void plan(const ProcessMesh<Grid>& on, const Kind& kind, const Batch& batch, bool finds,
          const Voice& say) {
  const auto mesh = dry_mesh(on);
  const Run<U> run(mesh, kind, finds, false);
  const ParameterTable table = parameter_table(run.model());
  if (on.dry()) say("\nThe parameters, of the first block alone\n{}", of_first_block(table));
  const auto asked = given<U>(mesh, batch);
  Recording recording(mesh);
  (void)run(run.model(), asked);
  const Program program = recording.take();
  say("\n{} parameters, {} MiB a process\nThe plan of {} rows of {} words, before its "
      "passes\n{}  peak with the weights {} KiB a process\nWhat block 0 sends, on process {}\n{}",
      table.elements(), ceil_div(table.bytes(), Index{1} << 20), batch.rows.rows, batch.rows.length,
      support::by_layers(program), program.peak_bytes() >> 10, mesh.process(),
      calls_of(program, "block 0"));
}

/// Runs a batch as it was planned. Throws Error where it sent or held another number of bytes.
template <class U, class F>
Answer<U> run_planned(const ProcessMesh<Grid>& mesh, Compiled<F>& compiled, const Encoder<U>& model,
                      const Batch& batch) {
  const auto asked = given<U>(mesh, batch);
  const Index sent = mesh.ledger().payload_bytes();
  mesh.arena().reset_peak();
  const Answer<U> answer = compiled(model, asked);
  const Program& program = compiled.program();
  const auto require = [](const char* what, Index planned, Index counted) {
    if (planned != counted)
      throw Error(fmt::format("planned and counted {} differ on a process: {} and {} bytes", what,
                              planned, counted));
  };
  require("communication", program.own_payload_bytes(), mesh.ledger().payload_bytes() - sent);
  require("memory", program.peak_bytes(), mesh.arena().peak());
  return answer;
}

/// Returns the sequences that are asked for. Throws UsageError for letters where the encoder reads
/// other words.
std::vector<Text> texts_of(const Flags& flags, const Kind& kind) {
  if (!flags.ids.empty()) return read_ids(flags.ids, kind.vocabulary);
  if (!kind.vocabulary.has_letters())
    throw UsageError("--weights: the words of " + flags.weights +
                     " are not letters; give sequences as numbers of words by --ids");
  return texts_in(kind.vocabulary,
                  flags.sequences.empty() ? some_antibodies : read_sequences(flags.sequences));
}

template <class U>
void encode_all(const ProcessMesh<Grid>& mesh, const Flags& flags, const Kind& kind,
                const Voice& say) {
  const Index most =
      kind.sizes.places > 0 ? kind.sizes.places - kind.options.first_place : Index{1} << 20;
  if (mesh.dry()) {
    const Index words = flags.length + 2;  // with those that begin and end a sequence
    if (words > most)
      throw UsageError("--length " + std::to_string(flags.length) + ": the encoder has " +
                       std::to_string(most - 2) + " places for letters; give fewer");
    if (flags.pack > 0 && words > flags.pack)
      throw UsageError("--length " + std::to_string(flags.length) + ": a row of --pack " +
                       std::to_string(flags.pack) + " has " +
                       std::to_string(max_of(flags.pack - 2, Index{0})) +
                       " places for letters; give fewer, or longer rows");
    return plan<U>(mesh, kind, empty_batch(flags.batch, words, flags.pack), true, say);
  }
  const std::vector<Text> all = texts_of(flags, kind);
  const std::vector<Batch> work =
      flags.pack > 0 ? packed_batches(all, kind.vocabulary, flags.batch, flags.pack, most)
                     : batches(all, kind.vocabulary, flags.batch, most);
  const std::string unit = flags.ids.empty() ? "letters" : "words";
  Index words = 0, places = 0, longest = 0;
  bool finds = false;
  for (const Text& one : all) {
    words += one.words() - 2;
    longest = max_of(longest, one.words());
    finds =
        finds || std::find(one.ids.begin(), one.ids.end(), kind.vocabulary.mask) != one.ids.end();
  }
  for (const Batch& batch : work) places += volume(batch.rows.extents());
  say("{} sequences, {} {}, in {} batches of {} places in all\n", all.size(), words, unit,
      work.size(), places);
  plan<U>(mesh, kind, work[0], finds, say);

  const Run<U> run(mesh, kind, finds, !flags.states.empty());
  auto compiled =
      compile([&](const Encoder<U>& model, const Given<U>& asked) { return run(model, asked); });
  Results results(all, kind, ceil_div(longest, Index{8}) * 8, !flags.states.empty());
  support::Progress progress(static_cast<Index>(work.size()), say.speaks);
  const auto start = std::chrono::steady_clock::now();
  std::optional<Tracing> tracing;
  double seconds = 0;
  for (std::size_t b = 0; b < work.size(); ++b) {
    const bool last = b + 1 == work.size();
    if (last) tracing.emplace(mesh);
    const Answer<U> answer = run_planned<U>(mesh, compiled, run.model(), work[b]);
    if (last) {
      const Trace trace = tracing->take();
      if (!flags.trace.empty()) write_trace(mesh, flags.trace, trace);
      say("\nThe last batch\n{}", explain(summary(trace)));
    }
    results.add(work[b], answer);
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    progress.show(static_cast<Index>(b) + 1,
                  fmt::format("{:.0f} {}/s", static_cast<double>(results.words()) / seconds, unit));
  }
  say("\nCompiled\n{}", explain_passes(compiled));
  say("\n{} {} in {:.2f} s: {:.0f} {}/s, {:.1f} sequences/s\n", words, unit, seconds,
      static_cast<double>(words) / seconds, unit, static_cast<double>(all.size()) / seconds);
  for (std::size_t i = 0, shown = 0; i < all.size() && shown < 10; ++i)
    if (const std::string filled = results.filled(i); filled != all[i].letters) {
      say("  {}\n    {}\n", all[i].name, filled);
      ++shown;
    }
  if (!flags.out.empty()) write(mesh, flags.out, results.means());
  if (!flags.found.empty()) write(mesh, flags.found, results.found());
  if (!flags.states.empty()) write(mesh, flags.states, results.states());
}

void run(Environment& env, const std::vector<std::string>& words) {
  Flags flags = read_flags(words);
  const Voice say{env.process() == 0};
  if (flags.help) return say("{}", usage);
  support::fit_mesh(flags.mesh, env.size(), flags.dry);
  const Kind kind = flags.weights.empty() ? esm2(flags.sizes) : kind_of(flags.weights);
  const std::string complaint = complaint_of([&] {
    if (!say.speaks || flags.dry) return;
    support::require_writable("--out", flags.out);
    support::require_writable("--found", flags.found);
    support::require_writable("--states", flags.states);
    support::require_writable("--trace", flags.trace);
  });
  const auto mesh = flags.dry ? dry_mesh<Grid>(flags.mesh.data, flags.mesh.model)
                              : make_mesh<Grid>(env, flags.mesh.data, flags.mesh.model);
  fail_together(*mesh.core(), complaint, Where::here());
  say("An encoder of {} layers, width {}, from {}; mesh {}, split by {}\n", kind.sizes.layers,
      kind.sizes.embed, kind.source, to_string(mesh.shape(), Grid::names()), flags.split);
  const auto by_rules = [&]<class R>(std::type_identity<R>) {
    encode_all<Under<float, Grid, R>>(mesh, flags, kind, say);
  };
  if (flags.split == "batch") by_rules(std::type_identity<by::Batch>{});
  if (flags.split == "tensors") by_rules(std::type_identity<by::Tensors>{});
  if (flags.split == "two") by_rules(std::type_identity<by::Two>{});
  if (flags.split == "shards") by_rules(std::type_identity<by::Shards>{});
  if (flags.split == "sequence") by_rules(std::type_identity<by::Sequence>{});
}

}  // namespace protein_encoder

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return tessera::run_main(1, argv,
                           [&](tessera::Environment& env) { protein_encoder::run(env, words); });
}
