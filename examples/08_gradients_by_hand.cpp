// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// processes: 4
// arguments: --steps 20 --sample 40 --context 5 --embed 32 --hidden 64 --batch 63 --compiled --trace gradients_by_hand.json
//
// Lesson 8: a training step without reverse mode. A next-character model learns from real text,
// every weight and activation split over a data x model mesh; forward, backward and Adam are
// written with einsum, reduce and map. You will see who owns what, the plan of a step, what its
// passes save, and that planned and counted communication agree. train_transformer.cpp does without
// the hand.
//
//   mpiexec -n 4 08_gradients_by_hand --text /usr/share/common-licenses --mesh 2x2
//   08_gradients_by_hand --dry --mesh 64x64
#include <algorithm>
#include <optional>

#include <tessera/io/trace_file.hpp>
#include <tessera/op/compile.hpp>

#include "gradients_by_hand/adam.hpp"
#include "gradients_by_hand/flags.hpp"
#include "gradients_by_hand/progress.hpp"
#include "gradients_by_hand/report.hpp"
#include "support/text.hpp"
#include "support/voice.hpp"

namespace gradients_by_hand {

using support::Examples, support::load_text, support::mixed, support::Text, support::Voice;

/// Ids on their way to the mesh: every process has all of them and keeps its own.
struct Batch {
  Tensor<Id, data, _> context;
  Tensor<Id, data> next;
  Batch(const ProcessMesh<Grid>& mesh, const Examples& e, Index context_size)
      : context(from_host<Tensor<Id, data, _>>(mesh, {count(e), context_size}, e.contexts)),
        next(from_host<Tensor<Id, data>>(mesh, {count(e)}, e.next)) {}
  static Index count(const Examples& e) { return static_cast<Index>(e.next.size()); }
};

/// Returns the learning rate of a step: risen over a twentieth of all, then along half a cosine to
/// 0.
double rate_at(const Flags& flags, Index step) {
  const double done = static_cast<double>(step) / static_cast<double>(flags.steps);
  return flags.rate * std::min(1.0, 20 * done) * (0.5 + 0.5 * std::cos(3.14159265358979 * done));
}

template <class T>
double held_out_loss(const ProcessMesh<Grid>& mesh, const Weights<T>& w, const Text& text,
                     const Sizes& n) {
  const Index places = static_cast<Index>(text.held_out().size()) - n.context;
  double nats = 0;
  for (Index at = 0; at < places; at += n.batch) {
    const Examples examples = text.held_out_examples(at, n.batch, n.context);
    const Batch batch(mesh, examples, n.context);
    const auto pass = forward(w, batch.context);
    nats += static_cast<double>(value(loss(pass, target_rows(pass, batch.next)))) *
            static_cast<double>(Batch::count(examples));
  }
  return nats / static_cast<double>(places);
}

/// Returns a few characters from the middle of the held-out text, and what the model goes on with.
template <class T>
std::string write(const ProcessMesh<Grid>& mesh, const Weights<T>& w, const Text& text,
                  const Flags& flags) {
  const Index k = flags.sizes.context;
  const auto middle = text.held_out().begin() + static_cast<Index>(text.held_out().size() - k) / 2;
  std::vector<Id> ids(middle, middle + k);
  for (Index i = 0; i < flags.sample; ++i) {
    const Examples seen{{ids.end() - k, ids.end()}, {0}};
    const auto log_p = to_host(forward(w, Batch(mesh, seen, k).context).log_p);
    double left =
        static_cast<double>(mixed(mixed(flags.seed) + static_cast<std::uint64_t>(i)) >> 11) *
        0x1p-53;
    Id pick = 0;  // the first id at which the probabilities before it add up to more than `left`
    while (pick + 1 < text.vocabulary() &&
           (left -= std::exp(static_cast<double>(log_p(0, pick)))) > 0)
      ++pick;
    ids.push_back(pick);
  }
  std::string written;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i == static_cast<std::size_t>(k)) written += " | ";
    written += text.letter(ids[i]);
  }
  return written;
}

