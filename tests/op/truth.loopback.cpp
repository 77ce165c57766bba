// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: sums
// Tensors of bool from the host and to it: a std::vector<bool> has no elements in memory, so they
// are bytes there.
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include <tessera/tessera.hpp>

#include "support/grid.hpp"

namespace {
using namespace tessera;
using Truth = ShardedTensor<bool, Grid, P<data, model>>;

TEST_CASE("bools go from the host of all, of one and of each, and back") {
  const Extents extents{5, 7};
  std::vector<std::uint8_t> bytes, wanted;
  for (int i = 0; i < 35; ++i) {
    bytes.push_back(i % 3 == 0 ? static_cast<std::uint8_t>(i) : 0);  // other than 0 and 1 too
    wanted.push_back(bytes.back() != 0);
  }
  for (const MeshSizes<Grid> size :
       {sizes<Grid>(1, 1), sizes<Grid>(2, 2), sizes<Grid>(1, 3), sizes<Grid>(4, 2)})
    run_loopback(size.shape.processes(), [&](std::shared_ptr<Transport> world) {
      const auto mesh = make_mesh<Grid>(std::move(world), size);
      const int root = size.shape.processes() - 1;
      const auto all = from_host<Truth>(mesh, extents, bytes);
      CHECK(to_host(all).values == wanted);
      CHECK(to_host(from_host<Truth>(mesh, extents, to_host(all).values)).values == wanted);
      const std::vector<std::uint8_t> given =
          mesh.process() == root ? bytes : std::vector<std::uint8_t>{};
      CHECK(to_host(from_root<Truth>(mesh, extents, root, given)).values == wanted);
      const DynamicTensor dynamic = from_root<bool>(mesh.core(), extents, Truth::sharding(), root,
                                                    std::span<const std::uint8_t>(given));
      CHECK(to_root<bool>(dynamic, root).values ==
            (mesh.process() == root ? wanted : std::vector<std::uint8_t>{}));
      const HostBlock<bool> block = to_block(all);
      CHECK(to_host(from_blocks<Truth>(mesh, extents, block.values)).values == wanted);
      CHECK(to_host<bool>(from_blocks<bool>(mesh.core(), extents, Truth::sharding(),
                                            std::span<const std::uint8_t>(block.values)))
                .values == wanted);
      const bool truths[] = {true, false, true};
      CHECK(to_host(from_host<ShardedTensor<bool, Grid, P<data>>>(mesh, {3}, truths)).values ==
            std::vector<std::uint8_t>{1, 0, 1});
      CHECK(value(any(all)));
    });
}
}  // namespace
