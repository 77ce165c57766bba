// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Device orders: bijections between the places of a mesh and the processes of its communicator.
#include <tessera/mesh/device_order.hpp>

namespace {
using namespace tessera;

constexpr MeshShape mesh{2, 3, 4};

consteval bool a_bijection(const DeviceOrder& order) {
  bool taken[24] = {};
  for (int process = 0; process < mesh.processes(); ++process) {
    const Coordinates at = mesh.coordinates(process);
    const int there = device(order, mesh, at);
    if (there < 0 || there >= mesh.processes() || taken[there]) return false;
    taken[there] = true;
    if (!(coordinates_of_device(order, mesh, there) == at)) return false;
    if (order.axes.empty() && there != process) return false;
  }
  return true;
}
static_assert(a_bijection({}));
static_assert(a_bijection({{0, 1, 2}}) && a_bijection({{2, 1, 0}}) && a_bijection({{1, 2, 0}}));

static_assert(device({{2, 0, 1}}, mesh, {1, 2, 3}) == 23);
static_assert(device({{2, 0, 1}}, mesh, {0, 1, 0}) == 1 &&
              device({{2, 0, 1}}, mesh, {1, 0, 0}) == 3);
static_assert(device({{2, 0, 1}}, mesh, {0, 0, 1}) == 6);

static_assert(fits({}, mesh) && fits({{2, 0, 1}}, mesh));
static_assert(!fits({{0, 1}}, mesh) && !fits({{0, 1, 3}}, mesh) && !fits({{0, 1, 2, 3}}, mesh));
}  // namespace
