// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Gradients, layers, optimizers, compiled steps, checkpoints and traces.
#include <tuple>

#include <tessera/io/checkpoint.hpp>
#include <tessera/io/trace_file.hpp>
#include <tessera/nn.hpp>
#include <tessera/op/compile.hpp>

#include "check.hpp"
#include "nn/optimizer_cases.hpp"

namespace device_test {
namespace {

/// Compares the gradient of f at w with differences of f, in one direction.
template <class F, class W>
void slope(Cases& c, const F& f, const W& w, const char* what, double tolerance = 1e-7) {
  const auto [loss, gradient] = value_and_grad(f)(w);
  W direction = w;
  Index shift = 1;
  for_each_tensor([&]<class X>(X& x) { x = wave_of<X>(c.mesh, x.extents(), shift += 5); },
                  direction);
  double along = 0;
  for_each_tensor([&](const auto& g, const auto& d) { along += value(dot(g, d)); }, gradient,
                  direction);
  const auto beside = [&](double step) {
    W moved = w;
    for_each_tensor([&](auto& x, const auto& d) { x = x + step * d; }, moved, direction);
    return static_cast<double>(value(f(moved)));
  };
  const double step = 1e-5;
  c.near(Values{along}, {(beside(step) - beside(-step)) / (2 * step)}, tolerance, what);
}

void gradients(Cases& c) {
  c.run("a gradient", [&] {
    const auto x = wave_of<Real<data, _>>(c.mesh, {6, 5});
    const auto y = wave_of<Real<data, model>>(c.mesh, {6, 3}, 40);
    const auto w = wave_of<Real<_, model>>(c.mesh, {5, 3}, 7);
    const auto [loss, gradient] = value_and_grad([&](const auto& weights) {
      return mean(square(tanh(einsum<"ik,kj->ij">(x, weights)) - y));
    })(w);
    double wanted = 0;
    Values slopes(15);
    for (Index i = 0; i < 6; ++i)
      for (Index j = 0; j < 3; ++j) {
        double sum = 0;
        for (Index k = 0; k < 5; ++k) sum += wave(i * 5 + k) * wave(k * 3 + j + 7);
        const double t = std::tanh(sum), error = t - wave(i * 3 + j + 40);
        wanted += error * error / 18;
        for (Index k = 0; k < 5; ++k)
          slopes[std::size_t(k * 3 + j)] += error / 9 * (1 - t * t) * wave(i * 5 + k);
      }
    c.near(Values{value(loss)}, {wanted}, 1e-14, "the loss");
    c.near(gradient, slopes, 1e-14, "the gradient");
  });
  // differential/gradients.cpp has the gradients of all operators.
  c.run("gradients by differences", [&] {
    const auto x = wave_of<Real<data, model>>(c.mesh, {6, 8}, 3);
    const auto weights = wave_of<Real<data, model>>(c.mesh, {6, 8}, 17);
    slope(
        c,
        [&](const auto& a) {
          return sum(weights * (softmax<"ij", 'j'>(a) + tessera::sort<"ij", 'j'>(exp(a)))) +
                 logsumexp(cumsum<"ij", 'i'>(a)) + dot(variance<"ij->i">(a), max<"ij->i">(a));
        },
        x, "a sum of many");
  });
}

void layers(Cases& c) {
  using U = Under<double, Grid, TensorParallel<data, model>>;
  c.run("layers", [&] {
    Parameters<Grid> make(c.mesh, 5);
    std::vector<std::int32_t> text, next;
    for (Index i = 0; i < 12; ++i) {
      text.push_back(static_cast<std::int32_t>(i * 7 % 11));
      next.push_back(static_cast<std::int32_t>((i + 1) * 7 % 11));
    }
    using Ids = typename U::template Of<std::int32_t, logical::batch, logical::sequence>;
    const auto ids = from_host<Ids>(c.mesh, {3, 4}, text);
    const auto targets = from_host<Ids>(c.mesh, {3, 4}, next);
    const auto model_of = [&](Index block) {
      return [&, block](const auto& w) {
        const auto& [table, norm, heads, wide] = w;
        const auto rows = look_up(table, ids);
        const auto seen = rows + attention(heads, layer_norm(norm, rows), layer_norm(norm, rows),
                                           {.causal = true, .rotary = true, .block = block});
        const auto hidden =
            dense(wide, dropout(seen, Dropout{.rate = 0.2, .seed = 7}.at(1)), fn::Gelu{});
        return mean(cross_entropy(logits(table, seen), targets)) + mean(square(hidden));
      };
    };
    const auto weights = std::tuple(Embedding<U>::like(make, 11, 8), LayerNorm<U>::like(make, 8),
                                    Attention<U>::like(make, {.embed = 8, .heads = 2}),
                                    Dense<U, logical::embed, logical::hidden>::like(make, 8, 6));
    slope(c, model_of(0), weights, "attention by all scores");
    slope(c, model_of(2), weights, "attention by blocks");
    c.near(Values{value(model_of(2)(weights))}, {value(model_of(0)(weights))}, 1e-12,
           "the two losses");
  });
}

template <class Rule, class Step>
void optimizer(Cases& c, const char* name, const Rule& rule, const Step& step) {
  using namespace optimizer_test;
  using Kind = UpdatePolicy::Kind;
  const DynamicMesh mesh(c.mesh.core());
  const auto gradients = [](int t) { return random_values(100 + static_cast<unsigned>(t), 0.5); };
  Loops loops(random_values(1));
  for (int t = 1; t <= 4; ++t) step(loops, gradients(t), t);
  for (const UpdatePolicy& policy : {UpdatePolicy{}, UpdatePolicy{Kind::sharded, {0, 1}},
                                     UpdatePolicy{Kind::sharded, {0}, true}}) {
    Tree weights = tree_of<double>(mesh, random_values(1), split_weights());
    Optimizer<Rule, UpdatePolicy> made(rule, weights, {.finite = true}, policy);
    for (int t = 1; t <= 4; ++t)
      made.step(weights, tree_of<double>(mesh, gradients(t), whole_weights()));
    for (std::size_t i = 0; i < weights.size(); ++i)
      c.near(host_values<double>(weights[i]), loops.w[i], 1e-12, name);
    double squares = 0;
    for (const auto& one : gradients(4))
      for (const double g : one) squares += g * g;
    c.near(Values{made.report().norm}, {std::sqrt(squares)}, 1e-12, "the norm");
  }
}

void optimizers(Cases& c) {
  using optimizer_test::Loops;
  c.run("optimizers", [&] {
    optimizer(c, "descent", Sgd{.rate = 0.05, .momentum = 0.9, .decay = 0.01, .nesterov = true},
              [](Loops& l, const auto& g, int) { l.sgd(g, 0.05, 0.9, 0.01, true); });
    optimizer(c, "Adam", Adam{.rate = 0.1, .decay = 0.1},
              [](Loops& l, const auto& g, int) { l.adam(g, 0.1, 0.9, 0.999, 1e-8, 0.1, false); });
    optimizer(c, "LARS", Lars{.rate = 2.0, .decay = 1e-2, .trust = 0.02},
              [](Loops& l, const auto& g, int) { l.lars(g, 2.0, 0.9, 1e-2, 0.02); });
    optimizer(c, "Adafactor", Adafactor{.rate = 0.1},
              [](Loops& l, const auto& g, int) { l.adafactor(g, 0.1); });
  });
}

/// Linear regression by descent: losses and weights of a few steps, by loops.
struct Regression {
  Values w = waves(15, 7), losses;
  void step(double rate) {
    Values slopes(15);
    double loss = 0;
    for (Index i = 0; i < 6; ++i)
      for (Index j = 0; j < 3; ++j) {
        double error = -wave(i * 3 + j + 40);
        for (Index k = 0; k < 5; ++k) error += wave(i * 5 + k) * at(w, k * 3 + j);
        loss += error * error / 18;
        for (Index k = 0; k < 5; ++k) slopes[std::size_t(k * 3 + j)] += error / 9 * wave(i * 5 + k);
      }
    losses.push_back(loss);
    for (std::size_t k = 0; k < 15; ++k) w[k] -= rate * slopes[k];
  }
};

void steps(Cases& c) {
  using X = Real<data, _>;
  using W = Real<_, model>;
  const auto x = wave_of<X>(c.mesh, {6, 5});
  const auto y = wave_of<Real<data, model>>(c.mesh, {6, 3}, 40);
  Regression host;
  for (int i = 0; i < 4; ++i) host.step(0.1);
  const auto train = [&](const X& batch, W& weights) {
    const auto [loss, gradient] = value_and_grad(
        [&](const auto& w) { return mean(square(einsum<"ik,kj->ij">(batch, w) - y)); })(weights);
    weights -= 0.1 * gradient;
    return loss;
  };
  c.run("steps", [&] {
    auto weights = wave_of<W>(c.mesh, {5, 3}, 7);
    Values losses;
    Tracing tracing(c.mesh);
    for (int i = 0; i < 4; ++i) losses.push_back(value(train(x, weights)));
    const Trace trace = tracing.take();
    c.near(losses, host.losses, 1e-13, "the losses");
    c.near(weights, host.w, 1e-13, "the weights");
    c.require(!trace.events.empty(), "the steps are traced");
    write_trace(c.mesh, "device_cases.json", trace);
  });
  c.run("compiled steps", [&] {
    auto weights = wave_of<W>(c.mesh, {5, 3}, 7);
    auto compiled = compile(train);
    Values losses;
    for (int i = 0; i < 4; ++i) losses.push_back(value(compiled(x, weights)));
    c.near(losses, host.losses, 1e-13, "the losses");
    c.near(weights, host.w, 1e-13, "the weights");
  });
  c.run("checkpoints", [&] {
    auto weights = std::tuple(wave_of<W>(c.mesh, {5, 3}, 7), wave_of<X>(c.mesh, {6, 5}));
    {
      PendingCheckpoint saving = begin_checkpoint(c.mesh, "device_cases.safetensors", weights);
      (void)train(std::get<1>(weights), std::get<0>(weights));  // not what is saved
      saving.wait();
    }
    auto read =
        std::tuple(zeros<Real<model, data>>(c.mesh, 5, 3), zeros<Real<_, data>>(c.mesh, 6, 5));
    (void)read_checkpoint(c.mesh, "device_cases.safetensors", read);
    c.near(std::get<0>(read), waves(15, 7), 0, "what was begun");
    c.near(std::get<1>(read), waves(30), 0, "what was begun");
    write_checkpoint(c.mesh, "device_cases.safetensors", weights);
    (void)read_checkpoint(c.mesh, "device_cases.safetensors", read);
    Regression once;
    once.step(0.1);
    c.near(std::get<0>(read), once.w, 1e-14, "what was written");
  });
}
}  // namespace

void training(Cases& cases) {
  gradients(cases);
  layers(cases);
  optimizers(cases);
  steps(cases);
}
}  // namespace device_test
