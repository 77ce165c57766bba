// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 4
// arguments: --split places --batch 3 --out number_antibodies.csv --failures number_antibodies.failures.csv
//
// Numbers the residues of antibodies' chains by IMGT's scheme: an encoder-decoder with real weights
// reads a chain and writes a number for each residue. --mesh and --split say how it is spread over
// processes.
//
//   python3 examples/number_antibodies/fetch.py accuracy weights
//   mpiexec -n 4 number_antibodies --weights weights/anarcii_accuracy.safetensors --sequences
//   chains.fasta --out numbers.csv
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/comm/complaint.hpp>

#include "number_antibodies/flags.hpp"
#include "number_antibodies/model.hpp"
#include "number_antibodies/table.hpp"
#include "number_antibodies/windows.hpp"
#include "support/output_file.hpp"
#include "support/progress.hpp"
#include "support/sequences.hpp"
#include "support/voice.hpp"

namespace number_antibodies {

using support::Sequence, support::Voice;

/// An antibody's chains, one of them within a longer sequence, and two of another one.
const std::vector<Sequence> some_chains{
    {"heavy",
     "EVQLVESGGGLVQPGGSLRLSCAASGFTFSNSDMNWVHQAPGKGLEWVSGVSWNGSRTHYADSVKGQFIISRDNSRNTLYLQTNSLRAEDTAV"
     "YYC"
     "VRSPHESAPQYARKIWFDYWGQGTLVTVSS"},
    {"light",
     "DVVMTQTPFSLPVSLGDQASISCRSSQSLVHSNGNTYLHWYLQKPGQSPKLLIYKVSNRFSGVPDRFSGSGSGTDFTLKISRVEAEDLGVYFC"
     "SQS"
     "THVPYTFGGGTKLEIK"},
    {"long",
     std::string(120, 'G') +
         "EVQLVQSGPEVKKPGTSVKVSCKASGFTFMSSAVQWVRQARGQRLEWIGWIVIGSGNTNYAQKFQERVTITRDMSTSTAYMELSSLR"
         "SEDTAVYYCAAPYCSSISCNDGFDIWGQGTMVTVS"},
    {"short/odd", "EVQLVESGG/DVVM?"}};

/// Returns the chains of all sequences, which delimiters divide.
std::vector<Sequence> chains_of(const std::vector<Sequence>& all) {
  const char* const delimiters = "-\\/";
  std::vector<Sequence> chains;
  for (const Sequence& one : all) {
    const auto first = one.letters.find_first_not_of(delimiters);
    if (first == std::string::npos) {
      chains.push_back({one.name, ""});
      continue;
    }
    const std::string text =
        one.letters.substr(first, one.letters.find_last_not_of(delimiters) + 1 - first);
    std::vector<std::string> parts;
    for (std::size_t from = 0, to = 0; to != std::string::npos; from = to + 1) {
      to = text.find_first_of(delimiters, from);
      parts.push_back(text.substr(from, to == std::string::npos ? to : to - from));
    }
    const std::size_t width = std::to_string(parts.size()).size();
    for (std::size_t i = 0; i < parts.size(); ++i)
      chains.push_back(
          {parts.size() == 1 ? one.name : fmt::format("{}-{:0{}}", one.name, i + 1, width),
           parts[i]});
  }
  return chains;
}

/// Runs texts through the model, those of about equal length together.
template <class U> class Runner {
 public:
  Runner(const Model<U>& model, Index rows, const Voice& say)
      : model_(model), rows_(static_cast<std::size_t>(rows)), say_(say) {}

  /// Returns what is written for each text; nothing for one with an unknown letter.
  std::vector<Written> write(const std::vector<std::string>& texts, Index steps,
                             const char* unit) const {
    std::vector<Written> made(texts.size());
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < texts.size(); ++i)
      if (!source_tokens(texts[i]).empty()) order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return texts[a].size() < texts[b].size();
    });
    support::Progress progress(static_cast<Index>(order.size()), say_.speaks);
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t from = 0; from < order.size(); from += rows_) {
      const std::size_t to = std::min(from + rows_, order.size());
      std::vector<std::vector<Id>> sources;
      for (std::size_t i = from; i < to; ++i) sources.push_back(source_tokens(texts[order[i]]));
      std::vector<Written> batch = model_.write(sources, steps);
      for (std::size_t i = from; i < to; ++i) made[order[i]] = std::move(batch[i - from]);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      progress.show(static_cast<Index>(to),
                    fmt::format("{:.1f} {}/s", static_cast<double>(to) / seconds.count(), unit));
    }
    return made;
  }
  /// Returns how likely each window has a domain: the score of the first token.
  std::vector<float> scores(const std::vector<Window>& windows) const {
    std::vector<std::string> texts;
    for (const Window& one : windows) texts.push_back(one.scored);
    std::vector<float> scores;
    for (const Written& one : write(texts, 1, "windows"))
      scores.push_back(one.scores.empty() ? -std::numeric_limits<float>::infinity()
                                          : one.scores.front());
    return scores;
  }

 private:
  const Model<U>& model_;
  std::size_t rows_;
  Voice say_;
};

