// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Optimizers under MPI, on as many processes as there are: against plain loops, and what a step
// sends against its program.
#include <doctest/doctest.h>

#include "nn/optimizer_cases.hpp"
#include "support/enumerate.hpp"
#include "support/world.hpp"

using namespace tessera;

TEST_CASE("optimizers under MPI: weights as by loops, payload as on paper") {
  using namespace optimizer_test;
  const auto loss_of = [](const Tree& w, const DynamicTensor& x) {
    const DynamicTensor y = tanh(einsum("ik,kj->ij", x, w[0]));
    return reduce<Mean>("ij->", y * y);
  };
  for (const MeshShape& shape : support::meshes_of(support::world()->size(), 2)) {
    const auto mesh = make_mesh(support::world(), {shape[0], shape[1]}, {"data", "model"});
    for (const NamedPolicy& p : policies()) {
      CAPTURE(std::string(p.name));
      const auto run = [&](const auto& rule, const auto& step) {
        using Rule = std::decay_t<decltype(rule)>;
        Loops loops(random_values(1));
        Tree weights = tree_of<double>(mesh, random_values(1), split_weights());
        Optimizer<Rule, UpdatePolicy> optimizer(rule, weights, {}, p.policy);
        for (int t = 1; t <= 4; ++t) {
          const Values g = random_values(100 + static_cast<unsigned>(t), 0.5);
          step(loops, g);
          optimizer.step(weights, tree_of<double>(mesh, g, whole_weights()));
        }
        for (std::size_t i = 0; i < weights.size(); ++i)
          CHECK(worst_difference(host_values<double>(weights[i]), loops.w[i]) < 1e-12);
      };
      run(Adam{.rate = 0.02},
          [](Loops& l, const Values& g) { l.adam(g, 0.02, 0.9, 0.999, 1e-8, 0, false); });
      run(Lars{.rate = 2.0, .decay = 1e-2, .trust = 0.02},
          [](Loops& l, const Values& g) { l.lars(g, 2.0, 0.9, 1e-2, 0.02); });
      run(Adafactor{.rate = 0.1}, [](Loops& l, const Values& g) { l.adafactor(g, 0.1); });

      Tree weights{zeros<double>(mesh, {11, 6}, Sharding{{}, {1}})};
      Optimizer<Adam, UpdatePolicy> optimizer(Adam{}, weights, {}, p.policy);
      const DynamicTensor x = ones<double>(mesh, {10, 11}, Sharding{{0}, {}});
      Recording recording(mesh);
      const Index before = mesh.ledger().payload_bytes();
      const auto made = optimizer.value_and_grad(loss_of)(weights, x);
      optimizer.step(weights, made.gradient);
      CHECK(mesh.ledger().payload_bytes() - before == recording.take().own_payload_bytes());
    }
  }
}
