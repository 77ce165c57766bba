// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 4
// arguments: --steps 6 --sample 20 --context 17 --embed 24 --heads 3 --hidden 20 --experts 3 --layers 2 --batch 5 --block 5 --memory 1 --measure 3 --log train_transformer --save train_transformer.safetensors
//
// The main job: a Transformer with mixtures of experts learns from real text. The model is written
// once (train_transformer/model.hpp); --mesh and --split say how it is spread over processes.
//
//   mpiexec -n 4 train_transformer --text /usr/share/common-licenses --mesh 2x2 --split tensors
//   train_transformer --dry --mesh 64x64 --experts 128
#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include <tessera/comm/complaint.hpp>
#include <tessera/io/trace_file.hpp>
#include <tessera/op/compile.hpp>

#include "support/progress.hpp"
#include "train_transformer/report.hpp"
#include "train_transformer/trainer.hpp"

namespace train_transformer {

/// Prints on the process that speaks.
struct Voice {
  bool speaks;
  template <class... X> void operator()(fmt::format_string<X...> text, X&&... x) const {
    if (speaks) fmt::print(text, std::forward<X>(x)...), std::fflush(stdout);
  }
};

/// Returns the characters before a bar, and what the model goes on with.
template <class U>
std::string write(const ProcessMesh<Grid>& mesh, const Model<U>& weights, const support::Text& text,
                  const Flags& flags) {
  const Index k = flags.sizes.context;
  const auto middle = text.held_out().begin() +
                      static_cast<Index>(text.held_out().size() - static_cast<std::size_t>(k)) / 2;
  std::vector<Id> ids(middle, middle + k);
  for (Index i = 0; i < flags.sample; ++i) {
    Rows seen = rows_from(ids, {static_cast<Index>(ids.size()) - k}, k - 1);
    seen.ids.push_back(ids.back());  // the last one has nothing after it yet
    seen.next.push_back(0);
    const auto [out, auxiliary] =
        scores(weights, Batch<U>(mesh, seen, k).ids, flags.sizes, {0, false});
    const auto p = to_host(softmax<"bsv", 'v'>(slice<1>(out, {k - 1}, {k})));
    double left = static_cast<double>(support::mixed(support::mixed(flags.sizes.seed) +
                                                     static_cast<std::uint64_t>(i)) >>
                                      11) *
                  0x1p-53;
    Id pick = 0;  // the first id at which the probabilities before it add up to more than `left`
    while (pick + 1 < text.vocabulary() && (left -= static_cast<double>(p(0, 0, pick))) > 0) ++pick;
    ids.push_back(pick);
  }
  std::string written;
  for (std::size_t i = static_cast<std::size_t>(std::max<Index>(0, k - 80)); i < ids.size(); ++i) {
    if (i == static_cast<std::size_t>(k)) written += " | ";
    written += text.letter(ids[i]);
  }
  return written;
}

template <class U>
void train(const ProcessMesh<Grid>& mesh, Flags flags, const support::Text& text, const Voice& say,
           std::optional<Choice> choice) {
  if (flags.memory > 0) {
    const Choice layers = choice ? *choice : chosen_layers<U>(flags, mesh);
    for (const ChosenLayer& layer : layers.layers) flags.sizes.again.emplace_back(layer.again);
    if (!choice) say("\n{}\n", explain(layers));
    if (!layers.found)
      throw UsageError("--memory " + std::to_string(flags.memory) + ": a step holds " +
                       std::to_string(ceil_div(layers.least_peak, Index{1} << 20)) +
                       " MiB at least, with all layers run again; give that, a smaller --batch or "
                       "--context, or more processes");
  }
  const Sizes& n = flags.sizes;
  if (choice) {
    say("\nWhat is split otherwise than its operator alone would have it, and what else it could "
        "cost\n{}",
        why(*choice));
  }
  const Program planned = choice ? choice->program : plan_step<U>(flags, mesh);
  say("\nThe plan of one step, before its passes\n{}", describe(planned));
  if (mesh.dry()) return;

  Trainer<U> trainer(mesh, flags);
  say("\nThe weights\n{}{}\n", to_string(parameter_table(trainer.weights())),
      annotated(trainer.weights(), planned));
  Index first = 0;
  const std::string digest = digest_of(text);
  if (!flags.resume.empty()) {
    first = trainer.resume(mesh, flags.resume, digest);
    say("\nGoing on after step {} of {}\n", first, flags.resume);
  }
  if (first >= flags.steps)
    throw UsageError("--steps: the run has taken " + std::to_string(first) + " steps and " +
                     std::to_string(flags.steps) + " are asked for; give more");
  const double gemm_rate = local_gemm_rate<typename U::value_type>(mesh, n);
  const double gemm_seconds = gemm_flops(planned) / gemm_rate;
  say("\nLocal GEMM rate {:.1f} Gflop/s a process; steps {} to {} of {} characters\n",
      gemm_rate / 1e9, first + 1, flags.steps, n.batch * n.context);
  const auto step = [&](const Batch<U>& batch, Index number) {
    return trainer.step(batch, number);
  };
  auto compiled = choice ? compile(step, *choice) : compile(step);
  std::optional<Tracing> tracing;
  Log log;
  Pace pace(n.batch * n.context, gemm_seconds);
  support::Progress progress(flags.steps - first, say.speaks);
  Index sent = 0;
  for (Index i = first + 1; i <= flags.steps; ++i) {
    const Batch<U> batch(mesh, random_rows(text.training(), n.batch, n.context, n.seed, i),
                         n.context);
    if (!flags.trace.empty() && i == std::max(first + 1, flags.steps - 2)) tracing.emplace(mesh);
    const Index before = mesh.ledger().payload_bytes();
    const double nats =
        static_cast<double>(value(flags.eager ? trainer.step(batch, i) : compiled(batch, i)));
    sent += mesh.ledger().payload_bytes() - before;
    progress.show(i - first, pace.after(i - first, nats));
    const bool last = i == flags.steps;
    if (!flags.log.empty()) {
      const bool measures = last || i % flags.measure == 0;
      log.add(i * n.batch * n.context, pace.seconds(), nats,
              measures ? trainer.held_out_loss(mesh, text.held_out(), 4 * n.batch) : NAN);
    }
    if (!flags.save.empty() && (last || (flags.save_every > 0 && i % flags.save_every == 0)))
      trainer.save(mesh, flags.save, i, digest);
  }
  if (tracing) {
    const Trace trace = tracing->take();
    write_trace(mesh, flags.trace, trace);
    say("\nThe last steps, {}\n{}", flags.trace, explain(summary(trace)));
  }
  if (!flags.eager) say("\nCompiled\n{}", explain_passes(compiled));
  const Index each = (flags.eager ? planned : compiled.program()).own_payload_bytes();
  say("\nProcess 0 sent {} bytes, planned {} x {}\n", sent, flags.steps - first, each);
  if (sent != each * (flags.steps - first))
    throw Error("planned and counted communication differ on a process");
  if (!flags.log.empty() && say.speaks) {
    support::write_text(flags.log + ".csv", log.csv());
    support::write_text(flags.log + ".svg", log.svg());
  }
  say("\nHeld-out loss {:.3f} nats a character (counts of characters {:.3f}, of pairs {:.3f})\n",
      trainer.held_out_loss(mesh, text.held_out(), max_int64), text.entropy(0), text.entropy(1));
  const std::string sample = write(mesh, trainer.weights(), text, flags);
  if (flags.sample > 0) say("\nA sample, after the bar\n{}\n", sample);
}

/// Chooses a step's shardings for each way to split the weights, and returns the way whose step
/// then sends least.
std::pair<std::string, Choice> cheapest(const Flags& flags, const ProcessMesh<Grid>& mesh,
                                        const Voice& say) {
  const std::pair<const char*, Choice> all[] = {
      {"batch", chosen_step<Under<float, Grid, by::Batch>>(flags, mesh)},
      {"tensors", chosen_step<Under<float, Grid, by::Tensors>>(flags, mesh)},
      {"shards", chosen_step<Under<float, Grid, by::Shards>>(flags, mesh)}};
  say("\nA step whose weights are split by each way, as written and chosen: model time, payload\n");
  const auto* best = &all[0];
  for (const auto& one : all) {
    const Choice& choice = one.second;
    const bool found = best->second.found;
    if (choice.found != found ? choice.found : choice.cost < best->second.cost) best = &one;
    say("  {:<8} {:>8.1f} -> {:>8.1f} us, {:>7} -> {:>7} KiB\n", one.first,
        static_cast<double>(choice.given().cost()) / 1e6,
        static_cast<double>(choice.program.cost()) / 1e6, choice.given().payload_bytes() >> 10,
        choice.program.payload_bytes() >> 10);
  }
  say("The least is of {}\n", best->first);
  return {best->first, best->second};
}

/// Throws UsageError unless the files that the run writes at its end can be written.
void require_files(const Flags& flags, bool writes) {
  if (!writes || flags.dry) return;
  support::require_writable("--save", flags.save);
  support::require_writable("--trace", flags.trace);
  if (flags.log.empty()) return;
  support::require_writable("--log", flags.log + ".csv");
  support::require_writable("--log", flags.log + ".svg");
}

void run(Environment& env, const std::vector<std::string>& words) {
  Flags flags = read_flags(words);
  const Voice say{env.process() == 0};
  if (flags.help) return say("{}", usage);
  support::fit_mesh(flags.mesh, env.size(), flags.dry);
  const std::string complaint = complaint_of([&] { require_files(flags, say.speaks); });
  const support::Text text = support::load_text(flags.text, flags.sizes.context);
  flags.sizes.vocabulary = text.vocabulary();
  say("text {}: {} characters to learn from, {} held out, {} different\n", text.description(),
      text.training().size(), text.held_out().size(), text.vocabulary());
  const auto mesh = flags.dry ? dry_mesh<Grid>(flags.mesh.data, flags.mesh.model)
                              : make_mesh<Grid>(env, flags.mesh.data, flags.mesh.model);
  fail_together(*mesh.core(), complaint, Where::here());
  say("mesh {}, {} processes; split by {}\n", to_string(mesh.shape(), Grid::names()),
      mesh.processes(), flags.split);
  std::optional<Choice> choice;
  if (flags.split == "chosen") std::tie(flags.split, choice) = cheapest(flags, mesh, say);
  if (flags.split == "batch") train<Under<float, Grid, by::Batch>>(mesh, flags, text, say, choice);
  if (flags.split == "tensors")
    train<Under<float, Grid, by::Tensors>>(mesh, flags, text, say, choice);
  if (flags.split == "shards")
    train<Under<float, Grid, by::Shards>>(mesh, flags, text, say, choice);
}

}  // namespace train_transformer

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return tessera::run_main(1, argv,
                           [&](tessera::Environment& env) { train_transformer::run(env, words); });
}
