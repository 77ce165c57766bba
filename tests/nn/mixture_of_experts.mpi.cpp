// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Mixtures of experts under MPI, on as many processes as there are, against plain loops: in single
// precision, and in double with gradients.
#include <doctest/doctest.h>

#include "nn/mixture_cases.hpp"
#include "support/enumerate.hpp"
#include "support/world.hpp"

using namespace tessera;

TEST_CASE("mixtures of experts under MPI equal plain loops") {
  using namespace mixture_test;
  std::size_t turn = 0;  // a third of the cases on each mesh, others on the next
  for (const MeshShape& shape : support::meshes_of(support::world()->size(), 2)) {
    const auto mesh = make_mesh<Grid>(support::world(), shape[0], shape[1]);
    ++turn;
    for (std::size_t i = turn % 3; i < cases().size(); i += 3) {
      const Case& c = cases()[i];
      const auto is_right = [&](const Answer& answer) {
        CHECK_MESSAGE(answer.wrong.empty(), c.name << ": " << answer.wrong);
      };
      using Tokens = ShardedTensor<float, Grid, P<Axes<data, model>, _, _>>;
      using Expert = ShardedTensor<float, Grid, P<model, _, _>>;
      is_right(
          run_mixture<Dispatch::take, Tokens, ShardedTensor<float, Grid, P<_, _>>, Expert, Expert>(
              mesh, c, {}));
      is_right(run_mixture<Dispatch::one_hot, ShardedTensor<double, Grid, P<data, _, _>>,
                           ShardedTensor<double, Grid, P<_, _>>,
                           ShardedTensor<double, Grid, P<data, _, model>>,
                           ShardedTensor<double, Grid, P<data, model, _>>>(
          mesh, c, plain_gradients(c.shape, c.inputs(), c.draw)));
    }
  }
}
