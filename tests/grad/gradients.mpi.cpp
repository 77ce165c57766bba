// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: cases
// Gradients under MPI, on as many processes as there are: of sharded tensors as of whole ones.
#include <doctest/doctest.h>

#include "grad/gradient_cases.hpp"
#include "support/enumerate.hpp"
#include "support/world.hpp"

using namespace tessera;

TEST_CASE("gradients under MPI: of sharded tensors as of whole ones") {
  const int n = support::world()->size();
  std::mt19937 random(31);
  for (const MeshShape& shape : support::meshes_of(n, 2)) {
    const auto mesh = make_mesh(support::world(), {shape[0], shape[1]}, {"data", "model"});
    for (const gradient_test::GradientCase& c : gradient_test::gradient_cases()) {
      CAPTURE(std::string(c.name));
      gradient_test::Dynamic whole, split;
      for (std::size_t k = 0; k < c.inputs.size(); ++k) {
        const auto values = gradient_test::values_of(c, k, random);
        const int rank = c.inputs[k].size();
        whole.push_back(
            gradient_test::whole(mesh, c.inputs[k], values, Sharding::replicated(rank)));
        split.push_back(gradient_test::whole(mesh, c.inputs[k], values,
                                             gradient_test::random_sharding(rank, random)));
      }
      const auto by = value_and_grad([&](const gradient_test::Dynamic& x) { return c.f(mesh, x); });
      const auto wanted = by(whole), got = by(split);
      for (std::size_t k = 0; k < c.inputs.size(); ++k) {
        const auto a = to_host<double>(wanted.gradient[k]), b = to_host<double>(got.gradient[k]);
        CHECK(gradient_test::worst_difference(b.values, a.values) < 1e-11);
      }
    }
  }
}
