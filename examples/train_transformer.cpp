// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 4
// arguments: --steps 6 --sample 20 --context 17 --embed 24 --heads 3 --hidden 20 --experts 3 --layers 2 --batch 5 --block 5 --memory 1 --measure 3 --log train_transformer --save train_transformer.safetensors
//
// The main job: a Transformer with mixtures of experts learns from real text. The model is written
// once (train_transformer/model.hpp); --mesh and --split say how it is spread over processes.
//
//   mpiexec -n 4 train_transformer --text /usr/share/common-licenses --mesh 2x2 --split tensors
//   mpiexec -n 4 train_transformer --stages 2 --schedule zero-bubble --mesh 2x1
//   train_transformer --dry --mesh 64x64 --experts 128
#include <optional>
#include <tuple>
#include <utility>

#include <tessera/comm/complaint.hpp>
#include <tessera/io/trace_file.hpp>
#include <tessera/op/compile.hpp>

#include "support/by_layers.hpp"
#include "train_transformer/learning.hpp"
#include "train_transformer/report.hpp"
#include "train_transformer/train_in_stages.hpp"
#include "train_transformer/trainer.hpp"
#include "train_transformer/write.hpp"

namespace train_transformer {

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
  say("\nThe plan of one step, before its passes\n{}  peak beyond the weights {} KiB\n",
      support::by_layers(planned), planned.peak_bytes() >> 10);
  if (mesh.dry()) return;

  Trainer<U> trainer(mesh, flags);
  say("\nThe weights\n{}{}\n", to_string(parameter_table(trainer.weights())),
      annotated(trainer.weights(), planned));
  Job job;
  const std::string digest = digest_of(text);
  if (!flags.resume.empty()) job.first = trainer.resume(mesh, flags.resume, digest);
  job.gemm_seconds =
      seconds_of_products<typename U::value_type>(mesh, flags, planned, job.first, say);
  const auto step = [&](const Batch<U>& batch, Index number) {
    return trainer.step(batch, number);
  };
  auto compiled = choice ? compile(step, *choice) : compile(step);
  std::optional<Tracing> tracing;
  job.step = [&](const Rows& rows, Index i) {
    const Batch<U> batch(mesh, rows, n.context);
    return static_cast<double>(value(flags.eager ? trainer.step(batch, i) : compiled(batch, i)));
  };
  job.held_out = [&](Index rows) { return trainer.held_out_loss(mesh, text.held_out(), rows); };
  job.write = [&](const std::vector<Id>& before, Index count) {
    return write<U>(mesh, trainer.weights(), n, before, count);
  };
  job.save = [&](Index i) { trainer.save(mesh, flags.save, i, digest); };
  job.payload_bytes = [&] { return mesh.ledger().payload_bytes(); };
  job.trace = [&] { tracing.emplace(mesh); };
  job.end_trace = [&] {
    const Trace trace = tracing->take();
    write_trace(mesh, flags.trace, trace);
    say("\nThe last steps, {}\n{}", flags.trace, explain(summary(trace)));
  };
  job.report = [&] {
    if (!flags.eager) say("\nCompiled\n{}", explain_passes(compiled));
    return (flags.eager ? planned : compiled.program()).own_payload_bytes();
  };
  learn(job, flags, text, say);
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
  support::require_writable_log(flags.log);
  if (flags.stages > 0 && !flags.log.empty())
    support::require_writable("--log", flags.log + ".schedule.svg");
}

void run(Environment& env, const std::vector<std::string>& words) {
  Flags flags = read_flags(words);
  const Voice say{env.process() == 0};
  if (flags.help) return say("{}", usage);
  std::optional<PipelineSchedule> schedule;
  if (flags.stages > 0) schedule = schedule_of(flags, env.size());
  support::fit_mesh(flags.mesh, schedule ? env.size() / schedule->parts() : env.size(), flags.dry);
  const std::string complaint = complaint_of([&] { require_files(flags, say.speaks); });
  const support::Text text = support::load_text(flags.text, flags.sizes.context);
  flags.sizes.vocabulary = text.vocabulary();
  say("text {}: {} characters to learn from, {} held out, {} different\n", text.description(),
      text.training().size(), text.held_out().size(), text.vocabulary());
  if (schedule) return run_in_stages(env, flags, text, *schedule, complaint, say);
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
