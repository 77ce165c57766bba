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
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <optional>
#include <tuple>
#include <utility>

#include <tessera/comm/complaint.hpp>
#include <tessera/io/npy.hpp>
#include <tessera/io/trace_file.hpp>
#include <tessera/nn/parameter_table.hpp>
#include <tessera/op/compile.hpp>

#include "protein_encoder/flags.hpp"
#include "protein_encoder/report.hpp"
#include "protein_encoder/sequences.hpp"
#include "support/curve.hpp"
#include "support/progress.hpp"

namespace protein_encoder {

/// Prints on the process that speaks.
struct Voice {
  bool speaks;
  template <class... X> void operator()(fmt::format_string<X...> text, X&&... x) const {
    if (speaks) fmt::print(text, std::forward<X>(x)...), std::fflush(stdout);
  }
};

/// What a batch gives: its sequences' means, the words' probabilities where letters are masked, and
/// states, the last ones or all.
template <class U> struct Answer {
  typename U::template Tensor<logical::batch, logical::embed> means;
  std::optional<typename U::template Tensor<logical::batch, logical::sequence, logical::vocabulary>>
      probabilities;
  std::vector<States<U>> states;
};
template <class U> using Weights = typename U::template Tensor<logical::batch, logical::sequence>;

template <class U> class Run {
 public:
  Run(const ProcessMesh<Grid>& mesh, const Kind& kind, bool finds, bool all_states)
      : kind_(kind),
        finds_(finds && kind.sizes.head),
        all_states_(all_states),
        model_(read_model<U>(mesh, kind)) {}

  const Encoder<U>& model() const { return model_; }

  /// ids and weights are (batch, length).
  Answer<U> operator()(const Encoder<U>& model, const Ids<U>& ids,
                       const Weights<U>& weights) const {
    const auto valid = not_equal(ids, kind_.vocabulary.padding);
    Answer<U> answer;
    if (all_states_)
      answer.states = hidden_states(model, ids, kind_.options, valid);
    else
      answer.states = {encode(model, ids, kind_.options, valid)};
    const States<U>& last = answer.states.back();
    {
      const Layer scope(ids, "means");
      answer.means = einsum<"bsm,bs->bm">(last, weights);
    }
    if (finds_)
      answer.probabilities = softmax<"bsv", 'v'>(masked_scores(model, last, kind_.options));
    return answer;
  }

 private:
  Kind kind_;
  bool finds_, all_states_;
  Encoder<U> model_;
};

template <class U> Ids<U> ids_of(const ProcessMesh<Grid>& mesh, const Batch& batch) {
  return from_host<Ids<U>>(mesh, {static_cast<Index>(batch.members.size()), batch.length},
                           batch.ids);
}
template <class U> Weights<U> weights_of(const ProcessMesh<Grid>& mesh, const Batch& batch) {
  return from_host<Weights<U>>(mesh, {static_cast<Index>(batch.members.size()), batch.length},
                               batch.weights);
}

/// Prints the parameters, and the plan of a batch of such a size.
template <class U>
void plan(const ProcessMesh<Grid>& on, const Kind& kind, Index rows, Index length, bool finds,
          const Voice& say) {
  const auto mesh = dry_mesh<Grid>(on.sizes(), on.process());
  const Run<U> run(mesh, kind, finds, false);
  const ParameterTable table = parameter_table(run.model());
  if (on.dry()) say("\nThe parameters, of the first block alone\n{}", of_first_block(table));
  const Batch batch{std::vector<Index>(static_cast<std::size_t>(rows)), length,
                    std::vector<Id>(static_cast<std::size_t>(rows * length)),
                    std::vector<float>(static_cast<std::size_t>(rows * length))};
  const auto ids = ids_of<U>(mesh, batch);
  const auto weights = weights_of<U>(mesh, batch);
  Recording recording(mesh);
  (void)run(run.model(), ids, weights);
  const Program program = recording.take();
  say("\n{} parameters, {} MiB a process\nThe plan of {} sequences of {} words, before its "
      "passes\n{}What block 0 sends, on process {}\n{}",
      table.elements(), ceil_div(table.bytes(), Index{1} << 20), rows, length, describe(program),
      mesh.process(), calls_of(program, "block 0"));
}

/// Rows of numbers for all sequences, kept on every process until they are written.
struct Rows {
  Extents extents;
  std::vector<float> values;
  void write(const ProcessMesh<Grid>& mesh, const std::string& path) const {
    const DynamicTensor whole =
        from_host(mesh, extents, Sharding::replicated(static_cast<int>(extents.size())),
                  std::span<const float>(values));
    write_npy(whole, path, {.progress = progress_bar("writing", mesh.process() == 0)});
  }
};

template <class U>
void encode_all(const ProcessMesh<Grid>& mesh, const Flags& flags, const Kind& kind,
                const Voice& say) {
  if (mesh.dry()) return plan<U>(mesh, kind, flags.batch, flags.length, true, say);
  const std::vector<Sequence> all =
      flags.sequences.empty() ? some_antibodies : read_sequences(flags.sequences);
  const Index most =
      kind.sizes.places > 0 ? kind.sizes.places - kind.options.first_place : Index{1} << 20;
  const std::vector<Batch> work = batches(all, kind.vocabulary, flags.batch, most);
  Index letters = 0;
  bool finds = false;
  for (const Sequence& one : all) {
    letters += static_cast<Index>(one.letters.size());
    finds = finds || one.letters.find('_') != std::string::npos;
  }
  say("{} sequences, {} letters, in {} batches\n", all.size(), letters, work.size());
  plan<U>(mesh, kind, static_cast<Index>(work[0].members.size()), work[0].length, finds, say);

  const Run<U> run(mesh, kind, finds, !flags.states.empty());
  auto compiled = compile([&](const Encoder<U>& model, const Ids<U>& ids,
                              const Weights<U>& weights) { return run(model, ids, weights); });
  const auto count = static_cast<Index>(all.size());
  const Index width = kind.sizes.embed, words = kind.vocabulary.size();
  const auto numbers = [](Index n) { return std::vector<float>(static_cast<std::size_t>(n)); };
  Rows means{{count, width}, numbers(count * width)};
  const Index layers = kind.sizes.layers + 1, longest = work[0].length;
  Rows states{{layers, count, longest, width}, {}};
  if (!flags.states.empty()) states.values = numbers(layers * count * longest * width);
  std::vector<std::vector<float>> found(all.size());  // of each sequence's masked places, in order
  support::Progress progress(static_cast<Index>(work.size()), say.speaks);
  const auto start = std::chrono::steady_clock::now();
  std::optional<Tracing> tracing;
  Index done = 0;
  double seconds = 0;
  for (std::size_t b = 0; b < work.size(); ++b) {
    const Batch& batch = work[b];
    const auto ids = ids_of<U>(mesh, batch);
    const auto weights = weights_of<U>(mesh, batch);
    if (b + 1 == work.size()) tracing.emplace(mesh);
    const Index sent = mesh.ledger().payload_bytes();
    mesh.arena().reset_peak();
    const Answer<U> answer = compiled(run.model(), ids, weights);
    const Program& program = compiled.program();
    if (mesh.ledger().payload_bytes() - sent != program.own_payload_bytes())
      throw Error("planned and counted communication differ on a process");
    if (mesh.arena().peak() != program.peak_bytes())
      throw Error("planned and counted memory differ on a process: " +
                  std::to_string(program.peak_bytes()) + " and " +
                  std::to_string(mesh.arena().peak()) + " bytes");
    const auto rows = to_host(answer.means);
    if (b + 1 == work.size()) {
      const Trace trace = tracing->take();
      if (!flags.trace.empty()) write_trace(mesh, flags.trace, trace);
      say("\nThe last batch\n{}", explain(summary(trace)));
    }
    for (std::size_t row = 0; row < batch.members.size(); ++row)
      for (Index m = 0; m < width; ++m)
        means.values[static_cast<std::size_t>(batch.members[row] * width + m)] =
            rows(static_cast<Index>(row), m);
    if (answer.probabilities) {
      const auto p = to_host(*answer.probabilities);
      for (std::size_t row = 0; row < batch.members.size(); ++row) {
        const auto member = static_cast<std::size_t>(batch.members[row]);
        for (std::size_t at = 0; at < all[member].letters.size(); ++at)
          for (Index v = 0; v < words && all[member].letters[at] == '_'; ++v)
            found[member].push_back(p(static_cast<Index>(row), static_cast<Index>(at + 1), v));
      }
    }
    if (!flags.states.empty())
      for (Index layer = 0; layer < layers; ++layer) {
        const auto x = to_host(answer.states[static_cast<std::size_t>(layer)]);
        for (std::size_t row = 0; row < batch.members.size(); ++row)
          for (Index s = 0; s < batch.length; ++s) {
            if (batch.ids[row * static_cast<std::size_t>(batch.length) +
                          static_cast<std::size_t>(s)] == kind.vocabulary.padding)
              continue;
            const Index to = (layer * count + batch.members[row]) * longest + s;
            for (Index m = 0; m < width; ++m)
              states.values[static_cast<std::size_t>(to * width + m)] =
                  x(static_cast<Index>(row), s, m);
          }
      }
    for (const Index member : batch.members)
      done += static_cast<Index>(all[static_cast<std::size_t>(member)].letters.size());
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    progress.show(static_cast<Index>(b) + 1,
                  fmt::format("{:.0f} letters/s", static_cast<double>(done) / seconds));
  }
  say("\nCompiled\n{}", explain_passes(compiled));
  say("\n{} letters in {:.2f} s: {:.0f} letters/s, {:.1f} sequences/s\n", letters, seconds,
      static_cast<double>(letters) / seconds, static_cast<double>(count) / seconds);

  Rows probabilities{{0, words}, {}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::string filled = all[i].letters;
    const std::vector<float>& own = found[i];
    std::size_t place = 0;
    for (char& c : filled) {
      if (c != '_' || own.empty()) continue;
      const auto begin = own.begin() + static_cast<Index>(place++) * words;
      Index best = -1;  // of the words that are letters
      for (Index v = 0; v < words; ++v)
        if (kind.vocabulary.word(v).size() == 1 && (best < 0 || begin[v] > begin[best])) best = v;
      c = kind.vocabulary.word(best)[0];
    }
    probabilities.values.insert(probabilities.values.end(), own.begin(), own.end());
    if (!own.empty() && i < 20) say("  {}\n    {}\n", all[i].name, filled);
  }
  probabilities.extents[0] = static_cast<Index>(probabilities.values.size()) / words;
  if (!flags.out.empty()) means.write(mesh, flags.out);
  if (!flags.found.empty()) probabilities.write(mesh, flags.found);
  if (!flags.states.empty()) states.write(mesh, flags.states);
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
