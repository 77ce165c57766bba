// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
/// @file
/// Which axes of a mesh to put within nodes, so that the least payload goes between nodes (device
/// assignment, GShard, appendix A.3). mesh/device_order.hpp has the type of the answer.
///
///     const Machine machine{.processes_per_node = 8};
///     Program layer = plan(project)(like<X>(8, 512), like<W>(512, 96), sizes<Grid>(8, 8));
///     DeviceOrder order = least_network_order(traffic_of(layer), layer.mesh, machine);
///
/// The traffic is assumed to be the same in every order: plan again with the order in the machine
/// to see how the planner uses it. Blocks are assumed to be even.
///
/// Laws: no order of the axes has less network_payload than the one returned; the mesh's own order
/// is returned where no other has less.
#include <algorithm>
#include <array>

#include <tessera/mesh/levels.hpp>
#include <tessera/program/program.hpp>

namespace tessera {

/// A process's communication, by the axes of its groups, as if all calls ignored nodes.
class AxisTraffic {
 public:
  /// Adds the payload of a collective over the axes of `group`, bytes.
  constexpr void add(Collective kind, AxisSet group, Index payload) {
    Index& sum = (gathers_or_reduces(kind) ? trees_ : exchanges_)[group.bits % groups];
    sum = detail::saturating_add(sum, payload);
  }
  constexpr void add(const AxisTraffic& other) {
    for (std::size_t i = 0; i < groups; ++i) {
      trees_[i] = detail::saturating_add(trees_[i], other.trees_[i]);
      exchanges_[i] = detail::saturating_add(exchanges_[i], other.exchanges_[i]);
    }
  }
  /// Returns how much of the payload goes between nodes, bytes, with collectives in levels
  /// (plan/move/staged.hpp).
  constexpr Index network_payload(const MeshShape& mesh, const Machine& machine) const {
    Index sum = 0;
    for (std::uint32_t bits = 1; bits < groups; ++bits) {
      if (trees_[bits] == 0 && exchanges_[bits] == 0) continue;
      const detail::Levels found = detail::levels(AxisSet::from_bits(bits), mesh, machine);
      if (found.network.empty()) continue;
      const Index near = mesh.group_size(found.node);
      const Index far = mesh.group_size(found.network);
      // In a group of near * far processes, (far - 1) * near are on other nodes than this process;
      // gathered or reduced data goes to each node once.
      const Index others = near * far - 1;
      sum = detail::saturating_add(sum, share(trees_[bits], far - 1, others));
      sum = detail::saturating_add(sum, share(exchanges_[bits], near * (far - 1), others));
    }
    return sum;
  }
  constexpr bool operator==(const AxisTraffic&) const = default;

 private:
  static constexpr std::size_t groups = std::size_t{1} << max_axes;
  static constexpr bool gathers_or_reduces(Collective kind) {
    return kind == Collective::all_gather || kind == Collective::reduce_scatter ||
           kind == Collective::all_reduce || kind == Collective::broadcast;
  }
  /// Returns bytes * part / whole, without overflow.
  static constexpr Index share(Index bytes, Index part, Index whole) {
    return detail::saturating_add(detail::saturating_mul(bytes / whole, part),
                                  bytes % whole * part / whole);
  }

  std::array<Index, groups> trees_{};
  std::array<Index, groups> exchanges_{};
};

/// Returns the communication of the plan's process.
constexpr AxisTraffic traffic_of(const Plan& plan) {
  AxisTraffic traffic;
  for (const Step& step : plan.steps) {
    if (!step.communicates()) continue;
    Index payload = step.payload;
    if (!step.near.empty() && step.collective == Collective::all_to_all) {
      // In levels the data is sent twice.
      const Index members = plan.mesh.group_size(step.group);
      const Index bytes = plan.slots[step.in[0]].bytes;
      payload = bytes - bytes / members;
    }
    traffic.add(step.collective, step.group, payload);
  }
  return traffic;
}
inline AxisTraffic traffic_of(const Program& program) {
  AxisTraffic traffic;
  for (const ProgramEntry& entry : program.entries()) traffic.add(traffic_of(*entry.plan));
  return traffic;
}

/// Returns the order of the axes, outermost first, that sends the least of `traffic` between nodes
/// of machine.processes_per_node processes; among equals the first by axis numbers; an empty order
/// (the mesh's own) where none is better. All orders are tried: at most 720.
constexpr DeviceOrder least_network_order(const AxisTraffic& traffic, const MeshShape& mesh,
                                          Machine machine) {
  std::array<int, max_axes> axes{};
  for (int a = 0; a < mesh.rank(); ++a) axes[static_cast<std::size_t>(a)] = a;
  DeviceOrder best;
  machine.order = best;
  Index least = traffic.network_payload(mesh, machine);
  while (std::next_permutation(axes.begin(), axes.begin() + mesh.rank())) {
    machine.order.axes = {};
    for (int a = 0; a < mesh.rank(); ++a)
      machine.order.axes.push_back(axes[static_cast<std::size_t>(a)]);
    const Index payload = traffic.network_payload(mesh, machine);
    if (payload >= least) continue;
    least = payload;
    best = machine.order;
  }
  return best;
}

}  // namespace tessera
