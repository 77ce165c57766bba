// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// together: transport
// A mesh finds how many of its processes share a node, where nodes are of one size and made of
// consecutive processes.
#include <doctest/doctest.h>

#include <memory>

#include <tessera/comm/loopback/loopback.hpp>
#include <tessera/comm/mesh_core.hpp>

using namespace tessera;

namespace {
/// The transport, as though `size` consecutive processes shared a node.
std::shared_ptr<Transport> with_nodes(Transport& world, int size) {
  TransportSettings settings = world.settings();
  settings.processes_per_node = size;
  return world.duplicate(settings);
}
std::int64_t found(const std::shared_ptr<Transport>& transport, const MeshShape& shape,
                   const MeshOptions& options = {}) {
  return make_mesh_core(transport, shape, {"x", "y"}, options)->machine().processes_per_node;
}
}  // namespace

TEST_CASE("nodes are found, said, or not looked for") {
  run_loopback(8, [](std::shared_ptr<Transport> world) {
    const MeshShape shape{2, 4};
    CHECK(found(with_nodes(*world, -1), shape) == 0);  // loopback: one node
    CHECK(found(with_nodes(*world, 0), shape) == 0);
    CHECK(found(with_nodes(*world, 8), shape) == 0);
    CHECK(found(with_nodes(*world, 4), shape) == 4);
    CHECK(found(with_nodes(*world, 3), shape) == 3);
    MeshOptions options;
    options.find_nodes = false;
    CHECK(found(with_nodes(*world, 4), shape, options) == 0);
    options.find_nodes = true;
    options.machine.processes_per_node = 2;
    CHECK(found(with_nodes(*world, 4), shape, options) == 2);
  });
}

TEST_CASE("nodes are those of the mesh's processes, in its order") {
  run_loopback(8, [](std::shared_ptr<Transport> world) {
    const auto nodes = with_nodes(*world, 4);
    if (world->process() % 4 < 2) {
      CHECK(found(nodes->among({4, 5, 0, 1}), MeshShape{4, 1}) == 2);
      CHECK(found(nodes->among({0, 4, 1, 5}), MeshShape{4, 1}) == 0);  // by turns
    }
    MeshOptions options;
    options.machine.order =
        DeviceOrder{AxisList{1, 0}};  // the machine's numbers stay the communicator's
    CHECK(found(nodes, MeshShape{2, 4}, options) == 4);
    options = {};
    options.device_assignment = DeviceAssignment{0, 1, 4, 5, 2, 3, 6, 7};
    CHECK(found(nodes, MeshShape{4, 2}, options) == 0);  // pairs by turns: of four they are no run
  });
}