template <class T>
void train(const ProcessMesh<Grid>& mesh, const Flags& flags, const Text& text, const Voice& say) {
  const Sizes& n = flags.sizes;
  const Program step = plan_step<T>(n, mesh.sizes(), mesh.process());
  Weights<T> weights = initial_weights<T>(mesh, n, flags.seed * 1000);
  Index parameters = 0;
  for_each_tensor([&](const auto& x) { parameters += x.size(); }, weights);

  say("mesh {}, {} processes; {} weights of {}\n", to_string(mesh.shape(), Grid::names()),
      mesh.processes(), parameters, name_of(dtype_of<T>));
  say("\nWho owns what (rows: first dimension; columns: second; cells: processes)\n{}",
      ownership(weights, n));
  say("\nThe plan of one step\n{}", describe(step));
  if (mesh.dry()) return;

  const double rate = local_gemm_rate<T>(mesh, n);
  say("\nLocal GEMM rate {:.1f} Gflop/s a process; training {} steps of {} characters\n",
      rate / 1e9, flags.steps, n.batch);
  Adam<T> adam(weights, flags.decay);
  auto compiled = compile([&](const Batch& batch, double now) {
    return train_step(weights, adam, batch.context, batch.next, now);
  });
  std::optional<Tracing> tracing;
  mesh.ledger().reset();
  Progress progress(!say.speaks, flags.steps, n.batch, gemm_flops(step) / rate);
  for (Index i = 1; i <= flags.steps; ++i) {
    const Batch batch(mesh, text.random_examples(n.batch, n.context, flags.seed, i), n.context);
    if (!flags.trace.empty() && i == std::max<Index>(1, flags.steps - 2)) tracing.emplace(mesh);
    const auto nats = flags.compiled
                          ? compiled(batch, rate_at(flags, i))
                          : train_step(weights, adam, batch.context, batch.next, rate_at(flags, i));
    progress.show(i, static_cast<double>(value(nats)));
  }

  if (tracing) {
    const Trace trace = tracing->take();
    write_trace(mesh, flags.trace, trace);
    say("\nThe last steps, {}\n{}", flags.trace, explain(summary(trace)));
  }
  const Program& ran = flags.compiled ? compiled.program() : step;
  if (flags.compiled) say("\nCompiled\n{}", explain_passes(compiled));
  const bool equal = as_planned(ran, mesh.ledger(), flags.steps);
  say("\nCommunication of process 0\n{}", compare(ran, mesh.ledger(), flags.steps));
  const Index agreeing = count_yes(mesh, equal);
  if (agreeing != mesh.processes())
    throw Error("planned and counted communication differ on " +
                std::to_string(mesh.processes() - agreeing) + " of " +
                std::to_string(mesh.processes()) + " processes");
  say("  planned and counted are equal on all {} processes\n", agreeing);

  say("\nHeld-out loss {:.3f} nats a character (counts of characters {:.3f}, of pairs {:.3f})\n",
      held_out_loss(mesh, weights, text, n), text.entropy(0), text.entropy(1));
  const std::string sample = write(mesh, weights, text, flags);
  if (flags.sample > 0) say("\nA sample, after the bar\n{}\n", sample);
}

void run(Environment& env, const std::vector<std::string>& words) {
  Flags flags = read_flags(words);
  const Voice say{env.process() == 0};
  if (flags.help) return say("{}", usage);
  support::fit_mesh(flags.mesh, env.size(), flags.dry);
  const Text text = load_text(flags.text, flags.sizes.context);
  flags.sizes.vocabulary = text.vocabulary();
  say("text {}: {} characters to learn from, {} held out, {} different\n", text.description(),
      text.training().size(), text.held_out().size(), text.vocabulary());
  const auto mesh = flags.dry ? dry_mesh<Grid>(flags.mesh.data, flags.mesh.model)
                              : make_mesh<Grid>(env, flags.mesh.data, flags.mesh.model);
  flags.in_double ? train<double>(mesh, flags, text, say) : train<float>(mesh, flags, text, say);
}

}  // namespace gradients_by_hand

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return tessera::run_main(1, argv,
                           [&](tessera::Environment& env) { gradients_by_hand::run(env, words); });
}