/// Cuts each long text to the window that has a domain; returns where in the text this begins.
template <class U>
std::vector<long> cut_long(std::vector<std::string>& texts, const Runner<U>& run,
                           const Voice& say) {
  std::vector<long> begins(texts.size(), 0);
  std::vector<std::size_t> longer;
  for (std::size_t i = 0; i < texts.size(); ++i)
    if (texts[i].size() > longest_text) longer.push_back(i);
  const auto choose = [&](const auto& windows_of, const auto& choice) {
    std::vector<Window> windows;
    std::vector<std::size_t> ends, left;
    for (const std::size_t i : longer) {
      for (Window& one : windows_of(texts[i])) windows.push_back(std::move(one));
      ends.push_back(windows.size());
    }
    const std::vector<float> scores = run.scores(windows);
    std::size_t from = 0;
    for (std::size_t k = 0; k < longer.size(); from = ends[k++]) {
      const auto begin = scores.begin();
      const long best = choice(
          std::vector<float>(begin + static_cast<long>(from), begin + static_cast<long>(ends[k])));
      if (best < 0) {
        left.push_back(longer[k]);
        continue;
      }
      const Window& chosen = windows[from + static_cast<std::size_t>(best)];
      begins[longer[k]] = chosen.begin;
      texts[longer[k]] = chosen.letters;
    }
    longer = left;
  };
  if (longer.empty()) return begins;
  say("{} sequences of more than {} letters: their windows\n", longer.size(), longest_text);
  choose(pattern_windows, first_above);
  if (!longer.empty()) choose(all_windows, first_or_best);
  return begins;
}

template <class U>
void number_all(const ProcessMesh<Grid>& mesh, const Flags& flags, const Kind& kind,
                const std::vector<Sequence>& chains, const Voice& say) {
  const Model<U> model(mesh, kind);
  const Runner<U> run(model, flags.batch, say);
  std::vector<std::string> names, texts;
  for (const Sequence& one : chains) names.push_back(one.name), texts.push_back(one.letters);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<long> begins = cut_long(texts, run, say);
  const std::vector<Written> made = run.write(texts, kind.sizes.places, "chains");
  std::vector<Answer> answers(chains.size());
  std::size_t failed = 0, unknown = 0;
  for (std::size_t i = 0; i < chains.size(); ++i) {
    if (made[i].tokens.empty())
      answers[i].error = too_few, ++unknown;  // as anarcii says it
    else
      answers[i] = numbered(source_tokens(texts[i]), made[i].tokens, made[i].scores);
    answers[i].start += begins[i];
    answers[i].end += begins[i];
    failed += !answers[i].error.empty();
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  say("\n{} of {} chains are numbered; {} of the others have letters beside {} and BJOUZ\n"
      "{:.2f} s: {:.1f} chains/s\n",
      chains.size() - failed, chains.size(), unknown, letters, seconds,
      static_cast<double>(chains.size()) / seconds);
  if (flags.out.empty() && !answers.empty())
    for (const auto& [number, residue] : answers.front().residues)
      if (residue != '-') say("{}{}{} ", residue, number.number, number.insertion);
  if (!say.speaks) return;
  if (!flags.out.empty()) support::write_text(flags.out, table_of(names, answers));
  if (!flags.failures.empty()) support::write_text(flags.failures, failures_of(names, answers));
}

void run(Environment& env, const std::vector<std::string>& words) {
  Flags flags = read_flags(words);
  const Voice say{env.process() == 0};
  if (flags.help) return say("{}", usage);
  support::fit_mesh(flags.mesh, env.size(), false);
  const Kind kind = flags.weights.empty() ? Kind() : kind_of(flags.weights);
  const std::vector<Sequence> chains =
      chains_of(flags.sequences.empty() ? some_chains
                                        : support::read_sequences("--sequences", flags.sequences));
  const std::string complaint = complaint_of([&] {
    if (!say.speaks) return;
    support::require_writable("--out", flags.out);
    support::require_writable("--failures", flags.failures);
  });
  const auto mesh = make_mesh<Grid>(env, flags.mesh.data, flags.mesh.model);
  fail_together(*mesh.core(), complaint, Where::here());
  say("{} chains; a model of {} and {} layers, width {}, from {}; mesh {}, split by {}\n",
      chains.size(), kind.sizes.encoder_layers, kind.sizes.decoder_layers, kind.sizes.embed,
      kind.source, to_string(mesh.shape(), Grid::names()), flags.split);
  const auto by_rules = [&]<class R>(std::type_identity<R>) {
    number_all<Under<float, Grid, R>>(mesh, flags, kind, chains, say);
  };
  if (flags.split == "batch") by_rules(std::type_identity<by::Batch>{});
  if (flags.split == "tensors") by_rules(std::type_identity<by::Tensors>{});
  if (flags.split == "shards") by_rules(std::type_identity<by::Shards>{});
  if (flags.split == "places") by_rules(std::type_identity<by::Places>{});
}

}  // namespace number_antibodies

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return tessera::run_main(1, argv,
                           [&](tessera::Environment& env) { number_antibodies::run(env, words); });
}
