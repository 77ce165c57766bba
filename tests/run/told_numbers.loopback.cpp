// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: program
// The numbers that functions carry are told to the other processes as they are: the smallest, too.
#include <doctest/doctest.h>

#include <limits>

#include <tessera/tessera.hpp>

#include "support/grid.hpp"

using namespace tessera;

TEST_CASE("functions carry numbers of any size, compared or not") {
  using X = ShardedTensor<double, Grid, P<data>>;
  for (const Check check : {Check::normal, Check::communicating, Check::heavy})
    run_loopback(2, [&](std::shared_ptr<Transport> world) {
      MeshOptions options;
      options.check = check;
      const auto mesh = make_mesh<Grid>(world, sizes<Grid>(2, 1), options);
      const auto x = full<X>(mesh, {4}, 2.0);
      for (const double factor : {1e-300, 1e-310, std::numeric_limits<double>::denorm_min(),
                                  std::numeric_limits<double>::max() / 4})
        CHECK(to_host(reshard<P<_>>(x * factor)).values == std::vector<double>(4, 2.0 * factor));
    });
}
